"""BEIR's folders, and every way in which they can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headcount.base.errors import HeadcountError
from headcount.tasks import open_task

CORPUS = [{"_id": "d1", "title": "Cats", "text": "sleep"}, {"_id": "d2", "title": "", "text": "x"}]
QUERIES = [
    {"_id": "q1", "text": "who sleeps"},
    {"_id": "d2", "text": "y"},
    {"_id": "q3", "text": "z"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nd2\td1\t2\nd2\tgone\t1\n"


def folder(
    path: Path, corpus: Any = CORPUS, queries: Any = QUERIES, qrels: str = QRELS, name: str = "dev"
) -> Path:
    (path / "qrels").mkdir(parents=True, exist_ok=True)
    for file, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (path / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "qrels" / f"{name}.tsv").write_text(qrels)
    return path


def test_queries_have_judgments_by_the_place_of_a_text(tmp_path: Path) -> None:
    folder(tmp_path)
    folder(tmp_path, name="train", qrels=QRELS.replace("q1", "q3"))
    task = open_task("retrieval", data=tmp_path)
    assert (task.splits, task.evaluation) == (("train", "dev"), "dev")
    rows = task.load("dev")
    assert rows.corpus == ("Cats sleep", "x")
    assert rows.texts[0] == ["who sleeps", "y"]  # a query without judgments is not asked
    assert [json.loads(str(text)) for text in rows.texts[1]] == [
        {"0": 1}, {"0": 2, "2": 1, "1": None},
    ]  # fmt: skip
    assert task.load("train").texts[0][0] == "z"
    assert task.metrics == ("ndcg@10", "recall@10")


def test_the_queries_of_a_single_file_are_split(tmp_path: Path) -> None:
    queries = [{"_id": f"q{n}", "text": f"text {n}"} for n in range(30)]
    qrels = "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td1\t1\n" for n in range(30))
    task = open_task("retrieval", data=folder(tmp_path, queries=queries, qrels=qrels, name="test"))
    train, dev = task.load("train"), task.load("dev")
    assert len(train) + len(dev) == 30
    assert train.corpus == dev.corpus == ("Cats sleep", "x")


def test_a_corpus_without_titles(tmp_path: Path) -> None:
    corpus = [{"_id": "d1", "text": "sleep"}, {"_id": "d2", "text": "x"}]
    rows = open_task("retrieval", data=folder(tmp_path, corpus=corpus)).load("all")
    assert rows.corpus == ("sleep", "x")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"corpus": [{"text": "a"}]}, "line 1 is no object with the texts _id and text"),
    "number": ({"queries": [{"_id": 1, "text": "a"}]}, "line 1 is no object with the texts _id"),
    "list": ({"corpus": [[1]]}, "line 1 is no object with the texts _id and text"),
    "twice": ({"corpus": CORPUS + CORPUS[:1]}, "has the _id 'd1' twice"),
    "unknown query": ({"qrels": QRELS + "q9\td1\t1\n"}, "the query 'q9', which queries.jsonl"),
    "grade": ({"qrels": QRELS + "q1\td2\tgood\n"}, "'good', and a judgment is a whole number"),
    "huge": ({"qrels": QRELS + f"q1\td2\t{'9' * 400}\n"}, "is a whole number up to 10,000"),
    "header": ({"qrels": "a\tb\tc\nq1\td1\t1\n"}, "no header line with query-id, corpus-id, score"),
    "empty": ({"qrels": "query-id\tcorpus-id\tscore\n"}, "has no rows"),
    "name": ({"name": "other"}, r"No dev.tsv, test.tsv or train.tsv in .* found other.tsv"),
    "no texts": ({"queries": []}, "is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_folders_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    changes, message = BAD[name]
    with pytest.raises(HeadcountError, match=message):
        open_task("retrieval", data=folder(tmp_path, **changes))


def test_no_folder_of_judgments(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("{}")
    with pytest.raises(HeadcountError, match=r"No folder qrels in .* found corpus.jsonl"):
        open_task("retrieval", data=tmp_path)
    with pytest.raises(HeadcountError, match="needs a folder of data"):
        open_task("retrieval")
