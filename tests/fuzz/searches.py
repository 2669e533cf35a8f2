"""The folder of a finished search: files damaged, exchanged, lost, or folders in their place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from fuzz import damage
from fuzz.trees import Gentle

ABOUT = {"task": "mrpc", "bound": "2 %"}


def write_search(
    folder: Path,
    rng: Random,
    record: Mapping[str, Any],
    full: Mapping[str, Any],
    model: Mapping[str, bytes],
) -> Path:
    """The folder, whole but for one or two hits."""
    from headcount.runs.contents import content_of
    from headcount.runs.identity import seal
    from headcount.runs.record import id_of

    run = folder / "runs" / record["id"]
    for each in (run, folder / "model"):
        each.mkdir(parents=True)
    for name, data in model.items():
        (folder / "model" / name).write_bytes(data)
    checkpoint = {"id": record["id"], "files": content_of(str(folder / "model"))}
    sentence = "x needs 3 of its 5 heads."
    answer = {
        "model": "x",
        "task": "pets",
        "kept": 3,
        "heads": 5,
        "sentence": sentence,
        "mask": record["mask"],
        "checkpoint": checkpoint,
    }
    trees = {
        folder / "search.json": seal(answer, id_of(ABOUT)),
        folder / "selection.json": seal(full, id_of(ABOUT)),
        run / "record.json": record,
        run / "predictions.json": seal(full, record["id"]),
        folder / "model" / "record.json": record,
    }
    for path, tree in trees.items():
        path.write_text(json.dumps(tree), encoding="utf-8")
    if not isinstance(rng, Gentle):
        for _ in range(rng.choice((1, 1, 2))):
            _hit(rng.choice(list(trees)), trees, rng)
    return folder


def _hit(path: Path, trees: Mapping[Path, Any], rng: Random) -> None:
    """One file damaged, taken for another, lost, or a folder in its place."""
    what = rng.randrange(6)
    if path.is_dir():
        path.rmdir()
    if what == 0:
        path.unlink(missing_ok=True)
    elif what == 1:
        damage.become(path, "folder")
    elif what == 2:
        other = rng.choice(list(trees))
        if other.is_file() and other != path:
            shutil.copy(other, path)
    else:
        path.write_bytes(damage.json_file(trees[path], rng))


def read_search(path: Path) -> None:
    """As the same search would, and as a page does."""
    from headcount.base.errors import HeadcountError
    from headcount.runs.record import id_of
    from headcount.studies import outcome
    from headcount.studies.search.kept import FULL, kept_answer
    from headcount.views.page.report import report

    (run,) = (path / "runs").iterdir()
    skipped = report(path, out=path.parent / "page.html").skipped
    asked: Any = SimpleNamespace(note=str)
    if (answer := kept_answer(asked, path, id_of(ABOUT))) is not None:
        assert answer.model is not None
        repr(answer.mask)
    outcome.kept(run, run.name, outcome.PREDICTIONS)
    outcome.kept(path, id_of(ABOUT), FULL)
    if skipped:
        raise HeadcountError(skipped[0][1])
