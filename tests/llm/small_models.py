"""Random LLaMA models of a few thousand weights, written as GGUF files and as Hugging Face folders."""
import json
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, VOCABULARY, CONTEXT = 2, 64, 4, 2, 96, 261, 256
SIZE = WIDTH // HEADS
QUANTISED = {"Q8_0": gguf.GGMLQuantizationType.Q8_0, "Q4_0": gguf.GGMLQuantizationType.Q4_0,
             "F16": gguf.GGMLQuantizationType.F16, "F32": gguf.GGMLQuantizationType.F32}
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
HUGGING_FACE = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
                "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
                "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
                "ffn_down": "mlp.down_proj", "token_embd": "model.embed_tokens", "output_norm": "model.norm",
                "output": "lm_head"}


def random_weights(seed: int = 0, tied: bool = True) -> dict[str, np.ndarray]:
    """Weights by their GGUF names, with the pairs of the rotary embedding side by side."""
    rng = np.random.default_rng(seed)
    keys = KV_HEADS * SIZE
    layer = {
        "attn_norm": (WIDTH,),
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (keys, WIDTH),
        "attn_v": (keys, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_norm": (WIDTH,),
        "ffn_gate": (HIDDEN, WIDTH),
        "ffn_up": (HIDDEN, WIDTH),
        "ffn_down": (WIDTH, HIDDEN),
    }
    shapes = {f"blk.{i}.{name}.weight": shape for i in range(LAYERS) for name, shape in layer.items()}
    shapes |= {"token_embd.weight": (VOCABULARY, WIDTH), "output_norm.weight": (WIDTH,)}
    if not tied:
        shapes["output.weight"] = (VOCABULARY, WIDTH)
    return {name: (1 + 0.1 * rng.standard_normal(shape) if len(shape) == 1 else
                   rng.standard_normal(shape) * shape[1] ** -0.5).astype(np.float32)
            for name, shape in shapes.items()}


def byte_tokens() -> list[str]:
    """A vocabulary of single bytes, spelt as GPT-2's scheme does, behind the special tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return SPECIAL + letters + ["<unused0>", "<unused1>"]


def write_gguf(path: Path, weights: dict[str, np.ndarray], kind: str = "F32", context: int = CONTEXT,
               architecture: str = "llama") -> Path:
    """The model as a GGUF file, its matrices in block type `kind`."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(byte_tokens())
    writer.add_token_types([3] * len(SPECIAL) + [1] * (VOCABULARY - len(SPECIAL)))
    writer.add_token_merges([])
    writer.add_eos_token_id(2)
    for name, value in weights.items():
        matrix = QUANTISED[kind] if value.ndim == 2 else QUANTISED["F32"]
        writer.add_tensor(name, gguf.quants.quantize(value, matrix), raw_dtype=matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def halves(weight: np.ndarray) -> np.ndarray:
    """A query or key matrix with the first numbers of all pairs before the second ones, head by head."""
    return weight.reshape(-1, SIZE // 2, 2, WIDTH).swapaxes(1, 2).reshape(weight.shape)


def write_folder(folder: Path, weights: dict[str, np.ndarray], shards: int = 2, dtype=np.float32,
                 **changes) -> Path:
    """The model as a Hugging Face folder; `changes` go into its config.json."""
    folder.mkdir()
    renamed = {}
    for name, value in weights.items():
        *layer, part, _ = name.split(".")
        place = f"model.layers.{layer[1]}." if layer else ""
        renamed[f"{place}{HUGGING_FACE[part]}.weight"] = (
            halves(value) if part in ("attn_q", "attn_k") else value
        )
    names = list(renamed)
    weight_map = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = {name: np.ascontiguousarray(renamed[name], dtype) for name in names[number::shards]}
        save_file(part, folder / file)
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    config = {"model_type": "llama", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "hidden_act": "silu",
              "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "intermediate_size": HIDDEN,
              "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config | changes))
    tokens = byte_tokens()
    backend = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(SPECIAL)
    backend.save(str(folder / "tokenizer.json"))
    return folder
