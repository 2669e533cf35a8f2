"""The groups of a study file become runs, and all that is wrong with them is put down."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.errors import HeadcountError, UsageError
from headcount.models.shipped import is_shipped
from headcount.names import did_you_mean, nearest
from headcount.options import Gathered, OptionsError
from headcount.runs.check import check_names, check_parts
from headcount.runs.kinds import Probe
from headcount.runs.run import PARTS, Best, Run
from headcount.studies.grid import (
    SHORT,
    axes_of,
    axis_named,
    cells,
    label,
    matches,
    merged,
    named,
    put,
    written_at,
)
from headcount.studies.plan import Cell, Settings
from headcount.studies.written import Written

GROUP = (*PARTS, *SHORT, "grid", "overrides", "exclude", "keep", "launch",
         "seconds", "about")  # fmt: skip
"""What a group of runs may say."""
REFERENCES = ("run", "best")
STAND_IN = Run("probe", "none", options=Probe())
"""In place of a run that has mistakes."""
SURELY = 0.75
"""How like a known name another is when it is read as that one, to see what else is wrong."""


class Groups:
    """The groups of a study file, built one after the other, each when it is first asked for."""

    def __init__(
        self, written: Written, settings: Settings, groups: Mapping[str, Any], elsewhere: bool
    ) -> None:
        self.written, self.settings, self.groups = written, settings, groups
        self.elsewhere = elsewhere
        self.done: dict[str, list[tuple[dict[str, Any], Cell]]] = {}
        self.under_way: list[str] = []
        self.broken: set[str] = set()

    def build(self, name: str) -> list[Cell]:
        """The runs of a group."""
        return [cell for _, cell in self._built(name)]

    def _built(self, name: str) -> list[tuple[dict[str, Any], Cell]]:
        if name not in self.done:
            self.under_way.append(name)
            before = len(self.written.mistakes)
            self.done[name] = list(self._make(name))
            if len(self.written.mistakes) > before:
                self.broken.add(name)
            self.under_way.pop()
        return self.done[name]

    def _make(self, name: str) -> Iterator[tuple[dict[str, Any], Cell]]:
        place, group = ("runs", name), self.groups[name]
        if not isinstance(group, Mapping):
            self.written.wrong(place, "a group of runs has names with values.")
            return
        told, group = Gathered(), self._as_meant(group, place)
        axes = axes_of(group, told)
        exclude = self._conditions(group, "exclude", axes, place)
        overrides = self._conditions(group, "overrides", axes, place)
        for inner, text in told.mistakes:
            self.written.wrong((*place, *inner), text)
        for (theirs, model), own in itertools.product(
            self._starts(group, place), list(cells(axes))
        ):
            cell = {**theirs, **own}
            if not _agree(theirs, own, {}) or any(matches(cell, each) for each in exclude):
                continue
            try:
                yield cell, self._run(name, group, own, cell, overrides, model)
            except HeadcountError as error:
                for inner, text in error.mistakes or [((), str(error))]:
                    self.written.wrong(self._place(name, group, own, inner), text)

    def _as_meant(self, group: Mapping[str, Any], place: Sequence[str]) -> dict[str, Any]:
        """A group with the names that a group has: a typing error is told, and read as meant."""
        found: dict[str, Any] = {}
        for name, value in group.items():
            if name not in GROUP:
                hint = did_you_mean(name, GROUP)
                self.written.wrong((*place, name), f"a group of runs has no '{name}'.{hint}")
            meant = name if name in GROUP else nearest(name, GROUP, SURELY)
            if meant is not None and (meant == name or meant not in group):
                found[meant] = value
        return found

    def _place(self, name: str, group: Any, own: Any, inner: Sequence[str]) -> tuple[str, ...]:
        """Where in the file a mistake of a run is seen."""
        way = written_at(inner, group, own)
        defaults = self.written.data.get("defaults")
        if way and way[0] not in group and isinstance(defaults, Mapping) and way[0] in defaults:
            return ("defaults", *way)
        return ("runs", name, *way)

    def _starts(
        self, group: Mapping[str, Any], place: Sequence[str]
    ) -> Sequence[tuple[dict[str, Any], Run | None]]:
        """The runs that a group starts from where it names each of another group; else nothing."""
        model = group.get("model")
        if not isinstance(model, Mapping) or not isinstance(model.get("each"), str):
            return [({}, None)]
        try:
            return self._meant(model, "each", {})
        except UsageError as error:
            self.written.note((*place, "model"), error)
            return [({}, STAND_IN)]

    def _conditions(self, group: Any, part: str, axes: Any, place: Any) -> list[Any]:
        found = group.get(part, [])
        if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
            self.written.wrong((*place, part), f"{part} is a list of conditions.")
            return []
        for at, each in enumerate(found):
            when = each.get("when", {}) if part == "overrides" else each
            for axis in when:
                if axis_named(axis, axes) is None:
                    hint = did_you_mean(axis, axes) or f" It has: {', '.join(axes)}."
                    where = (*place, part, str(at))
                    self.written.wrong(where, f"the group has no axis '{axis}'.{hint}")
            if part == "overrides" and not isinstance(each.get("set"), Mapping):
                self.written.wrong((*place, part, str(at)), "an override has 'when' and 'set'.")
        return [each for each in found if part == "exclude" or isinstance(each.get("set"), Mapping)]

    def _run(
        self,
        name: str,
        group: Any,
        own: dict[str, Any],
        cell: dict[str, Any],
        overrides: list[Any],
        model: Run | None,
    ) -> Cell:
        """One run; `cell` has its `own` axes and those of the run whose model it starts from."""
        asked: Any = {part: group[part] for part in PARTS if part in group}
        asked = merged(self.written.data.get("defaults", {}), asked)
        asked = dict(asked) | ({} if model is None else {"model": model})
        for axis, value in own.items():
            put(asked, axis, value)
        for each in overrides:
            if matches(cell, each.get("when", {})):
                for axis, value in each["set"].items():
                    put(asked, SHORT.get(str(axis), str(axis)), value)
        told = Gathered()
        run = self._read(_from_file(self._resolved(asked, cell, (), told), self.folder), name, told)
        keep = group.get("keep", self.settings.keep) == "models"
        launch = group.get("launch", ())
        words = launch.split() if isinstance(launch, str) else launch
        axes = {label(axis): named(value) for axis, value in cell.items()}
        return Cell(
            group=name, axes=axes, run=run, launch=tuple(map(str, words)), keep=keep,
            seconds=self._seconds(name, group.get("seconds")),
        )  # fmt: skip

    def _seconds(self, name: str, said: Any) -> float | None:
        if isinstance(said, int | float) and not isinstance(said, bool) and said > 0:
            return float(said)
        if said is not None:
            self.written.wrong(("runs", name, "seconds"), "seconds of a run are a number above 0.")
        return None

    @property
    def folder(self) -> Path:
        """From where paths in the file are meant."""
        return self.written.path.parent

    def _read(self, asked: dict[str, Any], name: str, told: Gathered) -> Run:
        """The run, or all that is wrong with it beside what was `told` already."""
        with told.at():
            names = (asked.get("kind"), asked.get("model"), asked.get("task"))
            check_names(*names, elsewhere=self.elsewhere)
        run = STAND_IN
        with told.at():
            run = Run.read(asked, name)
            if asked.get("seed") not in (None, run.seed):
                way = ("options", getattr(run.options, "seeded", ""), "seed")
                text = f"the run's seed is {asked['seed']}: leave out the one in its options."
                raise OptionsError(text, [(way, text)])
            check_parts(run)
        told.refuse()
        return run

    def _resolved(self, value: Any, cell: Any, place: tuple[str, ...], told: Gathered) -> Any:
        """Plain data with the runs that it refers to in place of their names."""
        if isinstance(value, list):
            return [self._resolved(each, cell, place, told) for each in value]
        if not isinstance(value, Mapping):
            return value
        word = next((each for each in REFERENCES if each in value), None)
        if word is None or not isinstance(value[word], str) or len(place) == 0:
            return {
                key: self._resolved(item, cell, (*place, key), told) for key, item in value.items()
            }
        runs = [STAND_IN]
        with told.at(*place):
            runs = [run for _, run in self._meant(value, word, cell)]
        return Best(tuple(runs)) if word == "best" else runs[0]

    def _meant(
        self, value: Mapping[str, Any], word: str, cell: dict[str, Any]
    ) -> list[tuple[dict[str, Any], Run]]:
        """The runs that a reference means: of that group, those that agree on what both have."""
        group, chosen = value[word], {key: each for key, each in value.items() if key != word}
        if group not in self.groups:
            known = list(self.groups)
            raise UsageError(f"there is no group of runs '{group}'.{did_you_mean(group, known)}")
        if group in self.under_way:
            way = " → ".join([*self.under_way, group])
            raise UsageError(f"runs cannot start from themselves: {way}.")
        found = [
            (axes, each.run)
            for axes, each in self._built(group)
            if all(
                axes[axis] == cell[axis] for axis in axes if axis in cell and not chosen.get(axis)
            )
            and matches(axes, chosen)
        ]
        if group in self.broken:
            return [({}, STAND_IN)]  # its own mistakes are told; what refers to it may have others
        if not found:
            raise UsageError(f"no run of the group '{group}' is meant by {dict(value)}.")
        if word == "run" and len(found) > 1:
            differ = [
                axis for axis in found[0][0] if len({str(axes[axis]) for axes, _ in found}) > 1
            ]
            raise UsageError(
                f"{len(found)} runs of the group '{group}' are meant, which differ in "
                f"{', '.join(differ)}: say which, as in {{run: {group}, {differ[0]}: …}}, or "
                f"{{each: {group}}} for all of them, or {{best: {group}}}."
            )
        return found


def _agree(axes: Mapping[str, Any], cell: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Whether two runs have the same values where both have an axis, and nobody says another."""
    said = {axis_named(name, axes) for name in chosen}
    return all(axes[name] == cell[name] for name in axes if name in cell and name not in said)


def _from_file(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A run with paths as they are meant by a file in this folder."""
    found = dict(asked)
    if isinstance(found.get("model"), str):
        name = found["model"]
        own = (folder / Path(name) / "config.json").is_file()
        found["model"] = name if is_shipped(name) and not own else _path(name, folder)
    source = found.get("source")
    if isinstance(source, Mapping):
        names = ("data", "train", "dev")
        found["source"] = {
            key: _path(value, folder) if key in names and isinstance(value, str) else value
            for key, value in source.items()
        }
    return found


def _path(text: str, folder: Path) -> str:
    path = folder / Path(text).expanduser()
    return str(path.resolve()) if path.exists() else text
