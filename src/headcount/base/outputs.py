"""Where results may be written, asked before any work is done.

require_place(out)                        # a name and a way that the disk takes
require_apart(out, [model, data])         # not what is read
require_replaceable(out)                  # nothing that headcount did not write
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from headcount.base.errors import UsageError
from headcount.base.files import cannot_write, expanded

LONGEST = 215
"""Bytes of a name: temporary files beside it have up to 40 more, and 255 is the most."""
WRITTEN = re.compile(
    r"README\.md|(record|mask)\.json|gates\.npz|gates(-.+)?\.(png|svg)|.+\.safetensors(\.index\.json)?|"
    r"(config|generation_config|preprocessor_config|processor_config|special_tokens_map|"
    r"added_tokens|normalizer|video_preprocessor_config)\.json|tokenizer.*|vocab.*|merges\.txt|"
    r"chat_template.*|.+\.(model|spm|bpe|codes)|\.lock"
)
"""Names of the files of a pruned model."""
RESULTS = ".eval_results"
"""Its only folder: what the hub shows of its scores."""


def require_place(out: str | os.PathLike[str]) -> Path:
    """A path that can be written to: links are followed, those that lead nowhere are refused."""
    path = expanded(out)
    text = os.fspath(path)
    if "\0" in text or len(os.fsencode(text)) > 3500 or len(os.fsencode(path.name)) > LONGEST:
        raise UsageError(
            f"{text[:40]}... cannot be written: a name has {LONGEST} letters at most, as "
            "temporary files beside it have longer ones."
        )
    if any("\ud800" <= letter < "\ue000" for letter in text):
        raise UsageError(f"{path} cannot be written: its name is not UTF-8, and weights need that.")
    try:
        for folder in (path.absolute(), *path.absolute().parents):
            if folder.is_symlink() and not folder.exists():
                where = os.readlink(folder)
                raise UsageError(
                    f"{folder} is a link to {where}, which is not there: make it first."
                )
            if folder.exists():
                _require_writable(path, folder)
                return path
    except OSError as error:  # a loop of links, names that are too long on the way
        raise cannot_write(path, error) from error
    return path


def _require_writable(path: Path, existing: Path) -> None:
    """Refuse a place below a file, or in a folder of someone else."""
    if existing != path.absolute() and not existing.is_dir():
        raise cannot_write(path, OSError(errno.ENOTDIR, f"{existing} is a file"))
    if not os.access(existing, os.W_OK):
        raise cannot_write(path, OSError(errno.EACCES, os.strerror(errno.EACCES)))


def require_new(out: str | os.PathLike[str]) -> Path:
    """The folder to write, which must be new or empty."""
    path = require_place(out)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} is there already; --out takes a new or empty folder.")
    return path


def require_apart(
    out: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]], *, overwrite: bool
) -> None:
    """Refuse to write in the place of what is read, or to delete a folder that it lies in."""
    target = os.path.realpath(expanded(out))
    for source in inputs:
        path = os.path.realpath(expanded(source))
        if not os.path.exists(path):
            continue
        if path == target:
            raise UsageError(f"{out} is what is read: --out takes another place.")
        if overwrite and path.startswith(os.path.join(target, "")):
            raise UsageError(
                f"{source} is read and lies in {out}, which --overwrite empties: --out takes "
                "another place."
            )


def require_replaceable(folder: Path) -> None:
    """Refuse to replace the folder of a pruned model with something in it that is none of it."""
    for path in sorted(folder.iterdir()):
        plain = path.is_file() and not path.is_symlink() and WRITTEN.fullmatch(path.name)
        if not plain and path.name != RESULTS:
            raise UsageError(
                f"{path} is nothing that headcount wrote, and --overwrite replaces the whole "
                "folder: move it away, or choose another --out."
            )
