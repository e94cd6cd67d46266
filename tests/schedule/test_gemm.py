"""The verbs can say the blocked product of matrices of the textbooks, remainders and threads included."""
import numpy as np
import pytest

from tests.schedule.gemm import Blocks, blocked
from tests.schedule.running import compare, leaf
from tiny import Tensor
from tiny.ir.dtype import dtypes
from tiny.schedule.text import schedule_lines


def product(rows: int, columns: int, depth: int, dtype=dtypes.float32):
    """The graph of a product of whole numbers."""
    random = np.random.default_rng(rows)
    left = leaf(random.integers(-3, 4, (rows, depth)), dtype)
    right = leaf(random.integers(-3, 4, (depth, columns)), dtype)
    return (Tensor._wrap(left) @ Tensor._wrap(right)).node


def test_the_schedule_reads_like_the_textbook():
    chosen = []

    def choose(kernel):
        chosen.append(blocked(kernel, Blocks(120, 512, 256)))
        return kernel, chosen[-1]
    compare([product(6, 64, 5)], choose)
    assert schedule_lines(chosen[0]) == [
        "group  a1 by 512", "loop   a2 by 256",
        "pack   p2[a1 + (a2 * 64)] as [a1 by 64, a2 by 1, a1 by 16, a1 by 1]", "loop   a0 by 120",
        "pack   p1[(a0 * 5) + a2] as [a0 by 6, a2 by 1, a0 by 1]", "loop   a1 by 64", "loop   a0 by 6",
        "loop   a2 by 1", "unroll a0 by 1", "unroll a1 by 16", "lanes  a1 by 1"]


SHAPES = [(48, 256, 64), (50, 200, 70), (7, 131, 33), (2, 3, 2), (25, 129, 32), (6, 65, 100)]


@pytest.mark.parametrize("shape", SHAPES)
def test_blocked_products_are_right_whatever_is_left_over(shape):
    """Rows, columns and depth that fill blocks and tiles, and ones that leave a rest in each of them."""
    compare([product(*shape)], lambda kernel: (kernel, blocked(kernel, Blocks(24, 128, 32))))


@pytest.mark.parametrize("left,right", [(False, False), (True, False), (False, True)])
def test_operands_may_be_packed_or_not(left, right):
    blocks = Blocks(24, 128, 32)
    compare([product(50, 200, 70)], lambda kernel: (kernel, blocked(kernel, blocks, left, right)))


TILES = [Blocks(8, 32, 16, 2, 2, 4, 4), Blocks(9, 64, 30, 3, 1, 8, 5), Blocks(16, 96, 7, 4, 3, 32)]


@pytest.mark.parametrize("blocks", TILES)
def test_tiles_of_other_machines(blocks):
    """Fewer and more lanes, vectors and rows, and a sum that is written out."""
    compare([product(21, 100, 37)], lambda kernel: (kernel, blocked(kernel, blocks)))


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.int32])
def test_other_types(dtype):
    blocks = Blocks(12, 64, 16, 6, 4, 64 // dtype.itemsize)
    compare([product(31, 90, 40, dtype)], lambda kernel: (kernel, blocked(kernel, blocks)))
