"""`headcount export MODEL --to FORMAT --out DIR`: a model for those who do not have headcount."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headcount.cli.common import Json, emit
from headcount.cli.progress import waiting
from headcount.errors import UsageError
from headcount.report.tables.amounts import amount
from headcount.report.tables.columns import table
from headcount.tasks.source import Source

Format = Literal["zeroed", "standalone", "onnx", "torch-export"]
Number = Literal["float32", "float16", "bfloat16", "float64"]
Data = Annotated[Source, Parameter(name="*")]
ROWS = 64
"""Rows of a task that an export is verified on."""


def export(
    model: str,
    /,
    *,
    to: Format,
    out: Path,
    task: str | None = None,
    source: Data = Source(),  # noqa: B008
    tokenizer: str | None = None,
    dtype: Number | None = None,
    allow_pickle: Annotated[bool, Parameter(negative=())] = False,
    as_json: Json = False,
) -> None:
    """Write a model, pruned or not, so that it runs without headcount.

    What is written is read back and must answer text pairs (and rows of --task) as the model
    does; if not, nothing is left. Graphs take every input that the tokenizer gives.

    - `zeroed`: full size with the removed heads' weights zero, for plain transformers.
    - `standalone`: small, for transformers with `trust_remote_code=True`.
    - `onnx`: `model.onnx` for onnxruntime, any batch and length.
    - `torch-export`: `model.pt2` for `torch.export.load`, any batch and length.

    Parameters
    ----------
    model
        A model folder or a name on the hub.
    to
        The format.
    out
        The folder to write; it must be new or empty.
    task
        Verify it on rows of this task as well; see `headcount ls tasks`.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    dtype
        Convert the weights to this first; as they were saved when left out.
    allow_pickle
        Load weights that are pickled (.bin), which can run code: only if you trust them.
    """
    from headcount.models.export import check
    from headcount.models.export import export as write
    from headcount.models.load import load
    from headcount.tasks import TASKS
    from headcount.tasks.loading import load_tokenizer

    check(to, out)
    if task is None and source != Source():
        raise UsageError("Data goes with --task: which task's rows are they?")
    opened = None if task is None else TASKS[task](source)
    options: dict[str, Any] = {"dtype": dtype} if dtype else {}
    with waiting(f"writing {out} and reading it back"):
        loaded = load(model, allow_pickle=allow_pickle, **options)
        words = load_tokenizer(tokenizer or model) if tokenizer or opened else None
        batches = [] if opened is None else _batches(loaded, opened, words)
        done = write(loaded, to, out, rows=batches, tokenizer=words)
    rows = [
        ("format", done.to),
        ("folder", done.folder),
        ("size", amount(done.bytes, "B")),
        ("files", ", ".join(done.files)),
        ("largest difference", f"{done.difference:.1e} of the largest answer"),
    ]
    emit({"model": model, **vars(done)}, as_json=as_json, table=table(["what", "written"], rows))


def _batches(model: Any, task: Any, tokenizer: Any) -> list[Any]:
    """Rows of the task as the model takes them, of several lengths."""
    from headcount.tasks.encoding import encode
    from headcount.tasks.loading import match, room

    match(model, tokenizer)
    examples = task.load(task.evaluation, limit=ROWS)
    rows = encode(task, examples, tokenizer, max_length=room(model, 128))
    return [batch for _, batch in rows.batches(1024)]
