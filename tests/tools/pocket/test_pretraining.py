from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForPreTraining

from headcount.base.errors import UsageError
from tools.pocket.build import bert_loss, seeded
from tools.pocket.masking import IGNORED, Masking, corpus_batches
from tools.pocket.pretraining import POOL, Plan, pretrain
from tools.pocket.tokenizer import bert_tokenizer

PLAN = Plan(steps=12, batch=4, save_every=3)


class StopHere(Exception):
    pass


def small() -> Any:
    size: dict[str, int] = {"vocab_size": len(bert_tokenizer()), "hidden_size": 16}
    size |= {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(**size, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return seeded(0, lambda: BertForPreTraining(config))


def run(checkpoint: Path, *, plan: Plan = PLAN, stop: int | None = None) -> Any:
    model, words = small(), bert_tokenizer()

    def batches(pool: int) -> list[dict[str, torch.Tensor]]:
        if pool == stop:
            raise StopHere
        settings: dict[str, Any] = {"split": "train", "seed": 0, "size": plan.batch}
        return corpus_batches(words, pool=pool, count=POOL, masking=Masking(), **settings)

    pretrain(model, batches, plan, checkpoint, lambda _: None, bert_loss)
    return model.state_dict()


def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole = run(tmp_path / "one")
    with pytest.raises(StopHere):
        run(tmp_path / "two", stop=1)
    assert torch.load(tmp_path / "two", weights_only=True)["step"] == 6
    again = run(tmp_path / "two")
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert not torch.equal(
        whole["cls.predictions.bias"], small().state_dict()["cls.predictions.bias"]
    )


def test_another_plan_does_not_go_on(tmp_path: Path) -> None:
    run(tmp_path / "run")
    with pytest.raises(UsageError, match="other settings"):
        run(tmp_path / "run", plan=Plan(steps=13, batch=4, save_every=3))


def test_batches_that_ask_for_no_next_sentence_have_a_loss() -> None:
    model, words = small(), bert_tokenizer()
    settings: dict[str, Any] = {"split": "train", "seed": 0, "pool": 0, "size": 8, "count": 1}
    batch = corpus_batches(words, masking=Masking(bare=0.0), **settings)[0]
    assert torch.allclose(bert_loss(model, batch), model(**batch).loss)
    batch["next_sentence_label"][:] = IGNORED
    assert model(**batch).loss.isnan()
    words_only = torch.nn.functional.cross_entropy(
        model(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])[0].mT,
        batch["labels"],
    )
    assert torch.allclose(bert_loss(model, batch), words_only)


def test_the_rate_rises_and_falls() -> None:
    plan = Plan(steps=100)
    rates = [plan.rate_at(step) for step in range(100)]
    assert max(rates) == rates[9] == 1.0
    assert rates[:9] == sorted(rates[:9])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.001
