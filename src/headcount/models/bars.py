"""transformers' own progress bars, kept to terminals."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from transformers.utils import logging


@contextmanager
def bars_on_terminals_only() -> Generator[None]:
    """No bars inside when stderr is a file or a pipe; afterwards as they were."""
    if sys.stderr.isatty() or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
