"""PyTorch's saved files, read without running any code that they name.

Two containers: the zip of torch 1.6 and later (torch/serialization.py, _save) and the older run of pickles
followed by the storages' bytes (_legacy_save). Both hold a pickle whose tensors refer to storages by name.
"""
import collections
import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable

import numpy as np

from tiny import realize
from tiny.frontend.files import FormatError, MappedFile
from tiny.frontend.hostdata import stored
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import prod

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LOCAL_HEADER = struct.Struct("<26xHH")                     # of a zip entry: lengths of name and extra field
_STORAGES = {"DoubleStorage": dtypes.float64, "FloatStorage": dtypes.float32, "HalfStorage": dtypes.float16,
             "BFloat16Storage": dtypes.bfloat16, "LongStorage": dtypes.int64, "IntStorage": dtypes.int32,
             "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8, "ByteStorage": dtypes.uint8,
             "BoolStorage": dtypes.bool, "UntypedStorage": dtypes.uint8}
_DTYPES = {name: getattr(dtypes, name) for name in
           ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
            "bfloat16", "float32", "float64", "half", "float", "double", "short", "int", "long")}
_DTYPES |= {"float8_e4m3fn": dtypes.fp8e4m3, "float8_e5m2": dtypes.fp8e5m2}


class Storage:
    """A run of elements in the file. `start` is its first byte;
    a legacy file tells it only after the pickle.
    """

    def __init__(self, dtype: DType, name: str, start: int | None, count: int):
        self.dtype, self.name, self.start, self.count = dtype, name, start, count


class Unknown:
    """Stands for an object of a class that a model file has no need of. Nothing of that class is run."""
    arguments: tuple = ()
    state = None

    def __init__(self, *arguments):
        self.arguments = arguments

    def __setstate__(self, state):
        self.state = state

    def __setitem__(self, key, value):
        self.__dict__.setdefault("items", {})[key] = value

    def append(self, value):
        """What the pickle of a list-like object calls."""
        self.__dict__.setdefault("items", []).append(value)

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__}, not loaded>"


class _TensorRecipe:
    """A tensor as the pickle describes it; made a Tensor when the storages' places are known."""

    def __init__(self, storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]):
        self.storage, self.offset, self.shape, self.strides = storage, offset, tuple(shape), tuple(strides)
        self.dtype = storage.dtype


def _rebuild_tensor(storage, offset, shape, strides, *unused) -> _TensorRecipe:
    return _TensorRecipe(storage, offset, shape, strides)


def _rebuild_typed(storage, offset, shape, strides, requires_grad, hooks, dtype, *unused) -> _TensorRecipe:
    recipe = _TensorRecipe(storage, offset, shape, strides)
    recipe.dtype = dtype                                    # the storage is untyped
    return recipe


def _rebuild_parameter(recipe, *unused) -> _TensorRecipe:
    return recipe


_KNOWN: dict[tuple[str, str], object] = {
    ("collections", "OrderedDict"): collections.OrderedDict, ("collections", "Counter"): dict,
    ("collections", "defaultdict"): lambda *unused: {},
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild_typed,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
    ("torch", "Size"): tuple, ("torch", "device"): lambda *place: ":".join(map(str, place)),
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),    # bytes in old pickles
    ("builtins", "set"): set, ("__builtin__", "set"): set, ("builtins", "bytearray"): bytearray,
}
_KNOWN |= {(place, name): dtype for name, dtype in _STORAGES.items() for place in ("torch", "torch.storage")}
_KNOWN |= {("torch", name): dtype for name, dtype in _DTYPES.items()}


class _Unpickler(pickle.Unpickler):
    """Knows the few names that tensors are made of; any other name gives an `Unknown`."""

    def __init__(self, file, find_storage: Callable[[tuple], Storage] | None = None):
        super().__init__(file, encoding="utf-8")
        self._find_storage = find_storage

    def find_class(self, module: str, name: str):
        found = _KNOWN.get((module, name))
        return found if found is not None else type(f"{module}.{name}", (Unknown,), {})

    def persistent_load(self, reference):
        if not isinstance(reference, tuple) or reference[0] != "storage" or self._find_storage is None:
            raise pickle.UnpicklingError(f"a reference {reference!r} that is no storage")
        return self._find_storage(reference[1:])


