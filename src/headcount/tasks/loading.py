"""A model for a task, and which of its classes is which of the task's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import HeadcountError, NotFoundError, UnsupportedError, UsageError
from headcount.models.batches import model_inputs
from headcount.models.config import load_config, model_class
from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import evaluating
from headcount.models.load import load, skeleton
from headcount.models.memory import remembered
from headcount.models.probe import no_numbers, reads_text, takes
from headcount.models.processors import Processor, is_tokenizer, open_processor
from headcount.models.shipped import locate
from headcount.models.tokenizers import has_tokenizer, open_tokenizer, tokenizing
from headcount.tasks.encoding import EncodedRows, pad_token
from headcount.tasks.kinds import task_kind
from headcount.tasks.task import Task

MEDIA = {
    "pixel_values": "images (pixel_values)",
    "input_features": "sound (input_features)",
    "input_values": "sound (input_values)",
}


def load_for_task(
    name: str | os.PathLike[str],
    task: Task,
    *,
    from_scratch: bool = False,
    new_head: bool = True,
    new_tokenizer: PreTrainedTokenizerBase | None = None,
    seed: int = 0,
    **options: Any,
) -> PreTrainedModel:
    """The model with a head for the task; what is new (a head, or all of it) is drawn by `seed`.

    A checkpoint that has the task's classes already keeps them and their names; one with as many
    others keeps its head and is given the task's names. Without `new_head`, one that has none is
    refused: there is no point in scoring random weights. From scratch, `new_tokenizer` decides the
    vocabulary and the special tokens. `options` go to `models.load.load`.
    """
    require_inputs(name, task)
    kind = task_kind(task.kind)
    config = load_config(
        name,
        trust_remote_code=options.get("trust_remote_code", False),
        model_type=options.get("model_type"),
    )
    if not new_head:
        _require_head(name, config, task)
        return load(name, head=kind.head, **options)
    changes = kind.config_changes(config, task)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if from_scratch:
            config = load_config(name, **changes)
            _adopt(config, new_tokenizer)
            model: object = model_class(config, kind.head)(config).eval()
            dtype = options.get("dtype")
            return model if dtype is None else model.to(getattr(torch, dtype))
        return load(name, head=kind.head, new_head=True, **changes, **options)


def require_inputs(name: str | os.PathLike[str], task: Task | None = None) -> None:
    """Refuse a model that does not read what the task has: texts, images or sound.

    Without a task, it reads something that calibration data can be of.
    """
    model_type = model_class(load_config(name))
    reads = task_kind(task.kind).reads if task is not None else ("input_ids", *MEDIA)
    if reads == ("input_ids",):
        require_text(name)
    elif not {*reads} & takes(model_type):
        wanted = " or ".join(MEDIA.get(key, key) for key in reads)
        raise UsageError(
            f"The task '{task.name if task else ''}' has {wanted}, and {model_type.__name__} reads "
            "none: it takes a model of another kind."
        )


def require_text(name: str | os.PathLike[str]) -> None:
    """Refuse a model of images or sound where texts are needed, and say what it can be used for."""
    config = load_config(name)
    kind = model_class(config)
    if not reads_text(kind):
        sites_of(skeleton(config, kind))  # where there are no heads, that is what is wrong
        reads = next((word for key, word in MEDIA.items() if key in takes(kind)), "no text")
        raise UnsupportedError(
            f"{kind.__name__} reads {reads}, and headcount's tasks, texts and tokens are of no use "
            "to it. inspect, remove, bench, and prune without a task (--method random, pattern, "
            "layers or cluster) work on it; in Python, hc.redundancy, hc.recover and hc.prune take "
            "batches of its own inputs."
        )


def _adopt(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase | None) -> None:
    """Size the vocabulary for a new tokenizer and name its special tokens."""
    if tokenizer is None:
        return
    config.vocab_size = len(tokenizer)
    config.pad_token_id = tokenizer.pad_token_id
    config.eos_token_id = tokenizer.eos_token_id
    if getattr(config, "is_encoder_decoder", False):
        config.decoder_vocab_size = len(tokenizer)
        config.decoder_start_token_id = tokenizer.pad_token_id
        config.forced_eos_token_id = None


def hush() -> None:
    """Keep transformers from talking on stderr while a command runs."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def load_tokenizer(name: str | os.PathLike[str]) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder, a shipped model or a hub name."""
    name = locate(name)
    folder = Path(name)
    if folder.is_dir() and not has_tokenizer(folder):
        raise NotFoundError(f"No tokenizer in '{name}': pass --tokenizer FOLDER.")
    try:
        tokenizer = open_tokenizer(name)
        with tokenizing():  # fail here when it cannot do what every task needs
            length = min(8, tokenizer.model_max_length)
            tokenizer(["a b", ""], truncation=True, max_length=length)
            pad_token(tokenizer)
            max(tokenizer.get_vocab().values(), default=0)
        return tokenizer
    except (HeadcountError, OSError, ImportError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise NotFoundError(f"No tokenizer in '{name}': {reason[:400]}") from error


def load_processor(
    name: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None
) -> Any:
    """The tokenizer of a model, or its processor of images or sound; `folder` may hold it."""
    model_type = model_class(load_config(name))
    if reads_text(model_type):
        return load_tokenizer(folder or name)
    return open_processor(folder or name, frozenset(takes(model_type)))


def processor_of(model: PreTrainedModel) -> PreTrainedTokenizerBase:
    """The tokenizer from where the model was loaded, or what is in its stead: a processor."""
    if reads_text(type(unwrap(model))):
        return tokenizer_of(model)
    if not model.name_or_path:
        raise UsageError("This model was not loaded from a folder: pass its processor as well.")
    return open_processor(model.name_or_path, frozenset(takes(type(unwrap(model)))))


def tokenizer_of(model: PreTrainedModel) -> PreTrainedTokenizerBase:
    """The tokenizer from where the model was loaded."""
    if not model.name_or_path:
        raise UsageError("This model was not loaded from a folder: pass its tokenizer as well.")
    return load_tokenizer(model.name_or_path)


def match(model: PreTrainedModel, tokenizer: Processor) -> None:
    """Refuse a tokenizer with more tokens than the model; name the padding token to the model.

    A model that reads its last token (GPT-2) must know what padding looks like. A processor of
    images or sound has no tokens to match.
    """
    if not is_tokenizer(tokenizer):
        return
    known = getattr(model.get_input_embeddings(), "num_embeddings", None)
    largest = max(tokenizer.get_vocab().values(), default=0)
    if known is not None and largest >= known:
        raise UsageError(
            f"The tokenizer has {largest + 1} tokens, the model {known}: they do not belong "
            "together. Pass the model's own with --tokenizer."
        )
    if tokenizer.padding_side == "left" and _counts_padding(model):
        raise UsageError(
            f"The tokenizer pads on the left, and {type(model).__name__} counts positions from "
            "there: a row would be scored differently beside a longer one. Set "
            "tokenizer.padding_side = 'right', or padding_side in its tokenizer_config.json."
        )
    if model.config.get_text_config().pad_token_id is None:
        model.config.get_text_config().pad_token_id = pad_token(tokenizer)
        model.config.pad_token_id = pad_token(tokenizer)


def require_readable(model: PreTrainedModel, rows: EncodedRows) -> None:
    """Refuse pixels or sounds that the model cannot take: tried on the smallest row.

    An image processor, or a feature extractor, can belong to a model of another size.
    """
    bare: Any = unwrap(model)
    if not MEDIA.keys() & rows.columns.keys() or not len(rows):
        return
    name = next(name for name in rows.columns if name in MEDIA)
    number = min(range(len(rows)), key=lambda row: rows.columns[name][row].size)
    shape = rows.columns[name][number].shape

    def failure() -> str:
        reader = bare.get_encoder() if getattr(bare.config, "is_encoder_decoder", False) else bare
        item = {column: values[number] for column, values in rows.columns.items()}
        try:
            with torch.no_grad(), evaluating(bare):
                reader(**model_inputs(reader, rows.collate([item])))
        except Exception as error:  # a model says in its own way what it cannot take
            return (str(error).strip().splitlines() or [type(error).__name__])[0]
        return ""

    reason = remembered(bare, ("reads", name, shape), failure)
    if reason:
        raise UsageError(
            f"{type(bare).__name__} cannot take {' x '.join(map(str, shape))} numbers of "
            f"{MEDIA[name]}, which its processor makes of the data ({reason[:200]}): is the "
            "preprocessor_config.json that of another model?"
        )


def _counts_padding(model: PreTrainedModel) -> bool:
    """Whether positions are learned, and counted from the first token of a batch, padding or not.

    RoBERTa's are not: they have a place for padding, and count what is none.
    """
    return any(
        name.rpartition(".")[2] in ("position_embeddings", "wpe")
        and isinstance(module, torch.nn.Embedding)
        and module.padding_idx is None
        for name, module in model.named_modules()
    )


def room(model: PreTrainedModel, max_length: int) -> int:
    """How many tokens fit: `max_length`, or as many as the model has positions."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:
        return max_length  # relative positions have no end
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and isinstance(padding, int) and padding:
            return min(max_length, positions - padding - 1)  # RoBERTa counts from behind it
    return min(max_length, positions)


def require_finite(model: PreTrainedModel) -> None:
    """Refuse a model with weights that are NaN or infinite: it scores like one that guesses."""
    broken = no_numbers(model)
    if broken:
        name, wrong = next(iter(broken.items()))
        more = f", and so have {len(broken) - 1} more weights" if len(broken) > 1 else ""
        raise UsageError(
            f"The model cannot be scored: its weight '{name}' has {wrong} values that are NaN or "
            f"infinite{more}. The file is damaged, or its training ran away: take another one."
        )


def class_order(model: PreTrainedModel, task: Task, labels: np.ndarray | None = None) -> np.ndarray:
    """(task class,) -> the model's number for it: as the user named it, by name, or by number.

    Numbers are trusted where the model's names say nothing (LABEL_0) and the task's numbers mean
    something. `labels` are the classes that occur: only those must be known to the model.
    """
    known = class_names(model.config)
    order = _match_classes(known, task)
    shown = f"The model's {len(known)} classes: {_few(known, 8)}."
    if order is None:
        raise UsageError(
            f"The data's labels are {_few(task.labels, 8)}, and the model knows none of them. "
            f"{shown} Say which is which, as in --labels LABEL=CLASS, once for every label."
        )
    needed = range(len(order)) if labels is None else sorted({int(label) for label in labels})
    missing = [task.labels[i] for i in needed if order[i] < 0]
    if missing:
        advice = " Name every label in --labels, once." if task.called else ""
        raise UsageError(
            f"The data has labels the model has no class for: {_few(missing, 5)}. {shown}{advice}"
        )
    return np.array(order)


def class_names(config: Any) -> list[str]:
    """What a model calls its classes, in the order of their numbers."""
    return [str(config.id2label.get(i, i)) for i in range(config.num_labels)]


def _few(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _match_classes(known: Sequence[str], task: Task) -> list[int] | None:
    """(task class,) the number of the model's class or -1; None where nothing tells them apart.

    No two labels are one class.
    """
    order = _class_numbers([name.lower() for name in known], task)
    first: dict[int, str] = {}
    for label, number in zip(task.labels, order or (), strict=False):
        if number >= 0 and number in first:
            raise UsageError(
                f"The labels {first[number]} and {label} are both the model's class "
                f"'{known[number]}': say which class each of them is, as in --labels LABEL=CLASS."
            )
        first[number] = label
    return order


def _class_numbers(names: Sequence[str], task: Task) -> list[int] | None:
    called = {label: name.lower() for label, name in task.called}
    labels = [label.lower() for label in task.labels]
    if called:
        # a label that was left out is known by its name alone: its number may be another's
        return [
            _number_of(called[label], names, by_number=True)
            if label in called
            else _number_of(label.lower(), names)
            for label in task.labels
        ]
    if set(labels) & set(names):
        return [_number_of(label, names) for label in labels]
    if any(name not in (f"label_{i}", str(i)) for i, name in enumerate(names)):
        return None
    if all(label.isdecimal() for label in labels):
        return [_number_of(label, names, by_number=True) for label in labels]
    return [i if i < len(names) else -1 for i in range(len(labels))] if task.numbered else None


def _number_of(name: str, names: Sequence[str], *, by_number: bool = False) -> int:
    """The class of this name, or, where that counts, of this number; -1 for none."""
    if name in names:
        return names.index(name)
    return int(name) if by_number and name.isdecimal() and int(name) < len(names) else -1


def has_classes(config: PreTrainedConfig, task: Task) -> bool:
    """Whether a checkpoint has the task's classes already."""
    saved = (getattr(config, "architectures", None) or [""])[0]
    marks = task_kind(task.kind).saved_as
    if not any(mark in saved for mark in marks) or config.num_labels != len(task.labels):
        return False
    order = _match_classes(class_names(config), task)
    return order is not None and min(order) >= 0


def require_head(model: PreTrainedModel, task: Task) -> None:
    """Refuse a model whose class has another head than the task's, or none.

    A class of your own answers for itself, and so does one that writes texts.
    """
    model_type: Any = getattr(type(model), "base_class", type(model))
    kind = task_kind(task.kind)
    writes = kind.writes and model.can_generate()
    if writes or not model_type.__module__.startswith("transformers."):
        return
    try:
        wanted = model_class(model.config, kind.head)
    except UnsupportedError:
        wanted = ()
    if not isinstance(model, wanted):
        name = model.name_or_path or "MODEL"
        raise UsageError(
            f"{model_type.__name__} has no head for {task.kind}, which {task.name} needs: "
            f"hc.train('{name}', '{task.name}') trains one, and hc.load('{name}', "
            f"task='{task.kind}') loads one that was saved."
        )


def _require_head(name: str | os.PathLike[str], config: PreTrainedConfig, task: Task) -> None:
    saved = " ".join(getattr(config, "architectures", None) or ["nothing"])
    if not any(mark in saved for mark in task_kind(task.kind).saved_as):
        raise UsageError(
            f"'{name}' was saved as {saved}, without a head for {task.kind}: train it first "
            f"(headcount train {name} --task {task.name} --out DIR)."
        )
