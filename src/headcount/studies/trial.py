"""One model on one task, cut in any way: what `prune` and `curve` share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.heads import Layout, Mask
from headcount.learned.result import Learned, examples_seen
from headcount.models.find import layout as layout_of_model
from headcount.models.remove import remove
from headcount.pruning.methods import Decide, Decision, Given, make_method, needs_of
from headcount.recovery.recover import recover_layers
from headcount.studies.budget import Budget, Counted
from headcount.studies.notes import Note, few_tokens, log, seen_rows
from headcount.tasks import Task
from headcount.tasks.encoding import Encoded, examples_fingerprint, rows_fingerprint
from headcount.tasks.metrics import Difference
from headcount.tasks.rows import labelled_rows, split_to_look_at
from headcount.training.evaluate import evaluate
from headcount.training.evaluation import Evaluation, difference
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from headcount.training.setting import Training

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
    learning: TrainOptions | None = None
    """How methods that train their gates do it, before the cut. None takes `finetune`, and then
    does not train a second time: so every method of a curve has the same training."""
    work: Path | None = None
    """Where training can be resumed, before the cut or after it; None keeps nothing."""
    budget: Budget = field(default_factory=Budget)
    """What this trial's methods and cuts have seen so far."""
    used: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    """decided, repaired or trained -> the rows that were looked at for it, for the record."""
    note: Note = log
    """Called with what must not be missed."""
    told: set[str] = field(default_factory=set, repr=False)
    """Kinds of notes that were given: one of each is enough."""
    prints: dict[str, str] = field(default_factory=dict, repr=False)
    """Fingerprints of splits that were asked for before."""

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

    @property
    def looked_at(self) -> str:
        """The split that methods, recovery and training take their rows from."""
        assert self.task is not None
        return split_to_look_at(self.task)

    def rows_of(self, split: str) -> str:
        """How many rows a split has, and a short name for exactly these."""
        assert self.task is not None
        if split not in self.prints:
            self.prints[split] = examples_fingerprint(self.task.load(split))
        return self.prints[split]

    def rows(self, seed: int, use: str) -> Encoded:
        """Labelled rows for what looks at data, drawn anew for every seed; `use` is for what."""
        if self.task is None:
            raise UsageError("There is no task to take rows from: pass one.")
        rows = labelled_rows(
            self.model,
            self.task,
            self.tokenizer,
            limit=self.samples,
            seed=seed,
            max_length=self.max_length,
        )
        self.used[use] = used_rows(rows_fingerprint(rows), self.looked_at, seed)
        return Counted.of(rows, self.budget)

    def prepare(self, name: str, options: Mapping[str, Any], seed: int) -> Decide:
        """The method with the rows or the tokenizer that it asks for."""
        method = make_method(name, options)
        if self.fresh and method.needs in ("rows", "training"):
            raise UsageError(
                f"The method '{name}' looks at gradients, which say nothing before the model "
                "is trained for the task: run headcount train first."
            )
        if method.needs == "training":
            return method.prepare(self.model, Given(training=self._training(name)))
        data = None
        if method.needs == "rows" and self.task is not None and not options.get("scores"):
            data = self.rows(seed, "decided")
        if method.needs == "inputs" and self.inputs is not None:
            self.used.setdefault("decided", given_rows(self.inputs))
        given = Given(data=data, inputs=self.inputs, tokenizer=self.tokenizer)
        return method.prepare(self.model, given)

    def _training(self, name: str) -> Training:
        """What a method that trains gates is given."""
        train = self.learning or self.finetune
        if self.task is None:
            raise UsageError(f"The method '{name}' trains gates on a task: pass --task.")
        if train is None:
            raise UsageError(f"The method '{name}' trains gates: pass --finetune.")
        if self.recover:
            raise UsageError(
                f"The method '{name}' trains the weights with its gates, so there is no full "
                "model to recover towards: leave out --recover."
            )
        return Training(
            task=self.task, tokenizer=self.tokenizer, options=train, device=self.device,
            work=self.work,
        )  # fmt: skip

    def cut(self, decision: Decision, seed: int) -> tuple[PreTrainedModel, dict[str, Any]]:
        """The model without the heads that go, repaired; and what was done to it."""
        mask = decision.mask
        found: Learned | None = decision.learned
        small = remove(decision.model or self.model, mask)
        if found is not None:
            self.budget.train(examples=found.examples, steps=found.steps, rows=found.rows)
            self.used["decided"] = used_rows(self.rows_of("train"), "train")
        done: dict[str, Any] = {} if found is None else {"learned": found.to_json()}
        if self.recover:
            if self.inputs is not None:
                self.used["repaired"] = given_rows(self.inputs)
            rows = self.rows(seed, "repaired") if self.inputs is None else self.inputs
            fits = recover_layers(small, self.model, rows)
            done["recovered"] = [asdict(fit) for fit in fits]
            self._tell("tokens", few_tokens(fits))
            named = "given" if self.inputs is not None or self.task is None else self.task.name
            done["recovered_on"] = named
        if self.finetune is not None and (found is None or self.learning is not None):
            done["trained"] = self._train(small, self.finetune, mask, seed)
        return small, done

    def _tell(self, kind: str, text: str | None) -> None:
        if text is not None and kind not in self.told:
            self.told.add(kind)
            self.note(text)

    def _train(
        self, small: PreTrainedModel, options: TrainOptions, mask: Mask, seed: int
    ) -> dict[str, Any]:
        """Train after a cut, where there is a folder to work in so that it can be resumed."""
        assert self.task is not None
        name = hashlib.blake2b(str(mask.to_json()).encode(), digest_size=6).hexdigest()
        trained = finetune(
            small,
            self.task,
            options=replace(options, seed=seed),
            work=None if self.work is None else self.work / f"finetune-{name}-{seed}",
            tokenizer=self.tokenizer,
            device=self.device,
            evaluation=False,
        )
        self.used["trained"] = used_rows(self.rows_of("train"), "train")
        seen = examples_seen(trained.rows, options.batch_size, trained.steps)
        self.budget.train(examples=seen, steps=trained.steps, rows=trained.rows)
        return {
            "steps": trained.steps,
            "examples": seen,
            "seconds": round(trained.seconds, 1),
            "resumed_from": trained.resumed_from,
        }

    def score(self, model: PreTrainedModel) -> Evaluation:
        """A model on the task's evaluation split."""
        assert self.task is not None
        return evaluate(model, self.task, tokenizer=self.tokenizer, scoring=self._scoring())

    def score_masks(self, masks: Sequence[Mask], seeds: Sequence[int]) -> list[Evaluation]:
        """As `score_decisions`, of masks alone."""
        return self.score_decisions([Decision(mask=mask) for mask in masks], seeds)

    def score_decisions(
        self, decided: Sequence[Decision], seeds: Sequence[int]
    ) -> list[Evaluation]:
        """Every cut after its repair; without one, all of them in one pass over the data."""
        masks = [decision.mask for decision in decided]
        assert self.task is not None
        if not self.repairs:
            unique = list(dict.fromkeys(masks))
            how = {"tokenizer": self.tokenizer, "scoring": self._scoring()}
            found = evaluate(self.model, self.task, unique, **how)
            by_mask = dict(zip(unique, found, strict=True))
            return [by_mask[mask] for mask in masks]
        each = zip(decided, seeds, strict=True)
        return [replace(self.score(self.cut(d, seed)[0]), mask=d.mask) for d, seed in each]

    def tell_seen(self, methods: Iterable[str]) -> None:
        """Note where these methods, or what comes after the cut, look at the rows scored."""
        assert self.task is not None
        looks = self.finetune is not None or (self.recover and self.inputs is None)
        if looks or any(needs_of(each) in ("rows", "training") for each in methods):
            scored = {"split": self.split or self.task.evaluation}
            looked_at = {"split": self.looked_at}
            self._tell("seen", seen_rows({"decided": looked_at, "scored": scored}))

    def difference(self, before: Evaluation, after: Evaluation) -> Difference:
        """What changed between two models on the rows that are scored."""
        return difference(before, after, draws=self.draws, seed=self.seed)

    def score_full(self) -> Evaluation:
        """The model with all its heads; trained first where its task head is new."""
        if not self.fresh:
            return self.score(self.model)
        if self.finetune is None:
            raise UsageError("A new task head must be trained: pass --finetune.")
        return self.score(self.cut(Decision(mask=Mask.full(self.layout)), self.seed)[0])

    def _scoring(self) -> Scoring:
        return Scoring(
            split=self.split,
            limit=self.limit,
            seed=self.seed,
            max_length=self.max_length,
            draws=self.draws,
        )


def used_rows(fingerprint: str, split: str, seed: int | None = None) -> dict[str, Any]:
    """Rows as a record tells them; `seed` is that of the sample, None for all of the split.

    >>> used_rows("512 rows 0a1b", "train", 0)
    {'split': 'train', 'n': 512, 'seed': 0, 'fingerprint': '0a1b'}
    """
    count, _, name = fingerprint.split(" ")
    return {"split": split, "n": int(count), "seed": seed, "fingerprint": name}


def given_rows(inputs: Any) -> dict[str, Any]:
    """Rows that were given with the call, as a record tells them."""
    if isinstance(inputs, Encoded):
        return used_rows(rows_fingerprint(inputs), "given")
    count = len(inputs) if hasattr(inputs, "__len__") else None
    return {"split": "given", "n": count, "seed": None, "fingerprint": None}


def make_trial(model: PreTrainedModel, **settings: Any) -> Trial:
    """A trial of a model, its layout looked up."""
    return Trial(model=model, layout=layout_of_model(model), **settings)
