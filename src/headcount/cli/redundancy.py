"""`headcount redundancy MODEL`: the distances between its heads; `redundancy compare FILE…`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from headcount.base.files import discard, write_json
from headcount.cli import groups
from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import bar, progress
from headcount.runs.kinds.redundancy import RedundancyOptions
from headcount.views.figures import check_figures, save_all

redundancy = App(name="redundancy")
Files = Annotated[
    list[Path], Parameter(required=True, help="Files written by `headcount redundancy --out`.")
]


@redundancy.default
def measure(
    model: groups.Model,
    /,
    *,
    task: groups.AnyTask = None,
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    input_options: groups.InputFlags = groups.INPUT_FLAGS,
    distance_options: groups.DistanceFlags = groups.DISTANCE_FLAGS,
    out: Annotated[Path | None, Parameter(help="Write the matrices to this file (.npz).")] = None,
    figure: groups.Figures = None,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    overwrite: groups.OverFile = False,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Measure how similar a model's heads are: a distance for every pair, with its standard error.

    Inputs are random tokens, or texts of a task or a file, sampled evenly over lengths. With
    --out, an interrupted command resumes when it is run again.

    **Examples:**

    - `headcount redundancy bert-base-uncased --figure heads.png`
    - `headcount redundancy ./bert --task cola --data glue --distances all --out cola.npz`
    - `headcount redundancy compare cola.npz random.npz`
    """
    read = groups.read_of(input_options, task, source)
    check_figures(figure or [])
    options = RedundancyOptions(input_options=read, distance_options=distance_options.on())
    run = groups.run_of("redundancy", model, options, task, source, model_options, read.seed)
    if dry_run:
        groups.would_run("measure", run, as_json)
        return
    state = None if out is None else out.with_name(f".{out.name}.unfinished")
    record = None if out is None else out.with_suffix(".record.json")
    if state is None or not state.exists():
        groups.require_same_run(run, out, record, overwrite)
    try:
        with bar("measuring") as report:
            result = groups.executed(run, out, report=report, work=state)
    except KeyboardInterrupt:
        if state is not None and state.exists():
            warn("run the same command again to resume.")
        raise
    from headcount.views.redundancy import heat_maps
    from headcount.views.tables.redundancy import redundancy_json, redundancy_table

    matrices = result.value
    if record is not None:
        write_json(record, result.record.to_json())
    if figure:
        save_all(heat_maps(matrices), figure)
    if state is not None:
        discard(state)  # until here the same command would resume
    data = result.record.to_json() | redundancy_json(matrices)
    data |= {"out": out, "figures": figure or []}
    emit(data, as_json=as_json, table=redundancy_table(matrices, out))


@redundancy.command
def compare(
    files: Files,
    /,
    *,
    agreement_options: groups.AgreementFlags = groups.AGREEMENT_FLAGS,
    figure: groups.Figures = None,
    as_json: Json = False,
) -> None:
    """Do distances, tasks and models agree? Correlations, layer gap and layer clusters.

    Between all distances in a file, and between files for every distance: Pearson's r with its
    95 % interval, Spearman's, the normalised form (1 + r) / 2, the p of a Mantel test that
    permutes heads, and the mean absolute difference.

    **Examples:**

    - `headcount redundancy compare pretrained.npz finetuned.npz`
    - `headcount redundancy compare *.npz --figure tasks.svg --json`
    """
    check_figures(figure or [])
    from headcount.likeness.compare import compare as compared
    from headcount.likeness.result import load_several
    from headcount.views.redundancy import comparison_figure
    from headcount.views.tables.redundancy import comparison_table

    options = agreement_options.on()
    track = lambda jobs: progress(jobs, "comparing")  # noqa: E731
    comparison = compared(load_several(files), **vars(options), track=track)
    if figure:
        save_all(comparison_figure(comparison), figure)
    more = {"permutations": options.permutations, "seed": options.seed, "figures": figure or []}
    emit(comparison.to_json() | more, as_json=as_json, table=comparison_table(comparison))
