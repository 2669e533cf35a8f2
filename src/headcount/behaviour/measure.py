"""`hc.roles(model, inputs)`: what every head does on data.

    found = hc.roles(model, texts, tokenizer=tokenizer)
    found.roles                          # ("previous", None, "separator", …), by head
    found["induction"].values            # with .stderr, .low, .high and .chance

Attention is seen once, a layer at a time: all shares of it are one product with weights that
depend on the tokens alone (`patterns.py`). The same pass sums the heads' outputs for the stand-in
share (`stand_in.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.behaviour.after import kept_in
from headcount.behaviour.alone import cost_alone
from headcount.behaviour.examples import Pool, find_examples
from headcount.behaviour.inputs import role_inputs
from headcount.behaviour.looks import AttentionMeans
from headcount.behaviour.options import RoleOptions
from headcount.behaviour.result import Quantity, Roles, quantity
from headcount.behaviour.stand_in import quantities
from headcount.behaviour.tokens import marks_of
from headcount.costs.per_head import head_bytes, head_times
from headcount.heads import Layout
from headcount.likeness.inputs import Stream, open_stream
from headcount.models.door import require_pretrained
from headcount.models.find import layout as layout_of_model
from headcount.models.find import unwrap
from headcount.models.fingerprint import versions
from headcount.models.hooks import evaluating
from headcount.tasks import Task, open_task
from headcount.tasks.input_options import InputOptions
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
    out, the rows of `task`, and without one rows of random tokens, each said twice. Padding never
    counts, and special tokens do not as queries. `samples` takes a sample that is even over
    lengths. `alone` scores the `task` without each head alone, before and after repair, on `limit`
    rows; `time` times the heads. `pruned` is the model with heads removed: the examples then tell
    where its heads look, too. `progress(done, total, what)` is called now and then. A layer
    that the model runs several times counts with the mean over its runs.
    """
    options = RoleOptions(examples=examples, ridge=ridge, time=time, alone=alone, limit=limit)
    bare: Any = require_pretrained(unwrap(model), "hc.roles")
    if isinstance(inputs, Task):
        task = task if task is not None else inputs
    if alone and task is None:
        raise UsageError("Heads are scored alone on the rows of a task: pass one (--task).")
    cut = None if pruned is None else (pruned, kept_in(bare, pruned))
    if inputs is None and task is None:
        input_options = InputOptions(samples=samples, max_length=max_length, seed=seed)
        inputs, name = role_inputs(bare, tokenizer, input_options)
    layout = layout_of_model(bare)
    stream = open_stream(
        bare, inputs if inputs is not None else task, tokenizer=tokenizer, limit=samples,
        max_length=max_length, seed=seed,
        heads=max((count for _, _, count in layout.layers()), default=1),
    )  # fmt: skip
    looks, pool = _look(bare, layout, stream, tokenizer, progress)
    found = looks.quantities()
    solved = looks.outputs.solve(ridge)
    shares, stderr, blocks = quantities(solved, layout)
    found["stand_in"] = quantity("stand_in", shares, stderr, blocks)
    found |= _own_cost(bare, layout, seed, time)
    if task is not None and alone:
        scoring = Scoring(limit=limit, max_length=max_length, seed=seed)
        how: dict[str, Any] = {"tokenizer": tokenizer, "scoring": scoring, "progress": progress}
        found |= cost_alone(bare, open_task(task), layout, solved, **how)
    result = Roles(
        layout=layout, count=looks.count, inputs=name or "inputs", quantities=found,
        made={
            "model": getattr(bare, "name_or_path", "") or type(bare).__name__,
            "class": type(bare).__name__, "separators": looks.separators,
            "tokens": looks.tokens, "unknowns": looks.unknowns, "seed": seed,
            "samples": samples, **vars(options), "versions": versions(),
        },
    )  # fmt: skip
    return find_examples(bare, result, pool, looks.marks, tokenizer, examples, cut)


def _look(
    model: Any, layout: Layout, stream: Stream, tokenizer: Any, progress: Progress | None
) -> tuple[AttentionMeans, Pool]:
    """One pass over the inputs."""
    chunks = iter(stream.chunks)
    begin = next(chunks, None)
    if begin is None:
        raise UsageError("There are no inputs to see roles on.")
    looks = AttentionMeans(model, layout, marks_of(model, tokenizer).told(model, begin))
    pool = Pool()
    with evaluating(model):
        for batch in chain(begin, chain.from_iterable(chunks)):
            pool.add(batch, looks.take(batch))
            if progress is not None:
                progress(looks.read, stream.total, "")
    if progress is not None:
        progress(looks.read, looks.read, ", solving and timing")
    return looks, pool


def _own_cost(model: Any, layout: Layout, seed: int, timed: bool) -> dict[str, Quantity]:
    """Kilobytes, which are known, and milliseconds where they are asked for."""
    unknown = np.full(len(layout), np.nan)
    size = head_bytes(model, layout) / 1000
    found = {"kilobytes": quantity("kilobytes", size, unknown, low=unknown, high=unknown)}
    if timed:
        times = head_times(model, layout, seed=seed)
        found["milliseconds"] = quantity(
            "milliseconds", times.median, times.stderr, low=times.low, high=times.high,
            what=f"what the head adds to a forward pass of {times.reads}",
        )  # fmt: skip
    return found
