"""Tokenizers of model folders, opened with care: a damaged or huge one is one sentence."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, UsageError

FILES = ("tokenizer*", "vocab*", "merges*", "*.model")
"""What a folder with a tokenizer has at least one of."""
MORE = ("special_tokens_map.json", "added_tokens.json", "chat_template*")
PANIC = re.compile(rb"\n?thread '[^\n]*panicked at ")
"""How what Rust prints of a panic begins."""
_one = threading.Lock()
LARGEST = 2**27
"""Bytes of the largest file of a tokenizer that is read: those of 260,000 tokens have 2**25."""


def has_tokenizer(folder: Path) -> bool:
    """Whether there are files of a tokenizer; without any, transformers would make one up."""
    return any(path for glob in FILES for path in folder.glob(glob))


def open_tokenizer(name: str) -> Any:
    """The tokenizer of a folder or a hub name; no code of theirs is run."""
    from transformers import AutoTokenizer

    for path in sorted({file for glob in (*FILES, *MORE) for file in Path(name).glob(glob)}):
        if path.is_file() and path.stat().st_size > LARGEST:
            raise UsageError(
                f"{path} is no file of a tokenizer: it has more than {LARGEST:,} bytes."
            )
    with tokenizing():
        # said at once, or transformers would ask on the terminal
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        tokenizer.init_kwargs.pop("auto_map", None)  # or it would be saved, and lead nowhere
        return tokenizer


@contextmanager
def tokenizing() -> Generator[None]:
    """Tell in one sentence what a damaged tokenizer raises: anything, even a panic in Rust."""
    try:
        with _panics_unprinted():
            yield
    except (HeadcountError, OSError, ImportError):
        raise
    except BaseException as error:
        # pyo3's PanicException is no Exception, and has no module to import it from
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"The tokenizer fails ({reason[:200]}): is it damaged?") from error


@contextmanager
def _panics_unprinted() -> Generator[None]:
    """Keep what Rust prints of a panic off stderr; what others write there comes when it is over.

    Of several threads one does so at a time: stderr is the whole process's.
    """
    if not _has_stderr() or not _one.acquire(blocking=False):
        yield
        return
    try:
        with tempfile.TemporaryFile() as held:
            before = os.dup(2)
            os.dup2(held.fileno(), 2)
            try:
                yield
            finally:
                os.dup2(before, 2)
                os.close(before)
                held.seek(0)
                os.write(2, PANIC.split(held.read())[0])
    finally:
        _one.release()


def _has_stderr() -> bool:
    try:
        os.fstat(2)
    except OSError:
        return False
    return True
