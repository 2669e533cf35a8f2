"""All data of the page: a part for each view, made by the module of that view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headcount import __version__
from headcount.heads import Layout
from headcount.views.page.changes import GateTrace, PageTransfer, gates, transfers
from headcount.views.page.cost import PageBench, timings
from headcount.views.page.headline import Headline, headline
from headcount.views.page.matrices import PageMatrix, agreements, matrices
from headcount.views.page.pruned import (
    FullScore,
    ModelSize,
    PrunedVariant,
    RemovalOrder,
    full_score,
    full_scores,
    higher_is_better,
    model_size,
    pruned_models,
    removal_orders,
)
from headcount.views.page.quantities import HeadQuantity, quantities
from headcount.views.page.reading import Interval, interval, short_name, text
from headcount.views.page.rows import UsedRows, rows_text
from headcount.views.page.sentences import HeadRoles, PageSentence, roles, sentences
from headcount.views.page.studies import PageStudy, studies
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput, ReportItem

if TYPE_CHECKING:
    from headcount.likeness.compare import Pair


@dataclass(frozen=True, kw_only=True)
class StackHeads:
    """The heads of one stack, by layer."""

    name: str
    heads: list[int]
    groups: list[int]
    """Key-value heads."""
    numbers: list[list[int]]
    """The number every head had before any were removed."""


@dataclass(frozen=True, kw_only=True)
class ModelScore:
    """The score of a training or an evaluation."""

    kind: str
    model: str
    score: Interval
    metric: str
    rows: UsedRows
    rows_text: str
    command: str | None


@dataclass(frozen=True, kw_only=True)
class SubjectData:
    """Everything that the page shows of one model on one task."""

    name: str
    model: str
    task: str | None
    layout: list[StackHeads]
    metric: str
    higher_is_better: bool
    headline: Headline
    quantities: list[HeadQuantity]
    roles: HeadRoles | None
    pruned: list[PrunedVariant]
    orders: list[RemovalOrder]
    size: ModelSize | None
    full: list[FullScore]
    """All heads, for every set of rows."""
    scores: list[ModelScore]
    studies: list[PageStudy]
    matrices: list[PageMatrix]
    agreements: list[Pair]
    transfers: list[PageTransfer]
    gates: list[GateTrace]
    sentences: list[PageSentence]
    bench: list[PageBench]


@dataclass(frozen=True, kw_only=True)
class PageData:
    """The data of the page, and what was left out."""

    version: str
    subjects: list[SubjectData]
    skipped: list[tuple[str, str]]


def gather(report: ReportInput) -> PageData:
    """The data of all subjects of the files."""
    listed = [_subject(subject, report) for subject in subjects(report)]
    skipped = list(dict.fromkeys(report.skipped))
    return PageData(version=__version__, subjects=listed, skipped=skipped)


def _subject(subject: PageSubject, report: ReportInput) -> SubjectData:
    models = pruned_models(subject, report)
    full = full_score(subject)
    metric = full.metric if full else ""
    return SubjectData(
        name=subject.name,
        model=subject.model,
        task=subject.task,
        layout=_stacks(subject.layout),
        metric=metric,
        higher_is_better=higher_is_better(metric),
        headline=headline(subject, report, models),
        quantities=quantities(subject, report, models),
        roles=roles(subject, report),
        pruned=models,
        orders=removal_orders(models),
        size=model_size(models, len(subject.layout)),
        full=full_scores(models, full),
        scores=[score for score in report.each(subject.of("train", "evaluate"), _score) if score],
        studies=studies(subject, report, models),
        matrices=matrices(subject, report),
        agreements=agreements(subject, report),
        transfers=transfers(subject, report),
        gates=gates(subject, report),
        sentences=sentences(subject, report),
        bench=timings(subject, report),
    )


def _stacks(layout: Layout) -> list[StackHeads]:
    numbers: dict[tuple[str, int], list[int]] = {}
    for head in layout:
        numbers.setdefault((head.stack, head.layer), []).append(layout.original(head).index)
    return [
        StackHeads(
            name=stack.name,
            heads=list(stack.heads),
            groups=list(stack.groups),
            numbers=[numbers.get((stack.name, at), []) for at in range(len(stack.heads))],
        )
        for stack in layout.stacks
    ]


def _score(item: ReportItem) -> ModelScore | None:
    """The score of a training's model, or of an evaluation."""
    scores = item.data.get("evaluation") if item.kind == "train" else item.data
    score = interval(scores)
    if not score or not isinstance(scores, Mapping):
        return None
    rows = UsedRows.of(scores.get("split"), scores.get("n"))
    return ModelScore(
        kind=item.kind,
        model=short_name(item.data.get("model") or "?"),
        score=score,
        metric=text(scores.get("metric", "")),
        rows=rows,
        rows_text=rows_text([rows]),
        command=item.command,
    )
