from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

import headcount as hc
from behaviour.test_measure import rows_of
from headcount.base.errors import UsageError
from headcount.behaviour import replaceable as room
from headcount.behaviour.replaceable import Outputs, jackknife
from headcount.models.find import sites_of
from headcount.models.linear import has_bias, read_rows
from headcount.models.watch import watching
from headcount.repair.recover import Recover
from headcount.repair.recovery import recover_layers
from models.zoo import build

RIDGE = 1e-3


def captured(model: Any, site: Any, rows: Any) -> np.ndarray:
    """(token, input) what goes into a site's output projection, row by row, with its 1."""
    seen: list[torch.Tensor] = []
    outs = [(0, out) for _, out in site.places]
    with watching(model, outs, lambda _, args, out: seen.append(args[0].flatten(0, -2))):
        for row in rows.columns["input_ids"]:
            with torch.no_grad():
                model(input_ids=torch.tensor([row]))
    z = torch.cat(seen).double().numpy()
    bias = has_bias(model.get_submodule(site.out))
    return np.hstack([z, np.ones((len(z), 1))]) if bias else z


def by_sklearn(z: np.ndarray, weights: np.ndarray, site: Any, ridge: float = RIDGE) -> list[float]:
    """1 - residual / own of every head's contribution, by ridge regression on the others."""
    penalty = ridge * float((z**2).sum(0).mean())
    found = []
    for head in range(site.heads):
        own = slice(head * site.head_dim, (head + 1) * site.head_dim)
        wanted = z[:, own] @ weights[own]
        rest = np.delete(z, np.r_[own], axis=1)
        fit = Ridge(alpha=penalty, fit_intercept=False, solver="svd").fit(rest, wanted)
        found.append(1 - ((wanted - fit.predict(rest)) ** 2).sum() / (wanted**2).sum())
    return found


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "albert"])
def test_shares_are_those_of_a_regression_for_each_head(family: str) -> None:
    model = build(family)
    rows = rows_of([12, 30, 17, 25, 9, 28, 22, 19, 14, 11])
    found = hc.roles(model, rows, examples=0)
    for site in sites_of(model):
        z = captured(model, site, rows)
        wanted = by_sklearn(z, read_rows(model.get_submodule(site.out)).numpy(), site)
        own = [at for at, head in enumerate(found.layout) if head[:2] == (site.stack, site.layer)]
        np.testing.assert_allclose(found["replaceable"].values[own], wanted, atol=2e-4)
    assert (found["replaceable"].values < 0.99).any()


def test_with_hardly_a_ridge_it_is_least_squares() -> None:
    model = build("bert")
    rows = rows_of([40] * 6)
    found = hc.roles(model, rows, ridge=1e-7, examples=0)
    site = sites_of(model)[1]
    z, weights = captured(model, site, rows), read_rows(model.get_submodule(site.out)).numpy()
    wanted = []
    for head in range(site.heads):
        own = slice(head * site.head_dim, (head + 1) * site.head_dim)
        target, rest = z[:, own] @ weights[own], np.delete(z, np.r_[own], axis=1)
        left = target - rest @ np.linalg.lstsq(rest, target, rcond=None)[0]
        wanted.append(1 - (left**2).sum() / (target**2).sum())
    own = [at for at, head in enumerate(found.layout) if head.layer == 1]
    np.testing.assert_allclose(found["replaceable"].values[own], wanted, atol=1e-3)


def test_errors_are_the_jackknifes_over_blocks_of_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BLOCKS", 3)
    model = build("bert")
    rows = rows_of([20] * 7)  # of one length, so that they are read in the order of the rows
    batches = [{"input_ids": torch.tensor(rows.columns["input_ids"])}]
    found = hc.roles(model, batches, examples=0)
    site = sites_of(model)[0]
    weights = read_rows(model.get_submodule(site.out)).numpy()
    blocks = np.arange(7) % 3
    without = []
    for block in range(3):
        left = [row for row, own in enumerate(blocks) if own != block]
        without.append(by_sklearn(captured(model, site, rows.take(left)), weights, site))
    own = [at for at, head in enumerate(found.layout) if head.layer == 0]
    expected = jackknife(np.array(without))
    np.testing.assert_allclose(found["replaceable"].stderr[own], expected, rtol=0.02, atol=1e-4)
    assert expected.min() > 0


