"""What an evaluation came to: scores with intervals, predictions, and the difference of two.

loss = difference(full, less)          # Difference: −0.003 [−0.011, +0.004]
full.save_predictions("rows.parquet")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.files import require_fields, whole
from headcount.base.text import line, short
from headcount.heads import Mask
from headcount.tasks import metrics
from headcount.tasks.metrics import Difference, Outcome, Score
from headcount.training.scoring import Scoring


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores of one model, or of one mask of it, on one split of a task."""

    task: str
    split: str
    scores: tuple[Score, ...]
    """The task's score first, then what else it is measured by."""
    n: int
    """Rows scored."""
    seconds: float
    """Time of the model alone; many masks share theirs evenly."""
    seed: int = 0
    mask: Mask | None = None
    signature: str | None = None
    """What a BLEU score depends on, in sacrebleu's words."""
    predictions: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Columns with one value per row: label, prediction, and what led to it."""
    rows: str | None = None
    """A fingerprint of the rows that were scored: who has the same can be compared row by row."""
    outcome: Outcome | None = field(default=None, repr=False, compare=False)
    """What was predicted and what was right, for `difference`; not in the JSON."""

    @property
    def score(self) -> float:
        """The task's score."""
        return self.scores[0].value

    def __repr__(self) -> str:
        about, rows = f"{self.task} {self.split}", f"{self.n} rows"
        if self.mask is not None:
            rows += f", {len(self.mask)} of {len(self.mask.layout)} heads"
        every = ", ".join(map(str, self.scores))
        return line(
            f"Evaluation({about}: {every}; {rows})",
            f"Evaluation({about}: {self.scores[0]}; {rows})",
            f"Evaluation({self.scores[0]}; {rows}; {about})",
        )

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.scores))
        return f"{self.task} {self.split}: {numbers} (n={self.n}, {self.seconds:.1f} s)"

    def to_json(self) -> dict[str, object]:
        """A plain dict, without the predictions; what is undefined is None."""
        scores = [score.to_json() for score in self.scores]
        data = {
            "task": self.task,
            "split": self.split,
            "metric": self.scores[0].metric,
            "score": scores[0]["value"],
            "low": scores[0]["low"],
            "high": scores[0]["high"],
            "scores": {score["metric"]: score for score in scores},
            "n": self.n,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "rows": self.rows,
        }
        if self.scores[0].no_interval:
            data["no_interval"] = self.scores[0].no_interval
        if self.mask is not None:
            data["heads_kept"] = self.mask.pattern
        if self.signature is not None:
            data["signature"] = self.signature
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evaluation:
        """The scores that `to_json` wrote; mask and predictions are not among them."""
        types = {"task": str, "split": str, "scores": dict, "n": int, "seconds": float, "seed": int}
        some = {"signature": str | None, "rows": str | None}
        require_fields(data, types | some, "This is no evaluation", optional=some)
        if not data["scores"]:
            raise UsageError("This is no evaluation: it has no scores.")
        return cls(
            task=data["task"],
            split=data["split"],
            scores=tuple(Score.from_json(score) for score in data["scores"].values()),
            n=data["n"],
            seconds=data["seconds"],
            seed=data["seed"],
            signature=data.get("signature"),
            rows=data.get("rows"),
        )

    def save_predictions(self, path: str | Path) -> Path:
        """Write the predictions as a Parquet file, whole or not at all."""
        return save_predictions([self], path)


def save_predictions(evaluations: Sequence[Evaluation], path: str | Path) -> Path:
    """The predictions of several evaluations in one Parquet file, each with its mask's pattern."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for evaluation in evaluations:
        columns = {
            name: list(values) if getattr(values, "ndim", 1) > 1 else values
            for name, values in evaluation.predictions.items()
        }
        if len(evaluations) > 1:
            pattern = evaluation.mask.pattern if evaluation.mask is not None else "all"
            columns["heads_kept"] = [pattern] * len(columns["row"])
        tables.append(pa.table(columns))
    with whole(path) as partial:
        pq.write_table(pa.concat_tables(tables), partial)
    return Path(path)


def difference(
    before: Evaluation,
    after: Evaluation,
    *,
    metric: str | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Difference:
    """By how much the score changed, with the interval of the difference on the same rows.

    `metric` is one of the task's, its score when left out.
    """
    for value in (before, after):
        if not isinstance(value, Evaluation):
            raise UsageError(f"hc.difference takes what hc.evaluate gives, not {short(value)}.")
    if (before.task, before.split) != (after.task, after.split):
        raise UsageError(
            "A difference needs the same rows before and after, not "
            f"{before.task} {before.split} and {after.task} {after.split}."
        )
    if before.outcome is None or after.outcome is None:
        raise UsageError(
            "A difference needs what was predicted for each row, which a saved evaluation does "
            "not have: evaluate both models again."
        )
    if before.rows != after.rows:
        raise UsageError(
            f"A difference needs the same rows of {before.task} {before.split} before and after, "
            f"not {before.n} and {after.n} others: evaluate both with one limit, seed and length."
        )
    metric = metric or before.scores[0].metric
    return metrics.difference(metric, before.outcome, after.outcome, bootstrap=bootstrap, seed=seed)


def differences(evaluations: Sequence[Evaluation], scoring: Scoring) -> list[list[Difference]]:
    """The differences of every later evaluation from the first, metric by metric."""
    first, *others = evaluations
    return [
        [
            difference(
                first, other, metric=score.metric, bootstrap=scoring.bootstrap, seed=scoring.seed
            )
            for score in other.scores
        ]
        for other in others
    ]
