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

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from headcount.base.errors import UsageError
from headcount.base.options import read
from headcount.base.registry import Registry
from headcount.base.text import line, short
from headcount.heads import Layout, Mask, Scores
from headcount.heads.choose import keep_best
from headcount.pruning.function import FunctionMethod

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headcount.tasks.as_rows import Rows

Need = Literal["nothing", "inputs", "calibration", "labels", "training"]
"""What a method looks at: nothing but the model; inputs where some are given; calibration rows,
given or of the task, without labels; rows of a task with labels; or a task to train on."""
TRAINED = (
    "The method '{}' trains the weights with the gates that stay open, so --uniform cannot keep "
    "other heads: choose by another method."
)
MethodFunction = Callable[..., Mask]
"""A plain function as a method: (model, calibration rows or None, ratio) -> the heads that stay."""


@dataclass(frozen=True, kw_only=True)
class MethodInputs:
    """What a method may look at; it takes of it what it needs."""

    data: Rows | None = None
    """Rows of the task, with labels."""
    inputs: Rows | None = None
    """Rows or batches without labels, instead of the task's."""
    tokenizer: PreTrainedTokenizerBase | None = None
    training: Any = None
    """A task to train on, and how (`training.options.TrainingInputs`)."""

    @property
    def calibration(self) -> Rows | None:
        """Rows for a method that needs no labels: those that were given, or the task's."""
        return self.data if self.inputs is None else self.inputs


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """Which heads stay, and what came along with finding out."""

    mask: Mask
    scores: Scores | None = field(default=None, repr=False)
    """What it went by, the best highest, where that was one number for each head."""
    free: Mask | None = field(default=None, repr=False)
    """Where every layer keeps as many: the heads that would stay if layers were free to differ."""
    model: PreTrainedModel | None = field(default=None, repr=False)
    """All heads with weights that were trained beside the decision; None: as they were."""
    learned: Any = field(default=None, repr=False)
    """How gates came to their number, where they were trained (`learned.run.LearnedGates`)."""

    @classmethod
    def best(cls, scores: Scores, count: int) -> Decision:
        """The so many heads with the highest scores."""
        return cls(mask=keep_best(scores, count), scores=scores)

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


AnyMethod = Method | str | MethodFunction
"""What stands for a method in Python: a value, a name, or a plain function."""


METHODS = Registry("method", plugins="headcount.methods")
for _name, _where, _summary in (
    ("all-heads", "pruning.pattern:AllHeads", "Nothing is pruned: what repair alone does."),
    (
        "random",
        "pruning.random:Random",
        "Heads drawn at random, over the model, a stack or a layer.",
    ),
    (
        "pattern",
        "pruning.pattern:Pattern",
        "A number of heads for each layer or component: 777322.",
    ),
    (
        "layers",
        "pruning.layers:Layers",
        "All heads of whole layers: top:3, bottom:3, middle:4, odd.",
    ),
    (
        "cluster",
        "pruning.cluster:Cluster",
        "One head of each cluster of similar heads; no data needed.",
    ),
    (
        "importance",
        "pruning.importance:Importance",
        "The heads with the least effect on the loss go.",
    ),
    (
        "surgeon",
        "pruning.surgeon:Surgeon",
        "The heads that the others make up for best go: 2nd order.",
    ),
    (
        "meta",
        "pruning.meta:Meta",
        "The best of every layer by a scorer of attention maps; no labels.",
    ),
    (
        "flap",
        "pruning.flap:Flap",
        "The heads whose outputs vary little go (FLAP, 2024).",
    ),
    ("wanda", "pruning.wanda:Wanda", "The least weight times activation goes (Wanda-SP, 2024)."),
    ("minitron", "pruning.minitron:Minitron", "The smallest outputs go (Minitron, 2024)."),
    ("kwon", "pruning.kwon:Kwon", "The least Fisher information of the mask goes (2022)."),
    ("gnorm", "pruning.gnorm:Gnorm", "The smallest gradients go, one by one (Greedy-Gnorm, 2026)."),
    ("magnitude", "pruning.magnitude:Magnitude", "The smallest weights go; no data needed."),
    (
        "attention-drop",
        "pruning.attention_drop:AttentionDrop",
        "Whole layers, the least change of the stream first (2024).",
    ),
    ("straight-through", "learned.methods:StraightThrough", "Trained: step gates, weights beside."),
    ("hard-concrete", "learned.methods:HardConcrete", "Trained: L0 gates, drawn in every step."),
    (
        "subset",
        "learned.methods:Subset",
        "Trained: a fixed number of heads a step, by Gumbel top-k.",
    ),
):
    METHODS.add(_name, f"headcount.{_where}", _summary)


def make_method(name: str, options: Mapping[str, object] | None = None) -> Method:
    """The method of this name with these options of its own."""
    return METHODS.make(name, options)


def name_of(method: Method) -> str:
    """The name a method is registered by; of a plain function its own."""
    return method.name if isinstance(method, FunctionMethod) else METHODS.name_of(type(method))


def as_method(method: AnyMethod, options: Mapping[str, object] | None = None) -> Method:
    """A method as it is, by its name with options, or made of a plain function."""
    if isinstance(method, str):
        return make_method(method, options)
    if options:
        name = getattr(method, "__name__", type(method).__name__)
        raise UsageError(f"The options of {name} go into it, not beside it: {', '.join(options)}.")
    value: Any = FunctionMethod.of(method) if inspect.isfunction(method) else method
    if isinstance(value, type) or not hasattr(value, "prepare"):
        raise UsageError(f"{short(method)} is no method: see headcount ls methods.")
    return value


def read_method(data: object, where: str) -> Method:
    """The method that a record or a study file names: a name, or a table with its name."""
    if isinstance(data, str):
        return make_method(data)
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise UsageError(f"{where} names no method: write a name, or a table with one.")
    options = {key: value for key, value in data.items() if key != "name"}
    try:
        kind: Any = FunctionMethod if "function" in data else METHODS[data["name"]]
    except UsageError as error:
        raise UsageError(f"{where}: {error} One of a script needs --plugin FILE.") from error
    return read(kind, options, where)
