"""`headcount demo`: how many heads does the shipped model need? Told step by step, offline."""

from __future__ import annotations

import io
import json
import shlex
from contextlib import redirect_stdout
from pathlib import Path

from headcount.cli import groups
from headcount.cli.common import say, warn
from headcount.files import write_json
from headcount.views.demo import NEXT, STORY


def demo(*, out: groups.NewFolder = Path("demo")) -> int:
    """Train the pocket model, find out how many heads it needs, and put all of it on one page.

    It takes about three minutes and no network. Every step is a command that you can give yourself.
    """
    from headcount.cli.main import main

    out.mkdir(parents=True, exist_ok=True)
    answer = ""
    for number, step in enumerate(STORY, 1):
        words = [word.format(out=out) for word in shlex.split(step.command)]
        say(f"\n{number}. {step.why}\n   $ headcount {shlex.join(words)}")
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main([*words, "--json"])
        if code:
            warn(f"The demo stopped at: headcount {shlex.join(words)}")
            return code
        found = json.loads(printed.getvalue())
        if step.file is not None:
            write_json(out / step.file, found)
        said = step.tell(found)
        answer = said if words[0] == "search" else answer
        say(f"   {said}")
    page = (out / "report.html").absolute()
    say(f"\n{answer}\n\nThe page is {page}: open it in a browser.\n\nNext, with a model of yours:")
    for line in NEXT:
        say(f"   {line}")
    return 0
