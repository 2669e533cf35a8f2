from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import open_task

MNLI_HEAD = [
    "index",
    "promptID",
    "pairID",
    "genre",
    "sentence1_binary_parse",
    "sentence2_binary_parse",
    "sentence1_parse",
    "sentence2_parse",
    "sentence1",
    "sentence2",
]
MNLI_ROW = ["0", "1", "1n", "fiction", "x", "x", "x", "x", "It rains .", 'He said "no" .']
MRPC_HEAD = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]

OFFICIAL: dict[str, tuple[str, list[list[str]], object, tuple[str, ...]]] = {
    "cola": ("CoLA", [["gj04", "1", "", "They left ."]], 1, ("They left .",)),
    "sst2": ("SST-2", [["sentence", "label"], ["a fine film ", "1"]], 1, ("a fine film ",)),
    "mrpc": (
        "MRPC",
        [MRPC_HEAD, ["0", "7", "8", '" A quote .', "No quote ."]],
        0,
        ('" A quote .', "No quote ."),
    ),
    "qqp": (
        "QQP",
        [
            ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"],
            ["0", "1", "2", "Why?", "How?", "1"],
            ["a row that ends early"],
        ],
        1,
        ("Why?", "How?"),
    ),
    "stsb": (
        "STS-B",
        [
            [
                "index",
                "genre",
                "filename",
                "year",
                "old_index",
                "source1",
                "source2",
                "sentence1",
                "sentence2",
                "score",
            ],
            ["0", "c", "f", "2012", "0", "none", "none", "One .", "Two .", "3.800"],
        ],
        3.8,
        ("One .", "Two ."),
    ),
    "qnli": (
        "QNLI",
        [["index", "question", "sentence", "label"], ["0", "Who?", "He .", "not_entailment"]],
        1,
        ("Who?", "He ."),
    ),
    "rte": (
        "RTE",
        [["index", "sentence1", "sentence2", "label"], ["0", "A .", "B .", "entailment"]],
        0,
        ("A .", "B ."),
    ),
    "wnli": (
        "WNLI",
        [["index", "sentence1", "sentence2", "label"], ["0", "A .", "B .", "1"]],
        1,
        ("A .", "B ."),
    ),
}


def write(path: Path, rows: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("name", OFFICIAL)
@pytest.mark.parametrize("inside", [True, False])
def test_official_layout(name: str, inside: bool, tmp_path: Path) -> None:
    folder, rows, label, texts = OFFICIAL[name]
    for split in ("train", "dev"):
        write(tmp_path / folder / f"{split}.tsv", rows)
    task = open_task(name, data=tmp_path / folder if inside else tmp_path)
    for split in ("train", "dev"):
        loaded = task.load(split)
        assert tuple(column[0] for column in loaded.texts) == texts
        assert loaded.labels is not None
        assert loaded.labels.tolist() == [label]


def test_mnli_has_two_dev_sets(tmp_path: Path) -> None:
    for stem, labels in {
        "train": ["neutral"],
        "dev_matched": ["entailment"] * 5 + ["neutral"],
        "dev_mismatched": ["neutral"] * 5 + ["contradiction"],
    }.items():
        names = [f"label{i + 1}" for i in range(len(labels) - 1)]
        head = [*MNLI_HEAD, *names, "gold_label"]
        write(tmp_path / "MNLI" / f"{stem}.tsv", [head, [*MNLI_ROW, *labels]])
    matched, mismatched = (open_task(name, data=tmp_path) for name in ("mnli", "mnli-mm"))
    assert matched.labels == ("entailment", "neutral", "contradiction")
    assert matched.load().labels.tolist() == [1]  # type: ignore[union-attr]
    assert mismatched.load().labels.tolist() == [2]  # type: ignore[union-attr]
    assert mismatched.load("train").texts[1] == ['He said "no" .']


def test_mrpc_as_first_published(tmp_path: Path) -> None:
    rows = [["1", "1", "2", "a", "b"], ["0", "3", "4", "c", "d"], ["1", "5", "6", "e", "f"]]
    write(tmp_path / "msr_paraphrase_train.txt", [MRPC_HEAD, *rows])
    text = (tmp_path / "msr_paraphrase_train.txt").read_text()
    (tmp_path / "msr_paraphrase_train.txt").write_text("\ufeff" + text, encoding="utf-8")
    write(tmp_path / "msr_paraphrase_test.txt", [MRPC_HEAD, ["0", "9", "9", "g", "h"]])
    task = open_task("mrpc", data=tmp_path)
    assert task.load("train").texts[0] == ["a", "c", "e"]
    assert task.load("dev").texts[0] == ["g"]
    write(tmp_path / "dev_ids.tsv", [["3", "4"]])
    assert task.load("train").texts[0] == ["a", "e"]
    assert task.load("dev").texts[0] == ["c"]


def test_missing_empty_and_headerless_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no folder"):
        open_task("sst2", data=tmp_path / "nowhere").load()
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(NotFoundError, match=r"SST-2/dev.tsv nor dev.tsv is there; found notes.md"):
        open_task("sst2", data=tmp_path).load()
    with pytest.raises(NotFoundError, match=r"neither dev.tsv nor msr_paraphrase_train.txt"):
        open_task("mrpc", data=tmp_path).load()
    (tmp_path / "dev.tsv").write_text("")
    with pytest.raises(NotFoundError, match=r"dev.tsv' is empty"):
        open_task("sst2", data=tmp_path).load()
    (tmp_path / "dev.tsv").write_text("a fine film\t1\na bad film\t0\n")
    with pytest.raises(UsageError, match="no header line with sentence, label: its first line is"):
        open_task("sst2", data=tmp_path).load()
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\n")
    with pytest.raises(NotFoundError, match="no rows"):
        open_task("sst2", data=tmp_path).load()
    (tmp_path / "dev.tsv").write_text("sentence\tlabels\nx\t1\n")
    with pytest.raises(UsageError, match=r"no column label. Did you mean 'labels'\?"):
        open_task("sst2", data=tmp_path).load()


def test_bad_labels_are_named_with_their_rows(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", [["sentence", "label"], ["a", "1"], ["b", "yes"], ["c", "2"]])
    with pytest.raises(UsageError, match=r"not one of 0, 1: row 2 'yes', row 3 '2'"):
        open_task("sst2", data=tmp_path).load()
    head = OFFICIAL["stsb"][1][0]
    write(tmp_path / "dev.tsv", [head, ["0"] * 9 + ["nan"], ["0"] * 9 + ["x"]])
    with pytest.raises(UsageError, match="not a number: row 1 'nan', row 2 'x'"):
        open_task("stsb", data=tmp_path).load()
    # CoLA has no header line: one too many is seen by its label
    write(tmp_path / "dev.tsv", [["source", "label", "mark", "sentence"]])
    with pytest.raises(UsageError, match="header line too many"):
        open_task("cola", data=tmp_path).load()


def test_short_rows_are_refused_where_the_official_files_have_none(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", [["sentence", "label"], ["only a text"]])
    with pytest.raises(UsageError, match="1 rows with fewer than its 2 columns: row 2"):
        open_task("sst2", data=tmp_path).load()


def test_explicit_files_need_no_folder(tmp_path: Path) -> None:
    write(tmp_path / "mine.tsv", OFFICIAL["sst2"][1])
    task = open_task("sst2", dev=tmp_path / "mine.tsv")
    assert task.load().texts[0] == ["a fine film "]
