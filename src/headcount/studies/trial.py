"""One model on one task, cut in any way: what `prune` and `curve` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.heads import Layout, Mask
from headcount.models.find import layout as layout_of_model
from headcount.models.remove import remove
from headcount.pruning.methods import Decide
from headcount.pruning.select import options_of, prepare
from headcount.recovery.recover import recover_layers
from headcount.studies.rows import labelled_rows
from headcount.tasks import Task
from headcount.tasks.encoding import Encoded
from headcount.training.evaluate import Evaluation, evaluate, evaluate_many
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions

Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A model, a task where there is one, and what happens to the model after a cut."""

    model: PreTrainedModel
    layout: Layout
    task: Task | None = None
    tokenizer: Any = None
    recover: bool = False
    """Solve the output projections again after the cut."""
    finetune: TrainOptions | None = None
    """Train after the cut; None does not."""
    fresh: bool = False
    """The model's task head is new: without training it says nothing."""
    inputs: Any = None
    """Unlabelled rows or batches for recovery and clustering, instead of the task's rows."""
    samples: int = 512
    """Rows of the train split that methods and recovery look at."""
    split: str | None = None
    limit: int | float | None = None
    max_length: int = 128
    draws: int = 1000
    seed: int = 0
    """Of the sample that is scored and of its interval; cuts have their own seeds."""
    device: str = "auto"

    @property
    def repairs(self) -> bool:
        """Whether anything happens to the model after the cut."""
        return self.recover or self.finetune is not None

    def __post_init__(self) -> None:
        if self.finetune is not None and self.task is None:
            raise UsageError("Fine-tuning needs a task: pass --task.")
        if self.recover and self.task is None and self.inputs is None:
            # measured: solved on random tokens, a model gets worse than without
            raise UsageError(
                "Recovery needs inputs like those the model will see: pass --task, or texts with "
                "--inputs."
            )

    def rows(self, seed: int) -> Encoded:
        """Labelled rows for methods that look at data, drawn anew for every seed."""
        if self.task is None:
            raise UsageError("There is no task to take rows from: pass one.")
        return labelled_rows(
            self.model,
            self.task,
            self.tokenizer,
            limit=self.samples,
            seed=seed,
            max_length=self.max_length,
        )

    def prepare(self, method: str, options: Mapping[str, Any], seed: int) -> Decide:
        """The method with the rows or the tokenizer that it asks for."""
        takes = options_of(method)
        given = dict(options)
        if self.fresh and "data" in takes:
            raise UsageError(
                f"The method '{method}' looks at gradients, which say nothing before the model "
                "is trained for the task: run headcount train first."
            )
        if "data" in takes and self.task is not None and not {"data", "scores"} & set(given):
            given["data"] = self.rows(seed)
        if "inputs" in takes and self.inputs is not None:
            given.setdefault("inputs", self.inputs)
        if "tokenizer" in takes:
            given.setdefault("tokenizer", self.tokenizer)
        return prepare(self.model, method, **given)

    def cut(self, mask: Mask, seed: int) -> tuple[PreTrainedModel, dict[str, Any]]:
        """The model without the mask's dropped heads, repaired; and what was done to it."""
        small = remove(self.model, mask)
        done: dict[str, Any] = {}
        if self.recover:
            rows = self.rows(seed) if self.inputs is None else self.inputs
            done["recovered"] = [asdict(fit) for fit in recover_layers(small, self.model, rows)]
            named = "given" if self.inputs is not None or self.task is None else self.task.name
            done["recovered_on"] = named
        if self.finetune is not None:
            assert self.task is not None
            trained = finetune(
                small,
                self.task,
                options=replace(self.finetune, seed=seed),
                tokenizer=self.tokenizer,
                device=self.device,
                evaluation=False,
            )
            done["trained"] = {"steps": trained.steps, "seconds": round(trained.seconds, 1)}
        return small, done

    def score(self, model: PreTrainedModel) -> Evaluation:
        """A model on the task's evaluation split."""
        assert self.task is not None
        return evaluate(model, self.task, **self._scoring())

    def score_masks(self, masks: Sequence[Mask], seeds: Sequence[int]) -> list[Evaluation]:
        """Every mask after its repair; without one, all of them in one pass over the data."""
        assert self.task is not None
        if not self.repairs:
            unique = list(dict.fromkeys(masks))
            found = evaluate_many(self.model, self.task, unique, **self._scoring())
            by_mask = dict(zip(unique, found, strict=True))
            return [by_mask[mask] for mask in masks]
        each = zip(masks, seeds, strict=True)
        return [replace(self.score(self.cut(m, seed)[0]), mask=m) for m, seed in each]

    def score_full(self) -> Evaluation:
        """The model with all its heads; trained first where its task head is new."""
        if not self.fresh:
            return self.score(self.model)
        if self.finetune is None:
            raise UsageError("A new task head must be trained: pass --finetune.")
        return self.score(self.cut(Mask.full(self.layout), self.seed)[0])

    def _scoring(self) -> dict[str, Any]:
        return {
            "tokenizer": self.tokenizer,
            "split": self.split,
            "limit": self.limit,
            "seed": self.seed,
            "max_length": self.max_length,
            "draws": self.draws,
        }


def make_trial(model: PreTrainedModel, **settings: Any) -> Trial:
    """A trial of a model, its layout looked up."""
    return Trial(model=model, layout=layout_of_model(model), **settings)
