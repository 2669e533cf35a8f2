"""Score against the share of heads removed, for several methods, and one page of it.

python compare_methods.py ./mrpc mrpc     # all you need for a model and a task that it knows
python compare_methods.py                 # the pocket model, offline, quick
"""

from __future__ import annotations

import sys

import headcount as hc

METHODS = {
    "random": hc.Random(),
    "importance": hc.Importance(normalize="l1"),
    "surgeon": hc.Surgeon(),
}


def main(model: str, task: str, quick: bool) -> None:
    curve = hc.curve(
        model,
        task,
        list(METHODS.values()),
        ratios=[0.5] if quick else [0.25, 0.5, 0.75],
        seeds=2 if quick else 5,
        repair=(hc.Recover(),),
        calibration=hc.Calibration(samples=16 if quick else 512),
        scoring=hc.Scoring(limit=40, bootstrap=100) if quick else None,
        out="curve",
    )
    for row in curve.summary():
        print(f"{row['method']:<12} {row['ratio']:.0%} gone: {row['mean']:.3f}")
    hc.report("curve", out="report.html")


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["pocket", "pocket-corpus"]
    main(*arguments, quick=not sys.argv[1:])
