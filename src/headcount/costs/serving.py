"""What a decoder takes when it serves, at a context and for a batch of users, and what heads save.

For the next token of every user all keys and values are read, and the weights once: of a table of
embeddings that nothing else uses only the rows of the tokens, and of an encoder nothing. Where
memory bounds the speed, which is so for all but large batches of short texts, tokens a second go
with one over these bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import UsageError
from headcount.models.probe import text_config

if TYPE_CHECKING:
    from headcount.costs.cost import SiteCost

WORTH = 0.1
"""A share of the bytes read for a token below which pruning half the heads is not worth it."""


@dataclass(frozen=True, kw_only=True)
class Saving:
    """What a removal saves at most: shares of the weights, the cache, and the bytes read."""

    weights: float
    cache: float
    read: float

    @property
    def speedup(self) -> float:
        """How many times as many tokens a second, where reading bounds them."""
        return 1 / (1 - self.read)


@dataclass(frozen=True, kw_only=True)
class ServingCost:
    """Bytes of weights and of every user's cache."""

    context: int
    """Tokens of a user."""
    batch: int
    """Users at once."""
    weights: int
    weights_read: int
    """Of these, what is read for the next token."""
    user: int
    """Bytes of one user's keys and values."""
    most: Mapping[str, Saving] = field(default_factory=dict)
    """What could be saved at most, by what is removed."""

    @property
    def cache(self) -> int:
        """Bytes of all users' keys and values."""
        return self.batch * self.user

    @property
    def read(self) -> int:
        """Bytes read for the next token of every user."""
        return self.cache + self.weights_read

    @property
    def share(self) -> float:
        """The cache's share of what is read for the next token of every user.

        >>> half = ServingCost(context=8, batch=2, weights=120, weights_read=100, user=50)
        >>> half.share, half.users_per_gib
        (0.5, 21474836.48)
        """
        return self.cache / self.read

    @property
    def users_per_gib(self) -> float | None:
        """Users whose keys and values fit into a GiB; None where they take nothing."""
        return 2**30 / self.user if self.user else None

    @property
    def verdict(self) -> str:
        """In a sentence whether heads are worth removing at this context and batch."""
        if not self.most:
            return "No heads are left to remove."
        parts = list(self.most.items())
        name, saving = max(parts[1:] or parts, key=lambda item: item[1].read)
        gain = (
            f"{name} would save at most {100 * saving.read:.0f} % of the bytes read for a token, "
            f"which is {saving.speedup:.2f} × as many tokens a second"
        )
        if saving.read < WORTH:
            return f"Not worth it at this context and batch: {gain}."
        return f"{gain[0].upper()}{gain[1:]}, and {100 * saving.cache:.0f} % of the cache."

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            **asdict(self),
            "cache": self.cache,
            "read": self.read,
            "share": self.share,
            "users_per_gib": self.users_per_gib,
            "most": {
                name: asdict(saving) | {"speedup": saving.speedup}
                for name, saving in self.most.items()
            },
            "verdict": self.verdict,
        }


def serving_of(
    model: PreTrainedModel, sites: Sequence[SiteCost], size: int, *, context: int, batch: int
) -> ServingCost:
    """What `model` takes with `batch` users of `context` tokens, `size` bytes a parameter.

    A layer with a sliding window keeps no more than that. An encoder's text is as long.
    """
    if batch < 1:
        raise UsageError(f"A batch is at least 1 user, not {batch}.")
    sites = [one for one in sites if one.site.stack in ("decoder", "cross")]
    if not sites:
        raise UsageError(
            f"{type(model).__name__} has no decoder that keeps keys and values for a next token; "
            "--length says what its heads cost."
        )
    windows = _windows(model.config)
    user = {
        one: one.cache * min(context, windows.get(one.site.layer, context))
        if one.site.stack == "decoder"
        else one.cache * context
        for one in sites
    }
    whole = ServingCost(
        context=context,
        batch=batch,
        user=sum(user.values()),
        weights=size * sum(one.numel() for one in model.parameters()),
        weights_read=size * _read_for_a_token(model),
    )

    def saving(parts: Iterable[tuple[SiteCost, float]]) -> Saving:
        weights = cache = 0.0
        for one, share in parts:
            weights += share * one.memory
            cache += share * batch * user[one]
        return Saving(
            weights=weights / whole.weights,
            cache=cache / whole.cache if whole.cache else 0.0,
            read=(weights + cache) / whole.read,
        )

    layers = [one for one in sites if one.site.heads]
    most: dict[str, Saving] = {}
    if layers:
        most["all heads"] = saving((one, 1.0) for one in layers)
        halves = [(one, one.site.groups // 2 / one.site.groups) for one in layers]
        if any(share for _, share in halves):
            odd = ", rounded down" * any(one.site.groups % 2 for one in layers)
            most["half the key-value heads of every layer" + odd] = saving(halves)
        if len(layers) > 1:
            best = sorted(layers, key=lambda one: saving([(one, 1.0)]).read)
            most["all heads of half the layers"] = saving(
                (one, 1.0) for one in best[-(len(best) // 2) :]
            )
    return ServingCost(**{**vars(whole), "most": most})


def _read_for_a_token(model: PreTrainedModel) -> int:
    """Parameters without those of an encoder, and tables of which only some rows are read."""
    encoder: Any = model.get_encoder() if model.config.is_encoder_decoder else None
    aside = set() if encoder is None else set(encoder.modules())
    read = {
        id(weight): weight.numel()
        for module in model.modules()
        if module not in aside and not isinstance(module, nn.Embedding)
        for weight in module.parameters(recurse=False)
    }
    return sum(read.values())


def _windows(config: PreTrainedConfig) -> dict[int, int]:
    """Layer of the decoder -> tokens of its sliding window, where it has one."""
    text: Any = text_config(config)
    window = getattr(text, "sliding_window", None)
    kinds = getattr(text, "layer_types", None)
    if not isinstance(window, int) or window < 1 or getattr(text, "use_sliding_window", 1) is False:
        return {}
    if kinds is None:
        kinds = ["sliding_attention"] * getattr(text, "num_hidden_layers", 0)
    return {layer: window for layer, kind in enumerate(kinds) if kind == "sliding_attention"}
