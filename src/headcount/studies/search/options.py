"""The options of a search: selection set, held-out set, required probability, and timing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.costs.shapes import SEVERAL, check_timing, shapes_of, unlisted
from headcount.pruning.methods import METHODS
from headcount.studies.search.bounds import Bound, MaxDrop

if TYPE_CHECKING:
    from headcount.runs.kinds.prune import Prune
    from headcount.training.scoring import Scoring

DETAIL_ROWS = 64
"""Rows that importance and roles of the heads are means over, at most."""
METHODS_TRIED = ("surgeon",)
"""Where no method is named."""


@dataclass(frozen=True, kw_only=True)
@checked
class SearchOptions:
    """The options of a search."""

    held_out: float = 0.5
    """Share of the split's rows for the held-out set, which selects nothing."""
    selection_split: str | None = None
    """Select on the rows of this split, and hold out all of --split."""
    confidence: float = 0.8
    """Accept a number of heads if its loss is within the bound with this probability, 0 to 1."""
    quick: bool = False
    """A first estimate: one seed, few rows and few rounds; it says what was left out."""
    seeds: int = 3
    """Calibration samples, at most, where a number of heads is undecided."""
    first_rows: int = 256
    """Rows that every pruned model is scored on; more only while it is undecided."""
    bench: bool = True
    """Time the selected model next to the full model."""
    batch: int | tuple[int, ...] = field(default=8, metadata=SEVERAL)
    """Timing: examples in a forward pass; each of several numbers is timed."""
    length: int | tuple[int, ...] | None = field(default=None, metadata=SEVERAL)
    """Timing: tokens of each example; by default the mean of the scored rows."""
    context: int | None = None
    """With --max-cache: tokens of a user; says what the cache of --batch of them takes."""
    repeats: int = 15
    """Timing: minimum number of rounds, 6 or more."""
    timing_seconds: float = 30.0
    """Timing: add rounds until the interval is within ± 10 %, for at most this many seconds."""

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise UsageError(f"The share of held-out rows is between 0 and 1, not {self.held_out}.")
        if not 0 < self.confidence < 1:
            raise UsageError(f"The confidence is between 0 and 1, not {self.confidence}.")
        shapes_of(self.batch, self.length)
        for name in ("batch", "length"):
            object.__setattr__(self, name, unlisted(getattr(self, name)))
        check_timing(self.timing_seconds)
        if self.context is not None and self.context < 1:
            raise UsageError(f"A context is at least 1 token, not {self.context}.")
        for name, least in (("seeds", 1), ("first_rows", 1), ("repeats", 6)):
            if getattr(self, name) < least:
                text = name.replace("_", "-")
                raise UsageError(f"--{text} is at least {least}, not {getattr(self, name)}.")

    @property
    def undecided(self) -> tuple[float, float]:
        """Between these probabilities a pruned model is scored on more rows."""
        return min(0.05, self.confidence / 2), max(0.95, (1 + self.confidence) / 2)


def quickened(
    search_options: SearchOptions, like: Prune, held_out: Scoring, rows: int
) -> tuple[SearchOptions, Prune, Scoring, str]:
    """The same search with less of everything, and a sentence on what that leaves out."""
    tokens = like.calibration.tokens is not None
    unit, few_rows = ("tokens", 4096) if tokens else ("rows", 128)
    counts = {
        "seeds of a number of heads": (search_options.seeds, 1),
        f"calibration {unit}": (like.calibration.tokens or like.calibration.samples, few_rows),
        "rows of each set": (rows, 200),
        "random baselines": (like.baseline, 1),
        "rounds of timing": (search_options.repeats, 6),
    }
    seeds, samples, limit, baseline, repeats = (min(value) for value in counts.values())
    less = [
        f"{min(value)} of {value[0]:,} {name}"
        for name, value in counts.items()
        if value[0] > value[1] and (search_options.bench or "timing" not in name)
    ]
    seconds = min(search_options.timing_seconds, 5.0)
    search_options = replace(search_options, seeds=seeds, repeats=repeats, timing_seconds=seconds)
    few = {"limit": limit} if rows > limit else {}
    like = replace(
        like,
        baseline=baseline,
        scoring=replace(like.scoring, **few),
        calibration=replace(like.calibration, **{"tokens" if tokens else "samples": samples}),
    )
    text = f"--quick takes {', '.join(less)}." if less else "--quick has nothing to leave out."
    text += " The answer is a first one: leave --quick out for one to rely on."
    return search_options, like, replace(held_out, **few), text


def check_context(context: int | None, bound: Bound | None) -> None:
    """Refuse a context where no cache is the budget."""
    cache = not isinstance(bound, MaxDrop) and bound is not None and bound.kind == "cache"
    if context is not None and not cache:
        raise UsageError("--context says what a cache takes: it goes with --max-cache.")


def check_methods(names: Sequence[str], bound: Bound | None) -> None:
    """Refuse methods that cannot be asked for a number of heads."""
    if not names:
        raise UsageError("A search needs at least one method.")
    if len(set(names)) < len(names):
        raise UsageError("A method is named twice.")
    for name in names:
        kind: Any = METHODS[name]
        if kind.ratio == "none":
            raise UsageError(
                f"The method '{name}' has no ratio, so there is nothing to search for; use "
                "headcount prune."
            )
    if bound is not None and not isinstance(bound, MaxDrop) and list(names) != ["surgeon"]:
        raise UsageError(
            "A budget is spent along the surgeon's paths: leave --methods out, or name surgeon "
            f"alone, not {', '.join(names)}."
        )
