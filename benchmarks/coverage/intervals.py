"""Do 95 % intervals cover, and are probabilities true? Simulated pruned models with a known loss.

    python benchmarks/coverage/intervals.py [--quick] [--simulations 150] [--json]

A full and a pruned model answer n rows; the pruned one is wrong where the full one is right, and
right where it is wrong, such that its true loss is known. For every metric, number of rows and
loss: the share of simulations in which the 95 % interval of the difference, and of the score,
covers the truth, and the share in which a loss below the true one is said to be sure (95 % or
more). Cells are empty where no interval is stated. Ends with 1 where an interval covers less than
0.93, or a probability of 95 % is false in more than 5 %, by more than simulations differ by chance
(1 in 1,000), in a cell or over all losses of a line. A quick run passes no verdict.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, spearmanr

from headcount.tasks.metrics import Outcome, get_metric, score
from headcount.tasks.within import within

ROWS = (8, 30, 60, 120, 250, 1000)
LOSSES = (0.0, 0.001, 0.003, 0.006, 0.01, 0.017, 0.03, 0.05, 0.1)
COVERS, FALSE, SURE = 0.93, 0.05, 0.95
CHANCE = 1e-3
"""That a cell which is right misses its bar by the luck of the simulations."""
DRAWS = 400
WRONG = 0.15
"""Share of rows that the full model gets wrong."""
GAINED = 0.005
"""Share of rows that only the pruned model gets right, beside half of its loss."""
Pair = tuple[Outcome, Outcome]
Simulate = Callable[[int, np.random.Generator], Pair]


def class_shares(positive: float, lost: float, gained: float) -> tuple[np.ndarray, np.ndarray]:
    """(8, 3) label, before, after, and (8,) how often they occur."""
    cells = np.array([(y, b, a) for y in (0, 1) for b in (0, 1) for a in (0, 1)])
    label, before, after = cells.T
    right, still = before == label, after == label
    shares = np.where(label == 1, positive, 1 - positive) * np.where(right, 1 - WRONG, WRONG)
    kept, mended = lost / (1 - WRONG), gained / WRONG
    shares = shares * np.where(right, np.where(still, 1 - kept, kept), 1.0)
    return cells, shares * np.where(right, 1.0, np.where(still, mended, 1 - mended))


def classes(metric: str, positive: float, loss: float) -> tuple[Simulate, float, float]:
    """Rows of two classes, the full model's true score, and the true loss."""
    weighted = get_metric(metric).weighted
    gained = loss / 2 + GAINED

    def scores(lost: float) -> np.ndarray:
        cells, shares = class_shares(positive, lost, gained)
        return np.array(
            [float(weighted(cells[:, k], cells[:, 0])(shares[None])[0]) for k in (1, 2)]
        )

    lost = brentq(lambda x: scores(x) @ [1, -1] - loss, 0, 0.8)
    cells, shares = class_shares(positive, float(lost), gained)

    def simulate(n: int, rng: np.random.Generator) -> Pair:
        rows = cells[rng.choice(8, n, p=shares / shares.sum())]
        return Outcome(rows[:, 1], rows[:, 0]), Outcome(rows[:, 2], rows[:, 0])

    full = scores(float(lost))
    return simulate, full[0], full[0] - full[1]


def numbers(metric: str, loss: float) -> tuple[Simulate, float, float]:
    """Graded pairs as in STS-B, 0 to 5; the errors of both models are normal and alike in part."""

    def simulate(n: int, rng: np.random.Generator) -> Pair:
        label = rng.uniform(0, 5, n)
        shared, before, after = rng.normal(size=(3, n))
        errors = [0.95 * shared + math.sqrt(1 - 0.95**2) * side for side in (before, after)]
        sides = [label + size * error for size, error in zip(noise, errors, strict=True)]
        return Outcome(sides[0], label), Outcome(sides[1], label)

    spread = 5 / math.sqrt(12)
    start = 0.88
    if metric == "pearson":
        noise = [spread * math.sqrt(1 / r**2 - 1) for r in (start, start - loss)]
        return simulate, start, loss
    ranks = partial(_spearman, np.random.default_rng(0))
    first = brentq(lambda size: ranks(size) - start, 0.2, 3)
    last = first if not loss else brentq(lambda size: ranks(size) - start + loss, 0.2, 4)
    noise = [float(first), float(last)]
    return simulate, start, loss


def _spearman(rng: np.random.Generator, size: float) -> float:
    """The true rank correlation, from 20,000 rows that are the same in every call."""
    if not hasattr(_spearman, "rows"):
        label = (np.arange(200) + 0.5) / 40
        error = np.quantile(rng.normal(size=200_000), (np.arange(100) + 0.5) / 100)
        _spearman.rows = np.repeat(label, 100), np.tile(error, 200)  # type: ignore[attr-defined]
    label, error = _spearman.rows  # type: ignore[attr-defined]
    return float(spearmanr(label, label + size * error).statistic)


