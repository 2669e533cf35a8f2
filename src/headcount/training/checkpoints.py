"""What a run leaves in its folder, so that a killed run goes on where it was.

    settings.json       what was asked for; a run with other settings is refused
    curve.jsonl         the learning curve
    checkpoint-120/     weights, optimizer, schedule and random states; whole once marked so
    result.json         written last: the run is done

The finished model itself lies in the folder too, ready for `headcount evaluate`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import TrainerCallback

from headcount.errors import UsageError
from headcount.tasks.encoding import Encoded

MARK = "whole.json"
SETTINGS = "settings.json"
RESULT = "result.json"


def write_json(path: Path, data: Any) -> None:
    """Write a file that is there whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(data, indent=2, default=str) + "\n", encoding="utf-8")
    os.replace(partial, path)


def weights_fingerprint(model: nn.Module) -> str:
    """A short name for exactly these weights."""
    digest = hashlib.blake2b(digest_size=8)
    for _, parameter in sorted(model.named_parameters()):
        flat = parameter.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return digest.hexdigest()


def rows_fingerprint(rows: Encoded) -> str:
    """A short name for exactly these tokens and labels."""
    digest = hashlib.blake2b(digest_size=8)
    labels = rows.labels if isinstance(rows.labels, list) else []
    for column in (*rows.columns.values(), labels):
        for row in column:
            digest.update(array("q", row).tobytes() + b"|")
    if isinstance(rows.labels, np.ndarray):
        digest.update(rows.labels.tobytes())
    return digest.hexdigest()


def require_same_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was started with other settings, naming them."""
    path = folder / SETTINGS
    if not path.is_file():
        return
    then = json.loads(path.read_text(encoding="utf-8"))
    now = json.loads(json.dumps(settings, default=str))
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if names:
        changes = "; ".join(f"{name} was {then.get(name)}, now {now.get(name)}" for name in names)
        raise UsageError(
            f"The run in '{folder}' was started with other settings: {changes}. Use those again "
            "to go on with it, another --out, or --overwrite to start anew."
        )


def last_checkpoint(folder: Path, processes: int = 1) -> Path | None:
    """The latest whole checkpoint; those a kill left unfinished are deleted."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    whole = [path for path in found if (path / MARK).is_file()]
    whole = [path for path in whole if len(list(path.glob("rng_state*"))) >= processes]
    for path in found:
        if path not in whole:
            shutil.rmtree(path, ignore_errors=True)
    return whole[-1] if whole else None


def clear(folder: Path) -> None:
    """Delete everything a run left in the folder."""
    for path in [*folder.glob("checkpoint-*")]:
        shutil.rmtree(path)
    for name in (SETTINGS, RESULT, "curve.jsonl"):
        (folder / name).unlink(missing_ok=True)


class MarkWhole(TrainerCallback):
    """Marks a checkpoint once Trainer has written all of it."""

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Trainer has saved."""
        if state.is_world_process_zero:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            write_json(folder / MARK, {"step": state.global_step})
