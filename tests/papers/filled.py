"""All groups of the pocket scale, finished, with made-up numbers that a test can work out.

finished = filled(tmp_path, "tuned", "random")      # these groups, and what they start from
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from headcount.costs.timed import BenchResult, BenchRow, Shape
from headcount.costs.timing import Estimate
from headcount.heads import Layout, Mask
from headcount.papers.finished import PaperRuns
from headcount.studies.plan import Cell
from papers.pocket_study import PocketStudy, symmetric

LAYOUT = Layout.of(encoder=[4] * 6)
SEVEN = ("cos", "corr", "js", "bc", "dcor", "pc", "cc")


def score_of(cell: Cell) -> float:
    """0.9 with all heads, less with fewer, and a little by seed."""
    ratio = getattr(cell.run.options, "ratio", None)
    share = ratio if isinstance(ratio, float) else 0.0
    return round(0.9 - 0.4 * share + 0.01 * cell.run.seed, 4)


def matrices(cell: Cell) -> dict[str, np.ndarray]:
    """Distances that grow with the layer gap, with noise of their own for each cell."""
    layers = np.repeat(np.arange(6), 4)
    rng = np.random.default_rng(abs(hash(cell.key)) % 2**32)
    gap = 0.1 + 0.1 * np.abs(layers[:, None] - layers) + rng.uniform(0, 0.05, (24, 24))
    return {name: symmetric(gap + 0.001 * at) for at, name in enumerate(SEVEN)}


def cut(cell: Cell) -> dict[str, Any]:
    """The record of a cut."""
    options = cell.run.options
    kept = LAYOUT.kept_at(options.ratio) if isinstance(options.ratio, float) else 12
    scored = {"metric": "accuracy", "n": 100, "low": 0.0, "high": 1.0}
    # as many heads in every layer; of clusterings the last layers lose theirs
    order = list(LAYOUT) if cell.group == "chance" else sorted(LAYOUT, key=lambda head: head.index)
    record: dict[str, Any] = {
        "heads": {"before": 24, "after": kept},
        "parameters": {"before": 1000, "after": 600},
        "mask": Mask(LAYOUT, frozenset(order[:kept])).to_json(),
    }
    if cell.run.task is not None:
        record["scores"] = {
            "before": {**scored, "score": 0.9}, "after": {**scored, "score": score_of(cell)}
        }  # fmt: skip
    if options.method.needs == "training":
        record["learned"] = {"closings": 9, "reopenings": 4, "gates_reopened": 3,
                             "gates_reopened_and_kept": 2, "gap": {"gap": 0.0}}  # fmt: skip
    return record


def transfer(cell: Cell) -> dict[str, Any]:
    """The record of two checkpoints compared."""
    rows = [{"stack": "encoder", "layer": at, "mean": 0.1 * at, "max": 0.2 * at, "hidden": at,
             "mean_stderr": 0.01, "max_stderr": 0.01, "hidden_stderr": 0.01}
            for at in range(6)]  # fmt: skip
    values = np.arange(24.0)
    by_layer = {"encoder": values.reshape(6, 4).tolist()}
    away = {"encoder": np.cos(values).reshape(6, 4).tolist()}
    correlation = {"pearson": 0.1, "low": -0.3, "high": 0.4, "spearman": 0.9, "n": 24}
    return {
        "layout": LAYOUT.to_json(),
        "drift": {"n": 9, "attention": by_layer, "layers": rows},
        "weight_change": {"heads": by_layer, "layers": {"encoder": [1.0] * 6},
                          "spread": {"encoder": 0.25, "all": 0.25}},
        "importance": {"task": away}, "correlations": {"task": correlation},
        "trends": {"encoder": {"attention": correlation}},
        "recall": [{"at": 0.75, "value": 0.5, "chance": 0.25, "p": 0.1, "needed": 12,
                    "kept": 6, "both": 6, "heads": 24}],
    }  # fmt: skip


def timed() -> dict[str, Any]:
    """What a bench of half the heads says."""
    ways = [("dense", 24, 0.010, 1.0), ("masked", 12, 0.011, 1.0), ("removed", 12, 0.008, 0.75)]
    rows = tuple(
        BenchRow(name=kind, kind=kind, heads=heads, sparsity=1 - heads / 24, ideal=ideal,
            seconds=Estimate(seconds, seconds, seconds), parameters=int(1000 * ideal),
            ratio=Estimate(100 * seconds, 99 * seconds, 101 * seconds), memory=int(4000 * ideal))
        for kind, heads, seconds, ideal in ways
    )  # fmt: skip
    shape = Shape(batch=8, length=32, reads="32 tokens", rounds=15, share=0.5, ceiling=2.0,
                  rows=rows)  # fmt: skip
    return BenchResult(model="BertModel", device="cpu", threads=1, shapes=(shape,)).to_json()


def record_of(cell: Cell) -> dict[str, Any]:
    """A made-up record of any kind."""
    scored = {"metric": "accuracy", "score": score_of(cell), "n": 100, "low": 0.0, "high": 1.0}
    return {
        "prune": lambda: cut(cell),
        "train": lambda: {"evaluation": scored},
        "evaluate": lambda: scored,
        "transfer": lambda: transfer(cell),
        "bench": timed,
        "redundancy": dict,
    }[cell.run.kind]()


def filled(folder: Path, *groups: str) -> PaperRuns:
    """The groups with all their runs done."""
    study = PocketStudy(folder, *groups)
    for group in {cell.group for cell in study.plan.cells}:
        study.fill(group, record_of, matrices, LAYOUT)
    return study.finished
