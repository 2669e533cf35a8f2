"""`headcount demo`: how many heads the shipped model needs, step by step, offline."""

from __future__ import annotations

import io
import json
import shlex
import sys
import textwrap
from contextlib import redirect_stdout
from pathlib import Path

from headcount.base.files import write_json
from headcount.cli import groups
from headcount.cli.common import warn
from headcount.views.demo import BEGIN, NEXT, STORY

WIDE = 92
INDENT = "   "


def demo(*, out: groups.NewFolder = Path("demo")) -> int:
    """Train the pocket model, find out how many heads it needs, and write a report.

    It takes about three minutes and no network. Every step is a command you can run yourself.
    """
    from headcount.cli.main import main
    from headcount.studies.search.answer_card import answer_card

    out.mkdir(parents=True, exist_ok=True)
    answer: list[str] = []
    _print(textwrap.fill(BEGIN, WIDE))
    for number, step in enumerate(STORY, 1):
        words = [word.format(out=out) for word in shlex.split(step.command)]
        question = _filled(f"{number}. {step.question}")
        _print(f"\n{question}\n{INDENT}$ headcount {shlex.join(words)}")
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main([*words, "--json"])
        if code:
            warn(f"The demo stopped at: headcount {shlex.join(words)}")
            return code
        result = json.loads(printed.getvalue())
        if step.file is not None:
            write_json(out / step.file, result)
        summary = step.describe(result)
        answer = answer_card(result).lines() if words[0] == "search" else answer
        _print(_filled(f"→ {summary}", first=INDENT))
    page = (out / "report.html").absolute()
    _print("\n" + "\n".join(map(_filled, answer)))
    _print(f"\nThe page is {page}: open it in a browser.")
    _print("\nNext, with a model of yours:")
    for line in NEXT:
        _print(f"{INDENT}{line}")
    return 0


def _filled(text: str, first: str = "") -> str:
    return textwrap.fill(
        text, WIDE, initial_indent=first, subsequent_indent=INDENT, break_long_words=False
    )


def _print(text: str) -> None:
    """The story is what this command gives, so it goes to stdout; bars and notes do not."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
