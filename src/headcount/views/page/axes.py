"""What a cut is called: its method, its repair, and what else a study file varied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.repair.repairs import done_words
from headcount.views.page.reading import text
from headcount.views.page.walk import ReportItem


def label_of(record: Mapping[str, Any]) -> str:
    """A method with what came after its cut."""
    parts = [text(record["method"], 60)]
    parts += [text(word, 60) for word in repaired(record)]
    return ", ".join(parts)


def repaired(record: Mapping[str, Any]) -> list[str]:
    """What has become of the model after the cut, as far as the record says."""
    steps = record.get("repair")
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        return []
    return done_words(
        [step["name"] for step in steps if isinstance(step, Mapping) and "name" in step]
    )


def axes_of(items: Sequence[ReportItem], folders: set[Path]) -> dict[Path, str]:
    """What else differs between cuts of one method in a study file: `, samples 64`.

    Cuts that a file asks for with different options must not be taken for seeds of one.
    """
    groups: dict[tuple[Any, ...], list[ReportItem]] = {}
    for item in items:
        if item.study in folders and isinstance(item.data.get("run"), Mapping):
            groups.setdefault((item.study, label_of(item.data)), []).append(item)
    told: dict[Path, str] = {}
    for own in groups.values():
        plain = [dict(_flat(item.data["run"].get("options") or {})) for item in own]
        names = [
            name
            for name in dict.fromkeys(name for each in plain for name in each)
            if len({str(each.get(name)) for each in plain}) > 1
        ]
        for item, each in zip(own, plain, strict=True):
            said = [f"{name.split('.')[-1]} {text(each.get(name), 30)}" for name in names]
            told[item.path] = "".join(f", {part}" for part in said)
    return told


def _flat(options: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Options by the way to them, without ratios and seeds."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif name not in ("ratio", "seed"):
            yield f"{above}{name}", value
