"""Shared by tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from headcount.models.shipped import locate
from training.conftest import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT with its tokenizer, saved."""
    made = tmp_path_factory.mktemp("model")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made
