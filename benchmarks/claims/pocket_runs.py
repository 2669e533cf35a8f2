"""The runs behind `pocket_claims.py`: the pocket BERT cut in many ways on the pocket tasks.

Every run is one line of a file; lines that are there are not run again. Three kinds:

- `train`: the pre-trained model is cut, then fine-tuned (papers A, B, D5) with `--preset pocket
  --like-lengths`;
- `again`: the fine-tuned model is cut, then fine-tuned for one more epoch;
- `none`, `recover`: the fine-tuned model is cut and only scored, or recovered and scored (D2, E3).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headcount.changes.weights import weight_change
from headcount.heads import Mask
from headcount.models.load import load
from headcount.models.remove import remove
from headcount.pruning.methods import Decision, make_method
from headcount.pruning.select import prepare
from headcount.recovery.options import Recovery
from headcount.runs.asked import Prune, Repair
from headcount.runs.cutting import Cutting
from headcount.runs.subject import Subject, make_subject
from headcount.tasks import open_task
from headcount.tasks.loading import load_for_task
from headcount.training.finetune import finetune
from headcount.training.options import PRESETS

TASKS = (
    "pocket-acceptability",
    "pocket-sentiment",
    "pocket-paraphrase",
    "pocket-similarity",
    "pocket-entailment",
)
POCKET = PRESETS["pocket"]
TRAIN = replace(POCKET, like_lengths=True)
RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LAYERS = (
    *("top:1", "bottom:1", "top:2", "bottom:2", "top:3", "bottom:3", "even", "odd"),
    *("middle:2", "top:1+bottom:1", "middle:4", "top:2+bottom:2"),
)
METHODS = {
    "random": ("random", {}),
    "cluster": ("cluster", {}),
    "importance": ("importance", {"normalize": "none"}),
    "importance l1": ("importance", {"normalize": "l1"}),
    "importance l2": ("importance", {"normalize": "l2"}),
    "surgeon": ("surgeon", {}),
}

FIXED = {
    "pattern": ("pattern", {"keep": "444444"}),
    "layers even": ("layers", {"empty": "even"}),
    "layers odd": ("layers", {"empty": "odd"}),
}
"""Half the heads, by methods that take no ratio."""

RETRAINED = ("random", "cluster", "importance", "surgeon")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One cut and its score."""

    task: str
    repair: str  # train, again, none, recover
    method: str  # as in METHODS; `full`; `layers top:2`; `freeze 1`
    ratio: float
    seed: int
    score: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    pattern: str = ""
    spread: float = float("nan")  # of the mean weight change between layers, in fine-tuning

    @property
    def key(self) -> tuple[Any, ...]:
        return self.task, self.repair, self.method, self.ratio, self.seed


