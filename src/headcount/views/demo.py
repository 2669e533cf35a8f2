"""The demo: a question, the command that answers it, and its result in a sentence, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from headcount.base.text import as_fast

Data = Mapping[str, Any]
"""What a command prints with --json."""
TASK = "--task pocket-acceptability"
BEGIN = (
    "How many attention heads does a transformer need? A small one is trained, measured and pruned "
    "here, offline, in a few minutes. Every step is a command that you could type."
)
NEXT = (
    "headcount search ./my-bert --task mrpc --data glue --max-drop 1% --out search",
    "headcount roles ./my-bert search/model --calibration texts.txt --out search/roles.json",
    "headcount report search -o search.html",
)
"""What to try after it."""
TARGETS = {
    "previous": "the previous token",
    "next": "the next token",
    "same": "the token itself",
    "first": "the first token",
    "separator": "separators",
    "duplicate": "repeated tokens",
    "induction": "the token that followed the same token before",
}
"""What a head with a role attends to."""


def describe_training(data: Data) -> str:
    """How good the model is."""
    scores = data["evaluation"]
    return (
        f"It has learnt the task: {scores['metric']} {scores['score']:.3f} on {scores['n']:,} "
        "sentences that it has not seen (1 is perfect, 0 is guessing)."
    )


def describe_curve(data: Data) -> str:
    """What the methods keep of the score where half of the heads are gone."""
    half = [row for row in data["summary"] if row["ratio"] == 0.5]
    best = sorted(half, key=lambda row: -row["mean"])
    scores = ", ".join(f"{row['method']} {row['mean']:.3f}" for row in best)
    last = "It does: random heads lose most." if best[-1]["method"] == "random" else ""
    full = f"all heads {data['full']['score']:.3f}"
    return f"With half of the heads gone and no repair: {scores} ({full}). {last}".strip()


def describe_redundancy(data: Data) -> str:
    """How near the nearest and how far the farthest two heads are."""
    distance = data["summary"][0]
    return (
        f"The two most alike are {distance['smallest']:.2f} apart, the two least alike "
        f"{distance['largest']:.2f}; the mean is {distance['mean']:.2f} (0 is the same, 1 is "
        f"nothing in common; {data['count']} sentences)."
    )


def describe_importance(data: Data) -> str:
    """The heads that the loss is most and least sensitive to."""
    scores = [
        (value, f"head {head} of layer {layer}")
        for layer, row in enumerate(data["scores"]["encoder"])
        for head, value in enumerate(row)
    ]
    (least, first), (most, last) = min(scores), max(scores)
    return f"On {last} most, {most / max(least, 1e-9):.0f} times as much as on {first}."


def describe_roles(data: Data) -> str:
    """How many heads have which role, and how much of a head the others could replace."""
    roles = Counter(role for role in data["roles"] if role)
    counts = ", ".join(
        f"{count} attend to {TARGETS.get(role, role)}" for role, count in roles.most_common()
    )
    shares = [share for share in data["quantities"]["replaceable"]["values"] if share is not None]
    rest = len(data["roles"]) - roles.total()
    return (
        f"{counts or 'None has a clear role'}; {rest} have no single role. The other heads of its "
        f"layer could replace {100 * median(shares):.0f} % of a head's output (median)."
    )


def describe_attention(data: Data) -> str:
    """How many heads are gone, and how far the attention of the others moved."""
    rows = [row for row in data["heads"] if not row["run"]]
    moved = [row["divergence"] for row in rows if row["after"] is not None]
    return (
        f"{len(rows) - len(moved)} heads are gone, and the attention of the other {len(moved)} is "
        f"almost the same: {sum(moved) / max(len(moved), 1):.3f} bits apart in the mean (1 is "
        "nothing in common)."
    )


def describe_transfer(data: Data) -> str:
    """Which layers changed most and least."""
    layers = data["drift"]["layers"]
    most, least = (choose(layers, key=lambda row: row["mean"]) for choose in (max, min))
    return (
        f"Heads of layer {most['layer']} most: their attention moved by {most['mean']:.3f} bits; "
        f"in layer {least['layer']} by {least['mean']:.3f}."
    )


def describe_gates(data: Data) -> str:
    """How many gates training closed, and what was left of the score."""
    heads, scores = data["heads"], data["scores"]
    return (
        f"Gates that were trained beside the weights left {heads['after']} of {heads['before']} "
        f"heads open ({heads['kept']} by layer): {scores['metric']} "
        f"{scores['after']['score']:.3f}."
    )


def describe_bench(data: Data) -> str:
    """How fast the smaller model is."""
    row = [row for row in data["timings"] if row["kind"] == "removed"][-1]
    limit = "" if row["bound"] is None else f"; the FLOPs allow {row['bound']:.2f} × at best"
    return f"It is {as_fast(row['speedup'])}{limit}."


@dataclass(frozen=True)
class Step:
    """One command of the demo."""

    question: str
    command: str
    describe: Callable[[Data], str]
    file: str | None = None
    """Where what it printed is kept for the page, when the command keeps nothing itself."""


STORY = (
    Step(
        "First a model to work on: the pocket BERT that ships with headcount, 6 layers of 8 "
        "heads, learns to tell sentences from strings of words that are none.",
        f"train pocket {TASK} --preset pocket --out {{out}}/pocket",
        describe_training,
    ),
    Step(
        "The question: how many of its 48 heads does it need, if at most 2 % of that score may be "
        "lost? Heads are removed, the rest is repaired without training, and tested.",
        f"search {{out}}/pocket {TASK} --max-drop 2% --calibration-samples 256 --seeds 2 "
        "--out {out}/search",
        lambda data: str(data["sentence"]),
    ),
    Step(
        "Does it matter which heads go?",
        f"curve {{out}}/pocket {TASK} --methods random,importance,surgeon --ratios 0.25,0.5,0.75 "
        "--seeds 3 --calibration-samples 256 --out {out}/curve",
        describe_curve,
    ),
    Step(
        "Do some heads attend to the same tokens?",
        f"redundancy {{out}}/pocket {TASK} --calibration-samples 200 --distances js,cos "
        "--out {out}/near.npz",
        describe_redundancy,
    ),
    Step(
        "On which heads does the task depend?",
        f"importance {{out}}/pocket {TASK} --calibration-samples 300 --out {{out}}/importance.json",
        describe_importance,
    ),
    Step(
        "And what do they do? Each head is measured, timed, and removed alone.",
        f"roles {{out}}/pocket {{out}}/search/model {TASK} --calibration-samples 200 --alone "
        "--limit 200 "
        "--time --out {out}/roles.json",
        describe_roles,
    ),
    Step(
        "What do they attend to in a sentence, before and after pruning?",
        "attention {out}/pocket {out}/search/model "
        '--text "the teacher near the girls follows the old king and the dog sleeps ." '
        "--out {out}/attention",
        describe_attention,
    ),
    Step(
        "Which heads did the fine-tuning change?",
        f"transfer pocket {{out}}/pocket {TASK} --calibration-samples 150 --importance-samples 128 "
        "--out {out}/transfer",
        describe_transfer,
    ),
    Step(
        "Could the model have learnt by itself which heads to close?",
        f"prune {{out}}/pocket --method straight-through --ratio 0.4 {TASK} --preset pocket "
        "--steps 80 --limit 500 --baseline 0 --out {out}/gated",
        describe_gates,
    ),
    Step(
        "Is the smaller model faster?",
        "bench {out}/pocket {out}/search/model --batch 8 --length 32 --no-onnx",
        describe_bench,
        file="bench.json",
    ),
    Step(
        "All of it on one page.",
        "report {out} -o {out}/report.html",
        lambda data: f"{data['bytes'] / 1e6:.1f} MB from {data['files']} files.",
    ),
)
