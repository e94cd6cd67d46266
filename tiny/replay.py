"""`python -m tiny replay FILE`: does the emulated card answer as the recorded one did?

FILE is one of two: a trace of TRACE=FILE, whose driver calls are made again, in order, to the emulated driver
of such cards; or what `hwcheck` wrote, whose stages are run again.
"""
import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence

from tiny.emulator.amd.kernel import recorded
from tiny.emulator.amd.kernel.cards import Card
from tiny.hcq import hwcheck, io
from tiny.hcq.amd import check
from tiny.hcq.amd.device import AmdDevice
from tiny.trace.command import exit_code, lines_of
from tiny.trace.replay import Replayer


def cards_of(lines: Iterable[tuple[int, str]]) -> list[tuple[str, Card]]:
    """(path of its render node, an emulated card like it) of each card that a trace tells of.

    ValueError for a trace without any.
    """
    texts = [text for _, text in lines]
    large_bar = any("PUBLIC" in text for text in texts if "ALLOC_MEMORY_OF_GPU" in text)
    cards = {}
    for text in texts:
        if text.startswith("device AMD"):
            facts = {name: int(value) for name, value in re.findall(r" (\w+)=(\d+)\b", text)}
            arch, memory = re.search(r"arch=(\w+)", text)[1], re.search(r"(\d+) GiB", text)
            card = recorded.card_like(arch, facts, int(memory[1]) << 30, large_bar)
            cards[f"/dev/dri/renderD{facts['drm_render_minor']}"] = card
    if not cards:
        raise ValueError("the trace has no record of an AMD device; there is nothing to replay it on")
    return list(cards.items())


def replay_calls(lines: list[tuple[int, str]], say: Callable[[str], None]) -> int:
    """Make the calls of a trace again; the number of those that ended otherwise."""
    nodes, cards = zip(*cards_of(lines), strict=True)
    provider = recorded.emulate(cards)
    replayer = Replayer(provider, dict(zip(nodes, recorded.identities(provider), strict=True)))
    made = different = 0
    try:
        for outcome in replayer.calls(lines):
            made += 1
            if not outcome.same:
                different += 1
                say(f"-{outcome.recorded}\n+{outcome.emulated}")
    finally:
        replayer.close()
    say(f"{made} calls made again, {different} ended otherwise, {replayer.skipped} cannot be repeated")
    return different


def replay_check(found: dict, say: Callable[[str], None]) -> int:
    """Run the stages of a file of `hwcheck` on an emulated card like the one it is of; how many differ."""
    topology = found["stages"][0]["found"]
    card = recorded.card_like(topology["arch"], found["facts"], topology["vram_gib"] << 30,
                              topology["large_bar"])
    remove = io.install(recorded.emulate([card]))
    try:
        device = AmdDevice()
        try:
            done = hwcheck.check(check.Bench(device), check.STAGES[:len(found["stages"])], say)
        finally:
            device.close()
    finally:
        remove()
    different = hwcheck.differences(found, done)
    for line in different:
        say(line)
    say(f"{len(done)} stages run again, {len(different)} answers differ")
    return len(different)


def read_check(path: str) -> dict | None:
    """What `hwcheck` wrote, None for a file that is something else."""
    with open(path, encoding="utf-8", errors="replace") as file:
        if file.read(1) != "{":
            return None
        file.seek(0)
        try:
            found = json.load(file)
        except json.JSONDecodeError:
            return None
    return found if "stages" in found and "facts" in found else None


def again(options: argparse.Namespace) -> int:
    """0 if an emulated card answers as the recorded one did, 1 if not."""
    found = read_check(options.file)
    if found is not None:
        return 1 if replay_check(found, print) else 0
    lines = [(number, text) for number, text in lines_of(options.file) if text[:1] != "#"]
    return 1 if replay_calls(lines, print) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0 the same answers, 1 a difference, 2 a file that cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m tiny replay",
        description="Make a trace's driver calls, or run the stages of a file of hwcheck, again on an "
                    "emulated card; exit code 0 if it answers the same, 1 if not.")
    parser.add_argument("file", help="of TRACE=FILE, or of hwcheck")
    return exit_code("replay", again, parser.parse_args(arguments))
