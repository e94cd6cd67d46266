"""Sums of products as they are scheduled: values of shapes that fill tiles and that do not; the schedules."""
import numpy as np
import pytest

from tests.schedule.common import TARGET, held, plan_of
from tests.schedule.running import compare, leaf, planned, run_plan
from tiny import Tensor, Variable
from tiny.frontend.quantised import DEQUANTISE
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.schedule import heuristic, products
from tiny.schedule.axes import merge_axes
from tiny.schedule.loops import BLOCK, GROUP, LANES, Schedule, accumulation, reduced_axes, static_size
from tiny.target import Target


def machine(threads: int = 2, lanes: int = 64) -> Target:
    return Target("CPU", "x86_64", lanes=lanes, threads=threads)


def chosen(target: Target, schedules: list | None = None):
    """What the heuristics choose for a target; the schedules of products are noted."""
    def choose(kernel):
        kernel = merge_axes(kernel)
        found = products.choose(kernel, target)
        if schedules is not None and found is not None:
            schedules.append(found)
        return kernel, heuristic.choose(kernel, target)
    return choose


def whole(*shape: int, dtype=dtypes.float32) -> Tensor:
    """Small whole numbers, whose sums are exact."""
    random = np.random.default_rng(shape)
    numbers = random.integers(-3, 4, shape)
    if dtype is dtypes.bfloat16:                             # held as the upper half of a float32
        numbers = numbers.astype(np.float32).view(np.uint32) >> 16
    return Tensor._wrap(leaf(numbers, dtype))


def matrices(rows: int, columns: int, depth: int, turned: str, dtype=dtypes.float32) -> Tensor:
    left = whole(depth, rows, dtype=dtype).T if "left" in turned else whole(rows, depth, dtype=dtype)
    right = whole(columns, depth, dtype=dtype).T if "right" in turned else whole(depth, columns, dtype=dtype)
    return left @ right


SHAPES = [(64, 64, 64), (50, 200, 70), (49, 131, 33), (7, 650, 90), (130, 37, 300), (200, 16, 9)]


@pytest.mark.parametrize("turned", ["", "left", "right", "left right"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_matrices(shape, turned):
    compare([matrices(*shape, turned).node], chosen(machine()))


@pytest.mark.parametrize("turned", ["", "left"])
def test_a_long_sum_is_taken_in_blocks(turned):
    schedules = []
    compare([matrices(131, 200, 3000, turned).node], chosen(machine(), schedules))
    blocks = [loop.step for loop in schedules[0].loops if loop.axis.src[0].arg == 3000]
    assert len(blocks) == 2 and 100 <= blocks[0] <= 2048


def test_a_sum_that_cannot_wait_is_added_up_in_parts():
    """One with something done after it: steps of one accumulator stay few, those of its blocks too."""
    schedules = []
    compare([(matrices(70, 100, 5000, "") + whole(70, 100)).relu().node], chosen(machine(), schedules))
    assert [loop.step for loop in schedules[0].loops if loop.kind == BLOCK] == [2048]


@pytest.mark.parametrize("lanes", [16, 32, 64])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64, dtypes.int32])
def test_types_and_widths(dtype, lanes):
    for turned in ("", "right"):
        compare([matrices(65, 100, 48, turned, dtype).node], chosen(machine(lanes=lanes)))


def test_what_stands_before_and_behind_a_product():
    x, w = whole(70, 90), whole(90, 100)
    bias, residual = whole(100), whole(70, 100)
    for graph in ((x @ w + bias).relu(), (x @ w + bias).relu() + residual, x.relu() @ (w * 2 + 1),
                  (x @ w) * (x @ w),
                  (x.cast(dtypes.int32) @ w.cast(dtypes.int32)).cast(dtypes.float32) + bias):
        compare([graph.node], chosen(machine()))


def test_batches():
    compare([(whole(3, 5, 40, 33) @ whole(3, 5, 33, 50)).node], chosen(machine()))
    compare([(whole(6, 40, 33) @ whole(33, 50)).node], chosen(machine()))
    compare([(whole(4, 1, 40, 33) @ whole(3, 33, 50)).node], chosen(machine()))


OPTIONS = [{"padding": 1}, {"stride": 2}, {"dilation": 2, "padding": 2}, {"groups": 2}]


