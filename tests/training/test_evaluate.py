from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoTokenizer

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.tasks import Examples, Task, open_task
from headcount.training.evaluate import evaluate, evaluate_rows
from headcount.training.evaluation import Evaluation
from headcount.training.scored import scored_rows
from headcount.training.scoring import Scoring
from models.zoo import build

from .conftest import tiny

PLAIN = Scoring(bootstrap=0)


def plain_logits(model: Any, tokenizer: Any, texts: list[str]) -> np.ndarray:
    with torch.no_grad():
        rows = [model(**tokenizer(text, return_tensors="pt")).logits for text in texts]
    return torch.cat(rows).double().numpy()


def test_predictions_are_the_models_own_in_the_tasks_order(
    model: Any, tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    found = evaluate(model, task, tokenizer=tokenizer, tokens=64)
    rows = task.load("dev")
    want = plain_logits(model, tokenizer, list(rows.texts[0]))  # type: ignore[arg-type]
    np.testing.assert_allclose(found.predictions["logits"], want, atol=1e-5)
    assert rows.labels is not None
    assert found.score == pytest.approx((want.argmax(1) == rows.labels).mean())
    assert found.n == 96
    assert [each.metric for each in found.scores] == ["accuracy", "matthews"]
    assert found.scores[0].low <= found.score <= found.scores[0].high
    saved = pq.read_table(found.save_predictions(tmp_path / "deep" / "p.parquet")).to_pydict()
    assert saved["label"] == [task.labels[i] for i in rows.labels]
    assert saved["prediction"] == [task.labels[i] for i in want.argmax(1)]
    np.testing.assert_allclose(saved["logits"], want, atol=1e-5)
    again = Evaluation.from_json(found.to_json())
    assert again.scores == found.scores
    assert "accuracy" in str(found)


def test_masks_one_by_one_together_and_removed(model: Any, tokenizer: Any, task: Task) -> None:
    heads = layout(model)
    masks = [Mask.full(heads), Mask.parse("421", heads), Mask.parse("041", heads)]
    scoring = Scoring(bootstrap=20, limit=40, seed=1)
    settings: dict[str, Any] = {"tokenizer": tokenizer, "scoring": scoring}
    many = evaluate(model, task, masks, **settings)
    assert [each.mask for each in many] == masks
    for mask, found in zip(masks, many, strict=True):
        alone = evaluate(model, task, mask, **settings)
        small = evaluate(remove(model, mask), task, **settings)
        with gate(model, mask):
            gated = evaluate(model, task, **settings)
        for other in (alone, small, gated):
            np.testing.assert_allclose(
                found.predictions["logits"], other.predictions["logits"], atol=1e-4
            )
        assert found.scores == alone.scores
    assert evaluate(model, task, masks, **settings) == [
        replace(each, seconds=pytest.approx(each.seconds, abs=60)) for each in many
    ]
    assert many[1].to_json()["heads_kept"] == "421"
    with pytest.raises(UsageError, match="no masks"):
        evaluate(model, task, [], **settings)


def test_classes_go_by_name_where_the_model_knows_them(tokenizer: Any, task: Task) -> None:
    model = tiny(tokenizer)
    straight = evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN).score
    model.config.id2label = {0: "DOG", 1: "Cat"}
    assert evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN).score == pytest.approx(
        1 - straight
    )


def test_labels_the_model_has_no_class_for(tokenizer: Any, task: Task) -> None:
    model = tiny(tokenizer)
    three = Task(
        name="three",
        kind="classification",
        texts=("text",),
        labels=("cat", "dog", "fish"),
        metrics=("accuracy",),
        loader=lambda split: Examples((["the cat", "the dog"],), np.array([0, 2])),
    )
    with pytest.raises(UsageError, match=r"no class for: fish. The model's 2 classes: LABEL_0"):
        evaluate(model, three, tokenizer=tokenizer)
    model.config.id2label = {0: "cat", 1: "bird"}
    with pytest.raises(UsageError, match="no class for: dog"):
        evaluate(model, task, tokenizer=tokenizer)