def language(loss: float) -> tuple[Simulate, float, float]:
    """Windows of 64 to 128 tokens; the pruned model is worse by skewed amounts, in some better.

    The loss is a share of the perplexity.
    """
    rise = math.log1p(loss)

    def simulate(n: int, rng: np.random.Generator) -> Pair:
        tokens = rng.integers(64, 129, n)
        level = rng.normal(3, 0.4, n)
        skewed = rng.lognormal(0, 0.5, n) - math.exp(0.125)
        after = level + rise + (0.02 + rise) * skewed
        sides = [np.column_stack([0.4 * tokens, side * tokens]) for side in (level, after)]
        return Outcome(sides[0], tokens), Outcome(sides[1], tokens)

    return simulate, math.exp(3), math.exp(3) * loss


KINDS: dict[str, Callable[[float], tuple[Simulate, float, float]]] = {
    "accuracy": partial(classes, "accuracy", 0.5),
    "f1": partial(classes, "f1", 0.68),
    "f1, 1 in 10 positive": partial(classes, "f1", 0.1),
    "matthews": partial(classes, "matthews", 0.7),
    "pearson": partial(numbers, "pearson"),
    "spearman": partial(numbers, "spearman"),
    "perplexity": language,
}


def cell(name: str, rows: int, loss: float, simulations: int) -> dict[str, object]:
    """How often intervals cover and probabilities are false, in one setting."""
    metric, rng = name.split(",")[0], np.random.default_rng([rows, int(1e4 * loss), len(name)])
    simulate, full, lost = KINDS[name](loss)
    sign = 1 if get_metric(metric).higher_is_better else -1
    counts = {"stated": 0, "difference": 0, "score": 0, "false": 0}
    for seed in range(simulations):
        before, after = simulate(rows, rng)
        # a loss that is just short of the true one
        bound = within(metric, before, [after], lost - 1e-9, bootstrap=DRAWS, seed=seed)
        alone = score(metric, before, bootstrap=DRAWS, seed=seed)
        if math.isnan(bound.difference.low) or math.isnan(alone.low):
            continue
        counts["stated"] += 1
        counts["difference"] += bound.difference.low <= -sign * lost <= bound.difference.high
        counts["score"] += alone.low <= full <= alone.high
        counts["false"] += bound.probability >= SURE
    return {"metric": name, "rows": rows, "loss": loss, "simulations": simulations} | counts


def missed(result: dict[str, object]) -> list[str]:
    """What of a cell is below its bar."""
    stated = int(str(result["stated"]))
    lines = []
    for name in ("difference", "score"):
        if stated and binom.cdf(result[name], stated, COVERS) < CHANCE:
            lines.append(f"the interval of the {name} covers {_share(result, name)}")
    if stated and binom.sf(int(str(result["false"])) - 1, stated, FALSE) < CHANCE:
        lines.append(f"a probability of 95 % is false in {_share(result, 'false')}")
    return [
        f"{result['metric']}, {result['rows']} rows, loss {result['loss']}: {one}" for one in lines
    ]


def _share(result: dict[str, object], name: str) -> str:
    stated = int(str(result["stated"]))
    return f"{int(str(result[name])) / stated:.3f}" if stated else ""


def pooled(line: list[dict[str, object]]) -> dict[str, object]:
    """All losses of a metric and number of rows as one cell."""
    names = ("simulations", "stated", "difference", "score", "false")
    sums = {name: sum(int(str(one[name])) for one in line) for name in names}
    return {"metric": line[0]["metric"], "rows": line[0]["rows"], "loss": "any"} | sums


def show(line: list[dict[str, object]]) -> None:
    """A metric and number of rows: coverage at every loss, the score's, and what is false."""
    whole = pooled(line)
    shares = [_share(one, "difference") for one in line]
    worst = max((_share(one, "false") for one in line), default="")
    cells = [str(whole["metric"]), str(whole["rows"]), *shares, _share(whole, "score"), worst]
    print("| " + " | ".join(cells) + " |", flush=True)


def simulations_of(name: str, rows: int, many: int) -> int:
    """Long rows of numbers cost most, and are where intervals are easiest."""
    if get_metric(name.split(",")[0]).classes or rows < 250:
        return many
    return max(4, many // (10 if rows >= 1000 else 2))


def main(arguments: list[str] | None = None) -> int:
    """Simulate, print, and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--simulations", type=int, default=150)
    parser.add_argument("--quick", action="store_true", help="few rows, 4 simulations, no verdict")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    many = 4 if options.quick else options.simulations
    lines = []
    if not options.json:
        print(f"| metric | rows | {' | '.join(map(str, LOSSES))} | score | 95 % false, at most |")
        print("|---|---|" + "---|" * (len(LOSSES) + 2))
    for name in KINDS:
        for rows in ROWS[:3] if options.quick else ROWS:
            count = simulations_of(name, rows, many)
            lines.append([cell(name, rows, loss, count) for loss in LOSSES])
            if not options.json:
                show(lines[-1])
    judged = [one for line in lines for one in (*line, pooled(line))]
    below = [] if options.quick else [problem for one in judged for problem in missed(one)]
    if options.json:
        cells = [one for line in lines for one in line]
        print(json.dumps({"cells": cells, "missed": below}, default=float))
    elif not options.quick:
        print("\n".join(["", *(below or ["Every bar is met."])]))
    return int(bool(below))


if __name__ == "__main__":
    sys.exit(main())
