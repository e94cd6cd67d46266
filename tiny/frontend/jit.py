"""TinyJit: a function of tensors, captured at its second call, replayed as one submission from the third on.

Strict capture: what a replay could get wrong is part of what calls are told apart by, or is an error.
- Shapes, dtypes, devices, Python values and which arguments are the same tensor: each combination is captured
  by itself.
- Results are new tensors on every call; a result that is an argument, or a tensor the function keeps, stays
  that.
- Tensors written to inside, arguments or not, are written to on every replay.
- Sizes bound to a Variable may differ from call to call; results have the sizes of their call.
- Random numbers are drawn anew.
- Reading a value inside is a JitError.
- Checked mode (CHECK=1) reads indices to check them: nothing is captured then, every call is plain.
"""
import functools
from collections.abc import Callable

import tiny.realize as runtime
from tiny import config
from tiny.frontend.core import Core
from tiny.frontend.reach import tensors_reached
from tiny.ir import ops
from tiny.ir.integer import bindings, substitute, unbound
from tiny.ir.node import Node, toposort
from tiny.lazy import Lazy
from tiny.realize.capture import JitError, enabled, recording
from tiny.realize.storage import Storage, born, buffer_node

replaying = Lazy("tiny.realize.replay")
MOST_CAPTURES = 64      # combinations of shapes and Python values one function may have


class _Arguments:
    """The arguments of one call, flattened: tensors, variables, and everything else as a key.

    names: where each tensor stands, as `_walk` took it there: a number, a keyword, or a text.
    """

    def __init__(self, args: tuple, kwargs: dict):
        self.tensors: list[Core] = []
        self.names: list[int | str] = []
        self.variables: dict[Node, int] = {}
        self._others: list = []
        key = [self._walk(number, value) for number, value in enumerate(args)]
        if kwargs:
            key += [(name, self._walk(name, value)) for name, value in sorted(kwargs.items())]
        runtime.settle_all(self.tensors)
        self.storages = [tensor.node.arg for tensor in self.tensors]
        first: dict[int, int] = {}
        same = tuple(first.setdefault(id(one.buffer), number) for number, one in enumerate(self.storages))
        read_only = tuple(storage.buffer.readonly for storage in self.storages)
        settings = config.current()
        self.key = (tuple(key), same, read_only, settings.training, settings.noopt, settings.default_float)

    def _walk(self, name: int | str, value):
        if isinstance(value, Core):
            self.tensors.append(value)
            self.names.append(name)
            node = value.node
            shape = node.shape
            for size in shape:
                if isinstance(size, Node):
                    self._bind(name, size)
                    shape = tuple(unbound(size) for size in node.shape)
            return node.dtype, shape, node.device or runtime.default_device()
        if isinstance(value, Node):
            self._bind(name, value)
            return "size", unbound(value)
        if isinstance(value, (list, tuple)):
            return type(value).__name__, *(self._walk(f"{name}[{n}]", one) for n, one in enumerate(value))
        if isinstance(value, dict):
            return "dict", *((key, self._walk(f"{name}[{key!r}]", one)) for key, one in value.items())
        try:
            hash(value)
        except TypeError:
            raise JitError(
                f"argument {name} of type {type(value).__name__} can change without notice, so a replay "
                "could be stale; pass tensors, numbers, strings, Variables, or lists and dicts of those"
            ) from None
        self._others.append(value)
        if isinstance(value, float):
            return "float", value.hex()                     # tells -0.0 from 0.0, and finds nan again
        return type(value), value

    def reached_by(self, function: Callable) -> bool:
        """Whether the function can reach the memory of a tensor argument also without being given it."""
        own = {id(storage.buffer) for storage in self.storages}
        reached = (tensor.node for tensor in tensors_reached(function, self._others)) if own else ()
        return any(node.op is ops.BUFFER and id(node.arg.buffer) in own for node in reached)

    def _bind(self, name: int | str, size) -> None:
        for variable, value in bindings(size).items():
            if self.variables.setdefault(variable, value) != value:
                raise JitError(
                    f"argument {name}: Variable {variable.arg[0]} is bound to {value}, elsewhere in this "
                    f"call to {self.variables[variable]}"
                )


