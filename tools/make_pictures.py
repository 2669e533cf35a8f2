"""The pictures of the page in docs/pictures, taken of a page in a real Chromium.

make demo && .venv/bin/python tools/make_pictures.py demo/report.html curves likeness
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from page.chromium import Browser  # noqa: E402


@dataclass(frozen=True)
class Picture:
    """What is in a picture."""

    name: str
    top: str | None = None
    """The part of the page it begins with; from its top without one."""
    width: int = 1280
    height: int = 1120
    dark: bool = False
    colour: str | None = None
    """What heads are coloured by."""


PICTURES = (
    Picture("page"),
    Picture("head-card", "heads", height=940, colour="role"),
    Picture("curves", "curves", width=1200, height=1150),
    Picture("likeness", "redundancy", width=1200, height=960, dark=True),
    Picture("phone", width=390, height=1500),
)


def take(browser: Browser, html: Path, picture: Picture, target: Path) -> None:
    """Open the page, choose what is to be seen, and cut it out of the whole."""
    page = browser.open(html, width=picture.width, dark=picture.dark, calm=True)
    if picture.colour is not None:
        options = "[...document.querySelector('#grid select').options]"
        known = dict(page.run(f"{options}.map((each) => [each.text, each.value])"))
        page.choose("#grid select", known[picture.colour])
    page.settle()
    top = 0
    if picture.top is not None:
        box = f"document.getElementById('{picture.top}').getBoundingClientRect().top"
        top = max(0, int(page.run(f"{box} + scrollY")) - 20)
    page.shot(target)
    with Image.open(target) as whole:
        cut = whole.crop((0, top, picture.width, min(top + picture.height, whole.height)))
        cut.save(target, optimize=True)
    page.close()


def main(html: Path, *names: str) -> None:
    """Take those of these names, or all."""
    with Browser() as browser:
        for picture in PICTURES:
            if names and picture.name not in names:
                continue
            take(browser, html, picture, ROOT / "docs" / "pictures" / f"{picture.name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
