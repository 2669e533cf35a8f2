"""Does removing heads make a model faster? What to time, and the ideal that FLOPs promise.

found = hc.bench("bert-base-uncased", ratio=[0.5, 0.9])     # random heads: time is the same
found = hc.bench(model, smaller, batch=1, length=64)
plan("bert-base-uncased").rows[0].ideal                     # nothing is loaded or timed
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial

from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.base.extras import missing_of, require_extra
from headcount.base.text import line
from headcount.costs.bench import time_removed
from headcount.costs.cost import cost
from headcount.costs.generating import time_generating
from headcount.costs.pairs import comparable, mask_between
from headcount.costs.shapes import shapes_of
from headcount.costs.timed import BenchResult
from headcount.costs.timing import check_rounds
from headcount.heads import Layout, Mask
from headcount.heads.choose import random_groups, random_mask
from headcount.models.devices import pick_device
from headcount.models.door import require_pretrained
from headcount.models.find import layout
from headcount.models.hooks import evaluating
from headcount.models.load import load, read_config, skeleton
from headcount.models.random_weights import has_weights, random_model
from headcount.models.remove import remove

RATIOS = (0.5, 0.75, 0.9)
TIMING_SECONDS = 30.0
"""How long rounds go on at most for an interval within ± 10 %, for inputs of one shape."""
Named = str | os.PathLike[str] | PreTrainedModel
"""A model, or its folder, config.json or name."""
Track = Callable[[Iterable[int]], Iterable[int]]
"""What goes around the rounds, such as a bar."""


@dataclass(frozen=True, kw_only=True)
class Ideal:
    """A removal that could be timed, and what it could save at best."""

    name: str
    heads: int
    """Heads that would be left."""
    ideal: float | None
    """FLOPs as a share of the dense model's, None when they cannot be counted."""


