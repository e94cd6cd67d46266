"""What the verifier lets pass at each level, and how it names what it does not."""
import pytest

from tests.numpy_alu import leaf
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const
from tiny.ir.verify import FLAT, KERNEL, TENSOR, VerifyError, verify, verify_instructions

F32, I32, INDEX = dtypes.float32, dtypes.int32, dtypes.index
X = leaf("x", F32)
TENSOR_LEAF = Node(ops.PARAM, F32, (), (0, (4, 3), "CPU"))
POINTER, ZERO = Node(ops.POINTER, F32, (), 0), const(0, INDEX)


def forged(op, dtype, src, arg=None, shape=()):
    """A node that the constructor would refuse, or give another type."""
    node = object.__new__(Node)
    for name, value in (("op", op), ("dtype", dtype), ("src", src), ("arg", arg), ("shape", shape),
                        ("device", None)):
        object.__setattr__(node, name, value)
    return node


def total(value, *ranges):
    return Node(ops.ACCUMULATE, None, (value, *ranges), ops.ADD)


def test_each_level_admits_its_rows():
    axis = Node(ops.RANGE, None, (const(4, INDEX),), 0)
    load = Node(ops.LOAD, None, (POINTER, axis))
    verify(Node(ops.REDUCE, None, (TENSOR_LEAF,), (ops.ADD, (1,))), TENSOR)
    verify(total(Node(ops.EXP, None, (load,)), axis), KERNEL)
    verify([X, Node(ops.SQRT, None, (X,))], FLAT)


@pytest.mark.parametrize("node, level, message", [
    (X, TENSOR, "tensor level: POINTER: is of the kernel level"),
    (TENSOR_LEAF, KERNEL, "kernel level: PARAM: is of the tensor level"),
    (Node(ops.EXP, None, (X,)), FLAT, "flat level: EXP: is of the shared level"),
    (total(X, Node(ops.RANGE, None, (const(4, INDEX),), 0)), FLAT, "flat level: RANGE"),
    (forged(ops.ADD, F32, (X,)), KERNEL, "ADD: 2 operands expected, 1 found"),
    (forged(ops.ADD, I32, (X, X)), KERNEL, "ADD: is int32, but its operands make it float32"),
    (forged(ops.ADD, F32, (X, const(1, I32))), KERNEL, "ADD: operands of different types: float32, int32"),
    (forged(ops.NEG, F32, (X,), None, (4,)), KERNEL, "NEG: has shape (4,), but its operands make it ()"),
    (forged(ops.CONST, I32, (), 2**40), KERNEL, "CONST: 1099511627776 is not in canonical form, 0"),
    (forged(ops.CONST, F32, (), 1), KERNEL, "CONST: 1 is not in canonical form, 1.0"),
    (forged(ops.WHERE, F32, (X, X, X)), KERNEL, "WHERE: the condition is float32, not bool"),
    (Node(ops.CAST, I32, (X,), 5), KERNEL, "CAST: the argument is None or True, not 5"),
    (Node(ops.BITCAST, dtypes.int8, (X,)), KERNEL, "BITCAST: 32 bits cannot become 8"),
    (Node(ops.LOAD, None, (POINTER, ZERO, X)), KERNEL, "LOAD: the gate is float32, not bool"),
    (Node(ops.LOAD, None, (POINTER, const(0, I32))), KERNEL, "LOAD: the index is int32"),
    (Node(ops.LOAD, None, (X, ZERO)), KERNEL, "LOAD: the first operand is a POINTER or LOCAL"),
    (Node(ops.STORE, None, (POINTER, ZERO, const(1, I32))), KERNEL,
     "STORE: the value is int32, the memory float32"),
    (total(X, ZERO), KERNEL, "ACCUMULATE: runs over RANGEs, not 0:index"),
    (Node(ops.RESHAPE, None, (TENSOR_LEAF,), (5, 3)), TENSOR, "RESHAPE: 12 elements cannot become 15"),
    (Node(ops.EXPAND, None, (TENSOR_LEAF,), (8, 3)), TENSOR, "EXPAND: (4, 3) does not grow to (8, 3)"),
    (forged(ops.PERMUTE, F32, (TENSOR_LEAF,), (0, 0), (4, 4)), TENSOR,
     "PERMUTE: (0, 0) is no order of the axes"),
    (Node(ops.SHRINK, None, (TENSOR_LEAF,), ((0, 5), (0, 3))), TENSOR,
     "SHRINK: 0 ... 5 is not within 0 ... 4"),
    (Node(ops.REDUCE, None, (TENSOR_LEAF,), (ops.SUB, (1,))), TENSOR, "REDUCE: SUB cannot reduce")])
def test_what_does_not_belong_is_named(node, level, message):
    with pytest.raises(VerifyError) as caught:
        verify(node, level)
    assert message in str(caught.value) and "; in " in str(caught.value)


def test_the_user_of_a_stray_node_is_named():
    stray = forged(ops.NEG, I32, (X,))
    with pytest.raises(VerifyError, match="NEG: is int32.*operand 1 of ADD"):
        verify(forged(ops.ADD, I32, (const(1, I32), stray)), KERNEL)


# -- the flat list ----------------------------------------------------------------------------------
GROUP = Node(ops.GROUP, None, (const(4, INDEX),), 0)
LOOP = Node(ops.LOOP, None, (const(8, INDEX),), 1)
LOAD = Node(ops.LOAD, None, (POINTER, LOOP))
STORE = Node(ops.STORE, None, (POINTER, GROUP, LOAD))


def end(opener):
    return Node(ops.END, None, (opener,))


def test_a_flat_list_nests():
    verify_instructions([GROUP, LOOP, LOAD, STORE, end(LOOP), end(GROUP)])


@pytest.mark.parametrize("instructions, message", [
    ([GROUP, LOOP, STORE, LOAD, end(LOOP), end(GROUP)], "STORE: its operand LOAD"),
    ([GROUP, LOOP, LOAD, end(LOOP), STORE, end(GROUP)], "STORE: its operand LOAD"),
    ([GROUP, LOOP, LOAD, STORE, end(GROUP), end(LOOP)], "END: closes GROUP"),
    ([GROUP, LOOP, LOAD, STORE, end(LOOP)], "GROUP: no END closes GROUP")])
def test_order_and_scopes_of_a_flat_list(instructions, message):
    with pytest.raises(VerifyError) as caught:
        verify_instructions(instructions)
    assert message in str(caught.value)


@pytest.mark.parametrize("op, dtype, target, message", [
    (ops.MAX, F32, None, "floats are compared and chosen"), (ops.ADD, dtypes.bfloat16, None,
                                                             "no arithmetic on bfloat16"),
    (ops.ADD, dtypes.bool, None, "no such operation on bool"), (ops.IDIV, I32, None, "division is C's"),
    (ops.CAST, F32, I32, "only with the promise that it fits")])
def test_a_flat_list_is_decomposed(op, dtype, target, message):
    x = leaf("x", dtype)
    with pytest.raises(VerifyError, match=message):
        verify_instructions([x, Node(op, target, (x,) * op.operands)])