class TinyJit:
    """Decorator, see the module's text. `prune` is accepted for compatibility;
    nothing is computed in vain anyway.

    reset() forgets what was captured. Raises JitError when a function cannot be captured.
    """

    def __init__(self, fxn: Callable, prune: bool = False):
        self.fxn = fxn
        self.captured: dict[tuple, _Captured | None] = {}
        functools.update_wrapper(self, fxn)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self.__call__, instance)

    def __getstate__(self):
        return {"fxn": self.fxn}

    def __setstate__(self, state):
        self.__init__(state["fxn"])

    def reset(self) -> None:
        """Forget everything captured; the next two calls are plain and capturing again."""
        self.captured.clear()

    def __call__(self, *args, **kwargs):
        if not enabled() or runtime.capturing.active() is not None:
            return self.fxn(*args, **kwargs)
        if config.current().check:
            return self._plain(args, kwargs)
        arguments = _Arguments(args, kwargs)
        key = arguments.key
        if key not in self.captured:
            if len(self.captured) >= MOST_CAPTURES:
                raise JitError(self._too_many(key, len(args)))
            self.captured[key] = None
            return self._plain(args, kwargs)
        captured = self.captured[key]
        if captured is None or not captured.is_valid(arguments):
            if arguments.reached_by(self.fxn):              # which way it then reads cannot be told apart
                return self._plain(args, kwargs)
            self.captured[key], result = _capture(self.fxn, args, kwargs, arguments)
            return result
        return self._plain(args, kwargs) if captured.overlaps(arguments) else captured.replay(arguments)

    def _plain(self, args: tuple, kwargs: dict):
        result = self.fxn(*args, **kwargs)
        runtime.settle_pending(_tensors_in(result))
        return result

    def _too_many(self, key: tuple, positional: int) -> str:
        last = list(self.captured)[-1]
        pairs = enumerate(zip(key[0], last[0], strict=False))
        differing = [(number, new) for number, (new, old) in pairs if new != old]
        where = "its arguments"
        if differing:
            number, (name, *_) = differing[0]
            where = f"argument {name if number >= positional else number}"
        return (
            f"{getattr(self.fxn, '__name__', 'the function')} was called with {MOST_CAPTURES} different "
            f"combinations of shapes and Python values, last different in {where}; pass a number that "
            "changes as a Tensor, a size as a bound Variable"
        )


def _tensors_in(value) -> list[Core]:
    if isinstance(value, Core):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [tensor for one in value for tensor in _tensors_in(one)] if isinstance(value, (list, tuple)) else []
    )


class _Result:
    """A tensor's place in the result. kind: argument, fresh or fixed;
    number: which one; tensor: the fixed one itself.
    """

    def __init__(self, kind: str, number: int, node: Node, tensor: Core | None):
        self.kind, self.number, self.node, self.tensor = kind, number, node, tensor


class _Captured:
    """One captured combination: how to replay it and how to build its results.

    result: what the function returned, tensors replaced by _Result; written: (argument, its new value as a
    _Result).
    """

    def __init__(self, replay, closure: runtime.Closure, result, written: list[tuple[int, _Result]],
                 kind: type):
        self._replay, self._closure, self._kind = replay, closure, kind
        self._result, self._written = result, written
        self._checked, self._last_written = 0, frozenset()

    def is_valid(self, arguments: _Arguments) -> bool:
        """Whether a replay gives what the function would, once what waits has been computed."""
        replay = self._replay
        written, since = replay.fixed_written, self._checked
        if replay.written_inputs:
            own = {id(arguments.storages[number].buffer) for number in replay.written_inputs}
            if not own <= self._last_written:
                since = 0
            self._last_written, written = own, written | own
        self._checked = runtime.settle_waiting(written, replay.fixed, since)
        return self._closure.unchanged()

    def overlaps(self, arguments: _Arguments) -> bool:
        """Whether an argument's memory is also another tensor's, and one of the two is written."""
        replay = self._replay
        if any(id(storage.buffer) in replay.fixed_written for storage in arguments.storages):
            return True
        for number in (*replay.written_inputs, *(number for number, _ in self._written)):
            tensor = arguments.tensors[number]
            if _root(tensor) is not None or id(arguments.storages[number].buffer) in replay.fixed:
                return True
            if runtime.is_shared(tensor):
                return True
        return False

    def replay(self, arguments: _Arguments):
        """Run again with other arguments."""
        fresh = self._replay([storage.buffer for storage in arguments.storages], arguments.variables)
        for number in self._replay.written_inputs:
            old = arguments.storages[number]
            old.lost = True
            new = Storage(old.device, old.dtype, old.shape, old.buffer)
            arguments.tensors[number].settle(buffer_node(new))
        nodes: dict[int, Node] = {}
        for number, new in self._written:
            arguments.tensors[number].settle(self._node(new, arguments, fresh, nodes))
        return self._rebuild(self._result, arguments, fresh, nodes)

    @staticmethod
    def _node(result: _Result, arguments: _Arguments, fresh: list, nodes: dict[int, Node]) -> Node:
        if result.kind == "argument":
            return arguments.tensors[result.number].node
        if result.kind == "fixed":
            return result.node
        if result.number not in nodes:
            storage = result.node.arg
            shape = tuple(_bound_anew(size, arguments.variables) for size in storage.shape)
            nodes[result.number] = buffer_node(
                Storage(storage.device, storage.dtype, shape, fresh[result.number])
            )
        return nodes[result.number]

    def _rebuild(self, value, *state):
        if isinstance(value, _Result):
            return value.tensor if value.tensor is not None else self._kind._wrap(self._node(value, *state))
        return _mapped(value, lambda one: self._rebuild(one, *state))


