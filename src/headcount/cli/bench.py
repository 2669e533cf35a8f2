"""`headcount bench MODEL [PRUNED]`: is it really faster? Dense, masked and removed, in one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import RenderableType

from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import progress, waiting
from headcount.cli.typed import TypedOptions, typed
from headcount.models.model_options import ModelOptions
from headcount.runs.kinds.bench import BenchOptions
from headcount.views.tables.bench import bench_table, plan_table

if TYPE_CHECKING:
    Asked = TypedOptions
    Loaded = TypedOptions
else:
    Asked = typed(BenchOptions, "Timing", leave_out=("pruned",))
    Loaded = typed(ModelOptions, "Model", leave_out=("tokenizer", "dtype"))


def bench(
    model: Annotated[str, Parameter(help="A folder, a config.json, or a name on the hub.")],
    pruned: Annotated[str | None, Parameter(help="The same model with heads removed.")] = None,
    /,
    *,
    asked: Asked = Asked(),  # noqa: B008
    model_options: Loaded = Loaded(),  # noqa: B008
    seed: cuts.Seed = 0,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Time one forward pass: dense, masked, with heads removed, and in onnxruntime.

    All run in turn, round after round, so a busy machine slows all of them; what is printed is
    how many times as fast as the dense model each is (the median over rounds, with its 95 %
    interval), beside what the FLOPs allow. Rounds go on until the intervals are within ± 10 %.
    Without PRUNED, heads are removed at random: which ones makes no difference to time.

    **Examples:**

    - `headcount bench bert-base-uncased`
    - `headcount bench ./model ./pruned`
    - `headcount bench ./config.json --ratio 0.5 0.9 --batch 1,8 --length 32,128 --json`
    """
    from headcount.costs.speed import check_bench, plan

    options = asked.on(BenchOptions(pruned=pruned))
    check_bench(pruned, options.ratio, options.batch, options.length, options.repeats)
    if dry_run:
        how: Any = {"ratio": options.ratio, "length": options.length, "seed": seed}
        ahead = plan(model, pruned, **how)
        show(ahead.notes, ahead.to_json(), as_json, plan_table(ahead))
        return
    run = groups.run_of("bench", model, options, None, groups.SOURCE_FLAGS, model_options, seed)
    with waiting("loading and removing") as prepared:

        def track(rounds: Iterable[int]) -> Iterator[int]:
            prepared()
            yield from progress(rounds, f"timing, at least {options.repeats} rounds")

        found = groups.executed(run, report=track)
    data = found.record.to_json() | {"notes": list(found.value.notes)}
    show(found.value.notes, data, as_json, bench_table(found.value))


def show(notes: Iterable[str], data: dict[str, Any], as_json: bool, table: RenderableType) -> None:
    """What is to be known first, on stderr; then what was found."""
    for note in notes:
        warn(note)
    emit(data, as_json=as_json, table=table)
