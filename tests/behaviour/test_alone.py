from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import headcount as hc
from headcount.behaviour.alone import substituting
from headcount.behaviour.replaceable import Outputs
from headcount.models.find import sites_of
from headcount.models.linear import read_rows, write_rows
from headcount.models.watch import watching
from headcount.tasks.encoding import encode
from training.conftest import pets, tiny


@pytest.fixture(scope="module")
def words() -> Any:
    from headcount.tasks.loading import load_tokenizer

    return load_tokenizer("pocket")


def losses(model: Any, task: Any, words: Any, mask: hc.Mask) -> tuple[np.ndarray, np.ndarray]:
    """(row,) losses and hits with a mask, row by row, by the model's own loss."""
    rows = encode(task, task.load("dev"), words)
    found = []
    with torch.no_grad(), hc.gate(model, mask):
        for row in range(len(rows)):
            batch = rows.collate([rows[row]])
            batch["labels"] = batch["labels"].to(
                torch.float if task.kind == "regression" else torch.long
            )
            said = model(**batch)
            hit = said.logits.argmax(-1) == batch["labels"]
            found.append((float(said.loss), bool(hit)))
    table = np.array(found, dtype=float)
    return table[:, 0], table[:, 1]


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_the_cost_of_a_head_is_what_it_is_alone(words: Any, kind: str) -> None:
    task = pets(kind, rows=40)
    model = tiny(words, num_labels=2 if kind == "classification" else 1)
    found = hc.roles(model, task=task, tokenizer=words, alone=True, examples=0)
    full = hc.Mask.full(found.layout)
    before, hits = losses(model, task, words, full)
    for place, head in list(enumerate(found.layout))[::5]:
        after, then = losses(model, task, words, full.drop([head]))
        cost = found["cost_alone"]
        np.testing.assert_allclose(cost.values[place], (after - before).mean(), atol=1e-5)
        error = (after - before).std(ddof=1) / 40**0.5
        np.testing.assert_allclose(cost.stderr[place], error, atol=1e-5)
        if kind == "classification":
            change = then.mean() - hits.mean()
            np.testing.assert_allclose(found["score_alone"].values[place], change, atol=1e-9)
    assert found["cost_alone"].unit == {"classification": "nats"}.get(kind, "squared error")
    assert found["score_alone"].unit == {"classification": "accuracy"}.get(kind, "spearman")
    spread = [np.ptp(found[name].values) for name in ("cost_alone", "cost_alone_repaired")]
    assert min(spread) > 0


def test_the_repair_is_that_of_other_weights(words: Any) -> None:
    """Standing in while heads are closed is the model with its projection solved again."""
    task = pets(rows=24)
    model = tiny(words)
    rows = encode(task, task.load("train"), words)
    outputs = Outputs(model)

    def add(site: Any, args: Any, _: Any) -> None:
        outputs.add(site, args[0], batch["attention_mask"].bool(), 0)

    batch = rows.collate([rows[row] for row in range(len(rows))])
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    with torch.no_grad(), watching(model, outputs.projections, add):
        model(**inputs)
    solved = outputs.solve(1e-3)
    layout = hc.layout(model)
    head = hc.Head("encoder", 1, 2)
    mask = hc.Mask.full(layout).drop([head])
    with torch.no_grad():
        plain = model(**inputs).logits
        with hc.gate(model, mask):
            closed = model(**inputs).logits
        with substituting(model, solved):
            assert torch.equal(model(**inputs).logits, plain), "nothing is closed"
            with hc.gate(model, mask):
                found = model(**inputs).logits
        site = next(site for site in sites_of(model) if site.layer == 1)
        out = model.get_submodule(site.out)
        weights = read_rows(out)
        own = slice(head.index * site.head_dim, (head.index + 1) * site.head_dim)
        stand_in = solved["encoder", 1].substitutes[:, own].double()
        write_rows(out, weights + stand_in @ weights[own])
        with hc.gate(model, mask):
            expected = model(**inputs).logits
        write_rows(out, weights)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert (found - plain).norm() < (closed - plain).norm()


def test_a_language_model_is_asked_for_every_token() -> None:
    from headcount.tasks import open_task
    from headcount.tasks.loading import load_for_task, load_tokenizer

    model = load_for_task("pocket", open_task("pocket-corpus"), new_head=False)
    told: list[tuple[int, int, str]] = []
    how: Any = {"task": "pocket-corpus", "tokenizer": load_tokenizer("pocket"), "samples": 6}
    found = hc.roles(
        model, alone=True, limit=6, examples=0, progress=lambda *at: told.append(at), **how
    )
    head = list(found.layout)[3]
    mask = hc.Mask.full(found.layout).drop([head])
    full, cut = hc.evaluate(
        model, "pocket-corpus", [hc.Mask.full(found.layout), mask],
        scoring=hc.Scoring(limit=6, bootstrap=0), tokenizer=load_tokenizer("pocket"),
    )  # fmt: skip
    sums = [each.predictions for each in (full, cut)]
    change = (sums[1]["nll"].sum() - sums[0]["nll"].sum()) / sums[0]["tokens"].sum()
    np.testing.assert_allclose(found["cost_alone"].values[3], change, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(
        found["score_alone"].values[3], cut.score - full.score, rtol=1e-5, atol=1e-6
    )
    assert {text for _, _, text in told} == {
        "", ", solving and timing", ", without each head", ", without each head, repaired",
    }  # fmt: skip
