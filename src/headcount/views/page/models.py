"""What the page calls models: by their own names, or as the runs of a study made them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from headcount.views.page.reading import short_name
from headcount.views.page.walk import ReportInput

MADE = {"train": "trained", "prune": "pruned"}
"""What became of a model in a run of some kind."""


def model_name(model: Any, found: ReportInput, *, seed: bool = True) -> str:
    """A model's own name; of one that a run of a study made, what it was made of.

    >>> model_name({"kind": "train", "model": "hub/bert", "seed": 1}, ReportInput())
    'bert, trained, seed 1'
    """
    run = _run(model, found)
    if run is None:
        return short_name(model)
    base = model_name(run.get("model", "?"), found, seed=False)
    kind = str(run.get("kind", "run"))
    return f"{base}, {MADE.get(kind, kind)}" + (f", seed {run.get('seed', 0)}" if seed else "")


def _run(model: Any, found: ReportInput) -> Mapping[str, Any] | None:
    """The run that made a model, where it is known."""
    if isinstance(model, Mapping):
        return model
    parts = parts_of(model)
    return found.runs.get(parts[-1]) if parts[-2:-1] == ["runs"] else None


def parts_of(model: Any) -> list[str]:
    """The folders of a path, or the parts of a name."""
    return [part for part in str(model).replace("\\", "/").split("/") if part not in ("", ".")]


def base_of(run: Mapping[str, Any]) -> str | None:
    """What made the model of a run, whatever the seeds; None where it is a model by name."""
    made = run.get("model")
    return json.dumps(_seedless(made), sort_keys=True) if isinstance(made, Mapping) else None


def _seedless(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _seedless(each) for name, each in value.items() if name != "seed"}
    return value


def labels(models: Iterable[Any], found: ReportInput) -> dict[str, str]:
    """A label for each of several models, all different, with its phase where that is known."""
    several = list(dict.fromkeys(map(str, models)))
    names = {model: model_name(model, found) for model in several}
    often = Counter(names.values())
    made = {
        model: "/".join(parts_of(model)[-2:]) if often[name] > 1 else name
        for model, name in names.items()
    }
    phases = _phases(found)
    return {model: label + phases.get(model, "") for model, label in made.items()}


def _phases(found: ReportInput) -> dict[str, str]:
    """Models that are known to be from before or after fine-tuning."""
    told: dict[str, str] = {}
    for item in found.of("transfer"):
        if isinstance(item.data, Mapping):
            told[str(item.data.get("pretrained"))] = " (pre-trained)"
            told[str(item.data.get("finetuned"))] = " (fine-tuned)"
    for item in found.of("train"):
        told.setdefault(str(item.folder), " (fine-tuned)")
        told.setdefault(str((item.data.get("run") or {}).get("model")), " (pre-trained)")
    return told
