"""What a run leaves for others: a trained or pruned model, a matrix, or its record.

Nothing here needs torch: a study finds with it what is there already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headcount.base.errors import UsageError
from headcount.runs.kinds.kind import MODEL
from headcount.runs.record import FILE, Record, load_record
from headcount.runs.run import Best, InMemory, Run
from headcount.tasks.metrics import get_metric


def leaves_model(run: Run) -> bool:
    """Whether the folder of a finished run is a model."""
    return run.options.product() == MODEL


def target_of(run: Run, folder: Path) -> Path | None:
    """What a run is given to write to, for a run whose folder this is; None for nothing."""
    product = run.options.product()
    if product is None:
        return None
    return folder if product == MODEL else folder / product


def product_of(run: Run, folder: Path) -> Path:
    """What a run that is done has left in its folder for another one to start from."""
    return target_of(run, folder) or folder / FILE


def has_product(run: Run, folder: Path) -> bool:
    """Whether what others start from is still there: models that nobody asked for are not kept."""
    product = product_of(run, folder)
    return any(product.glob("*.safetensors")) if product == folder else product.is_file()


def on_inputs(run: Run, folder_of: Callable[[Run], Path]) -> Run:
    """The run on what its inputs have made; `folder_of` is asked for the folder of each."""
    folders = {needed.key: folder_of(needed) for needed in run.inputs}
    paths = [str(product_of(needed, folders[needed.key])) for _, needed in run.option_runs]
    return run.with_products(_model(run, folders), paths)


def _model(run: Run, folders: Mapping[str, Path]) -> str:
    if isinstance(run.model, str):
        return run.model
    if isinstance(run.model, InMemory):
        raise UsageError("A run on a model in memory starts from no other run.")
    chosen = run.model
    if isinstance(chosen, Best):
        chosen = best_of([(run, load_record(folders[run.key])) for run in chosen.runs])
    if leaves_model(chosen):
        return str(product_of(chosen, folders[chosen.key]))
    if isinstance(chosen.model, str):
        return chosen.model  # an evaluation stands for the model that it scored
    record = load_record(folders[chosen.key])
    return str(record.identity["model"])


def best_of(runs: Sequence[tuple[Run, Record]]) -> Run:
    """The run with the best score; the first of several that are alike."""
    scored = [(*score_of(record), run) for run, record in runs]
    if len({metric for metric, _, _ in scored}) > 1:
        names = ", ".join(sorted({metric for metric, _, _ in scored}))
        raise UsageError(f"The best of runs that are scored differently cannot be told: {names}.")
    sign = 1 if get_metric(scored[0][0]).higher_is_better else -1
    defined = [(sign * value, run) for _, value, run in scored if not math.isnan(value)]
    if not defined:
        raise UsageError("None of the runs has a score, so there is no best one.")
    return max(defined, key=lambda pair: pair[0])[1]


def score_of(record: Record) -> tuple[str, float]:
    """(metric, score) of what a run is about: the pruned model, or the one that was scored."""
    part = record.result.evaluated
    if part is None:
        raise UsageError(f"A run of the kind '{record.run.kind}' has no score to go by.")
    return part.metric, math.nan if part.score is None else part.score
