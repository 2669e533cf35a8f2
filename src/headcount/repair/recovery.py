"""Recovery without training: `small = hc.recover(small, model, inputs)`.

For one layer after the other, in the order they run: z are the kept heads' outputs in the pruned
model, which is recovered below this layer already, and y is the attention output (behind the
output projection, before the residual) of the full model on the same tokens, padding left out.

    min ‖[z, 1] W - y‖² + λ ‖W - W₀‖²,   W₀ the projection's own rows and bias

W = W₀ + (A + λI)⁻¹ (B - A W₀), A = Σ [z, 1]ᵀ[z, 1], B = Σ [z, 1]ᵀ y, in float64, and λ = 1e-3
times the mean diagonal of A. Of the activations nothing is kept but what each model's last settled
block was given (`models/stages.py`), so the full model is computed once and the pruned one about
twice, whatever the number of layers. A projection without a bias gets none; a layer without heads
has its bias alone, which becomes the mean output over the positions that are read: in the last
layer of a classifier [CLS]. A shared layer is solved once, over all its
depths together.

With the target `stream`, y is the full model's stream behind the layer minus what the pruned
model's output is added to (`models/residual.py`), so that drift from below is made up for. With
`feed_forward` the second matrix of a block's feed-forward part is solved in the same way, in turn.
With `bias` the output projections of attention that have no bias get one. With `path_rank` z gets
the layer's own input x beside it, with weights of that rank (`ridge.py`): a linear path beside the
kept heads; with `linear` a layer without heads gets one of full rank in place of attention. A path
that is there is solved again. With `scales` a head's rows keep their directions and get one factor,
and so they do in a layer that has fewer than 5 tokens for every unknown.

The inputs must be like those the model will see: solved on random tokens, models scored worse
than without recovery in every case that was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.batches import Batches, batches_for, counted_tokens
from headcount.models.cut import (
    LinearPath,
    WrittenPath,
    biases_in,
    paths_in,
    settings_of,
)
from headcount.models.door import require_model
from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import evaluating
from headcount.models.instructions import set_biases, set_paths
from headcount.models.linear import (
    has_bias,
    read_path,
    read_rows,
    weight_of,
    write_path,
    write_rows,
)
from headcount.models.remove import make_own
from headcount.models.residual import Addition, find_additions
from headcount.models.sites import Site
from headcount.models.stages import Stages, UnsteadyError
from headcount.models.watch import noting_widths, read_positions
from headcount.repair.recover import Recover
from headcount.repair.ridge import NormalEquations
from headcount.tasks.as_rows import Data, as_rows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Model = TypeVar("Model", bound=nn.Module)
ENOUGH, LEAST = 10, 5
"""Tokens for every unknown that is solved for: with fewer than the first it overfits to the rows,
and with fewer than the second factors of the heads are better."""


@dataclass(frozen=True)
class Fit:
    """How far one layer's output is from its target, as ‖error‖² / ‖target‖²."""

    stack: str
    layer: int
    before: float
    after: float
    tokens: int
    unknowns: int
    """Solved for with these tokens, for every output: the kept heads' outputs and a bias."""
    part: str = "attention"
    """Or feed-forward."""
    scaled: bool = False
    """Whether the heads got one factor each instead of new weights."""


