"""A model timed dense, masked and cut, from a run."""

from __future__ import annotations

from typing import Any

from headcount.base.options import to_plain
from headcount.costs.speed import Track
from headcount.costs.speed import bench as time_it
from headcount.models import fingerprint
from headcount.runs.carriers.common import RunOutput, name_of
from headcount.runs.kinds import BenchOptions
from headcount.runs.run import Run


def bench(run: Run, out: object, *, track: Track | None = None, **_: Any) -> RunOutput:
    """Time it; nothing is written but the record."""
    asked = run.asked(BenchOptions)
    found = time_it(
        name_of(run), asked.pruned, ratio=asked.ratio, batch=asked.batch,
        length=asked.length, repeats=asked.repeats, timing_seconds=asked.timing_seconds,
        onnx=asked.onnx, from_config=asked.from_config, allow_pickle=run.model_options.allow_pickle,
        device=run.model_options.device, seed=run.seed, **({"track": track} if track else {}),
    )  # fmt: skip
    about = {
        "model": run.model,
        "device": run.model_options.device,
        "versions": fingerprint.versions(),
    }
    about |= {"kind": run.kind, "options": to_plain(asked), "seed": run.seed}
    return RunOutput(found.to_json(), about, {}, found)
