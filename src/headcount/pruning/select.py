"""Decide which heads stay: `hc.select(model, "random", ratio=0.5)`.

decide = prepare(model, "importance", data=rows)     # measured once
decide(0.5, seed), decide(0.9, seed)                 # a mask for every ratio and seed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headcount.base.errors import UsageError
from headcount.heads import Layout, Mask
from headcount.pruning.methods import TRAINED, AnyMethod, MethodInputs, as_method, name_of
from headcount.pruning.uniform import uniform as held_uniform

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase

    from headcount.tasks.as_rows import Data


def select(
    model: nn.Module | Layout,
    method: AnyMethod,
    ratio: float | None = None,
    *,
    seed: int = 0,
    uniform: bool = False,
    data: Data | None = None,
    inputs: Data | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    **options: object,
) -> Mask:
    """The heads that stay when `ratio` of them go: exactly ⌈H (1 - ratio)⌉.

    `method` is one of `headcount ls methods`, by name with its `options`, or as a value
    (`hc.Importance(step=0.05)`), or a function (model, calibration rows, ratio) -> mask. `data` are
    a task or rows with labels, and `inputs` rows without, for the methods that look at them:
    whatever `hc.importance` and `hc.redundancy` take. A layout does in place of a model where the
    method needs no weights. `uniform` keeps as many key-value heads in every layer of a stack, and
    at least as many heads as the ratio says.

    >>> len(select(Layout.of(encoder=[12] * 12), "random", 0.5))
    72
    >>> select(Layout.of(encoder=[12] * 6), "random", 0.5, uniform=True).pattern
    '666666'
    """
    if ratio is not None:
        Layout(()).kept_at(ratio)  # a ratio outside is refused before anything is measured
    decide = prepare(
        model, method, uniform=uniform, data=data, inputs=inputs, tokenizer=tokenizer, **options
    )
    return decide(ratio, seed)


def prepare(
    model: nn.Module | Layout,
    method: AnyMethod,
    *,
    uniform: bool = False,
    data: Data | None = None,
    inputs: Data | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    **options: object,
) -> Callable[[float | None, int], Mask]:
    """A method with what it looks at, ready to give the mask of any ratio and seed."""
    if data is not None or inputs is not None:
        from headcount.tasks.as_rows import as_rows

        data, inputs = (
            None if rows is None else as_rows(model, rows, tokenizer=tokenizer)
            for rows in (data, inputs)
        )
    given = MethodInputs(data=data, inputs=inputs, tokenizer=tokenizer)
    value = as_method(method, options)
    if uniform and value.needs == "training":
        raise UsageError(TRAINED.format(name_of(value)))
    decide = value.prepare(model, given)
    if uniform:
        decide = held_uniform(decide, as_layout(model), name_of(value))
    return lambda ratio, seed: decide(ratio, seed).mask


def as_layout(model: nn.Module | Layout) -> Layout:
    """The layout of a model; a layout itself passes."""
    if isinstance(model, Layout):
        return model
    from headcount.models.find import layout

    return layout(model)


def as_model(model: nn.Module | Layout, method: str) -> nn.Module:
    """The model of a method that looks into it, where a layout does not do."""
    if isinstance(model, Layout):
        raise UsageError(f"The method '{method}' looks into the model: its layout is not enough.")
    from headcount.models.door import require_numbers

    return require_numbers(model, f"The method '{method}'")
