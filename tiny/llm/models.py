"""The LLaMA architecture on Tensors, with a key-value cache that grows without recompiling.

The sequence length so far is a `Variable`: every kernel is compiled once for all lengths. Weights are used
as the file has them; where they are quantised, turning them into numbers happens inside the kernel that
reads them.
"""
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tiny import Tensor, dtypes
from tiny.ir.integer import Integer
from tiny.llm.errors import ModelError

# names of the weights, those of llama.cpp's GGUF files: gguf-py, constants.py,
# MODEL_TENSORS[MODEL_ARCH.LLAMA]
_LAYER_WEIGHTS = (
    "attn_norm",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "ffn_norm",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
)


@dataclass(frozen=True)
class Config:
    """The sizes of one model.

    context      positions it was trained for
    frequencies  radians per position of each pair of the rotary embedding, head_size / 2 of them
    interleaved  pairs are neighbours (GGUF) rather than halves of the head (Hugging Face)
    """
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    hidden: int
    vocabulary: int
    context: int
    epsilon: float
    frequencies: tuple[float, ...]
    interleaved: bool

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight by name; `output.weight` is left out, for it may be tied to the
        embedding."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        layer = {
            "attn_norm": (self.width,),
            "ffn_norm": (self.width,),
            "attn_q": (queries, self.width),
            "attn_k": (keys, self.width),
            "attn_v": (keys, self.width),
            "attn_output": (self.width, queries),
            "ffn_gate": (self.hidden, self.width),
            "ffn_up": (self.hidden, self.width),
            "ffn_down": (self.width, self.hidden),
        }
        shapes = {"token_embd.weight": (self.vocabulary, self.width), "output_norm.weight": (self.width,)}
        return shapes | {
            f"blk.{i}.{name}.weight": layer[name] for i in range(self.layers) for name in _LAYER_WEIGHTS
        }


def check_weights(config: Config, weights: Mapping[str, Tensor]) -> None:
    """ModelError if a weight is missing or has another shape than the sizes ask for."""
    for name, shape in config.weight_shapes().items():
        if name not in weights:
            raise ModelError(f"weight {name} {shape} is missing from the file; is the download complete?")
        if tuple(weights[name].shape) != shape:
            raise ModelError(
                f"weight {name} has shape {tuple(weights[name].shape)}, the model's sizes ask for {shape}"
            )


