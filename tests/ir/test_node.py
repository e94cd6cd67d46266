"""Interning: equal nodes are one object, also when threads make and drop them at the same time."""
import sys
import threading

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const


def test_constants_are_told_apart_by_their_bits():
    assert const(0.0, dtypes.float32) is not const(-0.0, dtypes.float32)
    assert const(float("nan"), dtypes.float32) is const(float("nan"), dtypes.float32)
    assert const(1, dtypes.int32) is not const(1, dtypes.int64)


def test_threads_that_make_and_drop_the_same_nodes_share_them():
    """While one thread's node dies, another's of the same key must stay the one that everybody gets."""
    wrong = []
    start = threading.Barrier(4)

    def work():
        start.wait()
        for _ in range(4000):
            for value in range(3):
                node = Node(ops.NEG, None, (const(value + 0.5, dtypes.float64),))
                again = Node(ops.NEG, None, (const(value + 0.5, dtypes.float64),))
                if again is not node:
                    wrong.append(value)
                del node, again
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
