"""Recovery without training: `small = hc.recover(small, model, inputs)`.

For one layer after the other, in the order they run: z are the kept heads' outputs in the pruned
model, which is recovered below this layer already, and y is the attention output (behind the
output projection, before the residual) of the full model on the same tokens, padding left out.

    min ‖[z, 1] W - y‖² + λ ‖W - W₀‖²,   W₀ the projection's own rows and bias

W = W₀ + (A + λI)⁻¹ (B - A W₀), A = Σ [z, 1]ᵀ[z, 1], B = Σ [z, 1]ᵀ y, in float64, and λ = 1e-3
times the mean diagonal of A. Of the activations nothing is kept but what each model's last settled
block was given (`models/stages.py`), so the full model is computed once and the pruned one about
twice, whatever the number of layers. A projection without a bias gets none; a layer without heads
has its bias alone, which becomes the mean output. A shared layer is solved once, over all its
depths together.

The inputs must be like those the model will see: solved on random tokens, models scored worse
than without recovery in every case that was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.batches import Batches, batches_for, counted_tokens
from headcount.models.door import require_model
from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import evaluating
from headcount.models.linear import has_bias, read_rows, write_rows
from headcount.models.sites import Site
from headcount.models.stages import Stages, UnsteadyError
from headcount.repair.recover import Recover
from headcount.repair.ridge import NormalEquations
from headcount.tasks.as_rows import Data, as_rows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Model = TypeVar("Model", bound=nn.Module)
ENOUGH = 10
"""Tokens for every unknown that is solved for; with fewer it overfits to the rows."""


@dataclass(frozen=True)
class Fit:
    """How far one layer's attention output is from the full model's, as ‖error‖² / ‖output‖²."""

    stack: str
    layer: int
    before: float
    after: float
    tokens: int
    unknowns: int
    """Solved for with these tokens, for every output: the kept heads' outputs and a bias."""


def few_tokens(fits: Sequence[Fit]) -> str | None:
    """Whether there were too few tokens for what was solved."""
    short = [fit for fit in fits if fit.tokens < ENOUGH * fit.unknowns]
    if not short:
        return None
    worst = min(short, key=lambda fit: fit.tokens / fit.unknowns)
    return (
        f"Recovery had {worst.tokens:,} tokens for {worst.unknowns:,} unknowns in "
        f"{worst.stack} layer {worst.layer}, and needs about {ENOUGH} for each: on other rows it "
        "may do harm. Give it more with --calibration-samples or --calibration."
    )


def recover(
    small: Model,
    model: nn.Module,
    data: Data,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    options: Recover = Recover(),  # noqa: B008
    report: Callable[[int, int], None] | None = None,
) -> Model:
    """Solve the output projections of `small` again, in place, so that it answers like `model`.

    `data` needs no labels: texts (with the `tokenizer`), rows of tokens, batches, or a task or its
    name. `report` gets (layers done, all layers).
    """
    for bare in map(unwrap, (small, model)):
        require_model(bare, "hc.recover")
    rows = as_rows(model, data, tokenizer=tokenizer)
    recover_layers(small, model, rows, options=options, report=report)
    return small


def recover_layers(
    small: nn.Module,
    model: nn.Module,
    data: Batches,
    *,
    options: Recover = Recover(),  # noqa: B008
    report: Callable[[int, int], None] | None = None,
) -> list[Fit]:
    """As `recover`; gives how well every layer fits before and after."""
    small, model = unwrap(small), unwrap(model)
    if isinstance(data, Iterable):
        data = list(data)  # every layer goes through it, batch by batch in the same order
    pairs = _pairs(small, model)
    with torch.no_grad(), evaluating(small), evaluating(model):
        start = {site.out: read_rows(small.get_submodule(site.out)) for site, _ in pairs}
        try:
            return _solve(small, model, pairs, data, options, report)
        except UnsteadyError:
            for path, rows in start.items():
                write_rows(small.get_submodule(path), rows)
            return _solve(small, model, pairs, data, options, report, whole=True)


def _solve(
    small: nn.Module,
    model: nn.Module,
    pairs: list[tuple[Site, Site]],
    data: Batches,
    options: Recover,
    report: Callable[[int, int], None] | None,
    *,
    whole: bool = False,
) -> list[Fit]:
    """Every layer in turn; with `whole` each starts from the bottom again."""
    fits: list[Fit] = []
    full = Stages(model, [old for _, old in pairs], "output", whole=whole)
    uses = full.explore(next(batches_for(model, data, tokens=options.tokens)).inputs)
    pruned = Stages(small, [new for new, _ in pairs], "input", recipes=full.recipes, whole=whole)
    order = [pair for path in uses for pair in pairs if pair[1].path == path]
    smaller = [number for number, (new, old) in enumerate(order) if new.heads < old.heads]
    # what runs below the first missing head is as it was
    todo = order[smaller[0] :] if smaller else []
    for done, (new, old) in enumerate(todo):
        sums = _collect(pruned, full, new, old, uses[old.path], data, options.tokens)
        if sums is not None:
            fits.append(_put(small, new, sums, options))
        if report is not None:
            report(done + 1, len(todo))
    if not (pruned.holds() and full.holds()):
        raise UnsteadyError
    return fits


def _pairs(small: nn.Module, model: nn.Module) -> list[tuple[Site, Site]]:
    new, old = sites_of(small), sites_of(model)
    tied = next((site for site in old if site.twins), None)
    if tied is not None:
        raise UnsupportedError(
            f"{tied.path} and {tied.twins[0][0]} of {type(model).__name__} have the same weights; "
            "recovery solves one layer at a time, so repair this model by training."
        )
    if [site.path for site in new] != [site.path for site in old] or any(
        mine.heads > whole.heads or mine.head_dim != whole.head_dim
        for mine, whole in zip(new, old, strict=True)
    ):
        raise UsageError(
            f"{type(small).__name__} is not {type(model).__name__} with heads removed: its layers "
            "are others."
        )
    return list(zip(new, old, strict=True))


def _collect(
    small: Stages,
    full: Stages,
    new: Site,
    old: Site,
    uses: int,
    data: Batches,
    tokens: int,
) -> NormalEquations | None:
    """The sums of one layer over all data; None where it has nothing that could be solved."""
    out = small.model.get_submodule(new.out)
    bias = has_bias(out)
    if not new.heads and not bias:
        return None
    weights = read_rows(out)
    sums = NormalEquations(len(weights) - bias, weights.shape[1], bias=bias)
    for number, batch in enumerate(batches_for(full.model, data, tokens=tokens)):
        inputs = batch.inputs
        wanted = full.run_to(old, uses, number, inputs)
        outputs = [None] * len(wanted)
        if new.heads:
            outputs = small.run_to(new, uses, number, inputs)
        for z, y in zip(outputs, wanted, strict=True):
            y = y.reshape(-1, y.shape[-1])
            x = y.new_zeros(len(y), 0) if z is None else z.reshape(-1, z.shape[-1])
            counts = counted_tokens(inputs, new.stack, len(y))
            sums.add(x, y) if counts is None else sums.add(x[counts], y[counts])
    return sums


def _put(small: nn.Module, site: Site, sums: NormalEquations, options: Recover) -> Fit:
    """Solve, and write the weights."""
    out = small.get_submodule(site.out)
    start = read_rows(out)
    solved = options.solve(sums, start, f"{site.stack} layer {site.layer}")
    write_rows(out, solved)
    return Fit(site.stack, site.layer, sums.error(start), sums.error(solved), sums.rows, len(start))
