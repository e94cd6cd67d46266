"""Search where groups have many work-items: matrix instructions, shared sums, operands in shared memory."""
import random

import pytest

from tests.schedule import cards
from tests.schedule.common import held, plan_of
from tests.schedule.running import compare, source_of
from tiny.ir.dtype import dtypes
from tiny.schedule import gpu
from tiny.schedule.axes import merge_axes
from tiny.schedule.loops import GROUP, MATRIX, THREAD, check, group_items, local_size, reduced_axes
from tiny.schedule.record import from_data, to_data
from tiny.schedule.search import neighbours
from tiny.target import Target

TARGETS = [
    Target("AMD", "gfx1100", "amdgcn", lanes=32, threads=96, work_items=1024, local_bytes=1 << 16),
    Target("AMD", "gfx1201", "amdgcn", lanes=32, threads=64, work_items=1024, local_bytes=1 << 15),
    Target("AMD", "gfx942", "amdgcn", lanes=64, threads=304, work_items=1024, local_bytes=1 << 16),
]
GRAPHS = {
    "product": lambda: held(128, 128, dtype=dtypes.float16) @ held(128, 128, dtype=dtypes.float16),
    "remainders": lambda: (held(70, 130, dtype=dtypes.float16) @ held(130, 129, dtype=dtypes.float16)).relu(),
    "converted": lambda: held(128, 128).cast(dtypes.float16) @ held(128, 128, dtype=dtypes.float16),
    "rows": lambda: held(4, 5000).sum(1),
    "columns": lambda: held(1000, 30).sum(0),
    "elements": lambda: held(1000, 30) + held(1000, 30),
    "running": lambda: held(20, 300).cumsum(1),
}


def chosen(name: str, target: Target):
    """(kernel, the schedule that is chosen without a search, how many pointers it takes)"""
    step, *_ = plan_of(GRAPHS[name]()).steps
    kernel = merge_axes(step.kernel)
    return kernel, gpu.choose(kernel, target), len(step.places)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.arch)
@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_proposed_fits_the_card_and_comes_back_from_disk(name, target):
    """Over several changes in a row, some of which end at a schedule that is lowered."""
    kernel, schedule, pointers = chosen(name, target)
    generator = random.Random(3)
    for _ in range(4):
        near = list(neighbours(kernel, schedule, target))
        assert near
        for one in near:
            check(kernel, one)
            assert from_data(kernel, to_data(kernel, one)) == one
            assert group_items(one) <= target.work_items
            assert local_size(kernel, one) <= target.local_bytes
        schedule = generator.choice(near)
        source_of("changed", kernel, schedule, pointers, target.dialect)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.arch)
def test_changes_of_a_product_keep_its_instruction(target):
    kernel, schedule, _ = chosen("product", target)
    near = list(neighbours(kernel, schedule, target))
    assert schedule.packs and all(one.matrix is schedule.matrix for one in near)
    assert all([loop.kind for loop in one.loops[-3:]] == [MATRIX] * 3 for one in near)
    waves = {tuple(loop.step for loop in one.loops if loop.kind == GROUP) for one in near}
    assert len(waves) >= 3
    assert {len(one.packs) for one in near if one.loops != schedule.loops} == {2}
    assert {len(one.packs) for one in near if one.loops == schedule.loops} == {1, 2}


def test_an_operand_that_is_packed_with_what_is_computed_from_it_is_read_in_place_or_packed_elsewhere():
    target = TARGETS[0]
    kernel, schedule, _ = chosen("converted", target)
    first = schedule.packs[0]
    assert {one.operand.dtype for one in schedule.packs} == {dtypes.float16}
    near = [one for one in neighbours(kernel, schedule, target) if one.loops == schedule.loops]
    assert any(one.packs == schedule.packs[1:] for one in near)
    assert any(pack.operand is first.operand and pack.depth != first.depth for one in near
               for pack in one.packs)


@pytest.mark.parametrize("name", ["rows", "columns"])
def test_the_items_that_share_a_sum_become_more_or_fewer(name):
    kernel, schedule, _ = chosen(name, TARGETS[0])
    reduced = reduced_axes(kernel)

    def items(one):
        return tuple((loop.step, group_items(one)) for loop in one.loops
                     if loop.kind == THREAD and loop.axis in reduced)
    assert len({items(one) for one in neighbours(kernel, schedule, TARGETS[0])}) >= 3


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_changes_compute_the_product(arch):
    """On a card: a product with remainders, two changes away from what is chosen."""
    generator = random.Random(arch)
    with cards.opened() as devices:
        target = devices[arch].target

        def choose(kernel):
            kernel = merge_axes(kernel)
            schedule = gpu.choose(kernel, target)
            assert schedule.matrix is not None
            for _ in range(2):
                schedule = generator.choice(list(neighbours(kernel, schedule, target)))
            return kernel, schedule
        compare([cards.product(40, 35, 50, dtypes.float16)], choose, device=devices[arch])
