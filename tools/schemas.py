"""docs/records.md and the JSON Schemas of records and study files, made from the types.

python -m tools.schemas            # writes docs/records.md and docs/schema/*.json

A field's type and the string below it are all that there is to say about a key: what `runs/` writes
and reads is what is documented here, and what an editor checks. `tests/tools/test_schemas.py` fails
where the files on disk are others.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from headcount.base.header import FORMAT, VERSION
from headcount.base.json_object import JsonObject, key_of
from headcount.base.options import docs_of, needed_of, types_of
from headcount.heads import Layout, Mask
from headcount.models.model_options import ModelOptions
from headcount.pruning.methods import METHODS, Method
from headcount.repair.repairs import REPAIRS
from headcount.runs.kinds import KINDS
from headcount.runs.results import RecordFields
from headcount.studies.grid import SHORT
from headcount.studies.groups import GROUP
from headcount.studies.plan import Settings
from headcount.tasks.source import Source

ROOT = Path(__file__).parent.parent
DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
SIMPLE = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
NUMBERS: Schema = {"type": "array", "items": {"type": "integer"}}
LAYERS: Schema = {"type": "array", "items": NUMBERS}
STACK: Schema = {
    "type": "object",
    "properties": {"heads": NUMBERS, "groups": NUMBERS, "uses": NUMBERS, "numbers": LAYERS},
    "required": ["heads", "groups", "uses"],
}
ATOMS: dict[Any, Schema] = {
    Layout: {"type": "object", "additionalProperties": STACK},
    Mask: {
        "type": "object",
        "properties": {
            "layout": {"type": "object", "additionalProperties": STACK},
            "kept": {"type": "object", "additionalProperties": LAYERS},
        },
        "required": ["layout", "kept"],
    },
}
"""Values with a JSON of their own."""
REFERENCE: Schema = {
    "type": "object",
    "anyOf": [{"required": [word]} for word in ("run", "best", "each", "kind")],
    "description": "What another group of the study makes: {run: GROUP}, {best: GROUP} or "
    "{each: GROUP}, with values of axes where several runs are meant.",
}


class Schemas:
    """The schemas of types, with those of classes put down once, by name."""

    def __init__(self, *, study: bool = False) -> None:
        self.study, self.defs = study, dict[str, Schema]()

    def of(self, wanted: Any) -> Schema:
        """The schema of a type."""
        origin, inside = get_origin(wanted), get_args(wanted)
        if wanted is Any or wanted is object:
            return {}
        if wanted in ATOMS:
            return ATOMS[wanted]
        if wanted in SIMPLE or wanted is Path:
            return {"type": SIMPLE.get(wanted, "string")}
        if origin is Literal:
            return {"enum": list(inside)}
        if origin in (Union, types.UnionType):
            return _any_of([self.of(kind) for kind in inside])
        if origin in (tuple, list) and inside[-1:] != (...,) and origin is tuple:
            items = [self.of(kind) for kind in inside]
            return {"type": "array", "prefixItems": items, "minItems": len(items)}
        if origin in (tuple, list, Sequence):
            return {"type": "array", "items": self.of(inside[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(inside[1])}
        if wanted is Method:
            return {"$ref": "#/$defs/method"}
        if is_dataclass(wanted):
            return self.ref(wanted)
        return {}

    def ref(self, kind: Any) -> Schema:
        """A class by its name."""
        name = kind.__name__
        if name not in self.defs:
            self.defs[name] = {}
            record = issubclass(kind, JsonObject)
            self.defs[name] = self.record_part(kind) if record else self.options(kind)
        return {"$ref": f"#/$defs/{name}"}

    def record_part(self, kind: type[JsonObject]) -> Schema:
        """An object of a record; keys that it does not name are allowed, as a reader does."""
        texts = docs_of(kind)
        properties = {
            key_of(name): _described(self.of(wanted), texts.get(name))
            for name, wanted in types_of(kind).items()
            if name != kind.rest
        }
        required = [key_of(name) for name in needed_of(kind)]
        return {
            "type": "object",
            "description": _sentence(kind),
            "properties": properties,
            "required": required,
        }

    def options(self, kind: Any) -> Schema:
        """Options in a study file: any of them, with dashes or underscores, and no others."""
        texts, properties = docs_of(kind), {}
        for name, wanted in types_of(kind).items():
            schema = REPAIR_LIST if name == "repair" else self.of(wanted)
            schema = _any_of([schema, REFERENCE]) if _is_text(schema) else schema
            for key in {name, name.replace("_", "-")}:
                properties[key] = _described(schema, texts.get(name))
        if "batch_size" in properties:  # a preset of training
            properties["preset"] = {"type": "string"}
        properties = dict(sorted(properties.items()))
        return {"type": "object", "properties": properties, "additionalProperties": False}


REPAIR_LIST: Schema = {
    "type": "array",
    "items": {"anyOf": [{"type": "string"}, {"type": "object"}]},
    "description": "Steps in order: names, {name: options} or {name: NAME, …}.",
    "examples": [[entry.name for entry in REPAIRS]],
}


def _is_text(schema: Schema) -> bool:
    kinds = schema.get("type", [])
    return "string" in ([kinds] if isinstance(kinds, str) else kinds)


def _any_of(schemas: Sequence[Schema]) -> Schema:
    """One of several; of plain types, one list of them."""
    if all(set(schema) == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": list(schemas)}


def _described(schema: Schema, text: str | None) -> Schema:
    return {"description": text, **schema} if text else schema


def _sentence(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def record_schema() -> Schema:
    """The JSON Schema of record.json: what every record has, and what its kind adds."""
    schemas = Schemas()
    base = schemas.record_part(RecordFields)
    names = [entry.name for entry in KINDS]
    base["properties"] |= {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "kind": {"enum": names},
    }
    results = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": schemas.ref(_kind(name).result),
        }
        for name in names
    ]
    title = "A record of headcount"
    top = {"$schema": DRAFT, "title": title, **base, "allOf": results}
    return {**top, "$defs": dict(sorted(schemas.defs.items()))}


def study_schema() -> Schema:
    """The JSON Schema of a study file: its settings, and groups of runs with their options."""
    schemas = Schemas(study=True)
    settings = schemas.options(Settings)["properties"]
    kinds = [entry.name for entry in KINDS]
    values: Schema = {"type": ["array", "string", "number", "object", "boolean", "null"]}
    parts: Schema = {
        "kind": {"enum": kinds, "description": "What is done."},
        "model": _described(_any_of([{"type": "string"}, REFERENCE]), "The model of the runs."),
        "task": {"type": ["string", "null"], "description": "The task."},
        "source": _any_of([schemas.ref(Source), {"type": "null"}]),
        "model_options": _any_of([schemas.ref(ModelOptions), {"type": "null"}]),
        "seed": {"type": "integer", "description": "The seed of everything random."},
        "options": {"type": "object", "description": "Options of the kind of run."},
    }
    axes = {name: _described(values, f"Several values of {at}.") for name, at in SHORT.items()}
    condition = {"type": "object"}
    group = {
        **parts,
        **axes,
        "grid": {"type": "object", "description": "More axes: a dotted path -> its values."},
        "overrides": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"when": condition, "set": condition},
                "required": ["set"],
            },
            "description": "What is set where axes have some values.",
        },
        "exclude": {"type": "array", "items": condition, "description": "What is left out."},
        "keep": settings["keep"],
        "launch": _any_of([{"type": "string"}, {"type": "array", "items": {"type": "string"}}]),
        "seconds": {"type": "number", "exclusiveMinimum": 0, "description": "Of one run, about."},
        "about": {"type": "string", "description": "What the group is for."},
    }
    assert set(group) == set(GROUP)
    by_kind = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"properties": {"options": schemas.ref(_kind(name))}},
        }
        for name in kinds
    ]
    schemas.defs["method"] = _method(schemas)
    schemas.defs["group"] = {
        "type": "object",
        "properties": group,
        "additionalProperties": False,
        "allOf": by_kind,
    }
    return {
        "$schema": DRAFT,
        "title": "A study file of headcount",
        "type": "object",
        "properties": {
            **settings,
            "defaults": {"type": "object", "properties": parts, "additionalProperties": False},
            "runs": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"$ref": "#/$defs/group"},
            },
        },
        "required": ["runs"],
        "additionalProperties": False,
        "$defs": dict(sorted(schemas.defs.items())),
    }


def _method(schemas: Schemas) -> Schema:
    """A method by its name, or a table with its name and options."""
    options = []
    for entry in METHODS:
        closed = schemas.options(METHODS[entry.name])
        closed["properties"] = {"name": True, **closed["properties"]}
        named = {"properties": {"name": {"const": entry.name}}, "required": ["name"]}
        options.append({"if": named, "then": closed})
    names = {"type": "string", "examples": [entry.name for entry in METHODS]}
    table = {"type": "object", "properties": {"name": names}, "required": ["name"]}
    return {"anyOf": [names, {**table, "allOf": options}]}


def _kind(name: str) -> Any:
    return KINDS[name]


# --- the page ---


def records_page() -> str:
    """docs/records.md."""
    parts = [(ROOT / "tools" / "records_head.md").read_text(encoding="utf-8").rstrip()]
    parts.append(_table(RecordFields))
    seen: set[type] = set()
    for part in _parts(RecordFields, seen):
        parts += [f"### {part.__name__}", _sentence(part), _table(part)]
    for entry in KINDS:
        kind = _kind(entry.name).result
        parts += [f"## {entry.name}", _sentence(kind), _table(kind)]
        for part in _parts(kind, seen):
            parts += [f"### {part.__name__}", _sentence(part), _table(part)]
    parts.append((ROOT / "tools" / "records_foot.md").read_text(encoding="utf-8").rstrip())
    return "\n\n".join(parts) + "\n"


def _parts(kind: type[JsonObject], seen: set[type]) -> Iterator[type[JsonObject]]:
    """The classes inside of a class that no section above has, each with those inside of it."""
    for wanted in types_of(kind).values():
        for part in _classes(wanted):
            if part not in seen:
                seen.add(part)
                yield part
                yield from _parts(part, seen)


def _classes(wanted: Any) -> Iterator[type[JsonObject]]:
    if isinstance(wanted, type) and issubclass(wanted, JsonObject):
        yield wanted
    for inside in get_args(wanted):
        yield from _classes(inside)


def _table(kind: type[JsonObject]) -> str:
    """A row for each key, with its type."""
    texts, needed = docs_of(kind), needed_of(kind)
    rows = ["| key | type | what it is |", "|---|---|---|"]
    for field in fields(kind):  # pyright: ignore[reportArgumentType]
        key = "…" if field.name == kind.rest else f"`{key_of(field.name)}`"
        optional = "" if field.name in needed else ", may be left out"
        text = texts.get(field.name, "").replace("|", "\\|")
        rows.append(f"| {key} | {_type(types_of(kind)[field.name])}{optional} | {text} |")
    return "\n".join(rows)


NAMES = {bool: "boolean", int: "integer", float: "number", str: "text", type(None): "null"}


def _type(wanted: Any) -> str:
    """A type in words.

    >>> _type(float | None), _type(tuple[str, ...]), _type(Mapping[str, int])
    ('number or null', 'list of text', 'object of integer')
    """
    origin, inside = get_origin(wanted), get_args(wanted)
    if wanted in NAMES or wanted is Any:
        return NAMES.get(wanted, "any")
    if origin is Literal:
        return " or ".join(map(str, inside))
    if origin in (Union, types.UnionType):
        return " or ".join(map(_type, inside))
    if origin is tuple:
        listed = inside[:-1] if inside[-1] is ... else inside
        return f"list of {_type(listed[0])}" if inside[-1] is ... else "pair of numbers"
    if origin in (dict, Mapping):
        return "object" if inside[1] is Any else f"object of {_type(inside[1])}"
    return wanted.__name__


def contents() -> dict[Path, str]:
    """Every file with what is in it."""
    schemas = {"record": record_schema(), "study": study_schema()}
    files = {
        ROOT / "docs" / "schema" / f"{name}.schema.json": json.dumps(
            schema, indent=1, ensure_ascii=False
        )
        + "\n"
        for name, schema in schemas.items()
    }
    return {ROOT / "docs" / "records.md": records_page(), **files}


def main() -> None:
    """Write all of them."""
    for path, text in contents().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
