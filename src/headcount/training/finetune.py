"""Train a model on a task: `hc.finetune(model, "sst2", out="run")`.

Works on dense, gated and removed models alike; the model is trained in place. With a folder the
run survives a crash: the same call again goes on from the last checkpoint.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError, in_words
from headcount.base.files import read_json, require_fields, write_json
from headcount.base.header import header
from headcount.base.text import line
from headcount.models.find import unwrap
from headcount.models.fingerprint import versions
from headcount.models.weights import adopt_pooler, require_weights
from headcount.tasks import Task, open_task
from headcount.tasks.encoding import rows_fingerprint
from headcount.tasks.loading import load_for_task
from headcount.tasks.opening import model_for
from headcount.tasks.task import Limit
from headcount.training import checkpoints
from headcount.training.curve import FILE as CURVE
from headcount.training.curve import Point, read_curve
from headcount.training.evaluate import RowScorer
from headcount.training.evaluation import Evaluation
from headcount.training.logging import Logging
from headcount.training.options import TrainOptions
from headcount.training.runs import save_model
from headcount.training.scoring import Scoring
from headcount.training.session import Report, Session

ADVICE = "Try a lower learning rate, a warm-up or --precision fp32."


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """The result of a training run."""

    model: PreTrainedModel = field(repr=False)
    steps: int
    rows: int
    """Rows trained on."""
    data: str = ""
    """A fingerprint of them."""
    seconds: float
    curve: tuple[Point, ...] = field(repr=False)
    evaluation: Evaluation | None = None
    resumed_from: int | None = None
    """The step a killed run went on from; None when it ran in one go."""
    out: Path | None = None

    def __repr__(self) -> str:
        done = f"{self.steps} steps on {self.rows} rows in {self.seconds:.1f} s"
        scored = f"; {self.evaluation.scores[0]}" if self.evaluation else ""
        return line(f"TrainingResult({done}{scored})")

    def to_json(self) -> dict[str, object]:
        """A plain dict, without the weights."""
        return {
            "steps": self.steps,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "resumed_from": self.resumed_from,
            "evaluation": self.evaluation.to_json() if self.evaluation else None,
        }

    def save(self, folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
        """The model, ready to be loaded with its tokenizer, or its weights; then the result."""
        if self.out is not None:
            save_model(self.model, tokenizer, folder)
        else:
            checkpoints.save_weights(self.model, folder)
        plain = {**header("training"), **self.to_json(), "versions": versions()}
        write_json(folder / checkpoints.RESULT, plain)


def finetune(
    model: PreTrainedModel | str | os.PathLike[str],
    task: str | Task,
    *,
    options: TrainOptions | None = None,
    out: str | Path | None = None,
    work: str | Path | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    limit: Limit = None,
    evaluation: bool = True,
    curve_scores: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
    logging: Logging | None = None,
) -> TrainingResult:
    """Train `model` in place on the task's train split, then score it on its dev split.

    A model that is named is loaded with a head for the task, a new one where it has none.
    `out` is a folder for the finished model, in which a killed run goes on. `work`, in its place,
    is one for the caller to delete: a killed run goes on there, and a finished one is given again,
    but there is no model to load. `limit` trains on a seeded sample of the rows. `curve_scores`
    adds the dev score after every epoch to the learning curve. `report` is called with (step, all
    steps, newest point). `logging` names the trackers to log to.
    """
    if out is not None and work is not None:
        raise UsageError("Pass out or work, not both: a run has one folder.")
    task, options = open_task(task), options or TrainOptions()
    if isinstance(model, str | os.PathLike):
        model = load_for_task(model, task, seed=options.seed)
    else:
        model_for(model, "hc.train", task)
    session = Session(model, task, tokenizer, options, limit=limit, logging=logging)
    home = work if out is None else out
    settings: dict[str, object] = {}
    if home is not None:
        scored = {"evaluation": evaluation, "curve_scores": curve_scores}
        settings = {**session.settings(scored=any(scored.values())), **scored}
    anew = "delete it to start over" if out is None else "--overwrite to start over"
    with session.opened(home, settings, device=device, overwrite=overwrite, anew=anew):
        if session.is_done:
            return finished(session, model_wanted=out is not None)
        scoring = Scoring(max_length=session.options.max_length, seed=session.options.seed)
        scorer = RowScorer(model, session.task, session.tokenizer, scoring)
        session.set_up(score=scorer.point if curve_scores else None, report=report)
        session.train(advice=ADVICE)
        wanted = evaluation and session.is_first and session.task.evaluation != "train"
        trained = TrainingResult(
            model=model,
            steps=session.trainer.state.global_step,
            rows=len(session.encoded),
            data=rows_fingerprint(session.encoded),
            seconds=session.seconds,
            curve=tuple(session.curve.points),
            evaluation=scorer.score() if wanted else None,
            resumed_from=session.resumed_from,
            out=None if out is None else session.folder,
        )
        if trained.evaluation is not None:
            session.log({score.metric: score.value for score in trained.evaluation.scores})
        session.finish(lambda folder: trained.save(folder, session.tokenizer))
        return trained


def finished(session: Session, *, model_wanted: bool) -> TrainingResult:
    """The result of a run that was done before, its weights loaded into the model."""
    folder, model = session.folder, session.model
    assert folder is not None
    result = read_json(folder / checkpoints.RESULT, "result of a run")
    types = {"steps": int, "seconds": float, "resumed_from": int | None, "evaluation": Any}
    require_fields(result, types, f"{folder / checkpoints.RESULT} is no result of a run")
    if model_wanted:
        _load_saved(unwrap(model), folder)
    else:
        checkpoints.load_weights(model, folder)
    evaluation = result["evaluation"]
    return TrainingResult(
        model=model.eval(),
        steps=result["steps"],
        rows=len(session.encoded),
        data=rows_fingerprint(session.encoded),
        seconds=result["seconds"],
        curve=tuple(read_curve(folder / CURVE)),
        evaluation=Evaluation.from_json(evaluation) if evaluation else None,
        resumed_from=result["resumed_from"],
        out=folder if model_wanted else None,
    )


def _load_saved(model: Any, folder: Path) -> None:
    """The weights of a model that was saved in a folder; its class knows their names there."""
    try:
        saved, report = type(model).from_pretrained(
            folder, dtype=model.dtype, output_loading_info=True, use_safetensors=True
        )
        require_weights(str(folder), saved, report, new_head=False)
        adopt_pooler(saved, model)
        model.load_state_dict(saved.state_dict())
    except (RuntimeError, OSError, ValueError) as error:
        raise UsageError(
            f"{folder} has other weights than the model: {in_words(error)}."
        ) from error
