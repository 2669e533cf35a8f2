"""The best score within a budget: a knapsack over the surgeon's paths, held to what is measured.

Every layer has its ways of keeping heads, with a loss (second order, along the surgeon's path) and
a price (counted, or measured). The least loss whose price fits is chosen, the heads are removed,
and the result is counted or timed itself: where it is over the budget, the knapsack is given less
room, a few times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.costs.cost import cost, serving_cost
from headcount.costs.serving import ServingCost
from headcount.costs.shapes import shapes_of
from headcount.heads import Layout, Mask
from headcount.heads.uniform import levels
from headcount.models.remove import remove
from headcount.pruning.counts import Place
from headcount.pruning.pattern import Pattern
from headcount.pruning.surgeon import paths
from headcount.runs.cutting import PruningRun
from headcount.runs.kinds.prune import Prune
from headcount.studies.search.answers import (
    SearchRequest,
    common,
    held_out_estimate,
    mean_length,
    nothing_found,
    pruned,
    scored_again,
    speed_of,
    timed,
)
from headcount.studies.search.bounds import CostBudget
from headcount.studies.search.estimate import SearchResult, over_budget_sentence, sentence_of
from headcount.studies.search.judging import Judge
from headcount.studies.search.prices import Prices, prices_of
from headcount.studies.search.trials import Candidate
from headcount.studies.search.ways import LayerChoice, all_ways, knapsack, mask_of

TRIES = 4
"""How often the knapsack is given less room."""


@dataclass(frozen=True, kw_only=True)
class Amount:
    """What a model takes of a budget's kind; an interval where it is measured."""

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Amount:
        """What is counted has no interval."""
        return cls(value=value, low=value, high=value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Attempt:
    """One pruning under a budget, and what it really takes."""

    mask: Mask
    predicted: float
    amount: Amount
    before: float
    timing: dict[str, Any] | None
    speedup: dict[str, float] | None

    @property
    def share(self) -> float:
        """What it takes as a share of the whole model's in the same run."""
        return self.amount.value / self.before

    def fits(self, budget: CostBudget) -> bool:
        """Whether it takes no more than the budget."""
        return self.amount.value <= budget.limit(self.before)

    def may_fit(self, budget: CostBudget) -> bool:
        """Whether that cannot be ruled out by its interval."""
        return self.amount.low <= budget.limit(self.before)

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "kept": len(self.mask),
            "pattern": self.mask.pattern,
            "predicted": self.predicted,
            "before": self.before,
            **asdict(self.amount),
        }


def within_budget(
    request: SearchRequest, judge: Judge, folder: Path | None, budget: CostBudget
) -> SearchResult:
    """The pruning with the least predicted loss that is measured to be within a budget."""
    options, model = request.search_options, request.subject.model
    (batch, length), *_ = shapes_of(options.batch, options.length or mean_length(request))
    whole = None  # refused here, before anything is measured, where the context is too long
    if options.context is not None:
        whole = serving_cost(model, context=options.context, batch=batch)
    request.report(f"pricing heads: {budget.kind}")
    prices = prices_of(
        budget, model, batch=batch, length=length or 0, rounds=options.repeats, seed=request.seed
    )
    cutting = PruningRun(
        subject=request.subject, options=request.like, seed=request.seed, note=request.note
    )
    request.report("choosing heads: surgeon")
    groups = budget.kind == "cache"  # keys and values are only saved with all heads that use them
    removed = paths(model, cutting.rows("calibration"), groups=groups)
    ways = all_ways(request.subject.layout, removed, whole_groups=groups)
    attempts = attempted(request, budget, prices, ways)
    extra = {
        "by": "budget",
        "table": prices.table,
        "least": None,
        "attempts": [attempt.to_json() for attempt in attempts],
    }
    best = _best(attempts, budget)
    if best is None:
        return _over(request, judge, extra, attempts, prices)
    request.report(f"scoring {len(best.mask)} of {len(best.mask.layout)} heads")
    cut = exactly(request, best.mask)
    judge.judge(
        lambda kept, seed: Candidate(label="surgeon", options=cut, seed=seed), len(best.mask)
    )
    pruned_model = pruned(request, cut, request.seed, folder)
    data = common(request, judge) | held_out_estimate(request, judge, pruned_model) | extra
    data["rows"]["calibration"] = cutting.used["calibration"]
    data |= {
        "kept": len(pruned_model.mask),
        "method": "surgeon",
        "seed": request.seed,
        "seeds": [request.seed],
        "within_bound": best.fits(budget),
        "amount": asdict(best.amount) | {"before": best.before, "limit": budget.limit(best.before)},
        "speedup": best.speedup,
        "timing": best.timing,
    }
    if request.like.uniform:
        differing = replace(request, like=replace(request.like, uniform=False))
        free = _best(attempted(differing, budget, prices, ways), budget)
        assert free is not None  # what is uniform is one of its choices
        compared = replace(cutting, options=replace(cut, scoring=request.held_out))
        _, after = pruned_model.scored or scored_again(request, pruned_model)
        if free.mask != best.mask:
            data["free"] = compared.free_choice(free.mask, after).to_json()
    if budget.kind == "cache":
        data["cache"] = {"before": round(best.before), "after": round(best.amount.value)}
        if whole is not None:
            small = serving_cost(pruned_model.model, context=whole.context, batch=batch)
            data["cache"] |= {"context": whole.context, "batch": batch, **_served(whole, small)}
    if best.speedup is None and options.bench:
        data |= speed_of(timed(request, pruned_model.mask, pruned_model.model))
    data["sentence"] = sentence_of(data)
    return SearchResult(data, pruned_model.model, pruned_model.mask)


