"""The model against the numpy reference: small random ones in every file form, and SmolLM2 itself."""
import ml_dtypes
import numpy as np
import pytest

from tests.llm import expected, reference, small_models
from tiny import Tensor, Variable
from tiny.llm import files
from tiny.llm.errors import ModelError
from tiny.llm.generate import CHUNKS, Generator, chunk_size
from tiny.llm.models import Llama

ROWS = small_models.CONTEXT + max(CHUNKS)


def logits_after(model: Llama, ids: list[int], chunk: int) -> np.ndarray:
    """Logits after the last of `ids`, fed in pieces of `chunk`, the last one padded."""
    start, count = Variable("start", 0, model.rows - 1), Variable("count", 1, chunk)
    for at in range(0, len(ids), chunk):
        piece = ids[at:at + chunk]
        padded = np.array(piece + [0] * (chunk - len(piece)), np.int32)
        made = model(Tensor(padded), start.bind(at), count.bind(len(piece)) if chunk > 1 else 1).realize()
    return made.numpy()[0]


def check(file: files.ModelFile, metadata: dict, weights: dict[str, np.ndarray], chunk: int = 8) -> None:
    ids = np.random.default_rng(7).integers(3, small_models.VOCABULARY, 21).tolist()
    made = logits_after(Llama(file.config, file.weights, ROWS), ids, chunk)
    np.testing.assert_allclose(made, reference.forward(metadata, weights, ids)[-1], rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """(path of a GGUF file, its metadata, its weights)"""
    path = small_models.write_gguf(
        tmp_path_factory.mktemp("model") / "small.gguf", small_models.random_weights()
    )
    return path, *reference.load(path)


@pytest.mark.parametrize("chunk", [1, 5, 8])
def test_every_way_to_feed_a_prompt_gives_the_same_logits(small, chunk):
    path, metadata, weights = small
    check(files.load(path), metadata, weights, chunk)


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "Q4_0"])
def test_quantised_weights(tmp_path, kind):
    path = small_models.write_gguf(tmp_path / "small.gguf", small_models.random_weights(1, tied=False), kind)
    check(files.load(path), *reference.load(path))


def test_folder_in_shards_equals_the_gguf_of_the_same_weights(tmp_path, small):
    _, metadata, weights = small
    check(files.load(small_models.write_folder(tmp_path / "model", small_models.random_weights())), metadata,
          weights)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_folders_of_small_floats(tmp_path, small, dtype):
    rounded = {name: weight.astype(dtype).astype(np.float32) for name, weight in small[2].items()}
    file = files.load(small_models.write_folder(tmp_path / "model", small_models.random_weights(), 1, dtype))
    check(file, small[1], rounded)


def test_a_mixture_of_experts_is_named(small):
    with pytest.raises(ModelError, match="a mixture of 8 experts is not supported"):
        files.gguf_config({**small[1], "llama.expert_count": 8}, {})


def test_generation_equals_the_reference_across_chunks(small):
    path, metadata, weights = small
    file = files.load(path)
    prompt = np.random.default_rng(3).integers(3, small_models.VOCABULARY, 45).tolist()
    generator = Generator(Llama(file.config, file.weights, ROWS))
    made = list(generator.tokens(prompt, 12, frozenset({2})))
    assert made == reference.greedy(metadata, weights, prompt, 12)
    assert list(generator.tokens(prompt[:9], 12)) == reference.greedy(metadata, weights, prompt[:9], 12)


def test_temperature_draws_by_seed(small):
    file = files.load(small[0])
    generator = Generator(Llama(file.config, file.weights, ROWS), temperature=1.5)
    drawn = []
    for seed in (1, 1, 2):
        Tensor.manual_seed(seed)
        drawn.append(list(generator.tokens([5, 6, 7], 10)))
    assert drawn[0] == drawn[1] != drawn[2]


def test_temperature_draws_as_often_as_softmax_says(small):
    path, metadata, weights = small
    file = files.load(path)
    generator = Generator(Llama(file.config, file.weights, ROWS), temperature=0.7)
    share = reference.softmax(reference.forward(metadata, weights, [9, 8])[-1] / 0.7)
    top = int(share.argmax())
    Tensor.manual_seed(0)
    hits = sum(next(generator.tokens([9, 8], 1)) == top for _ in range(200))
    assert abs(hits / 200 - share[top]) < 4 * (share[top] * (1 - share[top]) / 200) ** 0.5