@dataclass(frozen=True, kw_only=True)
class BenchPlan:
    """What a bench would time."""

    name: str | None
    pruned: str | None
    length: int
    rows: tuple[Ideal, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows = ", ".join(f"{row.name}: {row.heads} heads" for row in self.rows)
        return line(f"BenchPlan({rows})", f"BenchPlan({len(self.rows)} removals)")

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        rows = [asdict(row) for row in self.rows]
        names = {"model": self.name, "pruned": self.pruned}
        return {**names, "length": self.length, "dry_run": rows}


def bench(
    model: Named,
    pruned: Named | None = None,
    *,
    ratio: float | Sequence[float] | None = None,
    batch: int | Sequence[int] = 8,
    length: int | Sequence[int] | None = None,
    repeats: int = 15,
    timing_seconds: float = TIMING_SECONDS,
    onnx: bool | None = None,
    generate: bool = False,
    from_config: bool = False,
    allow_pickle: bool = False,
    device: str = "auto",
    seed: int = 0,
    track: Track = iter,
) -> BenchResult:
    """Time one forward pass of `model`: dense, masked, with heads removed, and in onnxruntime.

    Without `pruned`, shares of the heads (`ratio`: 0.5, 0.75, 0.9) are removed at random: which
    ones makes no difference to time. All ways run in turn for `repeats` rounds, and for more until
    all intervals are within ± 10 % or `timing_seconds` have passed. Of several batches and lengths
    every combination is timed. onnxruntime is timed where it is installed and the device is the
    CPU, or as `onnx` says. With `generate`, a prefill of `length` tokens is timed, and tokens after
    it through the cache, beside the bytes that are read for them; whole key-value heads are removed
    then. `device`, `from_config` (random weights) and `allow_pickle` are for models that are named;
    a model in memory is timed where it is, and stays as it was. `track` goes around the rounds.
    """
    check_bench(pruned, ratio, batch, length, repeats, generate=generate, onnx=onnx)
    notes: list[str] = []
    where = str(model.device) if isinstance(model, PreTrainedModel) else pick_device(device)
    with_onnx = not generate and wants_onnx(onnx, where, notes)
    with ExitStack() as kept:

        def opened(given: Named) -> tuple[PreTrainedModel, str]:
            loaded, weights = _open(given, from_config, allow_pickle, seed, notes)
            if _name(given):
                loaded.to(where)  # pyright: ignore[reportArgumentType]
            elif str(loaded.device) != where:
                raise UsageError(f"The models are on {where} and on {loaded.device}: move one.")
            kept.enter_context(evaluating(loaded))
            return loaded, weights

        dense, weights = opened(model)
        if pruned is None:
            masks = random_masks(layout(dense), ratio, seed, groups=generate)
            removed = {name: (mask, remove(dense, mask)) for name, mask in masks.items()}
        else:
            dense, mask, small = side_by_side(dense, opened(pruned)[0], notes)
            removed = {_share(mask): (mask, small)}
        time = time_generating if generate else partial(time_removed, onnx=with_onnx)
        result = time(
            dense, removed, batch=batch, length=length, rounds=repeats,
            timing_seconds=timing_seconds, seed=seed, track=track,
        )  # fmt: skip
    return replace(
        result, name=_name(model), pruned=_name(pruned), weights=weights, seed=seed,
        notes=tuple(notes),
    )  # fmt: skip


def plan(
    model: Named,
    pruned: Named | None = None,
    *,
    ratio: float | Sequence[float] | None = None,
    length: int | Sequence[int] | None = None,
    seed: int = 0,
) -> BenchPlan:
    """The ideals of a bench, from configs alone: no weights are loaded, nothing is timed."""
    notes: list[str] = []
    dense = _built(model)
    masks: dict[str, Mask] = {}
    if pruned is not None:
        dense, mask, _ = side_by_side(dense, _built(pruned), notes)
        masks[_share(mask)] = mask
    counts = [cost(dense, length=tokens) for _, tokens in shapes_of(1, length)]
    masks = masks or random_masks(counts[0].layout, ratio, seed)
    rows = []
    for counted in counts:
        where = f", {counted.reads}" if len(counts) > 1 else ""
        rows += [
            Ideal(name=f"removed {name}{where}", heads=len(mask), ideal=counted.ratio(mask))
            for name, mask in masks.items()
        ]
    return BenchPlan(
        name=_name(model), pruned=_name(pruned), length=counts[0].length, rows=tuple(rows),
        notes=tuple(notes),
    )  # fmt: skip


def check_bench(
    pruned: object,
    ratio: float | Sequence[float] | None,
    batch: int | Sequence[int],
    length: int | Sequence[int] | None,
    repeats: int,
    *,
    generate: bool = False,
    onnx: bool | None = None,
) -> None:
    """Refuse what cannot be timed, before anything is loaded."""
    if generate and onnx:
        raise UsageError("--generate is not timed in onnxruntime: leave out --onnx.")
    if pruned is not None and ratio is not None:
        raise UsageError("Give either PRUNED or --ratio: a pruned model has its own ratio.")
    shapes_of(batch, length)
    check_rounds(repeats)


def wants_onnx(wanted: bool | None, device: str, notes: list[str]) -> bool:
    """Whether onnxruntime is timed; when it was asked for and cannot be, say how to get it."""
    if wanted:
        require_extra("onnx")
        if device != "cpu":
            raise UsageError(f"onnxruntime is timed on the CPU, not on {device}; use --device cpu.")
    if wanted is not None:
        return wanted
    missing = missing_of("onnx")
    if missing:
        notes.append(f"{missing[0]} is not installed, so onnxruntime is not timed.")
    return device == "cpu" and not missing


def random_masks(
    layout: Layout, ratio: float | Sequence[float] | None, seed: int, *, groups: bool = False
) -> dict[str, Mask]:
    """For each ratio a mask as the method `random` draws it, by the share that it drops.

    With `groups`, key-value heads are drawn, which go with all their heads.
    """
    ratios = RATIOS if ratio is None else [ratio] if isinstance(ratio, int | float) else ratio
    draw = random_groups if groups else random_mask
    masks = [draw(layout, share, seed) for share in ratios]
    return {_share(mask): mask for mask in masks}


def side_by_side(
    dense: PreTrainedModel, small: PreTrainedModel, notes: list[str]
) -> tuple[PreTrainedModel, Mask, PreTrainedModel]:
    """The two models as they can be compared, and the heads that the smaller one kept."""
    kinds = type(dense).__name__, type(small).__name__
    dense, small = comparable(dense, small)
    if type(dense).__name__ not in kinds:
        notes.append(f"{kinds[0]} and {kinds[1]} are compared as {type(dense).__name__}.")
    return dense, mask_between(dense, small), small


def _open(
    given: Named, from_config: bool, allow_pickle: bool, seed: int, notes: list[str]
) -> tuple[PreTrainedModel, str]:
    """The model and where its weights come from: `saved` or `random`."""
    if not isinstance(given, str | os.PathLike):
        return require_pretrained(given, "hc.bench"), "saved"
    name = os.fspath(given)
    if from_config:
        return random_model(name, seed=seed), "random"
    if not has_weights(name):
        notes.append(f"'{name}' has no weights; random ones take the same time.")
        return random_model(name, seed=seed), "random"
    return load(name, allow_pickle=allow_pickle), "saved"


def _built(given: Named) -> PreTrainedModel:
    if isinstance(given, str | os.PathLike):
        return skeleton(*read_config(os.fspath(given)))
    return require_pretrained(given, "hc.bench")


def _name(given: Named | None) -> str | None:
    return os.fspath(given) if isinstance(given, str | os.PathLike) else None


def _share(mask: Mask) -> str:
    return f"{100 * mask.sparsity:.1f} %"
