"""What the head surgeon measures: sums over tokens of every layer, and greedy paths from them.

The formulas are in `surgeon.py`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.models.batches import TOKENS, Batches, ModelBatch, batches_for, counted_tokens
from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import evaluating
from headcount.models.linear import has_bias, read_rows, weight_of
from headcount.models.probe import text_config
from headcount.models.sites import Site
from headcount.models.watch import watching
from headcount.models.weights import require_memory
from headcount.sensitivity.gradients import answers_of, example_losses, frozen
from headcount.tasks.kinds import task_kind
from headcount.tasks.kinds.kind import TaskKind

DAMPING = 1e-3
"""What is added to A's diagonal, as a share of its mean, so that A has an inverse."""


LOGITS = 2**26
"""Logits that a batch may have, where that is fewer tokens than usual."""


class LayerSums:
    """Σ zzᵀ and Σ ggᵀ of one layer over tokens, and its projection."""

    def __init__(self, out: nn.Module, heads: int, groups: int) -> None:
        self.out, self.has_bias = out, has_bias(out)
        self.heads, self.groups = heads, groups
        inputs, outputs = weight_of(out).shape
        inputs += self.has_bias
        self.zz = torch.zeros(inputs, inputs, dtype=torch.float64)
        self.gg = torch.zeros(outputs, outputs, dtype=torch.float64)
        self.tokens = 0
        self.apart = self.together = 0.0

    def add(self, z: Tensor, g: Tensor, examples: Tensor) -> None:
        """Add (token, input), (token, output), and (token,) the numbers of their examples."""
        if self.heads and len(z):
            effects = (z * (g @ weight_of(self.out).T)).reshape(len(z), self.heads, -1).sum(-1)
            effects = effects.double()  # (token, head) of its gate on the loss
            whole = effects.new_zeros(int(examples.max()) + 1, self.heads)
            whole = whole.index_add(0, examples, effects)
            self.apart += float(effects.square().sum())
            self.together += float(whole.square().sum())
        z, g = z.double(), g.double()
        if self.has_bias:
            z = torch.cat([z, z.new_ones(len(z), 1)], dim=1)
        self.zz += (z.T @ z).cpu()
        self.gg += (g.T @ g).cpu()
        self.tokens += len(z)

    @property
    def coherence(self) -> float:
        """How far tokens of an example act together: 1 where each is for itself."""
        return self.together / self.apart if self.apart else 1.0

    def normal(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A, G and W."""
        if not (torch.isfinite(self.zz).all() and torch.isfinite(self.gg).all()):
            raise UsageError("The loss or its gradient is not a number (NaN or infinite).")
        count = max(self.tokens, 1)
        return (self.zz / count).numpy(), (self.gg / count).numpy(), read_rows(self.out).numpy()


def greedy_path(
    a: np.ndarray,  # (input, input)
    g: np.ndarray,  # (output, output)
    w: np.ndarray,  # (input, output)
    units: int,
    damping: float = DAMPING,
) -> tuple[list[int], np.ndarray]:
    """Units, heads or groups of heads, from the first to go to the last, and what each costs then.

    A unit has as many rows of W as any other, one behind the other.
    """
    if not units:
        return [], np.zeros(0)
    size = len(w) // units  # a bias row more does not change it
    scale = float(np.trace(a)) / len(a)
    inverse = np.linalg.inv(a + (damping * scale or 1.0) * np.eye(len(a)))
    # rows of those that are left; W G goes along with W, so that no product with G is made again
    w = np.concatenate([w, w @ g], 1)
    outputs = len(g)
    left, path, costs = list(range(units)), [], []
    while left:
        blocks = [slice(at * size, (at + 1) * size) for at in range(len(left))]
        solved = [np.linalg.solve(inverse[rows, rows], w[rows]) for rows in blocks]
        removals = [
            float(np.vdot(w[rows, outputs:], part[:, :outputs]))
            for rows, part in zip(blocks, solved, strict=True)
        ]
        best = int(np.argmin(removals))
        rows = blocks[best]
        stay = np.delete(np.arange(len(w)), rows)
        beside = inverse[stay, rows]
        w = w[stay] - beside @ solved[best]
        across = np.linalg.solve(inverse[rows, rows], beside.T)
        inverse = inverse[np.ix_(stay, stay)] - beside @ across
        path.append(left.pop(best))
        costs.append(max(removals[best], 0.0))
    return path, np.array(costs)


def collect(model: nn.Module, data: Batches, *, seed: int = 0) -> dict[tuple[str, int], LayerSums]:
    """(stack, layer) -> its sums over all tokens that count, in one pass."""
    bare = unwrap(model)
    sites = sites_of(bare)
    sizes = [weight_of(bare.get_submodule(site.out)).shape for site in sites]
    needed = 8 * sum((rows + 1) ** 2 + columns**2 for rows, columns in sizes)
    require_memory("The surgeon's sums", needed, "take another method, such as magnitude")
    sums = {
        (site.stack, site.layer): LayerSums(bare.get_submodule(site.out), site.heads, site.groups)
        for site in sites
    }
    generator = torch.Generator().manual_seed(seed)
    outs = [(site, out) for site in sites for _, out in site.places]
    name = getattr(data, "kind", None)
    kind = None if name is None else task_kind(name)
    # a word has as many logits as there are words: of some models they outweigh all else
    words = int(getattr(text_config(bare.config), "vocab_size", None) or 1)
    tokens = max(1, min(TOKENS, LOGITS // words))
    with evaluating(bare), frozen(bare):
        for batch in batches_for(bare, data, tokens=tokens):
            seen: list[tuple[Site, Tensor, Tensor]] = []

            def take(site: Site, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
                # weights are frozen: the lowest layer is where gradients begin
                output = output if output.requires_grad else output.detach().requires_grad_()
                seen.append((site, args[0].detach(), output))  # noqa: B023 (called in this turn)
                return output

            with watching(bare, outs, take), torch.enable_grad():
                kind, answers = answers_of(bare, batch, kind)
                loss = _own_loss(kind, answers.float(), batch, generator)
                grads = torch.autograd.grad(loss, [y for _, _, y in seen], allow_unused=True)
            rows = 0 if kind.asks_tokens else len(answers)
            for (site, z, y), grad in zip(seen, grads, strict=True):
                g = torch.zeros_like(y) if grad is None else grad
                _add(sums[site.stack, site.layer], site, z, g, batch, rows)
    return sums


def _add(sums: LayerSums, site: Site, z: Tensor, g: Tensor, batch: ModelBatch, rows: int) -> None:
    z, g = z.reshape(-1, z.shape[-1]), g.reshape(-1, g.shape[-1])
    # rows lie one behind the other; tokens that are not of one row each are taken one by one, and
    # so are those that are predicted (0 rows)
    whole = rows > 0 and len(g) % rows == 0
    examples = torch.arange(len(g), device=g.device) // (len(g) // rows if whole else 1)
    if whole and batch.examples is not None:
        examples = batch.examples.unique(return_inverse=True)[1][examples]
    counts = counted_tokens(batch.inputs, site.stack, len(g))
    if counts is not None:
        z, g, examples = z[counts], g[counts], examples[counts]
    sums.add(z, g, examples)


def _own_loss(
    kind: TaskKind, answers: Tensor, batch: ModelBatch, generator: torch.Generator
) -> Tensor:
    """The summed loss of examples whose labels are drawn from the model's own prediction."""
    drawn = kind.sample_labels(answers, batch, generator)
    return example_losses(kind, answers, replace(batch, labels=drawn))[0].sum() * kind.nats
