"""What an export is traced and verified with: text pairs as the model's tokenizer writes them.

Every input that the tokenizer gives and the model names is there (`token_type_ids` tell the two
texts of a pair apart), rows of a batch differ in length, and batches differ in both sizes.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.models.probe import find_probe, probe_inputs, run
from headcount.models.tokenizers import has_tokenizer, open_tokenizer, tokenizing

Feeds = dict[str, Tensor]

PAIRS = (((5, 4), (2, 3), (1, 1)), ((9, 7), (3, 8)), ((4, 0), (2, 0)))
"""Words of the first and the second text of every row, batch by batch; 0 is no second text."""
LONGEST = 24


@dataclass(frozen=True)
class Probes:
    """Batches that an export must answer as the model does; the first one is traced."""

    feeds: list[Feeds]
    summary: str
    """What they are, for the card."""
    tokenized: tuple[str, ...] = ()
    """The inputs that the tokenizer gives and the model takes."""
    more: bool = False
    """Whether the tokenizer gives inputs that the model does not take."""
    tokenizer: PreTrainedTokenizerBase | None = None


def find_tokenizer(name: str | os.PathLike[str]) -> Any:
    """The tokenizer in a model folder or of a hub name, None where there is none."""
    folder = Path(name)
    if not str(name) or (folder.is_dir() and not has_tokenizer(folder)):
        return None
    try:
        return open_tokenizer(str(name))
    except Exception:
        # without one the probe is made up, and the card says so
        return None


def find_probes(
    model: PreTrainedModel, tokenizer: object = None, rows: Sequence[Mapping[str, object]] = ()
) -> Probes:
    """Batches for a model: `rows` of a task, tokenised text pairs, or made-up tokens."""
    base = find_probe(model)
    if "input_ids" not in base:
        return Probes([base, *_larger(model, base)], "made-up inputs")
    task = [_completed(model, base, batch) for batch in rows]
    written = [] if tokenizer is None else _tokenized(model, tokenizer)
    paired = [_completed(model, base, batch) for batch in written]
    paired = [feeds for feeds in paired if _runs(model, feeds)]
    if not task and not paired:
        tokens = _with_segments(model, base)
        return Probes([tokens, *_larger(model, tokens)], "made-up tokens with padding")
    # rows of single texts still take what a pair would
    names = list(dict.fromkeys(name for inputs in (*task, *paired) for name in inputs))
    feeds = [_with_all(names, inputs) for inputs in (*task, *paired)]
    # an axis of one would be taken for a constant
    feeds.sort(key=lambda inputs: min(inputs["input_ids"].shape) < 2)
    summary = ["text pairs, tokenised and padded"] if paired else []
    count = sum(len(inputs["input_ids"]) for inputs in task)
    summary += [f"{count} rows of the task"] if task else []
    given = tuple(name for name in names if paired and name in written[0])
    more = bool(paired) and not set(written[0]) <= set(names)
    return Probes(feeds, " and ".join(summary), given, more)


def _tokenized(model: PreTrainedModel, tokenizer: Any) -> list[Feeds]:
    """PAIRS of words of the tokenizer's own vocabulary, as it writes them."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    longest = min(positions - 2, LONGEST) if isinstance(positions, int) else LONGEST
    if tokenizer.pad_token_id is None:
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    try:
        with tokenizing():
            return _written(tokenizer, max(longest, 4))
    except Exception:
        # a tokenizer for something else than texts, or without anything to pad with
        return []


def _written(tokenizer: Any, longest: int) -> list[Feeds]:
    words = _words(tokenizer)
    draw = torch.Generator().manual_seed(0)

    def text(count: int) -> str:
        chosen = torch.randint(len(words), (count,), generator=draw).tolist()
        return " ".join(words[number] for number in chosen)

    batches = []
    for batch in PAIRS:
        texts = [[text(first), text(second)] for first, second in batch]
        columns = zip(*texts, strict=True)
        first, second = (list(column) for column in columns)
        batches.append(
            tokenizer(
                first,
                second if any(second) else None,
                padding=True,
                truncation=True,
                max_length=longest,
                return_tensors="pt",
            )
        )
    return [dict(batch) for batch in batches]


def _words(tokenizer: Any) -> list[str]:
    """Tokens that are readable on their own, at most 500."""
    special = set(tokenizer.all_special_ids)
    numbers = [number for number in range(min(len(tokenizer), 5000)) if number not in special]
    step = max(len(numbers) // 500, 1)
    words = [tokenizer.decode([number]).strip() for number in numbers[::step]]
    return [word for word in words if word] or ["word"]


def _completed(model: PreTrainedModel, base: Feeds, batch: Mapping[str, Any]) -> Feeds:
    """What the model names of a tokenised batch, with made-up inputs where it needs more."""
    takes = inspect.signature(model.forward).parameters
    ids = batch["input_ids"]
    device = base["input_ids"].device
    probe = probe_inputs(model, batch=ids.shape[0], length=max(ids.shape[1], 3))
    feeds = {
        name: batch[name].to(device)
        for name in batch
        # a probe without a mask is one that the model refused with it
        if name in takes and name != "labels" and (name != "attention_mask" or name in base)
    }
    return feeds | {name: probe[name] for name in base if name not in feeds}


def _with_all(names: Sequence[str], feeds: Feeds) -> Feeds:
    """The feeds in one order, zeros for token inputs that other feeds have."""
    return {
        name: feeds[name] if name in feeds else torch.zeros_like(feeds["input_ids"])
        for name in names
    }


def _with_segments(model: PreTrainedModel, inputs: Feeds) -> Feeds:
    """The inputs with two segments in each row, where the model tells segments apart."""
    takes = inspect.signature(model.forward).parameters
    if "token_type_ids" not in takes or getattr(model.config, "type_vocab_size", 0) < 2:
        return inputs
    segments = torch.zeros_like(inputs["input_ids"])
    segments[:, segments.shape[1] // 2 :] = 1
    paired = inputs | {"token_type_ids": segments}
    return paired if _runs(model, paired) else inputs


def _larger(model: PreTrainedModel, inputs: Feeds) -> list[Feeds]:
    """Made-up inputs with more examples and tokens, if the model itself takes them."""
    one = all(tensor.shape[0] == 1 for tensor in inputs.values())
    larger = probe_inputs(model, batch=1 if one else 3, length=11, seed=1)
    if "token_type_ids" in inputs:
        larger = _with_segments(model, larger)
    # the model may have fewer positions than that
    larger = {name: larger[name] for name in inputs if name in larger}
    return [larger] if larger.keys() == inputs.keys() and _runs(model, larger) else []


def _runs(model: PreTrainedModel, feeds: Feeds) -> bool:
    try:
        run(model, feeds)
    except Exception:
        return False
    return True