def few_tokens(fits: Sequence[Fit]) -> str | None:
    """Whether there were too few tokens for what was solved."""
    short = [fit for fit in fits if fit.tokens < ENOUGH * fit.unknowns]
    if not short:
        return None
    worst = min(short, key=lambda fit: fit.tokens / fit.unknowns)
    harm = "it only scaled the kept heads" if worst.scaled else "on other rows it may do harm"
    return (
        f"Recovery had {worst.tokens:,} tokens for {worst.unknowns:,} unknowns in "
        f"{worst.stack} layer {worst.layer}, and needs about {ENOUGH * worst.unknowns:,}: "
        f"{harm}. Give it more with --calibration-tokens or --calibration."
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
    if options.choose:
        from headcount.repair.choice import choose  # which uses what is below

        choose(small, model, rows, options=options, report=report)
    else:
        recover_layers(small, model, rows, options=options, report=report)
    return small


@dataclass(frozen=True)
class _SolvedPart:
    """One projection that is solved: attention's, or the second of a feed-forward part."""

    path: str
    out: str
    stack: str
    layer: int
    head_dim: int
    heads: int
    """Kept ones; of a feed-forward part 1."""
    pruned: bool
    feed_forward: bool = False
    residual: str | None = None
    """What module's input its output is added to, where that is to be looked at."""
    path_width: int = 0
    """Of the input that has a linear path beside the heads; 0 without one."""
    rank: int = 0
    """Of that path."""

    @property
    def name(self) -> str:
        return f"{self.stack} layer {self.layer}" + ("'s feed-forward" if self.feed_forward else "")


def recover_layers(
    small: nn.Module,
    model: nn.Module,
    data: Batches,
    *,
    options: Recover = Recover(),  # noqa: B008
    report: Callable[[int, int], None] | None = None,
) -> list[Fit]:
    """As `recover` by these very options; gives how well every layer fits before and after."""
    small, model = unwrap(small), unwrap(model)
    if isinstance(data, Iterable):
        data = list(data)  # every layer goes through it, batch by batch in the same order
    parts = _parts(small, model, options)
    written = [part.out for part in parts]
    written += [f"{entry['path']}.linear_path" for entry in paths_in(settings_of(small))]
    for name in written:
        make_own(small.get_submodule(name), model)
    with torch.no_grad(), evaluating(small), evaluating(model):
        start = {
            f"{name}.{key}": value.clone()
            for name in written
            for key, value in small.get_submodule(name).named_parameters()
        }
        biases, paths = biases_in(settings_of(small)), paths_in(settings_of(small))
        try:
            return _solve(small, model, parts, data, options, report)
        except UnsteadyError:
            set_biases(small, biases)
            set_paths(small, paths)
            for name, value in start.items():
                small.get_parameter(name).copy_(value)
            return _solve(small, model, parts, data, options, report, whole=True)


def _parts(small: nn.Module, model: nn.Module, options: Recover) -> list[_SolvedPart]:
    """All that may be solved, not yet in the order it runs."""
    pairs = paired_sites(small, model)
    parts = [
        _SolvedPart(
            new.path, new.out, new.stack, new.layer, new.head_dim, new.heads, new.heads < old.heads
        )
        for new, old in pairs
    ]
    if not options.feed_forward and options.target == "output":
        return parts
    additions = {addition.out: addition for addition in find_additions(model, sites_of(model))}
    if options.feed_forward:
        parts += [
            _SolvedPart(out, out, site.stack, site.layer, 1, 1, pruned=False, feed_forward=True)
            for out, addition in additions.items()
            if addition.feed_forward and (site := addition.site)
        ]
    if options.target == "output":
        return parts
    return [replace(part, residual=_residual(part, additions.get(part.out))) for part in parts]


def _residual(part: _SolvedPart, addition: Addition | None) -> str | None:
    """What the part's output is added to, where it can be seen: a skipped layer runs no child."""
    if addition is None or (not part.heads and addition.residual.startswith(f"{part.path}.")):
        return None
    return addition.residual


def _solve(
    small: nn.Module,
    model: nn.Module,
    parts: list[_SolvedPart],
    data: Batches,
    options: Recover,
    report: Callable[[int, int], None] | None,
    *,
    whole: bool = False,
) -> list[Fit]:
    """Every part in turn; with `whole` each starts from the bottom again."""
    fits: list[Fit] = []
    residuals = {part.path: (part.residual,) for part in parts if part.residual is not None}
    full = Stages(model, parts, "output", residuals=residuals, whole=whole)
    places = [(part.path, part.out) for part in parts if not part.feed_forward]
    with noting_widths(model, places) as widths:
        uses = full.explore(next(batches_for(model, data, tokens=options.tokens)).inputs)
    order = [part for path in uses for part in parts if part.path == path]
    smaller = [number for number, part in enumerate(order) if part.pruned]
    # what runs below the first missing head is as it was
    todo = order[smaller[0] :] if smaller else []
    if options.bias and todo:
        added = [
            part.out
            for part in todo
            if not part.feed_forward and not has_bias(small.get_submodule(part.out))
        ]
        set_biases(small, [*biases_in(settings_of(small)), *added])
    todo = _with_paths(small, todo, widths, options)
    seen: dict[str, _SolvedPart] = {}
    beside: dict[str, list[str]] = {}
    for part in todo:
        shown = [f"{part.path}.linear_path"] if part.rank else []
        shown += [part.residual] if part.residual is not None else []
        if shown and not part.heads:
            # such a layer may be skipped: what goes in is seen there
            seen[part.path] = replace(part, out=shown.pop(0))
        else:
            seen[part.path] = part
        if shown:
            beside[part.path] = shown
    pruned = Stages(
        small, list(seen.values()), "input", recipes=full.recipes, residuals=beside, whole=whole
    )
    for done, part in enumerate(todo):
        given, uses_of = (pruned, seen[part.path]), uses[part.path]
        sums = _collect(given, (full, part), uses_of, data, options.tokens)
        if sums is not None:
            fits.append(_put(small, part, sums, options))
        if report is not None:
            report(done + 1, len(todo))
    if not (pruned.holds() and full.holds()):
        raise UnsteadyError
    return fits


def _with_paths(
    small: nn.Module, todo: list[_SolvedPart], widths: dict[str, int], options: Recover
) -> list[_SolvedPart]:
    """The parts with the linear paths that are there or asked for, which the model then has."""
    linear = {entry["path"]: entry for entry in paths_in(settings_of(small))}
    for part in todo:
        width = widths.get(part.path, 0)
        outputs = read_rows(small.get_submodule(part.out)).shape[1]
        rank = width if options.linear and not part.heads else options.path_rank
        if rank * (width + outputs) >= width * outputs:
            rank = width  # which has fewer weights then
        if rank and not part.feed_forward:
            entry = WrittenPath(path=part.path, out=part.out, width=width, rank=rank)
            linear[part.path] = entry
    set_paths(small, [*linear.values()])
    return [
        replace(part, path_width=entry["width"], rank=entry["rank"])
        if (entry := linear.get(part.path)) is not None
        else part
        for part in todo
    ]


def paired_sites(small: nn.Module, model: nn.Module) -> list[tuple[Site, Site]]:
    """Every attention of the pruned model beside that of the full one."""
    new, old = sites_of(small), sites_of(model)
    tied = next((site for site in old if site.twins), None)
    if tied is not None:
        raise UnsupportedError(
            f"{tied.path} and {tied.twins[0][0]} of {type(model).__name__} have the same weights; "
            "recovery solves one layer at a time, so repair this model by training."
        )
    if [site.path for site in new] != [site.path for site in old] or any(
        mine.heads > whole.heads
        or mine.head_dim != whole.head_dim
        or weight_of(small.get_submodule(mine.out)).shape[1]
        != weight_of(model.get_submodule(whole.out)).shape[1]
        for mine, whole in zip(new, old, strict=True)
    ):
        raise UsageError(
            f"{type(small).__name__} is not {type(model).__name__} with heads removed: its layers "
            "are others."
        )
    return list(zip(new, old, strict=True))


def _collect(
    shown: tuple[Stages, _SolvedPart],
    wanted: tuple[Stages, _SolvedPart],
    uses: int,
    data: Batches,
    tokens: int,
) -> NormalEquations | None:
    """The sums of one part over all data, from where it is seen in the pruned and the full model;
    None where it has nothing that could be solved."""
    (small, source), (full, part) = shown, wanted
    out = small.model.get_submodule(part.out)
    bias = has_bias(out)
    if not part.heads and not bias and not part.rank:
        return None
    weights = read_rows(out)
    width = len(weights) - bias + part.path_width
    sums = NormalEquations(width, weights.shape[1], bias=bias, path=part.path_width, rank=part.rank)
    layers = [site.layer for site in sites_of(full.model) if site.stack == part.stack]
    some_read = not width and part.layer == max(layers)
    for number, batch in enumerate(batches_for(full.model, data, tokens=tokens)):
        inputs = batch.inputs
        targets = full.run_to(part, uses, number, inputs)
        outputs = [None] * len(targets)
        if width or part.residual is not None:
            outputs = small.run_to(source, uses, number, inputs)
        sizes = [y.shape[:-1].numel() for y in targets]
        counted = [counted_tokens(inputs, part.stack, size) for size in sizes]
        if some_read:
            counted = _that_are_read(full.model, part, inputs, counted)
        for z, y, counts in zip(outputs, targets, counted, strict=True):
            y = y.reshape(-1, y.shape[-1])
            z = y.new_zeros(len(y), 0) if z is None else z.reshape(-1, z.shape[-1])
            if part.residual is not None:
                y = y - z[:, width:]
            x = z[:, :width]
            sums.add(x, y) if counts is None else sums.add(x[counts], y[counts])
    return sums


def _that_are_read(
    model: nn.Module, part: _SolvedPart, inputs: dict[str, object], counted: list[Tensor | None]
) -> list[Tensor | None]:
    """Of the tokens that count those that the answer depends on; all where it is none of them."""
    both = [
        read if counts is None else counts & read
        for read, counts in zip(read_positions(model, part.out, inputs), counted, strict=True)
    ]
    return [*both] if any(bool(tokens.any()) for tokens in both) else counted


def _put(small: nn.Module, part: _SolvedPart, sums: NormalEquations, options: Recover) -> Fit:
    """Solve, and write the weights."""
    out = small.get_submodule(part.out)
    rows = read_rows(out)
    columns = len(rows) - sums.bias
    path: LinearPath | None = getattr(small.get_submodule(part.path), "linear_path", None)
    beside = rows[:0] if path is None else read_path(path)
    start = torch.cat([rows[:columns], beside, rows[columns:]])
    on_path = part.rank * (1 + part.path_width / rows.shape[1])
    unknowns = len(rows) + round(on_path if part.rank < part.path_width else part.rank)
    if options.scales and not part.feed_forward:
        unknowns = part.heads + sums.bias
    few = sums.rows < LEAST * unknowns and path is None
    scaled = (options.scales or few) and not part.feed_forward
    if scaled:
        solved = sums.solve_scales(start, part.head_dim, options.ridge, part.name)
    else:
        solved = options.solve(sums, start, part.name)
    write_rows(out, torch.cat([solved[:columns], solved[columns + len(beside) :]]))
    if path is not None and not scaled:
        write_path(path, solved[sums.on_path])
    name = "feed-forward" if part.feed_forward else "attention"
    before, after = sums.error(start), sums.error(solved)
    return Fit(part.stack, part.layer, before, after, sums.rows, unknowns, name, scaled)
