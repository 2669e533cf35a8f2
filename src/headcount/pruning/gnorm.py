"""The heads with the smallest gradients of their weights go, one by one: Greedy-Gnorm.

Guo and Sheridan, Greedy-Gnorm: A Gradient Matrix Norm-Based Alternative to Attention Entropy for
Head Pruning, 2026. With the gradients of the mean loss by a head's query, key and value weights,

    s_h = ‖∂L/∂Q_h‖ ‖∂L/∂K_h‖ ‖∂L/∂V_h‖

The head with the smallest goes, the others are scored again without it, and so on. K and V are
those of its group where heads share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Layout, Mask, Scores
from headcount.pruning.counts import require_ratio
from headcount.pruning.greedy import GreedyPath
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout, as_model

if TYPE_CHECKING:
    from torch import Tensor, nn

    from headcount.models.sites import Site
    from headcount.tasks.as_rows import Rows


@dataclass(frozen=True, kw_only=True)
@checked
class Gnorm:
    """Keep the heads whose weights have the largest gradients, measured again as heads go."""

    needs: ClassVar = "labels"
    ratio: ClassVar = "needed"

    step: float | None = None
    """Share of heads that goes before gradients are measured again; one head when left out."""

    def __post_init__(self) -> None:
        if self.step is not None and not 0 < self.step <= 1:
            raise UsageError(
                f"The step is a share of the heads, above 0 and at most 1, not {self.step}."
            )

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """A pass with gradients over the rows for every step of the path, when it is reached."""
        data = given.data
        if data is None:
            raise UsageError("The method 'gnorm' needs data with labels: pass a task.")
        if isinstance(data, Iterator):
            data = list(data)  # it is gone through more than once
        layout, bare = as_layout(model), as_model(model, "gnorm")
        size = 1 if self.step is None else int(len(layout) * self.step)
        path = GreedyPath(layout, lambda mask: gradient_norms(bare, data, mask), size)

        def decide(ratio: float | None, seed: int) -> Decision:
            return path.keep(layout.kept_at(require_ratio("gnorm", ratio)))

        return decide


def gradient_norms(model: nn.Module, data: Rows, mask: Mask) -> Scores:
    """The product of the norms of a head's gradients, with the heads outside the mask closed."""
    import torch

    from headcount.models.batches import batches_for
    from headcount.models.find import sites_of, unwrap
    from headcount.models.gates import gate
    from headcount.models.hooks import evaluating
    from headcount.sensitivity.gradients import answers_of, example_losses, frozen
    from headcount.tasks.kinds import task_kind

    bare, name = unwrap(model), getattr(data, "kind", None)
    kind = None if name is None else task_kind(name)
    sites = [site for site in sites_of(bare) if site.heads]
    weights = [
        getattr(bare.get_submodule(site.path), child).weight
        for site in sites
        for child, _ in site.projections
    ]
    sums, n = [torch.zeros_like(weight, dtype=torch.float64) for weight in weights], 0
    generator = torch.Generator().manual_seed(0)
    with ExitStack() as stack:
        for context in (evaluating(bare), frozen(bare), gate(bare, mask), torch.enable_grad()):
            stack.enter_context(context)
        for weight in weights:
            weight.requires_grad_()
        for batch in batches_for(bare, data):
            kind, answers = answers_of(bare, batch, kind)
            if kind.unlabelled:
                drawn = kind.sample_labels(answers, batch, generator)
                batch = replace(batch, labels=drawn)
            elif batch.labels is None:
                raise UsageError("The method 'gnorm' needs labels: a batch has no 'labels'.")
            losses, counts = example_losses(kind, answers, batch)
            grads = torch.autograd.grad(losses.sum(), weights, allow_unused=True)
            for total, grad in zip(sums, grads, strict=True):
                if grad is not None:
                    total += grad
            n += int(counts.sum())
    if not n or not all(bool(total.isfinite().all()) for total in sums):
        raise UsageError(
            "The method 'gnorm' has no gradients: no example has a label that counts, or the loss "
            "is not a number (NaN or infinite)."
        )
    gradients, values = iter(total / n for total in sums), {}
    for site in sites:
        parts = [(child, kind, next(gradients)) for child, kind in site.projections]
        for head, value in enumerate(_products(bare, site, parts)):
            values[site.stack, site.layer, head] = value
    return Scores(mask.layout, tuple(values[tuple(head)] for head in mask.layout))


def _products(
    model: nn.Module, site: Site, parts: list[tuple[str, str, Tensor]]
) -> Iterator[float]:
    """(head,) ‖∂Q‖ ‖∂K‖ ‖∂V‖."""
    from headcount.models.cut import rows_of
    from headcount.models.linear import inputs_first

    module = model.get_submodule(site.path)
    for head in range(site.heads):
        squares = [0.0, 0.0, 0.0]
        for child, kind, gradient in parts:
            gradient = inputs_first(getattr(module, child), gradient).T
            if kind == "fused":
                kind = "grouped" if child == "query_key_value" else "qkv"
            rows = rows_of(kind, [head], site.heads, site.groups, site.head_dim)
            blocks = gradient[rows].split(site.head_dim)
            first = {"k": 1, "v": 2, "kv": 1}.get(kind, 0)
            for number, block in enumerate(blocks):
                squares[first + number] += float(block.square().sum())
        yield (squares[0] * squares[1] * squares[2]) ** 0.5
