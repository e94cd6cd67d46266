"""Every kernel under loops other than the heuristics', as a search with BEAM might choose them.

`pytest --other-schedules 1 tests/frontend` shows that what tensors give does not hang on the heuristics.
"""
import random

from tiny.realize import kept, prepare
from tiny.schedule.search import neighbours

STEPS = 3                    # small changes away from the heuristics' schedule


def install(seed: int) -> None:
    """For the rest of the process. Kernels are the same with the same seed, whatever the order of tests."""
    usual = prepare.choose

    def choose(kernel, target):
        schedule = usual(kernel, target)
        draw = random.Random(f"{seed} {prepare.kernel_name(kernel)}")
        for _ in range(STEPS):
            near = list(neighbours(kernel, schedule, target))
            schedule = draw.choice(near) if near else schedule
        return schedule
    prepare.choose = choose
    kept.place_of = lambda *_: None                         # plans on disk hold the usual ones
