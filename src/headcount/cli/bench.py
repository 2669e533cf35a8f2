"""`headcount bench MODEL [PRUNED]`: is it really faster? Dense, masked and removed, in one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import RenderableType

from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import progress, waiting
from headcount.report.tables.bench import ideals, page


def bench(
    model: str,
    pruned: str | None = None,
    *,
    ratio: Annotated[list[float] | None, Parameter(consume_multiple=True)] = None,
    batch: int = 8,
    length: int | None = None,
    repeats: int = 15,
    onnx: bool | None = None,
    from_config: Annotated[bool, Parameter(negative=())] = False,
    allow_pickle: Annotated[bool, Parameter(negative=())] = False,
    device: str = "auto",
    seed: int = 0,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    as_json: Json = False,
) -> None:
    """Time one forward pass: dense, masked, with heads removed, and in onnxruntime.

    All run in turn, round after round, so a busy machine slows all of them; what is printed is
    the median of the ratios to the dense model with its 95 % interval, beside the ideal from
    FLOPs. Without PRUNED, heads are removed at random: which ones makes no difference to time.

    Examples: `headcount bench bert-base-uncased` · `headcount bench ./model ./pruned` ·
    `headcount bench ./config.json --ratio 0.5 0.9 --batch 1 --length 64 --json`

    Parameters
    ----------
    model
        A model folder, a config.json, or a name on the hub.
    pruned
        The same model with heads removed.
    ratio
        Shares of the heads to remove when PRUNED is not given: 0.5 0.75 0.9.
    batch
        Examples in a forward pass.
    length
        Tokens of each example; 128, or what fits.
    repeats
        Rounds; 6 or more.
    onnx
        Time onnxruntime, too: the dense model and the one with the fewest heads. By default when
        it is installed and the device is the CPU; exporting takes most of a minute.
    from_config
        Use random weights, even where there are others: they take the same time.
    allow_pickle
        Load weights that are pickled (.bin), which can run code: only if you trust them.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    seed
        Seed of the heads that are removed, the inputs, and random weights.
    dry_run
        Print the ideals only; nothing is loaded or timed.
    """
    from headcount.models.speed import bench as measure
    from headcount.models.speed import check_bench, plan

    check_bench(pruned, ratio, batch, repeats)
    if dry_run:
        ahead = plan(model, pruned, ratio=ratio, length=length, seed=seed)
        show(ahead.notes, ahead.to_json(), as_json, ideals(ahead))
        return
    with waiting("loading and removing") as prepared:

        def track(rounds: Iterable[int]) -> Iterator[int]:
            prepared()
            yield from progress(rounds, "timing", total=repeats)

        found = measure(
            model, pruned, ratio=ratio, batch=batch, length=length, repeats=repeats, onnx=onnx,
            from_config=from_config, allow_pickle=allow_pickle, device=device, seed=seed,
            track=track,
        )  # fmt: skip
    show(found.notes, found.to_json(), as_json, page(found))


def show(notes: Iterable[str], data: dict[str, Any], as_json: bool, table: RenderableType) -> None:
    """What is to be known first, on stderr; then what was found."""
    for note in notes:
        warn(note)
    emit(data, as_json=as_json, table=table)
