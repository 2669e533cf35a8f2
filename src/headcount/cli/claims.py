"""`headcount claims`: the papers' claims, tested on finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headcount.base.errors import NotFoundError
from headcount.cli.common import Json, emit, say
from headcount.cli.typed import TypedOptions, typed
from headcount.papers.scales import DataPaths

if TYPE_CHECKING:
    DataPathFlags = TypedOptions[DataPaths]
else:
    DataPathFlags = typed(DataPaths, "Real data and weights")

DATA_PATH_FLAGS = DataPathFlags()


def claims(
    folders: Annotated[
        list[Path] | None, Parameter(help="Folders of headcount reproduce; reproduce/* by default.")
    ] = None,
    /,
    *,
    scale: Annotated[
        list[str] | None, Parameter(help="These scales only: pocket, small or paper.")
    ] = None,
    power: Annotated[
        bool,
        Parameter(
            help="Print what would decide each undecided claim instead, and how long it takes."
        ),
    ] = False,
    paths: DataPathFlags = DATA_PATH_FLAGS,
    as_json: Json = False,
) -> None:
    """Test every claim of the four papers: it holds, does not hold, is undecided, or was not run.

    A claim is undecided where the interval of its statistic includes both sides of the threshold,
    and not run while one of its runs is missing. With `--power` each undecided claim says how many
    seeds, runs or heads would put the interval on one side in 80 % of repetitions, if the effect
    and the spread seen are the true ones.

    **Examples:**

    - `headcount claims`
    - `headcount claims reproduce/pocket --json`
    - `headcount claims --scale small --power`
    """
    from headcount.papers import tables
    from headcount.papers.reproduce import claims as judged
    from headcount.papers.reproduce import count_verdicts

    if power:
        from headcount.papers.power import claims_power

        outlooks = claims_power(*(folders or ()), scales=scale, paths=paths.on())
        data = [outlook.to_json() for outlook in outlooks]
        emit(data, as_json=as_json, table=tables.power_table(outlooks))
        return
    verdicts = judged(*(folders or ()), scales=scale, paths=paths.on())
    if not verdicts:
        raise NotFoundError("There are no finished runs: run headcount reproduce --all first.")
    data = [verdict.to_json() for verdict in verdicts]
    emit(data, as_json=as_json, table=tables.claims_table(verdicts))
    say(f"headcount: {tables.counts_line(count_verdicts(verdicts))}.")
