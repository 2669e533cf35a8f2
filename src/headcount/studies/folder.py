"""The folder of a pruned model: it appears whole, by one rename, or not at all.

Beside it, until it is there, lies the folder that a killed run goes on from.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.errors import HeadcountError
from headcount.files import LOCK, locked, read_json, require_new, write_json
from headcount.heads import Mask
from headcount.learned.trace import FILE, Trace, load_trace
from headcount.models.card import write_card, write_results
from headcount.models.load import load
from headcount.models.numbers import original_mask
from headcount.studies.identity import require_same
from headcount.studies.notes import Note
from headcount.tasks.glue import HUB, LAYOUTS
from headcount.training.checkpoints import SETTINGS

RECORD = "record.json"
MASK = "mask.json"


def require_free(out: str | Path) -> Path:
    """The folder to write: new, empty, or a pruned model's; asked before any work is done."""
    path = Path(out).expanduser()
    return path if (path / RECORD).is_file() else require_new(path)


def finished(
    target: Path, about: Mapping[str, Any], note: Note
) -> tuple[PreTrainedModel, Mask, dict[str, Any], Trace | None] | None:
    """What an earlier call with the same question wrote; None where there is nothing yet."""
    if not (target / RECORD).is_file():
        return None
    record = read_json(target / RECORD, "record of a pruned model")
    then = record.get("identity") if isinstance(record, dict) else None
    if told := require_same(then, about, target):
        note(told)
    note(f"{target} is there already, made by the same question: nothing is computed again.")
    mask = Mask.from_json(record["mask"])  # mask.json has the original model's numbers
    trace = load_trace(target) if (target / FILE).is_file() else None
    return load(target), mask, record, trace


@contextmanager
def workspace(
    target: Path, about: Mapping[str, Any], note: Note, *, overwrite: bool = False
) -> Generator[None]:
    """Hold the folder that a killed run goes on from; it is gone once the run is done."""
    work = work_of(target)
    try:
        with locked(work):
            if overwrite:
                _empty(work)
            if not (work / SETTINGS).is_file():
                write_json(work / SETTINGS, dict(about))
            elif told := require_same(read_json(work / SETTINGS, "settings"), about, target):
                note(told)
            yield
            _empty(work)
    finally:
        with suppress(OSError):  # what is left of a run that was under way stays
            if {path.name for path in work.iterdir()} <= {SETTINGS}:
                _empty(work)
                work.rmdir()


def work_of(target: Path) -> Path:
    """Where a run that writes `target` works until it is done."""
    return target.parent / f".{target.name}.work"


def _empty(work: Path) -> None:
    for path in work.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Folder:
    """Where a pruned model goes, and the record of how it was made."""

    target: Path
    record: dict[str, Any]

    def write(
        self, model: PreTrainedModel, mask: Mask, tokenizer: Any = None, trace: Trace | None = None
    ) -> None:
        """Model, tokenizer, mask.json, record.json, the card with its scores, and gates.npz."""
        made: Path | None = None
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.", dir=self.target.parent))
            model.save_pretrained(made)
            if tokenizer is not None:
                tokenizer.save_pretrained(made)
            _json(made / MASK, original_mask(model, mask).to_json())
            record = _with_dataset(self.record)
            _json(made / RECORD, record)
            if trace is not None:
                trace.save(made / FILE)
            write_card(model, made, record=record)
            write_results(made, record)
            made.chmod(0o755)  # mkdtemp's folders are private
            with _out_of_the_way(self.target):
                made.replace(self.target)
        except OSError as error:
            reason = error.strerror or error
            raise HeadcountError(f"Cannot write to {self.target}: {reason}.") from error
        finally:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _out_of_the_way(target: Path) -> Generator[None]:
    """Move a model that is to be replaced aside, and delete it once that is done."""
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    there = target.is_dir() and any(target.iterdir())
    if there:
        target.replace(old)
    try:
        yield
    except BaseException:
        if there:
            old.replace(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _json(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    path.write_text(text + "\n", encoding="utf-8")


def _with_dataset(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the hub's name of the task's data set, where it is one of the hub's."""
    scores = record.get("scores")
    if not scores or scores["task"] not in LAYOUTS:
        return record
    dataset = {"id": HUB, "task": LAYOUTS[scores["task"]].config}
    return record | {"scores": scores | {"dataset": dataset}}
