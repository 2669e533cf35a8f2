"""Look at the attention of one text or image, in one model or before and after pruning.

As AutoAttention shows it in §5.2, Figs 3 and 4.

maps = attention(model, "The lawyer sees the judge.", pruned=small)
maps.before[HeadUse(Head("encoder", 4, 11))]     # (query, key)
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UnsupportedError, UsageError
from headcount.changes.maps import AttentionMaps, HeadUse, Map, Picture, Tokens
from headcount.changes.options import require_one
from headcount.changes.pair import mask_of_pair
from headcount.heads import Head, Layout, Mask
from headcount.likeness.inputs import Batch, open_stream
from headcount.models.batches import model_inputs
from headcount.models.capture import AttentionSource, capture
from headcount.models.door import require_pretrained
from headcount.models.find import layout, sites_of, unwrap
from headcount.models.hooks import evaluating
from headcount.models.patches import patch_grid
from headcount.models.probe import reads_text, takes
from headcount.tasks.encoding import EncodedRows, encode_texts
from headcount.tasks.images import encode_images, seen_pixels
from headcount.tasks.loading import match, processor_of, require_readable, room, tokenizer_of
from headcount.training.translate import translate


def attention(
    model: PreTrainedModel,
    text: str | None = None,
    *,
    image: str | Path | None = None,
    pruned: PreTrainedModel | None = None,
    pair: str | None = None,
    target: str | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    max_length: int = 128,
) -> AttentionMaps:
    """The maps of every head on `text` (with `pair` behind it, as a task of two texts has it).

    A model of images sees the file `image` instead; `tokenizer` is then its image processor.

    `pruned` is the model with heads removed, and perhaps trained since. The decoder of an
    encoder–decoder reads `target`; left out, what the first model writes itself, greedily.
    """
    for name, given in (("text", text), ("pair", pair), ("target", target)):
        if given is not None and not (isinstance(given, str) and given.strip()):
            raise UsageError(f"The {name} is empty: attention needs words to look at.")
    require_pretrained(unwrap(model), "hc.attention")
    require_one(text, image)
    sites_of(model)
    mask = None if pruned is None else mask_of_pair(model, pruned)
    heads = layout(model)
    if image is not None:
        batch, picture = _see(model, Path(image), tokenizer)
        before = _maps(model, batch, Mask.full(heads), heads)
        return AttentionMaps(
            layout=heads,
            tokens={name: Tokens(picture.tokens, picture.tokens) for name in _stacks(before)},
            before=before,
            after=None if pruned is None or mask is None else _maps(pruned, batch, mask, heads),
            mask=mask,
            text=Path(image).name,
            picture=picture,
        )
    if not _reads_text(model):
        raise UnsupportedError(
            f"{type(model).__name__} reads no text, or not only: no map of it. Of a model of "
            "images pass an image."
        )
    assert text is not None
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    match(model, tokenizer)
    batch, cut, target = _read(model, text, pair, target, tokenizer, room(model, max_length))
    before = _maps(model, batch, Mask.full(heads), heads)
    return AttentionMaps(
        layout=heads,
        tokens=_tokens(model, batch, tokenizer, before),
        before=before,
        after=None if pruned is None or mask is None else _maps(pruned, batch, mask, heads),
        mask=mask,
        text=text if pair is None else f"{text} | {pair}",
        target=target,
        cut=cut,
    )


def _see(model: PreTrainedModel, path: Path, processor: Any) -> tuple[Batch, Picture]:
    """An image as a batch, and as the model sees it."""
    bare = unwrap(model)
    if "pixel_values" not in takes(type(bare)) or reads_text(type(bare)):
        raise UnsupportedError(f"{type(bare).__name__} reads no images, or not only.")
    processor = processor_of(model) if processor is None else processor
    rows = encode_images([path], processor)
    require_readable(model, rows)
    (batch,) = next(open_stream(model, rows).chunks)
    return batch, Picture(pixels=seen_pixels(path, processor), grid=patch_grid(bare, batch))


def _stacks(maps: dict[HeadUse, Map]) -> dict[str, None]:
    return dict.fromkeys(run.head.stack for run in maps)


def _reads_text(model: nn.Module) -> bool:
    bare: Any = unwrap(model)
    try:
        bare.get_input_embeddings()
    except NotImplementedError:  # several towers
        return False
    return getattr(bare, "main_input_name", "input_ids") == "input_ids"


def _read(
    model: PreTrainedModel,
    text: str,
    pair: str | None,
    target: str | None,
    tokenizer: Any,
    longest: int,
) -> tuple[Batch, int, str | None]:
    """One row as a batch, how many of its tokens did not fit, and what the decoder reads."""
    texts = (text,) if pair is None else (text, pair)
    rows = encode_texts([text if pair is None else texts], tokenizer, max_length=longest)
    if not rows.lengths[0]:
        raise UsageError(f"The tokenizer finds no token in the text: {text!r:.60}.")
    cut = len(tokenizer(*texts, verbose=False)["input_ids"]) - int(rows.lengths[0])
    if getattr(model.config, "is_encoder_decoder", False):
        target = _written(model, rows, tokenizer) if target is None else target
        ids = tokenizer(text_target=target, truncation=True, max_length=longest)["input_ids"]
        cut += len(tokenizer(text_target=target, verbose=False)["input_ids"]) - len(ids)
        rows = replace(rows, labels=[ids])
    elif target is not None:
        raise UsageError(
            f"{type(model).__name__} has no encoder beside its decoder: leave out the target."
        )
    (batch,) = next(open_stream(model, rows).chunks)
    return batch, cut, target


def _written(model: PreTrainedModel, rows: EncodedRows, tokenizer: Any) -> str:
    if not unwrap(model).can_generate():  # pyright: ignore[reportCallIssue]
        raise UsageError(f"{type(model).__name__} writes no text itself: pass the target.")
    return translate(model, rows, tokenizer)[0][0]


def _maps(model: PreTrainedModel, batch: Batch, mask: Mask, heads: Layout) -> dict[HeadUse, Map]:
    """All maps; the model's heads are those of the mask, and `heads` knows their numbers."""
    kept: dict[AttentionSource, Tensor] = {}
    bare = unwrap(model)
    with capture(model, kept.__setitem__), torch.no_grad(), evaluating(bare):
        model(**model_inputs(bare, batch))
    maps: dict[HeadUse, Map] = {}
    for source, windows in sorted(kept.items()):
        if len(windows) != 1:
            raise UnsupportedError(
                f"{source.stack} layer {source.layer} attends in {len(windows)} windows, which "
                "have no map of the whole text."
            )
        for index, values in zip(mask.indices(source.stack, source.layer), windows[0], strict=True):
            head = heads.original(Head(source.stack, source.layer, index))
            maps[HeadUse(head, source.use)] = values.float().cpu().numpy()
            if not np.isfinite(maps[HeadUse(head, source.use)]).all():
                raise UsageError(f"The attention of head {head} is not all numbers (NaN).")
    order = [stack.name for stack in mask.layout.stacks]
    return dict(sorted(maps.items(), key=lambda item: (order.index(item[0].head.stack), item[0])))


def _tokens(
    model: nn.Module, batch: Batch, tokenizer: object, maps: dict[HeadUse, Map]
) -> dict[str, Tokens]:
    source = spelled(batch["input_ids"][0].tolist(), tokenizer)
    target = source
    if "decoder_input_ids" in batch:
        target = spelled(batch["decoder_input_ids"][0].tolist(), tokenizer)
    by_stack = {"encoder": Tokens(source, source), "cross": Tokens(target, source)}
    by_stack["decoder"] = Tokens(target, target)
    return {name: by_stack[name] for name in _stacks(maps)}


def spelled(ids: list[int], tokenizer: Any) -> tuple[str, ...]:
    """The tokens as they read; where one alone is not a text, as the vocabulary spells it.

    Without a tokenizer, their numbers.
    """
    if tokenizer is None:
        return tuple(map(str, ids))
    words = []
    for number, spelling in zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True):
        read = tokenizer.decode([number]).strip()
        words.append(read if read and "\ufffd" not in read else str(spelling))
    return tuple(words)
