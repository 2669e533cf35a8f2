"""Train gates and weights together on a task, and come out with a mask and trained weights.

    gates = learn(model, "mrpc", StraightThrough(), ratio=0.5, train=TrainOptions(epochs=2))
    small = hc.remove(gates.model, gates.mask)

The model given stays as it is: a copy is trained. With a folder the run survives a crash: the
same call again goes on from the last checkpoint.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_type_hints

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.base.files import read_json, require_fields, write_json
from headcount.base.header import header
from headcount.base.options import to_plain
from headcount.base.text import line
from headcount.heads import Layout, Mask, Scores
from headcount.heads.choose import keep_best
from headcount.learned.gap import gap_measure, score_measure
from headcount.learned.keeper import AllClosedError, Keeper
from headcount.learned.methods import GateOptions
from headcount.learned.trace import FILE, Trace, load_trace
from headcount.models.find import layout as layout_of_model
from headcount.models.fingerprint import versions
from headcount.tasks import Task
from headcount.training import checkpoints
from headcount.training.logging import Logging
from headcount.training.options import TrainOptions
from headcount.training.order import examples_seen
from headcount.training.session import Report, Session

ADVICE = "Try a lower learning rate of the weights or of the gates, or a warm-up."


def learn(
    model: PreTrainedModel,
    task: str | Task,
    gates: GateOptions,
    ratio: float | None = None,
    *,
    train: TrainOptions | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    out: str | Path | None = None,
    gap: int = 3,
    report: Report | None = None,
    logging: Logging | None = None,
) -> LearnedGates:
    """Train a copy of `model` with gates on the task's train split.

    `ratio` is met exactly; without it μ and the gates' learning rate decide how many heads stay.
    The seed of `train` is also that of the gates. `gap` is the number of draws behind the
    training score of noisy gates; 0 does not measure the gap. `logging` names the trackers
    to log to.
    """
    options = train or TrainOptions()
    layout = layout_of_model(model)
    keep = None if ratio is None else reachable(layout, gates.name, ratio)
    session = Session(copy.deepcopy(model), task, tokenizer, options, logging=logging)
    measured = (session.model, session.task, session.tokenizer, options)
    score = score_measure(*measured, rows=gates.score_rows) if gates.score_points else None
    about = {
        "method": gates.name,
        "ratio": ratio,
        **to_plain(gates),
        **session.settings(scored=bool(gap or gates.score_points)),
        "gap_draws": gap,
    }
    with session.opened(out, about, device=device):
        if session.folder is not None and session.is_done:
            return finished(session.model, session.folder)
        keeper = Keeper(
            layout,
            gates,
            keep=keep,
            seed=options.seed,
            device=session.arguments.device,
            measure_gap=gap_measure(*measured, draws=gap) if gap else None,
            measure_score=score,
        )
        keeper.trace.about = {key: value for key, value in about.items() if key != "config"}
        session.set_up(callbacks=[keeper], report=report, numbers=keeper.numbers)
        keeper.scale = session.loss_scale or keeper.scale
        _train(session, keeper)
        learned = _learned(session, keeper)
        session.finish(learned.save)
        return learned


def _train(session: Session, keeper: Keeper) -> None:
    try:
        session.train(advice=ADVICE, attached=keeper.attached(session.model))
    except AllClosedError as error:
        error.model = session.model
        if session.folder is not None and session.is_first:
            write_json(session.folder / "last-open.json", error.mask.to_json())
        raise


def _learned(session: Session, keeper: Keeper) -> LearnedGates:
    """What a session came to, its trace completed."""
    assert keeper.mask is not None
    keeper.trace.about["route"] = keeper.route
    keeper.trace.add_losses(session.curve.points)
    steps, rows = session.trainer.state.global_step, len(session.encoded)
    return LearnedGates(
        model=session.model,
        mask=keeper.mask,
        trace=keeper.trace,
        steps=steps,
        rows=rows,
        examples=examples_seen(rows, session.options.batch_size, steps),
        seconds=session.seconds,
        route=keeper.route,
        gap=keeper.gap,
        resumed_from=session.resumed_from,
    )


def reachable(layout: Layout, method: str, ratio: float) -> int:
    """How many heads stay; refused before training where it cannot be exactly so many."""
    keep = layout.kept_at(ratio)
    if not keep:
        raise UsageError(
            f"A ratio of {ratio} leaves no head, so '{method}' would have no open gate to learn "
            "with: ask for less, or remove all heads with the method 'layers'."
        )
    keep_best(Scores(layout, (0.0,) * len(layout)), keep)
    return keep


MASK = "mask.json"
NUMBERS = ("steps", "rows", "examples", "seconds", "route", "gap", "resumed_from")


@dataclass(frozen=True, kw_only=True)
class LearnedGates:
    """The heads that stay, and the weights trained with them."""

    model: PreTrainedModel = field(repr=False)
    """All heads are still there; remove the mask's dropped ones."""
    mask: Mask
    trace: Trace = field(repr=False)
    steps: int
    rows: int
    examples: int
    """Rows seen, each as often as it was."""
    seconds: float
    route: dict[str, object]
    """How the final number of heads came about."""
    gap: dict[str, float | str] | None = None
    """Score with training gates minus score with test gates, at the end of the search."""
    resumed_from: int | None = None

    def __repr__(self) -> str:
        done = f"{self.steps} steps on {self.rows} rows in {self.seconds:.1f} s"
        keeps = f"keeps {len(self.mask)} of {len(self.mask.layout)} heads"
        return line(f"LearnedGates({self.mask!r}; {done})", f"LearnedGates({keeps}; {done})")

    def to_json(self) -> dict[str, object]:
        """A plain dict, without the weights."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return {**numbers, "seconds": round(self.seconds, 3), **self.trace.summary()}

    def save(self, folder: Path) -> None:
        """Weights, mask and trace, then the result."""
        checkpoints.save_weights(self.model, folder)
        write_json(folder / MASK, header("mask") | self.mask.to_json())
        self.trace.save(folder / FILE)
        write_json(folder / checkpoints.RESULT, {**self.to_json(), "versions": versions()})


def finished(model: PreTrainedModel, folder: Path) -> LearnedGates:
    """A run that was done before, its weights loaded into the model."""
    checkpoints.load_weights(model, folder)
    result = read_json(folder / checkpoints.RESULT, "result of a run")
    mask = Mask.from_json(read_json(folder / MASK, "mask"))
    types = get_type_hints(LearnedGates)
    require_fields(
        result,
        {name: types[name] for name in NUMBERS},
        f"{folder / checkpoints.RESULT} is no result",
    )
    numbers = {name: result[name] for name in NUMBERS}
    return LearnedGates(model=model.eval(), mask=mask, trace=load_trace(folder), **numbers)
