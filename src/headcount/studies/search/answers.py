"""The end of a search: the selected pruning made for good, its held-out estimate, its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel

from headcount.base.json_object import JsonDict
from headcount.costs.bench import time_removed
from headcount.costs.timed import BenchResult
from headcount.heads import Mask
from headcount.heads.uniform import levels, total_of
from headcount.models.hooks import evaluating
from headcount.pruning.methods import Method, name_of
from headcount.runs.cutting import used_rows
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note
from headcount.runs.prune import PruneOutput, prune
from headcount.runs.subject import Subject
from headcount.studies.search.bounds import Bound, MaxDrop
from headcount.studies.search.bracket import head_counts
from headcount.studies.search.estimate import SearchResult, sentence_of, unmet_sentence
from headcount.studies.search.judging import BoundVerdict, Cut, Judge, known, shown
from headcount.studies.search.options import SearchOptions
from headcount.studies.search.trials import Candidate
from headcount.tasks.guessing import against_guessing
from headcount.tasks.metrics import get_metric
from headcount.tasks.within import within
from headcount.training.evaluation import Evaluation
from headcount.training.scoring import Scoring

MODEL = "model"
"""The folder of the answer, inside the search's."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchRequest:
    """What a search is asked."""

    subject: Subject
    methods: tuple[Method, ...]
    bound: Bound | None
    like: Prune
    """What every pruning has in common, with the selection set."""
    held_out: Scoring
    """The held-out set."""
    search_options: SearchOptions
    seed: int
    command: str | None
    report: Callable[[str], None]
    note: Note
    notes: tuple[str, ...] = ()
    """What a reader must not miss, for `search.json`."""
    details: bool = False
    """Measure every head for the page, when there is an answer."""

    @property
    def trains_gates(self) -> bool:
        """Whether a method does."""
        return any(method.needs == "training" for method in self.methods)

    def counts(self, method: Method) -> list[int]:
        """Every number of heads below all that may stay, ascending."""
        layout = self.subject.layout
        if self.like.uniform:
            return [total_of(layout, level) for level in levels(layout)[:-1]]
        return head_counts(layout, getattr(method, "leave", 0) or 0)

    def cut(self, method: Method) -> Cut:
        """The prunings of a method, by how many heads stay and the seed."""
        heads, repair = len(self.subject.layout), self.like.repair
        gated = not repair and method.needs != "training"
        learning = self.like.learning if method.needs == "training" else None

        def wanted(kept: int, seed: int) -> Candidate:
            ratio = (heads - kept) / heads if heads else 0.0
            request = replace(
                self.like, method=method, ratio=ratio, baseline=0, gated=gated, learning=learning
            )
            return Candidate(label=name_of(method), options=request, seed=seed)

        return wanted


def answer_of(
    request: SearchRequest, judge: Judge, best: BoundVerdict, folder: Path | None, by: str = "loss"
) -> SearchResult:
    """The selected pruning as a model in its folder, and its held-out estimate."""
    method = next(item for item in request.methods if name_of(item) == best.method)
    wanted = request.cut(method)(best.kept, best.best)
    request.report(f"estimating what {best.kept} heads by {best.method} lose on the held-out set")
    pruned_model = pruned(request, wanted.options, best.best, folder)
    data = (
        common(request, judge)
        | held_out_estimate(request, judge, pruned_model)
        | measured(request, pruned_model)
    )
    data |= {"kept": best.kept, "method": best.method, "seed": best.best, "by": by}
    data["seeds"] = list(best.seeds)
    data["notes"] = list(dict.fromkeys([*data["notes"], *pruned_model.record.notes]))
    data["sentence"] = sentence_of(data)
    return SearchResult(data, pruned_model.model, pruned_model.mask)


def pruned(request: SearchRequest, cut: Prune, seed: int, folder: Path | None) -> PruneOutput:
    """The pruning made once more, as `headcount prune` would, with random prunings beside it."""
    out = None if folder is None else folder / MODEL
    return prune(
        request.subject,
        cut.method,
        cut.ratio,
        uniform=cut.uniform,
        repair=cut.repair,
        learning=cut.learning,
        calibration=cut.calibration,
        scoring=request.held_out,
        baseline=request.like.baseline,
        seed=seed,
        out=out,
        command=request.command,
        report=request.report,
        note=request.note,
    )


