"""A study file as it is written: YAML, TOML or JSON, with the line of everything in it.

What is wrong with a file is told all at once, line by line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import as_path, read_text

Place = tuple[str, ...]
"""The way to a value: names of objects and numbers of lists, from the top of the file."""
SHIPPED = Path(__file__).parent / "shipped"
LARGEST = 4 * 2**20
MOST = 200_000
"""Values in the largest study file that is read."""


class StudyFileError(UsageError):
    """A study file with mistakes: all of them, in one line as text, and one by one."""

    most = 20_000

    def __init__(self, text: str, several: Sequence[str] = ()) -> None:
        super().__init__(f"{text} {' | '.join(several)}" if several else text)
        self.text, self.several = text, several


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """The content of a study file, where each part stands, and what is wrong with it so far."""

    path: Path
    data: dict[str, Any]
    lines: dict[Place, int] = field(default_factory=dict, repr=False)
    mistakes: dict[tuple[Place, str], None] = field(default_factory=dict)
    """In their order, each once."""

    def wrong(self, path: Sequence[str], text: str) -> None:
        """Note a mistake; the same one of many runs is told once."""
        self.mistakes[tuple(path), text] = None

    def note(self, path: Sequence[str], error: HeadcountError) -> None:
        """Note every mistake of a refusal at its own place below `place`."""
        for inner, text in error.mistakes or [((), str(error))]:
            self.wrong((*path, *inner), text)

    def refuse(self) -> None:
        """Tell all mistakes, if there are any."""
        if not self.mistakes:
            return
        lines = sorted({(self._line(path), ".".join(path), text) for path, text in self.mistakes})
        texts = [
            f"{f'line {line}: ' if line else ''}{f'{path}: ' if path else ''}{text}"
            for line, path, text in lines
        ]
        count = "a mistake" if len(texts) == 1 else f"{len(texts)} mistakes"
        raise StudyFileError(f"{self.path} has {count}.", texts)

    def _line(self, path: Place) -> int:
        """The line of the nearest thing that is written there."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def find(name: str | Path) -> Path:
    """The file of this name, or the study of this name that ships with headcount."""
    path = as_path(name, "study")
    if path.is_file():
        return path
    shipped = {file.stem: file for file in sorted(SHIPPED.glob("*.yaml"))}
    if str(name) in shipped:
        return shipped[str(name)]
    from headcount.base.names import did_you_mean

    raise NotFoundError(
        f"There is no study file '{name}'.{did_you_mean(str(name), shipped)} "
        f"Studies that ship with headcount: {', '.join(shipped)}."
    )


def read_written(name: str | Path) -> StudyFile:
    """What a study file says; a file that cannot be read is refused with all that is wrong."""
    path = find(name)
    text = read_text(path, "study file", LARGEST)
    if path.suffix == ".toml":
        return _toml(path, text)
    return _yaml(path, text)


def _toml(path: Path, text: str) -> StudyFile:
    try:
        return StudyFile(path=path, data=tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        written = re.search(r"at line (\d+)", str(error))
        line = f" in line {written[1]}" if written else ""
        raise StudyFileError(f"{path} is no TOML{line}: {error}.") from error


def _yaml(path: Path, text: str) -> StudyFile:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        texts = getattr(error, "problem", None) or " ".join(str(error).split())
        raise StudyFileError(f"{path} is no YAML{line}: {texts}.") from error
    written = StudyFile(path=path, data={})
    if not isinstance(node, yaml.MappingNode):
        raise StudyFileError(f"{path} is no study file: it has no names with values.")
    loader = yaml.SafeLoader("")
    for where, line, twice in _walk(node):
        if len(written.lines) >= MOST:  # aliases of aliases can grow without end
            raise StudyFileError(f"{path} has more than {MOST:,} values.")
        written.lines[where] = line
        if twice:
            written.wrong(where, "it is there twice.")
    try:
        data = loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise StudyFileError(f"{path} is no YAML: {' '.join(str(error).split())}.") from error
    written.data.update(_texts(data))
    return written


def _walk(node: Any, path: Place = (), depth: int = 0) -> Iterator[tuple[Place, int, bool]]:
    """Every value with its place, its line, and whether the same name stood there before."""
    if depth > 40:
        raise StudyFileError("A study file is not nested that deeply.")
    if node.id == "mapping":
        seen: set[str] = set()
        for name, value in node.value:
            inner = (*path, str(name.value))
            yield inner, name.start_mark.line + 1, str(name.value) in seen
            seen.add(str(name.value))
            yield from _walk(value, inner, depth + 1)
    elif node.id == "sequence":
        for at, value in enumerate(node.value):
            inner = (*path, str(at))
            yield inner, value.start_mark.line + 1, False
            yield from _walk(value, inner, depth + 1)


def _texts(value: Any) -> Any:
    """Names as text; YAML also has dates and numbers for names."""
    if isinstance(value, dict):
        return {str(name): _texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else str(value)
