"""CHECK=1 looks at every graph on its way down; without it a wrong graph is taken as it is."""
import numpy as np
import pytest

from tiny import Context, Tensor
from tiny.ir import ops
from tiny.ir.node import Node
from tiny.ir.verify import VerifyError
from tiny.realize import realize


def test_a_graph_that_no_operation_makes_is_refused():
    leaf = Tensor(np.arange(8, dtype=np.float32)).realize().node
    wrong = Node(ops.RESHAPE, None, (Node(ops.NEG, None, (leaf,)),), (5,))
    with Context(CHECK=1), pytest.raises(VerifyError, match="RESHAPE: 8 elements cannot become 5"):
        realize([wrong])


def test_every_stage_of_a_computation_passes():
    values = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    x = Tensor(values)
    with Context(CHECK=1):
        result = (x.pad(((1, 1), (0, 0))) @ x.T).exp().sum(0).numpy()
    assert np.allclose(result, np.exp(np.pad(values, ((1, 1), (0, 0))) @ values.T).sum(0), rtol=1e-5)
