"""The page as one file: data, style and scripts put into a template. No request leaves it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from pathlib import Path
from string import Template

from headcount.views.page.gather import PageData
from headcount.views.page.reading import plain

HERE = Path(__file__).parent
MAIN = "main.js"
LIBRARY = "vendor/uPlot.iife.min.js"
STYLES = ("vendor/uPlot.min.css", "page.css")
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+\.js)";\n', re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|let|class) (\w+))", re.M)


def build(data: PageData, *, title: str = "Heads") -> str:
    """The whole page as text."""
    styles = "\n".join(_read(name) for name in STYLES)
    script = f"{_read(LIBRARY)}\n{bundle()}"
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(styles)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return Template(_read("page.html")).substitute(
        title=escape(title), policy=policy, styles=styles, script=script, data=embedded(plain(data))
    )


def embedded(data: object) -> str:
    """JSON that no text inside of it can end early, wherever it is in a page."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def bundle() -> str:
    """The modules as one script, each in a scope of its own, those that are imported first."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...] = ()) -> None:
        if name in above:
            raise ValueError(f"{name} imports itself by way of {above[-1]}")
        if name not in order:
            for _, other in IMPORT.findall(_read(f"js/{name}")):
                visit(other, (*above, name))
            order.append(name)

    visit(MAIN)
    return "\n".join(_scoped(name) for name in order)


def _scoped(name: str) -> str:
    """One module as a function that gives its exports."""
    source = _read(f"js/{name}")
    exported = ", ".join(EXPORT.findall(source))
    source = IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_variable(match[2])};\n", source)
    source = EXPORT.sub("", source)
    if re.search(r"^(import|export)\b", source, re.M):
        raise ValueError(f"{name} imports or exports in a way that the page is not built from")
    return f"const {_variable(name)} = (() => {{\n{source}return {{{exported}}};\n}})();"


def _variable(name: str) -> str:
    return f"${name.removesuffix('.js')}"


def digest(text: str) -> str:
    """The source expression of a script or style in a content security policy."""
    digested = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digested).decode('ascii')}"


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
