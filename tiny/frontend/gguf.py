"""GGUF files: header, metadata and tensors, which stay the file's bytes until a kernel reads them.

Format: ggml's docs/gguf.md, versions 2 and 3, little-endian. The numbers of value types and of block types
are those of gguf-py's constants.py (GGUFValueType, GGMLQuantizationType, GGML_QUANT_SIZES).
"""
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tiny import realize
from tiny.frontend.files import FormatError, MappedFile
from tiny.frontend.quantised import DEQUANTISE
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes
from tiny.ir.integer import prod

VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
_SCALARS = {number: struct.Struct(f"<{letter}") for number, letter in
            zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True)}
_STRING, _ARRAY = 8, 9
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

# number -> (name, elements in a block, bytes of a block)
BLOCK_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8),
    28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}
# types of one element to a block, which are element types of ours
_PLAIN = {"F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F64": dtypes.float64,
          "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32, "I64": dtypes.int64}


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies: shape as numpy has it (slowest axis first),
    start in bytes from the file's beginning.
    """
    name: str
    shape: tuple[int, ...]
    type_number: int
    start: int

    @property
    def type_name(self) -> str:
        """The block type's name, "type 99" for a number that no known version of the format has."""
        known = BLOCK_TYPES.get(self.type_number)
        return known[0] if known else f"type {self.type_number}"


class _Reader:
    """Reads the header front to back. A file that ends too early is one FormatError."""

    def __init__(self, file: MappedFile):
        self.file = file
        self.data = file.slice(0, file.size, "the file")
        self.position = 0

    def unpack(self, layout: struct.Struct):
        try:
            value, = layout.unpack_from(self.data, self.position)
        except struct.error:
            raise self.ended() from None
        self.position += layout.size
        return value

    def string(self) -> str:
        return self.strings(1)[0]

    def strings(self, count: int) -> list[str]:
        """So many strings in a row; a vocabulary has 100,000, so this loop is kept tight."""
        data, size, position, texts = self.data, self.file.size, self.position, []
        for _ in range(count):
            start = position + _U64.size
            position = start + int.from_bytes(data[position:start], "little")
            if position > size:
                raise self.ended()
            texts.append(str(data[start:position], "utf-8", "replace"))
        self.position = position
        return texts

    def value(self, kind: int, key: str):
        """One metadata value of the given value type."""
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array(key)
        if kind not in _SCALARS:
            raise self.file.error(f"metadata {key} has value type {kind}, which GGUF does not know; "
                                  "the file is damaged or newer than this reader")
        return self.unpack(_SCALARS[kind])

    def array(self, key: str) -> list:
        kind, count = self.unpack(_U32), self.unpack(_U64)
        if count > self.file.size:                          # an element takes at least a byte
            raise self.ended()
        if kind == _STRING:
            return self.strings(count)
        if kind not in _SCALARS:
            return [self.value(kind, key) for _ in range(count)]
        size = count * _SCALARS[kind].size
        if self.position + size > self.file.size:
            raise self.ended()
        piece = self.data[self.position:self.position + size]
        self.position += size
        return list(struct.unpack(f"<{count}{_SCALARS[kind].format[1]}", piece))

    def ended(self) -> FormatError:
        return self.file.error(f"the header does not end within the file's {self.file.size} bytes; it is cut "
                               "short or damaged, fetch it again")


def read_header(file: MappedFile) -> tuple[dict, list[TensorInfo]]:
    """The metadata and where the tensors lie. FormatError for anything that is no whole GGUF file."""
    reader = _Reader(file)
    tensor_count, pair_count = _check_version(file, reader)
    metadata = {}
    for _ in range(pair_count):
        key = reader.string()
        metadata[key] = reader.value(reader.unpack(_U32), key)
    found = [_tensor_info(reader) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0:
        raise file.error(f"metadata general.alignment is {alignment!r}, not a positive number")
    data = -(-reader.position // alignment) * alignment
    return metadata, [TensorInfo(name, shape, number, data + offset) for name, shape, number, offset in found]


def _check_version(file: MappedFile, reader: _Reader) -> tuple[int, int]:
    """Magic and version; returns the numbers of tensors and of metadata pairs."""
    magic = bytes(file.slice(0, min(4, file.size), "the magic"))
    if magic != b"GGUF":
        raise file.error(f"starts with {magic!r}, not b'GGUF'; it is no GGUF file")
    reader.position = 4
    version = reader.unpack(_U32)
    if version & 0xFFFF == 0:
        raise file.error("is a big-endian GGUF; convert it with gguf-py's gguf_convert_endian")
    if version not in VERSIONS:
        raise file.error(f"is GGUF version {version}; versions {VERSIONS[0]} and {VERSIONS[1]} are read, "
                         "convert it with a recent llama.cpp")
    counts = reader.unpack(_U64), reader.unpack(_U64)
    if max(counts) > file.size:                             # each takes several bytes
        raise reader.ended()
    return counts


def _tensor_info(reader: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    name = reader.string()
    dimensions = reader.unpack(_U32)
    if dimensions > 8:
        raise reader.file.error(f"tensor {name} has {dimensions} dimensions; the file is damaged")
    sizes = [reader.unpack(_U64) for _ in range(dimensions)]
    return name, tuple(reversed(sizes)), reader.unpack(_U32), reader.unpack(_U64)


def _shards(path: Path, metadata: dict) -> Iterator[Path]:
    """The other files of a model that was split: NAME-00001-of-00003.gguf and so on."""
    count = metadata.get("split.count", 1)
    if count <= 1:
        return
    ending = f"-00001-of-{count:05}.gguf"
    if not path.name.endswith(ending):
        raise FormatError(f"{path}: is one part of {count}; name the first, the one that ends in {ending}")
    for number in range(2, count + 1):
        yield path.with_name(f"{path.name.removesuffix(ending)}-{number:05}-of-{count:05}.gguf")


def gguf_load(path: str | os.PathLike, device: str | None = None) -> tuple[dict, dict]:
    """(metadata, {name: Tensor}) of a GGUF file, the first part of one that was split.

    F32, F16, BF16, F64 and integers keep their type; quantised tensors become float32 where they are read.
    On the CPU nothing is copied: the file stays mapped while a tensor of it lives. Raises FormatError for a
    damaged file and for block types that cannot be read, naming tensor and type.
    """
    first = MappedFile(path)
    metadata, found = read_header(first)
    parts = [(first, found)]
    for part in map(MappedFile, _shards(first.path, metadata)):
        parts.append((part, read_header(part)[1]))
    place = realize.canonical_device(device)
    return metadata, {info.name: _tensor(file, info, place) for file, infos in parts for info in infos}


def _tensor(file: MappedFile, info: TensorInfo, device: str) -> Tensor:
    what = f"tensor {info.name} ({info.type_name})"
    if info.type_name in _PLAIN:
        return Tensor._leaf(file.node(info.start, _PLAIN[info.type_name], info.shape, device, what))
    if info.type_name not in DEQUANTISE:
        raise file.error(f"{what}: this block type is not supported; supported are "
                         f"{', '.join((*_PLAIN, *DEQUANTISE))}: convert the model to one of them")
    _, elements, size = BLOCK_TYPES[info.type_number]
    if not info.shape or info.shape[-1] % elements:
        raise file.error(f"{what}: rows of {info.shape[-1:]} elements are no whole blocks of {elements}")
    blocks = (prod(info.shape) // elements, size)
    packed = Tensor._wrap(file.node(info.start, dtypes.uint8, blocks, device, what))
    return DEQUANTISE[info.type_name](packed).reshape(info.shape)
