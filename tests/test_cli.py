"""The command line as a person meets it: its answers, and one line with exit code 2 for what it cannot do."""
import json
import os
import re
import shlex
import subprocess
import sys

import gguf
import numpy as np
import pytest

from tests.llm import expected, small_models
from tiny.__main__ import main
from tiny.toolchain import Cache


def tiny(*arguments, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "tiny", *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | environment,
        timeout=300,
    )


def check_refused(done: subprocess.CompletedProcess, message: str) -> None:
    """Exit code 2 and one line that says so."""
    assert done.returncode == 2, done.stderr
    assert re.search(message, done.stderr) and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stdout == ""


def test_help_lists_the_commands():
    for arguments in ((), ("--help",)):
        done = tiny(*arguments)
        assert done.returncode == 0 and "generate" in done.stdout and "devices" in done.stdout


def test_unknown_command_proposes_one():
    check_refused(tiny("generat"), "unknown command 'generat'; did you mean generate")
    check_refused(tiny("zzz"), "the commands are generate, devices")


def test_control_c_is_one_line(monkeypatch, capsys):
    def pressed(arguments):
        raise KeyboardInterrupt
    monkeypatch.setattr("tiny.devices.main", pressed)
    assert main(["devices"]) == 130
    assert capsys.readouterr().err == "tiny devices: interrupted\n"


