"""A study of real runs that take a moment each: a base, a matrix, importance, cuts, probes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headcount.tasks import open_task

ROWS = {"train": 40, "dev": 24}
LOOK = {"samples": 8, "max_length": 16}
TRAIN = {"preset": "pocket", "steps": 3, "batch_size": 8, "max_length": 16, "save_every": 1}


def data_in(folder: Path) -> Path:
    """Rows of a pocket task as files."""
    folder.mkdir(parents=True)
    task = open_task("pocket-sentiment")
    for split, count in ROWS.items():
        rows = task.load(split, limit=count)
        assert rows.labels is not None
        lines = [
            json.dumps({"text": text, "label": task.labels[label]})
            for text, label in zip(rows.texts[0], rows.labels, strict=True)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def tiny(data: Path) -> dict[str, Any]:
    """The study."""
    cut = {"kind": "prune", "model": {"run": "base"}, "ratios": [0.5]}
    options = {
        "baseline": 0,
        "calibration": {"samples": 8},
        "scoring": {"bootstrap": 20, "max_length": 16},
    }
    return {
        "name": "tiny",
        "lease": 20,
        "retries": 3,
        "defaults": {
            "task": "classification",
            "source": {"data": str(data), "columns": ["text"], "label": "label"},
        },
        "runs": {
            "base": {"kind": "train", "model": "pocket", "options": {"training": TRAIN}},
            "near": {
                "kind": "redundancy", "model": {"run": "base"},
                "options": {
                    "input_options": {"random": 4, "max_length": 8},
                    "distance_options": {"distances": ["js"]},
                },
            },
            "felt": {
                "kind": "importance", "model": {"run": "base"},
                "options": {"gradient_options": LOOK},
            },
            "cut": {**cut, "methods": ["random", "importance"], "seeds": 2, "options": options},
            "alike": {
                **cut, "options": {**options, "method": {"name": "cluster",
                                                         "redundancy": {"run": "near"}}},
            },
            "trained": {
                **cut,
                "methods": ["random"],
                "options": {**options, "repair": [{"finetune": TRAIN}]},
            },
            "gated": {
                **cut, "methods": ["importance"], "options": {**options, "gated": True},
            },
            "probes": {"kind": "probe", "model": {"run": "felt"}, "seeds": 3,
                       "options": {"say": "after"}},
        },
    }  # fmt: skip
