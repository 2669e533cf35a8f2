"""Texts written from others: against transformers' own loss, one row and one gate at a time."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers.models.t5.modeling_t5 import T5LayerNorm

import headcount as hc
from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.batches import ModelBatch
from headcount.models.gates import open_gates
from headcount.pruning.second_order import collect
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.encoding import RowOptions
from headcount.tasks.kinds.text_to_text import TextToText
from headcount.tasks.loading import load_tokenizer
from headcount.tasks.rows import labelled_rows
from headcount.training.evaluate import evaluate
from models.zoo import build

KIND = TextToText()
BATCH = {"input_ids": torch.tensor([[5, 6]]), "labels": torch.tensor([[7, 8]])}


def test_a_translator_reads_its_labels_one_step_later() -> None:
    found = KIND.inputs(build("t5", num_layers=1, num_decoder_layers=1), BATCH)
    assert found["decoder_input_ids"].tolist() == [[0, 7]]
    with pytest.raises(UnsupportedError, match="cannot be trained to write texts"):
        KIND.inputs(build("bert", num_hidden_layers=1), BATCH)


def test_labels_are_the_targets_tokens(tokenizer: Any) -> None:
    rows = KIND.encode(Examples((["the cat"], ["a dog"])), tokenizer, RowOptions(length=8))
    assert rows.columns["input_ids"] == [tokenizer("the cat")["input_ids"]]
    assert rows.labels == [tokenizer("a dog")["input_ids"]]


def test_labels_are_drawn_where_the_decoder_has_tokens() -> None:
    masks = {"attention_mask": torch.ones(1, 3), "decoder_attention_mask": torch.tensor([[1, 0]])}
    inputs = masks | {"decoder_input_ids": torch.tensor([[0, 7]])}
    generator = torch.Generator().manual_seed(0)
    drawn = KIND.sample_labels(torch.zeros(1, 2, 5), ModelBatch(inputs, None), generator)
    assert (drawn[0, 0] >= 0, drawn[0, 1].item()) == (True, -100)


def load(split: str) -> Examples:
    """Pairs in which the second half of a text is left out."""
    texts = [str(text) for text in open_task("pocket-translation", size=24).load("dev").texts[0]]
    return Examples(
        (texts, [" ".join(text.split()[: 2 + at % 3]) for at, text in enumerate(texts)])
    ).take(np.arange(len(split) % 2, 24, 2))


TASK = Task(
    name="shorter", kind="text-to-text", texts=("long", "short"), metrics=("rouge_l", "chrf"),
    loader=load,
)  # fmt: skip


@pytest.fixture(scope="module")
def words() -> Any:
    return load_tokenizer("pocket-translator")


def tiny(words: Any, family: str = "t5") -> Any:
    special = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id}
    return build(
        family, vocab_size=len(words), decoder_start_token_id=words.pad_token_id, **special
    )


def drawn_loss(model: Any, batch: dict[str, torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
    """The sum over rows of the mean cross-entropy of the words of each, by transformers."""
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    begin = model.prepare_decoder_input_ids_from_labels(labels=batch["labels"])
    known = batch["labels"] != -100
    mask = torch.cat([torch.ones_like(known[:, :1]), known[:, :-1]], dim=1).long()
    logits = model(**inputs, decoder_input_ids=begin, decoder_attention_mask=mask).logits
    pairs = zip(logits, labels, strict=True)
    return torch.stack([functional.cross_entropy(*pair) for pair in pairs]).sum()


def norm_of(self: Any, states: torch.Tensor) -> torch.Tensor:
    """T5's own takes the variance in single precision, of a double, too."""
    scale = torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
    return self.weight * states * scale