def test_a_class_that_is_not_the_tasks_is_always_wrong(tokenizer: Any, task: Task) -> None:
    model = tiny(tokenizer, num_labels=3)
    model.config.id2label = {0: "cat", 1: "dog", 2: "fish"}
    with torch.no_grad():
        model.classifier.bias[2] = 1e3
    found = evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=10))
    assert [each.value for each in found.scores] == [0.0, 0.0]
    assert set(found.predictions["prediction"]) == {"(other)"}


def test_regression(tokenizer: Any, make_task: Any) -> None:
    model = tiny(tokenizer, num_labels=1)
    found = evaluate(
        model, make_task("regression"), tokenizer=tokenizer, scoring=Scoring(bootstrap=10)
    )
    assert found.predictions["prediction"].shape == (96,)
    assert found.scores[0].metric == "spearman"


def test_masked_and_causal_language_models(tokenizer: Any, tmp_path: Path) -> None:
    size = len(tokenizer)
    corpus = open_task("pocket-corpus")
    masked = evaluate(
        build("distilbert", vocab_size=size), corpus, tokenizer=tokenizer, scoring=Scoring(limit=30)
    )
    assert [each.metric for each in masked.scores] == ["recall@1", "perplexity"]
    assert sum(masked.predictions["tokens"]) > 60
    for split in ("train", "dev"):
        (tmp_path / f"{split}.txt").write_text("the dog sees a cat .\n" * 30)
    causal = open_task("causal-lm", data=tmp_path)
    found = evaluate(
        build("gpt2", vocab_size=size), causal, tokenizer=tokenizer, scoring=Scoring(max_length=16)
    )
    nll, tokens = found.predictions["nll"].sum(), found.predictions["tokens"].sum()
    assert found.score == pytest.approx(np.exp(nll / tokens))
    assert np.isnan(found.scores[0].low)  # twelve rows are too few for an interval


@pytest.mark.parametrize(("family", "name"), [("gpt2", "causal-lm"), ("distilbert", "masked-lm")])
def test_a_language_model_is_scored_on_as_many_rows_as_asked(
    family: str, name: str, tokenizer: Any, tmp_path: Path
) -> None:
    lines = list(open_task("pocket-corpus").load(limit=90).texts[0])
    for split in ("train", "dev"):  # zero-width spaces are a line, and no tokens
        text = "\n".join(line for both in zip(lines, ["\u200b"] * 90, strict=True) for line in both)
        (tmp_path / f"{split}.txt").write_text(text, encoding="utf-8")
    task = open_task(name, data=tmp_path)
    model = build(family, vocab_size=len(tokenizer))
    for limit in (8, 20):
        found = evaluate(
            model,
            task,
            tokenizer=tokenizer,
            scoring=Scoring(limit=limit, max_length=16, bootstrap=0),
        )
        assert found.n == limit
        assert (found.predictions["tokens"] > 0).all()
    every = evaluate(
        model, task, tokenizer=tokenizer, scoring=Scoring(max_length=16, bootstrap=0)
    ).n
    half = evaluate(
        model, task, tokenizer=tokenizer, scoring=Scoring(max_length=16, bootstrap=0, limit=0.5)
    ).n
    assert half == pytest.approx(every / (2 if name == "causal-lm" else 1), abs=1)


def test_a_uniform_language_model_has_the_vocabularys_perplexity(tokenizer: Any) -> None:
    model = build("distilbert", vocab_size=len(tokenizer))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = evaluate(
        model, "pocket-corpus", tokenizer=tokenizer, scoring=Scoring(limit=20, bootstrap=0)
    )
    assert found.scores[1].value == pytest.approx(len(tokenizer), rel=1e-4)


def translator() -> tuple[Any, Any]:
    """An untrained translator and its tokenizer."""
    words = AutoTokenizer.from_pretrained(locate("pocket-translator"))
    model = build(
        "marian",
        vocab_size=len(words),
        pad_token_id=words.pad_token_id,
        eos_token_id=words.eos_token_id,
        decoder_start_token_id=words.pad_token_id,
    )
    return model, words


