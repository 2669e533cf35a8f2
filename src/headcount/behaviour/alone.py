"""What the removal of each head alone costs a task, before and after repair.

Every head is closed by itself, all in one pass over the scored rows (`training/forward.py`). The
repair is recovery of its own layer: the output projection's other rows are solved again on the
inputs that roles were measured on. That is the same as putting the head's substitute, which is made
of the other heads' outputs, in its place; so no weight is changed. Differences are paired, row by
row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.behaviour.replaceable import LayerSolution
from headcount.behaviour.result import Quantity, quantity
from headcount.heads import Layout, Mask
from headcount.models.linear import read_rows
from headcount.models.sites import Site
from headcount.models.watch import watching
from headcount.tasks import Task
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import processor_of
from headcount.tasks.metrics import Difference
from headcount.tasks.rows import ScoredRows
from headcount.training.evaluate import evaluate_rows
from headcount.training.evaluation import Evaluation, difference
from headcount.training.scored import scored_rows
from headcount.training.scoring import Scoring

NORMAL = 2 * 1.959964
"""Standard errors in a normal 95 % interval."""


def cost_alone(
    model: PreTrainedModel,
    task: Task,
    layout: Layout,
    solved: Mapping[tuple[str, int], LayerSolution],
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    scoring: Scoring = Scoring(),  # noqa: B008
    progress: Callable[..., object] | None = None,
) -> dict[str, Quantity]:
    """Changes of loss and score without each head, as it is and repaired.

    Texts that a model writes have a score and no loss.
    """
    tokenizer = tokenizer if tokenizer is not None else processor_of(model)
    rows = scored_rows(model, task, tokenizer, scoring)
    full = Mask.full(layout)
    masks = [full, *(full.drop([head]) for head in layout)]
    changes: dict[str, Quantity] = {}
    for ending, text in (("", "without each head"), ("_repaired", "without each head, repaired")):

        def report(done: int, total: int, text: str = text) -> None:
            if progress is not None:
                progress(done, total, f", {text}")

        with substituting(model, solved) if ending else nullcontext():
            scores = evaluate_rows(
                model, rows, masks, tokenizer=tokenizer, scoring=replace(scoring, bootstrap=0),
                report=report,
            )  # fmt: skip
        lost = [difference(scores[0], score, bootstrap=scoring.bootstrap) for score in scores[1:]]
        changes |= _changes(rows, scores, lost, ending)
    return changes


@contextmanager
def substituting(
    model: PreTrainedModel, solved: Mapping[tuple[str, int], LayerSolution]
) -> Generator[None]:
    """Inside, the substitute of a head writes in its place wherever its gate is closed.

    A closed head is seen by its output, which is 0 in all of an input.
    """
    device, dtype = next(model.parameters()).device, model.dtype
    parts: dict[tuple[str, int], tuple[Tensor, Tensor]] = {}
    for layer, solution in solved.items():
        rows = read_rows(model.get_submodule(solution.site.out))
        parts[layer] = solution.substitutes.to(device, dtype), rows.to(device, dtype)

    def write(site: Site, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        z, (substitutes, rows) = args[0], parts[site.stack, site.layer]
        closed = (z.unflatten(-1, (site.heads, -1)) == 0).all(-1)  # (input, token, head)
        closed = closed.all(1) if closed.ndim == 3 else closed
        size = site.heads * site.head_dim
        for head in closed.any(0).nonzero()[:, 0].tolist():
            inputs, part = closed[:, head], slice(head * site.head_dim, (head + 1) * site.head_dim)
            written = z[inputs] @ substitutes[:size, part]
            if len(substitutes) > size:
                written = written + substitutes[size, part]
            output = output.clone()
            output[inputs] += written @ rows[part]
        return output

    sites = [solution.site for solution in solved.values()]
    with watching(model, [(site, out) for site in sites for _, out in site.places], write):
        yield


def _changes(
    rows: ScoredRows, scores: Sequence[Evaluation], lost: Sequence[Difference], ending: str
) -> dict[str, Quantity]:
    """Score and loss of every evaluation but the first, less the first one's."""
    low, high = (np.array([getattr(loss, end) for loss in lost]) for end in ("low", "high"))
    name = f"score_alone{ending}"
    # the interval is the bootstrap's; the error is that of a normal interval as wide
    values, error = [loss.value for loss in lost], (high - low) / NORMAL
    metric = scores[0].scores[0].metric
    changes = {name: quantity(name, values, error, ends=(low, high), unit=metric)}
    kind = task_kind(rows.task.kind)
    losses = [kind.kept_losses(score.predictions, rows) for score in scores]
    if losses[0] is None:
        return changes
    first, counts = losses[0]
    apart = np.array([loss[0] - first for loss in losses[1:] if loss])  # (head, row)
    mean = apart.sum(1) / counts.sum()
    many = len(counts)
    left = apart - mean[:, None] * counts
    stderr = np.sqrt(many / max(many - 1, 1) * (left**2).sum(1)) / counts.sum()
    if many < 2:
        stderr[:] = np.nan
    name = f"cost_alone{ending}"
    return {name: quantity(name, mean, stderr, np.full(len(mean), many), unit=kind.unit), **changes}