def common(request: SearchRequest, judge: Judge) -> JsonDict:
    """What every search says, whatever it found."""
    subject, task = request.subject, request.subject.need_task()
    tried = [
        {name: value for name, value in one.items() if name != "lost"}
        for verdict in judge.verdicts.values()
        for one in verdict.tried
    ]
    layout = subject.layout
    return {
        "model": subject.name,
        "task": task.name,
        "metric": task.metric,
        "higher_is_better": get_metric(task.metric).higher_is_better,
        "heads": len(layout),
        "bound": None if request.bound is None else str(request.bound),
        "confidence": request.search_options.confidence,
        "command": request.command,
        **_selection(request, judge),
        "sizes": sizes_of(judge),
        "tried": sorted(tried, key=lambda one: (one["method"], -one["kept"], one["seed"])),
        "notes": list(request.notes),
        "out": None,
    }


def sizes_of(judge: Judge) -> list[JsonDict]:
    """One row a number of heads: all its seeds together, and whether they are enough."""
    rows = [
        {
            "method": verdict.method,
            "kept": verdict.kept,
            "seeds": list(verdict.seeds),
            "rows": verdict.rows,
            "score": float(np.mean([one["score"] for one in verdict.tried])),
            "difference": shown(verdict.within.difference),
            "probability": None if judge.bound is None else known(verdict.within.probability),
            "accepted": None if judge.bound is None else verdict.accepted,
        }
        for verdict in judge.verdicts.values()
    ]
    return sorted(rows, key=lambda row: (row["method"], -row["kept"]))


def _selection(request: SearchRequest, judge: Judge) -> JsonDict:
    """All heads on the selection set, and the least that a pruned model may score there."""
    before, least = judge.trials.full, None
    if isinstance(request.bound, MaxDrop):
        least = before.score - judge.sign * request.bound.allowed(before.score)
    scores = {name: value for name, value in before.to_json().items() if name != "seconds"}
    return {"selection": scores, "least": least}


def selection_rows(request: SearchRequest, judge: Judge) -> JsonDict:
    """The selection set, as a record tells it."""
    rows, scoring = judge.trials.rows, request.like.scoring
    sampled = None if scoring.limit is None else scoring.seed
    return used_rows(f"{len(rows)} rows {rows.fingerprint[-16:]}", str(scoring.split), sampled)


def held_out_estimate(request: SearchRequest, judge: Judge, pruned_model: PruneOutput) -> JsonDict:
    """Before, after and the difference on the held-out set."""
    before, after = pruned_model.scored or scored_again(request, pruned_model)
    bound = request.bound if isinstance(request.bound, MaxDrop) else None
    limit = bound or MaxDrop(0.0, False)
    assert before.outcome is not None
    assert after.outcome is not None
    held_out = within(
        before.scores[0].metric,
        before.outcome,
        [after.outcome],
        limit.value,
        relative=limit.relative,
        bootstrap=request.held_out.bootstrap,
        seed=request.held_out.seed,
    )
    record = pruned_model.record.to_json()
    uses = ("calibration", "repair", *(["training"] if "training" in record["rows"] else []))
    rows = {name: record["rows"].get(name) for name in uses}
    rows |= {"selection": selection_rows(request, judge), "held_out": record["rows"]["evaluation"]}
    return {
        "ratio": pruned_model.mask.sparsity,
        "pattern": pruned_model.mask.pattern,
        "full": before.score,
        "full_interval": _ends(before),
        "score": after.score,
        "score_interval": _ends(after),
        "difference": shown(held_out.difference),
        "guess": guessed(request.held_out, full=before, score=after),
        "probability": None if bound is None else known(held_out.probability),
        "within_bound": held_out.within_bound if bound is not None else None,
        "random": record["scores"].get("random"),
        **({"free": free} if (free := record["scores"].get("free")) else {}),
        "parameters": record["parameters"],
        "rows": rows,
        "mask": pruned_model.mask.to_json(),
    }


