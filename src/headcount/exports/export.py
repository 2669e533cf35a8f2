"""Write a model for those who do not have headcount, verified as it is written.

    hc.export(small, "zeroed", "out")         # full size, loads with plain transformers
    hc.export(small, "standalone", "out")     # small, loads with trust_remote_code=True
    hc.export(small, "stock", "out")          # small, layers alike: loads with plain transformers
    hc.export(small, "vllm", "out")           # small, for vLLM's transformers backend
    hc.export(small, "onnx", "out")           # model.onnx, any batch and length
    hc.export(small, "torch-export", "out")   # model.pt2, any batch and length
    hc.export(small, "gguf", "out")           # model.gguf, for llama.cpp

What was written is read back and must answer as the model does to tokenised text pairs (and to
the rows of a task where they are given), or nothing is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount import __version__
from headcount.base.errors import UsageError
from headcount.base.extras import require_extra
from headcount.base.files import whole_folder
from headcount.base.text import line
from headcount.exports.checkpoint import auto_names, plain_class
from headcount.exports.formats import FORMATS, ExportFormat, ReadBack
from headcount.exports.inputs import Probes, find_probes, find_tokenizer
from headcount.models.card import CardResults, card, escaped, front, results_of
from headcount.models.door import require_pretrained
from headcount.models.find import unwrap
from headcount.models.origin import base_name, copy_companions, copy_scores, leave_code
from headcount.models.probe import require_finite, run
from headcount.models.sentences import write_modules
from headcount.models.tokenizers import has_tokenizer

USAGE = """```python
{code}
```

Written by `headcount export --to {to}` (headcount {version}): {summary}.
{verified}
"""
VERIFIED = """Read back on {probes}, its answers differed from the model's by at most
{difference:.1e} of the largest value."""


@dataclass(frozen=True, kw_only=True)
class ExportResult:
    """What was written, and how far its answers are from the model's."""

    folder: Path
    to: str
    files: tuple[str, ...]
    bytes: int
    difference: float | None
    """Largest difference on the probe inputs, relative to the largest value; None if not run."""
    details: str = ""
    """What else was seen when it was read back."""

    def __repr__(self) -> str:
        about = f"{self.to}, {len(self.files)} files, {self.bytes:,} bytes"
        off = "not run" if self.difference is None else f"difference {self.difference:.2g}"
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
    weights: str | None = None,
) -> ExportResult:
    """Write `model` (pruned or not) into a new folder as one of FORMATS, and verify it.

    A graph takes every input that the tokenizer gives and the model names. The tokenizer is the
    one that the model was loaded with, or `tokenizer`. `rows` are tokenised batches of a task on
    which it is verified as well; `probe` takes the place of all that: the graph has its inputs.
    `weights` is how gguf stores them: f16 (the default), f32 or q8_0.
    """
    written, folder = check(to, folder, weights)
    bare = require_pretrained(unwrap(model), "hc.export")
    name = getattr(bare.config, "_name_or_path", "") or ""
    tokenizer = tokenizer or find_tokenizer(name)
    if probe is not None:
        probes = Probes([dict(probe)], "the given probe input")
    else:
        probes = find_probes(bare, tokenizer, rows)
    probes = replace(probes, tokenizer=tokenizer)
    for feeds in probes.feeds:
        require_finite(bare, run(bare, feeds))
    leave_code(name, bare.config)
    results = results_of(bare)
    with whole_folder(folder) as partial:
        answered = written.write(bare, partial, probes)
        copy_companions(name, partial)
        write_modules(bare, partial)
        if tokenizer is not None and not has_tokenizer(partial):
            tokenizer.save_pretrained(partial)
        code, summary = _snippet(bare, written, probes), FORMATS.require(to).summary
        usage = USAGE.format(
            code=code, to=to, version=__version__, summary=summary,
            verified=_verified(answered, probes),
        )  # fmt: skip
        text = _card(bare, written, usage, results)
        (partial / "README.md").write_text(text, encoding="utf-8")
        if results.section:
            copy_scores(name, partial)
        files = sorted(path for path in partial.rglob("*") if path.is_file())
        names = tuple(path.relative_to(partial).as_posix() for path in files)
        size = sum(file.stat().st_size for file in files)
    return ExportResult(
        folder=folder, to=to, files=names, bytes=size,
        difference=answered.difference, details=answered.details,
    )  # fmt: skip


def _verified(answered: ReadBack, probes: Probes) -> str:
    lines = [f"{answered.details}."] if answered.details else []
    if answered.difference is not None:
        lines.insert(0, VERIFIED.format(probes=probes.summary, difference=answered.difference))
    return "\n".join(lines)


def check(
    to: str, folder: str | os.PathLike[str], weights: str | None = None
) -> tuple[ExportFormat, Path]:
    """Refuse what cannot work before any model is loaded."""
    kind = FORMATS[to]
    folder = Path(folder)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UsageError(f"{folder} is there already and not empty; export to a new folder.")
    written: ExportFormat = kind(weights)
    if written.extra is not None:
        require_extra(written.extra)
    return written, folder


def _card(model: PreTrainedModel, written: ExportFormat, usage: str, results: CardResults) -> str:
    if getattr(model.config, "headcount", None):
        return card(model, usage, results=results, library=written.library, zeros=written.zeros)
    name = PurePath(base_name(model.config)).name or plain_class(model).__name__
    lines = front(model, name, results=results, library=written.library)
    return f"---\n{lines}---\n\n# {escaped(name)}\n\n## How to load\n\n{usage}"


def _snippet(model: PreTrainedModel, written: ExportFormat, probes: Probes) -> str:
    """Python that loads the export and asks it, from texts where the tokenizer gives all inputs."""
    names = list(probes.feeds[0])
    imports, calls = [written.imports], []
    if set(names) <= set(probes.tokenized):
        imports.append("from transformers import AutoTokenizer")
        if written.imports.startswith("from transformers"):
            imports = ["from transformers import {auto}, AutoTokenizer"]
        calls = [
            'tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")',
            f'inputs = tokenizer("a text", "another text", return_tensors="{written.tensors}")',
            *([written.selects] if written.graph or probes.more else []),
            written.calls,
        ]
    elif written.graph:
        feeds = ", ".join(f'"{name}": {name}' for name in names)
        calls = [f"inputs = {{{feeds}}}", written.calls]
    kind = plain_class(model)
    auto = next(iter(auto_names(model.config, kind)), kind.__name__)
    code = "\n".join([*imports, "", written.loads, *calls])
    return code.replace("{auto}", auto).replace("{names}", repr(names))
