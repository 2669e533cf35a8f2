"""Files of words with tags, and every way in which they can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.base.errors import HeadcountError
from headcount.tasks import open_task
from headcount.tasks.tagged import read_tagged


def test_sentences_end_with_an_empty_line_or_one_of_a_tab(tmp_path: Path) -> None:
    path = tmp_path / "dev.conll"
    path.write_text("-DOCSTART- O\n\nEU\tB-org\nsays\tO\n\t\nno\tO\n", encoding="utf-8")
    sentences = [(["EU", "says"], ["B-org", "O"]), (["no"], ["O"])]
    assert read_tagged(path) == sentences
    path.write_text("EU NNP B-org\nsays VBZ O\n\n\nno DT O", encoding="utf-8")
    assert read_tagged(path) == sentences
    other = tmp_path / "dev.jsonl"
    rows = [{"tokens": words, "tags": tags} for words, tags in sentences]
    other.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    assert read_tagged(other) == sentences


def test_the_tags_of_all_splits_are_the_classes(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("a B-x\nb O\n", encoding="utf-8")
    (tmp_path / "dev.conll").write_text("c B-a\n", encoding="utf-8")
    task = open_task("token-classification", data=tmp_path)
    assert task.labels == ("O", "B-a", "B-x")
    assert task.metrics == ("entity_f1", "token_accuracy")
    assert task.load("train").texts == (["a b"], ["B-x O"])
    (tmp_path / "train.conll").write_text("a NOUN\n", encoding="utf-8")
    (tmp_path / "dev.conll").write_text("c VERB\n", encoding="utf-8")
    assert open_task("token-classification", data=tmp_path).metrics == ("token_accuracy",)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("dev.conll", "a O\nb\n", "line 2 has 1 columns, and a line is a word"),
        ("dev.conll", "a X O\nb O\n", "line 2 has 2 columns.* 1 more columns, its tag at the end"),
        ("dev.conll", "a\tO\nb c\tO\n", "line 2 has the word 'b c': it is empty or has a space"),
        ("dev.conll", "a\t\n", "line 1 has the tag ''"),
        ("dev.conll", "\n\t\n", "has no sentence"),
        ("dev.jsonl", '{"tokens": ["a"]', "line 1 is not JSON"),
        ("dev.jsonl", '{"tokens": ["a"]}', "no JSON object with 'tokens' and 'tags'"),
        ("dev.jsonl", '{"tokens": ["a"], "tags": [1]}', "'tags' is a list of texts"),
        ("dev.jsonl", '{"tokens": ["a"], "tags": []}', "1 words and 0 tags"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(HeadcountError, match=says):
        open_task("token-classification", data=tmp_path / name)


def test_without_files_it_says_what_it_reads() -> None:
    with pytest.raises(HeadcountError, match="CoNLL's columns or as JSON lines"):
        open_task("token-classification")