def _root(tensor: Core) -> Core | None:
    """The tensor that this one is a view of, as long as there is one."""
    return tensor._base and tensor._base[0]()


def _mapped(value, function: Callable):
    """A list, tuple or dict with its items replaced; anything else as it is."""
    if isinstance(value, dict):
        return {key: function(one) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(function, value))
    return type(value)(map(function, value)) if isinstance(value, (list, tuple)) else value


def _bound_anew(size, values: dict[Node, int]):
    if not isinstance(size, Node):
        return size
    binds = {
        node: node.src[0].bind(values.get(node.src[0], node.arg))
        for node in toposort(size)
        if node.op is ops.BIND
    }
    return substitute(size, binds)


def _capture(fxn: Callable, args: tuple, kwargs: dict, arguments: _Arguments) -> tuple[_Captured, object]:
    """Call the function while recording; the captured function and this call's result."""
    runtime.settle_pending()  # what is pending from outside is no part of the function
    own = arguments.tensors
    own_ids = {id(tensor) for tensor in own}
    with recording(arguments.storages) as capture:
        pairs = zip(arguments.names, own, strict=True)
        capture.viewed = {id(_root(tensor)): f"argument {name}" for name, tensor in pairs}
        capture.viewed.pop(id(None), None)
        result = fxn(*args, **kwargs)
        runtime.settle_pending(_tensors_in(result))
        runtime.return_home(capture, own_ids)
    made = {id(storage) for run in capture.runs for storage in run.outputs}
    inputs = {id(storage.buffer): number for number, storage in reversed(list(enumerate(arguments.storages)))}
    fresh: dict[int, Storage] = {}

    def describe(tensor: Core) -> _Result:
        storage = tensor.node.arg
        if id(storage.buffer) in inputs:
            return _Result("argument", inputs[id(storage.buffer)], tensor.node, None)
        if born(tensor) < capture.began and id(tensor) not in own_ids:
            return _Result("fixed", 0, tensor.node, tensor)
        if id(storage) in made:
            number = list(fresh).index(id(storage)) if id(storage) in fresh else len(fresh)
            fresh[id(storage)] = storage
            return _Result("fresh", number, tensor.node, None)
        return _Result("fixed", 0, tensor.node, None)

    def freeze(value):
        return describe(value) if isinstance(value, Core) else _mapped(value, freeze)

    frozen = freeze(result)
    written = [
        (number, describe(tensor))
        for number, tensor in enumerate(own)
        if tensor.node.arg.buffer is not arguments.storages[number].buffer
    ]
    kind = type(own[0]) if own else next((type(tensor) for tensor in _tensors_in(result)), Core)
    replay = replaying.Replay(capture, list(fresh.values()))
    runtime.forget(replay.fixed_written)
    closure = runtime.Closure(capture, own_ids, replay.fixed_written)
    return _Captured(replay, closure, frozen, written, kind), result
