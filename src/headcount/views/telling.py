"""What the commands of the demo found, each in a sentence or two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any

from headcount.base.text import as_fast

Found = Mapping[str, Any]
LOOKS = {
    "previous": "at the token before", "next": "at the token behind", "same": "at the token itself",
    "first": "at the first token", "separator": "at separators", "duplicate": "at repeated tokens",
    "induction": "at what came after the same token before",
}  # fmt: skip


def tell_train(found: Found) -> str:
    """How good the model is."""
    scored = found["evaluation"]
    return (
        f"It has learnt it: {scored['metric']} {scored['score']:.3f} on {scored['n']:,} sentences "
        "that it has not seen (1 is perfect, 0 is guessing)."
    )


def tell_search(found: Found) -> str:
    """The answer."""
    return str(found["sentence"])


def tell_curve(found: Found) -> str:
    """What the methods keep of the score where half of the heads are gone."""
    half = [row for row in found["summary"] if row["ratio"] == 0.5]
    best = sorted(half, key=lambda row: -row["mean"])
    each = ", ".join(f"{row['method']} {row['mean']:.3f}" for row in best)
    last = "It does: random cuts lose most." if best[-1]["method"] == "random" else ""
    whole = f"all heads {found['full']['score']:.3f}"
    return f"With half of the heads gone and no repair: {each} ({whole}). {last}".strip()


def tell_redundancy(found: Found) -> str:
    """How near the nearest and how far the farthest two heads are."""
    each = found["summary"][0]
    return (
        f"The two most alike are {each['smallest']:.2f} apart, the two least alike "
        f"{each['largest']:.2f}; {each['mean']:.2f} in the mean (0 is the same, 1 is nothing in "
        f"common; {found['count']} sentences)."
    )


def tell_importance(found: Found) -> str:
    """The heads that the loss feels most and least."""
    scores = [
        (value, f"head {head} of layer {layer}")
        for layer, row in enumerate(found["scores"]["encoder"])
        for head, value in enumerate(row)
    ]
    (least, first), (most, last) = min(scores), max(scores)
    return f"On {last} most, {most / max(least, 1e-9):.0f} times as much as on {first}."


def tell_roles(found: Found) -> str:
    """How many heads have which role, and how much of a head the others could say."""
    roles = Counter(role for role in found["roles"] if role)
    each = ", ".join(f"{count} look {LOOKS.get(role, role)}" for role, count in roles.most_common())
    shares = [share for share in found["quantities"]["stand_in"]["values"] if share is not None]
    rest = len(found["roles"]) - roles.total()
    return (
        f"{each or 'None has a clear role'}; {rest} have no single role. Of what a head says, the "
        f"others of its layer could say {100 * median(shares):.0f} % in its place (median)."
    )


def tell_attention(found: Found) -> str:
    """How many heads are gone, and how far the others moved."""
    rows = [row for row in found["heads"] if not row["run"]]
    moved = [row["divergence"] for row in rows if row["after"] is not None]
    gone = len(rows) - len(moved)
    return (
        f"{gone} heads are gone, and the other {len(moved)} look almost where they looked: "
        f"{sum(moved) / max(len(moved), 1):.3f} bits apart in the mean (1 is nothing in common)."
    )


def tell_transfer(found: Found) -> str:
    """Which layers changed most and least."""
    layers = found["drift"]["layers"]
    most, least = (choose(layers, key=lambda row: row["mean"]) for choose in (max, min))
    return (
        f"Heads of layer {most['layer']} most: their attention moved by {most['mean']:.3f} bits; "
        f"in layer {least['layer']} by {least['mean']:.3f}."
    )


def tell_gates(found: Found) -> str:
    """How many gates training closed, and what was left of the score."""
    heads, scores = found["heads"], found["scores"]
    return (
        f"Gates that were trained beside the weights left {heads['after']} of {heads['before']} "
        f"heads open ({heads['kept']} by layer): {scores['metric']} "
        f"{scores['after']['score']:.3f}."
    )


def tell_bench(found: Found) -> str:
    """How fast the smaller model is."""
    row = [row for row in found["timings"] if row["kind"] == "removed"][-1]
    limit = "" if row["bound"] is None else f"; the FLOPs allow {row['bound']:.2f} × at best"
    return f"It is {as_fast(row['speedup'])}{limit}."


def tell_report(found: Found) -> str:
    """How large the page is."""
    return f"{found['bytes'] / 1e6:.1f} MB from {found['files']} files."
