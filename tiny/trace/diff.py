"""`python -m tiny trace diff A B`: where two recorded runs differ, apart from addresses, handles and times.

Records are aligned by their texts without names. Then names are followed through the aligned records: what is
`map3` in one run must be one and the same thing in the other all along, whatever its number there is.
"""
import bisect
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tiny.trace.names import Name, Record, numbered

FEW = 400                                                   # records, for an algorithm that is not linear


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
    for a, a_end, b, b_end, equal in _aligned([one.shape for one in first], [one.shape for one in second]):
        if not equal:
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


def _aligned(first: list[tuple], second: list[tuple]) -> Iterator[tuple[int, int, int, int, bool]]:
    """(start and end in the first, in the second, whether they are equal) of all of both, in order."""
    a = b = 0
    for i, j, size in [*_matches(first, 0, len(first), second, 0, len(second)), (len(first), len(second), 0)]:
        if i > a or j > b:
            yield a, i, b, j, False
        if size:
            yield i, i + size, j, j + size, True
        a, b = i + size, j + size


def _matches(first: list, a: int, a_end: int, second: list, b: int, b_end: int) -> Iterator[tuple]:
    """(place in the first, in the second, length) of equal runs, in order, of first[a:a_end] and the other.

    What stands once in each ties them together (the patience of Bram Cohen's diff), then what lies between is
    done in the same way; where nothing does, few are compared by difflib, and many are taken as different.
    """
    start, shorter = 0, min(a_end - a, b_end - b)
    while start < shorter and first[a + start] == second[b + start]:
        start += 1
    end = 0
    while end < shorter - start and first[a_end - 1 - end] == second[b_end - 1 - end]:
        end += 1
    if start:
        yield a, b, start
    i, j, i_end, j_end = a + start, b + start, a_end - end, b_end - end
    anchors = _anchors(first[i:i_end], second[j:j_end])
    if anchors:
        ends = [(i + x, j + y) for x, y in anchors]
        for x, y in [*ends, (i_end, j_end)]:
            yield from _matches(first, i, x, second, j, y)
            i, j = x, y
    elif 0 < i_end - i + j_end - j <= FEW:
        blocks = difflib.SequenceMatcher(None, first[i:i_end], second[j:j_end], autojunk=False)
        yield from ((i + x, j + y, size) for x, y, size in blocks.get_matching_blocks() if size)
    if end:
        yield i_end, j_end, end


def _anchors(first: list, second: list) -> list[tuple[int, int]]:
    """Places of what stands once in each, as many as are in the same order in both."""
    once = [{item: place for place, item in enumerate(some) if counts[item] == 1}
            for some, counts in ((first, Counter(first)), (second, Counter(second)))]
    pairs = [(place, once[1][item]) for item, place in once[0].items() if item in once[1]]
    tails: list[int] = []                                   # of the best rising sequence of each length
    numbers: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect.bisect_left(tails, place)
        before.append(numbers[length - 1] if length else -1)
        tails[length:length + 1], numbers[length:length + 1] = [place], [number]
    found, number = [], numbers[-1] if numbers else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


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
