"""SQuAD's files as they may be, and its script's counts by hand and by the script's own words."""

from __future__ import annotations

import collections
import json
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.base.errors import HeadcountError, UsageError
from headcount.tasks import open_task
from headcount.tasks.squad import answer_scores, normalized, read_answers, read_squad

CONTEXT = "In 1867 the Bell rang twice. Nobody heard it."


def question(**changes: Any) -> dict[str, Any]:
    answers = [{"text": "the Bell", "answer_start": 8}, {"text": "Bell", "answer_start": 12}]
    return {"id": "q1", "question": "What rang?", "answers": answers, **changes}


def write(path: Path, *questions: dict[str, Any], context: str = CONTEXT) -> Path:
    paragraphs = [{"context": context, "qas": list(questions)}]
    path.write_text(json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]}))
    return path


def script(said: str, golds: list[str]) -> tuple[float, float]:
    """The functions of evaluate-v2.0.py, as they are published."""

    def normalize(text: str) -> str:
        text = "".join(mark for mark in text.lower() if mark not in set(string.punctuation))
        return " ".join(re.compile(r"\b(a|an|the)\b", re.UNICODE).sub(" ", text).split())

    def f1(gold: str) -> float:
        wanted, words = normalize(gold).split(), normalize(said).split()
        common = collections.Counter(wanted) & collections.Counter(words)
        same = sum(common.values())
        if len(wanted) == 0 or len(words) == 0:
            return float(wanted == words)
        if same == 0:
            return 0.0
        precision, recall = 1.0 * same / len(words), 1.0 * same / len(wanted)
        return (2 * precision * recall) / (precision + recall)

    golds = [gold for gold in golds if normalize(gold)] or [""]
    exact = max(int(normalize(gold) == normalize(said)) for gold in golds)
    return max(f1(gold) for gold in golds), float(exact)


texts = st.lists(
    st.sampled_from(["the", "a", "Bell", "bell.", "an", "rang", "1,000", "", "-", "Theatre"]),
    max_size=5,
).map(" ".join)


@settings(max_examples=200)
@given(said=texts, golds=st.lists(texts, max_size=3))
def test_scores_are_those_of_the_script(said: str, golds: list[str]) -> None:
    assert answer_scores(said, golds) == pytest.approx(script(said, golds))


def test_small_cases_by_hand() -> None:
    assert normalized("The  Bell's, an A-Theatre!") == "bells atheatre"
    assert answer_scores("Bell rang", ["the bell", "bell tower rang out"]) == (2 / 3, 0.0)
    assert answer_scores("The Bell", ["clock", "bell."]) == (1.0, 1.0)
    assert answer_scores("bell", []) == (0.0, 0.0)
    assert answer_scores("", ["bell"]) == (0.0, 0.0)


def test_questions_of_both_versions(tmp_path: Path) -> None:
    none = question(id="q2", answers=[], is_impossible=True, plausible_answers=[{"odd": 1}])
    rows = read_squad(write(tmp_path / "dev.json", question(), none))
    assert rows.texts[0] == ["What rang?"] * 2
    assert rows.texts[1] == [CONTEXT] * 2
    assert read_answers(str(rows.texts[2][0])) == ([("the Bell", 8), ("Bell", 12)], False)
    assert read_answers(str(rows.texts[2][1])) == ([], True)


def test_official_names_and_questions_of_a_context_stay_together(tmp_path: Path) -> None:
    write(tmp_path / "train-v2.0.json", question())
    write(tmp_path / "dev-v2.0.json", question(), question(id="q2"))
    task = open_task("question-answering", data=tmp_path)
    assert [len(task.load(split)) for split in ("train", "dev")] == [1, 2]
    paragraphs = [
        {"context": f"{number} {CONTEXT}", "qas": [question(answers=[{"text": "the Bell",
         "answer_start": 10 + (number > 9)}], question=f"{n}?") for n in range(5)]}
        for number in range(20)
    ]  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    task = open_task("question-answering", data=tmp_path / "one.json")
    sides = [set(task.load(split).texts[1]) for split in ("train", "dev")]
    assert not sides[0] & sides[1]
    assert len(sides[0] | sides[1]) == 20
    halves = [set(task.load(f"train:{side}:0.5:0").texts[1]) for side in ("selection", "held-out")]
    assert not halves[0] & halves[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": [{"text": "Bell", "answer_start": 11}]}, "'Bell' at answer_start 11, where"),
        ({"answers": [{"text": "Bell", "answer_start": -4}]}, "at answer_start -4"),
        ({"answers": [{"text": "Bell", "answer_start": "12"}]}, "context has nothing"),
        ({"answers": [{"text": "Bell"}]}, "at answer_start None"),
        ({"answers": [{"text": " ", "answer_start": 2}]}, "an answer without text"),
        ({"answers": []}, "has no answers, and does not say that is_impossible"),
        ({"answers": [], "is_impossible": False}, "does not say that is_impossible"),
        ({"answers": "Bell"}, "has no list 'answers'"),
        ({"question": 7}, "has no text 'question'"),
    ],
)
def test_broken_questions(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "dev.json", question(), question(id="q7", **changes))
    with pytest.raises(UsageError, match=message) as refused:
        open_task("question-answering", data=path)
    assert "paragraph 1, question 'q7'" in str(refused.value)


def test_broken_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="paragraph 1, has an empty context"):
        read_squad(write(tmp_path / "dev.json", question(), context=" \n"))
    for text, message in (
        ("[]", "has no list 'data', as SQuAD's JSON has"),
        ('{"data": [{"title": "x"}]}', "article 1 has no list 'paragraphs'"),
        ('{"data": []}', "has no question"),
        ('{"data": [', "is no file of SQuAD"),
    ):
        (tmp_path / "dev.json").write_text(text)
        with pytest.raises(HeadcountError, match=message):
            read_squad(tmp_path / "dev.json")
    with pytest.raises(UsageError, match="and no --columns"):
        open_task("question-answering", data=tmp_path / "dev.json", columns=("a", "b"))
    with pytest.raises(UsageError, match="pass --data DIR or FILE"):
        open_task("question-answering")
