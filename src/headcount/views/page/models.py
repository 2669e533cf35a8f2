"""What the page calls models: by their names, or as the runs of a study made them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from headcount.views.page.reading import parts_of, short_name
from headcount.views.page.walk import ReportInput

MADE = {"train": "trained", "prune": "pruned"}
"""What a run of some kind does to a model."""


def model_name(model: object, report: ReportInput, *, seed: bool = True) -> str:
    """A model's name; of one that a run of a study made, what it was made of.

    >>> model_name({"kind": "train", "model": "hub/bert", "seed": 1}, ReportInput())
    'bert, trained, seed 1'
    """
    run = model if isinstance(model, Mapping) else None
    if run is None:
        parts = parts_of(model)
        run = report.runs.get(parts[-1]) if parts[-2:-1] == ["runs"] else None
    if run is None:
        return short_name(model)
    base = model_name(run.get("model", "?"), report, seed=False)
    kind = str(run.get("kind", "run"))
    return f"{base}, {MADE.get(kind, kind)}" + (f", seed {run.get('seed', 0)}" if seed else "")


def base_of(run: Mapping[str, object]) -> str | None:
    """What made the model of a run, whatever the seeds; None where it is a model by name."""

    def seedless(value: object) -> object:
        if isinstance(value, Mapping):
            return {name: seedless(part) for name, part in value.items() if name != "seed"}
        return value

    model = run.get("model")
    return json.dumps(seedless(model), sort_keys=True) if isinstance(model, Mapping) else None


def labels(models: Iterable[object], report: ReportInput) -> dict[str, str]:
    """A label for each of several models, all different, with its phase where that is known."""
    names = {model: model_name(model, report) for model in map(str, models)}
    counts = Counter(names.values())
    phases = _phases(report)
    return {
        model: ("/".join(parts_of(model)[-2:]) if counts[name] > 1 else name)
        + phases.get(model, "")
        for model, name in names.items()
    }


def _phases(report: ReportInput) -> dict[str, str]:
    """Models that are known to be from before or after fine-tuning."""
    phases: dict[str, str] = {}
    for item in report.of("transfer"):
        phases[str(item.data.get("pretrained"))] = " (pre-trained)"
        phases[str(item.data.get("finetuned"))] = " (fine-tuned)"
    for item in report.of("train"):
        phases.setdefault(str(item.folder), " (fine-tuned)")
        phases.setdefault(str((item.data.get("run") or {}).get("model")), " (pre-trained)")
    return phases
