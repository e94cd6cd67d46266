"""The tensors of a model by name: collected, loaded, and read from archives."""
import functools
import io
import tarfile
import types
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tiny.frontend.tensor import Tensor
from tiny.ir import ops
from tiny.ir.node import Node

_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)


def get_state_dict(obj, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
    """{name: tensor} of everything in an object: its attributes, lists, tuples and dicts, at any depth.

    Names are joined with dots: layers.0.weight. Warns of tensors that only a function of the object knows,
    such as layers in a lambda's closure: those are not found, and would be neither trained nor saved.
    """
    found: dict[str, Tensor] = {}
    functions: list[tuple[str, object]] = []
    for name, value in _walk(obj, prefix.strip("."), tensor_type):
        if isinstance(value, tensor_type):
            found[name] = value
        else:
            functions.append((name, value))
    known = {id(tensor) for tensor in found.values()}
    for name, function in functions:
        hidden = [inner for held in _held_by(function) for inner, value in _walk(held, "", tensor_type)
                  if isinstance(value, tensor_type) and id(value) not in known]
        if hidden:
            warnings.warn(f"get_state_dict: the function {name} holds {len(hidden)} tensors, left out "
                          f"here: {', '.join(hidden[:3])} ...; keep them in attributes",
                          stacklevel=2)
    return found


def _walk(obj, prefix: str, tensor_type: type) -> Iterator[tuple[str, object]]:
    """(name, tensor or function) in the order of attributes; each container is entered once, so cycles end.
    """
    stack, entered = [(prefix, obj)], set()
    while stack:
        name, value = stack.pop()
        if isinstance(value, tensor_type):
            yield name, value
        elif isinstance(value, _PLAIN) or id(value) in entered:
            continue
        elif _is_function(value):
            yield name, value
        else:
            entered.add(id(value))
            inside = [(f"{name}.{key}" if name else str(key), item) for key, item in _children(value)]
            stack.extend(reversed(inside))


def _children(value) -> list[tuple[object, object]]:
    if isinstance(value, dict):
        return list(value.items())
    if hasattr(value, "_asdict"):
        return list(value._asdict().items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    return list(getattr(value, "__dict__", {}).items())


def _is_function(value) -> bool:
    kinds = types.FunctionType | types.MethodType | functools.partial
    return isinstance(value, kinds) or hasattr(value, "__wrapped__")


def _held_by(function) -> list:
    """What a function keeps alive: its closure and defaults,
    the object of a method, the arguments of a partial.
    """
    if isinstance(function, types.MethodType):
        return [function.__self__]
    if hasattr(function, "__wrapped__"):                    # a decorator's object, such as TinyJit
        return _held_by(function.__wrapped__) if _is_function(function.__wrapped__) else []
    if isinstance(function, functools.partial):
        inner = _held_by(function.func) if _is_function(function.func) else [function.func]
        return [*inner, function.args, function.keywords]
    empty = types.CellType()                                # a name that has no value yet
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != empty]
    held = [*cells, function.__defaults__ or (), function.__kwdefaults__ or {}]
    return [part for value in held for part in (_held_by(value) if _is_function(value) else [value])]


def get_parameters(obj) -> list[Tensor]:
    """The tensors of an object, as `get_state_dict` finds them."""
    return list(get_state_dict(obj).values())


def load_state_dict(model, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True,
                    consume: bool = False, realize: bool = True) -> list[Tensor]:
    """Give the model's tensors the values in `state_dict`, in their own types and on their own devices.

    strict: every tensor of the model must be given (KeyError). verbose: warn of values that the model has no
    place for. consume: take values out of the dict as they are loaded. realize: compute them now; those that
    are in memory, or mapped from a file, stay as they are, and training gives the model memory of its own.
    Returns the loaded tensors. Raises ValueError for a wrong shape, naming the tensor.
    """
    own = get_state_dict(model)
    missing = [name for name in own if name not in state_dict]
    if strict and missing:
        raise KeyError(f"load_state_dict: {len(missing)} of the model's {len(own)} tensors are not given: "
                       f"{', '.join(missing[:5])}...; strict=False leaves them as they are")
    extra = [name for name in state_dict if name not in own]
    if verbose and extra:
        warnings.warn(f"load_state_dict: the model has no place for {len(extra)} of the values given: "
                      f"{', '.join(extra[:5])}...; verbose=False ends this warning", stacklevel=2)
    loaded = []
    for name, tensor in own.items():
        if name not in state_dict:
            continue
        value = state_dict.pop(name) if consume else state_dict[name]
        if tuple(value.shape) != tuple(tensor.shape):
            raise ValueError(f"load_state_dict: {name} has shape {tuple(value.shape)}, the model's has "
                             f"{tuple(tensor.shape)}; it is another model, or needs a reshape")
        tensor.replace(_of_its_own(value.to(tensor.device).cast(tensor.dtype)))
        loaded.append(tensor)
    computed = [tensor for tensor in loaded if tensor.node.op is not ops.DETACH]
    if realize and computed:
        Tensor.realize(*computed)
    return loaded


def _of_its_own(value: Tensor) -> Tensor:
    """The value under a node of its own where it is in memory,
    so that a write to one tensor leaves the other.
    """
    return Tensor._wrap(Node(ops.DETACH, None, (value.node,))) if value.node.op is ops.BUFFER else value


def _opened(source):
    """A binary file from a path or from a uint8 tensor with an archive's bytes."""
    return io.BytesIO(source.data()) if isinstance(source, Tensor) else Path(source).open("rb")


def zip_extract(source) -> dict[str, Tensor]:
    """{name: uint8 tensor} of the files in a zip archive, a path or a uint8 tensor."""
    with _opened(source) as file, zipfile.ZipFile(file) as archive:
        files = [entry for entry in archive.infolist() if not entry.is_dir()]
        return {entry.filename: Tensor(archive.read(entry)) for entry in files}


def tar_extract(source) -> dict[str, Tensor]:
    """{name: uint8 tensor} of the files in a tar archive, compressed or not: a path or a uint8 tensor."""
    with _opened(source) as file, tarfile.open(fileobj=file) as archive:
        return {entry.name: Tensor(archive.extractfile(entry).read()) for entry in archive if entry.isfile()}
