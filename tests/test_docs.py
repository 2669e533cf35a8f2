"""The docs are true: every block of README.md and docs/ is run, or says why it is not."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from headcount.costs import timing
from snippets import PAGES, ROOT, RUNNABLE, mistakes, run, snippets, words

ELSEWHERE = {"docs/design.md": "test_contributing.py does what it says"}
NOT_RUN = 14
"""Blocks that may go without being run, over all pages; each says why."""
BLOCKS = {page.relative_to(ROOT).as_posix(): snippets(page) for page in PAGES}
RUN = {
    name: [block for block in blocks if block.why is None]
    for name, blocks in BLOCKS.items()
    if name not in ELSEWHERE
}
RUN = {name: blocks for name, blocks in RUN.items() if any(b.kind in RUNNABLE for b in blocks)}
UNRUN = [block for blocks in BLOCKS.values() for block in blocks if block.why is not None]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model that the tutorial trains, which other pages go on from: trained once."""
    from headcount.cli.main import main

    where = tmp_path_factory.mktemp("tutorial")
    lines = [line for block in BLOCKS["docs/tutorial.md"] for line, _ in block.commands]
    line = next(line for line in lines if line.startswith("headcount train"))
    before = Path.cwd()
    os.chdir(where)
    try:
        assert main(shlex.split(line)[1:]) == 0
    finally:
        os.chdir(before)
    return where / "study" / "base"


@pytest.mark.parametrize("name", RUN)
@pytest.mark.usefixtures("registered")
def test_a_page_runs_from_top_to_bottom(
    name: str, cli: Any, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timing, "PRECISION", 10.0)  # no round more than asked for on a busy machine
    if "study/base" in (ROOT / name).read_text(encoding="utf-8"):
        shutil.copytree(base, tmp_path / "study" / "base")
    space: dict[str, Any] = {"__name__": "__main__"}
    for block in RUN[name]:
        run(block, space, cli)


@pytest.mark.parametrize("block", UNRUN, ids=lambda block: block.place)
def test_what_is_not_run_is_read(block: Any, cli: Any) -> None:
    assert list(mistakes(block, cli)) == []
    assert len(words(block.why)) >= 2, "say why"


def test_few_blocks_are_not_run() -> None:
    assert len(UNRUN) <= NOT_RUN, [block.place for block in UNRUN]


def test_every_marker_belongs_to_a_block() -> None:
    markers = sum(page.read_text(encoding="utf-8").count("<!-- not run") for page in PAGES)
    assert markers == len(UNRUN)


def test_every_fence_is_seen() -> None:
    for page in PAGES:
        fences = len(re.findall(r"^```", page.read_text(encoding="utf-8"), re.M))
        assert fences == 2 * len(snippets(page)), page


INLINE = re.compile(r"`headcount (\w+)((?: [^`]*)?)`")
MENTIONED = [
    (name, found[1], found[2])
    for name in BLOCKS
    for found in INLINE.finditer((ROOT / name).read_text(encoding="utf-8"))
    if "--" in found[2]
]


@pytest.mark.parametrize("name", sorted({name for name, _, _ in MENTIONED}))
def test_commands_in_the_text_have_these_options(name: str) -> None:
    wrong = [
        f"headcount {command}{rest}"
        for page, command, rest in MENTIONED
        if page == name and not set(re.findall(r" (--[a-z-]+)", rest)) <= options(command, rest)
    ]
    assert wrong == []


def options(command: str, rest: str) -> set[str]:
    """What a command understands, with the options of all methods."""
    from headcount.cli.main import CommandLine, build

    app = build(CommandLine(tokens=[command, *rest.split()]))[command]
    below = rest.split()[0] if rest.split() else ""
    app = app[below] if below in list(app) else app
    names = {name for each in app.assemble_argument_collection() for name in each.names}
    everywhere = {"--config", "--print-config", "--plugin", "--debug", "--help", "--version"}
    return names | everywhere


def test_an_option_that_is_not_there_is_seen() -> None:
    assert "--keep" in options("remove", "")
    assert "--drop" not in options("remove", "")
    assert "--executor" in options("study", " run FILE")


LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_outside_the_site_lead_somewhere(page: str) -> None:
    """Those between pages of docs/ are checked by `make docs`."""
    for path, anchor in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / path).is_file(), path
        if anchor:
            text = (ROOT / path).read_text(encoding="utf-8")
            headings = re.findall(r"^#+ (.+)$", text, re.M)
            slugs = {re.sub(r"[^\w -]", "", each).strip().lower() for each in headings}
            assert anchor in {each.replace(" ", "-") for each in slugs}, (path, anchor)


def test_the_readme_of_the_package_has_whole_addresses() -> None:
    space = runpy.run_path(str(ROOT / "tools" / "readme.py"))
    text = space["absolute"]((ROOT / "README.md").read_text(encoding="utf-8"), "https://there")
    assert "](https://there/raw/main/docs/pictures/page.png)" in text
    assert "](https://there/blob/main/docs/index.md#the-commands)" in text
    assert LINK.findall(text) == []


def test_every_page_is_in_the_sites_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.parent != ROOT]
    assert [page for page in pages if f": {page}\n" not in nav] == []


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_machine_without_a_gpu_is_told_how_to_install(page: str) -> None:
    """In the words of the Makefile, which installs the CPU build where there is one."""
    install = (ROOT / page).read_text(encoding="utf-8").split("## Install", 1)[1].split("\n## ")[0]
    command = re.search(r"-c constraints.txt torch==\S+", (ROOT / "Makefile").read_text())
    assert command is not None
    assert f"pip install {command[0]}" in install
    assert "CPU build" in install
