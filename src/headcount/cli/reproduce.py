"""`headcount reproduce PAPER ITEM`: a table or figure of a paper, by one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headcount.base.errors import UsageError
from headcount.cli.common import Json, emit, say, warn
from headcount.cli.progress import bar
from headcount.cli.typed import TypedOptions, typed
from headcount.papers.scales import DataPaths
from headcount.studies.executors.protocol import ExecutorOptions

if TYPE_CHECKING:
    ExecutorFlags = TypedOptions[ExecutorOptions]
    DataPathFlags = TypedOptions[DataPaths]
else:
    ExecutorFlags = typed(ExecutorOptions, "Executor")
    DataPathFlags = typed(DataPaths, "Real data and weights")

Flag = Parameter(negative=())
EXECUTOR_FLAGS, DATA_PATH_FLAGS = ExecutorFlags(), DataPathFlags()


def reproduce(
    paper: Annotated[
        str | None, Parameter(help="redundancy, weak-link, autoattention or lay-off.")
    ] = None,
    item: Annotated[str | None, Parameter(help="table-4, figure-7 …; see --list.")] = None,
    /,
    *,
    scale: str = "pocket",
    out: Path | None = None,
    paths: DataPathFlags = DATA_PATH_FLAGS,
    executor_options: ExecutorFlags = EXECUTOR_FLAGS,
    every: Annotated[bool, Parameter(name="--all", negative=())] = False,
    listed: Annotated[bool, Parameter(name="--list", negative=())] = False,
    plan: Annotated[bool, Flag] = False,
    drawn: Annotated[bool, Flag] = False,
    write_docs: Path | None = None,
    as_json: Json = False,
) -> int | None:
    """Run the experiments behind a table or figure of the four papers; draw it beside the original.

    pocket is offline and takes minutes, small needs real weights and data (--weights, --data),
    paper a GPU or a cluster. All items share their runs, which are kept: run the same command
    again to resume.

    **Examples:**

    - `headcount reproduce --list`
    - `headcount reproduce weak-link table-4`
    - `headcount reproduce redundancy --executor processes`
    - `headcount reproduce --all --scale paper --plan`

    Parameters
    ----------
    scale
        pocket, small or paper.
    out
        Folder of the runs and figures; reproduce/SCALE by default.
    every
        All items of all papers, as one study.
    listed
        List papers and items, and stop.
    plan
        Count the runs and estimate how long they take, and stop.
    drawn
        Run nothing: draw from finished runs.
    write_docs
        Write the page of all claims and items from the runs in --out to this Markdown file.
    """
    from headcount.papers import reproduce as work
    from headcount.papers import tables
    from headcount.views.tables.study import plan_table

    if listed:
        items = work.select_items(paper, item)
        data = [one.to_json() for one in items]
        emit(data, as_json=as_json, table=tables.items_table(items))
        return None
    if paper is None and not every and write_docs is None:
        raise UsageError("Name a paper and an item, or pass --all; --list shows them.")
    where = {"scale": scale, "out": out, "paths": paths.on()}
    if plan:
        summary = work.plan_summary(paper, item, **where)
        emit(summary.to_json(), as_json=as_json, table=plan_table(summary))
        return None
    if write_docs is not None:
        return _page(write_docs, out, paths.on(), as_json)
    with bar(f"{scale} runs") as progress:
        done = work.reproduce(
            paper,
            item,
            **where,
            executor_options=executor_options.on(),
            run=not drawn,
            note=warn,
            progress=progress,
        )
    one = len(done) == 1
    data = done[0].to_json() if one else [result.to_json() for result in done]
    emit(data, as_json=as_json, table=(tables.reproduced_page if one else tables.summary)(done))
    return 6 if any(result.drawn is None for result in done) else None


def _page(path: Path, out: Path | None, paths: DataPaths, as_json: bool) -> None:
    """Write the page from the runs of all scales that are there."""
    from headcount.papers.page import write_page
    from headcount.views.tables.columns import table

    page = write_page(path, [] if out is None else [out], paths)
    rows = list(page.counts.items())
    emit(page.to_json(), as_json=as_json, table=table(["claims", "number"], rows))
    say(f"headcount: {path} is written, with {page.figures} figures.")
