"""`headcount transfer PRETRAINED FINETUNED`: what fine-tuning changed, head by head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.common import Json, emit, plain
from headcount.cli.progress import bar
from headcount.cli.redundancy import COUNT, Flag, Names
from headcount.errors import UsageError
from headcount.report.tables.columns import table

Unit = Annotated[str | None, Parameter(help="Divide importance by its layer's norm: none, l1, l2.")]


def transfer(
    pretrained: str,
    finetuned: str,
    /,
    *,
    task: str | None = None,
    text: Path | None = None,
    random: int | None = None,
    data: Path | None = None,
    split: str | None = None,
    column: Names = None,
    label: str | None = None,
    languages: Names = None,
    pretraining_task: str | None = None,
    pretraining_data: Path | None = None,
    recall: Flag = False,
    share: float = 0.9,
    points: int = 24,
    normalize: Unit = None,
    samples: int = 512,
    limit: int | None = None,
    max_length: int = 128,
    out: Path | None = None,
    tokenizer: str | None = None,
    allow_pickle: Flag = False,
    device: str = "auto",
    seed: int = 0,
    dry_run: Flag = False,
    as_json: Json = False,
) -> None:
    """Compare two checkpoints of one architecture, such as before and after fine-tuning.

    For every layer and head: the Jensen–Shannon divergence (base 2) between the two models'
    attention on the same inputs, the L2 between their hidden states, and the mean absolute change
    of query, key and value weights. With --task also how drift goes with importance, and with
    --recall how many of the heads the task needs are kept when the pre-trained model is pruned on
    its own task. Frozen lower layers: `headcount train --freeze`.

    Examples: `headcount transfer ./bert ./bert-sst2 --task sst2 --data glue --out drift` ·
    `headcount transfer ./bert ./bert-sst2 --text lines.txt --json` ·
    `headcount transfer pocket ./run --task pocket-sentiment --pretraining-task pocket-corpus
    --recall`

    Parameters
    ----------
    pretrained
        The first model: a folder or a name on the hub.
    finetuned
        The second model, of the same architecture.
    task
        The second model's task: its texts are the inputs, its loss gives importance.
    text
        Use the lines of a text file as inputs.
    random
        Use so many rows of random tokens as inputs: 1000 when nothing else is named.
    data
        Folder or file with the task's rows.
    split
        Which rows of the task are inputs and are scored; its dev split when left out.
    column
        Names of the text columns of --data, one or two.
    label
        Name of the label column of --data.
    languages
        Endings of the two parallel files of a translation, as in `en de`.
    pretraining_task
        The first model's task, such as masked-lm or pocket-corpus.
    pretraining_data
        Folder or file with its rows.
    recall
        Score both models with fewer and fewer heads, least important first.
    share
        The heads a task needs are those for this share of its score.
    points
        Numbers of heads to score, at most.
    samples
        Rows that importance is estimated on, of the train split where there is one.
    limit
        Compare a sample of so many inputs (1000 when left out), and score so many rows.
    max_length
        Tokens per input; longer ones are cut.
    out
        Write transfer.json and figures (PNG and SVG) to this folder.
    tokenizer
        Folder or name of the tokenizer, where it is not with the models.
    allow_pickle
        Load weights that are pickled (.bin), which can run code: only if you trust them.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    seed
        Seed of the samples, of masked tokens and of random tokens.
    dry_run
        Say what would be done, and stop.
    """
    _check(task, text, random, recall, share, points, pretraining_task, pretraining_data, out)
    if task is None and any(each for each in (data, split, column, label, languages)):
        raise UsageError("--data, --split, --column, --label and --languages go with --task.")
    from headcount.changes.measure import transfer as measured
    from headcount.changes.pair import open_pair
    from headcount.cli.transfer_inputs import Work, load_model, shared_tokenizer
    from headcount.models.devices import pick_device
    from headcount.report.tables.transfer import page, write
    from headcount.tasks import open_task
    from headcount.tasks.loading import hush, match

    hush()
    source = {"data": data, "columns": tuple(column or ()), "label": label, "languages": languages}
    own = open_task(task, **source) if task else None
    before = open_task(pretraining_task, data=pretraining_data) if pretraining_task else None
    if own is not None and before is not None and own.name == before.name:
        before = replace(before, name=f"pre-training {before.name}")  # the same on other data
    first = load_model(pretrained, before, allow_pickle)
    second = load_model(finetuned, own, allow_pickle)
    open_pair(first, second)
    words = shared_tokenizer(tokenizer, finetuned, pretrained)
    for model in (first, second):
        match(model, words)
    count = random if random is not None else COUNT if limit is None else limit
    work = Work(words, count, seed, max_length)
    rows, name = work.inputs(first, own if random is None else None, text, split)
    if dry_run:
        classes = ", ".join(type(model).__name__ for model in (first, second))
        plan = {"classes": classes, "inputs": f"{min(len(rows), count)} ({name})", "recall": recall}
        emit(plan, as_json=as_json, table=table(["would compare", ""], list(plan.items())))
        return
    for model in (first, second):
        model.to(pick_device(device))
    ranks = {
        job.name: work.rank(model, job, samples, normalize)
        for model, job in ((second, own), (first, before))
        if job is not None
    }
    with bar("comparing") as progress:
        found = measured(
            first, second, rows, importance=ranks, limit=count, seed=seed, name=name,
            progress=progress,
        )  # fmt: skip
    if own is not None and before is not None and recall:
        found = found.with_recall(
            work.score(second, own, ranks[own.name], points, limit, split),
            work.score(first, before, ranks[before.name], points, limit, None),
            share,
        )
    found = replace(found, made={**found.made, "pretrained": pretrained, "finetuned": finetuned})
    data_out = plain(found.to_json())
    if out is not None:
        write(found, data_out, out)
    emit(data_out, as_json=as_json, table=page(found))


def _check(
    task: str | None,
    text: Path | None,
    random: int | None,
    recall: bool,
    share: float,
    points: int,
    pretraining_task: str | None,
    pretraining_data: Path | None,
    out: Path | None,
) -> None:
    """What makes no sense together is told before anything is loaded."""
    if text is not None and random is not None:
        raise UsageError("Pass --text or --random, not both: inputs come from one place.")
    if recall and (task is None or pretraining_task is None):
        raise UsageError("--recall compares two tasks: pass --task and --pretraining-task.")
    if pretraining_data is not None and pretraining_task is None:
        raise UsageError("--pretraining-data goes with --pretraining-task.")
    if not 0 < share <= 1:
        raise UsageError(f"The share of the score is above 0 and at most 1, not {share}.")
    if points < 1:
        raise UsageError(f"At least one number of heads is scored, not {points}.")
    if out is not None:
        from headcount.report.figures import need_matplotlib

        need_matplotlib()
