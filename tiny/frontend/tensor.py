"""The Tensor: a lazy value that the user holds.

How the class is put together. `Tensor` inherits one mixin for each subject (creation, elementwise, movement,
...) and `Core`, which all of them stand on: construction, the node, views, writes, reading back. A mixin may
import `core` but never this file. In its methods it makes results with

    self._wrap(node)         a tensor of that node, the result of an operation (a classmethod: cls._wrap too)
    self._leaf(node)         a tensor that starts something: parameters, random numbers. A floating leaf is
                             one that `backward()` finds (in `core.leaves`) and gives a gradient
    self._constant_leaf(n)   a leaf made of constants, with an identity of its own
    self._view(row, arg)     self moved by one movement row; writes to it reach the tensor it is a view of
    self._lift(value)        a tensor from what a user may pass where a tensor is meant
    self._pair(other, name)  the nodes, of one type and shape, of self and another operand (elementwise.py)

and reads `self.node`, the lazy value as an immutable node. A classmethod that makes tensors uses `cls` the
same way. To add a subject, write its mixin in a file of its own and name it in the list of bases below.
"""
from tiny.frontend.activation import Activation
from tiny.frontend.attention import Attention
from tiny.frontend.autograd import Autograd
from tiny.frontend.convolution import Convolution
from tiny.frontend.core import Core
from tiny.frontend.creation import Creation
from tiny.frontend.elementwise import Elementwise
from tiny.frontend.factorization import Factorization
from tiny.frontend.functions import Functions
from tiny.frontend.gathering import Gathering
from tiny.frontend.indexing import Indexing
from tiny.frontend.linalg import Linalg
from tiny.frontend.losses import Losses
from tiny.frontend.movement import Movement
from tiny.frontend.normalization import Normalization
from tiny.frontend.ordering import Ordering
from tiny.frontend.pooling import Pooling
from tiny.frontend.random import Random
from tiny.frontend.rearrange import Rearrange
from tiny.frontend.reduce import Reduce
from tiny.frontend.scan import Scan
from tiny.frontend.training import Training


class Tensor(
        Creation, Random, Elementwise, Functions, Activation, Movement, Rearrange, Indexing, Gathering,
        Reduce, Scan, Linalg, Factorization, Convolution, Pooling, Ordering, Normalization, Attention, Losses,
        Autograd, Training, Core):
    """A lazy array: operations build a graph; .numpy(), .tolist(), .item() and .realize() compute it."""
