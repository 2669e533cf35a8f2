"""`hc.redundancy(model, inputs)`: how far apart every two heads are, on average over inputs.

On Attention Redundancy (NAACL 2021), §3.

One forward pass serves all distances. Each input's distances are computed without padding on one
core while others do the next input, and go into a running mean and standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from headcount.base.errors import UsageError
from headcount.base.files import locked_file
from headcount.heads import Layout
from headcount.likeness.attention import Stacks, attention_of, name_broken_head
from headcount.likeness.distances import Options
from headcount.likeness.distances import distances as distances_of
from headcount.likeness.inputs import Stream, digest_of, open_stream
from headcount.likeness.kernels.threads import count as usable_threads
from headcount.likeness.options import DistanceOptions, check_names, check_tolerance
from headcount.likeness.result import Key, Redundancy
from headcount.likeness.running import RunningMoments, load_state, save_state
from headcount.models.door import require_model, require_numbers
from headcount.models.find import layout as layout_of_model
from headcount.models.find import unwrap
from headcount.models.fingerprint import identity, versions
from headcount.models.hooks import evaluating

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from headcount.tasks.as_rows import Data

LEAST = 32
"""Inputs before a standard error is trusted to end a run."""

Progress = Callable[[int, int | None], object]


def redundancy(
    model: nn.Module,
    inputs: Data,
    distances: str | Iterable[str] = DistanceOptions.distances,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    samples: int | None = None,
    max_length: int = 128,
    tolerance: float | None = None,
    options: Options | None = None,
    seed: int = 0,
    name: str = "",
    state: str | Path | None = None,
    keep_state: bool = False,
    every: int = 100,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Redundancy:
    """The mean distance between every two heads of each stack, with its standard error.

    `inputs` are batches as the model takes them, texts or pairs of texts (with `tokenizer`), or
    rows of tokens (`tasks.encoding.Encoded`). Padding never reaches a distance. `distances` are
    names, or "all". Of rows and texts, `samples` takes a seeded sample that is even over lengths.
    The run ends early when every standard error is at most `tolerance`.

    `options` go under the name of their distance. `state` is a file from which an interrupted run
    goes on, written every so many inputs and gone at the end; with `keep_state` the caller deletes
    it, once the result is saved; a second process with the same file is refused.
    `progress(done, total)` is called after each input. `name` says what the inputs are. A layer
    that the model runs several times counts with the mean over its runs.
    """
    names = check_names(distances, options or {})
    check_tolerance(tolerance)
    bare = require_model(unwrap(model), "hc.redundancy")
    layout = layout_of_model(bare)
    if all(stack.total < 2 for stack in layout.stacks):
        raise UsageError(f"Redundancy is between two heads; this model has {layout}.")
    stream = open_stream(
        bare, inputs, tokenizer=tokenizer, limit=samples, max_length=max_length, seed=seed,
        heads=len(layout),
    )  # fmt: skip
    require_numbers(bare, "hc.redundancy")
    provenance = {
        "model": getattr(bare, "name_or_path", "") or type(bare).__name__,
        "class": type(bare).__name__,
        "inputs": name,
        "distances": names,
        "options": {key: dict(value) for key, value in (options or {}).items()},
        "samples": samples,
        "tolerance": tolerance,
        "seed": seed,
        "versions": versions("numba"),
    }
    # a path is no part of what a run depends on, and neither is a version
    settings = {key: value for key, value in provenance.items() if key not in ("model", "versions")}
    if state is not None:
        settings |= {**identity(bare, tokenizer), "rows": stream.rows}
    run = _Run(model, layout, names, options or {}, threads or usable_threads())
    try:
        with evaluating(bare), locked_file(Path(state)) if state else nullcontext():
            _all(run, stream, settings, tolerance, Path(state) if state else None, every, progress)
    finally:
        # an interrupted run does not wait for inputs that nobody will count
        run.pool.shutdown(cancel_futures=True)
    if state is not None and not keep_state:
        Path(state).unlink(missing_ok=True)
    provenance |= {"digest": run.digest, "stopped_early": run.stopped}
    provenance["lengths"] = {"shortest": run.shortest, "longest": run.longest}
    return Redundancy(
        layout=layout,
        measured=run.running.measured(),
        count=run.running.count,
        provenance=provenance,
    )


@dataclass
class _Run:
    """A run under way."""

    model: nn.Module
    layout: Layout
    names: list[str]
    options: Options
    threads: int
    running: RunningMoments = field(default_factory=RunningMoments)
    digest: str = ""
    stopped: bool = False
    shortest: int = 0
    longest: int = 0

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.threads, "headcount-redundancy")

    def matrices(self, stacks: Stacks, threads: int) -> dict[Key, NDArray[np.float32]]:
        """Every distance on one input; over the runs of shared layers, the mean."""
        means: dict[Key, NDArray[np.float32]] = {}
        try:
            for stack, runs in stacks.items():
                by_run = [
                    distances_of(run, self.names, threads=threads, **self.options) for run in runs
                ]
                for name in self.names:
                    parts = [matrices[name] for matrices in by_run]
                    means[stack, name] = parts[0] if len(parts) == 1 else np.mean(parts, axis=0)
        except UsageError:
            head = name_broken_head(stacks, self.layout)
            if head is None:
                raise
            raise UsageError(
                f"The attention of head {head} holds NaN or infinite values on input "
                f"{self.running.count + 1} or soon after; check the model's weights and dtype."
            ) from None
        return means

    def measure(self, batch: dict[str, torch.Tensor]) -> Iterator[dict[Key, NDArray[np.float32]]]:
        """The matrices of each input of a batch, in order."""
        inputs = attention_of(self.model, batch, self.layout)
        rows = len(next(iter(batch.values())))
        # one input a thread: measured, it beats many threads on one input where inputs are short
        if rows == 1 or next(self.model.parameters()).device.type != "cpu":
            for stacks in inputs:
                yield self.matrices(stacks, self.threads)
        else:
            yield from self.pool.map(lambda stacks: self.matrices(stacks, 1), inputs)


def _all(
    run: _Run,
    stream: Stream,
    settings: Mapping[str, object],
    tolerance: float | None,
    state: Path | None,
    every: int,
    progress: Progress | None,
) -> None:
    """Go through the stream from where an earlier run left off, if it did."""
    wanted, done, saved = "", 0, 0
    if state is not None and state.exists():
        run.running, wanted = load_state(state, settings)
        done = saved = run.running.count
    seen = 0
    for chunk in stream.chunks:
        run.digest = digest_of(chunk, run.digest)
        _note_lengths(run, chunk)
        if seen < done:
            seen += sum(len(next(iter(batch.values()))) for batch in chunk)
            if seen >= done and (seen > done or run.digest != wanted):
                raise UsageError(f"The unfinished run in '{state}' was on other inputs.")
        else:
            for batch in chunk:
                for matrices in run.measure(batch):
                    run.running.add(matrices)
                    if progress is not None:
                        progress(run.running.count, stream.total)
        if seen >= done and _enough(run, tolerance):
            run.stopped = True
            break
        if state is not None and run.running.count - saved >= every:
            save_state(state, run.running, settings, run.digest)
            saved = run.running.count
    if seen < done:
        raise UsageError(f"The unfinished run in '{state}' was on more inputs than there are now.")
    if not run.running.count:
        raise UsageError("There are no inputs to measure redundancy on.")
    if state is not None and run.running.count > saved:
        save_state(state, run.running, settings, run.digest)


def _enough(run: _Run, tolerance: float | None) -> bool:
    if tolerance is None or run.running.count < LEAST:
        return False
    return run.running.largest_error() <= tolerance


def _note_lengths(run: _Run, chunk: list[dict[str, torch.Tensor]]) -> None:
    for batch in chunk:
        mask = batch.get("attention_mask")
        if mask is not None and mask.ndim == 2:
            lengths = (mask != 0).sum(1)
            run.shortest = min(run.shortest or int(lengths.min()), int(lengths.min()))
            run.longest = max(run.longest, int(lengths.max()))
