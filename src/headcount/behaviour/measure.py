"""`hc.roles(model, inputs)`: what every head does on data.

    roles = hc.roles(model, texts, tokenizer=tokenizer)
    roles.roles                          # ("previous", None, "separator", …), by head
    roles["induction"].values            # with .stderr, .low, .high and .chance

Attention is captured once, a layer at a time: all shares of it are one product with weights that
depend on the tokens alone (`patterns.py`). The same pass sums the heads' outputs for the
replaceable share (`replaceable.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UnsupportedError, UsageError
from headcount.behaviour.alone import cost_alone
from headcount.behaviour.attention import AttentionMeans
from headcount.behaviour.examples import Pool, find_examples
from headcount.behaviour.options import RoleOptions
from headcount.behaviour.replaceable import replaceable_share
from headcount.behaviour.result import Quantity, Roles, quantity
from headcount.behaviour.tokens import marks_of
from headcount.changes.pair import mask_of_pair
from headcount.costs.per_head import head_bytes, head_times
from headcount.heads import Layout
from headcount.likeness.inputs import Stream, open_stream
from headcount.models.door import require_pretrained
from headcount.models.find import layout as layout_of_model
from headcount.models.find import unwrap
from headcount.models.fingerprint import versions
from headcount.models.hooks import evaluating
from headcount.models.probe import reads_text, takes
from headcount.tasks import Task, open_task
from headcount.tasks.calibration import InputOptions
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.inputs import read_inputs
from headcount.tasks.loading import processor_of
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from headcount.tasks.as_rows import Data

Progress = Callable[..., object]


def roles(
    model: PreTrainedModel,
    inputs: Data | None = None,
    *,
    task: Task | str | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    samples: int | None = None,
    max_length: int = 128,
    seed: int = 0,
    name: str = "",
    examples: int = 3,
    ridge: float = 1e-3,
    time: bool = False,
    alone: bool = False,
    limit: int | None = None,
    pruned: PreTrainedModel | None = None,
    progress: Progress | None = None,
) -> Roles:
    """What every head does on `inputs`, mean over inputs with standard errors and intervals.

    `inputs` are texts (with `tokenizer`), rows of tokens, batches, or a task or its name; left
    out, the rows of `task`, and without one rows of random tokens, each repeated once. Padding
    never counts, and special tokens do not as queries. `samples` takes a sample that is even over
    lengths. `alone` scores the `task` without each head alone, before and after repair, on `limit`
    rows; `time` times the heads. `pruned` is the model with heads removed: the examples then have
    where its heads attend, too. `progress(done, total, what)` is called now and then. A layer
    that the model runs several times counts with the mean over its runs.
    """
    options = RoleOptions(examples=examples, ridge=ridge, time=time, alone=alone, limit=limit)
    bare = require_pretrained(unwrap(model), "hc.roles")
    if isinstance(inputs, Task):
        task = task if task is not None else inputs
    if alone and task is None:
        raise UsageError("Heads are scored alone on the rows of a task: pass one (--task).")
    after = None if pruned is None else (pruned, mask_of_pair(bare, pruned))
    if inputs is None and task is None:
        input_options = InputOptions(samples=samples, max_length=max_length, seed=seed)
        inputs, name = role_inputs(bare, tokenizer, input_options)
    data = inputs if inputs is not None else task
    assert data is not None
    layout = layout_of_model(bare)
    stream = open_stream(
        bare,
        data,
        tokenizer=tokenizer,
        limit=samples,
        max_length=max_length,
        seed=seed,
        heads=max((count for _, _, count in layout.layers()), default=1),
    )
    means, pool = _read(bare, layout, stream, tokenizer, progress)
    solved = means.outputs.solve(ridge)
    quantities = means.quantities() | {"replaceable": replaceable_share(solved, layout)}
    quantities |= _cost(bare, layout, seed, time)
    if task is not None and alone:
        scoring = Scoring(limit=limit, max_length=max_length, seed=seed)
        quantities |= cost_alone(
            bare, open_task(task), layout, solved,
            tokenizer=tokenizer, scoring=scoring, progress=progress,
        )  # fmt: skip
    provenance = {
        "model": bare.name_or_path or type(bare).__name__,
        "class": type(bare).__name__,
        "separators": means.separators,
        "tokens": means.tokens,
        "unknowns": means.unknowns,
        "seed": seed,
        "samples": samples,
        **vars(options),
        "versions": versions(),
    }
    result = Roles(
        layout=layout,
        count=means.count,
        inputs=name or "inputs",
        quantities=quantities,
        provenance=provenance,
    )
    if means.patches:
        return result  # examples are rows of words
    return find_examples(bare, result, pool, means.marks, tokenizer, examples, after)


def role_inputs(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    input_options: InputOptions,
    task: Task | None = None,
) -> tuple[EncodedRows, str]:
    """(rows, what they are), as `InputOptions` asks for them; no row of a task that is scored.

    Without texts they are random tokens, every row repeated once.
    """
    if not reads_text(type(unwrap(model))):
        if "pixel_values" not in takes(type(unwrap(model))):
            raise UnsupportedError(
                f"Roles are about tokens or patches, and {type(model).__name__} reads neither: "
                "redundancy, importance and search work on it."
            )
        return read_inputs(model, tokenizer, input_options, task, decides=True)
    tokenizer = tokenizer if tokenizer is not None else processor_of(model)
    rows, name = read_inputs(model, tokenizer, input_options, task, decides=True)
    if input_options.rows is None and (task is None or input_options.random is not None):
        assert tokenizer is not None  # the tokens were drawn from it
        return repeated(rows, tokenizer), f"{name}, each row twice"
    return rows, name


def repeated(rows: EncodedRows, tokenizer: PreTrainedTokenizerBase) -> EncodedRows:
    """The first half of every row's text, and once more, between the same special tokens.

    In the second half every token has come before, and what came after it then comes again: a head
    that attends there does induction (prefix matching, as in In-context Learning and Induction
    Heads, 2022).
    """
    special = frozenset(tokenizer.all_special_ids)

    def twice(row: list[int]) -> list[int]:
        text = [token for token in row if token not in special]
        if not text:
            return row
        start = next(at for at, token in enumerate(row) if token not in special)
        half = text[: max(1, len(text) // 2)]
        return [*row[:start], *half, *half, *row[start + len(text) :]]

    columns = {"input_ids": [twice(row) for row in rows.columns["input_ids"]]}
    return replace(rows, columns=columns)


def _read(
    model: PreTrainedModel,
    layout: Layout,
    stream: Stream,
    tokenizer: PreTrainedTokenizerBase | None,
    progress: Progress | None,
) -> tuple[AttentionMeans, Pool]:
    """One pass over the inputs."""
    chunks = iter(stream.chunks)
    begin = next(chunks, None)
    if begin is None:
        raise UsageError("There are no inputs to see roles on.")
    marks = marks_of(model, tokenizer).with_separators(model, begin)
    means, pool = AttentionMeans(model, layout, marks), Pool()
    with evaluating(model):
        for batch in chain(begin, chain.from_iterable(chunks)):
            sides = means.take(batch)
            if not means.patches:
                pool.add(batch, sides)
            if progress is not None:
                progress(means.read, stream.total, "")
    if progress is not None:
        progress(means.read, means.read, ", solving and timing")
    return means, pool


def _cost(model: PreTrainedModel, layout: Layout, seed: int, timed: bool) -> dict[str, Quantity]:
    """Kilobytes, which are known, and milliseconds where they are asked for."""
    unknown = np.full(len(layout), np.nan)
    costs = {"kilobytes": quantity("kilobytes", head_bytes(model, layout) / 1000, unknown)}
    if timed:
        times = head_times(model, layout, seed=seed)
        what = f"what the head adds to a forward pass of {times.reads}"
        ends = (times.low, times.high)
        costs["milliseconds"] = quantity(
            "milliseconds", times.median, times.stderr, ends=ends, what=what
        )
    return costs
