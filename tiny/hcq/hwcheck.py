"""`python -m tiny hwcheck amd`: a staged check of a real card by its owner, in under two minutes.

Nobody can try every card, so the check writes what it found to a file that its owner may attach to an issue
of the project: tests compare emulated cards with such files. With EMULATE=1 it checks the emulated card.
"""
import json
import platform
import sys
import time
from collections.abc import Callable

from tiny.hcq import device
from tiny.hcq.errors import DeviceError
from tiny.lazy import Lazy

KINDS = {"amd": Lazy("tiny.hcq.amd.check")}                 # name on the command line -> module with STAGES
# answers of stages that are the same each time, on every machine with such a card
STEADY = ("arch", "compute_units", "dies", "vram_gib", "large_bar", "host_writes", "read_pointer",
          "private_bytes")
ATTACH = "keep it, and please attach it to an issue where you got tiny from"
USAGE = f"""usage: python -m tiny hwcheck {{{','.join(KINDS)}}} [FILE]

Try a card stage by stage; one line each. Safe on a card that other programs use. What was found is written to
FILE, hwcheck-ARCH.json by default. Keep it, whether all went well or not, and please open an issue where you
got tiny from and attach it: no real card has run this yet."""


def check(bench, stages, say: Callable[[str], None]) -> list[dict]:
    """Run the stages up to the first that fails; [{name, ok, seconds, found}]."""
    done = []
    for stage in stages:
        start = time.perf_counter()
        try:
            found, problem = stage(bench), ""
        except Exception as error:
            found, problem = {}, f"{type(error).__name__}: {error}"
        except KeyboardInterrupt:
            found, problem = {}, "interrupted"
        seconds = round(time.perf_counter() - start, 3)
        done.append(dict(name=stage.__name__, ok=not problem, seconds=seconds, found=found, problem=problem))
        text = problem or ", ".join(f"{key} {value}" for key, value in found.items())
        say(f"{'FAIL' if problem else 'ok':4}  {stage.__name__:15} {seconds:7.2f} s  {text}")
        if problem:
            say(f"      {(stage.__doc__ or '').splitlines()[0]}")
            break
    return done


def differences(found: dict, done: list[dict]) -> list[str]:
    """Where the stages that a card went through now end otherwise than those in a file of this command."""
    different = []
    for ours, theirs in zip(done, found["stages"], strict=False):
        for name in ("name", "ok"):
            if ours[name] != theirs[name]:
                different.append(f"stage {theirs['name']}: {name} {ours[name]}, recorded {theirs[name]}")
        for name in STEADY:
            if ours["found"].get(name) != theirs["found"].get(name):
                different.append(f"stage {theirs['name']}: {name} {ours['found'].get(name)}, recorded "
                                 f"{theirs['found'].get(name)}")
    if len(done) != len(found["stages"]):
        different.append(f"{len(done)} stages, recorded {len(found['stages'])}")
    return different


def main(arguments: list[str]) -> int:
    """The exit code: 0 if every stage went well, 1 if one did not, 2 if there is nothing to check."""
    if not arguments or arguments[0].lower() not in KINDS or len(arguments) > 2:
        print(USAGE)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    kind = arguments[0].lower()
    try:
        card = device.open(kind)
    except (DeviceError, RuntimeError, OSError) as error:
        print(f"tiny hwcheck: {error}", file=sys.stderr)
        return 2
    try:
        second = device.open(f"{kind}:1")
    except DeviceError:
        second = None
    module = KINDS[kind]
    path = arguments[1] if len(arguments) > 1 else f"hwcheck-{card.target.arch}.json"
    try:
        file = open(path, "w")                              # first, so that no stage runs for nothing
    except OSError as error:
        print(f"tiny hwcheck: {path}: {error.strerror}; name another FILE", file=sys.stderr)
        return 2
    with file:
        done = check(module.Bench(card, second), module.STAGES, _say)
        json.dump(dict(target=str(card.target), compiler=card.target.compiler, about=card.io.about,
                       system=platform.release(), facts=card.facts, stages=done), file, indent=1)
    good = all(stage["ok"] for stage in done)
    ask = f"the card is {card.io.about}" if card.io.about else ATTACH
    _say(f"{'all well' if good else 'something is wrong'}; what was found is in {path}; {ask}")
    return 0 if good else 1


def _say(line: str) -> None:
    print(line, flush=True)             # shown, should the machine freeze in the next stage
