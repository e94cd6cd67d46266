"""Numbers on the command line and on the screen: `f32:0..7`, `u8:255*4`, and bytes shown as one of the types.

The debugger, `run-asm` and their tests share it.
"""

import difflib

import numpy as np

# name -> type of an element; hex shows dwords as they are, bf16 is kept as its bits
FORMATS = {
    "hex": np.uint32,
    "u8": np.uint8,
    "i8": np.int8,
    "u16": np.uint16,
    "i16": np.int16,
    "u32": np.uint32,
    "i32": np.int32,
    "u64": np.uint64,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
}
MOST_VALUES = 1 << 28  # of one argument, so that a slip of the pen does not fill the memory


def format_named(name: str) -> str:
    """The name itself. ValueError with the nearest one for what is no format."""
    if name in FORMATS:
        return name
    close = difflib.get_close_matches(name, FORMATS, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}{hint}")


def width(format: str) -> int:
    """Bytes of an element."""
    return np.dtype(FORMATS[format]).itemsize


def texts(data: bytes, format: str) -> list[str]:
    """Each element of some bytes as text; what is left over of a last one is not shown."""
    whole = data[: len(data) // width(format) * width(format)]
    values = np.frombuffer(whole, dtype=FORMATS[format])
    if format == "hex":
        return [f"{int(value):08x}" for value in values]
    if format == "bf16":
        values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if values.dtype.kind == "f":
        digits = {2: 5, 4: 7, 8: 15}[values.dtype.itemsize]
        return [f"{float(value):.{digits}g}" for value in values]
    return [str(value) for value in values]


def number(text: str, format: str = "i64") -> bytes:
    """One value as bytes of the format. ValueError for what is no such number, or does not fit."""
    try:
        if format == "bf16":
            bits = int(np.float32(float(text)).view(np.uint32))
            return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).to_bytes(2, "little")
        dtype = np.dtype(FORMATS[format])
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                return np.array(float(text), dtype).tobytes()
        value = int(text, 0)
        if value < 0 and dtype.kind == "u":
            value += 1 << 8 * dtype.itemsize  # -1 is all ones
        return value.to_bytes(dtype.itemsize, "little", signed=dtype.kind == "i")
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no {format} value") from None


def values(text: str, format: str) -> bytes:
    """A list of values: numbers, ranges `0..7`, repeated ones `1.5*4`, with commas between them."""
    parts: list[bytes] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        first, dots, last = part.partition("..")
        value, star, count = part.partition("*")
        if dots:
            low, high = int(first, 0), int(last, 0)
            _check_count(high - low + 1, part)
            parts += [number(str(each), format) for each in range(low, high + 1)]
        elif star:
            _check_count(int(count, 0), part)
            parts.append(number(value, format) * int(count, 0))
        else:
            parts.append(number(part, format))
    return b"".join(parts)


def _check_count(count: int, part: str) -> None:
    if not 1 <= count <= MOST_VALUES:
        raise ValueError(f"{part!r} is {count} values; 1 to {MOST_VALUES} go")


def dumped(address: int, data: bytes, format: str, columns: int) -> list[str]:
    """Lines of so many elements, each led by its address."""
    found, step = texts(data, format), width(format)
    size = max(map(len, found), default=0)
    lines = [found[start : start + columns] for start in range(0, len(found), columns)]
    return [
        f"{address + number * columns * step:#x}:  {' '.join(text.rjust(size) for text in line)}"
        for number, line in enumerate(lines)
    ]
