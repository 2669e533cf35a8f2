"""Set a model's dropout, whatever its family calls it.

An empty twin of the model is built from a config in which one kind of dropout is a number that
nothing else has; wherever that number turns up in the twin, the model is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from torch import nn
from transformers import PreTrainedModel

from headcount.base.errors import UnsupportedError
from headcount.models.find import sites_of
from headcount.models.load import skeleton

ATTENTION = (
    "attention_probs_dropout_prob",
    "attention_dropout",
    "attn_pdrop",
    "attn_dropout",
    "attention_dropout_prob",
)
HIDDEN = (
    "hidden_dropout_prob",
    "hidden_dropout",
    "dropout",
    "dropout_rate",
    "resid_pdrop",
    "embd_pdrop",
    "resid_dropout",
    "embd_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "activation_dropout",
)
MARK = 0.123456789


def set_dropout(
    model: PreTrainedModel, *, attention: float | None = None, hidden: float | None = None
) -> None:
    """Change the dropout of attention probabilities, of everything else, or both, in place.

    T5 has one number for both: `hidden` sets both there, `attention` its attention modules only
    (which its config cannot say, so a saved model forgets it).
    """
    if hidden is not None:
        _change(model, _present(model, HIDDEN), hidden, "hidden")
    if attention is not None:
        names = _present(model, ATTENTION)
        if names:
            _change(model, names, attention, "attention")
        else:
            sites = {path for site in sites_of(model) for path, _ in site.places}
            _change(model, _present(model, HIDDEN), attention, "attention", only=sites)


def _present(model: PreTrainedModel, names: tuple[str, ...]) -> list[str]:
    parts = list(_configs(model.config))
    return [name for name in names if any(_is_number(getattr(p, name, None)) for p in parts)]


def _change(
    model: PreTrainedModel,
    names: list[str],
    value: float,
    what: str,
    only: set[str] | None = None,
) -> None:
    """Set every number that follows these settings, in all modules or in some `only`."""
    places = [
        module for module in _places(model, names) if names and (only is None or module[0] in only)
    ]
    if not places:
        raise UnsupportedError(
            f"'{model.config.model_type}' has no {what} dropout of its own, so it cannot be set."
        )
    for path, attribute, twin in places:
        module = model.get_submodule(path)
        if isinstance(twin, nn.Dropout) and not isinstance(module, nn.Dropout):
            # ModernBERT builds an Identity where its config says 0
            model.set_submodule(path, nn.Dropout(value).train(module.training))
        else:
            setattr(module, attribute, value)
    if only is None:
        _set(model.config, names, value)


def _places(model: PreTrainedModel, names: list[str]) -> Iterator[tuple[str, str, nn.Module]]:
    """(module, attribute, the twin's module) of every number that follows these settings."""
    config = copy.deepcopy(model.config)
    _set(config, names, MARK)
    twin = skeleton(config, getattr(type(model), "base_class", type(model)))
    for path, module in twin.named_modules():
        for attribute, value in vars(module).items():
            if isinstance(value, float) and value == MARK:
                yield path, attribute, module


def _configs(config: object) -> Iterator[object]:
    yield config
    for name in getattr(config, "sub_configs", None) or {}:
        if getattr(config, name, None) is not None:
            yield from _configs(getattr(config, name))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _set(config: object, names: list[str], value: float) -> None:
    for part in _configs(config):
        for name in names:
            if _is_number(getattr(part, name, None)):
                setattr(part, name, value)
