"""What every part of Tensor stands on: construction, the node, views, writes, reading back.

Writes. A tensor's value changes by taking another node, never by changing one: what was computed from it
before keeps the value it saw. A view remembers the tensor it is of (weakly) and the movement to it. Writing
to the view writes to that tensor; reading it after a write to either sees the change, as in numpy and torch.
"""
import itertools
import math
import mmap
import pathlib
import weakref

import numpy as np

import tiny.realize as runtime
from tiny.frontend import hints, history, hostdata
from tiny.frontend.shaping import broadcast, reshape
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import Integer, bounds, equal, evaluate, prod
from tiny.ir.node import Node, const

FEW_VIEWS = 16                                              # of a root, before dead ones are sorted out
_new = object.__new__
_serial = itertools.count(1)


class Core:
    """What every mixin stands on; see the module's text."""
    # what every tensor starts with; an instance holds only what differs
    _base: tuple | None = None      # of a view: (weak reference to root, movement chain, root's node then)
    _root = None                    # of a view: its root, once that was written to
    _views: list | None = None      # of a root: weak references to views made since the last write
    _requires_grad: bool | None = None
    grad = None
    __array_ufunc__ = None                                  # numpy_array + tensor comes to Tensor.__radd__

    def __init__(self, data=None, device: str | None = None, dtype=None, requires_grad: bool | None = None,
                 copy: bool = True):
        """A tensor from a number, a nested list, bytes, a numpy array, a file's path or another tensor.

        dtype: what the data becomes; else numpy arrays keep theirs, bytes and files are uint8, Python numbers
        are bool, int32 (int64 where they need it) or float32. copy=False uses the memory of a numpy array or
        bytearray in place where the device can (the CPU): it must then not change while the tensor lives.
        """
        dtype = None if dtype is None else hostdata.to_dtype(dtype)
        self._node = _node_from(self, data, device, dtype, copy)
        self._requires_grad = requires_grad
        runtime.hold(self)
        if self._node.dtype.is_float:
            leaves[id(self)] = self

    def __getattr__(self, name: str):
        raise hints.missing("'Tensor' object", name, hints.TENSOR, self)

    @classmethod
    def _wrap(cls, node: Node):
        """The tensor of a node, for results of operations."""
        tensor = _new(cls)
        tensor._node = node
        runtime.hold(tensor)
        return tensor

    @classmethod
    def _leaf(cls, node: Node, requires_grad: bool | None = None):
        """A tensor that starts something; see the module's text."""
        tensor = _new(cls)
        tensor._node = node
        tensor._requires_grad = requires_grad
        runtime.hold(tensor)
        if node.dtype.is_float:
            leaves[id(tensor)] = tensor
        return tensor

    @classmethod
    def _constant_leaf(cls, node: Node, device: str | None = None, requires_grad: bool | None = None):
        """A leaf that holds no data. Each has a node of its own, so that gradients, and captured functions,
        tell equal ones apart.
        """
        if device is not None and runtime.canonical_device(device) != runtime.default_device():
            node = Node(ops.COPY, None, (node,), runtime.canonical_device(device))
        return cls._leaf(Node(ops.DETACH, None, (node,), next(_serial)), requires_grad)

    def _lift(self, value):
        """A tensor from whatever a user passes where a tensor is meant; data goes where this tensor is."""
        if isinstance(value, Core):
            return value
        return type(self)(value, None if isinstance(value, bool | int | float) else self.node.device)

    # -- the node and views of it ---------------------------------------------------------------------------
    @property
    def node(self) -> Node:
        """The lazy value."""
        base = self._base
        if base is not None:
            root = base[0]()
            if root is not None and root._node is not base[2]:
                self._follow(root)
        return self._node

    def lazy_node(self) -> Node | None:
        """The value if it has not been computed and would be lost by a write; a view reads its root anew."""
        node = self._node
        follows = self._base is not None and self._base[0]() is not None
        return None if follows or node.op is ops.BUFFER or node.op is ops.CONST else node

    def settle(self, node: Node) -> None:
        """Take the computed value. Where gradients may need it, the way to what it came from stays open."""
        lazy, self._node = self._node, node
        root = self._base and self._base[0]()
        if root is not None:                                # whose own waiting write was made meanwhile
            self._base = (*self._base[:2], root._node)
        if lazy is not node and node.dtype.is_float:
            if lazy.op is ops.ASSIGN:
                if self._requires_grad is None and history.depends_on(lazy, _tracked()):
                    history.cut_off(node)
            elif id(self) in leaves or history.depends_on(lazy, _tracked()):
                history.remember(lazy, node)

    @node.setter
    def node(self, node: Node) -> None:
        self._node = node

    def _follow(self, root) -> None:
        """Take the value anew from the root, which was written to since."""
        reference, chain, _ = self._base
        node = root._node
        self._base = (reference, chain, node)
        for row, arg in chain:
            node = Node(row, None, (node,), arg)
        self._node = node

    def _view(self, row: ops.Op, arg):
        """This tensor moved by one row; what is written to the result reaches this tensor."""
        node = self.node
        tensor = _new(self.__class__)
        tensor._node = Node(row, None, (node,), arg)
        runtime.hold(tensor)
        base = self._base
        root = base and base[0]()
        if root is None:
            self._base = None                               # nobody can write to what it was a view of
            tensor._base = (weakref.ref(self), ((row, arg),), node)
        else:
            tensor._base = (base[0], (*base[1], (row, arg)), base[2])
        (self if root is None else root)._remember_view(tensor)
        return tensor

    def _remember_view(self, view) -> None:
        views = self._views
        if views is None:
            self._views = views = []
        elif len(views) >= FEW_VIEWS and len(views) & (len(views) - 1) == 0:
            views[:] = [reference for reference in views if reference() is not None]
        views.append(weakref.ref(view))

    def _keep_for_views(self) -> None:
        """Before a write: views that are alive now show it also when this tensor is gone, so they keep it."""
        for reference in self._views or ():
            view = reference()
            if view is not None:
                view._root = self
        self._views = None

    @property
    def shape(self) -> tuple:
        """Sizes of the axes: ints, or symbolic integers."""
        return self._node.shape if self._base is None else self.node.shape

    @property
    def max_shape(self) -> tuple[int, ...]:
        """The shape with every symbolic size at its largest."""
        return tuple(bounds(size)[1] for size in self.shape)

    @property
    def dtype(self) -> DType:
        return self._node.dtype

    @property
    def device(self) -> str:
        return self.node.device or runtime.default_device()

    @property
    def ndim(self) -> int:
        return len(self._node.shape)

    @property
    def requires_grad(self) -> bool | None:
        """None until somebody sets it. Every floating leaf gets a gradient unless it is False."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool | None) -> None:
        if value and not self.dtype.is_float:
            raise TypeError(f"requires_grad: {self.dtype.name} tensors have no gradient; cast to float first")
        self._requires_grad = value
        if value:
            leaves[id(self)] = self

    def requires_grad_(self, requires_grad: bool = True):
        """Set `requires_grad` and return the tensor."""
        self.requires_grad = requires_grad
        return self

    is_param = property(lambda self: bool(self._requires_grad))

    # -- writing --------------------------------------------------------------------------------------------
    def assign(self, value):
        """Write `value`, which must broadcast to this shape and takes this dtype. Returns the tensor.

        Through a view the write reaches the tensor it is a view of. What was computed before keeps the old
        value.
        """
        written = self._value_to_write(value)
        if written is not self.node and 0 not in written.shape:
            with runtime.lock:
                self._write(written)
        return self

    def _write(self, written: Node) -> None:
        base = self._base
        root = base and base[0]()
        runtime.before_write(self if root is None else root)
        (self if root is None else root)._keep_for_views()
        if root is None:
            self._base = self._root = None
            self._node = _written(self._node, written)
            runtime.hold(self)
            return
        if any(row is ops.EXPAND for row, _ in base[1]):
            raise ValueError(f"assign: the tensor of shape {self.shape} is an expanded view: one element "
                             "stands in several places; write to a .clone() of it")
        root._node = Node(ops.ASSIGN, None, (root._node, written), base[1])
        runtime.hold(root)
        self._follow(root)

    def _value_to_write(self, value) -> Node:
        node = value.node if isinstance(value, Core) else None
        if node is None:
            node = const(value, self.dtype) if type(value) in (bool, int, float) else self._lift(value).node
        if node.dtype is not self.dtype:
            node = Node(ops.CAST, self.dtype, (node,))
        if node.shape != self.shape:
            while len(node.shape) > len(self.shape) and node.shape[0] == 1:
                node = reshape(node, node.shape[1:])
            pairs = zip(node.shape[::-1], self.shape[::-1], strict=False)
            if len(node.shape) > len(self.shape) or any(a != 1 and not equal(a, b) for a, b in pairs):
                raise ValueError(f"assign: a value of shape {node.shape} does not go into a tensor of shape "
                                 f"{self.shape}; reshape or expand it first")
            node = broadcast(node, self.shape)
        return node

    def replace(self, other):
        """Take the other tensor's value in place of this one's; shape, dtype and device must be the same."""
        other = self._lift(other)
        if (other.shape, other.dtype, other.device) != (self.shape, self.dtype, self.device):
            raise ValueError(f"replace: {other!r} does not fit in the place of {self!r}; use assign")
        with runtime.lock:
            runtime.before_write(self)
            self._keep_for_views()
            self._node, self._base, self._root = other.node, None, None
            runtime.hold(self)
        return self

    # -- computing and reading back -------------------------------------------------------------------------
    def realize(self, *others):
        """Compute this tensor and the others now, together. Returns this tensor.

        Tensor.realize(a, b) and a.realize(b) are the same.
        """
        runtime.settle_all((self, *others))
        return self

    def _read(self) -> tuple[np.ndarray, DType]:
        """The stored form of the value, the device's own memory where it is the host's, and its type."""
        with runtime.lock:
            node = runtime.realize([self.node])[0]
            self.settle(node)
        shape = tuple(evaluate(size) for size in node.shape)
        flat = np.frombuffer(runtime.read(node), hostdata.stored(node.dtype), count=math.prod(shape))
        return flat.reshape(shape), node.dtype

    def numpy(self, copy: bool = True) -> np.ndarray:
        """The value as a numpy array, bfloat16 and fp8 as float32.

        copy=False gives a read-only view of the tensor's own memory where it is the host's: it changes when
        the tensor is written to.
        """
        stored, dtype = self._read()
        array = hostdata.decode(stored, dtype)
        return array.copy() if copy and array is stored else array

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self.numpy(), dtype)

    def data(self) -> memoryview:
        """The value as a memoryview of its shape; bfloat16 and fp8 as float32."""
        return memoryview(self.numpy())

    def tolist(self):
        """The value as nested lists of Python numbers, or one number."""
        return self.numpy(copy=False).tolist()

    def item(self) -> int | float | bool:
        """The only element as a Python number. ValueError where there are more or none."""
        array = self.numpy(copy=False)
        if array.size != 1:
            raise ValueError(f"item: the tensor of shape {self.shape} has {array.size} elements, not one; "
                             "index it first, or use tolist()")
        return array.item()

    def __repr__(self) -> str:
        state = "realized" if runtime.realized(self.node) is not None else "lazy"
        gradient = "" if self.grad is None else ", with grad"
        return f"<Tensor {self.shape} {self.dtype.name} on {self.device}, {state}{gradient}>"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def __reduce__(self):
        """Copies and pickles are tensors of their own that hold the value, not how it came about."""
        return type(self), (self.numpy(), self.device, self.dtype.name, self._requires_grad)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a tensor of shape () has no length")
        return evaluate(self.shape[0])

    def __bool__(self) -> bool:
        if math.prod(evaluate(size) for size in self.shape) != 1:
            raise TypeError(f"bool: a tensor of shape {self.shape} is not true or false as a whole; "
                            "use .any() or .all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.is_float or self.dtype is dtypes.bool:
            raise TypeError(f"index: a {self.dtype.name} tensor is no integer")
        return self.item()

    def __iter__(self):
        if not self.shape:
            raise TypeError("iter: a tensor of shape () has no elements to go through")
        return (self[i] for i in range(len(self)))

    __hash__ = object.__hash__

    # -- copies and places ----------------------------------------------------------------------------------
    def detach(self):
        """The same value as a start of its own: no gradient passes to this tensor."""
        return self._leaf(Node(ops.DETACH, None, (self.node,)), requires_grad=False)

    def clone(self):
        """A copy with memory of its own; gradients pass."""
        return self._wrap(Node(ops.CONTIGUOUS, None, (self.node,), next(_serial)))

    def contiguous(self):
        """The value held in memory in row-major order."""
        if self.node.op in (ops.CONTIGUOUS, ops.BUFFER):
            return self
        return self._wrap(Node(ops.CONTIGUOUS, None, (self.node,)))

    def to(self, device: str | DType | None):
        """The value on another device; this tensor where it is there already. An element type casts to it."""
        if isinstance(device, DType):
            return self.cast(device)
        target = runtime.canonical_device(device)
        return self if target == self.device else self._wrap(Node(ops.COPY, None, (self.node,), target))

    def to_(self, device: str | None):
        """Move this tensor to another device."""
        self._node, self._base = self.to(device).node, None
        runtime.hold(self)
        return self

    def numel(self) -> Integer:
        """How many elements."""
        return prod(self.shape)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> Integer:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def size(self, dim: int | None = None):
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[dim]

    def is_floating_point(self) -> bool:
        return self.dtype.is_float

    def sequential(self, layers):
        """The tensor passed through the layers, callables, one after another."""
        result = self
        for layer in layers:
            result = layer(result)
        return result


# every floating leaf alive, by id: what backward() looks through. Weak, so that it keeps nothing alive
leaves: "weakref.WeakValueDictionary[int, Core]" = weakref.WeakValueDictionary()


def leaves_alive() -> list[Core]:
    """All of `leaves` now. Its `values()` would fail where another thread makes a leaf meanwhile."""
    return [leaf for reference in leaves.valuerefs() if (leaf := reference()) is not None]


def _tracked() -> list[Node]:
    """The nodes of all leaves with requires_grad=True."""
    return [history.origin(leaf._node) or leaf._node for leaf in leaves_alive() if leaf._requires_grad]


# -- nodes from data ----------------------------------------------------------------------------------------
def _node_from(tensor: Core, data, device: str | None, dtype: DType | None, copy: bool) -> Node:
    """The node for the constructor's arguments."""
    if isinstance(data, Core):
        node = data.to(device).node if device is not None else data.node
        return _cast(node, dtype)
    if isinstance(data, bool | int | float):
        node = const(data, dtype or dtypes.from_py(data))
        return tensor._constant_leaf(node, device)._node
    if isinstance(data, Node):                              # a symbolic integer
        return Node(ops.CAST, dtype or dtypes.default_int, (data,))
    if isinstance(data, list | tuple) and any(isinstance(item, Core) for item in data):
        first = next(item for item in data if isinstance(item, Core))
        return _cast(type(tensor).stack(*map(first._lift, data)).node, dtype)
    array, dtype, fresh = _stored_array(data, dtype)
    target = runtime.canonical_device(device)
    return runtime.buffer_from_host(array, dtype, array.shape, target, copy=copy and not fresh)


