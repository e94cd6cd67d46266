"""`python -m tiny trace diff A B`: where two recorded runs differ, apart from addresses, handles and times.

Records are aligned by their texts without names. Then names are followed through the aligned records: what is
`map3` in one run must be one and the same thing in the other all along, whatever its number there is.
"""
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tiny.trace.names import Name, Record, numbered

FEW = 2000                                                  # records; in more, frequent ones align nothing


@dataclass(frozen=True, slots=True)
class Change:
    """Records of one run that stand in place of some of the other, by their numbers, end excluded."""
    first: int
    first_end: int
    second: int
    second_end: int


def changes(first: Sequence[Record], second: Sequence[Record]) -> tuple[list[Change], dict[Name, str]]:
    """Where the runs differ, in order, and how the names of the second are shown: as those of the first."""
    shown = numbered(list(first))
    same: dict[Name, Name] = {}                             # names of the first -> of the second
    back: dict[Name, Name] = {}
    found: list[Change] = []

    def add(change: Change) -> None:
        last = found[-1] if found else None
        if last is not None and (last.first_end, last.second_end) == (change.first, change.second):
            found[-1] = Change(last.first, change.first_end, last.second, change.second_end)
        else:
            found.append(change)
    for tag, a, a_end, b, b_end in _aligned([one.shape for one in first], [one.shape for one in second]):
        if tag != "equal":
            add(Change(a, a_end, b, b_end))
            continue
        for one, other in zip(range(a, a_end), range(b, b_end), strict=True):
            pairs = list(zip(first[one].names, second[other].names, strict=True))
            if all(same.get(x, y) == y and back.get(y, x) == x for x, y in pairs):
                same.update(pairs)
                back.update((y, x) for x, y in pairs)
            else:
                add(Change(one, one + 1, other, other + 1))
    return found, _shown_as(second, back, shown)


def _shown_as(second: Sequence[Record], back: dict[Name, Name], shown: dict[Name, str]) -> dict[Name, str]:
    """Names of the second run: those of the first where they are the same thing, else marked with a *."""
    return {name: shown[back[name]] if name in back else f"{text}*"
            for name, text in numbered(list(second)).items()}


def _aligned(first: list[tuple], second: list[tuple]) -> Iterator[tuple[str, int, int, int, int]]:
    """As SequenceMatcher.get_opcodes, but linear in what both have in common at the beginning and the end."""
    start, shorter = 0, min(len(first), len(second))
    while start < shorter and first[start] == second[start]:
        start += 1
    end = 0
    while end < shorter - start and first[-1 - end] == second[-1 - end]:
        end += 1
    if start:
        yield "equal", 0, start, 0, start
    a, b = first[start:len(first) - end], second[start:len(second) - end]
    for tag, *places in difflib.SequenceMatcher(None, a, b, autojunk=len(a) + len(b) > FEW).get_opcodes():
        yield (tag, *(place + start for place in places))
    if end:
        yield "equal", len(first) - end, len(first), len(second) - end, len(second)


def unified(first: Sequence[Record], second: Sequence[Record], context: int = 3) -> Iterator[str]:
    """The differences as lines: those of the first behind -, of the second behind +, `context` around them.

    Nothing if there are none. Numbers in @@ are those of lines in the files.
    """
    found, names = changes(first, second)
    shown = numbered(list(first))
    groups: list[list[Change]] = []
    for change in found:
        if groups and change.first - groups[-1][-1].first_end <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    for group in groups:
        start, end = max(group[0].first - context, 0), min(group[-1].first_end + context, len(first))
        yield f"@@ {_line(first, start)} {_line(second, group[0].second)} @@"
        at = start
        for change in group:
            yield from (f" {one.text(shown)}" for one in first[at:change.first])
            yield from (f"-{one.text(shown)}" for one in first[change.first:change.first_end])
            yield from (f"+{one.text(names)}" for one in second[change.second:change.second_end])
            at = change.first_end
        yield from (f" {one.text(shown)}" for one in first[at:end])


def _line(records: Sequence[Record], number: int) -> int:
    return records[min(number, len(records) - 1)].line if records else 0