class Kept:
    """Finished runs in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[tuple[Any, ...], Run] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                run = Run(**json.loads(line))
                self.runs[run.key] = run

    def add(self, run: Run) -> None:
        self.runs[run.key] = run
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(run)) + "\n")


def trained_runs(task: str, seeds: int) -> Iterator[Run]:
    """What is fine-tuned from the pre-trained model, but for whole layers."""
    cuts = [
        *(("full", 0.0), ("random", 0.5), ("cluster", 0.5), ("cluster", 0.75), ("cluster", 0.85)),
        ("freeze 1", 0.0),
    ]
    for seed in range(seeds):
        for method, ratio in cuts:
            yield Run(task=task, repair="train", method=method, ratio=ratio, seed=seed)


def layer_runs(task: str, seeds: int) -> Iterator[Run]:
    """The same without the heads of whole layers, or with few or most of them gone."""
    for seed in range(seeds):
        yield Run(task=task, repair="train", method="random", ratio=0.1, seed=seed)
        yield Run(task=task, repair="train", method="random", ratio=0.9, seed=seed)
        for which in LAYERS:
            yield Run(task=task, repair="train", method=f"layers {which}", ratio=0.0, seed=seed)


def train_one(run: Run) -> Run:
    """Cut the pre-trained model, fine-tune it, score it."""
    task = open_task(run.task)
    model = load_for_task("pocket", task, seed=run.seed)
    options = replace(TRAIN, seed=run.seed)
    if run.method.startswith("freeze"):
        options = replace(options, freeze=int(run.method.split()[1]))
    subject = make_subject(model, task)
    subject.fresh = True
    name, own = METHODS.get(run.method, ("random", {}))
    cutting = asked(subject, name, own, run, Repair(train=options))
    if run.method.startswith("layers"):
        mask = prepare(model, "layers", empty=run.method.split()[1])(None, 0)
    else:
        mask = cutting.decide().mask
    return scored(run, cutting, mask)


def asked(
    subject: Subject, method: str, options: dict[str, Any], run: Run, repair: Repair
) -> Cutting:
    """The cut of a run."""
    wanted = Prune(method=make_method(method, options), ratio=run.ratio, repair=repair)
    return Cutting(subject=subject, asked=wanted, seed=run.seed)


def scored(run: Run, cutting: Cutting, mask: Mask) -> Run:
    small = cutting.cut(Decision(mask=mask))[0]
    found = cutting.score(small).scores[0]
    spread = float("nan")
    if run.repair == "train" and not run.method.startswith("freeze"):
        spread = weight_change(remove(cutting.subject.model, mask), small).spread["all"]
    return replace(
        run,
        score=found.value,
        low=found.low,
        high=found.high,
        pattern=mask.pattern,
        spread=spread,
    )


def fine_tuned(task: str, folder: Path) -> Any:
    """The model fine-tuned on a task, from its folder where it is there."""
    out = folder / task
    if not (out / "model.safetensors").exists():
        model = load_for_task("pocket", open_task(task))
        finetune(model, task, options=POCKET, out=out)
    return load(out)


def cut_runs(task: str, folder: Path, seeds: int, kept: Kept) -> None:
    """What is cut from the fine-tuned model: scored as it is, recovered, fine-tuned again."""
    subject = make_subject(fine_tuned(task, folder), open_task(task))
    full = Run(task=task, repair="none", method="full", ratio=0.0, seed=0)
    if full.key not in kept.runs:
        mask = Mask.full(subject.layout)
        kept.add(scored(full, asked(subject, "random", {}, full, Repair()), mask))
    for name, (method, options) in METHODS.items():
        wanted = [
            Run(task=task, repair="none", method=name, ratio=ratio, seed=seed)
            for seed in range(seeds)
            for ratio in RATIOS
        ]
        missing = [run for run in wanted if run.key not in kept.runs]
        prepared: dict[Any, Any] = {}  # gradients of one sample serve all ratios
        one = make_method(method, options)
        cuts = [
            Cutting(
                subject=subject, asked=Prune(method=one, ratio=run.ratio), seed=run.seed,
                prepared=prepared,
            )
            for run in missing
        ]  # fmt: skip
        masks = [cutting.decide().mask for cutting in cuts]
        seeds_of = [run.seed for run in missing]
        found = cuts[0].score_masks(masks, seeds_of) if missing else []
        for run, mask, each in zip(missing, masks, found, strict=True):
            first = each.scores[0]
            value = {"score": first.value, "low": first.low, "high": first.high}
            kept.add(replace(run, **value, pattern=mask.pattern))
        for seed in range(seeds):
            for repair, more in (
                ("recover", Repair(recover=Recovery())),
                ("again", Repair(train=replace(POCKET, epochs=1, seed=seed))),
            ):
                run = Run(task=task, repair=repair, method=name, ratio=0.5, seed=seed)
                if run.key not in kept.runs and (repair == "recover" or name in RETRAINED):
                    cutting = asked(subject, method, options, run, more)
                    kept.add(scored(run, cutting, cutting.decide().mask))


def fixed_runs(task: str, folder: Path, seeds: int, kept: Kept) -> None:
    """The fine-tuned model without the half of its heads that is named: as it is, recovered."""
    subject = make_subject(fine_tuned(task, folder), open_task(task))
    for name, (method, options) in FIXED.items():
        for seed in range(seeds):
            for repair in ("none", "recover"):
                run = Run(task=task, repair=repair, method=name, ratio=0.5, seed=seed)
                if run.key not in kept.runs:
                    more = Repair(recover=Recovery() if repair == "recover" else None)
                    cutting = asked(subject, method, options, run, more)
                    mask = prepare(subject.model, method, **options)(None, seed)
                    kept.add(scored(run, cutting, mask))


def make_cuts(task: str, keep: Path, seeds: int) -> str:
    """All runs of a task that start from the fine-tuned model; what is finished stays."""
    started = time.monotonic()
    kept = Kept(keep / f"{task}.jsonl")
    cut_runs(task, keep, seeds, kept)
    fixed_runs(task, keep, seeds, kept)
    return f"{task}: {len(kept.runs)} runs, {time.monotonic() - started:.0f} s"


def make_trained(task: str, keep: Path, seeds: int, layers: bool) -> str:
    """All runs of a task that start from the pre-trained model."""
    started = time.monotonic()
    kept = Kept(keep / f"{task}.jsonl")
    for run in layer_runs(task, seeds) if layers else trained_runs(task, seeds):
        if run.key not in kept.runs:
            kept.add(train_one(run))
    return f"{task}: {len(kept.runs)} runs, {time.monotonic() - started:.0f} s"
