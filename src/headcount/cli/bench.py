"""`headcount bench MODEL [PRUNED]`: is it really faster? Dense, masked and removed, in one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headcount.cli.common import Json, emit, say
from headcount.cli.progress import progress, waiting
from headcount.errors import UsageError, need_extra
from headcount.report.tables.amounts import percent
from headcount.report.tables.bench import number, page, to_json
from headcount.report.tables.columns import table

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from headcount.heads import Layout, Mask

RATIOS = (0.5, 0.75, 0.9)
ONNX = ("onnx", "onnxscript", "onnxruntime")


def bench(
    model: str,
    pruned: str | None = None,
    *,
    ratio: Annotated[list[float] | None, Parameter(consume_multiple=True)] = None,
    batch: int = 8,
    length: int | None = None,
    repeats: int = 15,
    onnx: bool | None = None,
    from_config: Annotated[bool, Parameter(negative=())] = False,
    allow_pickle: Annotated[bool, Parameter(negative=())] = False,
    device: str = "auto",
    seed: int = 0,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    as_json: Json = False,
) -> None:
    """Time one forward pass: dense, masked, with heads removed, and in onnxruntime.

    All run in turn, round after round, so a busy machine slows all of them; what is printed is
    the median of the ratios to the dense model with its 95 % interval, beside the ideal from
    FLOPs. Without PRUNED, heads are removed at random: which ones makes no difference to time.

    Examples: `headcount bench bert-base-uncased` · `headcount bench ./model ./pruned` ·
    `headcount bench ./config.json --ratio 0.5 0.9 --batch 1 --length 64 --json`

    Parameters
    ----------
    model
        A model folder, a config.json, or a name on the hub.
    pruned
        The same model with heads removed.
    ratio
        Shares of the heads to remove when PRUNED is not given: 0.5 0.75 0.9.
    batch
        Examples in a forward pass.
    length
        Tokens of each example; 128, or what fits.
    repeats
        Rounds; 6 or more.
    onnx
        Time onnxruntime, too: the dense model and the one with the fewest heads. By default when
        it is installed and the device is the CPU; exporting takes most of a minute.
    from_config
        Use random weights, even where there are others: they take the same time.
    allow_pickle
        Load weights that are pickled (.bin), which can run code: only if you trust them.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    seed
        Seed of the heads that are removed, the inputs, and random weights.
    dry_run
        Print the ideals only; nothing is loaded or timed.
    """
    from headcount.models.timing import check_rounds

    if pruned is not None and ratio is not None:
        raise UsageError("Give either PRUNED or --ratio: a pruned model has its own ratio.")
    if batch < 1:
        raise UsageError(f"A batch is at least 1 example, not {batch}.")
    check_rounds(repeats)
    if dry_run:
        plan(model, pruned, ratio, length=length, seed=seed, as_json=as_json)
        return
    from headcount.models.bench import bench as measure
    from headcount.models.devices import pick_device

    where: Any = pick_device(device)
    with_onnx = wants_onnx(onnx, where)
    with waiting("loading and removing") as prepared:
        dense, weights = obtain(model, from_config, allow_pickle, seed)
        dense.to(where)
        if pruned is None:
            removed = removed_at_random(dense, ratio, seed)
        else:
            small, _ = obtain(pruned, from_config, allow_pickle, seed)
            dense, mask, small = side_by_side(dense, small.to(where))
            removed = {percent(mask.sparsity): (mask, small)}

        def track(rounds: Iterable[int]) -> Iterator[int]:
            prepared()
            yield from progress(rounds, "timing", total=repeats)

        found = measure(
            dense,
            removed,
            batch=batch,
            length=length,
            rounds=repeats,
            onnx=with_onnx,
            seed=seed,
            track=track,
        )
    data = to_json(found, model=model, pruned=pruned, weights=weights, seed=seed)
    emit(data, as_json=as_json, table=page(found, weights))


def obtain(
    name: str, from_config: bool, allow_pickle: bool, seed: int
) -> tuple[PreTrainedModel, str]:
    """The model and where its weights come from: `saved` or `random`."""
    from headcount.models.load import load
    from headcount.models.random_weights import has_weights, random_model

    if from_config:
        return random_model(name, seed=seed), "random"
    if not has_weights(name):
        say(f"headcount: '{name}' has no weights; random ones take the same time.")
        return random_model(name, seed=seed), "random"
    return load(name, allow_pickle=allow_pickle), "saved"


def wants_onnx(asked: bool | None, device: str) -> bool:
    """Whether onnxruntime is timed; when it was asked for and cannot be, say how to get it."""
    missing = [name for name in ONNX if find_spec(name) is None]
    if asked and missing:
        raise need_extra(missing[0], "onnx")
    if asked and device != "cpu":
        raise UsageError(f"onnxruntime is timed on the CPU, not on {device}; use --device cpu.")
    if asked is None and missing:
        say(f"headcount: {missing[0]} is not installed, so onnxruntime is not timed.")
    return device == "cpu" and not missing if asked is None else asked


def random_masks(layout: Layout, ratios: list[float] | None, seed: int) -> dict[str, Mask]:
    """For each ratio a mask that drops heads at random, by the share it really drops."""
    import torch

    from headcount.models.bench import random_mask

    masks = (
        random_mask(layout, ratio, torch.Generator().manual_seed(seed))
        for ratio in (RATIOS if ratios is None else ratios)
    )
    return {percent(mask.sparsity): mask for mask in masks}


def removed_at_random(
    dense: PreTrainedModel, ratios: list[float] | None, seed: int
) -> dict[str, tuple[Mask, PreTrainedModel]]:
    """For each ratio the heads that are kept, and the model without the others."""
    from headcount.models.find import layout
    from headcount.models.remove import remove

    masks = random_masks(layout(dense), ratios, seed)
    return {name: (mask, remove(dense, mask)) for name, mask in masks.items()}


def side_by_side(
    dense: PreTrainedModel, small: PreTrainedModel
) -> tuple[PreTrainedModel, Mask, PreTrainedModel]:
    """The two models as they can be compared, and the heads that the smaller one kept."""
    from headcount.models.pairs import comparable, mask_between

    kind = type(dense).__name__, type(small).__name__
    dense, small = comparable(dense, small)
    if type(dense).__name__ not in kind:
        say(f"headcount: {kind[0]} and {kind[1]} are compared as {type(dense).__name__}.")
    return dense, mask_between(dense, small), small


def plan(
    model: str,
    pruned: str | None,
    ratios: list[float] | None,
    *,
    length: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Print the ideals without loading or timing anything."""
    from headcount.models.cost import cost, read_config
    from headcount.models.load import skeleton

    dense = skeleton(*read_config(model))
    masks: dict[str, Mask] = {}
    if pruned is not None:
        dense, mask, _ = side_by_side(dense, skeleton(*read_config(pruned)))
        masks[percent(mask.sparsity)] = mask
    counted = cost(dense, length=length)
    masks = masks or random_masks(counted.layout, ratios, seed)
    rows = [
        {"name": f"removed {name}", "heads": len(mask), "ideal": counted.ratio(mask)}
        for name, mask in masks.items()
    ]
    data = {"model": model, "pruned": pruned, "length": counted.length, "dry_run": rows}
    cells = [(row["name"], row["heads"], number(row["ideal"])) for row in rows]
    emit(data, as_json=as_json, table=table(["would time", "heads", "ideal time / dense"], cells))
