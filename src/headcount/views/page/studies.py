"""Studies of a subject: curves with their bands, and differences with their tests.

A curve, a comparison and a sweep have a summary. Runs of a search, of a study file, or of a study
that was stopped have none: their means, intervals and tests are made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headcount.repair.repairs import done_words
from headcount.studies.summary import Scale, compare_with, over_seeds
from headcount.views.page.pruned import PrunedVariant
from headcount.views.page.reading import Interval, fill, interval, number, text
from headcount.views.page.rows import UsedRows, rows_text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

Size = tuple[str, int]
"""A method, and how many heads it kept."""


@dataclass(frozen=True, kw_only=True)
class SeedTest:
    """A difference over seeds with its paired test, before and after Holm's correction."""

    difference: Interval
    p: float | None
    p_corrected: float | None
    comparisons: float | None
    seeds: float | None
    verdict: str
    """better, worse or alike."""
    seeds_needed: float | None
    """How many seeds it would take to show the difference."""


@dataclass(frozen=True, kw_only=True)
class StudyPoint:
    """A method at one number of heads, or with one value of the swept option."""

    kept: float | None
    removed: float
    score: Interval
    """The mean over seeds; of a study on several sets of rows, of differences."""
    seeds: float | None
    rows: str = ""
    difference: Interval | None = None
    against_random: SeedTest | None = None
    against_full: SeedTest | None = None
    swept: float | None = None


@dataclass(frozen=True)
class StudySeries:
    """The points of one method."""

    name: str
    points: list[StudyPoint]


@dataclass(frozen=True, kw_only=True)
class PageStudy:
    """One study."""

    name: str
    metric: str
    rows: str
    series: list[StudySeries]
    full: Interval | None = None
    repair: str = ""
    relative: bool = False
    """Whether points are differences from all heads on the same rows, not scores."""
    over: str | None = None
    """The option that a sweep varies."""
    command: str | None = None


def studies(
    subject: PageSubject, report: ReportInput, models: Sequence[PrunedVariant]
) -> list[PageStudy]:
    """Every curve, comparison, sweep, search and study file."""
    heads = len(subject.layout)
    listed = report.each(subject.of("study"), lambda item: _summarised(item, heads))
    named = {study.name for study in listed}
    searches = {item.folder.name: item.command for item in subject.of("search")}
    files = {
        item.folder.parent.name: item.command
        or f"headcount study run {text(item.data['name'])}.yaml"
        for item in report.of("file")
    }
    for name in dict.fromkeys(model.study for model in models if model.study):
        if name not in named:
            runs = [model for model in models if model.study == name and model.score]
            command = searches.get(name, files.get(name))
            listed.append(sum_up(name, runs, heads, search=name in searches, command=command))
    return [study for study in listed if study.series]


def _summarised(item: ReportItem, heads: int) -> PageStudy:
    data, about = item.data, item.data["about"]
    series: dict[str, list[StudyPoint]] = {}
    for row in data["summary"]:
        name = text(row.get("method", about.get("method", item.path.stem)))
        score = row.get("score") if isinstance(row.get("score"), dict) else row
        point = fill(
            StudyPoint,
            row,
            removed=1 - row["kept"] / heads,
            score=interval(score) or Interval(None),
            against_random=seed_test(row.get("against_random")),
            against_full=seed_test(row.get("against_all_heads")),
            swept=number(row.get("value")),
        )
        series.setdefault(name, []).append(point)
    repairs = [name for name in text(about.get("repair") or "", 200).split(", ") if name]
    return PageStudy(
        name=item.folder.name,
        metric=text(about.get("metric", "")),
        rows=rows_text([UsedRows.of(about.get("split"), data["full"].get("n"))]),
        series=[StudySeries(name, points) for name, points in series.items()],
        full=interval(data["full"]),
        repair=", ".join(done_words(repairs)),
        over=text(about["over"]) if about.get("over") else None,
        command=item.command,
    )


def sum_up(
    name: str,
    runs: Sequence[PrunedVariant],
    heads: int,
    *,
    search: bool = False,
    command: str | None = None,
) -> PageStudy:
    """Means and intervals over seeds; where there are random heads, methods tested against them.

    The rows of a search's runs differ, so these are not tested, and their points are differences
    from all heads on the same rows. So are those of any runs on several sets of rows.
    """
    relative = search or len({(run.rows.split, run.rows.n) for run in runs}) > 1
    groups: dict[Size, list[PrunedVariant]] = {}
    for run in runs:
        if run.difference if relative else run.score:
            groups.setdefault((run.method, run.kept), []).append(run)
    tests = {} if relative else _tests(groups, heads)
    series: dict[str, list[StudyPoint]] = {}
    for size, same in sorted(groups.items(), key=lambda group: -group[0][1]):
        point = StudyPoint(
            kept=size[1],
            removed=1 - size[1] / heads,
            score=_over_seeds(same, relative),
            seeds=len(same),
            rows=rows_text(run.rows for run in same),
            difference=same[0].difference if len(same) == 1 else None,
            against_random=seed_test(tests.get((size, "random"))),
            against_full=seed_test(tests.get((size, "all-heads"))),
        )
        series.setdefault(size[0], []).append(point)
    by_rows = sorted(runs, key=lambda run: -(run.rows.n or 0))
    fulls = {run.full.value: run.full for run in by_rows if run.full}
    return PageStudy(
        name=name,
        metric=runs[0].metric if runs else "",
        rows=rows_text(run.rows for run in runs),
        series=[StudySeries(method, points) for method, points in series.items()],
        full=next(iter(fulls.values())) if fulls and (relative or len(fulls) == 1) else None,
        relative=relative,
        command=command,
    )


def _over_seeds(same: Sequence[PrunedVariant], relative: bool) -> Interval:
    """Mean and interval of scores, or of differences, that differ by their seed."""
    estimates = [(run.difference if relative else run.score) or Interval(None) for run in same]
    values = [estimate.value for estimate in estimates if estimate.value is not None]
    scores = [run.score.value for run in same if run.score and run.score.value is not None]
    level = sum(scores) / len(scores) if scores else None
    mean, low, high = over_seeds(
        values,
        Scale(same[0].metric, same[0].rows.n, level),
        differences=relative,
        single=(estimates[0].low, estimates[0].high),
    )
    return Interval(number(mean), number(low), number(high))


def _tests(
    groups: Mapping[Size, Sequence[PrunedVariant]], heads: int
) -> dict[tuple[Size, str], Mapping[str, object]]:
    """(method and size, what it is tested against) -> the difference seed by seed."""
    scores = {
        size: {run.seed: run.score.value or 0.0 for run in same if run.score}
        for size, same in groups.items()
    }
    first = next(iter(groups.values()), None)
    if not first:
        return {}
    scale = Scale(first[0].metric, first[0].rows.n, (first[0].score or Interval(None)).value)
    return {
        (size, name): row
        for name in ("random", "all-heads")
        for (size, _), row in compare_with(
            scores, [lambda size, name=name: _reference(size, name, heads)], scale
        ).items()
    }


def _reference(size: Size, reference: str, heads: int) -> Size:
    """Random heads of the same number and repair, or all heads with the same repair."""
    _, *rest = size[0].split(", ")
    return ", ".join([reference, *rest]), heads if reference == "all-heads" else size[1]


def seed_test(row: object) -> SeedTest | None:
    """The test in a row of a summary."""
    if not isinstance(row, Mapping):
        return None
    return fill(SeedTest, row, difference=interval(row) or Interval(None))