def test_a_request_longer_than_the_cache_is_one_error(small):
    file = files.load(small[0])
    generator = Generator(Llama(file.config, file.weights, ROWS))
    with pytest.raises(
        ModelError, match="250 tokens of prompt and 10 to come do not fit into a context of 256"
    ):
        next(generator.tokens([5] * 250, 10))
    with pytest.raises(ModelError, match="the prompt is empty"):
        next(generator.tokens([], 10))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2' is not supported"),
        ({"hidden_act": "gelu"}, "activation 'gelu' is not supported"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope scaling 'yarn' is not supported"),
        ({"quantization_config": {}}, "quantised safetensors are not read"),
        ({"hidden_size": "64"}, "hidden_size is '64', a positive integer is needed"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0, a positive integer"),
        ({"vocab_size": None}, "vocab_size is None, a positive integer"),
        ({"num_hidden_layers": 3}, "weight blk.2.attn_norm.weight .* is missing"),
        (
            {"intermediate_size": 97},
            r"blk.0.ffn_gate.weight has shape \(96, 64\), the model's sizes ask for \(97, 64\)",
        ),
    ],
)
def test_folders_that_cannot_run_say_why(tmp_path, changes, message):
    folder = small_models.write_folder(tmp_path / "model", small_models.random_weights(), 1, **changes)
    with pytest.raises(ModelError, match=message):
        file = files.load(folder)
        Llama(file.config, file.weights, ROWS)


@pytest.mark.parametrize(("name", "text", "message"), [
    ("config.json", "", "config.json: is no JSON"), ("config.json", "[]", "holds a list"),
    ("tokenizer.json", "", "is no tokenizer"), ("tokenizer_config.json", "{", "_config.json: is no JSON"),
    ("model.safetensors.index.json", "{", "index.json: is no JSON")])
def test_damaged_files_of_a_folder_are_named(tmp_path, name, text, message):
    folder = small_models.write_folder(tmp_path / "model", small_models.random_weights())
    (folder / name).write_text(text)
    with pytest.raises((ModelError, ValueError), match=message):
        files.load(folder)


def test_rope_scaling_of_llama3_keeps_fast_pairs_and_slows_slow_ones():
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    plain, scaled = files.rope_frequencies(5e5, 128, {}), files.rope_frequencies(5e5, 128, scaling)
    assert scaled[0] == plain[0] and scaled[-1] == plain[-1] / 8
    assert all(p / 8 <= s <= p for s, p in zip(scaled, plain, strict=True))
    assert files.rope_frequencies(1e4, 8, {"type": "linear", "factor": 2.0})[0] == 0.5


@pytest.fixture(scope="module")
def smollm():
    file = files.load(files.default_model())
    return file, Llama(file.config, file.weights, 256 + max(CHUNKS))


def test_smollm_gives_the_known_logits(smollm):
    made = logits_after(smollm[1], expected.PROMPT_IDS, 8)
    assert np.argsort(-made)[:5].tolist() == list(expected.TOP_FIVE)
    np.testing.assert_allclose(made[list(expected.TOP_FIVE)], list(expected.TOP_FIVE.values()), rtol=1e-3)


def test_smollm_goes_on_as_known(smollm):
    file, model = smollm
    made = list(Generator(model).tokens(expected.PROMPT_IDS, 40, file.tokenizer.end))
    assert made == expected.GREEDY_IDS


def test_a_prompt_is_fed_in_pieces_that_are_at_least_half_full():
    """But for a last one that is smaller than the smallest size."""
    for length in range(1, 400):
        rest = length
        while rest:
            size = chunk_size(rest)
            assert size in CHUNKS
            assert 2 * rest >= size or size == CHUNKS[0]
            rest -= min(size, rest)


def test_a_long_prompt_in_large_pieces_and_in_small_ones(smollm, monkeypatch):
    """The same tokens follow, whatever the pieces: 141 = 128 + 8 + 5, or 8 at a time."""
    prompt = (expected.PROMPT_IDS * 30)[:141]
    first = list(Generator(smollm[1]).tokens(prompt, 3))
    monkeypatch.setattr("tiny.llm.generate.CHUNKS", (8,))
    assert list(Generator(smollm[1]).tokens(prompt, 3)) == first
