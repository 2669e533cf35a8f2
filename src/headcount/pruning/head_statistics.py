"""What heads give on calibration rows, in one pass without gradients: for methods that rank by it.

z are the concatenated outputs of a layer's heads in front of the output projection W; padding is
left out.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.heads import Layout, Scores
from headcount.heads.choose import Place
from headcount.models.batches import Batches, batches_for, counted_tokens
from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import evaluating
from headcount.models.linear import weight_of
from headcount.models.watch import watching
from headcount.pruning.counts import require_ratio
from headcount.pruning.methods import Decide, Decision, MethodInputs


class HeadSums:
    """Sums over the tokens of one layer."""

    def __init__(self, out: nn.Module, heads: int) -> None:
        self.heads = heads
        self.rows = weight_of(out).detach().double().cpu()
        """(input, output) the projection without its bias."""
        self.z = torch.zeros(len(self.rows), dtype=torch.float64)
        self.zz = torch.zeros(len(self.rows), dtype=torch.float64)
        """(input,) Σ z², each input by itself."""
        self.norms = torch.zeros(heads, dtype=torch.float64)
        """(head,) Σ ‖z_h‖₂"""
        self.tokens = 0

    def add(self, z: Tensor) -> None:  # (token, input)
        """Add tokens."""
        z = z.double()
        self.z += z.sum(0).cpu()
        self.zz += z.square().sum(0).cpu()
        if self.heads:
            self.norms += z.unflatten(1, (self.heads, -1)).norm(dim=2).sum(0).cpu()
        self.tokens += len(z)

    @property
    def variances(self) -> Tensor:
        """(input,) of each input over tokens."""
        mean = self.z / self.tokens
        return (self.zz / self.tokens - mean.square()).clamp_min(0) * (
            self.tokens / max(self.tokens - 1, 1)
        )

    def by_head(self, values: Tensor) -> Tensor:  # (input, …) -> (head, size, …)
        """What there is for each input, by head."""
        return values.unflatten(0, (self.heads, -1))


def head_sums(model: nn.Module, given: MethodInputs, method: str) -> dict[Place, HeadSums]:
    """(stack, layer) -> its sums over all calibration tokens that count."""
    if given.calibration is None:
        raise UsageError(f"The method '{method}' needs calibration rows: pass a task or inputs.")
    bare = unwrap(model)
    sites = sites_of(bare)
    sums = {(s.stack, s.layer): HeadSums(bare.get_submodule(s.out), s.heads) for s in sites}
    modules = [((site.stack, site.layer), out) for site in sites for _, out in site.places]
    data: Batches = given.calibration
    with torch.no_grad(), evaluating(bare):
        for batch in batches_for(bare, data):

            def take(key: Place, args: tuple[Tensor, ...], _: Tensor) -> None:
                z = args[0].reshape(-1, args[0].shape[-1])
                counts = counted_tokens(batch.inputs, key[0], len(z))  # noqa: B023
                sums[key].add(z if counts is None else z[counts])

            with watching(bare, modules, take):
                bare(**batch.inputs)
    if not any(layer.tokens for layer in sums.values()):
        raise UsageError(f"No token of the calibration rows counts, so '{method}' has no scores.")
    return {key: layer for key, layer in sums.items() if layer.tokens and layer.heads}


def decide_by(layout: Layout, values: dict[Place, Tensor], method: str) -> Decide:
    """The heads with the highest values stay; a layer without values is not used: it goes first."""
    low = min((float(value.min()) for value in values.values()), default=0.0) - 1
    scores = Scores(
        layout,
        tuple(
            float(values[head.stack, head.layer][head.index])
            if (head.stack, head.layer) in values
            else low
            for head in layout
        ),
    )

    def decide(ratio: float | None, seed: int) -> Decision:
        return Decision.best(scores, layout.kept_at(require_ratio(method, ratio)))

    return decide
