"""Safetensors files: an 8-byte header length, a JSON header, then the tensors' bytes.

Format: github.com/huggingface/safetensors, README, "Format". Loading maps the file and reads nothing but its
header.
"""
import json
import os
from pathlib import Path

from tiny import realize
from tiny.frontend.files import FormatError, MappedFile
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes
from tiny.ir.integer import prod

DTYPES = {"BOOL": dtypes.bool, "U8": dtypes.uint8, "I8": dtypes.int8, "U16": dtypes.uint16,
          "I16": dtypes.int16, "U32": dtypes.uint32, "I32": dtypes.int32, "U64": dtypes.uint64,
          "I64": dtypes.int64, "F8_E4M3": dtypes.fp8e4m3, "F8_E5M2": dtypes.fp8e5m2, "F16": dtypes.float16,
          "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LARGEST_HEADER = 100_000_000                               # the format's own limit
_ALIGNMENT = 8                                              # of the first tensor's byte


def read_header(file: MappedFile) -> tuple[int, dict]:
    """(byte at which the tensors start, the header as JSON has it). FormatError where it is none."""
    length = int.from_bytes(file.slice(0, 8, "the length of the header"), "little")
    if length > min(_LARGEST_HEADER, file.size - 8):
        raise file.error(f"states a header of {length} bytes, the file has {file.size}; it is cut short, or "
                         "no safetensors file")
    try:
        header = json.loads(bytes(file.slice(8, length, "the header")))
    except ValueError as error:
        raise file.error(f"the header is no JSON ({error}); it is damaged, or no safetensors file") from None
    if not isinstance(header, dict):
        raise file.error("the header is no JSON object; it is no safetensors file")
    return 8 + length, header


def safe_load_metadata(path: str | os.PathLike) -> tuple[Tensor, int, dict]:
    """(the whole file as a uint8 tensor, byte at which the tensors start,
    the header with "__metadata__" if any)
    """
    file = MappedFile(path)
    start, header = read_header(file)
    whole = file.node(0, dtypes.uint8, (file.size,), realize.canonical_device(None), "the file")
    return Tensor._wrap(whole), start, header


def safe_load(path: str | os.PathLike, device: str | None = None) -> dict[str, Tensor]:
    """{name: Tensor} of a safetensors file, of a model in several (its .index.json),
    or of a folder with either.

    On the CPU nothing is copied: the file stays mapped while a tensor of it lives, and does not change when
    a tensor is written to. Raises FormatError for a damaged file, naming the tensor.
    """
    place = realize.canonical_device(device)
    files = [MappedFile(file) for file in _files(Path(path))]
    return {name: tensor for file in files for name, tensor in _tensors(file, place)}


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        indices = sorted(path.glob("*.safetensors.index.json"))
        found = sorted(path.glob("*.safetensors"))
        if not indices and not found:
            raise FileNotFoundError(f"{path}: no .safetensors in this folder")
        return _files(indices[0]) if indices else found
    if path.suffix != ".json":
        return [path]
    try:
        index = json.loads(path.read_text())
    except ValueError as error:
        raise FormatError(f"{path}: is no JSON ({error}); it is damaged") from error
    if "weight_map" not in index:
        raise FormatError(f"{path}: has no weight_map; it is no index of safetensors files")
    files = [path.parent / name for name in sorted(set(index["weight_map"].values()))]
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: named in {path.name} but not there; is the download complete?")
    return files


def _tensors(file: MappedFile, device: str):
    start, header = read_header(file)
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            kind, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            whole = all(isinstance(size, int) and size >= 0 for size in (*shape, begin, end))
        except (TypeError, KeyError, ValueError):
            whole = False
        if not whole:
            raise file.error(f"tensor {name}: its header entry is {entry!r}, no dtype, shape and offsets")
        if kind not in DTYPES:
            raise file.error(f"tensor {name} has element type {kind}; read are {', '.join(DTYPES)}")
        dtype = DTYPES[kind]
        if end - begin != prod(shape) * dtype.itemsize:
            raise file.error(f"tensor {name}: {end - begin} bytes for {kind} {shape}; the file is damaged")
        yield name, Tensor._leaf(file.node(start + begin, dtype, shape, device, f"tensor {name}"))


def safe_save(tensors: dict[str, Tensor], path: str | os.PathLike,
              metadata: dict[str, str] | None = None) -> None:
    """Write tensors, and metadata of strings if given, to a safetensors file.

    An existing file is replaced as a whole at the end: it may be the one that the tensors are mapped from.
    """
    if metadata is not None and not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise TypeError(f"safe_save: metadata {metadata!r} must map strings to strings")
    if tensors:
        Tensor.realize(*tensors.values())
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)     # wide first: all aligned
    header, offset = ({"__metadata__": metadata} if metadata else {}), 0
    for name in order:
        end = offset + tensors[name].nbytes()
        header[name] = {"dtype": _NAMES[tensors[name].dtype], "shape": list(tensors[name].shape),
                        "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(realize.read(tensors[name].realize().node))
    os.replace(partial, path)