def test_a_copied_head_is_stood_in_for_and_a_silent_one_is_no_loss() -> None:
    model = build("gpt2")
    site = sites_of(model)[0]
    with torch.no_grad():
        attention = model.get_submodule(site.path)
        width = site.heads * site.head_dim
        for part in range(3):  # head 1 is head 0 over again
            start = part * width
            one, other = (
                slice(start + h * site.head_dim, start + (h + 1) * site.head_dim) for h in (0, 1)
            )
            attention.c_attn.weight[:, other] = attention.c_attn.weight[:, one]  # pyright: ignore
            attention.c_attn.bias[other] = attention.c_attn.bias[one]  # pyright: ignore
        silent = slice(3 * site.head_dim, 4 * site.head_dim)
        attention.c_proj.weight[silent] = 0  # pyright: ignore
    found = hc.roles(model, rows_of([30] * 12), ridge=1e-6, examples=0)["replaceable"].values
    assert found[:2].min() > 0.999
    assert found[3] == 1
    assert found[2] < 0.99


def test_the_repair_is_recoverys() -> None:
    """What stands in for a head is what recovery of its layer alone would write."""
    model = build("bert")
    rows = rows_of([30] * 8)
    layout = hc.layout(model)
    last = max(head.layer for head in layout)
    gone = hc.Head("encoder", last, 1)
    small = hc.remove(model, hc.Mask.full(layout).drop([gone]))
    site = next(site for site in sites_of(model) if site.layer == last)
    outputs = Outputs(model)
    z = torch.from_numpy(captured(model, site, rows))[:, :-1].float()
    outputs.add(site, z[None], torch.ones(1, len(z)).bool(), 0)
    solved = outputs.solve(1e-3)["encoder", last]
    weights = read_rows(model.get_submodule(site.out))
    own = slice(gone.index * site.head_dim, (gone.index + 1) * site.head_dim)
    made = weights + solved.substitutes[:, own].double() @ weights[own]
    kept = [row for row in range(len(made)) if not own.start <= row < own.stop]
    # recovery's ridge is a share of the kept heads' diagonal alone
    squares = outputs.sums[site.path].sum(0).diagonal()
    ridge = 1e-3 * float(squares.mean() / squares[kept].mean())
    (fit,) = recover_layers(small, model, rows, options=Recover(ridge=ridge))
    found = read_rows(small.get_submodule(site.out))
    torch.testing.assert_close(made[kept], found, atol=1e-3, rtol=0)  # sums in single precision
    assert fit.after < fit.before


def test_memory_decides_how_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("bert")
    assert Outputs(model).blocks == 8
    monkeypatch.setattr(room, "MEMORY", 5 * 4 * 33**2 * 8)
    assert Outputs(model).blocks == 5
    monkeypatch.setattr(room, "MEMORY", 1)
    assert Outputs(model).blocks == 3


def test_numbers_that_are_none_are_refused() -> None:
    outputs = Outputs(build("bert"))
    site = outputs.sites[0]
    outputs.add(site, torch.full((1, 2, 32), torch.nan), torch.ones(1, 2).bool(), 0)
    with pytest.raises(UsageError, match="encoder layer 0 are not all numbers"):
        outputs.solve(1e-3)


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(0).normal(size=12)
    without = np.array([[np.delete(values, place).mean()] for place in range(12)])
    np.testing.assert_allclose(jackknife(without), values.std(ddof=1) / 12**0.5)
