"""The pruned models of a subject: every record of a prune, in orders that the slider replays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headcount.base.errors import HeadcountError
from headcount.heads import Layout, Mask
from headcount.repair.repairs import done_words
from headcount.views.page.reading import Interval, bits, interval, number, text
from headcount.views.page.rows import NO_ROWS, UsedRows, rows_text, set_of
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem


@dataclass(frozen=True, kw_only=True)
class FullScore:
    """The model with all its heads, scored."""

    score: Interval
    metric: str
    rows: UsedRows
    rows_text: str


@dataclass(frozen=True, kw_only=True)
class PrunedVariant:
    """One pruned model, with its score where it has one."""

    method: str
    """The method, what repaired it, and what else a study file varied."""
    kept: int
    mask: str
    pattern: str
    study: str | None = None
    search: str | None = None
    """The search that selected it."""
    seed: int = 0
    id: str = ""
    score: Interval | None = None
    full: Interval | None = None
    """The score of all heads on the same rows."""
    difference: Interval | None = None
    metric: str = ""
    rows: UsedRows = NO_ROWS
    rows_text: str = ""
    parameters: tuple[float, float] | None = None
    """Before and after."""
    steps: float | None = None
    command: str | None = None

    @property
    def basis(self) -> tuple[object, ...]:
        """What scores must share to be comparable: the rows, and all heads' score on them."""
        return self.rows.split, self.rows.n, self.full.value if self.full else None


@dataclass(frozen=True, kw_only=True)
class RemovalOrder:
    """Pruned models of one method and seed, from many heads to few: what the slider replays."""

    study: str | None
    method: str
    seed: int
    models: list[int]
    """Places in the list of pruned models."""
    held_out: list[int]
    """What a search selected from them, scored on the held-out set."""
    rows: str


@dataclass(frozen=True)
class ModelSize:
    """Parameters of the whole model, and of one head."""

    full: float
    head: float


def pruned_models(subject: PageSubject, report: ReportInput) -> list[PrunedVariant]:
    """Every pruned model of the subject, from many heads to few."""
    plans = {item.folder.parent: item.path.stem for item in report.of("file")}
    records = _judged(subject.of("prune"), {at for at, plan in plans.items() if plan == "search"})
    varied = varied_options(records, {at for at, plan in plans.items() if plan != "search"})
    searches = {item.folder for item in subject.of("search")}
    models = report.each(
        records, lambda item: _read(item, subject.layout, varied.get(item.path, ""), searches)
    )
    scored = {item.folder for item in records}
    masks = [item for item in subject.of("mask") if item.folder not in scored]
    models += report.each(masks, lambda item: _read_mask(item, subject.layout))
    return sorted(models, key=lambda model: -model.kept)


def _judged(records: Sequence[ReportItem], searches: set[Path]) -> list[ReportItem]:
    """All records, but of a search those on most rows: the others are of samples of the same."""
    items: dict[object, ReportItem] = {}
    for item in records:
        names = [str(item.data.get(name)) for name in ("method", "ratio", "seed")]
        key = (item.study, *names) if item.study in searches else item.path
        if key not in items or _rows(item) > _rows(items[key]):
            items[key] = item
    return list(items.values())


def _rows(item: ReportItem) -> float:
    scores = item.data.get("scores")
    return (number(scores.get("n")) if isinstance(scores, Mapping) else None) or 0.0


def _read_mask(item: ReportItem, layout: Layout) -> PrunedVariant:
    mask = Mask.from_json(item.data, layout)
    return PrunedVariant(method="mask", kept=len(mask), mask=bits(mask), pattern=mask.pattern)


def _read(item: ReportItem, layout: Layout, varied: str, searches: set[Path]) -> PrunedVariant:
    record = item.data
    mask = Mask.from_json(record["mask"], layout)
    scores, sizes = record.get("scores") or {}, record.get("parameters")
    score, full = interval(scores.get("after")), interval(scores.get("before"))
    difference = interval(scores.get("difference"))
    if not difference and score and full:  # without an interval
        difference = Interval((score.value or 0) - (full.value or 0))
    n = (scores.get("after") or {}).get("n")
    rows = UsedRows.of(scores.get("split"), n, set_of(item, searches))
    selected = item.folder.parent in searches and item.folder.name == "model"
    return PrunedVariant(
        method=label_of(record) + varied,
        kept=len(mask),
        mask=bits(mask),
        pattern=mask.pattern,
        study=None if item.study is None else item.study.name,
        search=item.folder.parent.name if selected else None,
        seed=int(record.get("seed") or 0),
        id=text(record.get("id", ""), 40),
        score=score or None,
        full=full or None,
        difference=difference or None,
        metric=text(scores.get("metric", "")),
        rows=rows,
        rows_text=rows_text([rows]) if score else "",
        parameters=(float(sizes["before"]), float(sizes["after"])) if sizes else None,
        steps=number((record.get("budget") or {}).get("steps")),
        command=item.command,
    )


def label_of(record: Mapping[str, object]) -> str:
    """A method with what repaired the model after it."""
    steps = record.get("repair")
    steps = steps if isinstance(steps, list) else []
    names = [step["name"] for step in steps if isinstance(step, Mapping) and "name" in step]
    return ", ".join(text(word) for word in [record["method"], *done_words(names)])