@pytest.mark.parametrize("options", OPTIONS)
def test_convolutions_and_the_gradients_of_their_weights(options):
    image, weight = whole(3, 32, 15, 14), whole(48, 32 // options.get("groups", 1), 3, 3)
    weight.requires_grad = True
    result = image.conv2d(weight, whole(48), **options)
    (result * whole(*result.shape)).sum().backward()
    compare([result.node, weight.grad.node], chosen(machine()))


def gradient_of_image(options: dict) -> tuple[Tensor, np.ndarray]:
    """The gradient of a convolution's image, and what a loop over the taps says."""
    padding, stride, dilation, groups = (options.get(name, default) for name, default in
                                         (("padding", 0), ("stride", 1), ("dilation", 1), ("groups", 1)))
    image, weight = whole(2, 8, 13, 11), whole(12, 8 // groups, 3, 3)
    image.requires_grad = True
    result = image.conv2d(weight, **options)
    above = whole(*result.shape)
    (result * above).sum().backward()
    taps, g = weight.node.arg.array(), above.node.arg.array()
    wide = np.zeros((2, 8, 13 + 2 * padding, 11 + 2 * padding), np.float32)
    for (out, inside, i, j) in np.ndindex(taps.shape):
        channel = inside + out // (12 // groups) * (8 // groups)
        rows = slice(i * dilation, i * dilation + stride * (g.shape[2] - 1) + 1, stride)
        columns = slice(j * dilation, j * dilation + stride * (g.shape[3] - 1) + 1, stride)
        wide[:, channel, rows, columns] += g[:, out] * taps[out, inside, i, j]
    return image.grad, wide[:, :, padding:padding + 13, padding:padding + 11]


@pytest.mark.parametrize("options", [{}, *OPTIONS, {"padding": 2, "groups": 4, "dilation": 3}])
def test_gradients_of_images(options):
    gradient, expected = gradient_of_image(options)
    plan, leaves = planned(gradient.node)
    np.testing.assert_array_equal(run_plan(plan, leaves, [gradient.node], chosen(machine()))[0], expected)


def test_the_gradient_of_an_image_is_a_convolution_too():
    """One sum over channels and taps, of what reaches the result, with zeros around it."""
    image, weight = held(2, 32, 28, 28), held(48, 32, 3, 3)
    image.requires_grad = True
    (image.conv2d(weight, padding=1) * held(2, 48, 28, 28)).sum().backward()
    padded, product = (merge_axes(step.kernel) for step in plan_of(image.grad).steps)
    assert accumulation(padded) is None
    assert [static_size(axis) for axis in reduced_axes(product)] == [48, 3, 3]
    assert products.choose(product, TARGET).packs


def test_a_convolution_reads_its_image_in_place():
    """No columns: the only other kernel writes zeros around the image."""
    plan = plan_of(held(2, 64, 56, 56).conv2d(held(64, 64, 3, 3), padding=1))
    pad, product = (merge_axes(step.kernel) for step in plan.steps)
    assert accumulation(pad) is None and plan.arena_size < 2 * 64 * 58 * 58 * 4 + 256
    schedule = products.choose(product, TARGET)
    lanes = next(loop.axis for loop in schedule.loops if loop.kind == LANES)
    assert lanes is product.axes[1] and schedule.packs


THREADED = [lambda: matrices(300, 100, 500, "right"), lambda: matrices(64, 1000, 800, "left"),
            lambda: whole(2, 16, 30, 30).conv2d(whole(32, 16, 3, 3))]


@pytest.mark.parametrize("graph", THREADED)
def test_how_many_threads_there_are_changes_no_bit(graph):
    root = (graph() * 0.1).node
    plan, leaves = planned(root)
    results = [run_plan(plan, leaves, [root], chosen(machine(threads))) for threads in (1, 2, 5, 16)]
    for (result,) in results[1:]:
        assert np.array_equal(results[0][0].view(np.uint32), result.view(np.uint32))


def test_the_panel_holds_what_is_computed_from_the_factor():
    """Halves are converted once, while they are copied."""
    plan = plan_of(held(512, 512, dtype=dtypes.float16) @ held(512, 512, dtype=dtypes.float16))
    schedule = products.choose(merge_axes(plan.steps[0].kernel), TARGET)
    assert schedule.packs[0].operand.op is ops.CAST and schedule.packs[0].operand.dtype is dtypes.float32


@pytest.mark.parametrize("rows", [8, 30, "symbolic"])
def test_quantised_weights_are_unpacked_once_for_all_rows(rows):
    """And the sums have the same bits as without a panel, whatever the number of rows and threads."""
    bytes_ = np.random.default_rng(1).integers(0, 256, (72 * 96 // 32, 20))
    bytes_[:, 1:4:2] &= 0x3b                                 # no scale is infinite or NaN
    weights = DEQUANTISE["Q4_1"](Tensor._wrap(leaf(bytes_, dtypes.uint8))).reshape(72, 96)
    x = whole(40, 96)[:Variable("n", 1, 40).bind(33)] if rows == "symbolic" else whole(rows, 96)
    root = (x @ weights.T + 1).node
    plan, leaves = planned(root)
    schedules = []

    def choose(kernel, threads):
        kernel = merge_axes(kernel)
        schedules.append(heuristic.choose(kernel, machine(threads)))
        return kernel, schedules[-1]

    def without_panel(kernel):
        kernel, schedule = choose(kernel, 1)
        return kernel, Schedule(schedule.loops)
    expected = run_plan(plan, leaves, [root], without_panel)[0]
    for threads in (1, 2):
        found = run_plan(plan, leaves, [root], lambda kernel, threads=threads: choose(kernel, threads))[0]
        assert found.tobytes() == expected.tobytes()
    assert all(len(schedule.packs) == 1 for schedule in schedules)
    compare([root], lambda kernel: choose(kernel, 2), rtol=1e-4)


@pytest.mark.parametrize("shape", [(1, 64, 64), (512, 1, 512), (4, 4, 4), (64, 64, 1)])
def test_small_and_thin_products_are_left_to_the_other_schedules(shape):
    m, n, k = shape
    for step in plan_of(held(m, k) @ held(k, n)).steps:
        assert products.choose(merge_axes(step.kernel), TARGET) is None


def test_threads_share_the_axis_that_has_enough_pieces():
    for (m, n), groups in {(64, 1024): 1024, (1024, 64): 1024, (2048, 2048): 2048}.items():
        plan = plan_of(held(m, 256) @ held(256, n))
        schedule = products.choose(merge_axes(plan.steps[0].kernel), TARGET)
        first = schedule.loops[0]
        assert first.kind == GROUP and static_size(first.axis) == groups
