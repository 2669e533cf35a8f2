"""Predictions row by row, as a study keeps them: of the full model, and of pruned ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.errors import HeadcountError, UsageError
from headcount.base.files import read_json, require_fields, write_json
from headcount.base.header import header
from headcount.runs.identity import read_sealed, seal
from headcount.tasks.metrics import Outcome
from headcount.training.evaluation import Evaluation

FILE = "full.json"
"""Of the full model, in the folder of a study."""
PREDICTIONS = "predictions.json"
"""Of a pruned model, in the folder of its run."""


def keep(evaluation: Evaluation, folder: Path, id: str, file: str = FILE) -> Evaluation:
    """Write the scores of a model and its prediction for every row; `id` is that of the request."""
    if evaluation.outcome is not None:
        sides = (evaluation.outcome.predictions, evaluation.outcome.labels)
        rows = [list(map(_plain, side)) for side in sides]
        scores = {"scores": evaluation.to_json(), "predictions": rows[0], "labels": rows[1]}
        data = header("predictions" if file == PREDICTIONS else "full") | scores
        write_json(folder / file, seal(data, id))
    return evaluation


def kept(folder: Path, id: str, file: str = FILE) -> Evaluation | None:
    """What `keep` wrote for the same question; None where it did not."""
    if not (folder / file).exists():
        return None
    data = read_sealed(folder / file, "score of a model", id, 2**30)
    complaint = f"{folder / file} is no score of a model"
    require_fields(data, {"scores": dict, "predictions": list, "labels": list}, complaint)
    try:
        sides = [_side(data[name]) for name in ("predictions", "labels")]
        scores = Evaluation.from_json(data["scores"])
        return replace(scores, outcome=Outcome(sides[0], sides[1]))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{complaint}: {error}.") from error


def is_one(path: Path) -> bool:
    """Whether a file is what `keep` wrote, for whatever question."""
    try:
        data = read_json(path, "score of a model", 2**30)
    except HeadcountError:
        return False
    return isinstance(data, dict) and {"scores", "predictions", "labels"} <= data.keys()


def _side(values: list[Any]) -> Any:
    if values and all(isinstance(value, str) for value in values):
        return values
    array = np.array(values)
    if array.dtype.kind not in "iuf":
        raise ValueError("an answer is no number")
    return array


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
