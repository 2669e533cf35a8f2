"""Damaged tokenizers, when they are loaded (tasks/loading.py) and used (tasks/encoding.py)."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from fuzz.readers import tokenizer_files
from headcount.errors import HeadcountError, NotFoundError
from headcount.tasks.encoding import encode_texts
from headcount.tasks.loading import load_tokenizer


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda words: words["post_processor"]["single"].pop(), None),
        (lambda words: words["post_processor"].update(single=PANICS), "No tokenizer in .*fails"),
        (lambda words: words["post_processor"].update(pair=PANICS), "The tokenizer fails"),
        (lambda words: words.update(model=7), "No tokenizer in .*fails"),
        (lambda words: words.update(added_tokens="x"), "No tokenizer in .*fails"),
    ],
)
def test_a_damaged_tokenizer_is_one_sentence(tmp_path, change, said) -> None:
    """The second and third panic in Rust, when the tokenizer is tried and when it is used."""
    for name, data in tokenizer_files().items():
        (tmp_path / name).write_bytes(data)
    words = json.loads((tmp_path / "tokenizer.json").read_text())
    change(words)
    (tmp_path / "tokenizer.json").write_text(json.dumps(words))
    refused = pytest.raises(HeadcountError, match=said) if said else nullcontext()
    with refused:
        encode_texts([("the cat", "cats")], load_tokenizer(tmp_path))


PANICS = [{"SpecialToken": {"id": "[NONE]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
"""A template with a token that is not among the special ones."""


def test_nothing_is_asked_on_the_terminal(tmp_path, monkeypatch) -> None:
    for name, data in tokenizer_files().items():
        (tmp_path / name).write_bytes(data)
    about = json.loads((tmp_path / "tokenizer_config.json").read_text())
    about["auto_map"] = {"AutoTokenizer": ["code.Words", None]}
    about["tokenizer_class"] = "Words"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(about))
    (tmp_path / "code.py").write_text("raise SystemExit('it was run')")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on the terminal"))
    with pytest.raises(NotFoundError, match="contains custom code"):
        load_tokenizer(tmp_path)
