"""`headcount transfer PRETRAINED FINETUNED`: what fine-tuning changed in each head."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.base.errors import UsageError
from headcount.cli import groups
from headcount.cli.common import Json, can_draw, emit, plain
from headcount.cli.progress import bar
from headcount.runs.kinds.transfer import TransferOptions


def transfer(
    pretrained: Annotated[str, Parameter(help="The first model: a folder or a name on the hub.")],
    finetuned: Annotated[str, Parameter(help="The second model, of the same architecture.")],
    /,
    *,
    task: groups.AnyTask = None,
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    input_options: groups.InputFlags = groups.INPUT_FLAGS,
    drift_options: groups.DriftFlags = groups.DRIFT_FLAGS,
    out: Annotated[Path | None, Parameter(help="Write transfer.json and figures here.")] = None,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Compare two checkpoints of one architecture, such as before and after fine-tuning.

    For every layer and head: the Jensen–Shannon divergence (base 2) between the two models'
    attention on the same inputs, the L2 distance of their hidden states, and the mean absolute
    change of query, key and value weights. With --task, the second model's, also the correlation of
    drift with importance, and with --recall how many of the heads the task needs are kept when the
    pre-trained model is pruned on its own task. To freeze lower layers: `headcount train --freeze`.

    **Examples:**

    - `headcount transfer ./bert ./bert-sst2 --task sst2 --data glue --out drift`
    - `headcount transfer ./bert ./bert-sst2 --calibration lines.txt --json`
    - `headcount transfer pocket ./run --task pocket-sentiment --pretraining-task pocket-corpus
      --recall`
    """
    read, options = input_options.on(), drift_options.on()
    if options.recall and task is None:
        raise UsageError("--recall compares two tasks: pass --task and --pretraining-task.")
    groups.open_task(task, source, read.split)
    request = TransferOptions(finetuned=finetuned, input_options=read, drift_options=options)
    run = groups.run_of("transfer", pretrained, request, task, source, model_options, read.seed)
    if dry_run:
        groups.would_run("compare", run, as_json)
        return
    figures = out is not None and can_draw()
    result = groups.executed(run, report=bar)
    from headcount.views.tables.transfer import transfer_table
    from headcount.views.transfer import save

    data = plain(result.record.to_json())
    if out is not None:
        save(result.value, data, out, figures=figures)
    emit(data, as_json=as_json, table=transfer_table(result.value))