def _served(whole: ServingCost, small: ServingCost) -> dict[str, dict[str, float | None]]:
    """Bytes of all users, their share of the bytes read for a token, and users per GiB."""
    sides = {"before": whole, "after": small}
    return {
        "bytes": {name: side.cache for name, side in sides.items()},
        "share": {name: side.share for name, side in sides.items()},
        "users_per_gib": {name: side.users_per_gib for name, side in sides.items()},
    }


def _best(attempts: Sequence[Attempt], budget: CostBudget) -> Attempt | None:
    """Of what fits the one with most room used, which is the first; else what may fit."""
    for attempt in attempts:
        if attempt.fits(budget):
            return attempt
    close = [attempt for attempt in attempts if attempt.may_fit(budget)]
    return min(close, key=lambda attempt: attempt.share, default=None)


def exactly(request: SearchRequest, mask: Mask) -> Prune:
    """The pruning that keeps these heads."""
    exact = Pattern(keep=json.dumps(mask.to_json()))
    return replace(
        request.like, method=exact, ratio=None, baseline=0, gated=not request.like.repair
    )


def attempted(
    request: SearchRequest,
    budget: CostBudget,
    prices: Prices,
    ways: Mapping[Place, list[LayerChoice]],
) -> list[Attempt]:
    """Prunings with less and less room, until one fits by what it really takes."""
    places, attempts = list(ways), []
    limit = budget.limit(prices.whole)
    room = limit
    priced = [[(prices.price(site, way), way.loss) for way in ways[site]] for site in places]
    alike = _alike(request.subject.layout, ways) if request.like.uniform else None
    for tries in range(1, TRIES + 1):
        left = room - prices.fixed
        chosen = knapsack(priced, left) if alike is None else _largest(alike, priced, left)
        if chosen is None:
            break
        taken = {site: ways[site][number] for site, number in zip(places, chosen, strict=True)}
        mask = mask_of(request.subject.layout, taken)
        spent = sum(row[number][0] for row, number in zip(priced, chosen, strict=True))
        request.report(
            f"trying {len(mask)} of {len(mask.layout)} heads, {tries} of at most {TRIES}"
        )
        attempt = _attempt(request, budget, mask, prices.fixed + spent)
        attempts.append(attempt)
        if attempt.fits(budget):
            break
        over = attempt.amount.value / budget.limit(attempt.before)
        # twice what it is over: where it would be met by a hair, noise would decide
        room -= max(2 * (over - 1), 0.01) * limit
    return attempts


def _alike(layout: Layout, ways: Mapping[Place, list[LayerChoice]]) -> list[list[int]]:
    """For every uniform number of heads, from the most, which of its ways each layer takes."""
    numbers = [
        {(way.groups, len(way.heads)): number for number, way in enumerate(choices)}
        for choices in ways.values()
    ]
    every = [
        [
            known.get((level[stack][0], level[stack][0] * level[stack][1]))
            for (stack, _), known in zip(ways, numbers, strict=True)
        ]
        for level in reversed(levels(layout))
    ]
    # one group for all heads cannot be kept in part
    return [[n for n in chosen if n is not None] for chosen in every if None not in chosen]


def _largest(
    alike: Sequence[list[int]], priced: Sequence[Sequence[tuple[float, float]]], limit: float
) -> list[int] | None:
    """The first of these that the budget has room for."""
    for chosen in alike:
        if sum(row[number][0] for row, number in zip(priced, chosen, strict=True)) <= limit:
            return chosen
    return None


def _attempt(request: SearchRequest, budget: CostBudget, mask: Mask, predicted: float) -> Attempt:
    """The heads removed, and what is left counted or timed."""
    model = request.subject.model
    small = remove(model, mask)
    if budget.kind != "latency":
        before, after = (_counted(budget, one) for one in (model, small))
        amount = Amount.exactly(after)
        return Attempt(
            mask=mask, predicted=predicted, amount=amount, before=before, timing=None, speedup=None
        )
    timing = timed(request, mask, small)
    dense, row = timing.shapes[0].rows  # of several shapes the first one has the budget
    took = row.seconds
    return Attempt(
        mask=mask,
        predicted=predicted,
        before=dense.seconds.median,
        **speed_of(timing),
        amount=Amount(value=took.median, low=took.low, high=took.high),
    )


def _counted(budget: CostBudget, model: PreTrainedModel) -> float:
    if budget.kind == "parameters":
        return float(model.num_parameters())
    return float(sum(site.cache for site in cost(model).sites))


def _over(
    request: SearchRequest,
    judge: Judge,
    extra: dict[str, Any],
    attempts: list[Attempt],
    prices: Prices,
) -> SearchResult:
    """What there is to say where no pruning is within the budget."""
    near = min(attempts, key=lambda attempt: attempt.share, default=None)
    nearest = {"kept": 0, "amount": prices.fixed, "before": prices.whole}
    if near is not None:
        nearest = {"kept": len(near.mask), "amount": near.amount.value, "before": near.before}
    data = nothing_found(request, judge) | extra | {"nearest": nearest}
    return SearchResult(data | {"sentence": over_budget_sentence(data)})
