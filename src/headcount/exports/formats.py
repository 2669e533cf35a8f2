"""Write a model for those who do not have headcount: four formats, each verified as it is written.

    hc.export(small, "zeroed", "out")         # full size, loads with plain transformers
    hc.export(small, "standalone", "out")     # small, loads with trust_remote_code=True
    hc.export(small, "onnx", "out")           # model.onnx, any batch and length
    hc.export(small, "torch-export", "out")   # model.pt2, any batch and length

What was written is read back and must answer as the model does to tokenised text pairs (and to
the rows of a task where they are given), or nothing is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount import __version__
from headcount.base.errors import HeadcountError, UsageError, need_extra
from headcount.base.files import read_json
from headcount.base.names import unknown
from headcount.base.text import line
from headcount.exports.checkpoint import (
    auto_names,
    plain_class,
    write_standalone,
    write_zeroed,
)
from headcount.exports.graph import write_torch_export
from headcount.exports.inputs import (
    Feeds,
    Probes,
    find_probes,
    find_tokenizer,
)
from headcount.exports.onnx import write_onnx
from headcount.models.card import card, escaped, front, write_results
from headcount.models.door import require_pretrained
from headcount.models.find import unwrap
from headcount.models.origin import base_name, copy_companions, leave_code
from headcount.models.probe import require_finite, run
from headcount.models.pruned import whole_folder
from headcount.models.tokenizers import has_tokenizer


@dataclass(frozen=True)
class Format:
    """One way to write a model."""

    name: str
    summary: str
    write: Callable[[PreTrainedModel, Path, list[Feeds]], float]
    """(model, folder, inputs to verify it on) -> the largest difference found."""
    imports: str
    usage: str
    """How to load and call it, for the card; `{auto}` is the transformers class that loads it."""
    tensors: str = "pt"
    call: str = "answers = model(**inputs)"
    fed: str = "inputs = {name: inputs[name] for name in {names}}"
    """How it takes what it needs of what the tokenizer gives."""
    graph: bool = False
    library: str = "transformers"


FORMATS = {
    made.name: made
    for made in (
        Format(
            "zeroed",
            "full size, the removed heads' weights zero: loads with plain transformers",
            write_zeroed,
            imports="from transformers import {auto}",
            usage='model = {auto}.from_pretrained("path/to/this/folder")',
        ),
        Format(
            "standalone",
            "small, with its own modelling file: loads with trust_remote_code=True",
            write_standalone,
            imports="from transformers import {auto}",
            usage='model = {auto}.from_pretrained("path/to/this/folder", trust_remote_code=True)',
        ),
        Format(
            "onnx",
            "model.onnx for onnxruntime, any batch and length",
            write_onnx,
            imports="import onnxruntime",
            usage='session = onnxruntime.InferenceSession("path/to/this/folder/model.onnx")',
            tensors="np",
            call="answers = session.run(None, inputs)",
            fed="inputs = {put.name: inputs[put.name] for put in session.get_inputs()}",
            graph=True,
            library="onnx",
        ),
        Format(
            "torch-export",
            "model.pt2 for torch.export.load, any batch and length",
            write_torch_export,
            imports="import torch",
            usage='model = torch.export.load("path/to/this/folder/model.pt2").module()',
            graph=True,
            library="pytorch",
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class ExportResult:
    """What was written, and how far its answers are from the model's."""

    folder: Path
    to: str
    files: tuple[str, ...]
    bytes: int
    difference: float
    """Largest difference on the probe inputs, relative to the largest value."""

    def __repr__(self) -> str:
        about = f"{self.to}, {len(self.files)} files, {self.bytes:,} bytes"
        off = f"difference {self.difference:.2g}"
        return line(f"ExportResult({self.folder}: {about}, {off})", f"ExportResult({about}, {off})")

    def __fspath__(self) -> str:
        return str(self.folder)


