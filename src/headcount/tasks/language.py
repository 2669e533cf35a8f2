"""Language modelling on any text file: masked LM (recall@1, perplexity), causal LM (perplexity)."""

from __future__ import annotations

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks.files import read_lines
from headcount.tasks.own import evaluated, find_splits, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

SUFFIXES = (".txt", ".text", ".md", "")


def masked_lm(source: Source) -> Task:
    """Every line that is not blank is one example."""
    return _language_task("masked-lm", source, ("recall@1", "perplexity"), packed=False)


def causal_lm(source: Source) -> Task:
    """The lines are joined and cut into blocks."""
    return _language_task("causal-lm", source, ("perplexity",), packed=True)


def _language_task(kind: str, source: Source, metrics: tuple[str, ...], *, packed: bool) -> Task:
    files = find_splits(source, SUFFIXES)
    if not files:
        raise UsageError(
            f"Task '{kind}' needs a text file: pass --data FILE, or --train and --dev."
        )

    def read(split: str) -> Examples:
        lines = [line for line in read_lines(files[split]) if line.strip()]
        if not lines:
            raise NotFoundError(f"'{files[split]}' has no text.")
        return Examples((lines,))

    splits, parts, load = tuple(files), None, read
    if len(files) == 1:
        (only,) = files
        divided, parts = apart({only: read(only)}, files[only].name, packed=packed)
        splits, load = tuple(divided), divided.__getitem__
    return Task(
        name=kind,
        kind=kind,
        texts=("text",),
        metrics=metrics,
        loader=load,
        splits=splits,
        evaluation=evaluated(splits),
        parts=parts,
        notes=test_as_dev(files, source),
        packed=packed,
    )
