"""A tag for every word: first pieces, scores, importance and the surgeon against plain loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import BertConfig, BertForTokenClassification

import headcount as hc
from headcount.base.errors import UsageError
from headcount.pruning.second_order import collect
from headcount.tasks import Examples, Task
from headcount.tasks.encoding import IGNORED, encode
from headcount.tasks.rows import labelled_rows
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune

WORDS = "the a small unbelievable big young king queen baker near with".split()  # noqa: SIM905
TAGS = ("O", "B-pet", "I-pet")


def load(split: str) -> Examples:
    rng = np.random.default_rng(len(split))
    texts, tags = [], []
    for _ in range(48):
        words = list(rng.choice(WORDS, rng.integers(3, 9)))
        names = ["O"] * len(words)
        at = int(rng.integers(len(words)))
        words[at:at], names[at:at] = ["cat", "dog"], ["B-pet", "I-pet"]
        texts.append(" ".join(words))
        tags.append(" ".join(names))
    return Examples((texts, tags))


TASK = Task(
    name="pets", kind="token-classification", texts=("words", "tags"), labels=TAGS, numbered=False,
    metrics=("entity_f1", "token_accuracy"), loader=load,
)  # fmt: skip


@pytest.fixture
def tagger(tokenizer: Any) -> BertForTokenClassification:
    """Its classes are in another order than the task's."""
    names = ["I-pet", "O", "B-pet"]
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64, id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForTokenClassification(config)
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "embeddings" not in name:
                torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
    return model.eval()


def test_the_first_piece_of_a_word_has_its_label(tokenizer: Any) -> None:
    examples = Examples((["young dog king's- !"], ["O B-pet I-pet O"]))
    rows = encode(TASK, examples, tokenizer)
    out = tokenizer(["young", "dog", "king's-", "!"], is_split_into_words=True)
    first: list[int] = []
    for at, word in enumerate(out.word_ids()):
        new = word is not None and word not in out.word_ids()[:at]
        first.append([0, 1, 2, 0][word] if new else IGNORED)  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert rows.columns["input_ids"] == [out["input_ids"]]
    assert rows.labels == [first]
    assert len(out["input_ids"]) > 6  # some word has several pieces


def test_it_is_scored_by_words_in_the_tasks_names(tokenizer: Any, tagger: Any) -> None:
    examples, names = load("dev"), tagger.config.id2label
    said = []
    for text in examples.texts[0]:
        out = tokenizer(str(text).split(" "), is_split_into_words=True, return_tensors="pt")
        best = tagger(**out).logits[0].argmax(-1).tolist()
        ids = out.word_ids(0)
        said.append([names[best[ids.index(word)]] for word in range(len(str(text).split(" ")))])
    found = evaluate(tagger, TASK, tokenizer=tokenizer, tokens=60)
    assert found.predictions["prediction"] == [" ".join(tags) for tags in said]
    assert found.predictions["label"] == examples.texts[1]
    heads = hc.layout(tagger)
    masks = [hc.Mask.full(heads), hc.Mask.parse("21", heads)]
    many = evaluate(tagger, TASK, masks, tokenizer=tokenizer, tokens=60)
    assert many[0].scores == found.scores
    with hc.gate(tagger, masks[1]):
        assert evaluate(tagger, TASK, tokenizer=tokenizer).scores == many[1].scores


def test_words_that_were_cut_off_are_outside(tokenizer: Any, tagger: Any) -> None:
    found = evaluate(tagger, TASK, tokenizer=tokenizer, scoring=hc.Scoring(max_length=4))
    for said, right in zip(
        found.predictions["prediction"], found.predictions["label"], strict=True
    ):
        assert len(said.split(" ")) == len(right.split(" "))
        assert set(said.split(" ")[2:]) == {"O"}


def losses_by_hand(model: Any, rows: Any, number: int, gates: Any) -> torch.Tensor:
    ((_, batch),) = rows.take([number]).batches()
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    with hc.gate(model, gates):
        logits = model(**inputs).logits
    return functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())


def test_importance_is_of_the_mean_loss_over_words(tokenizer: Any, tagger: Any) -> None:
    rows = labelled_rows(tagger, TASK, tokenizer, limit=5)
    found = hc.importance(tagger, rows, tokens=40)
    total = np.zeros(8)
    step = 1e-2
    for number in range(5):
        for head in range(8):
            sides = []
            for sign in (1, -1):
                gates = {"encoder": [torch.ones(4), torch.ones(4)]}
                gates["encoder"][head // 4][head % 4] += sign * step
                with torch.no_grad():
                    sides.append(float(losses_by_hand(tagger, rows, number, gates)))
            total[head] += abs(sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose(found.values, total / 5, rtol=2e-2, atol=2e-5)


def test_the_surgeon_draws_a_tag_for_every_word(tokenizer: Any, tagger: Any) -> None:
    """Against the gradient of the drawn tags' mean cross-entropy, row by row."""
    rows = labelled_rows(tagger, TASK, tokenizer, limit=4)
    found = collect(tagger, rows, seed=7)["encoder", 1]
    ((_, batch),) = rows.batches()
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    kept: list[torch.Tensor] = []
    layer = tagger.bert.encoder.layer[1].attention.output.dense
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        logits = tagger(**inputs).logits
    generator = torch.Generator().manual_seed(7)
    drawn = torch.multinomial(logits.detach().softmax(-1).flatten(0, 1), 1, generator=generator)
    drawn = drawn.view(logits.shape[:2]).masked_fill(batch["labels"] == IGNORED, IGNORED)
    loss = sum(functional.cross_entropy(*pair) for pair in zip(logits, drawn, strict=True))
    (grad,) = torch.autograd.grad(loss, kept[0])  # pyright: ignore[reportArgumentType]
    grad = grad[batch["attention_mask"].bool()].double()
    assert torch.allclose(found.gg, grad.T @ grad, rtol=1e-3, atol=1e-9)
    assert found.gg.abs().max() > 1e-6


def test_it_is_trained_pruned_and_repaired(tokenizer: Any, tagger: Any) -> None:
    options = hc.TrainOptions(epochs=25, batch_size=8, learning_rate=5e-3, precision="fp32")
    done = finetune(tagger, TASK, tokenizer=tokenizer, options=options)
    assert done.evaluation is not None
    assert done.evaluation.score > 0.9
    for method in ("surgeon", "importance"):
        found = hc.prune(
            tagger, method, 0.5, task=TASK, tokenizer=tokenizer,
            repair=(hc.Recover(),), calibration=hc.Calibration(samples=12),
        )  # fmt: skip
        assert len(found.mask) == 4
        assert found.record["scores"]["n"] == 48


def test_labels_that_the_model_does_not_know(tokenizer: Any, tagger: Any) -> None:
    odd = replace(TASK, labels=("O", "B-pet", "I-pet", "B-car"))
    with pytest.raises(UsageError, match="labels the model has no class for: B-car"):
        evaluate(tagger, odd, tokenizer=tokenizer)
    rows = {"input_ids": [[5, 6, 7]], "labels": [[-100, 1, 9]]}
    with pytest.raises(UsageError, match="label 9, and the model's 3 classes"):
        evaluate(tagger, rows, tokenizer=tokenizer)
    fine = evaluate(tagger, {"input_ids": [[5, 6, 7]], "labels": [[-100, 1, 2]]})
    assert fine.predictions["label"] == ["O B-pet"]
