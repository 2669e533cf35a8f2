"""The demo as a story: what is asked, by which command, and what came out in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TASK = "--task pocket-acceptability"
NEXT = (
    "headcount search ./my-bert --task mrpc --data glue/MRPC --max-drop 1% --out answer",
    "headcount roles ./my-bert --inputs texts.txt --out answer/roles.json",
    "headcount report answer -o answer.html",
)
"""What to try after it."""
Found = Mapping[str, Any]


def tell_train(found: Found) -> str:
    """How good the model is."""
    scored = found["evaluation"]
    return (
        f"It has learnt it: {scored['metric']} {scored['score']:.3f} on {scored['n']:,} sentences "
        "that it has not seen."
    )


def tell_search(found: Found) -> str:
    """The answer."""
    return str(found["sentence"])


def tell_curve(found: Found) -> str:
    """What the methods keep of the score where half of the heads are gone."""
    half = [row for row in found["summary"] if row["ratio"] == 0.5]
    best = sorted(half, key=lambda row: -row["mean"])
    each = ", ".join(f"{row['method']} {row['mean']:.3f}" for row in best)
    return f"With half of the heads and no repair: {each} (all heads {found['full']['score']:.3f})."


def tell_redundancy(found: Found) -> str:
    """How near the nearest and how far the farthest two heads are."""
    each = found["summary"][0]
    return (
        f"The nearest two are {each['smallest']:.2f} apart, the farthest {each['largest']:.2f}, "
        f"{each['mean']:.2f} in the mean ({each['distance']}, {found['count']} sentences)."
    )


def tell_importance(found: Found) -> str:
    """The heads that the loss feels most and least."""
    scores = [
        (value, f"{layer}.{head}")
        for layer, row in enumerate(found["scores"]["encoder"])
        for head, value in enumerate(row)
    ]
    (least, first), (most, last) = min(scores), max(scores)
    return f"Head {last} most ({most:.3f}), head {first} least ({least:.4f})."


def tell_roles(found: Found) -> str:
    """How many heads have which role."""
    roles = Counter(role for role in found["roles"] if role)
    each = ", ".join(f"{count} {role}" for role, count in roles.most_common())
    return f"{each or 'none'} of {len(found['roles'])}; the others have no single role."


def tell_bench(found: Found) -> str:
    """How long the smaller model takes."""
    rows = [row for row in found["timings"] if row["kind"] == "removed"]
    ratio = rows[-1]["ratio"]
    return (
        f"It takes {ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}] of the time, "
        f"and the FLOPs promise {rows[-1]['ideal']:.2f}."
    )


def tell_report(found: Found) -> str:
    """How large the page is."""
    return f"{found['bytes'] / 1e6:.1f} MB from {found['files']} files."


@dataclass(frozen=True)
class Step:
    """One command of the demo."""

    why: str
    command: str
    tell: Callable[[Found], str]
    file: str | None = None
    """Where what it printed is kept for the page, when the command keeps nothing itself."""


STORY = (
    Step(
        "A model to work on: the shipped pocket BERT, 6 layers of 8 heads, learns to tell "
        "sentences from what is none.",
        f"train pocket {TASK} --preset pocket --out {{out}}/pocket",
        tell_train,
    ),
    Step(
        "How many of its 48 heads does it need, if at most 1 % of the score may be lost?",
        f"search {{out}}/pocket {TASK} --max-drop 1% --out {{out}}/search",
        tell_search,
    ),
    Step(
        "Does it matter how heads are chosen?",
        f"curve {{out}}/pocket {TASK} --methods random,importance,surgeon --ratios 0.25,0.5,0.75 "
        "--seeds 3 --out {out}/curve",
        tell_curve,
    ),
    Step(
        "Which heads look at the same things?",
        f"redundancy {{out}}/pocket {TASK} --samples 200 --distances js,cos "
        "--out {out}/heads.npz",
        tell_redundancy,
    ),
    Step(
        "Which ones does the task feel?",
        f"importance {{out}}/pocket {TASK} --samples 300 --out {{out}}/importance.json",
        tell_importance,
    ),
    Step(
        "And what do they do? Heads that look at the token before, after, at themselves …",
        f"roles {{out}}/pocket {TASK} --samples 200 --alone --limit 200 --time "
        "--out {out}/roles.json",
        tell_roles,
    ),
    Step(
        "Is the smaller model faster?",
        "bench {out}/pocket {out}/search/model --batch 8 --length 32 --no-onnx",
        tell_bench,
        file="bench.json",
    ),
    Step("All of it on one page.", "report {out} -o {out}/report.html", tell_report),
)
