"""Text to token ids and back, built from a GGUF file's metadata or a Hugging Face folder.

The merging itself is done by the `tokenizers` package; this file says which pieces a model's vocabulary
needs.
"""
import json
from collections.abc import Sequence
from pathlib import Path

from tiny.llm.errors import ModelError

try:
    import tokenizers
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
except ImportError:  # the extra is optional: tiny without a language model is tiny
    tokenizers = None

# How text is cut into words before merging, by the name in `tokenizer.ggml.pre`. The expressions are those
# of the models' own tokenizer.json files: GPT-2's, and LLaMA 3's, which keeps line ends with the punctuation
# before them.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_WORDS = {"gpt-2": (_GPT2,), "default": (_GPT2,), "smollm": (r"\p{N}", _GPT2), "llama-bpe": (_LLAMA3,),
          "llama3": (_LLAMA3,), "llama-v3": (_LLAMA3,), "qwen2": (_LLAMA3.replace("{1,3}", ""),)}
_KEEPS_WHOLE_WORDS = ("llama-bpe", "llama3", "llama-v3")  # a word that is in the vocabulary is not merged up
_CONTROL, _USER_DEFINED = 3, 4  # tokenizer.ggml.token_type, gguf-py constants.py: TokenType
_SPACE = "\u2581"                                           # how SentencePiece writes a space
_END_NAMES = ("<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "</s>")


class Tokenizer:
    """One vocabulary.

    begin     ids that stand before any prompt (the begin-of-text token, or nothing)
    end       ids after which generation stops
    template  the chat template, Jinja source, or None
    """

    def __init__(self, backend, begin: Sequence[int], end: frozenset[int], template: str | None):
        self._backend = backend
        self.begin = list(begin)
        self.end = end
        self.template = template

    @property
    def size(self) -> int:
        return self._backend.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt; special tokens written out in the text count as such."""
        ids = self._backend.encode(text, add_special_tokens=False).ids
        return ids if ids[:len(self.begin)] == self.begin else self.begin + ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens left out."""
        return self._backend.decode(list(ids), skip_special_tokens=True)

    def name(self, token: int) -> str:
        """A token as the vocabulary spells it; the empty string for an id outside."""
        return self._backend.id_to_token(token) or ""


class TextStream:
    """Turns ids into text as they come; a character whose bytes are not all there yet is held back."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._done = 0                                      # ids before this one have been given out as text

    def feed(self, token: int) -> str:
        """The text that `token` completes; empty while a character is cut in two."""
        self._ids.append(token)
        text = self._fresh_text()
        if text.endswith("\ufffd"):
            return ""
        self._done = len(self._ids)
        return text

    def flush(self) -> str:
        """What is still held back when the stream ends, with U+FFFD where bytes are missing."""
        text = self._fresh_text()
        self._done = len(self._ids)
        return text

    def _fresh_text(self) -> str:
        """The text of the ids not given out; decoded after a few older ones, for a first word may lose its
        space."""
        before = max(self._done - 4, 0)
        known = self._tokenizer.decode(self._ids[before:self._done])
        return self._tokenizer.decode(self._ids[before:])[len(known):]


def from_gguf(metadata: dict) -> Tokenizer:
    """The tokenizer that a GGUF file describes: byte-level BPE (`gpt2`) or SentencePiece BPE (`llama`)."""
    _require_package()
    kind = metadata.get("tokenizer.ggml.model")
    tokens = metadata.get("tokenizer.ggml.tokens")
    if tokens is None:
        raise ModelError(
            "tokenizer: the file has no tokenizer.ggml.tokens; take a GGUF that carries its vocabulary"
        )
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if kind == "gpt2":
        backend = _byte_level(vocabulary, metadata)
    elif kind == "llama":
        backend = _sentence_piece(vocabulary, metadata)
    else:
        raise ModelError(
            f"tokenizer: kind {kind!r} is not known; supported: gpt2 (byte-level BPE), llama (SentencePiece)"
        )
    types = metadata.get("tokenizer.ggml.token_type", ())
    special = [
        (token, code) for token, code in zip(tokens, types, strict=False) if code in (_CONTROL, _USER_DEFINED)
    ]
    backend.add_special_tokens(
        [AddedToken(token, normalized=False) for token, code in special if code == _CONTROL]
    )
    backend.add_tokens(
        [AddedToken(token, normalized=False) for token, code in special if code == _USER_DEFINED]
    )
    begin = metadata.get("tokenizer.ggml.bos_token_id")
    wants_begin = metadata.get("tokenizer.ggml.add_bos_token",
                               kind == "llama" or metadata.get("tokenizer.ggml.pre") in _KEEPS_WHOLE_WORDS)
    end = {metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")}
    end.update(vocabulary[name] for name in ("<|im_end|>", "<|eot_id|>") if name in vocabulary)
    return Tokenizer(backend, [begin] if wants_begin and begin is not None else [], frozenset(end - {None}),
                     metadata.get("tokenizer.chat_template"))


def from_folder(folder: Path) -> Tokenizer:
    """The tokenizer of a Hugging Face folder: tokenizer.json, and tokenizer_config.json for the chat
    template."""
    _require_package()
    path = folder / "tokenizer.json"
    if not path.exists():
        raise ModelError(
            f"{folder}: no tokenizer.json there; save the tokenizer in its fast form beside the weights"
        )
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:                              # the package raises nothing narrower
        raise ModelError(f"{path}: is no tokenizer ({error}); is the download complete?") from error
    config = read_json(folder / "tokenizer_config.json")
    end = set()
    for source in (read_json(folder / "config.json"), read_json(folder / "generation_config.json")):
        stated = source.get("eos_token_id")
        end.update(stated if isinstance(stated, list) else [] if stated is None else [stated])
    if not end:
        end.update(number for name in _END_NAMES if (number := backend.token_to_id(name)) is not None)
    template = config.get("chat_template")
    if isinstance(template, list):                          # several named ones
        template = next((item["template"] for item in template if item["name"] == "default"), None)
    if template is None and (folder / "chat_template.jinja").exists():
        template = (folder / "chat_template.jinja").read_text()
    return Tokenizer(backend, backend.encode("").ids, frozenset(end), template)


def _require_package() -> None:
    if tokenizers is None:
        raise ModelError(
            "the Python package 'tokenizers' is missing; install it with: pip install tokenizers"
        )


def read_json(path: Path) -> dict:
    """The object in a JSON file, {} if the file does not exist. ModelError for what is no object."""
    try:
        stated = json.loads(path.read_text()) if path.exists() else {}
    except ValueError as error:
        raise ModelError(f"{path}: is no JSON ({error}); is the download complete?") from error
    if not isinstance(stated, dict):
        raise ModelError(f"{path}: a JSON object is needed, it holds a {type(stated).__name__}")
    return stated


def _byte_level(vocabulary: dict[str, int], metadata: dict):
    """GPT-2's scheme: every byte is a printable character, words are cut first, then pairs merge by rank."""
    pre = metadata.get("tokenizer.ggml.pre", "default")
    if pre not in _WORDS:
        raise ModelError(f"tokenizer: word splitting {pre!r} is not known; supported: {', '.join(_WORDS)}")
    merges = [tuple(merge.split(" ", 1)) for merge in metadata.get("tokenizer.ggml.merges", ())]
    backend = tokenizers.Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre in _KEEPS_WHOLE_WORDS)
    )
    cuts = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in _WORDS[pre]]
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*cuts, to_bytes])
    backend.decoder = decoders.ByteLevel()
    return backend


def _sentence_piece(vocabulary: dict[str, int], metadata: dict):
    """SentencePiece's BPE: a pair merges where the joined piece is in the vocabulary, the best score
    first."""
    scores = metadata["tokenizer.ggml.scores"]
    ranked = []
    for piece, number in vocabulary.items():
        pairs = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        ranked += [
            (-scores[number], vocabulary[left], vocabulary[right], (left, right))
            for left, right in pairs
            if left in vocabulary and right in vocabulary
        ]
    merges = [pair for *_, pair in sorted(ranked)]
    backend = tokenizers.Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    )
    prefix = [normalizers.Prepend(_SPACE)] if metadata.get("tokenizer.ggml.add_space_prefix", True) else []
    backend.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", _SPACE)])
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    backend.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    return backend
