"""Matrix instructions as C: the elements that each lane holds become arrays, then one call multiplies.

The arrays are written from the same expressions as the interpreter's; which lanes meet is computed here, from
the same layout, and handed over as tables. Lanes in groups of up to 16 share their row of A and have columns
of B next to one another.
"""

from collections.abc import Callable

import numpy as np

from tiny.emulator.amd.isa.c_text import Writer
from tiny.emulator.amd.isa.decode import Instruction
from tiny.emulator.amd.isa.evaluate import evaluate
from tiny.emulator.amd.isa.expression import Value
from tiny.emulator.amd.isa.layout import SHAPES, Layout, Shape
from tiny.emulator.amd.isa.lower import Store, raw
from tiny.emulator.amd.isa.matrix import (
    Term,
    accumulator,
    check_modifiers,
    element,
    index_shift,
    results,
    sum_type,
    terms,
)


def statements(instruction: Instruction, wave_size: int, uniform: Callable[[Value], str | None]) -> list[str]:
    """The statements of a matrix instruction. uniform: the text of a leaf that is the same for all lanes."""
    shape = SHAPES[instruction.operation.name]
    check_modifiers(instruction, shape)
    place = Layout(shape, wave_size)
    kind = sum_type(shape)
    rows = [terms(instruction, shape, place, number) for number in range(place.elements)]
    counts = [1 + max(getattr(each, name) for each in rows[0]) for name in ("position_a", "position_b")]
    counts[1] += 3 if shape.sparse else 0  # the four elements that are chosen from
    width = min(shape.side, 16)
    fused = "fused_" if shape.a in ("f32", "f64") else ""
    choices, shift = "0", 0
    if shape.sparse:
        choices = f"V[{instruction.sources[2].register}]"
        shift = index_shift(instruction, shape, place)
    clamp = int(bool(instruction.get("clamp")))
    return [
        "{",
        f"{kind} a[{counts[0]}][LANES], b[{counts[1]}][LANES], d[{place.elements}][LANES];",
        *_filled(instruction, shape, place, counts, uniform),
        *_tables(rows, wave_size, width),
        f"multiply_{fused}{kind}_{width}(d, a, b, lane_a, lane_b, place_a, place_b, {choices}, {shift}, "
        f"{place.elements}, {len(rows[0])}, {clamp});",
        *_stored(instruction, shape, place, kind, uniform),
        "}",
    ]


def _filled(instruction: Instruction, shape: Shape, place: Layout, counts: list[int], uniform) -> list[str]:
    """The arrays a, b and d from registers."""
    values = {}
    for operand, name in enumerate("ab"):
        for number in range(counts[operand]):
            values[f"{name}[{number}]"] = element(instruction, shape, operand, number)
    for number in range(place.elements):
        values[f"d[{number}]"] = accumulator(instruction, raw, shape, place, number)
    writer = Writer(lambda value: _leaf(value, uniform))
    texts = writer.expressions(list(values.values()))
    lines = [f"{name}[l] = {text};" for name, text in zip(values, texts, strict=True)]
    return ["VECTORIZE", "EACH_LANE {", *writer.statements, *lines, "}"]


def _leaf(value: Value, uniform: Callable[[Value], str | None]) -> str | None:
    if value.op in ("vgpr", "vgpr_kept"):
        return f"V[{value.args[0]}][l]"
    return "l" if value.op == "lane" else uniform(value)


def _stored(instruction: Instruction, shape: Shape, place: Layout, kind: str, uniform) -> list[str]:
    """The sums as D."""
    totals = {number: Value(kind, "total", number) for number in range(place.elements)}
    stores: list[Store] = results(instruction, shape, place, totals, Store)
    writer = Writer(lambda value: f"d[{value.args[0]}][l]" if value.op == "total" else _leaf(value, uniform))
    texts = writer.expressions([each.value for each in stores])
    lines = ["VECTORIZE", "EACH_LANE {", *writer.statements]
    lines += [f"V[{each.index}][l] = {text};" for each, text in zip(stores, texts, strict=True)]
    return [*lines, "}"]


def _tables(rows: list[list[Term]], wave_size: int, width: int) -> list[str]:
    """lane_a and lane_b [element][term][group], place_a and place_b [term]."""
    numbers = np.arange(wave_size, dtype=np.uint32)
    starts = slice(0, None, width)

    def lanes_of(value: Value) -> np.ndarray:
        found = evaluate([value], lambda each, compute: numbers if each.op == "lane" else None)[0]
        return np.broadcast_to(found, (wave_size,))[starts]

    lane_a = np.concatenate([lanes_of(each.lane_a) for row in rows for each in row])
    lane_b = np.concatenate([lanes_of(each.lane_b) for row in rows for each in row])
    return [
        f"static const u8 {name}[] = {{{', '.join(map(str, map(int, numbers)))}}};"
        for name, numbers in (
            ("lane_a", lane_a),
            ("lane_b", lane_b),
            ("place_a", [each.position_a for each in rows[0]]),
            ("place_b", [each.position_b for each in rows[0]]),
        )
    ]