@pytest.mark.parametrize("arguments", [["--help"], ["devices", "--help"], ["devices"]])
def test_a_reader_that_has_gone_is_no_error(arguments):
    """As `| head` goes: no traceback, and none at exit from what was not written out yet."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "tiny", *arguments], stdout=writing, stderr=subprocess.PIPE,
                          timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_standard_output_is_no_error():
    command = f"exec {shlex.quote(sys.executable)} -m tiny devices >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_devices_lists_every_kind_and_what_to_do():
    done = tiny("devices")
    assert done.returncode == 0, done.stderr
    assert re.search(r"CPU\b.*(opens|ok|yes)", done.stdout, re.IGNORECASE)
    assert all(name in done.stdout for name in ("AMD", "NV", "METAL"))


def test_devices_tells_of_a_second_card():
    done = tiny("devices", AMD="1", EMULATE="gfx1100,gfx1201")
    assert done.returncode == 0, done.stderr
    assert "gfx1100, emulated 24 GiB, one of the cards 0: gfx1100, 1: gfx1201, " in done.stdout


@pytest.mark.parametrize(("settings", "message"), [
    ({"DEV": "CUDDA"}, "unknown device CUDDA"), ({"CPU": "1", "AMD": "1"}, "two devices are selected")])
def test_devices_lists_them_also_when_the_default_is_wrong(settings, message):
    done = tiny("devices", **settings)
    assert done.returncode == 2 and "CPU" in done.stdout
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_models.write_gguf(
        tmp_path_factory.mktemp("model") / "small.gguf", small_models.random_weights()
    )


def test_generates_text_and_figures(model):
    done = tiny("generate", model, "--prompt", "abc", "--max-tokens", 6, "--ids")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("abc")
    assert len(re.search(r"^ids: (.*)$", done.stdout, re.MULTILINE)[1].split()) == 6
    assert re.search(
        r"prompt 3 tokens at [\d.]+ tokens/s, decode 5 at [\d.]+ tokens/s; \d+ kernels in 1 submission "
        r"per token; memory \d+ MB, device \d+ MB; compiling [\d.]+ s$",
        done.stderr,
    )


def test_default_model_goes_on_as_known():
    done = tiny("generate", "--prompt", expected.PROMPT, "--ids")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (f"{expected.PROMPT}{expected.GREEDY_TEXT}\n"
                           f"ids: {' '.join(map(str, expected.GREEDY_IDS))}\n")


@pytest.mark.slow
def test_default_model_answers_a_question():
    done = tiny("generate", "--chat", "--prompt", expected.CHAT_PROMPT)
    assert done.stdout.strip() == expected.CHAT_ANSWER


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "wrong.gguf").write_bytes(b"PK\x03\x04 and more")
    (tmp_path / "short.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    for name, message in (("none.gguf", "no such file"), ("wrong.gguf", "not b'GGUF'"),
                          ("short.gguf", "short.gguf"), ("", "no config.json there")):
        check_refused(tiny("generate", tmp_path / name, "--prompt", "x"), message)


def test_unsupported_block_type_is_named(tmp_path):
    path = tmp_path / "blocks.gguf"
    weights = small_models.random_weights()
    odd = weights.pop("token_embd.weight")
    writer_type = gguf.GGMLQuantizationType.IQ1_S
    original = gguf.GGUFWriter.write_header_to_file

    def with_odd_tensor(self, *arguments):
        blocks = np.zeros((odd.shape[0], 50), np.uint8)
        self.add_tensor("token_embd.weight", blocks, raw_shape=blocks.shape, raw_dtype=writer_type)
        return original(self, *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf.GGUFWriter, "write_header_to_file", with_odd_tensor)
        small_models.write_gguf(path, weights)
    check_refused(tiny("generate", path, "--prompt", "x"), "token_embd.weight.*IQ1_S.*Q4_1")


def test_other_architectures_are_named(tmp_path):
    path = small_models.write_gguf(
        tmp_path / "other.gguf", small_models.random_weights(), architecture="bert"
    )
    check_refused(tiny("generate", path, "--prompt", "x"), "architecture 'bert' is not supported")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("piped", [False, True])
def test_a_prompt_that_is_no_text_is_one_line(model, locale, piped):
    command = [sys.executable, "-m", "tiny", "generate", str(model)]
    done = subprocess.run(command if piped else [*command, "--prompt", b"ab\xff"], input=b"ab\xff",
                          capture_output=True, env=os.environ | {"LC_ALL": locale}, timeout=60)
    message = b"tiny generate: the prompt is no text in UTF-8, from character 2 on; convert it"
    assert done.returncode == 2 and done.stderr.startswith(message) and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(("command", "code", "message"), [
    ("generate {}", 2, "tiny generate: the prompt is empty; give at least one token\n"),
    ("decode --kind pm4", 0, ""),
])
def test_a_closed_standard_input_is_an_empty_one(model, command, code, message):
    command = f"exec {shlex.quote(sys.executable)} -m tiny {command.format(shlex.quote(str(model)))} <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, message)


def test_context_overflow_is_one_line(model):
    check_refused(
        tiny("generate", model, "--prompt", "a" * 300), "the prompt has 300 tokens, the context holds 256"
    )


def test_an_answer_that_fills_the_context_stops_there(model):
    done = tiny("generate", model, "--prompt", "a" * 250, "--ids")
    assert done.returncode == 0, done.stderr
    ids = re.search(r"^ids: (.*)$", done.stdout, re.MULTILINE)[1].split()
    assert len(ids) == 6 or ids[-1] == "2"


@pytest.mark.parametrize(("options", "message"), [
    (("--tempreture", "1"), "unrecognized arguments"), (("--temperature", "-1"), "temperature is at least 0"),
    (("--temperature", "nan"), "temperature is at least 0"),
    (("--prompt", ""), "the prompt is empty")])
def test_options_that_cannot_be(model, options, message):
    check_refused(tiny("generate", model, "--prompt", "x", *options), message)


def test_unknown_device_proposes_one(model):
    check_refused(tiny("generate", model, "--prompt", "x", "--device", "CUP"), "CPU")
    check_refused(tiny("generate", model, "--prompt", "x", DEV="CUDDA"), "CUDDA")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    """`| head`: nothing is said about the pipe that closed."""
    kept = Cache(str(tmp_path / "tuned"))
    entry = {"kernel": "k" * 60, "target": "CPU x86_64", "beam": 1, "before_s": 1.0, "time_s": 0.5,
             "schedule": {"loops": [], "packs": []}}
    for number in range(2000):
        kept.put(f"{number:040x}", json.dumps(entry).encode())
    command = f"{sys.executable} -m tiny tune list | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True,
                          env=os.environ | {"CACHE": str(tmp_path)})
    assert done.stdout.startswith("kkk") and done.stderr == ""
