"""`headcount roles MODEL`: what each head does on data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.base.errors import UsageError
from headcount.base.files import write_json
from headcount.cli import groups
from headcount.cli.common import Json, emit, plain
from headcount.cli.progress import bar
from headcount.runs.kinds.roles import RolesOptions
from headcount.views.figures import check_figures, save_all


def roles(
    model: groups.Model,
    pruned: Annotated[
        str | None, Parameter(help="The same model with heads removed, for examples after pruning.")
    ] = None,
    /,
    *,
    role_options: groups.RoleFlags = groups.ROLE_FLAGS,
    out: Annotated[Path | None, Parameter(help="Also write the record to this JSON file.")] = None,
    task: groups.AnyTask = None,
    input_options: groups.InputFlags = groups.INPUT_FLAGS,
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    figure: groups.Figures = None,
    overwrite: groups.OverFile = False,
    as_json: Json = False,
) -> None:
    """What each head does: where it attends, how replaceable it is, what it costs.

    Attention to the previous, next, same and first token, to separators, duplicates and by
    induction, with entropy and distance: means over inputs with 95 % intervals. A head has a role
    where one of these is clearly above chance. Inputs are random tokens, each row repeated, or
    texts of a task or a file. Of images, patches are what attends: the class token is first, and
    reach is in two dimensions. With a pruned model, the examples also show where its heads attend.

    **Examples:**

    - `headcount roles bert-base-uncased --calibration texts.txt`
    - `headcount roles ./run --task sst2 --alone --time --out roles.json --figure roles.png`
    """
    read, described = groups.read_of(input_options, task, source), role_options.on()
    if described.alone and task is None:
        raise UsageError("--alone scores heads on the rows of a task: pass --task.")
    check_figures(figure or [])
    options = RolesOptions(input_options=read, role_options=described, pruned=pruned)
    run = groups.run_of("roles", model, options, task, source, model_options, read.seed)
    groups.require_same_run(run, out, out, overwrite)
    with bar("measuring") as report:
        result = groups.executed(run, report=report)
    from headcount.views.roles import heat_maps
    from headcount.views.tables.roles import roles_table

    data = result.record.to_json()
    if out is not None:
        write_json(out, plain(data), indent=None)
    if figure:
        save_all(heat_maps(result.value), figure)
    more = {"out": out, "figures": figure or []}
    emit(data | more, as_json=as_json, table=roles_table(result.value, out))
