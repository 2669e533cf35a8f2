"""A record: one finished run, in one documented and versioned form.

record.json is one object:

| key | what it is |
|---|---|
| `format`, `version`, `kind` | the header of every file: headcount, 1, and the kind of run |
| `run` | what was asked: `headcount run record.json` asks it again |
| `identity` | what the result depends on, by content: weights, config, tokenizer, rows, options |
| `id` | a short name for the identity: two results are of one question when it is the same |
| `versions`, `device`, `command`, `seconds` | what computed it, where, by which command, how long |
| `rows` | which rows decided, repaired, trained and scored: split, n, seed, fingerprint |
| `notes` | what a reader must not miss |
| the rest | what came out, by kind of run: see docs/records.md |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from headcount.base.digest import digest
from headcount.base.errors import UsageError
from headcount.base.files import as_path, expanded, read_json, require_fields, write_json
from headcount.base.header import header, require_header
from headcount.base.json_object import JsonDict
from headcount.base.options import defined, types_of
from headcount.runs.kinds import KINDS
from headcount.runs.results import RecordFields, Result
from headcount.runs.run import Run

ResultKind = TypeVar("ResultKind", bound=Result)
FILE = "record.json"
TOLD = ("model", "device", "versions")
"""Parts of an identity that are recorded and may differ."""
COMMON = types_of(RecordFields)
"""What every record has -> its type."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Record(Mapping[str, Any]):
    """What was asked, with what, and what came out; a mapping of all of `record.json`."""

    run: Run
    identity: Mapping[str, Any]
    """What the result depends on, by content."""
    result: Result
    """What came out: the type is that of the kind of run (`result_as`)."""
    rows: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    command: str | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if twice := sorted(set(self.result.to_json()) & set(COMMON)):
            raise ValueError(f"A record has a '{twice[0]}' of its own.")

    @property
    def id(self) -> str:
        """A short name for everything the result depends on."""
        return id_of(self.identity)

    def to_json(self) -> JsonDict:
        """The object of `record.json`; what is undefined is None."""
        start = header(self.run.kind) | {"id": self.id}
        context = {
            "rows": dict(self.rows),
            "notes": list(self.notes),
            "versions": self.identity.get("versions", {}),
            "device": self.identity.get("device", "cpu"),
            "command": self.command,
            "seconds": self.seconds,
            "run": self.run.to_plain(),
            "identity": dict(self.identity),
        }
        return start | defined(self.result.to_json()) | context

    @classmethod
    def from_json(cls, data: object, where: str = "This") -> Record:
        """The record that `to_json` wrote."""
        data = require_header(data, where)
        require_fields(data, COMMON, f"{where} is no record")
        run = Run.read(data["run"], f"{where}: run")
        record = cls(
            run=run,
            identity=data["identity"],
            result=read_result(type(run.options).result, data, where),
            rows=data["rows"],
            notes=tuple(map(str, data["notes"])),
            command=data["command"],
            seconds=float(data["seconds"]),
        )
        if data["id"] != record.id:
            raise UsageError(f"{where} is damaged: its id is not that of its identity.")
        return record

    def result_as(self, kind: type[ResultKind]) -> ResultKind:
        """The result, which is of the type of the run's kind."""
        if not isinstance(self.result, kind):
            raise UsageError(f"A record of the kind '{self.run.kind}' has no {kind.__name__}.")
        return self.result

    def changed(self, now: Record) -> str:
        """What another record depends on that this one did not, in words; empty when nothing."""
        from headcount.models.fingerprint import differences

        then, later = (
            {name: value for name, value in record.identity.items() if name not in TOLD}
            for record in (self, now)
        )
        return differences(then, later)

    def save(self, folder: str | Path) -> Path:
        """Write `record.json`, whole or not at all."""
        path = Path(folder) / FILE
        write_json(path, self.to_json())
        return path

    def __getitem__(self, name: str) -> Any:
        return self.to_json()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_json())

    def __len__(self) -> int:
        return len(self.to_json())

    def __repr__(self) -> str:
        source = self.run.model
        model = source if isinstance(source, str) else getattr(source, "kind", "best")
        task = f" on {self.run.task}" if self.run.task else ""
        return f"Record({self.run.kind} of {model[:40]}{task}, {self.id})"

    def _repr_html_(self) -> str:
        from headcount.base.html import table

        shown = {
            **self.result.to_json(),
            "rows": self.rows,
            "notes": self.notes,
            "seconds": self.seconds,
        }
        rows = [
            (name, json.dumps(value, ensure_ascii=False, default=str)[:200])
            for name, value in shown.items()
        ]
        return table(("record", repr(self)), rows)


def read_result(
    kind: type[ResultKind], data: Mapping[str, Any], where: str = "This record"
) -> ResultKind:
    """The result in the plain data of a record; what is damaged is refused by its name."""
    try:
        return kind.from_json({name: data[name] for name in data if name not in COMMON})
    except UsageError as error:
        raise UsageError(f"{where} is damaged: {error}") from error


def result_of(record: Mapping[str, Any], where: str = "This record") -> Result:
    """The result of a record as plain data, of the type of its kind."""
    kind: Any = KINDS[record["kind"]]
    return read_result(kind.result, record, where)


def id_of(identity: Mapping[str, object]) -> str:
    """A short name for an identity, but for what may differ.

    >>> id_of({"seed": 0}) == id_of({"seed": 0, "device": "cuda"}) != id_of({"seed": 1})
    True
    """
    bound = {name: value for name, value in identity.items() if name not in TOLD}
    text = json.dumps(_alike(bound), sort_keys=True, default=str)
    return digest(text)


def _alike(value: object) -> object:
    """A nest with all numbers alike: a share of 1 was 1 when it was typed and is 1.0 when read."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return float(value)
    if isinstance(value, list | tuple):
        return [_alike(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _alike(item) for name, item in value.items()}
    return value


def load_record(path: str | Path) -> Record:
    """The record in a folder or file."""
    path = as_path(path, "record")
    file = path / FILE if path.is_dir() else path
    return Record.from_json(read_json(file, "record"), str(file))


def read_run(path: str | Path) -> tuple[Run, Record | None]:
    """The run in a record, or in a JSON file of its own; and the record where there is one."""
    path = expanded(path)
    file = path / FILE if path.is_dir() else path
    data = read_json(file, "record or run")
    if isinstance(data, Mapping) and "format" in data:
        record = Record.from_json(data, str(file))
        return record.run, record
    return Run.read(data, str(file)), None