def export(
    model: nn.Module,
    to: str,
    folder: str | os.PathLike[str],
    *,
    probe: Mapping[str, Tensor] | None = None,
    rows: Sequence[Mapping[str, Tensor]] = (),
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> ExportResult:
    """Write `model` (pruned or not) into a new folder as one of FORMATS, and verify it.

    A graph takes every input that the tokenizer gives and the model names. The tokenizer is the
    one that the model was loaded with, or `tokenizer`. `rows` are tokenised batches of a task on
    which it is verified as well; `probe` takes the place of all that: the graph has its inputs.
    """
    chosen, folder = check(to, folder)
    bare = require_pretrained(unwrap(model), "hc.export")
    name = getattr(bare.config, "_name_or_path", "") or ""
    tokenizer = tokenizer or find_tokenizer(name)
    if probe is not None:
        probes = Probes([dict(probe)], "the given probe input")
    else:
        probes = find_probes(bare, tokenizer, rows)
    for feeds in probes.feeds:
        require_finite(bare, run(bare, feeds))
    leave_code(name, bare.config)
    with whole_folder(folder) as made:
        difference = chosen.write(bare, made, probes.feeds)
        copy_companions(name, made)
        if tokenizer is not None and not has_tokenizer(made):
            tokenizer.save_pretrained(made)
        record = _record_of(name)
        text = _card(bare, chosen, probes, difference, record)
        (made / "README.md").write_text(text, encoding="utf-8")
        write_results(made, record or {})
        files = sorted(path for path in made.rglob("*") if path.is_file())
        names = tuple(path.relative_to(made).as_posix() for path in files)
        size = sum(file.stat().st_size for file in files)
    return ExportResult(folder=folder, to=to, files=names, bytes=size, difference=difference)


def check(to: str, folder: str | os.PathLike[str]) -> tuple[Format, Path]:
    """Refuse what cannot work before any model is loaded."""
    if to not in FORMATS:
        raise unknown(f"There is no export to '{to}'", to, FORMATS)
    folder = Path(folder)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UsageError(f"{folder} is there already and not empty; export to a new folder.")
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if not find_spec(name)]
    if to == "onnx" and missing:
        raise need_extra(missing[0], "onnx")
    return FORMATS[to], folder


USAGE = """```python
{code}
```

Written by `headcount export --to {to}` (headcount {version}): {summary}.
Read back on {probes}, its answers differed from the model's by at most
{difference:.1e} of the largest value.
"""


def _card(
    model: PreTrainedModel,
    chosen: Format,
    probes: Probes,
    difference: float,
    record: Mapping[str, Any] | None,
) -> str:
    usage = USAGE.format(
        code=_snippet(model, chosen, probes),
        to=chosen.name,
        version=__version__,
        summary=chosen.summary,
        probes=probes.said,
        difference=difference,
    )
    options: dict[str, Any] = {"record": record, "library": chosen.library}
    if getattr(model.config, "headcount", None):
        return card(model, usage, **options, zeros=chosen.name == "zeroed")
    name = PurePath(base_name(model.config)).name or plain_class(model).__name__
    lines = front(model, name, **options)
    return f"---\n{lines}---\n\n# {escaped(name)}\n\n## How to load\n\n{usage}"


def _record_of(name: str) -> dict[str, Any] | None:
    """How the model in a folder was made, where a study left its record."""
    file = Path(name) / "record.json"
    if not name or not file.is_file():
        return None
    try:
        found = read_json(file, "record")
    except HeadcountError:
        return None
    return found if isinstance(found, dict) else None


def _snippet(model: PreTrainedModel, chosen: Format, probes: Probes) -> str:
    """Python that loads the export and asks it, from texts where the tokenizer gives all inputs."""
    names = list(probes.feeds[0])
    imports, asked = [chosen.imports], []
    if set(names) <= set(probes.tokenized):
        imports.append("from transformers import AutoTokenizer")
        if chosen.imports.startswith("from transformers"):
            imports = ["from transformers import {auto}, AutoTokenizer"]
        asked = [
            'tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")',
            f'inputs = tokenizer("a text", "another text", return_tensors="{chosen.tensors}")',
            *([chosen.fed] if chosen.graph or probes.more else []),
            chosen.call,
        ]
    elif chosen.graph:
        feeds = ", ".join(f'"{name}": {name}' for name in names)
        asked = [f"inputs = {{{feeds}}}", chosen.call]
    kind = plain_class(model)
    auto = next(iter(auto_names(model.config, kind)), kind.__name__)
    code = "\n".join([*imports, "", chosen.usage, *asked])
    return code.replace("{auto}", auto).replace("{names}", repr(names))
