"""Dataclasses that are written as JSON objects and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest

from headcount.base.errors import UsageError
from headcount.base.json_object import JsonObject
from headcount.heads import Layout, Mask


@dataclass(frozen=True, kw_only=True)
class Part(JsonObject):
    rest: ClassVar = "more"

    name: str
    size: float | None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Whole(JsonObject):
    class_: str
    ratio: float | Literal["free"] | None
    mask: Mask
    parts: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict)
    count: int = 0
    closed: bool = False
    note: str = ""
    one: Part | None = None
    better: bool | None = None


MASK = Mask.parse("21", Layout.of(encoder=[2, 2]))
PLAIN = {"class": "Bert", "ratio": None, "mask": MASK.to_json(), "count": 0}
FULL = PLAIN | {
    "ratio": "free", "count": 3, "closed": True, "note": "x", "better": False,
    "parts": [{"name": "a", "size": 1.5, "layers": [1]}, {"name": "b", "size": None}],
    "by_name": {"c": {"name": "c", "size": 2.0}}, "one": {"name": "d", "size": 0.0},
}  # fmt: skip


@pytest.mark.parametrize("data", [PLAIN, FULL])
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    value = Whole.from_json(data)
    assert value.to_json() == data
    assert Whole.from_json(value.to_json()) == value
    assert value.mask == MASK


def test_parts_are_of_their_types_and_other_keys_have_a_field() -> None:
    value = Whole.from_json(FULL | {"unknown": 1})
    assert value.parts[0].more == {"layers": [1]}
    assert value.by_name["c"].size == 2.0
    assert "unknown" not in value.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class": 3}, "class: 3 is not a text"),
        ({"ratio": "most"}, "ratio: 'most' is not a number"),
        ({"mask": {}}, "mask: This is not a mask"),
        ({"parts": {"a": 1}}, "parts: .* is not a list"),
        ({"parts": [{"name": "a"}]}, "parts: it lacks 'size'"),
        ({"parts": [7]}, "parts: 7 is no object"),
        ({"by_name": []}, r"by_name: \[\] is no object"),
        ({"by_name": {"c": {"name": 1, "size": 1}}}, "by_name: name: 1 is not a text"),
        ({"count": 1.5}, "count: 1.5 is not a whole number"),
        ({"one": {"name": "a", "size": 10**400}}, "one: size: .* is too large"),
    ],
    ids=str,
)
def test_what_is_of_another_type_is_refused_by_its_path(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Whole.from_json(FULL | change)


def test_what_is_missing_is_named() -> None:
    for name in ("class", "ratio", "mask"):
        with pytest.raises(UsageError, match=f"it lacks '{name}'"):
            Whole.from_json({key: value for key, value in PLAIN.items() if key != name})
    with pytest.raises(UsageError, match="3 is no object"):
        Whole.from_json(3)
