"""The model with all its heads, as a study keeps it: what every cut is held against, row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount.errors import UsageError
from headcount.files import read_json, require_fields, write_json
from headcount.tasks.metrics import Outcome
from headcount.training.evaluation import Evaluation

FILE = "full.json"


def keep(found: Evaluation, folder: Path | None) -> Evaluation:
    """Write the scores of the full model and what it said of every row."""
    if folder is not None and found.outcome is not None:
        sides = (found.outcome.predictions, found.outcome.labels)
        rows = [list(map(_plain, side)) for side in sides]
        write_json(folder / FILE, {"scores": found.to_json(), "said": rows[0], "right": rows[1]})
    return found


def kept(folder: Path | None) -> Evaluation | None:
    """What `keep` wrote; None where it did not."""
    if folder is None or not (folder / FILE).is_file():
        return None
    data = read_json(folder / FILE, "scores of the full model", 2**30)
    complaint = f"{folder / FILE} is no score of a full model"
    require_fields(data, {"scores": dict, "said": list, "right": list}, complaint)
    try:
        sides = [_side(data[name]) for name in ("said", "right")]
        scores = Evaluation.from_json(data["scores"])
        return replace(scores, outcome=Outcome(sides[0], sides[1]))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{complaint}: {error}.") from error


def _side(values: list[Any]) -> Any:
    if values and all(isinstance(each, str) for each in values):
        return values
    found = np.array(values)
    if found.dtype.kind not in "iuf":
        raise ValueError("an answer is no number")
    return found


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
