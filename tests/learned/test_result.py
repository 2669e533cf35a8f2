from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from headcount.base.errors import HeadcountError, NotFoundError
from headcount.heads import Mask
from headcount.learned.result import LearnedGates, finished
from headcount.learned.trace import Trace
from headcount.models.find import layout
from models.zoo import build


def learned() -> LearnedGates:
    model = build("bert", num_hidden_layers=1)
    trace = Trace(layout(model))
    trace.note(0, np.zeros(4), np.ones(4, bool))
    mask = Mask.of(layout(model), [("encoder", 0, 2)])
    return LearnedGates(
        model=model, mask=mask, trace=trace, steps=3, rows=8, examples=24, seconds=1.5, route={}
    )


def test_what_was_saved_is_had_again_with_its_weights(tmp_path: Path) -> None:
    one = learned()
    other = build("bert", num_hidden_layers=1, seed=5)
    with pytest.raises(NotFoundError, match="Cannot read the weights"):
        finished(other, tmp_path)
    one.save(tmp_path)
    again = finished(other, tmp_path)
    assert (again.mask, again.steps, again.examples) == (one.mask, 3, 24)
    assert again.trace.steps == [0]
    for mine, theirs in zip(one.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_damaged_result_is_refused(tmp_path: Path) -> None:
    one = learned()
    one.save(tmp_path)
    data = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**data, "steps": "three"}))
    with pytest.raises(HeadcountError, match=r"result\.json is no result"):
        finished(one.model, tmp_path)
