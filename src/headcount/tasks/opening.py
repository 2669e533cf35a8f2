"""A model opened by its name and options: for a task, for texts, or as it was saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import NotFoundError, UsageError
from headcount.models import load as loading
from headcount.models.config import load_config, model_class
from headcount.models.devices import pick_device
from headcount.models.door import require_pretrained
from headcount.models.find import unwrap
from headcount.models.model_options import ModelOptions
from headcount.models.probe import reads_text
from headcount.models.sentences import set_pooling
from headcount.tasks.catalog import open_task
from headcount.tasks.kinds import TASK_KINDS, task_kind
from headcount.tasks.loading import (
    load_for_task,
    load_processor,
    load_tokenizer,
    match,
    require_head,
    require_inputs,
    require_text,
)
from headcount.tasks.task import Task


def load(
    name: str | os.PathLike[str],
    *,
    task: Task | str | None = None,
    new_head: bool = False,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    model_type: str | None = None,
    **options: Any,
) -> PreTrainedModel:
    """The model in a folder, on the hub or shipped here: a `PreTrainedModel`, evaluating.

    It has the head that the checkpoint was saved with, or the one for `task`: a task, or the name
    of one or of a kind (`headcount ls tasks`), such as `"embedding"` for the model without a head.
    Weights that the checkpoint lacks are refused by name; with `new_head` those of the head may be
    new, drawn at random, to be trained. `model_type` helps where an old config.json does not name
    its own. `options` go to `from_pretrained` (dtype, device_map, num_labels,
    attn_implementation…). No code of the folder is run, and none goes into what is saved;
    `trust_remote_code=True` runs the code of its config, for folders and repositories you trust.
    """
    options |= {
        "allow_pickle": allow_pickle,
        "trust_remote_code": trust_remote_code,
        "model_type": model_type,
    }
    if isinstance(task, str) and task in TASK_KINDS:
        return loading.load(name, head=task_kind(task).head, new_head=new_head, **options)
    if task is None:
        return loading.load(name, new_head=new_head, **options)
    return load_for_task(name, open_task(task), new_head=new_head, **options)


class OpenModel(NamedTuple):
    """A model on its device, its tokenizer (None without one), and whether its head is new."""

    model: PreTrainedModel
    tokenizer: Any
    new_head: bool = False


def open_model(
    name: str,
    model_options: ModelOptions,
    task: Task | None = None,
    *,
    reads: bool = False,
    trains: bool = False,
    seed: int = 0,
) -> OpenModel:
    """The model with its tokenizer.

    With a task the model must have a head for it, unless it `trains`: then `seed` draws one. A
    model without a task may be without a tokenizer, which is then None, unless it `reads` texts.
    """
    device: Any = pick_device(model_options.device)  # refused before the model is loaded
    if task is None and not (reads and reads_text(model_class(load_config(name)))):
        loaded = loading.load(name, **model_options.loading)
        try:
            tokenizer = load_processor(name, model_options.tokenizer)
        except NotFoundError:
            if model_options.tokenizer is not None:
                raise
            tokenizer = None
        return OpenModel(loaded.to(device), tokenizer)
    require_inputs(name, task)
    tokenizer = load_processor(name, model_options.tokenizer)
    new_head = False
    try:
        loaded = _load(name, model_options, task)
    except (UsageError, NotFoundError):
        if task is None or not trains:
            raise
        loaded, new_head = load_for_task(name, task, seed=seed, **model_options.loading), True
    match(loaded, tokenizer)
    set_pooling(loaded, model_options.pooling)
    return OpenModel(loaded.to(device), tokenizer, new_head)


def _load(name: str, model_options: ModelOptions, task: Task | None) -> PreTrainedModel:
    """As it was saved; with a task it must have a head for it."""
    if task is None:
        return loading.load(name, **model_options.loading)
    return load_for_task(name, task, new_head=False, **model_options.loading)


def model_for(
    model: nn.Module | str | os.PathLike[str], function: str, task: Task | None = None
) -> PreTrainedModel:
    """A model that may be named, or wrapped, with a head for the task where there is one."""
    if isinstance(model, str | os.PathLike):
        return open_model(os.fspath(model), ModelOptions(), task).model
    bare = require_pretrained(unwrap(model), function)
    if task is not None:
        require_head(bare, task)
    return model  # pyright: ignore[reportReturnType]


def open_several(
    names: Sequence[str],
    model_options: ModelOptions,
    tasks: Sequence[Task | None] | None = None,
    *,
    images: bool = False,
) -> tuple[list[PreTrainedModel], PreTrainedTokenizerBase]:
    """(models on their device, the tokenizer they share), such as before and after pruning.

    A model with a task must have a head for it. Of models of `images` it is the first one's image
    processor.
    """
    device: Any = pick_device(model_options.device)
    pairs = zip(names, tasks or [None] * len(names), strict=True)
    loaded = [_load(name, model_options, task) for name, task in pairs]
    if images:
        tokenizer = load_processor(names[0], model_options.tokenizer)
    else:
        tokenizer = shared_tokenizer(model_options, *names)
    return [model.to(device) for model in loaded], tokenizer


def shared_tokenizer(model_options: ModelOptions, *models: str) -> PreTrainedTokenizerBase:
    """The tokenizer that was named, or that of the models, which must be one."""
    for name in models:
        require_text(name)
    if model_options.tokenizer is not None:
        return load_tokenizer(model_options.tokenizer)
    tokenizers, missing = [], None
    for name in models:
        try:
            tokenizers.append(load_tokenizer(name))
        except NotFoundError as error:
            missing = missing or error
    if not tokenizers and missing is not None:
        raise missing
    if len(tokenizers) > 1 and tokenizers[0].get_vocab() != tokenizers[1].get_vocab():
        raise UsageError(
            "The two models have different vocabularies: their tokenizers do not agree. Pass the "
            "right one with --tokenizer."
        )
    return tokenizers[0]