def varied_options(items: Sequence[ReportItem], folders: set[Path]) -> dict[Path, str]:
    """What else differs between runs of one method in a study file: `, samples 64`.

    Runs that a file defines with different options must not be taken for seeds of one.
    """
    groups: dict[tuple[Path, str], list[ReportItem]] = {}
    for item in items:
        if item.study in folders and isinstance(item.data.get("run"), Mapping):
            groups.setdefault((item.study, label_of(item.data)), []).append(item)
    labels: dict[Path, str] = {}
    for group in groups.values():
        options = [dict(_flat(item.data["run"].get("options") or {})) for item in group]
        names = [
            name
            for name in dict.fromkeys(name for plain in options for name in plain)
            if len({str(plain.get(name)) for plain in options}) > 1
        ]
        for item, plain in zip(group, options, strict=True):
            parts = [f", {name.split('.')[-1]} {text(plain.get(name), 30)}" for name in names]
            labels[item.path] = "".join(parts)
    return labels


def _flat(options: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Options by their path, without ratios and seeds."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif name not in ("ratio", "seed"):
            yield f"{above}{name}", value


def removal_orders(models: Sequence[PrunedVariant]) -> list[RemovalOrder]:
    """Models of one method, repair and seed in one study, from many heads to few.

    A model outside of studies joins the orders of its method and seed whose models are scored on
    the same rows, from the same score of all heads. What a search selected is beside its order, not
    in it: it was scored on the held-out set. The order with most models comes first; of one method,
    the first seed.
    """
    groups: dict[tuple[str | None, str, int], list[int]] = {}
    for at, model in enumerate(models):
        groups.setdefault((model.study, model.method, model.seed), []).append(at)
    held: dict[tuple[str | None, str, int], list[int]] = {}
    for (study, method, seed), group in list(groups.items()):
        if study is not None:
            continue
        others = [key for key in groups if key[1:] == (method, seed) and key[0] is not None]
        for at in group.copy():
            selected = [key for key in others if key[0] == models[at].search]
            joined = [
                key
                for key in others
                if not models[at].score or models[at].basis == models[groups[key][-1]].basis
            ]
            for key in selected:
                held.setdefault(key, []).append(at)
            for key in joined if not selected else []:
                groups[key] = [at, *groups[key]]
            if selected or joined:
                group.remove(at)
        if not group:
            del groups[study, method, seed]
    orders = [
        RemovalOrder(
            study=key[0],
            method=key[1],
            seed=key[2],
            models=group,
            held_out=held.get(key, []),
            rows=rows_text(models[at].rows for at in group if models[at].score),
        )
        for key, group in groups.items()
    ]

    def rank(order: RemovalOrder) -> tuple[int, float, int]:
        """Many sizes come first; among these, the smaller mean loss."""
        chosen = [models[at] for at in order.models]
        losses = [
            model.difference.value * (-1 if higher_is_better(model.metric) else 1)
            for model in chosen
            if model.difference and model.difference.value is not None
        ]
        sizes = min(len({model.kept for model in chosen}), 4)
        return -sizes, sum(losses) / len(losses) if losses else math.inf, order.seed

    return sorted(orders, key=rank)


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better; of an unknown one, it is."""
    from headcount.tasks.metrics import get_metric

    try:
        return get_metric(metric).higher_is_better
    except HeadcountError:  # a metric of a newer version, or of a plugin
        return True


def full_score(subject: PageSubject) -> FullScore | None:
    """The model with all its heads, scored: by a study, else by a prune, else by a search."""
    fulls = [item.data.get("full") for item in subject.of("study")]
    scored = [item.data.get("scores") for item in subject.of("prune")]
    fulls += [scores.get("before") for scores in scored if isinstance(scores, dict)]
    for item in subject.of("search"):
        low, high = item.data.get("full_interval") or (None, None)
        fulls.append(item.data | {"score": item.data.get("full"), "low": low, "high": high})
    for full in fulls:
        score = interval(full)
        if score and isinstance(full, dict):
            rows = UsedRows.of(full.get("split"), full.get("n"))
            metric = text(full.get("metric") or "")
            return FullScore(score=score, metric=metric, rows=rows, rows_text=rows_text([rows]))
    return None


def full_scores(models: Sequence[PrunedVariant], full: FullScore | None) -> list[FullScore]:
    """All heads, once for every set of rows that they were scored on."""
    scores = [
        FullScore(score=model.full, metric=model.metric, rows=model.rows, rows_text=model.rows_text)
        for model in models
        if model.full
    ]
    scores += [full] if full else []
    return list({(one.rows_text, one.score.value): one for one in scores}.values())


def model_size(models: Sequence[PrunedVariant], heads: int) -> ModelSize | None:
    """Parameters of the whole model and of one head, where all pruned models agree about them."""
    known = [(*model.parameters, heads - model.kept) for model in models if model.parameters]
    sizes = [(before - after) / removed for before, after, removed in known if removed]
    if not sizes or max(sizes) - min(sizes) > 0.005 * max(sizes):
        return None
    return ModelSize(known[0][0], sum(sizes) / len(sizes))
