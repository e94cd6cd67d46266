"""Threefry: random bits as a function of a counter and a key.

J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; constants as
in Random123.
"""
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node
from tiny.render.formula import Formula

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA
ROUNDS = 20


def threefry(node: Node) -> Node:
    """THREEFRY(counter, key), both uint64: two words of 32 bits, mixed in 20 rounds, low word first."""
    counter, key = (_words(Formula(s)) for s in node.src)
    keys = (*key, key[0] ^ key[1] ^ PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for i in range(ROUNDS):
        count = ROTATIONS[i % 8]
        x = x + y
        y = ((y << count) | (y >> (32 - count))) ^ x
        if i % 4 == 3:
            step = i // 4 + 1
            x, y = x + keys[step % 3], y + keys[(step + 1) % 3] + step
    return (x.cast(dtypes.uint64) | (y.cast(dtypes.uint64) << 32)).node


def _words(value: Formula) -> tuple[Formula, Formula]:
    return value.cast(dtypes.uint32), (value >> 32).cast(dtypes.uint32)