def _cast(node: Node, dtype: DType | None) -> Node:
    return node if dtype is None or node.dtype is dtype else Node(ops.CAST, dtype, (node,))


def _stored_array(data, dtype: DType | None) -> tuple[np.ndarray, DType, bool]:
    """(the stored form of the data, its type, whether that memory is ours alone)"""
    if data is None:
        dtype = dtype or dtypes.default_float
        return np.zeros(0, hostdata.stored(dtype)), dtype, True
    if isinstance(data, list | tuple):
        return *hostdata.from_sequence(data, dtype), True
    if isinstance(data, pathlib.Path):
        return *hostdata.from_bytes(_mapped(data), dtype), True
    if isinstance(data, bytes | bytearray | memoryview):
        array, dtype = hostdata.from_bytes(data, dtype)
        return (array if array.flags.writeable else array.copy()), dtype, not array.flags.writeable
    if not hasattr(data, "__array__"):
        raise TypeError(f"Tensor: a {type(data).__name__} is no number, list, bytes, array, path or tensor")
    source = np.asarray(data)
    array, dtype = hostdata.from_numpy(source, dtype)
    if not array.flags.writeable:
        array = array.copy()
    return array, dtype, not np.may_share_memory(array, source)


def _mapped(path: pathlib.Path) -> memoryview | bytearray:
    """A file's bytes, mapped: read when used; writes stay private."""
    with open(path, "rb") as file:
        if not path.stat().st_size:
            return bytearray()
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))


def _written(base: Node, value: Node) -> Node:
    """The node after all of `base` is replaced: into its memory where it has some, else just the value."""
    holder = base
    while holder.op is ops.ASSIGN:
        holder = holder.src[0]
    return Node(ops.ASSIGN, None, (base, value), ()) if holder.op in (ops.BUFFER, ops.PARAM) else value
