"""Stream attention probabilities out of a model, one layer at a time.

    def consume(place, attention): ...     # attention: (batch, head, query, key)
    with hc.capture(model, consume):
        model(**batch)

Only one layer's probabilities exist at any moment. They come from the model's own eager
attention, so position biases, sliding windows and soft caps are all in them; the attention
implementation is put back afterwards. A layer without heads gives (batch, 0, query, key).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.door import require_pretrained
from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import held, hooked
from headcount.models.sites import Site


class AttentionSource(NamedTuple):
    """Where captured attention comes from; `use` counts the runs of a shared layer from 0."""

    stack: str
    layer: int
    use: int


Consumer = Callable[[AttentionSource, Tensor], object]


@contextmanager
def capture(model: nn.Module, consumer: Consumer) -> Generator[nn.Module]:
    """Hand every layer's attention probabilities to `consumer` while the model runs inside."""
    bare = require_pretrained(unwrap(model), "hc.capture")
    sites = sites_of(bare)
    uses: dict[str, int] = {}
    projected: set[str] = set()

    def reset(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        if module.training:
            raise UsageError(
                "Attention captured in training mode has dropout in it; call model.eval() first."
            )
        uses.clear()
        projected.clear()
        if "output_attentions" in explicit:
            kwargs = kwargs | {"output_attentions": True}
        return args, kwargs

    def watch(site: Site, path: str) -> Callable[[], object]:
        def take(module: Any, args: tuple, output: object) -> Any:
            use = uses.get(site.path, 0)
            uses[site.path] = use + 1
            attention, rest = _split_off(site, output, getattr(module, "full_heads", site.heads))
            if attention.shape[1] > site.heads:  # it computes those of heads that are gone, too
                attention = attention[:, list(module.kept_heads)]
            consumer(AttentionSource(site.stack, site.layer, use), attention)
            return rest

        return lambda: bare.get_submodule(path).register_forward_hook(take)

    def used(site: Site, out: str) -> Callable[[], Any]:
        return lambda: bare.get_submodule(out).register_forward_pre_hook(
            lambda *_: projected.add(site.path)
        )

    def finish(module: nn.Module, args: tuple, output: object) -> None:
        missed = sorted(projected - set(uses))
        if missed or not uses:
            raise UnsupportedError(
                f"{type(bare).__name__} ran without calling its attention"
                + (f" at {missed[0]}." if missed else ".")
            )

    # a few families (DeBERTa, MPNet) compute no probabilities to return unless told to
    explicit = [
        name
        for site in sites
        for name in inspect.signature(bare.get_submodule(site.path).forward).parameters
        if name == "output_attentions"
    ]
    hooks: list[Callable[[], object]] = []
    for site in sites:
        for path, out in site.places:
            hooks += [watch(site, path), used(site, out)]
    hooks.append(lambda: bare.register_forward_pre_hook(reset, with_kwargs=True))
    hooks.append(lambda: bare.register_forward_hook(finish))
    with eager(bare), hooked(hooks), _without_recorders(bare):
        yield model


@contextmanager
def _without_recorders(model: nn.Module) -> Generator[None]:
    """Take off the hooks that transformers leaves on a model once it was asked for attention."""
    flag = "_output_capturing_hooks_installed"
    flagged = {module for module in model.modules() if flag in vars(module)}
    before = {hook for module in model.modules() for hook in module._forward_hooks}
    try:
        yield
    finally:
        for module in model.modules():
            if module not in flagged:
                vars(module).pop(flag, None)
            for number, hook in list(module._forward_hooks.items()):
                theirs = hook.__module__ == "transformers.utils.output_capturing"
                if theirs and number not in before:
                    del module._forward_hooks[number]


def _split_off(site: Site, output: object, most: int) -> tuple[Tensor, object]:
    """The probabilities in an attention module's output, and the output without their bulk."""
    if isinstance(output, tuple):
        for index in reversed(range(len(output))):
            item = output[index]
            if isinstance(item, Tensor) and item.ndim == 4 and item.shape[1] in (site.heads, most):
                if not _are_probabilities(item):
                    break
                # an empty tensor, not None, so that whoever counts layers still counts right
                rest = (*output[:index], item[:, :0], *output[index + 1 :])
                return item.detach(), rest
    raise UnsupportedError(
        f"{site.path} does not return attention probabilities, so they cannot be captured."
    )


def _are_probabilities(attention: Tensor) -> bool:
    if not attention.numel():
        return True
    sums = attention.sum(-1).float()
    # rows that may look nowhere are all zero in some models; NaN is the consumer's to name
    return bool((((sums - 1).abs() < 1e-2) | (sums == 0) | sums.isnan()).all())


@contextmanager
def eager(model: PreTrainedModel) -> Generator[None]:
    """Eager attention in every part of the model inside, each part's own choice back after."""
    configs: dict[int, Any] = {
        id(module.config): module.config
        for module in model.modules()
        if isinstance(getattr(module, "config", None), PreTrainedConfig)
    }
    before = [(config, config._attn_implementation) for config in configs.values()]
    if all(implementation == "eager" for _, implementation in before):
        yield
        return
    with held(model, "in eager attention"):
        try:
            for config in configs.values():
                config._attn_implementation_internal = "eager"
            yield
        finally:
            for config, implementation in before:
                config._attn_implementation_internal = implementation


def collect(model: nn.Module, inputs: dict[str, Any]) -> dict[AttentionSource, Tensor]:
    """All attention of one forward pass, kept in memory: for tests and small looks only."""
    kept: dict[AttentionSource, Tensor] = {}
    with capture(model, kept.__setitem__), torch.no_grad():
        model(**inputs)
    return kept