def torch_load(path: str | os.PathLike, device: str | None = None):
    """What a file of torch.save holds, tensors as Tensors: mostly a dict of them.

    No code of the file is run: objects of classes other than tensors and plain containers become `Unknown`.
    On the CPU contiguous tensors stay mapped from the file. Raises FormatError for anything that torch.save
    did not write.
    """
    file = MappedFile(path)
    try:
        recipe = _load_zip(file) if zipfile.is_zipfile(file.path) else _load_legacy(file)
    except FormatError:
        raise
    except (pickle.UnpicklingError, EOFError, KeyError, IndexError, AttributeError, TypeError, ValueError,
            zipfile.BadZipFile) as error:
        raise file.error(f"is no file of torch.save, or damaged ({type(error).__name__}: {error})") from error
    return _finished(recipe, file, realize.canonical_device(device))


def _load_zip(file: MappedFile):
    with zipfile.ZipFile(file.path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        index = next((name for name in entries if name.endswith("/data.pkl") or name == "data.pkl"), None)
        if index is None:
            raise file.error("is a zip without data.pkl; it is no file of torch.save")
        folder = index.removesuffix("data.pkl")
        order = archive.read(f"{folder}byteorder") if f"{folder}byteorder" in entries else b"little"
        if order != b"little":
            raise file.error(f"holds {order.decode()}-endian numbers; little-endian ones are read")
        pickled = archive.read(index)

    def find_storage(reference: tuple) -> Storage:
        dtype, key, _, count = reference
        entry = entries[f"{folder}data/{key}"]
        if entry.compress_type != zipfile.ZIP_STORED:
            raise file.error(f"storage {key} is compressed; save it with torch.save, which does not compress")
        local = file.slice(entry.header_offset, _LOCAL_HEADER.size, f"storage {key}")
        lengths = _LOCAL_HEADER.unpack(local)
        return Storage(dtype, key, entry.header_offset + _LOCAL_HEADER.size + sum(lengths), count)

    return _Unpickler(io.BytesIO(pickled), find_storage).load()


def _load_legacy(file: MappedFile):
    """Pickles of magic, version, machine, the object and the storages' keys;
    then each storage, its count first.
    """
    with file.path.open("rb") as stream:
        if _Unpickler(stream).load() != LEGACY_MAGIC:
            raise file.error("does not start as torch.save's files do; it is no such file")
        return _load_legacy_pickles(file, stream)


def _load_legacy_pickles(file: MappedFile, stream):
    version, machine = _Unpickler(stream).load(), _Unpickler(stream).load()
    if version != 1001 or not machine.get("little_endian", True):
        raise file.error(f"has protocol {version}, machine {machine}; read are protocol 1001, little-endian")
    storages: dict[str, Storage] = {}

    def find_storage(reference: tuple) -> Storage:
        dtype, key, _, count = reference[:4]
        return storages.setdefault(key, Storage(dtype, key, None, count))

    recipe = _Unpickler(stream, find_storage).load()
    for key in _Unpickler(stream).load():
        storage = storages.get(key)
        if storage is None:
            raise file.error(f"storage {key} belongs to no tensor; the file is damaged")
        count = int.from_bytes(stream.read(8), "little")
        storage.start, storage.count = stream.tell(), count
        stream.seek(count * storage.dtype.itemsize, os.SEEK_CUR)
    return recipe


def _finished(value, file: MappedFile, device: str):
    """The loaded object with every recipe in it, in containers at any depth, made a Tensor."""
    if isinstance(value, _TensorRecipe):
        return _tensor(value, file, device)
    if isinstance(value, dict):
        return {key: _finished(item, file, device) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_finished(item, file, device) for item in value)
    return value


def _tensor(recipe: _TensorRecipe, file: MappedFile, device: str) -> Tensor:
    storage, dtype, shape = recipe.storage, recipe.dtype, recipe.shape
    what = f"a tensor {shape} in storage {storage.name}"
    if storage.start is None:
        raise file.error(f"{what}: the storage is not in the file; it is cut short, fetch it again")
    start = storage.start + recipe.offset * dtype.itemsize
    row_major = tuple(prod(shape[k + 1:]) for k in range(len(shape)))
    if prod(shape) <= 1 or all(size == 1 or have == want for size, have, want in
                               zip(shape, recipe.strides, row_major, strict=True)):
        return Tensor._leaf(file.node(start, dtype, shape, device, what))
    reach = 1 + sum((size - 1) * stride for size, stride in zip(shape, recipe.strides, strict=True))
    flat = np.frombuffer(bytes(file.slice(start, reach * dtype.itemsize, what)), stored(dtype))
    steps = [stride * dtype.itemsize for stride in recipe.strides]
    array = np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, shape, steps))
    return Tensor._leaf(realize.buffer_from_host(array, dtype, shape, device))
