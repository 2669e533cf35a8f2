"""`headcount export MODEL --to FORMAT --out DIR`: a model for those who do not have headcount."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, emit
from headcount.cli.progress import waiting
from headcount.models.model_options import ModelOptions
from headcount.views.tables.records import export_table

Format = Literal["zeroed", "standalone", "onnx", "torch-export"]
CPU = ModelOptions(device="cpu")


def export(
    model: groups.Model,
    /,
    *,
    to: Annotated[Format, Parameter(help="The format.")],
    out: groups.NewFolder,
    task: groups.AnyTask = None,
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    model_options: groups.ExportFlags = groups.EXPORT_FLAGS,
    as_json: Json = False,
) -> None:
    """Write a model, pruned or not, so that it runs without headcount.

    What is written is read back and must answer text pairs (and rows of --task) as the model
    does; if not, nothing is left. Graphs take every input that the tokenizer gives.

    - `zeroed`: full size with the removed heads' weights zero, for plain transformers.
    - `standalone`: small, for transformers with `trust_remote_code=True`.
    - `onnx`: `model.onnx` for onnxruntime, any batch and length.
    - `torch-export`: `model.pt2` for `torch.export.load`, any batch and length.
    """
    opened = groups.open_task(task, source)
    from headcount.exports.formats import check
    from headcount.exports.formats import export as write
    from headcount.tasks.rows import batches_to_look_at

    check(to, out)
    with waiting(f"writing {out} and reading it back"):
        loaded, tokenizer, _ = groups.open_model(model, model_options.on(CPU), opened)
        rows = [] if opened is None else batches_to_look_at(loaded, opened, tokenizer)
        done = write(loaded, to, out, rows=rows, tokenizer=tokenizer)
    emit({"model": model, **vars(done)}, as_json=as_json, table=export_table(done))
