from __future__ import annotations

from typing import Any

import pytest

from headcount.tasks.vocabulary import train_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return train_tokenizer(["the small king", "a queen near the baker"], 300)
