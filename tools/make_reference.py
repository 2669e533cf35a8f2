"""Write docs/reference/ from the source: every command, every public name, every method.

python tools/make_reference.py        # make docs does it; the files are not kept
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from io import StringIO
from pathlib import Path
from typing import Any

from cyclopts import App
from rich.console import Console

import headcount as hc
from headcount.base.options import docs_of
from headcount.cli.commands import COMMANDS
from headcount.cli.main import EPILOGUE, CommandLine, build
from headcount.pruning.methods import METHODS

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
GENERATED = "Generated from the source by `tools/make_reference.py`."


def commands() -> str:
    """Every command as its help has it."""
    parts = ["# Commands", GENERATED, EPILOGUE]
    for entry in COMMANDS:
        app = build(CommandLine(tokens=[entry.name]))[entry.name]
        text = app.generate_docs(output_format="markdown", heading_level=2)
        text = re.sub(rf"^(#+ ){entry.name}\b", rf"\1headcount {entry.name}", text, flags=re.M)
        text = re.sub(rf"^{entry.name}\b", f"headcount {entry.name}", text, flags=re.M)
        parts.append(text)
        if " COMMAND " in text.partition("**")[0]:  # with commands below it, and options of its own
            parts.append(f"Options of `headcount {entry.name}` itself:\n\n```text\n{shown(app)}```")
    # cyclopts links to headings of sub-commands that a page without them does not have
    return re.sub(r"\[(`[^`]+`)\]\(#[\w-]+\)", r"\1", page(parts))


def shown(app: App) -> str:
    """The help of a command as a terminal has it."""
    with StringIO() as file:
        app.help_print(console=Console(file=file, width=100))
        return re.sub(r" +$", "", file.getvalue(), flags=re.M)


def python() -> str:
    """Every name of `hc`: its signature, its docstring, and the fields of options."""
    parts = ["# Python", GENERATED, "`import headcount as hc`; each name is imported on first use."]
    for name in hc.__all__:
        if name != "__version__":
            parts += thing(f"hc.{name}", getattr(hc, name))
    return page(parts)


def methods() -> str:
    """Every method with its options, as on the command line."""
    parts = ["# Methods and their options", GENERATED]
    parts.append("What they do is described in [methods](../methods.md).")
    for entry in METHODS:
        parts += [f"## {entry.name}", entry.summary, *options_of(METHODS[entry.name])]
    return page(parts)


def thing(name: str, value: Any) -> list[str]:
    """A function or a class."""
    parts = [f"## {name}"]
    is_error = inspect.isclass(value) and issubclass(value, Exception)
    if not is_error:
        parts.append(f"```python\n{signature(name, value)}\n```")
    parts.append(prose(inspect.getdoc(value) or ""))
    return parts + options_of(value)


def options_of(value: Any) -> list[str]:
    """A table of a dataclass's fields that say what they are."""
    if not (inspect.isclass(value) and dataclasses.is_dataclass(value)):
        return []
    docs = docs_of(value)
    rows = [
        f"| `{field.name}` | {cell(docs[field.name])} | {default(field)} |"
        for field in dataclasses.fields(value)
        if docs.get(field.name)
    ]
    return (
        ["\n".join(["| option | what it is | default |", "|---|---|---|", *rows])] if rows else []
    )


def default(field: dataclasses.Field[Any]) -> str:
    """A field's default as it would be typed."""
    return "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"


def signature(name: str, value: Any) -> str:
    """On one line where it fits, else one parameter on each."""
    whole = inspect.signature(value)
    texts = [parameter(one) for one in whole.parameters.values()]
    kinds = [one.kind for one in whole.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        texts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    gives = whole.return_annotation
    after = "" if gives in (inspect.Signature.empty, "None", None) else f" -> {gives}"
    line = f"{name}({', '.join(texts)}){after}"
    if len(line) <= 90:
        return line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + f"){after}"


def parameter(one: inspect.Parameter) -> str:
    """Without what only Python can read, such as a function's address."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    kind = "" if one.annotation is one.empty else f": {str(one.annotation).strip(chr(39))}"
    usual = "" if one.default is one.empty else f" = {one.default!r}"
    return stars.get(one.kind, "") + one.name + kind + re.sub(r" = <.*>$", " = …", usual)


def prose(doc: str) -> str:
    """A docstring with its examples as code."""
    return re.sub(r"((?:^>>> .*\n?(?:^(?!>>>)\S.*\n?)*)+)", r"```pycon\n\1\n```\n", doc, flags=re.M)


def cell(text: str) -> str:
    """On one line, without what would end a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def page(parts: list[str]) -> str:
    """Paragraphs, one after the other."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def main() -> None:
    """All three pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in {"commands": commands, "python": python, "methods": methods}.items():
        (FOLDER / f"{name}.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