def linear(x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """x (rows, in) times the weight (out, in), plus a bias where the model has one."""
    y = x @ weights[f"{name}.weight"].cast(dtypes.float32).transpose()
    return y + weights[f"{name}.bias"].cast(dtypes.float32) if f"{name}.bias" in weights else y


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return x * ((x * x).mean(-1, keepdim=True) + epsilon).rsqrt() * weight.cast(dtypes.float32)


class Rotary:
    """Rotary position embedding: each pair of a head's numbers is turned by an angle that grows with the
    position."""

    def __init__(self, config: Config, rows: int):
        angles = np.arange(rows)[:, None] * np.array(config.frequencies)
        self._cos = Tensor(np.cos(angles).astype(np.float32)).realize()         # (rows, head_size / 2)
        self._sin = Tensor(np.sin(angles).astype(np.float32)).realize()
        self._interleaved = config.interleaved

    def __call__(self, x: Tensor, start: Integer) -> Tensor:
        """x (rows, heads, head_size), whose first row stands at position `start`."""
        rows, heads, size = x.shape
        cos, sin = (table[start:start + rows].reshape(rows, 1, size // 2) for table in (self._cos, self._sin))
        if self._interleaved:
            pairs = x.reshape(rows, heads, size // 2, 2)
            a, b = pairs[..., 0], pairs[..., 1]
        else:
            a, b = x[..., :size // 2], x[..., size // 2:]
        turned = (a * cos - b * sin, a * sin + b * cos)
        return (
            Tensor.stack(*turned, dim=-1).reshape(x.shape)
            if self._interleaved
            else Tensor.cat(*turned, dim=-1)
        )


class Layer:
    """One block: attention over the cache, then the gated feed-forward part, each added to its input.

    Owns its cache: keys and values (positions, kv_heads, head_size) in float32.
    """

    def __init__(self, config: Config, weights: Mapping[str, Tensor], number: int, rotary: Rotary, rows: int):
        prefix = f"blk.{number}."
        self._weights = {
            name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)
        }
        self._config = config
        self._rotary = rotary
        self._keys = Tensor.empty(rows, config.kv_heads, config.head_size, dtype=dtypes.float32).realize()
        self._values = Tensor.empty(rows, config.kv_heads, config.head_size, dtype=dtypes.float32).realize()

    def __call__(self, x: Tensor, start: Integer, mask: Tensor | None) -> Tensor:
        """x (rows, width) at positions start ...; mask (rows, start + rows) says what each row may see."""
        x = x + self._attend(
            rms_norm(x, self._weights["attn_norm.weight"], self._config.epsilon), start, mask
        )
        h = rms_norm(x, self._weights["ffn_norm.weight"], self._config.epsilon)
        gated = linear(h, self._weights, "ffn_gate").silu() * linear(h, self._weights, "ffn_up")
        return x + linear(gated, self._weights, "ffn_down")

    def _attend(self, h: Tensor, start: Integer, mask: Tensor | None) -> Tensor:
        rows, groups, size = h.shape[0], self._config.kv_heads, self._config.head_size
        q = self._rotary(linear(h, self._weights, "attn_q").reshape(rows, -1, size), start)
        k = self._rotary(linear(h, self._weights, "attn_k").reshape(rows, groups, size), start)
        self._keys[start:start + rows] = k
        self._values[start:start + rows] = linear(h, self._weights, "attn_v").reshape(rows, groups, size)
        keys = self._keys[:start + rows].permute(1, 2, 0).unsqueeze(1)  # (groups, 1, size, positions)
        values = self._values[:start + rows].permute(1, 0, 2).unsqueeze(1)  # (groups, 1, positions, size)
        q = q.reshape(rows, groups, -1, size).permute(1, 2, 0, 3)  # (groups, heads in each, rows, size)
        scores = (q @ keys) * size ** -0.5
        if mask is not None:
            scores = mask.where(scores, float("-inf"))
        mixed = scores.softmax(-1) @ values
        return linear(mixed.permute(2, 0, 1, 3).reshape(rows, -1), self._weights, "attn_output")


class Llama:
    """The whole model. Calling it advances its cache: positions are to be fed in order, or again from an
    earlier one.

    rows  positions the cache holds; a call with start + rows beyond it writes outside and is an error of the
          caller
    """

    def __init__(self, config: Config, weights: Mapping[str, Tensor], rows: int, progress=iter):
        check_weights(config, weights)
        self.config = config
        self.rows = rows
        self._weights = weights
        self._positions = Tensor.arange(rows, dtype=dtypes.int32)
        rotary = Rotary(config, rows)
        self._layers = [Layer(config, weights, i, rotary, rows) for i in progress(range(config.layers))]

    def __call__(self, ids: Tensor, start: Integer, count: Integer) -> Tensor:
        """Logits (1, vocabulary) after the `count`-th of `ids` (rows,), which stand at positions start ...

        Rows past `count` are padding: what they leave in the cache is overwritten before anything may look
        at it.
        """
        rows = ids.shape[0]
        x = self._weights["token_embd.weight"][ids].cast(dtypes.float32)
        mask = None
        if rows > 1:
            now = self._positions[start:start + rows].reshape(rows, 1)
            mask = self._positions[:start + rows].reshape(1, start + rows) <= now
        for layer in self._layers:
            x = layer(x, start, mask)
        last = x[count - 1:count] if rows > 1 else x
        head = "output" if "output.weight" in self._weights else "token_embd"
        return linear(
            rms_norm(last, self._weights["output_norm.weight"], self.config.epsilon), self._weights, head
        )
