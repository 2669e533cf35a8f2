from __future__ import annotations

import copy

import torch

from headcount.models import find
from headcount.models.find import sites_of
from headcount.models.memory import remembered
from headcount.models.sites import find_sites
from headcount.models.verify import in_float64
from models.zoo import build


def test_a_model_is_walked_once_until_it_is_another(monkeypatch):
    model, walks = build("bert"), []
    monkeypatch.setattr(find, "find_sites", lambda model: walks.append(model) or find_sites(model))
    first = sites_of(model)
    assert sites_of(model) == first == sites_of(model)
    assert len(walks) == 1
    path, count = first[0].path, len(first)
    first.clear()  # a caller's list is its own
    assert len(sites_of(model)) == count
    sites_of(copy.deepcopy(model))
    assert len(walks) == 2
    attention = model.get_submodule(path)
    attention.query = copy.deepcopy(attention.query)
    sites_of(model)
    assert len(walks) == 3
    sites_of(in_float64(model))
    assert len(walks) == 3


def test_what_is_known_goes_with_the_weights_and_their_place():
    model, found = torch.nn.Linear(2, 2), iter(range(9))
    assert remembered(model, "a", lambda: next(found)) == 0
    assert remembered(model, "a", lambda: next(found)) == 0
    assert remembered(model, "b", lambda: next(found)) == 1
    with torch.no_grad():
        model.weight.add_(1)  # what is found has nothing to do with values
    assert remembered(model, "a", lambda: next(found)) == 0
    model.double()
    assert remembered(model, "a", lambda: next(found)) == 2
