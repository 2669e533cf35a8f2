"""`headcount redundancy MODEL`: how alike its heads are; `redundancy compare FILE…`: who agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from headcount.cli.common import Json, emit, say
from headcount.cli.progress import bar, progress
from headcount.cli.redundancy_inputs import Tokens, random_rows, task_rows, text_rows
from headcount.errors import UsageError
from headcount.report.tables.columns import table

redundancy = App(name="redundancy")

Names = Annotated[list[str] | None, Parameter(consume_multiple=True)]
Paths = Annotated[list[Path] | None, Parameter(consume_multiple=True)]
Flag = Annotated[bool, Parameter(negative=())]
COUNT = 1000
"""Inputs when nobody says how many, as in the paper."""


@redundancy.default
def measure(
    model: str,
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
    distances: Names = None,
    limit: int | None = None,
    tolerance: float | None = None,
    max_length: int = 128,
    out: Path | None = None,
    figure: Paths = None,
    tokenizer: str | None = None,
    allow_pickle: Flag = False,
    device: str = "auto",
    seed: int = 0,
    dry_run: Flag = False,
    as_json: Json = False,
) -> None:
    """How alike a model's heads are: a distance for every pair, with its standard error.

    Inputs are random tokens, or the texts of a task or a file; a sample is even over lengths.
    With --out, the same command again goes on after an interruption.

    Examples: `headcount redundancy bert-base-uncased --figure heads.png` ·
    `headcount redundancy ./bert --task cola --data glue --distances all --out cola.npz` ·
    `headcount redundancy compare cola.npz random.npz`

    Parameters
    ----------
    model
        A model folder or a name on the hub.
    task
        Use the texts of a task; see `headcount ls tasks`.
    text
        Use the lines of a text file.
    random
        Use so many rows of random tokens: 1000 when nothing else is named.
    data
        Folder or file with the task's rows.
    split
        Which rows of the task; its dev split when left out.
    column
        Names of the text columns of --data, one or two.
    label
        Name of the label column of --data.
    languages
        Endings of the two parallel files of a translation, as in `en de`.
    distances
        Which distances, or `all`; see `headcount ls distances`. `js dcor` when left out.
    limit
        Measure a sample of so many inputs; 1000 when left out.
    tolerance
        Stop when every standard error is at most this.
    max_length
        Tokens per input; longer ones are cut.
    out
        Write the matrices and how they were made to this file (.npz).
    figure
        Draw heat maps to these files, .png or .svg.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    allow_pickle
        Load weights that are pickled (.bin), which can run code: only if you trust them.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    seed
        Seed of the sample and of random tokens.
    dry_run
        Say what would be done, and stop.
    """
    if sum(each is not None for each in (task, text, random)) > 1:
        raise UsageError("Pass one of --task, --text and --random: inputs come from one place.")
    if task is None and any(each for each in (data, split, column, label, languages)):
        raise UsageError("--data, --split, --column, --label and --languages go with --task.")
    from headcount.likeness.names import check_names
    from headcount.report.figures import check_figures

    names = check_names(distances or ("js", "dcor"))
    check_figures(figure or [])
    from headcount.likeness.measure import redundancy as measured
    from headcount.models.devices import pick_device
    from headcount.models.load import load
    from headcount.tasks.loading import hush, load_tokenizer, match, require_text, room

    hush()
    require_text(model)
    loaded: Any = load(model, allow_pickle=allow_pickle)
    words = load_tokenizer(tokenizer or model)
    match(loaded, words)
    count = random if random is not None else COUNT if limit is None else limit
    source = {"data": data, "columns": tuple(column or ()), "label": label, "languages": languages}
    tokens = Tokens(tokenizer=words, longest=room(loaded, max_length), count=count, seed=seed)
    if task is not None:
        rows, name = task_rows(task, source, split, tokens), task
    elif text is not None:
        rows, name = text_rows(text, tokens), text.name
    else:
        rows, name = random_rows(tokens), "random tokens"
    limit = count if limit is None else limit
    if dry_run:
        _plan(loaded, name, min(len(rows), limit), names, as_json=as_json)
        return
    state = None if out is None else out.with_name(f".{out.name}.unfinished")
    try:
        with bar("measuring") as progress:
            found = measured(
                loaded.to(pick_device(device)),
                rows,
                names,
                limit=limit,
                tolerance=tolerance,
                seed=seed,
                name=name,
                tokenizer=words,
                state=state,
                keep_state=True,
                progress=progress,
            )
    except KeyboardInterrupt:
        if state is not None and state.exists():
            say("headcount: the same command again goes on from here.")
        raise
    if out is not None:
        found.save(out)
    if figure:
        from headcount.report.redundancy import heat_maps

        _draw(heat_maps(found), figure)
    if state is not None:
        state.unlink(missing_ok=True)  # until here the same command again would go on
    from headcount.report.tables.redundancy import found_page, found_to_json

    written = {"out": out, "figures": figure or []}
    emit(found_to_json(found) | written, as_json=as_json, table=found_page(found, out))


@redundancy.command
def compare(
    files: Annotated[list[Path], Parameter(required=True)],
    /,
    *,
    figure: Paths = None,
    clusters: int = 3,
    permutations: int = 999,
    seed: int = 0,
    as_json: Json = False,
) -> None:
    """Do distances, tasks and models agree? Correlations, layer gap and layer clusters.

    Between all distances in a file, and between files for every distance: Pearson's r with its
    95 % interval, Spearman's, the normalised form (1 + r) / 2, the p of a Mantel test that
    permutes heads, and the mean absolute difference.

    Examples: `headcount redundancy compare pretrained.npz finetuned.npz` ·
    `headcount redundancy compare *.npz --figure tasks.svg --json`

    Parameters
    ----------
    files
        Files that `headcount redundancy --out` wrote, of models with the same heads.
    figure
        Draw it all to these files, .png or .svg.
    clusters
        How many clusters of layers to make.
    permutations
        Permutations of heads behind each p.
    seed
        Seed of permutations and intervals.
    """
    from headcount.report.figures import check_figures

    check_figures(figure or [])
    from headcount.likeness.compare import compare as compared
    from headcount.likeness.result import load_redundancy

    values = {name: load_redundancy(path) for name, path in _named(files).items()}
    found = compared(
        values,
        clusters=clusters,
        permutations=permutations,
        seed=seed,
        track=lambda jobs: progress(jobs, "comparing"),
    )
    if figure:
        from headcount.report.redundancy import comparison_figure

        _draw(comparison_figure(found), figure)
    from headcount.report.tables.redundancy import compared_page

    data = found.to_json() | {"permutations": permutations, "seed": seed, "figures": figure or []}
    emit(data, as_json=as_json, table=compared_page(found))


def _draw(figure: Any, paths: list[Path]) -> None:
    from headcount.report.figures import save_figure

    for path in paths:
        save_figure(figure, path)


def _named(files: list[Path]) -> dict[str, Path]:
    """Short names where they tell the files apart, whole paths where not."""
    if len(set(files)) != len(files):
        raise UsageError("A file is named twice.")
    short = [path.stem for path in files]
    unique = len(set(short)) == len(short)
    return {(path.stem if unique else str(path)): path for path in files}


def _plan(model: Any, name: str, count: int, names: list[str], *, as_json: bool) -> None:
    from headcount.models.find import layout

    plan = {
        "class": type(model).__name__,
        "heads": repr(layout(model)),
        "inputs": f"{count} ({name})",
        "distances": ", ".join(names),
    }
    emit(plan, as_json=as_json, table=table(["would measure", ""], list(plan.items())))
