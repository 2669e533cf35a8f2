"""`headcount export MODEL --to FORMAT --out DIR`: a model that runs without headcount."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, emit
from headcount.cli.progress import waiting
from headcount.exports.formats import FORMATS
from headcount.models.model_options import ModelOptions
from headcount.views.tables.records import export_table

FORMAT = f"The format: {'; '.join(f'{entry.name} ({entry.summary})' for entry in FORMATS)}."
CPU = ModelOptions(device="cpu")


def export(
    model: groups.Model,
    /,
    *,
    to: Annotated[str, Parameter(help=FORMAT)],
    out: groups.NewFolder,
    weights: str | None = None,
    task: groups.AnyTask = None,
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    model_options: groups.ExportFlags = groups.EXPORT_FLAGS,
    as_json: Json = False,
) -> None:
    """Write a model, pruned or not, so that it runs without headcount.

    The export is read back and must give the model's outputs on text pairs (and rows of --task);
    otherwise nothing is written. Graphs take every input that the tokenizer gives.

    Parameters
    ----------
    weights
        How gguf stores the weights: f16 (the default), f32 or q8_0.
    """
    FORMATS.require(to)
    opened = groups.open_task(task, source)
    from headcount.exports.export import check
    from headcount.exports.export import export as write
    from headcount.tasks.rows import sample_batches

    check(to, out, weights)
    with waiting(f"writing {out} and reading it back"):
        loaded, tokenizer, _ = groups.open_model(model, model_options.on(CPU), opened)
        rows = [] if opened is None else sample_batches(loaded, opened, tokenizer)
        done = write(loaded, to, out, rows=rows, tokenizer=tokenizer, weights=weights)
    emit({"model": model, **vars(done)}, as_json=as_json, table=export_table(done))