@pytest.mark.parametrize("family", ["bart", "t5", "pegasus"])
def test_importance_is_of_the_decoders_mean_loss(
    family: str, words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against two-sided differences of the gates of all three stacks.

    The steps are small: T5's ReLU has kinks, which a step of 1e-3 is across by up to 4 %.
    """
    monkeypatch.setattr(T5LayerNorm, "forward", norm_of)
    model = tiny(words, family).double()
    rows = labelled_rows(model, TASK, words, limit=3)
    found = hc.importance(model, rows)
    heads, step = hc.layout(model), 1e-6
    assert set(found.by_layer()) == {"encoder", "cross", "decoder"}
    total = np.zeros(len(heads))
    gates = open_gates(heads, trainable=False, dtype=torch.float64)
    with torch.no_grad(), hc.gate(model, gates):
        for number in range(3):
            ((_, batch),) = rows.take([number]).batches()
            for at, head in enumerate(heads):
                sides = []
                for sign in (1, -1):
                    gates[head.stack][head.layer][head.index] = 1 + sign * step
                    sides.append(float(drawn_loss(model, batch, batch["labels"])))
                gates[head.stack][head.layer][head.index] = 1
                total[at] += abs(sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose(found.values, total / 3, rtol=1e-5, atol=1e-8)
    assert found.kind == "text-to-text"


def test_the_surgeon_draws_words_of_the_decoder(words: Any) -> None:
    """Σggᵀ of all stacks against the gradient of the drawn words' loss, by transformers alone."""
    model = tiny(words)
    rows = labelled_rows(model, TASK, words, limit=4)
    found = collect(model, rows, seed=7)
    ((_, batch),) = rows.batches()
    known = batch["labels"] != -100
    decoded = torch.cat([torch.ones_like(known[:, :1]), known[:, :-1]], dim=1)
    block, lower = model.decoder.block[-1].layer, model.encoder.block[-1].layer
    last = len(model.decoder.block) - 1, len(model.encoder.block) - 1
    places = {
        ("decoder", last[0]): (block[0].SelfAttention.o, decoded),
        ("cross", last[0]): (block[1].EncDecAttention.o, decoded),
        ("encoder", last[1]): (lower[0].SelfAttention.o, batch["attention_mask"].bool()),
    }
    kept: dict[tuple[str, int], torch.Tensor] = {}
    with ExitStack() as stack:
        for place, (out, _) in places.items():
            stack.callback(
                out.register_forward_hook(
                    lambda module, args, output, place=place: kept.update({place: output})
                ).remove
            )
        begin = model.prepare_decoder_input_ids_from_labels(labels=batch["labels"])
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        mask = decoded.long()
        logits = model(**inputs, decoder_input_ids=begin, decoder_attention_mask=mask).logits
    generator = torch.Generator().manual_seed(7)
    drawn = torch.multinomial(logits.detach().softmax(-1).flatten(0, 1), 1, generator=generator)
    drawn = drawn.view(logits.shape[:2]).masked_fill(~known, -100)
    loss = sum(functional.cross_entropy(*pair) for pair in zip(logits, drawn, strict=True))
    grads = torch.autograd.grad(loss, [kept[place] for place in places])  # pyright: ignore[reportArgumentType]
    for (place, (_, counts)), grad in zip(places.items(), grads, strict=True):
        rows_of_grad = grad[counts].double()
        wanted = rows_of_grad.T @ rows_of_grad
        torch.testing.assert_close(found[place].gg, wanted, rtol=1e-3, atol=1e-9)
        assert found[place].gg.abs().max() > 1e-7


@pytest.mark.parametrize("family", ["t5", "bart", "pegasus"])
def test_masked_is_removed_and_both_are_pruned_and_repaired(family: str, words: Any) -> None:
    model = tiny(words, family)
    scoring = hc.Scoring(bootstrap=0, max_length=16)
    mask = hc.select(model, hc.Random(), 0.25)
    for task in (TASK, replace(TASK, kind="translation", metrics=("bleu",))):
        masked = evaluate(model, task, mask, tokenizer=words, scoring=scoring)
        removed = evaluate(hc.remove(model, mask), task, tokenizer=words, scoring=scoring)
        assert masked.predictions["prediction"] == removed.predictions["prediction"]
        assert masked.scores == removed.scores
    found = hc.prune(
        model, "surgeon", 0.25, task=TASK, tokenizer=words, scoring=scoring, baseline=0,
        repair=(hc.Recover(),), calibration=hc.Calibration(samples=6),
    )  # fmt: skip
    assert len(found.mask) == len(mask)
    assert found.record["scores"]["n"] == 12


def test_rows_without_texts_are_not_scored(words: Any) -> None:
    rows = labelled_rows(tiny(words), TASK, words, limit=2)
    with pytest.raises(UsageError, match="pass a translation task"):
        evaluate(tiny(words), rows, tokenizer=words)
