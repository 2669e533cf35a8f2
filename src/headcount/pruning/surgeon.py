"""The head surgeon: second-order selection of heads (a structured Optimal Brain Surgeon).

One pass over the inputs gives, per layer, A = E[z zᵀ] over tokens, z all heads' outputs (and a 1
where the output projection has a bias), and G = E[g gᵀ], g the gradient of the loss at the
attention output, with labels drawn from the model's own prediction: the true Fisher, which needs
no labels. Removing head h and solving the other rows of the projection W again costs

    c_h = tr(G W_hᵀ [(A⁻¹)_hh]⁻¹ W_h)

The cheapest head goes, W and A⁻¹ are updated (Schur complement), and so on to the last head: one
greedy path a layer. Costs along a path are made non-decreasing, the paths of all layers merged by
cost, and cut where the asked number is reached, so one pass serves every ratio. Made to be
followed by recovery, which does solve the rows again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import UsageError
from headcount.heads import Head, Scores
from headcount.importance.batches import TOKENS, Batches, batches_for, counted_tokens
from headcount.importance.gradients import frozen, logits_of
from headcount.importance.losses import example_losses, kind_of
from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import evaluating, hooked
from headcount.models.sites import Site
from headcount.pruning.choose import keep_best
from headcount.pruning.counts import require_ratio
from headcount.pruning.methods import Decide
from headcount.pruning.select import as_layout
from headcount.tasks.encoding import IGNORED

DAMPING = 1e-3
"""What is added to A's diagonal, as a share of its mean, so that A has an inverse."""


def surgeon(model: Any, *, data: Any = None, labels: int = 0) -> Decide:
    """Keep the heads whose removal costs most, the others having been solved again.

    `data` may be without labels; `labels` is the seed of the labels that are drawn.
    """
    layout = as_layout(model)
    if data is None:
        raise UsageError("The method 'surgeon' needs inputs of the task: pass a task.")
    sums = collect(model, data, seed=labels)
    steps: list[tuple[float, int, Head]] = []
    for (stack, layer), each in sums.items():
        path, costs = greedy_path(*each.normal(), each.heads)
        raised = np.maximum.accumulate(costs) if len(costs) else costs
        steps += [
            (float(cost), place, Head(stack, layer, head))
            for place, (head, cost) in enumerate(zip(path, raised, strict=True))
        ]
    # a layer's heads go in the order of its path, also where costs are equal
    ranks = {head: rank for rank, (_, _, head) in enumerate(sorted(steps))}
    scores = Scores(layout, tuple(float(ranks.get(head, -1)) for head in layout))
    return lambda ratio, seed: keep_best(scores, layout.kept_at(require_ratio("surgeon", ratio)))


