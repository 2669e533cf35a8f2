"""Results of all kinds: what a run writes is what its type says, key by key."""

from __future__ import annotations

import json
import math
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headcount.runs.kinds import KINDS
from headcount.runs.kinds.kind import RunKind
from headcount.runs.record import result_of
from headcount.runs.results import EvaluationResult, PlainResult
from headcount.tasks.scores import Score
from headcount.training.evaluation import Evaluation
from runs.whole import whole_record

NAMES = [kind.name for kind in KINDS]
REPRODUCTION = Path(__file__).parents[2] / "docs" / "reproduction"


def packed_records(name: str = "pocket") -> list[dict[str, Any]]:
    """The records of real runs, of six kinds."""
    with tarfile.open(REPRODUCTION / f"{name}-records.tar.xz") as archive:
        files = [one for one in archive if one.name.endswith("record.json")]
        return [json.load(archive.extractfile(one)) for one in files]  # pyright: ignore


def test_every_kind_has_a_type_of_result() -> None:
    for name in NAMES:
        kind: Any = KINDS[name]
        assert issubclass(kind, RunKind)
        assert kind.result is not PlainResult, name


@pytest.mark.parametrize("kind", NAMES)
def test_a_whole_result_is_written_as_it_is_read(kind: str) -> None:
    data = whole_record(kind, {})
    result = result_of({"kind": kind, **data})
    assert result.to_json() == data
    assert isinstance(result.columns(), dict)


def test_the_packed_records_are_read() -> None:
    kinds = Counter()
    for record in packed_records():
        result = result_of(record)
        kinds[record["kind"]] += 1
        for name, value in result.to_json().items():
            if name in record and not isinstance(value, dict | list):
                assert record[name] == value
    assert set(kinds) >= {"train", "prune", "evaluate", "redundancy", "transfer", "bench"}


def test_an_evaluation_as_a_record_has_it() -> None:
    score = Score(metric="f1", value=math.nan, low=math.nan, high=math.nan, no_interval="few")
    evaluation = Evaluation(task="mrpc", split="dev", scores=(score,), n=3, seconds=0.5, rows="ab")
    result = EvaluationResult.of(evaluation)
    assert result.to_json() == evaluation.to_json()
    assert (result.score, result.no_interval, result.scores["f1"].low) == (None, "few", None)
