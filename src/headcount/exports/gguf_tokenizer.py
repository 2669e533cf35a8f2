"""A Hugging Face tokenizer in the words of llama.cpp, which knows how texts are split by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedTokenizerBase

from headcount.base.errors import UnsupportedError
from headcount.base.json_object import JsonDict

if TYPE_CHECKING:
    from gguf import GGUFWriter

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_BYTES = {"type": "ByteLevel", "add_prefix_space": False}
SPLITS: dict[str, list[dict[str, object]]] = {
    "gpt-2": [{**_BYTES, "use_regex": True}],
    "smollm": [{"type": "Digits", "individual_digits": True}, {**_BYTES, "use_regex": True}],
    "llama-bpe": [
        {"type": "Split", "pattern": {"Regex": rf"{_CONTRACTIONS}\p{{N}}{{1,3}}{_REST}"}},
        {**_BYTES, "use_regex": False},
    ],
    "qwen2": [
        {"type": "Split", "pattern": {"Regex": rf"{_CONTRACTIONS}\p{{N}}{_REST}"}},
        {**_BYTES, "use_regex": False},
    ],
}
"""How texts are split before their bytes are merged: llama.cpp's names, tokenizer.json's steps."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""llama.cpp's types of tokens."""
RAREST = -1e6


def add_tokenizer(writer: GGUFWriter, tokenizer: PreTrainedTokenizerBase, rows: int) -> None:
    """Tokens, merges and special tokens, for a model with `rows` embeddings."""
    content = _content(tokenizer)
    model = content["model"]
    byte_level = _split_name(content)
    tokens, types = _tokens(content, rows)
    merges = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    if byte_level:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(byte_level)
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_token_merges([" ".join(pair) for pair in merges])
    else:
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list(tokens)
        writer.add_token_scores(_scores(tokens, merges))
        writer.add_token_types(types)
        writer.add_add_space_prefix(_prefixed(content))
    for name in ("bos", "eos", "unk", "pad"):
        number = getattr(tokenizer, f"{name}_token_id")
        if isinstance(number, int) and number < rows:
            getattr(writer, f"add_{name}_token_id")(number)
    ids = tokenizer("a")["input_ids"]
    writer.add_add_bos_token(ids[0] == tokenizer.bos_token_id)
    writer.add_add_eos_token(ids[-1] == tokenizer.eos_token_id)
    if isinstance(template := getattr(tokenizer, "chat_template", None), str):
        writer.add_chat_template(template)


def _content(tokenizer: PreTrainedTokenizerBase) -> JsonDict:
    """What tokenizer.json holds."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise _unknown("it is not a fast one (tokenizer.json)")
    return json.loads(backend.to_str())


def _split_name(content: Mapping[str, Any]) -> str:
    """llama.cpp's name for how texts are split, empty for SentencePiece's pieces."""
    model = content["model"]
    kind = model.get("type")
    if kind != "BPE":
        raise _unknown(f"its model is {kind}, not BPE")
    if model.get("byte_fallback"):
        _prefixed(content)
        return ""
    first: JsonDict = content.get("pre_tokenizer") or {"type": "none"}
    steps: list[JsonDict] = first.get("pretokenizers", [first])
    name = next((name for name, known in SPLITS.items() if _same(steps, known)), None)
    if name is None:
        kinds = ", ".join(step["type"] for step in steps)
        raise _unknown(f"it splits texts by {kinds} in another way")
    normalizer = (content.get("normalizer") or {"type": "NFC"})["type"]
    if normalizer != "NFC":
        raise _unknown(f"it normalises texts ({normalizer})")
    if bool(model.get("ignore_merges")) != (name == "llama-bpe"):
        raise _unknown("it merges words that are tokens in another way")
    return name


def _same(steps: list[JsonDict], known: list[JsonDict]) -> bool:
    return len(steps) == len(known) and all(
        all(step.get(key) == value for key, value in other.items())
        for step, other in zip(steps, known, strict=True)
    )


def _prefixed(content: Mapping[str, Any]) -> bool:
    """Whether a space goes before a text, of a tokenizer that writes spaces as SentencePiece."""
    steps: list[JsonDict] = []
    for part in ("normalizer", "pre_tokenizer"):
        step = content.get(part) or {}
        steps += step.get("normalizers") or step.get("pretokenizers") or ([step] if step else [])
    kinds = [step["type"] for step in steps]
    if kinds == ["Metaspace"] and not steps[0].get("split", True):
        return steps[0].get("prepend_scheme") != "never"
    if kinds in (["Prepend", "Replace"], ["Replace"]) and steps[-1]["content"] == "▁":
        return kinds[0] == "Prepend"
    raise _unknown(f"it falls back to bytes and splits texts by {', '.join(kinds) or 'nothing'}")


def _tokens(content: Mapping[str, Any], rows: int) -> tuple[list[str], list[int]]:
    """Every row's token and its type; rows beyond the vocabulary have one that no text has."""
    numbers = dict(content["model"]["vocab"])
    types = dict.fromkeys(numbers.values(), NORMAL)
    if content["model"].get("byte_fallback"):
        types |= {numbers[name]: BYTE for n in range(256) if (name := f"<0x{n:02X}>") in numbers}
    for token in content.get("added_tokens", ()):
        numbers[token["content"]] = token["id"]
        types[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    unknown = content["model"].get("unk_token")
    if unknown in numbers:
        types[numbers[unknown]] = UNKNOWN
    if max(types, default=0) >= rows:
        raise _unknown(f"it has {max(types) + 1} tokens, and the model {rows} embeddings")
    names = {number: name for name, number in numbers.items()}
    return (
        [names.get(row, f"[PAD{row}]") for row in range(rows)],
        [types.get(row, UNUSED) for row in range(rows)],
    )


def _scores(tokens: list[str], merges: list[list[str]]) -> list[float]:
    """SentencePiece's scores, the highest merged first: minus the place of a token's merge."""
    places: dict[str, int] = {}
    last = ""
    for number, (left, right) in enumerate(merges):
        if (piece := left + right) != last and piece in places:
            raise _unknown("its merges are not in the order of their pieces")
        places.setdefault(piece, number)
        last = piece
    return [-float(places[token]) if token in places else RAREST for token in tokens]


def _unknown(reason: str) -> UnsupportedError:
    known = ", ".join(SPLITS)
    return UnsupportedError(
        f"headcount cannot write this tokenizer for llama.cpp: {reason}. Known are byte-level BPE "
        f"split as {known}, and SentencePiece BPE (Llama 2, Mistral, Yi, TinyLlama)."
    )
