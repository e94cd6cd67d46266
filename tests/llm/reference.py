"""A LLaMA in plain numpy, float32, over weights that the `gguf` package dequantises: what tests compare tiny
with.

It shares no code with tiny. Run as a program it prints what tests/llm/expected.py holds.
"""
import sys
from pathlib import Path

import gguf
import numpy as np


def load(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """(metadata, weights in float32) of a GGUF file."""
    reader = gguf.GGUFReader(str(path))
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    weights = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
               for tensor in reader.tensors}
    return metadata, weights


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(epsilon)) * weight


def rotate_pairs(x: np.ndarray, base: float) -> np.ndarray:
    """Rotary embedding of x (heads, positions, size) on neighbouring pairs, the layout of GGUF's llama
    weights."""
    positions, size = x.shape[-2:]
    angle = np.arange(positions)[:, None] * base ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack((even * cos - odd * sin, even * sin + odd * cos), -1).reshape(x.shape)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def forward(metadata: dict, weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """Logits (positions, vocabulary) of the whole sequence, no cache."""
    def number(key):
        return metadata[f"llama.{key}"]
    heads, groups = number("attention.head_count"), number("attention.head_count_kv")
    epsilon, base = number("attention.layer_norm_rms_epsilon"), number("rope.freq_base")
    x = weights["token_embd.weight"][ids]
    mask = np.triu(np.full((len(ids), len(ids)), -np.inf, np.float32), 1)
    for layer in range(number("block_count")):
        def w(name, layer=layer):
            return weights[f"blk.{layer}.{name}.weight"]
        h = rms_norm(x, w("attn_norm"), epsilon)
        q, k, v = ((h @ w(f"attn_{name}").T).reshape(len(ids), count, -1).swapaxes(0, 1)
                   for name, count in (("q", heads), ("k", groups), ("v", groups)))
        q, k = rotate_pairs(q, base), rotate_pairs(k, base)
        k, v = (np.repeat(t, heads // groups, axis=0) for t in (k, v))
        scores = softmax(q @ k.swapaxes(1, 2) / np.float32(q.shape[-1] ** 0.5) + mask)
        x = x + (scores @ v).swapaxes(0, 1).reshape(len(ids), -1) @ w("attn_output").T
        h = rms_norm(x, w("ffn_norm"), epsilon)
        gate = h @ w("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    x = rms_norm(x, weights["output_norm.weight"], epsilon)
    return x @ weights.get("output.weight", weights["token_embd.weight"]).T


def greedy(metadata: dict, weights: dict[str, np.ndarray], ids: list[int], count: int) -> list[int]:
    """The next `count` most likely tokens, or fewer when the end token comes."""
    ids, start = list(ids), len(ids)
    while len(ids) < start + count and (
        len(ids) == start or ids[-1] != metadata["tokenizer.ggml.eos_token_id"]
    ):
        ids.append(int(forward(metadata, weights, ids)[-1].argmax()))
    return ids[start:]


if __name__ == "__main__":
    model = load(Path(sys.argv[1]))
    last = forward(*model, [504, 3575, 282, 4649, 314])[-1]
    print("top five:", *(f"{last[token]:.4f}@{token}" for token in np.argsort(-last)[:5]))
    print("greedy:", *greedy(*model, [504, 3575, 282, 4649, 314], 40))
