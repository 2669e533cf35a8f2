"""Does pruning on the pre-training task keep the heads another task needs?

Why Can You Lay Off Heads?, §4, eq. 5.

    needs = needed(ranking, scores_by_count, 0.9)         # Mask
    recall(needs, kept_for_pretraining).value             # |both| / |needs|

A ranking is one importance per head; the least important go first. The heads needed for a share of
the score are found from all heads down: the smallest set of the ranking before the score falls
below that share for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.base.text import line
from headcount.heads import Mask, Scores
from headcount.sensitivity.gradients import importance
from headcount.sensitivity.options import require_norm
from headcount.tasks import Task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.metrics import get_metric
from headcount.training.evaluate import evaluate
from headcount.training.scoring import Scoring

SHARES = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Relative scores of the pre-training task at which recall is looked at."""
POINTS = 24
"""Numbers of heads that are scored, evenly spaced, where there are more heads."""


@dataclass(frozen=True, kw_only=True)
class Recall:
    """How many of the heads one task needs are among those kept for another."""

    value: float
    chance: float
    """What as many heads drawn at random would keep: the share of all heads that is kept."""
    p: float
    """Chance that heads drawn at random keep as many of them or more (hypergeometric)."""
    needed: int
    kept: int
    both: int
    heads: int

    def __repr__(self) -> str:
        what = f"{self.both} of {self.needed} needed heads among {self.kept} kept of {self.heads}"
        return line(f"Recall({self.value:.3f}: {what}; chance {self.chance:.3f}; p {self.p:.2g})")

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class RankedHeads:
    """A task's ranking of heads, and its score with so many of the best."""

    task: str
    metric: str
    ranking: Scores
    scores: dict[int, float]
    """Heads kept -> score."""

    def __repr__(self) -> str:
        about = f"{self.task}, {self.metric}: {len(self.scores)} scores"
        return line(f"RankedHeads({about}; {self.ranking!r})", f"RankedHeads({about})")

    @property
    def higher_is_better(self) -> bool:
        """Whether the metric counts upwards."""
        return get_metric(self.metric).higher_is_better

    def needed(self, share: float) -> Mask:
        """The heads needed for this share of the full score."""
        return needed(self.ranking, self.scores, share, higher_is_better=self.higher_is_better)

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        relative = relative_scores(self.scores, higher_is_better=self.higher_is_better)
        return {
            "task": self.task,
            "metric": self.metric,
            "importance": self.ranking.by_layer(),
            "scores": [
                {"kept": kept, "score": self.scores[kept], "relative": relative[kept]}
                for kept in sorted(self.scores, reverse=True)
            ],
        }


def relative_scores(
    scores: Mapping[int, float], *, higher_is_better: bool = True
) -> dict[int, float]:
    """Each score as a share of the one with all heads; the inverse where lower is better."""
    if not scores:
        raise UsageError("There are no scores of head counts.")
    full = scores[max(scores)]
    if not full > 0:
        raise UsageError(f"With all heads the score is {full:.4g}: there is no share of that.")
    if higher_is_better:
        return {count: score / full for count, score in scores.items()}
    return {count: full / score for count, score in scores.items()}


def needed(
    ranking: Scores,
    scores_by_count: Mapping[int, float],
    share: float,
    *,
    higher_is_better: bool = True,
) -> Mask:
    """The fewest best heads with which, coming from all, the score never fell below the share.

    >>> from headcount.heads import Layout
    >>> ranking = Scores(Layout.of(encoder=[4]), (0.1, 0.4, 0.2, 0.3))
    >>> len(needed(ranking, {4: 0.80, 3: 0.79, 2: 0.75, 1: 0.50, 0: 0.78}, 0.9))
    2
    """
    if not 0 <= share <= 1:
        raise UsageError(f"The share of the score is between 0 and 1, not {share}.")
    total = len(ranking.layout)
    if max(scores_by_count, default=0) != total:
        raise UsageError(f"The scores do not have one with all {total} heads.")
    relative = relative_scores(scores_by_count, higher_is_better=higher_is_better)
    enough = total
    for count in sorted(relative, reverse=True):
        # as a share of itself the full score is 1 but for rounding
        if relative[count] < share - 1e-12:
            break
        enough = count
    return ranking.keep_best(enough)


def recall(needed_task: Mask, kept_pretraining: Mask) -> Recall:
    """Of the heads a task needs, the share that another task's cut keeps, beside chance."""
    from scipy.stats import hypergeom

    if needed_task.layout != kept_pretraining.layout:
        raise UsageError(
            f"The two tasks' heads are of different models: {needed_task.layout} and "
            f"{kept_pretraining.layout}."
        )
    heads = len(needed_task.layout)
    both = len(needed_task & kept_pretraining)
    wanted, kept = len(needed_task), len(kept_pretraining)
    return Recall(
        value=both / wanted if wanted else float("nan"),  # of no heads there is no share
        chance=kept / heads,
        p=float(hypergeom.sf(both - 1, heads, wanted, kept)),
        needed=wanted,
        kept=kept,
        both=both,
        heads=heads,
    )


def recall_curve(
    task: RankedHeads,
    pretraining: RankedHeads,
    *,
    share: float = 0.9,
    shares: Sequence[float] = SHARES,
) -> dict[float, Recall]:
    """Recall at each relative score x of the pre-training task: Recall_share(x)."""
    wanted = task.needed(share)
    return {x: recall(wanted, pretraining.needed(x)) for x in shares}


def rank_heads(
    model: PreTrainedModel,
    task: Task,
    rows: EncodedRows,
    *,
    normalize: str | None = None,
    report: Callable[[int], None] | None = None,
) -> Scores:
    """The importance of every head on labelled rows of the task.

    As in pruning by importance, it is ℓ1-normalised by layer where there is one stack.
    """
    if normalize is not None:
        require_norm(normalize)
    ranking = importance(model, rows, kind=task.kind, report=report)
    if normalize is None:
        normalize = "l1" if len(ranking.layout.stacks) == 1 else "none"
    return ranking if normalize == "none" else ranking.normalized(normalize)


def score_counts(
    model: PreTrainedModel,
    task: Task,
    ranking: Scores,
    *,
    points: int = POINTS,
    tokenizer: Any = None,
    scoring: Scoring = Scoring(),  # noqa: B008
) -> RankedHeads:
    """The task's score with fewer and fewer heads, least important first, in one pass."""
    counts = head_counts(len(ranking.layout), points)
    masks = [ranking.keep_best(count) for count in counts]
    evaluations = evaluate(
        model, task, masks, tokenizer=tokenizer, scoring=replace(scoring, bootstrap=0)
    )
    scores = {
        count: evaluation.score for count, evaluation in zip(counts, evaluations, strict=True)
    }
    return RankedHeads(task=task.name, metric=task.metric, ranking=ranking, scores=scores)


def head_counts(total: int, points: int = POINTS) -> list[int]:
    """Numbers of heads from all to none: every one where there are few, else evenly spaced.

    >>> head_counts(3), head_counts(100, 4)
    ([3, 2, 1, 0], [100, 75, 50, 25, 0])
    """
    if points < 1:
        raise UsageError(f"At least one number of heads is scored, not {points}.")
    steps = min(points, total)
    return sorted({int(n) for n in np.linspace(0, total, steps + 1).round()}, reverse=True)
