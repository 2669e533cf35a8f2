"""The repairs, by name; listing them imports nothing. A new one is one file and one line here.

A repair is a frozen class of its options that says what it `needs` and how to `apply` itself to a
model that has lost heads. Several are steps, one after the other:

    hc.prune(model, "surgeon", 0.5, task="sst2", repair=(Recover(ridge=1e-2), Finetune(steps=200)))

A repair's file imports torch only inside its functions, so that the command line can read its
options quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from headcount.base.errors import UsageError
from headcount.base.options import read, to_plain
from headcount.base.registry import Registry
from headcount.training.logging import Logging

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headcount.tasks.as_rows import Rows
    from headcount.tasks.task import Task

RepairNeed = Literal["calibration", "labels", "training"]
"""What a repair looks at: calibration rows without labels, rows of a task with labels, or a task to
train on."""


@dataclass(frozen=True, kw_only=True)
class RepairInputs:
    """What a repair may use; it takes of it what it needs."""

    calibration: Callable[[], Rows]
    """Rows like those the model will see, read when called; from a task they have labels."""
    task: Task | None = None
    tokenizer: PreTrainedTokenizerBase | None = None
    device: str = "auto"
    seed: int = 0
    work: Path | None = None
    """A folder of this step's own in which it can be resumed; None keeps nothing."""
    logging: Logging = field(default_factory=Logging)
    """Which trackers are told of training."""
    report: Callable[[int, int], None] | None = None
    """Gets how many parts of the work are done, and of how many."""


@dataclass(frozen=True, kw_only=True)
class RepairReport:
    """What a step did and cost; calibration rows are counted as they are read."""

    details: Mapping[str, Any] = field(default_factory=dict)
    """What the record says of it, as plain data."""
    steps: int = 0
    """Steps of the optimizer."""
    examples: int = 0
    """Rows trained on, each as often as it was."""
    rows: int = 0
    """Different rows in the training data."""
    note: str | None = None
    """What must not be missed."""


class Repair(Protocol):
    """A repair with its options.

    One that needs more than headcount itself names it, as in `headcount ls extras`, in `extra`.
    """

    needs: ClassVar[RepairNeed]
    done: ClassVar[str]
    """What has become of the model, in a word: recovered."""

    def apply(
        self, small: PreTrainedModel, full: PreTrainedModel, given: RepairInputs
    ) -> RepairReport:
        """Repair `small`, which is `full` without some heads, in place."""
        ...


Repairs = tuple[Repair, ...]
REPAIRS = Registry("repair", plugins="headcount.repairs")
REPAIRS.add(
    "recover",
    "headcount.repair.recover:Recover",
    "Output projections solved again on calibration rows, without labels or training.",
)
REPAIRS.add(
    "distil",
    "headcount.repair.distil:Distil",
    "Trained on the full model's answers to calibration rows, without labels.",
)
REPAIRS.add(
    "lora",
    "headcount.repair.lora:Lora",
    "Adapters trained on the full model's answers and merged, without labels.",
)
REPAIRS.add("finetune", "headcount.repair.finetune:Finetune", "Trained on the task.")


def repair_name(repair: Repair) -> str:
    """The name a repair is registered by."""
    return REPAIRS.name_of(type(repair))


def make_repair(name: str, options: Mapping[str, object] | None = None) -> Repair:
    """The repair of this name with these options of its own."""
    return REPAIRS.make(name, options)


def as_repairs(repair: Repair | str | Sequence[Repair | str] | None) -> Repairs:
    """Steps as a tuple, from one or several, each a value or a name; None is none.

    >>> [repair_name(step) for step in as_repairs("recover")], as_repairs(None)
    (['recover'], ())
    """
    if repair is None:
        return ()
    several = repair if isinstance(repair, Sequence) and not isinstance(repair, str) else (repair,)
    steps = tuple(make_repair(step) if isinstance(step, str) else step for step in several)
    for step in steps:
        if not hasattr(step, "apply"):
            raise UsageError(f"{step!r:.60} is no repair: see headcount ls repairs.")
    names = [repair_name(step) for step in steps]
    if len(set(names)) < len(names):
        raise UsageError(f"A repair is named twice: {', '.join(names)}.")
    return steps


def read_repairs(data: object, where: str) -> Repairs:
    """The steps that a record or a study file lists: names, {name: options} or {name: …, …}."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise UsageError(f"{where} is a list of repairs, as in [recover, finetune].")
    return as_repairs([_read_step(item, f"{where}[{at}]") for at, item in enumerate(data)])


def _read_step(data: object, where: str) -> Repair:
    if isinstance(data, str):
        return make_repair(data)
    if not isinstance(data, Mapping) or (len(data) != 1 and not isinstance(data.get("name"), str)):
        raise UsageError(f"{where} names no repair: write a name, or {{name: options}}.")
    if isinstance(name := data.get("name"), str):
        options = {key: value for key, value in data.items() if key != "name"}
    else:
        ((name, options),) = data.items()
    kind: Any = REPAIRS[str(name)]
    options = {} if options is None else options
    return kind.read(options, where) if hasattr(kind, "read") else read(kind, options, where)


def repairs_to_plain(repair: Repairs) -> list[dict[str, Any]]:
    """Plain data; `read_repairs` gives the steps back."""
    return [{"name": repair_name(step), **to_plain(step)} for step in repair]


def repairs_identity(repair: Repairs) -> dict[str, Any]:
    """What the repaired weights depend on: the steps and every option, but how often one saves."""
    parts: dict[str, Any] = {"repair": ", ".join(map(repair_name, repair)) or None}
    for step in repair:
        plain = step.identity() if hasattr(step, "identity") else to_plain(step)  # pyright: ignore
        parts |= {f"{repair_name(step)}.{option}": value for option, value in plain.items()}
    return parts


def describe_repairs(repair: Repairs) -> str:
    """What has become of the model; empty without steps.

    >>> describe_repairs(as_repairs(("recover", "finetune")))
    'recovered and fine-tuned'
    """
    return " and ".join(step.done for step in repair)


def done_words(names: Sequence[object]) -> list[str]:
    """What has become of a model by steps of these names; an unknown one is its own word.

    >>> done_words(["recover", "melt"])
    ['recovered', 'melt']
    """
    known = REPAIRS.loaded()
    return [getattr(known.get(name), "done", name) for name in map(str, names)]
