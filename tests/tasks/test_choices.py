"""Files of prompts with choices, and every way in which they can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headcount.base.errors import HeadcountError, UsageError
from headcount.tasks import open_task

ROWS = [
    {"prompt": f"It is {n}.", "choices": ["yes", "no", "maybe"][: 2 + n % 2], "answer": n % 2}
    for n in range(6)
]
PIQA = [{"goal": f"Do {n}", "sol1": f"a {n}", "sol2": f"b {n}"} for n in range(6)]
COLUMNS = ["goal", "sol1", "sol2"]


def written(path: Path, rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_prompts_choices_and_answers_of_json_lines(tmp_path: Path) -> None:
    written(tmp_path / "train.jsonl", ROWS)
    other = [{"q": "one\n", "options": ["a", "b c"], "right": "1"}]
    task = open_task("multiple-choice", data=written(tmp_path / "dev.jsonl", ROWS))
    assert task.splits == ("train", "dev", "all")  # a single file is split
    rows = task.load("all")
    assert rows.texts[0][1] == "It is 1."
    assert [json.loads(str(text)) for text in rows.texts[1][:2]] == [
        ["yes", "no"], ["yes", "no", "maybe"]
    ]  # fmt: skip
    assert rows.labels.tolist() == [0, 1, 0, 1, 0, 1]  # pyright: ignore[reportOptionalMemberAccess]
    dev = written(tmp_path / "dev.jsonl", other)
    task = open_task(
        "multiple-choice", data=tmp_path, train=written(tmp_path / "t.jsonl", other), dev=dev,
        columns=["q", "options"], label="right", template="Q: {}\\nA:",
    )  # fmt: skip
    assert task.splits == ("train", "dev")
    assert (task.load("dev").texts[0], task.metrics) == (["Q: one\n\nA:"], ("acc", "acc_norm"))


def test_answers_in_a_file_of_their_own(tmp_path: Path) -> None:
    written(tmp_path / "valid.jsonl", PIQA)
    labels = tmp_path / "valid-labels.lst"
    labels.write_text("0\n1\n1\n0\n1\n0\n")
    rows = open_task("multiple-choice", data=tmp_path, columns=COLUMNS).load("all")
    assert rows.labels.tolist() == [0, 1, 1, 0, 1, 0]  # pyright: ignore[reportOptionalMemberAccess]
    assert rows.texts[1][0] == '["a 0", "b 0"]'
    labels.write_text("0\n1\n")
    with pytest.raises(UsageError, match=r"lst' has 2 answers, and 'valid.jsonl' has 6 rows"):
        open_task("multiple-choice", data=tmp_path, columns=COLUMNS)
    # a study knows one file by its content, and would not see another one change
    with pytest.raises(UsageError, match=r"line 1 has no answer: --label names.* --data FOLDER"):
        open_task("multiple-choice", data=tmp_path / "valid.jsonl", columns=COLUMNS)


def test_the_columns_of_a_table(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(
        "goal,sol1,sol2,label\n" + "".join(f"do {n},a {n},b {n},{n % 2}\n" for n in range(6))
    )
    task = open_task("multiple-choice", data=file, columns=COLUMNS, label="label")
    assert task.load("all").texts[1][3] == '["a 3", "b 3"]'
    file.write_text(file.read_text() + "do 7,,b,0\n")
    with pytest.raises(UsageError, match=r"Row 7 of .* has an empty choice"):
        open_task("multiple-choice", data=file, columns=COLUMNS, label="label")
    with pytest.raises(UsageError, match="columns of their own: pass --columns PROMPT FIRST"):
        open_task("multiple-choice", data=file, columns=["goal", "sol1"], label="label")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": " "}, "Row 7 of .* has an empty prompt"),
        ({"prompt": 3}, "line 7: a prompt and its choices are texts"),
        ({"choices": ["one"]}, "Row 7 of .* has 1 choices: there is nothing to choose"),
        ({"choices": []}, "has 0 choices"),
        ({"choices": ["a", ""]}, "has an empty choice"),
        ({"choices": ["a", None]}, "line 7: a prompt and its choices are texts"),
        ({"choices": "ab"}, "line 7: 'choices' is a list"),
        ({"answer": 2}, "has the answer 2, and its choices are numbered from 0 to 1"),
        ({"answer": -1}, "the answer -1"),
        ({"answer": True}, "the answer True"),
        ({"answer": 1.0}, "the answer 1.0"),
        ({"answer": "B"}, "the answer 'B'"),
        ({"answer": None}, "the answer None"),
    ],
)
def test_rows_that_cannot_be_scored(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    right = {"prompt": "It is.", "choices": ["yes", "no"], "answer": 0}
    path = written(tmp_path / "dev.jsonl", [*ROWS, right | row])
    with pytest.raises(UsageError, match=message):
        open_task("multiple-choice", data=path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]\n", "line 7 is not a JSON object"),
        ("{\n", "line 7 is not JSON"),
        (json.dumps(PIQA[0]) + "\n", "line 7 has no prompt, choices; it has 'goal, sol1, sol2'"),
        ('{"prompt": "a", "choices": ["b", "c"]}\n', "line 7 has no answer"),
    ],
)
def test_mixed_shapes(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "dev.jsonl", ROWS)
    path.write_text(path.read_text() + text)
    with pytest.raises(UsageError, match=message):
        open_task("multiple-choice", data=path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs prompts with choices: pass --data"),
        ({"columns": ["prompt"]}, "pass --columns PROMPT CHOICES"),
        ({"template": "Answer:"}, "has {} once"),
        ({"template": "{} {}"}, "has {} once"),
        ({"data": "none.jsonl"}, "no file|no folder"),
        ({"data": "empty.jsonl"}, "is empty"),
    ],
)
def test_what_is_not_given(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    (tmp_path / "empty.jsonl").touch()
    if "data" in settings:
        settings = settings | {"data": tmp_path / settings["data"]}
    with pytest.raises(HeadcountError, match=message):
        open_task("multiple-choice", **settings)
