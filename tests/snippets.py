"""The fenced blocks of the docs, and what it takes to run them as a reader would."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "reference" not in page.parts]  # generated from the source
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+?) -->\n+)?"
    r"^```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^```$",
    re.M | re.S,
)
RUNNABLE = ("python", "sh", "console", "")


@dataclass(frozen=True)
class Snippet:
    """One block: what it is, where it stands, and why it cannot run here, if it cannot."""

    page: Path
    line: int
    kind: str
    text: str
    title: str | None
    why: str | None

    @property
    def place(self) -> str:
        """The page and the line of the block's fence."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Command lines, each with the output that is shown below it."""
        text = self.text.replace("\\\n", " ")
        if self.kind != "console":
            return [(line, "") for line in text.splitlines() if line.strip()]
        before, *parts = re.split(r"^\$ ", text, flags=re.M)
        assert not before, f"{self.place}: a console shows `$ command` and its output"
        return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def snippets(page: Path) -> list[Snippet]:
    """Every fenced block of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(
            page=page,
            line=text[: found.start("kind")].count("\n") + 1,
            kind=found["kind"],
            text=found["text"],
            title=found["title"],
            why=found["why"],
        )
        for found in FENCE.finditer(text)
    ]


def words(text: str) -> set[str]:
    """What stays of an output when numbers, signs and heads that go are left out."""
    return set(re.findall(r"[^\W\d_]{2,}", text))


def typed(line: str) -> tuple[str, list[str], str | None]:
    """The program of a command line ("#" for none), its words, and the file its output goes to."""
    program, *tokens = shlex.split(line, comments=True) or ["#"]
    return (program, tokens[:-2], tokens[-1]) if ">" in tokens else (program, tokens, None)


def run(block: Snippet, space: dict[str, Any], cli: Callable[..., Any]) -> None:
    """Do what the block says, in this folder; names that Python makes stay in `space`."""
    if block.title:
        Path(block.title).parent.mkdir(parents=True, exist_ok=True)
        Path(block.title).write_text(block.text, encoding="utf-8")
    elif block.kind == "python":
        code = "\n" * block.line + block.text
        exec(compile(code, str(block.page), "exec"), space)
    elif block.kind in RUNNABLE:
        for line, shown in block.commands:
            program, tokens, file = typed(line)
            if program == "#":
                continue
            ran = cli(*tokens)
            assert (program, ran.code) == ("headcount", 0), (block.place, line, ran.err)
            missing = words(shown) - words(ran.out + ran.err)
            assert not missing, (block.place, line, missing, ran.out)
            if file:
                Path(file).write_text(ran.out, encoding="utf-8")


def mistakes(block: Snippet, cli: Callable[..., Any]) -> Iterator[str]:
    """What is wrong with a block that cannot run here: it is read as far as it can be."""
    import headcount as hc

    if block.kind == "python":
        for node in ast.walk(ast.parse(block.text)):
            of_hc = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if of_hc and node.value.id == "hc" and node.attr not in hc.__all__:
                yield f"hc.{node.attr}"
        return
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for line, _ in block.commands:
        program, tokens, _ = typed(line)
        if program == "headcount" and cli(*tokens, "--print-config").code != 0:
            yield line
        if program == "make" and tokens[0] not in targets:
            yield line
        if program == "python" and tokens[0] != "-m" and not (ROOT / tokens[0]).is_file():
            yield line
