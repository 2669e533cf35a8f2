from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.base.errors import UsageError
from headcount.likeness import torch_kernels
from headcount.likeness.distances import distances
from likeness.oracles import ORACLES, hard_attention, oracle


@pytest.mark.parametrize("shape", [(60, 25, 25), (60, 6, 21), (60, 21, 6), (9, 1, 5)])
@pytest.mark.parametrize("name", ORACLES)
def test_same_as_the_oracle(name, shape):
    attention = hard_attention(*shape, seed=21)
    attention[5], attention[6] = attention[5, :1], attention[6, :1]
    attention[7] = 1 / shape[2]
    found = torch_kernels.KERNELS[name](torch_kernels.checked(torch.tensor(attention)))
    assert found.dtype == torch.float32
    assert np.abs(found.numpy() - oracle(name, attention)).max() < 1e-6


@pytest.mark.parametrize("name", ORACLES)
def test_single_precision_devices_agree_to_five_digits(name):
    attention = torch.tensor(hard_attention(40, 18, 18, seed=22))
    found = torch_kernels.KERNELS[name](attention).numpy()
    assert np.abs(found - oracle(name, attention.numpy())).max() < 1e-5


@pytest.mark.parametrize("method", ["svcca", "truncated", "rv"])
@pytest.mark.filterwarnings("ignore:Truncated")
def test_methods_of_cc_are_the_same_as_on_the_cpu(method):
    attention = hard_attention(20, 15, 12, seed=23)
    attention[3] = attention[3, :1]
    options = {"method": method, "rank": 4}
    found = torch_kernels.cc(torch_kernels.checked(torch.tensor(attention)), **options)
    wanted = distances(attention, "cc", cc=options)["cc"]
    assert np.abs(found.numpy() - wanted).max() < 3e-6


@pytest.mark.parametrize("name", ORACLES)
def test_slices_do_not_change_the_result(name, monkeypatch):
    attention = torch_kernels.checked(torch.tensor(hard_attention(11, 7, 7, seed=24)))
    whole = torch_kernels.KERNELS[name](attention)
    monkeypatch.setattr(torch_kernels, "_SLICE", 3 * 11 * 7)
    assert torch.allclose(torch_kernels.KERNELS[name](attention), whole, atol=1e-7)


@pytest.mark.parametrize("name", ORACLES)
def test_identical_heads_are_at_exactly_zero(name):
    attention = hard_attention(12, 9, 9, seed=25)
    attention[8] = attention[2]
    found = torch_kernels.KERNELS[name](torch_kernels.checked(torch.tensor(attention)))
    assert found[2, 8] == found[8, 2] == 0
    assert not found.diagonal().any()


def test_a_tensor_that_is_no_attention_is_refused():
    attention = torch.full((3, 2, 2), 0.5)
    attention[1, 0, 0] = float("nan")
    with pytest.raises(UsageError, match="head 1 holds NaN"):
        torch_kernels.checked(attention)
    with pytest.raises(UsageError, match="do not sum to 1"):
        torch_kernels.checked(torch.full((3, 2, 2), 0.6))
    with pytest.raises(UsageError, match="three axes"):
        torch_kernels.checked(torch.full((2, 2), 0.5))


def test_tensors_elsewhere_go_to_torch(monkeypatch):
    """No GPU here: a tensor that says it is on one has to take the torch road."""

    class Elsewhere(torch.Tensor):
        device = torch.device("cuda")  # pyright: ignore

    asked = []
    monkeypatch.setattr(torch_kernels, "checked", lambda tensor: asked.append(tensor) or tensor)
    monkeypatch.setitem(torch_kernels.KERNELS, "cos", lambda tensor: torch.zeros(2, 2))
    tensor = torch.full((2, 3, 4), 0.25).as_subclass(Elsewhere)
    assert distances(tensor, "cos")["cos"].tolist() == [[0, 0], [0, 0]]
    assert len(asked) == 1
