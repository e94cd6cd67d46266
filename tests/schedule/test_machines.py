"""The same kernels for narrower machines and by another compiler: values are equal.

Each case is a compiler, the instructions it may use and the width of vectors that schedules are chosen for.
"""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.schedule.drawing import choices, graphs, reductions
from tests.schedule.running import compare, leaf
from tests.tools import tool
from tiny.hcq.cpu import host
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node
from tiny.schedule import heuristic
from tiny.schedule.axes import merge_axes
from tiny.target import Target
from tiny.toolchain import Cache, compile_objects, find_compiler

OWN = host.features(host.read_cpuinfo(), host.architecture())
FEATURES = {16: frozenset(), 32: OWN & {"avx", "avx2", "fma", "f16c"}, 64: OWN}
CASES = [(compiler, lanes) for compiler in ("clang", "gcc") for lanes in (16, 32, 64)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("objects")


def machine(compiler: str, lanes: int, folder) -> tuple:
    """(choose, build) for a compiler and a width of vectors in bytes."""
    found = find_compiler(tool("gcc") if compiler == "gcc" else "")
    features = FEATURES[lanes]
    flags = host.flags(host.architecture(), features)
    target = Target("CPU", host.architecture(), "c", lanes, threads=2, features=features)
    cache = Cache(str(folder))

    def choose(kernel):
        merged = merge_axes(kernel)
        return merged, heuristic.choose(merged, target)
    return choose, lambda sources: compile_objects(sources, found, flags, cache, 2)


@pytest.mark.parametrize("compiler,lanes", CASES)
def test_random_kernels_as_scheduled_for_the_machine(compiler, lanes, folder):
    choose, build = machine(compiler, lanes, folder)

    @settings(max_examples=14)
    @given(graphs(), reductions())
    def agree(one, other):
        compare([one, other], choose, build=build)
    agree()


@pytest.mark.parametrize("compiler,lanes", [("clang", 16), ("gcc", 16), ("gcc", 64)])
def test_random_schedules_on_other_machines(compiler, lanes, folder):
    """Vectors wider and narrower than the machine's, in any place."""
    _, build = machine(compiler, lanes, folder)

    @settings(max_examples=14)
    @given(graphs(), choices())
    def agree(graph, choose):
        compare([graph], choose, build=build)
    agree()


@pytest.mark.parametrize("compiler,lanes", CASES)
def test_halves_and_roundings(compiler, lanes, folder):
    """Conversions to and from float16, over all its numbers and the places where rounding changes;
    truncation.
    """
    choose, build = machine(compiler, lanes, folder)
    patterns = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = patterns.astype(np.float32)
    wide = wide[np.isfinite(wide)]
    between = [wide, np.nextafter(wide, np.float32(np.inf)), wide * (1 + 2.0 ** -12), wide * (1 + 2.0 ** -11)]
    others = [np.linspace(-70000, 70000, 999), [2.0 ** 23 - 0.5, 2.0 ** 31, 1e30, -0.0, 0.7, np.inf]]
    reals = np.concatenate([*between, *others])
    numbers = leaf(reals.astype(np.float32), dtypes.float32)
    with np.errstate(over="ignore"):
        squares = leaf(reals.astype(np.float32) ** 2, dtypes.float32)
    roots = [Node(ops.CAST, dtypes.float16, (numbers,)), Node(ops.TRUNC, None, (numbers,)),
             Node(ops.CAST, dtypes.float32, (leaf(patterns, dtypes.float16),)),
             Node(ops.TRUNC, None, (leaf(reals, dtypes.float64),)),
             Node(ops.SQRT, None, (squares,))]
    compare(roots, choose, build=build)
