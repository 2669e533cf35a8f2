"""A study file becomes runs: every one a value, with those it starts from inside.

    plan = read_plan("methods.yaml")
    plan.cells[0].run, plan.cells[0].axes       # Run(...), {"method": "random", "seed": 0}

Nothing is imported, opened or computed for it: what cannot be is refused here, all at once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, UsageError
from headcount.base.names import did_you_mean, nearest
from headcount.base.options import Mistakes, OptionsError, read
from headcount.runs.check import check_names, check_parts
from headcount.runs.kinds.probe import Probe
from headcount.runs.run import PARTS, Best, Run
from headcount.studies.grid import (
    SHORT,
    Axes,
    Group,
    Indexed,
    Values,
    axes_of,
    axis_named,
    by_values,
    cells,
    frozen,
    label,
    matches,
    merged,
    named,
    put,
    values_at,
    written_at,
)
from headcount.studies.parts import conditions_of, from_file, keep_of, launch_of, seconds_of
from headcount.studies.plan import Cell, Plan, Settings, require_name
from headcount.studies.written import StudyFile, StudyFileError, read_written

GROUP = (*PARTS, *SHORT, "grid", "overrides", "exclude", "keep", "launch", "seconds", "about")
"""What a group of runs may say."""
REFERENCES = ("run", "best")
STAND_IN = Run("probe", "none", options=Probe())
"""In place of a run that has mistakes."""
SURELY = 0.75
"""How like a known name another is when it is read as that one, to see what else is wrong."""
MANY = 100_000
"""Runs of a study beyond which the caller is asked whether that is meant."""
DEEPEST = 50
"""Groups that start from each other in a row."""
Start = tuple[Values, Run | None]
"""A run to start from, and its values on all axes."""
Built = tuple[Values, Cell]
"""The same of a run of a group, with its place in the plan."""


class Groups:
    """The groups of a study file, built one after the other, each when it is first asked for."""

    def __init__(
        self,
        written: StudyFile,
        settings: Settings,
        groups: Group,
        elsewhere: bool,
        many: bool,
    ) -> None:
        self.written, self.settings, self.groups = written, settings, groups
        self.elsewhere = elsewhere
        self.done: dict[str, list[Built]] = {}
        self.under_way: list[str] = []
        self.broken: set[str] = set()
        self.many, self.count = many, 0
        self.lookups: dict[Hashable, Indexed[Built]] = {}
        """Groups by the axes that a reference goes by, for those that chose the same of them."""

    def build(self, name: str) -> list[Cell]:
        """The runs of a group."""
        return [cell for _, cell in self._built(name)]

    def _built(self, name: str) -> list[Built]:
        if name not in self.done:
            if len(self.under_way) >= DEEPEST:
                raise UsageError(f"groups start from each other more than {DEEPEST} deep.")
            self.under_way.append(name)
            before = len(self.written.mistakes)
            try:
                self.done[name] = list(self._make(name))
            finally:
                self.under_way.pop()
            if len(self.written.mistakes) > before:
                self.broken.add(name)
        return self.done[name]

    def _make(self, name: str) -> Iterator[Built]:
        path, group = ("runs", name), self.groups[name]
        if not isinstance(group, Mapping):
            self.written.wrong(path, "a group of runs has names with values.")
            return
        mistakes, group = Mistakes(), self._as_meant(group, path)
        axes = axes_of(group, mistakes)
        exclude = conditions_of(group, "exclude", axes, path, self.written)
        overrides = conditions_of(group, "overrides", axes, path, self.written)
        for inner, text in mistakes.mistakes:
            self.written.wrong((*path, *inner), text)
        launch = launch_of(group, path, self.written)
        keep = keep_of(group, path, self.written, self.settings.keep)
        seconds = seconds_of(group, path, self.written)
        for theirs, model, axes_here in self._combined(self._starts(group, path), axes):
            cell = {**theirs, **axes_here}
            if any(matches(cell, entry) for entry in exclude):
                continue
            try:
                run = self._run(name, group, axes_here, cell, overrides, model)
                yield (
                    cell,
                    Cell(
                        group=name,
                        run=run,
                        launch=launch,
                        keep=keep,
                        seconds=seconds,
                        axes={label(axis): named(value) for axis, value in cell.items()},
                    ),
                )
            except HeadcountError as error:
                for inner, text in error.mistakes or [((), str(error))]:
                    self.written.wrong(self._place(name, group, axes_here, inner), text)

    def _combined(
        self, starts: Sequence[Start], axes: Axes
    ) -> Iterator[tuple[Values, Run | None, Values]]:
        """Every run to start from with every combination of axes that agrees with its own."""
        self._count(math.prod(map(len, axes.values())))
        shared = [axis for axis in axes if axis in starts[0][0]] if starts else []
        agreeing = by_values(cells(axes), shared, lambda axes_here: axes_here)
        pairs = [
            (theirs, model, agreeing.get(values_at(theirs, shared), [])) for theirs, model in starts
        ]
        self._count(sum(len(several) for _, _, several in pairs))
        self.count += sum(len(several) for _, _, several in pairs)
        for theirs, model, several in pairs:
            for axes_here in several:
                yield theirs, model, axes_here

    def _count(self, more: int) -> None:
        """Refuse more runs than anybody asks for by mistake."""
        if not self.many and self.count + more > MANY:
            raise StudyFileError(
                f"{self.written.path} asks for more than {MANY:,} runs: {self.count + more:,} or "
                "more. Pass --yes if that is what you want."
            )

    def _as_meant(self, group: Group, path: Sequence[str]) -> Group:
        """A group with the names that a group has: a typing error is told, and read as meant."""
        runs: dict[str, object] = {}
        for name, value in group.items():
            if name not in GROUP:
                hint = did_you_mean(name, GROUP)
                self.written.wrong((*path, name), f"a group of runs has no '{name}'.{hint}")
            meant = name if name in GROUP else nearest(name, GROUP, SURELY)
            if meant is not None and (meant == name or meant not in group):
                runs[meant] = value
        return runs

    def _place(
        self, name: str, group: Group, axes_here: Values, inner: Sequence[str]
    ) -> tuple[str, ...]:
        """Where in the file a mistake of a run is seen."""
        way = written_at(inner, group, axes_here)
        defaults = self.written.data.get("defaults")
        if way and way[0] not in group and isinstance(defaults, Mapping) and way[0] in defaults:
            return ("defaults", *way)
        return ("runs", name, *way)

    def _starts(self, group: Group, path: Sequence[str]) -> Sequence[Start]:
        """The runs that a group starts from where it names each of another group; else nothing."""
        model = group.get("model")
        if not isinstance(model, Mapping) or not isinstance(model.get("each"), str):
            return [({}, None)]
        try:
            return self._meant(model, "each", {})
        except UsageError as error:
            self.written.note((*path, "model"), error)
            return [({}, STAND_IN)]

    def _run(
        self,
        name: str,
        group: Group,
        axes_here: Values,
        cell: Values,
        overrides: list[Group],
        model: Run | None,
    ) -> Run:
        """One run; `cell` has its `own` axes and those of the run whose model it starts from."""
        parts: Any = {part: group[part] for part in PARTS if part in group}
        parts = merged(self.written.data.get("defaults", {}), parts)
        parts = dict(parts) | ({} if model is None else {"model": model})
        for axis, value in axes_here.items():
            put(parts, axis, value)
        for entry in overrides:
            if matches(cell, entry.get("when", {})):
                for axis, value in entry["set"].items():
                    put(parts, SHORT.get(str(axis), str(axis)), value)
        mistakes = Mistakes()
        resolved = self._resolved(parts, cell, (), mistakes)
        return self._read(from_file(resolved, self.written.path.parent), name, mistakes)

    def _read(self, parts: Mapping[str, object], name: str, mistakes: Mistakes) -> Run:
        """The run, or all that is wrong with it beside what was `told` already."""
        with mistakes.at():
            names = (parts.get("kind"), parts.get("model"), parts.get("task"))
            check_names(*names, elsewhere=self.elsewhere)
        run = STAND_IN
        with mistakes.at():
            run = Run.read(parts, name)
            if parts.get("seed") not in (None, run.seed):
                way = ("options", getattr(run.options, "seeded", ""), "seed")
                text = f"the run's seed is {parts['seed']}: leave out the one in its options."
                raise OptionsError(text, [(way, text)])
            check_parts(run)
        mistakes.refuse()
        return run

    def _resolved(self, value: Any, cell: Values, path: tuple[str, ...], mistakes: Mistakes) -> Any:
        """Plain data with the runs that it refers to in place of their names."""
        if isinstance(value, list):
            return [self._resolved(entry, cell, path, mistakes) for entry in value]
        if not isinstance(value, Mapping):
            return value
        word = next((entry for entry in REFERENCES if entry in value), None)
        if word is None or not isinstance(value[word], str) or len(path) == 0:
            return {
                key: self._resolved(item, cell, (*path, key), mistakes)
                for key, item in value.items()
            }
        runs = [STAND_IN]
        with mistakes.at(*path):
            runs = [run for _, run in self._meant(value, word, cell)]
        return Best(tuple(runs)) if word == "best" else runs[0]

    def _meant(self, value: Group, word: str, cell: Values) -> list[tuple[Values, Run]]:
        """The runs that a reference means: of that group, those that agree on what both have."""
        group, chosen = value[word], {key: entry for key, entry in value.items() if key != word}
        if group not in self.groups:
            known = list(self.groups)
            raise UsageError(f"there is no group of runs '{group}'.{did_you_mean(group, known)}")
        if group in self.under_way:
            way = " → ".join([*self.under_way, group])
            raise UsageError(f"runs cannot start from themselves: {way}.")
        runs = self._looked_up(group, chosen, cell)
        if group in self.broken:
            return [({}, STAND_IN)]  # its own mistakes are told; what refers to it may have others
        if not runs:
            raise UsageError(f"no run of the group '{group}' is meant by {dict(value)}.")
        if word == "run" and len(runs) > 1:
            differ = [axis for axis in runs[0][0] if len({str(axes[axis]) for axes, _ in runs}) > 1]
            raise UsageError(
                f"{len(runs)} runs of the group '{group}' are meant, which differ in "
                f"{', '.join(differ)}: say which, as in {{run: {group}, {differ[0]}: …}}, or "
                f"{{each: {group}}} for all of them, or {{best: {group}}}."
            )
        return runs

    def _looked_up(self, group: str, chosen: Group, cell: Values) -> list[tuple[Values, Run]]:
        """Runs of a group with what is chosen, and the values of `cell` on other axes of both."""
        built = self._built(group)
        axes = built[0][0] if built else {}
        chosen_axes = {axis_named(name, axes) for name in chosen}
        shared = tuple(axis for axis in axes if axis in cell and axis not in chosen_axes)
        key = (group, frozen(chosen), shared)
        if key not in self.lookups:
            rows = (row for row in built if matches(row[0], chosen))
            self.lookups[key] = by_values(rows, shared, lambda row: row[0])
        runs = self.lookups[key].get(values_at(cell, shared), [])
        return [(axes, entry.run) for axes, entry in runs]


def read_plan(
    path: str | Path | Mapping[str, Any] | StudyFile, *, elsewhere: bool = False, many: bool = False
) -> Plan:
    """The plan of a study file, or of the same as a mapping; all mistakes are told at once.

    `elsewhere` plans for another machine: models need not be found from here. `many` allows over
    100,000 runs.
    """
    if isinstance(path, Mapping):
        written = StudyFile(path=Path("study"), data=dict(path))
    else:
        written = path if isinstance(path, StudyFile) else read_written(path)
    data = written.data
    known = ("defaults", "runs", *Settings.__dataclass_fields__)
    for name in data:
        if name not in known:
            written.wrong((name,), f"a study has no '{name}'.{did_you_mean(name, known)}")
    settings = Settings()
    try:
        values = {name: data[name] for name in Settings.__dataclass_fields__ if name in data}
        settings = read(Settings, values, "study")
        require_name(settings.name or written.path.stem)
    except UsageError as error:
        written.note((), error)
    groups = data.get("runs")
    if not isinstance(groups, Mapping) or not groups:
        written.wrong(("runs",), "a study has runs: groups by name.")
        groups = {}
    if not isinstance(data.get("defaults", {}), Mapping):
        written.wrong(("defaults",), "defaults are parts of a run, by name.")
        data["defaults"] = {}
    builder = Groups(written, settings, groups, elsewhere, many)
    cells = [cell for name in groups for cell in builder.build(name)]
    written.refuse()
    if settings.out is not None:
        settings = replace(settings, out=written.path.parent / settings.out)
    return Plan(path=written.path, settings=settings, cells=cells, data=data)
