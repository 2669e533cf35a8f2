"""What a decoder's keys and values take when it serves: at a context, for a batch of users."""

from __future__ import annotations

from dataclasses import dataclass

from transformers import PreTrainedModel

from headcount.costs.cost import cost
from headcount.costs.flops import fitting_length
from headcount.models.probe import text_config


@dataclass(frozen=True, kw_only=True)
class ServingCost:
    """Bytes of weights and of every user's cache."""

    context: int
    """Tokens of a user."""
    batch: int
    """Users at once."""
    weights: int
    user: int
    """Bytes of one user's keys and values."""

    @property
    def cache(self) -> int:
        """Bytes of all users' keys and values."""
        return self.batch * self.user

    @property
    def share(self) -> float:
        """The cache's share of what is read for the next token of every user: it and the weights.

        >>> half = ServingCost(context=8, batch=2, weights=100, user=50)
        >>> half.share, half.users_per_gib
        (0.5, 21474836.48)
        """
        return self.cache / (self.cache + self.weights)

    @property
    def users_per_gib(self) -> float | None:
        """Users whose keys and values fit into a GiB; None where they take nothing."""
        return 2**30 / self.user if self.user else None


def serving_cost(model: PreTrainedModel, *, context: int, batch: int = 1) -> ServingCost:
    """What `model` takes with `batch` users of `context` tokens; refused where it has no positions.

    A layer with a sliding window keeps no more than that. An encoder's text is as long.
    """
    counted = cost(model, length=fitting_length(model.config, context))
    tokens = {
        layer: min(context, window) for layer, window in _windows(model).items() if window > 0
    }
    user = sum(
        one.cache
        * (tokens.get(one.site.layer, context) if one.site.stack == "decoder" else context)
        for one in counted.sites
    )
    return ServingCost(context=context, batch=batch, weights=counted.memory, user=user)


def _windows(model: PreTrainedModel) -> dict[int, int]:
    """Layer of the decoder -> tokens of its sliding window, where it has one."""
    config = text_config(model.config)
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if not isinstance(window, int) or getattr(config, "use_sliding_window", True) is False:
        return {}
    if kinds is None:
        kinds = ["sliding_attention"] * getattr(config, "num_hidden_layers", 0)
    return {layer: window for layer, kind in enumerate(kinds) if kind == "sliding_attention"}
