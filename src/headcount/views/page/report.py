"""`hc.report`: one page of all results, from the files that runs wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import as_path, expanded, whole
from headcount.base.text import line

if TYPE_CHECKING:
    from headcount.studies.search.answer_card import AnswerCard
    from headcount.views.page.gather import PageData


@dataclass(frozen=True, kw_only=True)
class Report:
    """A page that was written."""

    out: Path
    size: int
    """Bytes of the file."""
    subjects: tuple[str, ...]
    """Models and tasks."""
    sentences: tuple[str, ...]
    """How many heads it needs, for each of them."""
    files: int
    """Files that it was made from."""
    skipped: tuple[tuple[str, str], ...]
    """(file, reason) of those that could not be read."""

    def __repr__(self) -> str:
        return line(f"Report({self.out}; {', '.join(self.subjects)}; {self.files} files)")

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "out": str(self.out),
            "bytes": self.size,
            "subjects": [
                {"name": name, "sentence": sentence}
                for name, sentence in zip(self.subjects, self.sentences, strict=True)
            ],
            "files": self.files,
            "skipped": [{"file": name, "reason": reason} for name, reason in self.skipped],
        }


def report(
    *paths: str | os.PathLike[str],
    out: str | os.PathLike[str] = Path("report.html"),
    card: str | os.PathLike[str] | None = None,
    title: str | None = None,
    note: Callable[[str], object] = lambda text: None,
) -> Report:
    """Write one self-contained HTML page of the records, masks, matrices and traces in folders.

    `paths` are files or folders of runs, studies and searches, with the folders in them. Files that
    cannot be read are left out, and `note` is called with a sentence about each. `card` is a
    picture of the answer of the search among them, and `title` the large line of both.
    """
    from headcount.views.card import save_card
    from headcount.views.figures import check_figures
    from headcount.views.page.build import build
    from headcount.views.page.gather import gather
    from headcount.views.page.walk import walk

    if not paths:
        raise UsageError("Name at least one folder or file to make a page of.")
    target = expanded(out)
    if target.is_dir():
        raise UsageError(f"{target} is a folder; the page is one file: {target}/report.html.")
    if card is not None:
        check_figures([card])
    paths = tuple(as_path(path, "file or folder") for path in paths)
    files = walk(paths)
    if not files.items:
        for name, reason in files.skipped:
            note(f"{name} was left out: {reason}")
        named = ", ".join(str(path) for path in paths)
        raise NotFoundError(f"No record, mask, matrix or trace of headcount was found in {named}.")
    data = gather(files)
    skipped = tuple(dict.fromkeys(files.skipped))
    for name, reason in skipped:
        note(reason if name in reason else f"{name}: {reason}")
    data = titled(data, title)
    if card is not None:
        save_card(only_card(data), as_path(card, "picture"))
    subjects = tuple(subject.name for subject in data.subjects)
    page = build(data, title=f"{subjects[0]} · heads" if len(subjects) == 1 else "Heads")
    with whole(target) as partial:
        partial.write_text(page, encoding="utf-8")
    return Report(
        out=target,
        size=len(page.encode()),
        subjects=subjects,
        sentences=tuple(subject.headline.sentence for subject in data.subjects),
        files=len(files.items),
        skipped=skipped,
    )


def titled(data: PageData, title: str | None) -> PageData:
    """The data with this line in place of the searches' own."""
    if title is None:
        return data
    subjects = [
        replace(subject, headline=replace(subject.headline, card=replace(card, title=title)))
        if (card := subject.headline.card) is not None
        else subject
        for subject in data.subjects
    ]
    return replace(data, subjects=subjects)


def only_card(data: PageData) -> AnswerCard:
    """The card of the one search that the files are of."""
    cards = [card for subject in data.subjects if (card := subject.headline.card) is not None]
    if len(cards) != 1:
        count = "no search" if not cards else f"searches of {len(cards)} models and tasks"
        raise UsageError(f"A card is of one search, and the folders hold {count}: name its folder.")
    return cards[0]
