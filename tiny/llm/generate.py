"""Text generation: the prompt in chunks, then one token a step, each step one submission of a captured
function."""
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tiny import GlobalCounters, Tensor, TinyJit, Variable, dtypes
from tiny.ir.integer import Integer
from tiny.llm.errors import ModelError
from tiny.llm.models import Llama

# Prompts are fed in pieces of these sizes, padded to the next one, so that a handful of kernels serves every
# length.
CHUNKS = (8, 32, 128)


def chunk_size(rest: int) -> int:
    """The piece to take of a prompt of which `rest` tokens are left: the next size if that is at least half
    full, otherwise the largest that is full.
    """
    above = next((size for size in CHUNKS if size >= rest), CHUNKS[-1])
    below = max((size for size in CHUNKS if size <= rest), default=above)
    return above if 2 * rest >= above else below


@dataclass
class Figures:
    """What one generation cost. Times in seconds; `kernels` and `submissions` are those of the last token."""
    prompt_tokens: int = 0
    prompt_s: float = 0.0
    decoded_tokens: int = 0
    decode_s: float = 0.0
    kernels: int = 0
    submissions: int = 0


class Generator:
    """Continues token sequences with one model. Holds the captured functions, so it is quick from the third
    step on.

    temperature  0 takes the likeliest token; above, tokens are drawn from softmax(logits / temperature)
    """

    def __init__(self, model: Llama, temperature: float = 0.0):
        self.model = model
        self.figures = Figures()
        self._temperature = Tensor([temperature]).realize() if temperature else None
        self._steps = {rows: TinyJit(self._step) for rows in (1, *CHUNKS)}
        self._start = Variable("start", 0, model.rows - 1)
        self._counts = {rows: Variable(f"count{rows}", 1, rows) for rows in CHUNKS}

    def _step(self, ids: Tensor, start: Integer, count: Integer | None = None) -> Tensor:
        """The token (1,) that follows the `count`-th of `ids`."""
        logits = self.model(ids, start, 1 if count is None else count)
        if self._temperature is not None:  # the largest of logits / T + Gumbel noise is such a draw
            noise = -(-Tensor.rand(*logits.shape).maximum(1e-20).log()).log()
            logits = logits / self._temperature + noise
        return logits.argmax(-1).cast(dtypes.int32).realize()

    def tokens(
        self, prompt: Sequence[int], max_tokens: int, end: frozenset[int] = frozenset()
    ) -> Iterator[int]:
        """Up to `max_tokens` ids that follow the prompt; the last is one of `end` if that came first.

        Raises ModelError when prompt and answer do not fit into the cache.
        """
        room = self.model.rows - max(CHUNKS)
        if not prompt:
            raise ModelError("the prompt is empty; give at least one token")
        if len(prompt) + max_tokens > room:
            raise ModelError(
                f"{len(prompt)} tokens of prompt and {max_tokens} to come do not fit into a context of "
                f"{room}; shorten the prompt or lower --max-tokens"
            )
        self.figures = Figures(prompt_tokens=len(prompt))
        began = time.perf_counter()
        token = self._feed(prompt)
        number = int(token.item())
        first = time.perf_counter()
        self.figures.prompt_s = first - began
        yield number
        for position in range(len(prompt), len(prompt) + max_tokens - 1):
            if number in end:
                return
            token = self._decode(token, position)
            number = int(token.item())
            self.figures.decoded_tokens += 1
            self.figures.decode_s = time.perf_counter() - first
            yield number

    def _feed(self, prompt: Sequence[int]) -> Tensor:
        """Put the prompt into the cache; the token that follows it."""
        at, token = 0, None
        while at < len(prompt):
            rest = len(prompt) - at
            rows = chunk_size(rest)
            count = min(rows, rest)
            ids = np.zeros(rows, np.int32)
            ids[:count] = prompt[at:at + count]
            token = self._steps[rows](
                Tensor(ids).realize(), self._start.bind(at), self._counts[rows].bind(count)
            )
            at += count
        return token

    def _decode(self, token: Tensor, position: int) -> Tensor:
        kernels, submissions = GlobalCounters.kernel_count, GlobalCounters.submission_count
        token = self._steps[1](token, self._start.bind(position))
        self.figures.kernels = GlobalCounters.kernel_count - kernels
        self.figures.submissions = GlobalCounters.submission_count - submissions
        return token
