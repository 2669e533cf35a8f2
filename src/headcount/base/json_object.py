"""Results as types: frozen dataclasses whose fields are the keys of a JSON object.

    @dataclass(frozen=True, kw_only=True)
    class HeadCounts(JsonObject):
        before: int
        after: int

    HeadCounts(before=12, after=6).to_json()                # {"before": 12, "after": 6}
    HeadCounts.from_json({"before": 12, "after": 6}).after  # 6

A field without a default is always written. One with a default is left out where it has that and
is None, False or empty. Keys that are no field are passed over, so that records of other versions
can be read; what lacks a field, or has one of another type, is refused. The string below a field
says what it is: in `docs/records.md` and in the JSON Schema of records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from headcount.base.errors import UsageError
from headcount.base.options import convert, default_of, needed_of, types_of
from headcount.base.text import short

JsonDict = dict[str, Any]
"""A JSON object as it is read and written, where it has no type of its own."""


class JsonObject:
    """What is written as a JSON object, field by field; derived classes are frozen dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    rest: ClassVar[str] = ""
    """The field with all keys that are no other field, where a class has one."""

    def to_json(self) -> JsonDict:
        """A plain dict; a field that has its default is left out where that says nothing."""
        needed, data = needed_of(type(self)), {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == self.rest:
                data |= value
            elif field.name in needed or not _is_empty(value) or value != default_of(field):
                data[key_of(field.name)] = _plain(value)
        return data

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The value that `to_json` wrote."""
        if not isinstance(data, Mapping):
            raise UsageError(f"{short(data)} is no object.")
        types = {key_of(name): (name, wanted) for name, wanted in types_of(cls).items()}
        values: JsonDict = {}
        if cls.rest:
            values[cls.rest] = {key: value for key, value in data.items() if key not in types}
        for key, (name, wanted) in types.items():
            if key in data and name != cls.rest:
                try:
                    values[name] = convert(data[key], wanted, key)
                except UsageError as error:
                    raise UsageError(f"{key}: {error}") from error
        if missing := [name for name in needed_of(cls) if name not in values]:
            raise UsageError(f"it lacks '{key_of(missing[0])}'.")
        return cls(**values)


def key_of(name: str) -> str:
    """The key of a field: that of `class_` is a word which Python has taken.

    >>> key_of("class_"), key_of("heads_kept")
    ('class', 'heads_kept')
    """
    return name.removesuffix("_")


def _is_empty(value: object) -> bool:
    return value is None or value is False or (isinstance(value, str | tuple | dict) and not value)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
