from __future__ import annotations

import pytest
from rich.console import Console

from headcount.changes.measure import transfer
from headcount.views.tables.transfer import transfer_table
from models.zoo import build


@pytest.fixture(scope="module")
def found():
    import torch

    one, other = build("bert", num_hidden_layers=2), build("bert", num_hidden_layers=2, seed=1)
    batches = [{"input_ids": torch.randint(5, 60, (3, 6), generator=torch.Generator())}]
    return transfer(one, other, batches)


def test_a_row_for_each_layer(found) -> None:
    console = Console(width=160)
    with console.capture() as caught:
        console.print(transfer_table(found))
    text = caught.get()
    assert all(words in text for words in ("encoder 0", "encoder 1", "JS mean", "hidden L2"))
    assert "weight change of layers spreads over" in text