def guessed(scoring: Scoring, **held_out: Evaluation | None) -> JsonDict | None:
    """What guessing scores on the same rows, and how far models are above it; None without."""
    data: JsonDict = dict.fromkeys(("full", "score"))
    for name, item in held_out.items():
        if item is None or item.outcome is None:
            continue
        held = against_guessing(
            item.scores[0].metric, item.outcome, bootstrap=scoring.bootstrap, seed=scoring.seed
        )
        if held is None:
            return None
        data |= {"value": held.guess, name: shown(held.difference) | {"better": held.better}}
    return data if "value" in data else None


def scored_again(
    request: SearchRequest, pruned_model: PruneOutput
) -> tuple[Evaluation, Evaluation]:
    """Both models once more, where an earlier call made the pruning and was killed after."""
    from headcount.runs.cutting import PruningRun

    cut = replace(request.like, scoring=request.held_out, baseline=0)
    cutting = PruningRun(subject=request.subject, options=cut, seed=request.seed, note=request.note)
    return cutting.score_full(), cutting.score(pruned_model.model)


def _ends(held_out: Evaluation) -> list[float]:
    return [held_out.scores[0].low, held_out.scores[0].high]


def measured(request: SearchRequest, pruned_model: PruneOutput) -> JsonDict:
    """The measured speed of the answer beside the whole model; None where it was not asked."""
    if not request.search_options.bench:
        return {"speedup": None, "timing": None}
    request.report("timing the pruned model beside the whole one")
    return speed_of(timed(request, pruned_model.mask, pruned_model.model))


def speed_of(held_out: BenchResult) -> JsonDict:
    """How many times as fast as the whole model, and how it was timed; every shape in `shapes`."""
    shapes = []
    for shape in held_out.shapes:
        dense, row = shape.rows
        speed, plain = row.speedup, shape.to_json()
        shapes.append(
            {name: plain[name] for name in ("batch", "length", "reads", "rounds", "precise")}
            | {
                "speedup": {"value": speed.median, "low": speed.low, "high": speed.high},
                "bound": row.bound,
                "milliseconds": {
                    "before": 1000 * dense.seconds.median,
                    "after": 1000 * row.seconds.median,
                },
            }
        )
    timing = {name: value for name, value in shapes[0].items() if name != "speedup"}
    timing |= {"device": held_out.device, "threads": held_out.threads, "shapes": shapes}
    return {"speedup": shapes[0]["speedup"], "timing": timing}


def timed(request: SearchRequest, mask: Mask, small: PreTrainedModel) -> BenchResult:
    """The smaller model, timed in turn with the whole one on inputs of every shape."""
    options, model = request.search_options, request.subject.model
    with evaluating(model), evaluating(small):
        return time_removed(
            model,
            {"": (mask, small)},
            batch=options.batch,
            length=options.length or mean_length(request),
            rounds=options.repeats,
            timing_seconds=options.timing_seconds,
            masked=False,
            seed=request.seed,
        )


def mean_length(request: SearchRequest) -> int:
    """Tokens of the rows of the held-out set, in the mean."""
    return max(2, round(float(np.mean(request.subject.scored(request.held_out).rows.lengths))))


def no_answer(request: SearchRequest, judge: Judge) -> SearchResult:
    """What there is to say where no pruning is within the loss: how close the nearest came."""
    nearest = max(
        judge.verdicts.values(),
        key=lambda item: (known(item.within.probability) or 0.0, item.kept),
        default=None,
    )
    data = nothing_found(request, judge) | {"by": "loss"}
    data["nearest"] = nearest and {
        "method": nearest.method,
        "kept": nearest.kept,
        "difference": shown(nearest.within.difference),
        "probability": known(nearest.within.probability),
    }
    return SearchResult(data | {"sentence": unmet_sentence(data)})


def nothing_found(request: SearchRequest, judge: Judge) -> JsonDict:
    """The fields of a search without an answer."""
    full = judge.trials.full
    missing = ("method", "seed", "score", "difference", "probability", "speedup")
    missing += ("parameters", "random")
    unused = dict.fromkeys(("calibration", "repair", "held_out"))
    return (
        common(request, judge)
        | dict.fromkeys(missing)
        | {
            "kept": len(request.subject.layout),
            "ratio": 0.0,
            "pattern": Mask.full(request.subject.layout).pattern,
            "full": full.score,
            "guess": guessed(request.like.scoring, full=full),
            "within_bound": False,
            "rows": unused | {"selection": selection_rows(request, judge)},
        }
    )
