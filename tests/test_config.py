"""Settings: read once, changed for a block, wrong values and misspelt names explained."""
import asyncio
import dataclasses
import subprocess
import sys
import threading

import pytest

from tiny.config import Config, ConfigError, Context, current, getenv, read_environment


def test_the_environment_becomes_a_frozen_dataclass():
    config, hints = read_environment({"DEBUG": "2", "CHECK": "1", "MEMORY_LIMIT": "1.5G", "CC": "gcc"})
    assert (config.debug, config.check, config.memory_limit, config.cc) == (2, 1, 3 << 29, "gcc")
    assert config.jit == 1 and hints == []
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.debug = 3


@pytest.mark.parametrize("text, size", [
    ("0", 0), ("4096", 4096), ("8k", 8192), ("2MiB", 2 << 20), ("1GB", 1 << 30)])
def test_sizes_have_units(text, size):
    assert read_environment({"MEMORY_LIMIT": text})[0].memory_limit == size


@pytest.mark.parametrize("name, value, text", [
    ("DEBUG", "lots", "DEBUG='lots': an integer is needed, for example DEBUG=1"),
    ("MEMORY_LIMIT", "big", "MEMORY_LIMIT='big': a size is needed, for example MEMORY_LIMIT=8G"),
    ("MEMORY_LIMIT", "inf", "MEMORY_LIMIT='inf': a size is needed"),
    ("MEMORY_LIMIT", "-5", "MEMORY_LIMIT='-5': at least 0 is needed"),
    ("THREADS", "-1", "THREADS='-1': at least 0 is needed"),
    ("TIMEOUT_MS", "-1", "TIMEOUT_MS='-1': at least 0 is needed"),
])
def test_a_value_of_the_wrong_kind_names_the_setting(name, value, text):
    with pytest.raises(ConfigError, match=text):
        read_environment({name: value})


@pytest.mark.parametrize("name, hint", [
    ("TINY_DEBUG", "TINY_DEBUG is not a setting of tiny; write DEBUG, without TINY_"),
    ("TINY_DEBGU", "TINY_DEBGU is not a setting of tiny; did you mean DEBUG?"),
    ("TINY_QQQ", "TINY_QQQ is not a setting of tiny; the settings are AMD, NV,"),
])
def test_unknown_tiny_names_get_a_hint(name, hint):
    hints = read_environment({name: "1", "OTHER_PROGRAM": "1"})[1]
    assert len(hints) == 1 and hints[0].startswith(hint)


def test_the_hint_is_printed_by_the_process():
    code = "from tiny.config import current; current(); current()"
    done = subprocess.run([sys.executable, "-c", code], env={"TINY_BEEM": "1", "PYTHONPATH": "."},
                          capture_output=True, text=True)
    assert done.stderr.count("TINY_BEEM is not a setting of tiny; did you mean BEAM?") == 1


@pytest.mark.parametrize("environment, name", [
    ({}, "CPU"), ({"CPU": "1"}, "CPU"), ({"AMD": "1"}, "AMD"), ({"AMD": "0"}, "CPU"),
    ({"DEVICE": "METAL"}, "METAL"), ({"DEV": "NV:1"}, "NV:1"),
    ({"AMD": "1", "DEV": "AMD:gfx1201"}, "AMD:gfx1201"),
])
def test_the_selected_device(environment, name):
    assert read_environment(environment)[0].device_name == name


@pytest.mark.parametrize("environment, both", [
    ({"AMD": "1", "NV": "1"}, "AMD=1 and NV=1"), ({"CPU": "1", "DEV": "AMD"}, "CPU=1 and DEV=AMD"),
    ({"DEV": "CPU", "DEVICE": "NV"}, "DEV=CPU and DEVICE=NV"),
])
def test_two_selected_devices_are_an_error_that_names_both(environment, both):
    with pytest.raises(ConfigError, match=f"two devices are selected, {both}; unset all but one"):
        print(read_environment(environment)[0].device_name)


def test_context_changes_settings_for_a_block():
    before = current()
    with Context(DEBUG=3, BEAM=2):
        assert (current().debug, current().beam) == (3, 2)
        with Context(DEBUG=1):
            assert (current().debug, current().beam) == (1, 2)
        assert current().debug == 3
    assert current() is before


def test_context_decorates_a_function():
    @Context(TRAINING=1)
    def training(depth):
        return training(depth - 1) if depth else current().training
    assert training(3) == 1 and current().training == 0


def test_context_is_undone_by_an_exception():
    with pytest.raises(KeyError), Context(DEBUG=9):
        raise KeyError
    assert current().debug != 9


def test_context_is_local_to_a_thread_and_a_task():
    seen = []

    async def task(debug):
        with Context(DEBUG=debug):
            await asyncio.sleep(0)
            return current().debug

    async def both():
        return await asyncio.gather(task(4), task(5))
    with Context(DEBUG=7):
        thread = threading.Thread(target=lambda: seen.append(current().debug))
        thread.start()
        thread.join()
    assert seen == [Config().debug] and asyncio.run(both()) == [4, 5]


def test_context_refuses_what_is_no_setting_and_forgives_the_peers():
    with pytest.raises(ConfigError, match="Context: debug is not a setting; did you mean DEBUG?"):
        Context(debug=1)
    with pytest.raises(ConfigError, match="Context: DEBGU is not a setting; did you mean DEBUG?"):
        Context(DEBGU=1)
    with Context(WINO=1):
        pass
    with Context(MEMORY_LIMIT="1G"):
        assert current().memory_limit == 1 << 30


def test_cache_folder():
    assert Config(cache="0").cache_folder is None
    assert Config(cache="/x").cache_folder == "/x"
    assert Config(xdg_cache_home="/x").cache_folder == "/x/tiny"


def test_getenv_takes_the_type_of_its_default(monkeypatch):
    monkeypatch.setenv("STEPS", "70")
    assert getenv("STEPS") == 70 and getenv("STEPS", "x") == "70" and getenv("NOT_SET_ANYWHERE", 1.5) == 1.5