class Sums:
    """Σ zzᵀ and Σ ggᵀ of one layer over tokens, and its projection's rows."""

    def __init__(self, out: Any, heads: int) -> None:
        weight = out.weight if isinstance(out, Conv1D) else out.weight.T
        bias = getattr(out, "bias", None)
        rows: list[Tensor] = [weight] if bias is None else [weight, bias[None]]
        self.rows = torch.cat(rows).detach().double().cpu()  # (input, output)
        self.has_bias = bias is not None
        self.heads = heads
        self.zz = torch.zeros(len(self.rows), len(self.rows), dtype=torch.float64)
        self.gg = torch.zeros(*[self.rows.shape[1]] * 2, dtype=torch.float64)
        self.tokens = 0

    def add(self, z: Tensor, g: Tensor) -> None:  # (token, input), (token, output)
        """Add tokens."""
        z, g = z.double(), g.double()
        if self.has_bias:
            z = torch.cat([z, z.new_ones(len(z), 1)], dim=1)
        self.zz += (z.T @ z).cpu()
        self.gg += (g.T @ g).cpu()
        self.tokens += len(z)

    def normal(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A, G and W."""
        if not (torch.isfinite(self.zz).all() and torch.isfinite(self.gg).all()):
            raise UsageError("The loss or its gradient is not a number (NaN or infinite).")
        count = max(self.tokens, 1)
        return (self.zz / count).numpy(), (self.gg / count).numpy(), self.rows.numpy()


def greedy_path(
    a: np.ndarray,  # (input, input)
    g: np.ndarray,  # (output, output)
    w: np.ndarray,  # (input, output)
    heads: int,
    damping: float = DAMPING,
) -> tuple[list[int], np.ndarray]:
    """Heads from the first to go to the last, and what the removal of each costs then."""
    if not heads:
        return [], np.zeros(0)
    size = len(w) // heads  # a bias row more does not change it
    scale = float(np.trace(a)) / len(a)
    inverse = np.linalg.inv(a + (damping * scale or 1.0) * np.eye(len(a)))
    w = w.copy()
    left, path, costs = list(range(heads)), [], []
    while left:
        found = []
        for head in left:
            rows = slice(head * size, (head + 1) * size)
            solved = np.linalg.solve(inverse[rows, rows], w[rows])
            found.append(float(np.einsum("ij,jk,ik->", w[rows], g, solved)))
        best = int(np.argmin(found))
        head = left.pop(best)
        rows = slice(head * size, (head + 1) * size)
        across = inverse[:, rows] @ np.linalg.inv(inverse[rows, rows])
        w -= across @ w[rows]
        inverse = inverse - across @ inverse[rows, :]
        path.append(head)
        costs.append(max(found[best], 0.0))
    return path, np.array(costs)


def collect(model: Any, data: Batches, *, seed: int = 0) -> dict[tuple[str, int], Sums]:
    """(stack, layer) -> its sums over all tokens that count, in one pass."""
    bare = unwrap(model)
    sites = sites_of(bare)
    sums = {
        (site.stack, site.layer): Sums(bare.get_submodule(site.out), site.heads) for site in sites
    }
    generator = torch.Generator().manual_seed(seed)
    with evaluating(bare), frozen(bare):
        for inputs, labels in batches_for(bare, data, tokens=TOKENS):
            seen: list[tuple[Site, Tensor, Tensor]] = []
            with hooked(_watching(bare, sites, seen)), torch.enable_grad():
                logits = logits_of(bare, inputs).float()
                loss = _own_loss(bare, logits, labels, inputs, generator)
                grads = torch.autograd.grad(loss, [y for _, _, y in seen], allow_unused=True)
            for (site, z, y), grad in zip(seen, grads, strict=True):
                g = torch.zeros_like(y) if grad is None else grad
                _add(sums[site.stack, site.layer], site, z, g, inputs)
    return sums


def _watching(
    model: nn.Module, sites: list[Site], seen: list[tuple[Site, Tensor, Tensor]]
) -> list[Callable[[], Any]]:
    """Hooks that note every layer's z and its attention output, which gets a gradient."""

    def watch(site: Site, out: str) -> Callable[[], Any]:
        def take(_: nn.Module, args: tuple, output: Tensor) -> Tensor:
            # weights are frozen: the lowest layer is where gradients begin
            output = output if output.requires_grad else output.detach().requires_grad_()
            seen.append((site, args[0].detach(), output))
            return output

        return lambda: model.get_submodule(out).register_forward_hook(take)

    return [watch(site, out) for site in sites for _, out in site.places]


def _add(sums: Sums, site: Site, z: Tensor, g: Tensor, inputs: dict[str, Any]) -> None:
    z, g = z.reshape(-1, z.shape[-1]), g.reshape(-1, g.shape[-1])
    counts = counted_tokens(inputs, site.stack, len(g))
    sums.add(z, g) if counts is None else sums.add(z[counts], g[counts])


def _own_loss(
    model: nn.Module,
    logits: Tensor,
    labels: Tensor | None,
    inputs: dict[str, Any],
    generator: torch.Generator,
) -> Tensor:
    """The summed loss of examples whose labels are drawn from the model's own prediction."""
    asked = torch.zeros(len(logits), dtype=torch.long) if labels is None else labels
    kind = kind_of(model, logits, asked)
    if kind == "regression":
        noise = torch.randn(logits.shape, generator=generator).to(logits.device)
        drawn = (logits.detach() + noise).squeeze(-1)
        return example_losses(kind, logits, drawn)[0].sum() / 2
    chances = logits.detach().softmax(-1).flatten(0, -2).cpu()
    drawn = torch.multinomial(chances, 1, generator=generator).view(logits.shape[:-1])
    drawn = drawn.to(logits.device)
    if kind == "causal-lm":
        drawn = torch.cat([drawn[:, :1], drawn[:, :-1]], dim=1)  # said of the next token
    if logits.ndim == 3:
        stack = "decoder" if kind == "translation" else "encoder"
        counts = counted_tokens(inputs, stack, drawn.numel())
        keep = labels != IGNORED if labels is not None else counts
        if keep is not None:
            drawn = drawn.masked_fill(~keep.view(drawn.shape), IGNORED)
    return example_losses(kind, logits, drawn)[0].sum()
