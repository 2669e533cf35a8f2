"""A model opened from its name, as its options says: for a task, for texts, or as it was saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from headcount.base.errors import NotFoundError, UsageError
from headcount.models.devices import pick_device
from headcount.models.door import require_pretrained
from headcount.models.find import unwrap
from headcount.models.load import load
from headcount.models.model_options import ModelOptions
from headcount.tasks.loading import (
    load_for_task,
    load_tokenizer,
    match,
    require_head,
    require_text,
)
from headcount.tasks.task import Task


def open_model(
    name: str,
    model_options: ModelOptions,
    task: Task | None = None,
    *,
    reads: bool = False,
    trains: bool = False,
    seed: int = 0,
) -> tuple[PreTrainedModel, Any, bool]:
    """(model on its device, tokenizer, whether its task head is new).

    With a task the model must have a head for it, unless it `trains`: then `seed` draws one. A
    model that will be given no texts (no task, and nobody says it `reads` some) may be without a
    tokenizer, which is then None.
    """
    device: Any = pick_device(model_options.device)
    how = model_options.loading
    if task is None and not reads:
        loaded = load(name, **how)
        return loaded.to(device), _tokenizer_if_any(name, model_options), False
    require_text(name)
    tokenizer = load_tokenizer(model_options.tokenizer or name)
    fresh = False
    if task is None:
        loaded = load(name, **how)
    else:
        try:
            loaded = load_for_task(name, task, new_head=False, **how)
        except (UsageError, NotFoundError):
            if not trains:
                raise
            loaded, fresh = load_for_task(name, task, seed=seed, **how), True
    match(loaded, tokenizer)
    return loaded.to(device), tokenizer, fresh


def model_for(
    model: nn.Module | str | os.PathLike[str], function: str, task: Task | None = None
) -> Any:
    """A model that may be named, or wrapped, with a head for the task where there is one."""
    if isinstance(model, str | os.PathLike):
        return open_model(os.fspath(model), ModelOptions(), task)[0]
    bare = require_pretrained(unwrap(model), function)
    if task is not None:
        require_head(bare, task)
    return model


def _tokenizer_if_any(name: str, model_options: ModelOptions) -> Any:
    try:
        return load_tokenizer(model_options.tokenizer or name)
    except NotFoundError:
        if model_options.tokenizer is not None:
            raise
        return None


def open_several(
    names: Sequence[str], model_options: ModelOptions, tasks: Sequence[Task | None] | None = None
) -> tuple[list[PreTrainedModel], Any]:
    """(models on their device, the one tokenizer they share), such as before and after a cut.

    A model with a task must have a head for it.
    """
    device: Any = pick_device(model_options.device)
    loaded = [
        load(name, **model_options.loading)
        if task is None
        else load_for_task(name, task, new_head=False, **model_options.loading)
        for name, task in zip(names, tasks or [None] * len(names), strict=True)
    ]
    tokenizer = shared_tokenizer(model_options, *names)
    return [model.to(device) for model in loaded], tokenizer


def shared_tokenizer(model_options: ModelOptions, *models: str) -> Any:
    """The tokenizer that was named, or that of the models, which must be one."""
    for name in models:
        require_text(name)
    if model_options.tokenizer is not None:
        return load_tokenizer(model_options.tokenizer)
    found, missing = [], None
    for name in models:
        try:
            found.append(load_tokenizer(name))
        except NotFoundError as error:
            missing = missing or error
    if not found and missing is not None:
        raise missing
    if len(found) > 1 and found[0].get_vocab() != found[1].get_vocab():
        raise UsageError(
            "The two models have different vocabularies: their tokenizers do not agree. Pass the "
            "right one with --tokenizer."
        )
    return found[0]
