"""`headcount export MODEL --to FORMAT --out DIR`: a model for those who do not have headcount."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headcount.cli.amounts import amount
from headcount.cli.common import Json, emit, table
from headcount.cli.progress import waiting

Format = Literal["zeroed", "standalone", "onnx", "torch-export"]
Number = Literal["float32", "float16", "bfloat16", "float64"]


def export(
    model: str,
    /,
    *,
    to: Format,
    out: Path,
    dtype: Number | None = None,
    allow_pickle: Annotated[bool, Parameter(negative=())] = False,
    as_json: Json = False,
) -> None:
    """Write a model, pruned or not, so that it runs without headcount.

    What is written is read back and must answer as the model does; if not, nothing is left.

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
    dtype
        Convert the weights to this first; as they were saved when left out.
    allow_pickle
        Load weights that are pickled (.bin), which can run code: only if you trust them.
    """
    from headcount.models.export import check
    from headcount.models.export import export as write
    from headcount.models.load import load

    check(to, out)
    options: dict[str, Any] = {"dtype": dtype} if dtype else {}
    with waiting(f"writing {out} and reading it back"):
        done = write(load(model, allow_pickle=allow_pickle, **options), to, out)
    rows = [
        ("format", done.to),
        ("folder", done.folder),
        ("size", amount(done.bytes, "B")),
        ("files", ", ".join(done.files)),
        ("largest difference", f"{done.difference:.1e} of the largest answer"),
    ]
    emit({"model": model, **vars(done)}, as_json=as_json, table=table(["what", "written"], rows))
