"""The model with all its heads, as a study keeps it: what every cut is held against, row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount.files import read_json, write_json
from headcount.tasks.metrics import Outcome
from headcount.training.evaluate import Evaluation

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
    sides = [side if side and isinstance(side[0], str) else np.array(side)
             for side in (data["said"], data["right"])]  # fmt: skip
    return replace(Evaluation.from_json(data["scores"]), outcome=Outcome(sides[0], sides[1]))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
