"""Tokenizers from metadata: known ids, an independent SentencePiece merge, characters cut in two, chat
layouts."""
import gguf
import pytest

from tests.llm import expected
from tiny.llm import chat, tokenizer
from tiny.llm.errors import ModelError
from tiny.llm.files import default_model


@pytest.fixture(scope="module")
def metadata():
    return {name: field.contents() for name, field in gguf.GGUFReader(default_model()).fields.items()}


@pytest.fixture(scope="module")
def smollm(metadata):
    return tokenizer.from_gguf(metadata)


def test_known_prompt_gives_known_ids(smollm):
    assert smollm.encode(expected.PROMPT) == expected.PROMPT_IDS
    assert smollm.decode(expected.GREEDY_IDS) == expected.GREEDY_TEXT
    assert expected.GREEDY_IDS[-1] in smollm.end


@pytest.mark.parametrize(
    "text", ["", "a  b", "1234 apples", "tabs\tand\r\n\r\nlines", "naïve café — 日本語 🙂👩‍🚀", "don't  stop"]
)
def test_text_survives_the_round_trip(smollm, text):
    assert smollm.decode(smollm.encode(text)) == text


def test_digits_stand_alone(smollm):
    assert [smollm.name(token) for token in smollm.encode("2024")] == ["2", "0", "2", "4"]


def test_streaming_holds_back_a_character_cut_in_two(smollm):
    text = "ok 🙂 日本語!"
    stream = tokenizer.TextStream(smollm)
    ids = smollm.encode(text)
    pieces = [stream.feed(token) for token in ids]
    assert "".join(pieces) + stream.flush() == text
    assert "" in pieces and not any("\ufffd" in piece for piece in pieces)


def test_streaming_gives_out_what_is_left_at_the_end(smollm):
    stream = tokenizer.TextStream(smollm)
    assert stream.feed(smollm.encode("🙂")[0]) == ""
    assert stream.flush() == "\ufffd"


def merge_by_score(text: str, scores: dict[str, float]) -> list[str]:
    """SentencePiece's algorithm in its plainest form: join the neighbours whose union scores best, leftmost
    first."""
    pieces = list("\u2581" + text.replace(" ", "\u2581"))
    while True:
        joined = [
            (scores[a + b], -i)
            for i, (a, b) in enumerate(zip(pieces, pieces[1:], strict=False))
            if a + b in scores
        ]
        if not joined:
            return pieces
        at = -max(joined)[1]
        pieces[at:at + 2] = [pieces[at] + pieces[at + 1]]


def test_sentence_piece_merges_by_score():
    words = ["ab", "bc", "abc", "\u2581a", "\u2581ab", "ca", "cab", "bb", "\u2581b", "aa", "aab"]
    letters = ["a", "b", "c", "\u2581"]
    tokens = ["<unk>", "<s>", "</s>", *letters, *words]
    scores = [0.0, 0.0, 0.0, *(-100.0,) * len(letters), *(-float(i) for i in range(len(words)))]
    made = tokenizer.from_gguf({
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [2, 3, 3, *(1,) * (len(tokens) - 3)], "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2})
    by_name = dict(zip(words, scores[7:], strict=True))
    for text in ("abc cab", "aab bca", "abab", "cc aa bb", "b a abc"):
        assert made.encode(text) == [1, *(tokens.index(piece) for piece in merge_by_score(text, by_name))]
        assert made.decode(made.encode(text)) == text


@pytest.mark.parametrize(("change", "message"), [
    ({"tokenizer.ggml.model": "rwkv"}, "kind 'rwkv' is not known"),
    ({"tokenizer.ggml.pre": "tekken"}, "word splitting 'tekken' is not known"),
    ({"tokenizer.ggml.tokens": None}, "no tokenizer.ggml.tokens")])
def test_unknown_kinds_are_named(metadata, change, message):
    with pytest.raises(ModelError, match=message):
        tokenizer.from_gguf({**metadata, **change})


def test_folder_without_tokenizer_is_named(tmp_path):
    with pytest.raises(ModelError, match="no tokenizer.json there"):
        tokenizer.from_folder(tmp_path)


def test_chat_with_and_without_jinja_agree(smollm):
    messages = [{"role": "user", "content": expected.CHAT_PROMPT}]
    made = chat.render(smollm.template, messages)
    assert made == chat.render_plainly(smollm.template, messages)
    assert made.startswith("<|im_start|>system\nYou are a helpful") and made.endswith(
        "<|im_start|>assistant\n"
    )
    assert smollm.encode(made)[0] == 1                      # <|im_start|> is one token


@pytest.mark.parametrize(("template", "prompt"), [
    ("<|start_header_id|>", "B<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
                            "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    ("[INST]", "B[INST] hi [/INST]")])
def test_chat_layouts_without_jinja(template, prompt):
    assert chat.render_plainly(template, [{"role": "user", "content": "hi"}], "B", "E") == prompt


def test_chat_without_a_template_says_so():
    with pytest.raises(ModelError, match="no chat template"):
        chat.render(None, [])
    with pytest.raises(ModelError, match="pip install jinja2"):
        chat.render_plainly("{{ strange }}", [])


def test_chat_template_that_fails_is_one_line():
    with pytest.raises(ModelError, match="template fails: no tools"):
        chat.render("{{ raise_exception('no tools') }}", [])
