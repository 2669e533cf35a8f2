"""`headcount bench MODEL [PRUNED]`: dense, masked and pruned, timed in one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import RenderableType

from headcount.base.errors import UsageError
from headcount.cli import groups
from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import progress, waiting
from headcount.cli.typed import TypedOptions, typed
from headcount.models.model_options import ModelOptions
from headcount.runs.kinds.bench import BenchOptions
from headcount.views.tables.bench import bench_table, plan_table

if TYPE_CHECKING:
    TimingFlags = TypedOptions[BenchOptions]
    DeviceFlags = TypedOptions[ModelOptions]
else:
    TimingFlags = typed(BenchOptions, "Timing", leave_out=("pruned",))
    DeviceFlags = typed(ModelOptions, "Model", leave_out=("tokenizer", "dtype"))


def bench(
    model: Annotated[str, Parameter(help="A folder, a config.json, or a name on the hub.")],
    pruned: Annotated[str | None, Parameter(help="The same model with heads removed.")] = None,
    /,
    *,
    timing: TimingFlags = TimingFlags(),  # noqa: B008
    model_options: DeviceFlags = DeviceFlags(),  # noqa: B008
    seed: groups.Seed = 0,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Time one forward pass: dense, masked, with heads removed, and in onnxruntime.

    All variants run in turn, round after round, so that a busy machine slows all of them. The
    speedup over the dense model is printed (the median over rounds, with its 95 % interval),
    beside what the FLOPs allow. Rounds go on until the intervals are within ± 10 %. Without
    PRUNED, random heads are removed: which ones makes no difference to time. With --generate a
    decoder writes: a prefill, and tokens a second with the cache, beside what the bytes allow.

    **Examples:**

    - `headcount bench bert-base-uncased`
    - `headcount bench ./model ./pruned`
    - `headcount bench ./model --generate --ratio 0.5 --length 1024 --batch 1,16`
    - `headcount bench ./config.json --ratio 0.5 0.9 --batch 1,8 --length 32,128 --json`
    """
    from headcount.costs.speed import check_bench, plan

    options = timing.on(BenchOptions(pruned=pruned))
    check_bench(
        pruned, options.ratio, options.batch, options.length, options.repeats,
        generate=options.generate, onnx=options.onnx,
    )  # fmt: skip
    if dry_run and options.generate:
        raise UsageError(
            "--dry-run has no --generate: headcount inspect --context says what reading allows."
        )
    if dry_run:
        ahead = plan(model, pruned, ratio=options.ratio, length=options.length, seed=seed)
        show(ahead.notes, ahead.to_json(), as_json, plan_table(ahead))
        return
    run = groups.run_of("bench", model, options, None, groups.SOURCE_FLAGS, model_options, seed)
    with waiting("loading and removing") as prepared:

        def track(rounds: Iterable[int]) -> Iterator[int]:
            prepared()
            yield from progress(rounds, f"timing, at least {options.repeats} rounds")

        result = groups.executed(run, report=track)
    data = result.record.to_json() | {"notes": list(result.value.notes)}
    show(result.value.notes, data, as_json, bench_table(result.value))


def show(
    notes: Iterable[str], data: Mapping[str, object], as_json: bool, table: RenderableType
) -> None:
    """Notes on stderr; then the results."""
    for note in notes:
        warn(note)
    emit(data, as_json=as_json, table=table)
