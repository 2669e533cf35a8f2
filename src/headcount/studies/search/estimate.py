"""What a search found: one object for `search.json`, and its one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transformers import PreTrainedModel

from headcount.base.text import as_fast, line
from headcount.heads import Mask
from headcount.studies.search.answer_card import AnswerCard, SearchData, answer_card, as_percent
from headcount.tasks.metrics import Difference


@dataclass(frozen=True, eq=False)
class SearchResult:
    """How many heads a model needs, what that was seen on, and the model."""

    data: SearchData
    """What is in `search.json`."""
    model: PreTrainedModel | None = field(default=None, repr=False)
    """The model without the other heads; None where none was selected."""
    mask: Mask | None = None

    @property
    def met(self) -> bool:
        """Whether a model was selected, and is within the bound on the held-out set, too."""
        return self.model is not None and self.data["within_bound"] is not False

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        return str(self.data["sentence"])

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return dict(self.data)

    @property
    def card(self) -> AnswerCard:
        """The answer in a line, with three figures."""
        return answer_card(self.data)

    def _repr_html_(self) -> str:
        return self.card._repr_html_()

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        kept = f"{self.data['kept']} of {self.data['heads']} heads"
        return line(f"SearchResult({kept} on {self.data['task']})")


def sentence_of(data: SearchData) -> str:
    """The sentence of a search that selected a model, from what is in `search.json`."""
    name, task, metric = Path(str(data["model"])).name, data["task"], data["metric"]
    lost = Difference(metric=metric, **data["difference"])
    digits = 3 if abs(data["full"]) < 10 else 2
    scores = f"{data['full']:.{digits}f} → {data['score']:.{digits}f}"
    text = (
        f"{name} {'keeps' if data['by'] == 'budget' else 'needs'} {data['kept']} of its "
        f"{data['heads']} heads on {task}{_why(data)}{_guessing(data)}: {metric} {scores} "
        f"({lost}{_relative(data['full'], data['score'])})"
    )
    if data["probability"] is not None:
        rise = "loss" if data["higher_is_better"] else "rise"
        sure = f"with a probability of {as_percent(data['probability'])}"
        if data["within_bound"]:
            text += f", the {rise} is within {data['bound']} {sure}"
        else:
            text += f", the {rise} is not within {data['bound']} here, and on new rows {sure}"
    parts = [*_times(data), f"{_millions(data['parameters'])} parameters"]
    if data.get("cache") is not None:
        cache = data["cache"]
        parts.append("{before:,} → {after:,} bytes of cache a token".format(**cache))
        parts[-1] += (
            f" ({_relative(cache['before'], cache['after'])[2:]})" if cache["before"] else ""
        )
        parts += _served(cache) if "context" in cache else []
    best = f", the best of {len(data['seeds'])}" if len(data["seeds"]) > 1 else ""
    selected = f"heads by {data['method']}, seed {data['seed']}{best}"
    if data.get("free"):
        selected += f"; layers free to differ: {data['free']['score']['score']:.{digits}f}"
    return f"{text}; {selected}{random_words(data)}; {', '.join(parts)}."


def _served(cache: SearchData) -> list[str]:
    """What the cache takes at a context, for a batch of users."""
    size, share, users = (
        [cache[name][when] for when in ("before", "after")]
        for name in ("bytes", "share", "users_per_gib")
    )
    fitting = " → ".join("any number of" if some is None else f"{some:,.1f}" for some in users)
    return [
        f"at {cache['batch']} × {cache['context']:,} tokens {size[0] / 2**20:,.1f} → "
        f"{size[1] / 2**20:,.1f} MiB of cache, {100 * share[0]:.0f} → {100 * share[1]:.0f} % of "
        f"the bytes read for a token, {fitting} users per GiB"
    ]


def random_words(data: SearchData) -> str:
    """What as many heads at random score on the same rows; empty where none were drawn."""
    drawn = data["random"]
    if not drawn:
        return ""
    digits = 3 if abs(data["full"]) < 10 else 2
    mean, *ends = (f"{drawn[name]:.{digits}f}" for name in ("mean", "worst", "best"))
    if drawn["draws"] == 1:
        return f"; as many at random: {mean}"
    return f"; as many at random: {mean} in the mean of {drawn['draws']} ({' to '.join(ends)})"


def _relative(before: float, after: float) -> str:
    """A change as a share of what was before, after a comma.

    >>> _relative(0.8, 0.796), _relative(20.0, 25.0), _relative(0.0, 0.1)
    (', −0.5 %', ', +25.0 %', '')
    """
    if not before or math.isnan(after - before):
        return ""
    change = round(100 * (after - before) / abs(before), 1)
    return f", {change:+.1f} %".replace("-", "−") if change else ", 0.0 %"


def unmet_sentence(data: SearchData) -> str:
    """How close a search came that found no pruning within its bound."""
    name, task = Path(str(data["model"])).name, data["task"]
    near = data["nearest"]
    start = f"No pruning of {name} on {task} is within {data['bound']}"
    if near is None:
        return f"{start}: nothing was tried."
    lost = Difference(metric=data["metric"], **near["difference"])
    return (
        f"{start}: the nearest, {near['kept']} of its {data['heads']} heads by {near['method']}, "
        f"changes {data['metric']} by {lost}, within the bound with a probability of "
        f"{as_percent(near['probability'])}{_guessing(data)}."
    )


def over_budget_sentence(data: SearchData) -> str:
    """How close a search came whose budget no pruning meets."""
    near = data["nearest"]
    share = near["amount"] / near["before"]
    left = "without any head" if not near["kept"] else f"with {near['kept']} of its heads"
    return (
        f"No pruning of {Path(str(data['model'])).name} on {data['task']} is within "
        f"{data['bound']}: "
        f"{left} it takes {share:.3f} × what it takes with all {data['heads']}."
    )


def _why(data: SearchData) -> str:
    if data["by"] == "knee":
        return " (no bound was given: this is the knee of its curve)"
    if data["by"] != "budget":
        return ""
    if data["within_bound"]:
        return f" within {data['bound']}"
    value, low, high = (
        data["amount"][name] / data["amount"]["before"] for name in ("value", "low", "high")
    )
    measured = f"{value:.3f} × [{low:.3f}, {high:.3f}]"
    return f" at {measured}, of which only the interval is within {data['bound']}"


def _guessing(data: SearchData) -> str:
    """Whether all heads, or those that stay, do no better than guessing; empty where they do."""
    guess = data.get("guess")
    if guess is None:
        return ""
    for name, which in (("full", "where with all of them it"), ("score", "with which it")):
        lost = guess[name]
        if lost is not None and not lost["better"]:
            above = lost["value"] is not None and lost["value"] > 0
            words = "not measurably better than" if above else "not better than"
            return f", {which} is {words} guessing ({data['metric']} {guess['value']:.3f})"
    return ""


def _times(data: SearchData) -> list[str]:
    """How fast it is on inputs of every shape, and what FLOPs allow there."""
    if data["speedup"] is None:
        return ["its time was not measured"]
    text = []
    for shape in data["timing"]["shapes"]:
        bound = "" if shape["bound"] is None else f" (FLOPs allow {shape['bound']:.2f} ×)"
        text.append(f"{as_fast(shape['speedup'])} at {shape['batch']} × {shape['reads']}{bound}")
    return text


def _millions(counts: Mapping[str, int]) -> str:
    large = counts["before"] >= 1e6
    return " → ".join(
        f"{counts[when] / 1e6:.1f} M" if large else f"{counts[when]:,}"
        for when in ("before", "after")
    )
