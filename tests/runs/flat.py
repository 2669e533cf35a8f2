"""Cuts and studies asked for by flat names, so that a test says in a line what it is about."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import headcount as hc
from headcount.pruning.methods import make_method
from headcount.runs.subject import Subject, make_subject
from headcount.studies.compare import RECOVER


def values(flat: dict[str, Any], seed: int | None = None) -> dict[str, Any]:
    """Flat names put into Scoring, Calibration and repairs; the others as they are."""
    flat = dict(flat)
    found: dict[str, Any] = {}
    for name, kind in (("scoring", hc.Scoring), ("calibration", hc.Calibration)):
        own = {each.name: flat.pop(each.name) for each in fields(kind) if each.name in flat}
        if name == "scoring" and seed is not None:
            own.setdefault("seed", seed)
        if own:
            found[name] = kind(**own)
    recover, train = flat.pop("recover", None), flat.pop("finetune", None)
    if recover is not None or train:
        steps = [hc.Recover()] if recover else []
        if train:
            steps.append(hc.Finetune() if train is True else hc.Finetune.of(train))
        found["repair"] = tuple(steps)
    return {**flat, **found}


def subject(model, task, flat: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """A subject where something is said that only it knows; else the model and the task."""
    own = {name: flat.pop(name) for name in ("device", "fresh") if name in flat}
    if not own:
        return model, task, flat
    model_options = hc.ModelOptions(device=own.get("device", "auto"))
    made = make_subject(
        model, task, tokenizer=flat.pop("tokenizer", None), model_options=model_options
    )
    assert isinstance(made, Subject)
    made.fresh = own.get("fresh", False)
    return made, None, flat


def prune(model, method=None, ratio=None, *, task=None, options=None, seed=0, **flat):
    named = make_method(method, options) if isinstance(method, str) else method
    model, task, flat = subject(model, task, flat)
    return hc.prune(model, named, ratio, task=task, seed=seed, **values(flat, seed))


def curve(model, task, methods=("random", "cluster", "importance"), *args, options=None, **flat):
    named = [
        make_method(each, (options or {}).get(each)) if isinstance(each, str) else each
        for each in methods
    ]
    model, task, flat = subject(model, task, flat)
    return hc.curve(model, task, named, *args, **values(flat))


def compare(model, task, methods, *, options=None, **flat):
    named = methods
    if options:
        plain = {each: each.removesuffix(RECOVER) for each in methods}
        named = {name: make_method(each, options.get(each)) for name, each in plain.items()}
    model, task, flat = subject(model, task, flat)
    return hc.compare(model, task, named, **values(flat))


def sweep(model, task, over, chosen, *, method="straight-through", options=None, **flat):
    named = make_method(method, options)
    model, task, flat = subject(model, task, flat)
    return hc.sweep(model, task, over, chosen, method=named, **values(flat))
