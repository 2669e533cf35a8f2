"""The folder of a pruned model: it appears whole, by one rename, or not at all.

Beside it, until it is there, lies the folder that a killed run goes on from.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.base.files import LOCK, locked, read_json, whole_folder, write_json
from headcount.base.header import header
from headcount.base.outputs import require_new, require_place, require_replaceable
from headcount.heads import Mask
from headcount.learned.trace import FILE, Trace, load_trace
from headcount.models.card import write_card
from headcount.models.load import load
from headcount.models.numbers import original_mask
from headcount.runs.card import card_results, write_results
from headcount.runs.contents import content_of
from headcount.runs.identity import require_same
from headcount.runs.notes import Note
from headcount.runs.prune_result import PruneResult
from headcount.runs.record import FILE as RECORD
from headcount.runs.record import Record, load_record
from headcount.training.checkpoints import SETTINGS

MASK = "mask.json"


def require_free(out: str | Path, *, overwrite: bool = False) -> Path:
    """The folder to write: new, empty, or a pruned model's; asked before any work is done."""
    path = require_place(out)
    if not (path / RECORD).is_file():
        return require_new(path)
    if overwrite:
        require_replaceable(path)
    return path


def finished(
    target: Path, about: Mapping[str, object], note: Note
) -> tuple[PreTrainedModel, Mask, Record, Trace | None] | None:
    """What an earlier call with the same question wrote; None where there is nothing yet."""
    if not (target / RECORD).is_file():
        return None
    record = load_record(target)
    if difference := require_same(record.identity, about, target):
        note(difference)
    result = record.result_as(PruneResult)
    if result.files not in (None, content_of(str(target))):
        raise UsageError(
            f"{target} has other files than its record was written with: delete it to have it made "
            "again, or pass --overwrite."
        )
    note(f"{target} is there already, made by the same question: nothing is computed again.")
    mask = result.mask  # mask.json has the original model's numbers
    trace = load_trace(target) if (target / FILE).is_file() else None
    return load(target), mask, record, trace


@contextmanager
def workspace(
    work: Path,
    about: Mapping[str, object],
    note: Note,
    *,
    where: Path | None = None,
    overwrite: bool = False,
) -> Generator[None]:
    """Hold the folder that a killed run goes on from; it is gone once the run is done.

    `where` is what a refusal names: the folder that the run writes.
    """
    try:
        with locked(work):
            if overwrite:
                _empty(work)
            if not (work / SETTINGS).exists():
                _empty(work)  # nothing says whose it is
                write_json(work / SETTINGS, dict(about))
            else:
                then = read_json(work / SETTINGS, "settings")
                if difference := require_same(then, about, where or work):
                    note(difference)
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


def write_folder(
    target: Path,
    record: Record,
    model: PreTrainedModel,
    mask: Mask,
    tokenizer: Any = None,
    trace: Trace | None = None,
) -> Record:
    """Model, tokenizer, mask.json, record.json, the card with its scores, and gates.npz.

    The record is given back as it is written: with a sum over the files of the model.
    """
    with whole_folder(target, replace=True) as folder:
        model.save_pretrained(folder)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        write_json(folder / MASK, header("mask") | original_mask(model, mask).to_json())
        if trace is not None:
            trace.save(folder / FILE)
        result = replace(record.result_as(PruneResult), files=content_of(str(folder)))
        record = replace(record, result=result)
        record.save(folder)
        write_card(model, folder, card_results(result, record.notes, record.command))
        write_results(folder, result)
    return record
