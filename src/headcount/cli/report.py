"""`headcount report DIR… -o report.html`: one page of all results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from headcount.base.text import printable
from headcount.cli.common import Json, emit, warn


def report(
    folders: Annotated[
        list[Path], Parameter(required=True, help="Folders or files of runs, studies, searches.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("report.html"),
    card: Path | None = None,
    title: str | None = None,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page: the main result, heads, curves, matrices and all results.

    It shows the records, masks, matrices and traces in the folders, and opens without a network.
    Files that cannot be read are listed and left out.

    **Examples:**

    - `headcount report search curve near -o report.html`
    - `headcount report runs`
    - `headcount report search --card answer.png --title "Half the heads are enough"`

    Parameters
    ----------
    out
        The file to write.
    card
        Also draw the answer of a search as a picture of 1,200 × 630: a name in .png or .svg.
    title
        The large line of the page and the card, in place of the search's own.
    """
    from headcount.views.page.report import report as write

    page = write(*folders, out=out, card=card, title=title, note=warn)
    lines = [f"{page.out}: {page.size / 1e6:.1f} MB, made from {page.files} files"]
    lines += [f"{name}: {words}" for name, words in zip(page.subjects, page.sentences, strict=True)]
    emit(page.to_json(), as_json=as_json, table=Text("\n\n".join(map(printable, lines))))
