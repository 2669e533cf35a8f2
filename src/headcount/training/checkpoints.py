"""What a run leaves in its folder, so that a killed run goes on where it was.

    settings.json       what was asked for; a run with other settings is refused
    curve.jsonl         the learning curve
    checkpoint-120/     weights, optimizer, schedule and random states; whole once marked so
    result.json         written last: the run is done

The finished model itself lies in the folder too, ready for `headcount evaluate`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from headcount.errors import UsageError
from headcount.files import read_json, write_json
from headcount.models.fingerprint import differences, versions

MARK = "whole.json"
SETTINGS = "settings.json"
RESULT = "result.json"
VERSIONS = "versions"


def require_same_settings(
    folder: Path, settings: Mapping[str, Any], anew: str = "--overwrite to start anew"
) -> None:
    """Refuse to go on with a run that was started with other settings, naming them.

    `anew` is how the user can start again; the versions a run began with are no reason to refuse.
    """
    path = folder / SETTINGS
    if not path.is_file():
        return
    then = read_json(path, "settings of a run")
    if not isinstance(then, dict):
        raise UsageError(f"{path} is no settings of a run: delete it, or use another folder.")
    then.pop(VERSIONS, None)
    if changes := differences(then, settings):
        raise UsageError(
            f"The run in '{folder}' was started with other settings: {changes}. Use those again "
            f"to go on with it, another folder, or {anew}."
        )


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Note what a run was asked for and the versions it begins with, unless that is there."""
    if not (folder / SETTINGS).is_file():
        write_json(folder / SETTINGS, {**settings, VERSIONS: versions()})


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
