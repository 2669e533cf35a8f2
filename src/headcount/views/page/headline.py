"""The first sentence of the page: a search's, or the best statement that the records allow."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headcount.base.names import split_words
from headcount.studies.search.answer_card import AnswerCard, answer_card
from headcount.views.page.pruned import PrunedVariant, higher_is_better
from headcount.views.page.reading import (
    COMMAND,
    NOTE,
    Interval,
    Values,
    fill,
    number,
    numbers,
    text,
)
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

NOT_HELD_OUT = (
    "This model was picked after its score was seen, on the same rows; headcount search tests the "
    "model that it selects on a held-out set."
)


@dataclass(frozen=True, kw_only=True)
class TriedSize:
    """A number of heads that a search tried."""

    method: str
    kept: float | None
    rows: float | None
    seeds: Values
    difference: Interval | None
    probability: float | None
    """That the loss is within the bound."""
    accepted: bool | None
    """None within a budget or at the knee, where no number of heads is judged."""


@dataclass(frozen=True, kw_only=True)
class RandomScores:
    """As many heads at random, on the held-out set."""

    mean: float | None
    worst: float | None
    best: float | None
    count: float | None


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The sentence, what it is based on, and which pruned model it is about."""

    sentence: str
    note: str = ""
    command: str | None = None
    selected: int | None = None
    """The place of the model in the list of pruned models."""
    kept: float | None = None
    bound: str | None = None
    """The largest loss, or the budget, as it was given to the search."""
    max_loss: float | None = None
    """The largest loss, in the unit of the score; None for another kind of bound."""
    within_bound: bool | None = None
    parameters: tuple[float, float] | None = None
    random: RandomScores | None = None
    tried: list[TriedSize] = field(default_factory=list)
    card: AnswerCard | None = None


def headline(
    subject: PageSubject, report: ReportInput, models: Sequence[PrunedVariant]
) -> Headline:
    """The search's sentence where there is a search; else of the smallest model without a loss."""
    of_searches = report.each(subject.of("search"), lambda item: _of_search(item, subject, models))
    return of_searches[0] if of_searches else _of_records(subject, models)


def _of_search(item: ReportItem, subject: PageSubject, models: Sequence[PrunedVariant]) -> Headline:
    data = item.data
    final = [run for run in subject.of("prune") if run.folder == item.folder / "model"]
    wanted = {str(run.data.get("id")) for run in final}
    selected = [
        at for at, model in enumerate(models) if model.id in wanted and model.kept == data["kept"]
    ]
    sizes, random = data.get("parameters"), data.get("random")
    return Headline(
        sentence=text(data["sentence"], 2 * NOTE),
        note=_note(data.get("rows")),
        command=item.command,
        card=answer_card(data),
        selected=selected[0] if selected else None,
        kept=number(data.get("kept")),
        bound=None if data.get("bound") is None else text(data["bound"], 40),
        max_loss=_max_loss(data),
        within_bound=data.get("within_bound"),
        parameters=(sizes["before"], sizes["after"]) if sizes else None,
        random=fill(RandomScores, random, count=number(random["draws"])) if random else None,
        tried=[
            fill(
                TriedSize,
                row,
                seeds=numbers(row["seeds"]),
                probability=number(row["probability"]),
                accepted=None if row["accepted"] is None else row["accepted"] is True,
            )
            for row in data.get("sizes") or []
        ],
    )


def _max_loss(data: Mapping[str, object]) -> float | None:
    bound, full = data.get("bound"), number(data.get("full"))
    if data.get("by") != "loss" or bound is None:
        return None
    given = str(bound).replace(" ", "").replace("−", "-")
    if not given.endswith("%"):
        return abs(float(given))
    return None if full is None else abs(float(given[:-1]) / 100 * full)


def _note(rows: Mapping[str, Any] | None) -> str:
    """Which rows selected, and which the sentence is about."""
    if not rows or not rows.get("selection"):
        return ""
    selection, held_out = (
        rows.get(use) and text(split_words(rows[use]["split"], rows[use]["n"]), 80)
        for use in ("selection", "held_out")
    )
    if not held_out:  # no model was selected, so none was scored
        return f"Selected on {selection}."
    return f"Selected on {selection}; the estimate is from {held_out}, which selected nothing."


def _of_records(subject: PageSubject, models: Sequence[PrunedVariant]) -> Headline:
    """The smallest pruned model without a measurable loss, over all its seeds."""
    heads = len(subject.layout)
    groups: dict[tuple[object, ...], list[int]] = {}
    for at, model in enumerate(models):
        groups.setdefault((model.study, model.method, model.kept), []).append(at)
    same = [group for group in groups.values() if all(_lossless(models[at], heads) for at in group)]
    if same:
        best = min(same, key=lambda group: _size_and_loss([models[at] for at in group]))
        model = models[best[0]]
        score, loss = model.score or Interval(None), model.difference or Interval(None)
        full = model.full or Interval(None)
        if full.value is None:
            full = Interval((score.value or 0) - (loss.value or 0))
        sentence = (
            f"{heads - model.kept} of {heads} heads can go, as far as these rows show: with "
            f"{model.method}, {model.metric} is {score.value:.3f} instead of {full.value:.3f}, a "
            f"difference of {signed(loss.value)} [{signed(loss.low)}, {signed(loss.high)}]"
            + (f" on {model.rows.n:,} rows." if model.rows.n else ".")
        )
        kept = model.kept
        return Headline(sentence=sentence, note=NOT_HELD_OUT, selected=best[0], kept=kept)
    if any(model.difference for model in models):
        return Headline(
            sentence=f"No pruned model that was tried keeps the score of all {heads} heads."
        )
    task = f" on {subject.task}" if subject.task else ""
    sentence = f"{subject.model} has {heads} heads; no pruned model has been scored{task} yet."
    return Headline(sentence=sentence, command=_next_command(subject))


def _size_and_loss(models: Sequence[PrunedVariant]) -> tuple[int, float]:
    """Heads, and the mean loss of seeds."""
    sign = -1 if higher_is_better(models[0].metric) else 1
    changes = [model.difference.value or 0 for model in models if model.difference]
    return models[0].kept, sign * sum(changes) / len(changes)


def _lossless(model: PrunedVariant, heads: int) -> bool:
    """Whether the interval of the difference has zero in it, or is for the better."""
    loss = model.difference
    if model.kept >= heads or not loss or loss.low is None or loss.high is None:
        return False
    if model.score is None or model.score.value is None:  # a damaged record
        return False
    better = loss.low > 0 if higher_is_better(model.metric) else loss.high < 0
    return better or loss.low <= 0 <= loss.high


def _next_command(subject: PageSubject) -> str | None:
    """A search of the model, on the rows that its records name."""
    runs = [item.data.get("run") for item in subject.items if isinstance(item.data, Mapping)]
    run = next((run for run in runs if isinstance(run, Mapping) and run.get("task")), None)
    if run is None or not isinstance(run.get("model"), str):
        return None
    words = ["headcount", "search", run["model"], "--task", str(run["task"])]
    source = run.get("source")
    for name, value in (source if isinstance(source, Mapping) else {}).items():
        values = value if isinstance(value, list) else [value]
        if value is not None and values:
            words += [f"--{name}", *map(str, values)]
    return text(shlex.join([*words, "--max-drop", "1%", "--out", "search"]), COMMAND)


def signed(value: float | None) -> str:
    """A difference with its sign, typographic.

    >>> signed(-0.0213), signed(0.001)
    ('−0.021', '+0.001')
    """
    return "?" if value is None else f"{value:+.3f}".replace("-", "−")
