from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.models.devices import pick_device


def test_auto_is_the_first_device_there_is(monkeypatch):
    for cuda, mps, found in [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda mps=mps: mps)
        assert pick_device("auto") == found


def test_what_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert pick_device("cpu") == "cpu"
    for name in ("cuda", "cuda:1", "mps"):
        with pytest.raises(UsageError, match=f"no device '{name}' on this machine"):
            pick_device(name)
    with pytest.raises(UsageError, match=r"no device 'gpu'\. Known: auto"):
        pick_device("gpu")
