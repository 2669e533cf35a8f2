"""Tasks of embedding models: texts alone, and pairs of texts with how alike they are."""

from __future__ import annotations

from headcount.base.errors import UsageError
from headcount.tasks.language import text_task
from headcount.tasks.own import regression
from headcount.tasks.source import Source
from headcount.tasks.task import Task


def embedding(source: Source) -> Task:
    """Every line of a file is a text; its embedding is compared with the full model's."""
    return text_task("embedding", source, ("fidelity", "neighbours@10"), packed=False)


def similarity(source: Source) -> Task:
    """Two columns of texts and one of numbers, which cosines are ranked against (Spearman)."""
    if len(source.columns) != 2:
        raise UsageError("A similarity is of two texts: pass --columns FIRST SECOND.")
    return regression(source, "similarity")
