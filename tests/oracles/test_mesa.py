"""Our decoders against Mesa's, on 1,000 random valid streams for each generation: `make test-oracles`.

Each comparison leaves its report in build/oracles/: how much was compared, what differs and why, and which
names only one of the two has.
"""
import fcntl
from pathlib import Path

import pytest

from tests.oracles import amd_streams, mesa, nv_streams
from tiny.trace import streams

STREAMS = 1000
REPORTS = Path(__file__).resolve().parent.parent.parent / "build" / "oracles"
# every disagreement that is known, with its explanation; any other fails the test
EXPLAINED = {
    ("COND_EXEC", "ADDR"): "Mesa 25 reads the count before the address, as a graphics queue of GFX6 had it; "
                           "gfx_v11_0.c and "
                           "gfx_v12_0.c of Linux 6.12 write the address, 0 and the count, which is what "
                           "tiny declares",
    ("COND_EXEC", "SIZE"): "the same",
}
ONLY_MESA = ("names that only Mesa has: bits that a compute queue does not use, or registers and methods "
             "that tiny "
             "leaves out")
ONLY_TINY = ("names that only tiny has: Mesa's tables for gfx942 have no UCONFIG registers; its host "
             "methods are Fermi's, "
             "without semaphores; clc6c0.h has 64 words of inline QMD, Hopper 96")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.fixture(scope="session")
def programs(tmp_path_factory, worker_id):
    """(major version, "amd" or "nv") -> (Mesa, program), built once for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "mesa"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        versions = {version: mesa.Mesa(version, folder) for version in mesa.PACKAGES}
        made = {}
        for version, name in ((25, "amd"), (25, "nv"), (22, "amd")):
            done = versions[version].build / f"mesa_{name}"
            made[version, name] = (versions[version], done if done.exists()
                                   else getattr(versions[version], name)())
    return made


def report(title: str, comparison) -> None:
    """Write what was compared, and fail for a disagreement that has no explanation."""
    lines = [f"{title}: {STREAMS} streams, {comparison.packets} packets, {comparison.facts} facts compared",
             f"{len(comparison.differences)} kinds of disagreement"]
    for key, example in sorted(comparison.differences.items()):
        lines.append(f"  {key[0]}.{key[1]}: {example}; {EXPLAINED.get(key, 'NOT EXPLAINED')}")
    for kind, names in ((ONLY_MESA, comparison.only_mesa), (ONLY_TINY, comparison.only_tiny)):
        if names:
            lines.append(f"{len(names)} {kind}: {', '.join(sorted(names))}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{title.replace(' ', '-')}.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    unexplained = {key: value for key, value in comparison.differences.items() if key not in EXPLAINED}
    assert not unexplained
    assert comparison.packets > STREAMS


@pytest.mark.parametrize("version, generation", [(22, 9), (22, 11), (25, 9), (25, 11), (25, 12)])
def test_pm4(programs, version, generation):
    built, program = programs[version, "amd"]
    data = [amd_streams.random_stream(amd_streams.PM4[generation], generation, seed)
            for seed in range(STREAMS)]
    comparison = amd_streams.Comparison(amd_streams.enumerators(built.source), generation)
    for stream, text in zip(data, mesa.printed(program, [str(generation), "gfx"], data), strict=True):
        comparison.stream(streams.pm4_stream(stream, generation), amd_streams.taken_apart(text))
    report(f"mesa {built.release} PM4 gfx{generation}", comparison)


@pytest.mark.parametrize("generation", [9, 11, 12])
def test_sdma(programs, generation):
    built, program = programs[25, "amd"]
    data = [amd_streams.random_stream(amd_streams.SDMA[generation], generation, seed)
            for seed in range(STREAMS)]
    comparison = amd_streams.Comparison({}, generation)
    for stream, text in zip(data, mesa.printed(program, [str(generation), "sdma"], data), strict=True):
        comparison.stream(streams.sdma_stream(stream, generation), amd_streams.taken_apart(text))
    report(f"mesa {built.release} SDMA gfx{generation}", comparison)


@pytest.mark.parametrize("compute_class", [0xc6c0, 0xc7c0, 0xc9c0], ids=hex)
def test_push_buffers(programs, compute_class):
    built, program = programs[25, "nv"]
    data = [nv_streams.random_stream(seed) for seed in range(STREAMS)]
    comparison = nv_streams.Comparison()
    for stream, text in zip(data, mesa.printed(program, [hex(compute_class), "0xc6b5"], data), strict=True):
        comparison.stream(stream, list(streams.push_stream(stream, compute_class)),
                          nv_streams.taken_apart(text))
    report(f"mesa {built.release} push buffers {compute_class:x}", comparison)
