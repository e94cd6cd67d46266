# What people do with a checkout. Each target prepares what it needs first; when that is done already, it costs nothing.
PYTHON := .venv/bin/python
PROMPT ?= The capital of France is
FLAGS  ?= --ids
PYTEST := $(PYTHON) -m pytest -n auto --dist worksteal -p no:benchmark
TENSOR_TESTS := tests/frontend tests/nn tests/realize

.PHONY: run test test-all test-emulated test-oracles bench lint bindings bindings-check setup setup-test setup-oracle

run: setup            ## let SmolLM2 go on with $(PROMPT)
	@$(PYTHON) -m tiny generate --prompt "$(PROMPT)" $(FLAGS)

test: lint            ## what every change must pass
	@$(PYTEST) -m "not slow and not oracle and not device"

test-all: setup-test  ## and what takes longer: new examples of property tests, emulated cards' code optimized
	@$(PYTEST) --hypothesis-profile=new --optimized -m "not oracle and not device"

test-emulated: setup-test  ## the tests of tensors on emulated cards, all but those that tests/emulated.py names
	@for card in gfx1100 gfx1201 gfx942; do echo $$card; AMD=1 EMULATE=$$card \
	  $(PYTEST) -q -m "not slow and not oracle and not device" $(TENSOR_TESTS) || exit 1; done

test-oracles: setup-oracle  ## compare with other libraries
	@$(PYTEST) -m "oracle and not device"

bench: setup-test     ## measure; nothing else should run meanwhile
	@$(PYTHON) -m pytest tests/benchmarks/bench_*.py --benchmark-only -q -s
	@$(PYTHON) -m tests.benchmarks.compare

lint: setup-test
	@$(PYTHON) -m ruff check .

bindings: setup-test  ## regenerate tiny.autogen from freshly downloaded header packages
	@$(PYTHON) -m tiny.autogen

bindings-check: setup-test  ## fail if tiny.autogen is not what its headers say
	@$(PYTHON) -m tiny.autogen --check

setup setup-test setup-oracle:
	@scripts/setup.sh $(patsubst setup-%,%,$(patsubst setup,run,$@))
