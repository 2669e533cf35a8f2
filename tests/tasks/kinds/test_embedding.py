"""Embeddings without labels: scores, importance and the surgeon against plain loops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import headcount as hc
from headcount.base.errors import HeadcountError
from headcount.models.sentences import set_pooling
from headcount.pruning.second_order import collect
from headcount.tasks import Examples, Task
from headcount.tasks.kinds.embedding import neighbours_kept
from headcount.tasks.rows import labelled_rows
from headcount.training.evaluate import evaluate
from headcount.training.scored import scored_rows
from models.sentence_folders import sentence_folder, tiny_encoder

WORDS = "the a small big young king queen baker near with cat dog".split()  # noqa: SIM905


def load(split: str) -> Examples:
    rng = np.random.default_rng(len(split))
    return Examples(([" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(64)],))


TASK = Task(
    name="texts", kind="embedding", texts=("text",), metrics=("fidelity", "neighbours@10"),
    loader=load,
)  # fmt: skip


@pytest.fixture
def encoder(tokenizer: Any) -> Any:
    return tiny_encoder(tokenizer)


def vectors(model: Any, tokenizer: Any, texts: Any) -> np.ndarray:
    """Means of tokens, text by text, of length 1."""
    rows = []
    for text in texts:
        hidden = model(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
        rows.append((hidden.mean(0) / hidden.mean(0).norm()).double())
    return torch.stack(rows).detach().numpy()


def test_scores_against_loops(
    tokenizer: Any, encoder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    mask = hc.Mask.parse("31", hc.layout(encoder))
    full, small = evaluate(encoder, TASK, [hc.Mask.full(mask.layout), mask], tokenizer=tokenizer)
    assert [score.value for score in full.scores] == pytest.approx([1.0, 1.0])
    assert "compared with itself" not in caplog.text
    assert evaluate(hc.remove(encoder, mask), TASK, tokenizer=tokenizer).score == pytest.approx(1)
    assert "compared with itself as it was loaded, so this is 1 by definition" in caplog.text
    texts = load("dev").texts[0]
    before = vectors(encoder, tokenizer, texts)
    after = vectors(hc.remove(encoder, mask), tokenizer, texts)
    shares = []
    for row in range(64):
        nearest = []
        for kept in (before, after):
            others = sorted((-(kept[row] @ kept[at]), at) for at in range(64) if at != row)
            nearest.append({at for _, at in others[:10]})
        shares.append(len(nearest[0] & nearest[1]) / 10)
    cosines = (before * after).sum(1)
    assert small.score == pytest.approx(cosines.mean(), abs=1e-6)
    assert small.scores[1].value == pytest.approx(np.mean(shares), abs=2e-3)
    np.testing.assert_allclose(small.predictions["cosine"], cosines, atol=1e-5)
    assert 0.2 < np.mean(shares) < 0.95
    assert cosines.mean() < 0.99


def test_a_text_that_is_there_twice_and_one_alone() -> None:
    rows = np.repeat(np.eye(4), 8, axis=0)
    assert neighbours_kept(rows, rows + 0.0).tolist() == [1.0] * 32
    assert neighbours_kept(rows[:1], rows[8:9]).tolist() == [1.0]
    assert neighbours_kept(rows[::8], np.roll(rows[::8], 1, axis=0), count=1).min() >= 0


def test_a_model_whose_embeddings_are_all_the_same_keeps_neighbours_by_chance(
    tokenizer: Any, encoder: Any
) -> None:
    """The first token alone, without any head: every text was among the nearest, a share of 1."""
    set_pooling(encoder, "cls")
    nothing = hc.Mask(hc.layout(encoder), frozenset())
    found = evaluate(encoder, TASK, nothing, tokenizer=tokenizer)
    assert found.predictions["neighbours"] == pytest.approx(np.full(64, 10 / 63))


def test_parts_of_the_rows_keep_what_they_are_compared_with(tokenizer: Any, encoder: Any) -> None:
    scored = scored_rows(encoder, TASK, tokenizer, hc.Scoring())
    part = scored.take(np.array([5, 3]))
    assert part.reference is not None
    assert scored.reference is not None
    np.testing.assert_array_equal(part.reference, scored.reference[[5, 3]])


def jacobian(model: Any, inputs: Any, head: int, step: float = 1e-2) -> torch.Tensor:
    """How the embedding of one row moves with a gate, by differences."""
    sides = []
    for sign in (1, -1):
        gates = {"encoder": [torch.ones(4), torch.ones(4)]}
        gates["encoder"][head // 4][head % 4] += sign * step
        with torch.no_grad(), hc.gate(model, gates):
            mean = model(**inputs).last_hidden_state[0].mean(0)
        sides.append(mean / mean.norm())
    return (sides[0] - sides[1]) / (2 * step)


def test_importance_is_how_far_the_embedding_moves(tokenizer: Any, encoder: Any) -> None:
    """E |∂/∂ξ ‖e(ξ) - e - n‖²| = 2 √(2/π) ‖∂e/∂ξ‖, of a row that is there very often."""
    text = "the small king near a dog"
    many = Task(
        name="many", kind="embedding", texts=("text",), metrics=TASK.metrics,
        loader=lambda split: Examples(([text] * 3000,)),
    )  # fmt: skip
    found = hc.importance(
        encoder, many, tokenizer=tokenizer, samples=None, split="train", tokens=8192
    )
    inputs = tokenizer([text], return_tensors="pt")
    moved = [float(jacobian(encoder, inputs, head).norm()) for head in range(8)]
    want = 2 * math.sqrt(2 / math.pi) * np.array(moved)
    np.testing.assert_allclose(found.values, want, rtol=0.06)
    assert want.max() > 1.5 * want.min()
    assert found.kind == "embedding"
    again = hc.importance(encoder, TASK, tokenizer=tokenizer, seed=3)
    assert again.values == hc.importance(encoder, TASK, tokenizer=tokenizer, seed=3).values


def test_the_surgeon_has_the_fisher_of_the_embedding(tokenizer: Any, encoder: Any) -> None:
    """Σ over tokens of JᵀJ, with J of the embedding by an attention output, row by row."""
    rows = labelled_rows(encoder, TASK, tokenizer, limit=2)
    repeated = rows.take(np.repeat([0, 1], 6000))
    found = collect(encoder, repeated, seed=7)["encoder", 1]
    layer = encoder.encoder.layer[1].attention.output.dense
    want = torch.zeros(32, 32, dtype=torch.float64)
    for number in range(2):
        ((_, batch),) = rows.take([number]).batches()
        kept: list[torch.Tensor] = []
        take = kept.append
        with layer.register_forward_hook(lambda module, args, output, take=take: take(output)):
            mean = encoder(**batch).last_hidden_state[0].mean(0)
        for value in mean / mean.norm():
            (grad,) = torch.autograd.grad(value, kept[0], retain_graph=True)
            want += (grad[0].T @ grad[0]).double()
    off = (found.gg / 6000 - want).norm() / want.norm()
    assert off < 0.06
    assert want.norm() > 1e-3


@pytest.mark.parametrize("pooling", ["mean", "cls", "last", "max", "weighted"])
def test_several_masks_at_once_are_each_alone(tokenizer: Any, encoder: Any, pooling: str) -> None:
    set_pooling(encoder, pooling)
    heads = hc.layout(encoder)
    masks = [hc.Mask.parse(kept, heads) for kept in ("44", "43", "42", "24")]
    many = evaluate(encoder, TASK, masks, tokenizer=tokenizer)
    for mask, found in zip(masks, many, strict=True):
        alone = evaluate(encoder, TASK, mask, tokenizer=tokenizer, share=False)
        assert found.score == pytest.approx(alone.score, abs=1e-6)
    assert many[3].score < 0.999


def test_pruned_and_exported_it_embeds_the_same_in_sentence_transformers(
    tmp_path: Path, tokenizer: Any
) -> None:
    folder = sentence_folder(tmp_path / "model", tokenizer, "mean", dense=6, normalize=True)
    found = hc.prune(
        str(folder), "surgeon", 0.5, task=TASK, repair=(hc.Recover(),), out=tmp_path / "small",
        calibration=hc.Calibration(samples=16),
    )  # fmt: skip
    assert found.record["scores"]["n"] == 64
    texts = list(load("dev").texts[0])
    before = SentenceTransformer(str(folder), device="cpu").encode(texts, show_progress_bar=False)
    loaded = hc.load(tmp_path / "small")
    hc.export(loaded, "standalone", tmp_path / "alone")
    there = SentenceTransformer(str(tmp_path / "alone"), device="cpu", trust_remote_code=True)
    after = there.encode(texts, show_progress_bar=False)
    kept = (before * after).sum(1).mean()
    assert found.record["scores"]["after"]["score"] == pytest.approx(kept, abs=1e-5)
    assert kept < 0.9999
    original = SentenceTransformer(str(folder), device="cpu")
    original[0].model = loaded
    again = original.encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(again, after, atol=1e-6)
    # the folder that headcount wrote is read by headcount with the same modules
    assert evaluate(loaded, TASK).score == pytest.approx(1.0)


def test_training_is_refused_and_says_what_can_be_done(tmp_path: Path, tokenizer: Any) -> None:
    folder = sentence_folder(tmp_path / "model", tokenizer, "mean")
    with pytest.raises(HeadcountError, match=r"no labels to train on: .* --recover repairs"):
        hc.train(str(folder), TASK)