def test_translation_with_masks_side_by_side() -> None:
    model, words = translator()
    heads = layout(model)
    masks = [Mask.full(heads), Mask.parse("encoder:4200 decoder:1234", heads), Mask.none(heads)]
    scoring = Scoring(limit=3, bootstrap=20, max_length=4)
    settings: dict[str, Any] = {"tokenizer": words, "scoring": scoring}
    for beams in (1, 2):
        many = evaluate(model, "pocket-translation", masks, beams=beams, **settings)
        assert "tok:13a" in str(many[0].signature)
        said = [each.predictions["prediction"] for each in many]
        assert said[0] != said[2]
        for mask, texts in zip(masks, said, strict=True):
            with gate(model, mask):
                alone = evaluate(model, "pocket-translation", beams=beams, tokens=1, **settings)
            assert alone.predictions["prediction"] == texts
    with pytest.raises(UnsupportedError, match="is no encoder-decoder: it cannot write"):
        evaluate(build("gpt2", vocab_size=len(words)), "pocket-translation", **settings)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_no_number_is_refused(
    value: float, model: Any, tokenizer: Any, task: Task
) -> None:
    with torch.no_grad():  # one row of an embedding that no text of the task uses
        model.bert.embeddings.word_embeddings.weight[tokenizer.mask_token_id, :2] = value
    want = r"its weight 'bert\.embeddings\.word_embeddings\.weight' has 2 values that are NaN or"
    with pytest.raises(UsageError, match=want):
        evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN)
    with pytest.raises(UsageError, match=want):
        evaluate(model, task, [Mask.full(layout(model))], tokenizer=tokenizer, scoring=PLAIN)
    with torch.no_grad():
        model.classifier.bias[0] = value
    with pytest.raises(UsageError, match="and so have 1 more weights"):
        evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN)


def test_answers_that_are_no_numbers_are_refused(model: Any, tokenizer: Any, task: Task) -> None:
    with torch.no_grad():
        model.classifier.weight.fill_(3e38)
    with pytest.raises(UsageError, match=r"NaN or infinite for 96 of 96 rows, although"):
        evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN)
    with pytest.raises(UsageError, match="with heads 444: its predictions are NaN"):
        evaluate(model, task, Mask.full(layout(model)), tokenizer=tokenizer, scoring=PLAIN)


def test_a_translator_that_says_no_numbers_is_refused() -> None:
    model, words = translator()
    with torch.no_grad():
        model.model.decoder.layers[-1].final_layer_norm.weight.fill_(3e38)
    with pytest.raises(UsageError, match="its predictions are NaN or infinite"):
        evaluate(
            model,
            "pocket-translation",
            tokenizer=words,
            scoring=Scoring(limit=2, bootstrap=0, max_length=8),
        )


def test_a_model_without_a_folder_needs_a_tokenizer(model: Any, task: Task) -> None:
    with pytest.raises(UsageError, match="pass its tokenizer"):
        evaluate(model, task)


def test_rows_are_loaded_and_encoded_once_for_many_models(
    model: Any, tokenizer: Any, task: Task
) -> None:
    loads: list[str] = []
    counted = replace(task, loader=lambda split: loads.append(split) or task.loader(split))
    scoring = Scoring(limit=30, seed=3, bootstrap=20)
    how: dict[str, Any] = {"tokenizer": tokenizer, "scoring": scoring}
    rows = scored_rows(model, counted, tokenizer, scoring)
    masks = [Mask.parse("421", layout(model)), Mask.parse("041", layout(model))]
    cut = [remove(model, mask) for mask in masks]
    found = [evaluate_rows(each, rows, **how)[0] for each in (model, *cut)]
    found += evaluate_rows(model, rows, masks, **how)
    assert loads == ["dev"]
    want = [evaluate(each, task, **how) for each in (model, *cut)]
    want += evaluate(model, task, masks, **how)
    for one, other in zip(found, want, strict=True):
        assert replace(one, seconds=0) == replace(other, seconds=0)
        np.testing.assert_array_equal(one.predictions["logits"], other.predictions["logits"])
