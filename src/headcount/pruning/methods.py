"""The methods, by name; listing them imports nothing. A new one is one file and one line here.

A method is a frozen class of its options that says what it `needs` and how to `prepare`:

    decide = Importance(step=0.05).prepare(model, MethodInputs(data=rows))   # measured once
    decide(0.5, 0)                                                    # Decision: the mask, and more

What it measures (gradients, distances) is measured once and serves every ratio and seed. Methods
that train (the room `learned`, above this one; a name is no import) do so for every ratio and seed
anew, and hand over the trained weights in their decision. A method's file imports torch only inside
its functions, so that the command line can read its options quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.base.options import read, types_of
from headcount.base.registry import Registry
from headcount.base.text import line
from headcount.heads import Layout, Mask

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headcount.tasks.as_rows import Rows

Need = Literal["nothing", "inputs", "rows", "training"]
"""What a method looks at: nothing but the model, inputs where there are some, rows of a task with
labels, or a task to train on."""


@dataclass(frozen=True, kw_only=True)
class MethodInputs:
    """What a method may look at; it takes of it what it needs."""

    data: Rows | None = None
    """Rows of the task, with labels."""
    inputs: Rows | None = None
    """Rows or batches without labels, instead of the task's."""
    tokenizer: PreTrainedTokenizerBase | None = None
    training: Any = None
    """A task to train on, and how (`training.setting.Training`)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """Which heads stay, and what came along with finding out."""

    mask: Mask
    model: PreTrainedModel | None = field(default=None, repr=False)
    """All heads with weights that were trained beside the decision; None: as they were."""
    learned: Any = field(default=None, repr=False)
    """How gates came to their number, where they were trained (`learned.result.Learned`)."""

    def __repr__(self) -> str:
        keeps = f"keeps {len(self.mask)} of {len(self.mask.layout)} heads"
        return line(f"Decision({self.mask!r})", f"Decision({keeps})")


Decide = Callable[[float | None, int], Decision]
"""(share of heads to remove, seed) -> the heads that stay."""


class Method(Protocol):
    """A method with its options."""

    needs: ClassVar[Need]
    ratio: ClassVar[Literal["needed", "free", "none"]]
    """Whether it needs a ratio, can do without one, or says itself how many heads stay."""

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """The method with what it needs, ready to decide for any ratio and seed."""
        ...


METHODS = Registry("method", plugins="headcount.methods")
for _name, _where, _summary in (
    (
        "all-heads",
        "headcount.pruning.all_heads:AllHeads",
        "No cut: what repair alone does to the whole model.",
    ),
    (
        "random",
        "headcount.pruning.random:Random",
        "Heads drawn at random, over the model, a stack, or each layer.",
    ),
    (
        "pattern",
        "headcount.pruning.pattern:Pattern",
        "A number of heads for each layer (777322) or component (14,31,30).",
    ),
    (
        "layers",
        "headcount.pruning.layers:Layers",
        "All heads of whole layers: top:3, bottom:3, middle:4, even, odd.",
    ),
    (
        "cluster",
        "headcount.pruning.cluster:Cluster",
        "One head of each cluster of like heads; needs no data.",
    ),
    (
        "importance",
        "headcount.pruning.importance:Importance",
        "The heads the loss feels least, in one shot or step by step.",
    ),
    (
        "surgeon",
        "headcount.pruning.surgeon:Surgeon",
        "The heads whose loss the others make up for best, by second order.",
    ),
    (
        "meta",
        "headcount.pruning.meta:Meta",
        "The best of every layer by a scorer of attention maps; needs no labels.",
    ),
    (
        "straight-through",
        "headcount.learned.methods:StraightThrough",
        "Trained: step gates with a coarse gradient, weights beside them.",
    ),
    (
        "hard-concrete",
        "headcount.learned.methods:HardConcrete",
        "Trained: L0 gates, drawn in every step.",
    ),
    (
        "subset",
        "headcount.learned.methods:Subset",
        "Trained: exactly the asked number of heads in every step, by Gumbel top-k.",
    ),
):
    METHODS.add(_name, _where, _summary)


def make_method(name: str, options: Mapping[str, Any] | None = None) -> Method:
    """The method of this name with these options of its own."""
    kind: Any = METHODS[name]
    known = types_of(kind)
    for option in options or {}:
        if option not in known:
            says = f"The method '{name}' has no option '{option}'"
            raise unknown(says, option, known, has="It has")
    return kind(**(options or {}))


def name_of(method: Method) -> str:
    """The name a method is registered by."""
    name = METHODS.name_of(type(method))
    if name is None:
        raise UsageError(f"{type(method).__name__} is no method that METHODS knows: add it there.")
    return name


def as_method(method: Method | str, options: Mapping[str, Any] | None = None) -> Method:
    """A method as it is, or by its name with options."""
    if isinstance(method, str):
        return make_method(method, options)
    if options:
        raise UsageError(
            f"The options of {type(method).__name__} go into it, not beside it: "
            f"{', '.join(options)}."
        )
    if not hasattr(method, "prepare"):
        raise UsageError(f"{method!r} is no method: see headcount ls methods.")
    return method


def read_method(data: object, where: str) -> Method:
    """The method that a record or a study file names: a name, or a table with its name."""
    if isinstance(data, str):
        return make_method(data)
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise UsageError(f"{where} names no method: write a name, or a table with one.")
    try:
        kind: Any = METHODS[data["name"]]
    except UsageError as error:
        raise UsageError(f"{where}: {error} One of a script needs --plugin FILE.") from error
    return read(kind, {key: value for key, value in data.items() if key != "name"}, where)
