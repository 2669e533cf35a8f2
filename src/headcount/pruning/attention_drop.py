"""Whole attention layers go, those first whose output differs least from their input.

He, Sun, Shen and Li, What Matters in Transformers? Not All Attention is Needed, 2024:

    s = 1 - mean over tokens of cos(x, x + attention(x))

with x the stream that the layer's output is added to. Of the last layer to go, as many heads stay
as the ratio asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headcount.base.errors import UnsupportedError, UsageError
from headcount.base.options import checked
from headcount.pruning.methods import Decide, MethodInputs
from headcount.pruning.select import as_layout, as_model

if TYPE_CHECKING:
    from torch import Tensor, nn

    from headcount.heads import Layout
    from headcount.heads.choose import Place
    from headcount.tasks.as_rows import Rows


@dataclass(frozen=True, kw_only=True)
@checked
class AttentionDrop:
    """Keep the layers that change their input most."""

    needs: ClassVar = "calibration"
    ratio: ClassVar = "needed"

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """One pass over the rows, without gradients or labels."""
        from headcount.pruning.head_statistics import decide_by

        if given.calibration is None:
            raise UsageError(
                "The method 'attention-drop' needs calibration rows: pass a task or inputs."
            )
        layout = as_layout(model)
        changes = layer_changes(as_model(model, "attention-drop"), given.calibration)
        values = {
            (stack, layer): changes[stack, layer].expand(heads)
            for stack, layer, heads in layout.layers()
            if heads and (stack, layer) in changes
        }
        return decide_by(layout, values, "attention-drop")


def layer_changes(model: nn.Module, data: Rows) -> dict[Place, Tensor]:
    """(stack, layer) -> 1 - the mean cosine of the stream before and after its attention."""
    import torch

    from headcount.models.batches import batches_for, counted_tokens
    from headcount.models.find import sites_of, unwrap
    from headcount.models.hooks import evaluating
    from headcount.models.residual import find_additions
    from headcount.models.watch import watching

    bare = unwrap(model)
    additions = [a for a in find_additions(bare, sites_of(bare)) if not a.feed_forward]
    missing = [s.path for s in sites_of(bare) if s.out not in {a.out for a in additions}]
    if missing:
        raise UnsupportedError(
            f"The method 'attention-drop' cannot see what the output of {missing[0]} is added to "
            f"in {type(bare).__name__}: attention and feed-forward may run side by side."
        )
    sums = {(a.site.stack, a.site.layer): torch.zeros(2, dtype=torch.float64) for a in additions}
    before: dict[Place, Tensor] = {}
    modules = [
        ((at, (a.site.stack, a.site.layer)), path)
        for a in additions
        for at, path in (("residual", a.residual), ("out", a.out))
    ]
    with torch.no_grad(), evaluating(bare):
        for batch in batches_for(bare, data):

            def take(key: tuple[str, Place], args: tuple[Tensor, ...], output: Tensor) -> None:
                at, layer = key
                if at == "residual":
                    before[layer] = args[0].clone().flatten(0, -2)
                    return
                x, o = before[layer].double(), output.flatten(0, -2).double()
                counts = counted_tokens(batch.inputs, layer[0], len(x))  # noqa: B023
                cosines = torch.nn.functional.cosine_similarity(x, x + o, dim=1)
                cosines = cosines if counts is None else cosines[counts]
                sums[layer] += torch.tensor([float(cosines.sum()), len(cosines)]).double()

            with watching(bare, modules, take):
                bare(**batch.inputs)
    return {layer: 1 - total / count.clamp_min(1) for layer, (total, count) in sums.items()}
