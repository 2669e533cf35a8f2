from __future__ import annotations

import copy
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch

from headcount.base.errors import HeadcountError, UsageError
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.repair.distil import Distil
from headcount.repair.distillation import DistilTrainer, distil, distil_rows
from headcount.repair.fidelity import divergence
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds import task_kind
from headcount.training.checkpoints import Saver
from models.zoo import build, mixed

OPTIONS = Distil(steps=6, batch_size=8, learning_rate=3e-3, hold_back=0.25)


def rows(count: int = 32, **more: Any) -> EncodedRows:
    """Rows of 3 to 10 tokens."""
    rng = np.random.default_rng(0)
    ids = [rng.integers(3, 60, rng.integers(3, 11)).tolist() for _ in range(count)]
    return EncodedRows({"input_ids": ids}, padding={"input_ids": 0}, **more)


def pair(family: str = "bert", **changes: Any) -> tuple[Any, Any]:
    full = build(family, **changes)
    return remove(full, mixed(layout(full))), full


def step_loss(small: Any, full: Any, given: EncodedRows, kind: str, hidden: float = 0.0) -> float:
    """The loss of one batch as the Trainer computes it, without dropout."""
    trainer = object.__new__(DistilTrainer)
    trainer.full, trainer.hidden, trainer.task_kind = full, hidden, task_kind(kind)
    batch = given.collate([given[row] for row in range(len(given))])
    total, _ = trainer.total_loss(small, batch)
    return float(total.detach() / trainer.count(batch["labels"]))


def one_by_one(small: Any, full: Any, given: EncodedRows, kind: str, hidden: float) -> float:
    """The same in numpy, a row at a time and so without padding, in double precision."""
    small, full = copy.deepcopy(small).double(), copy.deepcopy(full).double()
    losses = []
    for ids in given.columns["input_ids"]:
        batch = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids))}
        if full.config.is_encoder_decoder:
            start = [full.config.decoder_start_token_id]
            batch["decoder_input_ids"] = torch.tensor([start + ids[:-1]])
        with torch.no_grad():
            mine, whole = (m(**batch, output_hidden_states=True) for m in (small, full))
        if kind == "question-answering":
            mine_of = [mine.start_logits[0], mine.end_logits[0]]
            pairs = zip(mine_of, [whole.start_logits[0], whole.end_logits[0]], strict=True)
        elif kind == "embedding":
            pairs = [(mine.last_hidden_state[0].mean(0), whole.last_hidden_state[0].mean(0))]
        else:
            flat = [out.logits.reshape(-1, out.logits.shape[-1]) for out in (mine, whole)]
            pairs = zip(*flat, strict=True)
        values = []
        for left, right in pairs:
            q, p = left.numpy(), right.numpy()
            if kind == "regression":
                values.append(((q - p) ** 2).sum())
            elif kind == "embedding":
                q, p = q / np.linalg.norm(q), p / np.linalg.norm(p)
                values.append(((q - p) ** 2).sum())
            else:
                q, p = (np.exp(x) / np.exp(x).sum() for x in (q, p))
                values.append((p * np.log(p / q)).sum())
        loss = np.mean(values)
        if hidden:
            states = []
            for name in ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"):
                if getattr(whole, name, None) is not None:
                    states += zip(getattr(mine, name), getattr(whole, name), strict=True)
            errors = [float((a - b).square().sum() / b.square().sum()) for a, b in states]
            loss += hidden * np.mean(errors)
        losses.append(loss)
    return float(np.mean(losses))


@pytest.mark.parametrize(
    ("family", "kind", "changes"),
    [
        ("bert", "classification", {"num_labels": 3}),
        ("bert", "regression", {"num_labels": 1}),
        ("bert-masked", "masked-lm", {}),
        ("llama", "causal-lm", {}),
        ("t5", "text-to-text", {}),
        ("bert-base", "embedding", {}),
        ("bert-qa", "question-answering", {}),
    ],
)
@pytest.mark.parametrize("hidden", [0.0, 0.5])
def test_the_loss_is_that_of_every_row_by_itself(family, kind, changes, hidden):
    small, full = pair_of(family, **changes)
    given = rows(6)
    marks: Any = given.columns["input_ids"] if family == "t5" else np.zeros(6, dtype=np.int64)
    given = replace(given, labels=marks)
    found = step_loss(small, full, given, kind, hidden)
    assert found == pytest.approx(one_by_one(small, full, given, kind, hidden), rel=2e-4, abs=2e-8)
    assert step_loss(full, full, given, kind, hidden) == pytest.approx(0, abs=1e-6)


def pair_of(family: str, **changes: Any) -> tuple[Any, Any]:
    """A pair of the zoo, or one with another head."""
    import transformers

    heads = {
        "bert-masked": transformers.BertForMaskedLM,
        "bert-base": transformers.BertModel,
        "bert-qa": transformers.BertForQuestionAnswering,
    }
    if family not in heads:
        return pair(family, **changes)
    torch.manual_seed(0)
    plain = build("bert")
    full = heads[family](plain.config).eval()
    full.load_state_dict(plain.state_dict(), strict=False)
    for name, value in full.named_parameters():
        if value.ndim == 2 and "encoder" in name:
            torch.nn.init.normal_(value, std=0.3)
    return remove(full, mixed(layout(full))), full


def test_a_blank_row_counts_nothing():
    small, full = pair(num_labels=3)
    given = rows(6, labels=np.zeros(6, dtype=np.int64))
    blank = replace(given.take([0, 1, 2, 3]), labels=np.array([0, 0, 0, -100]))
    expected = step_loss(small, full, given.take([0, 1, 2]), "classification")
    assert step_loss(small, full, blank, "classification") == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_it_comes_nearer_to_the_full_model_and_says_by_how_much(family):
    small, full = pair(family)
    before = {name: value.clone() for name, value in full.state_dict().items()}
    others = rows(48).take(range(32, 48))
    far = divergence(small, full, others)
    made = distil_rows(small, full, rows(), options=replace(OPTIONS, steps=40), device="cpu")
    assert made.kept
    assert made.after < made.before
    assert divergence(small, full, others) < far
    assert (made.steps, made.rows, made.held_back) == (40, 24, 8)
    assert made.examples == 40 * 8
    order = np.random.default_rng(0).permutation(32)
    lengths = rows().lengths[order[8:]]
    whole, rest = divmod(made.examples, 24)
    assert whole * lengths.sum() <= made.tokens <= (whole + (rest > 0)) * lengths.sum()
    assert all(torch.equal(value, before[name]) for name, value in full.state_dict().items())
    assert not small.training
    assert not any(p.grad is not None for p in [*small.parameters(), *full.parameters()])
    assert made.to_json()["loss"] == {"before": made.before, "after": made.after}


def test_tokens_are_those_of_the_batches(monkeypatch):
    small, full = pair(num_labels=3)
    seen = []
    plain = DistilTrainer.total_loss

    def counted(self, model, inputs):
        seen.append(int(inputs["attention_mask"].sum()))
        return plain(self, model, inputs)

    monkeypatch.setattr(DistilTrainer, "total_loss", counted)
    made = distil_rows(small, full, rows(), options=replace(OPTIONS, steps=8), device="cpu")
    assert (made.tokens, len(seen)) == (sum(seen), 8)


def test_a_loss_that_does_not_fall_is_not_kept():
    small, full = pair(num_labels=3)
    before = {name: value.clone() for name, value in small.named_parameters()}
    wild = replace(OPTIONS, learning_rate=5.0, clip=0)
    made = distil_rows(small, full, rows(), options=wild, device="cpu")
    assert not made.kept
    assert "no nearer to the full model's" in str(made.note)
    assert all(torch.equal(value, before[name]) for name, value in small.named_parameters())
    assert divergence(small, full, rows()) > 0


def test_labels_have_no_part_in_it():
    results = []
    for labels in (None, np.arange(32) % 3):
        small, full = pair(num_labels=3)
        distil(small, full, rows(labels=labels), options=OPTIONS, device="cpu")
        results.append(small.state_dict())
    assert all(torch.equal(value, results[1][name]) for name, value in results[0].items())


def test_another_seed_is_another_order_and_other_rows():
    made = []
    for seed in (0, 0, 1):
        small, full = pair(num_labels=3)
        options = replace(OPTIONS, seed=seed)
        made.append(asdict(distil_rows(small, full, rows(), options=options, device="cpu")))
    assert made[0] == made[1]
    assert made[0]["before"] != made[2]["before"]


def test_resumed_is_uninterrupted_and_done_is_not_done_again(tmp_path, monkeypatch):
    options = replace(OPTIONS, save_every=2)

    def made(work):
        small, full = pair(num_labels=3)
        return distil_rows(small, full, rows(), options=options, work=work, device="cpu"), small

    whole, expected = made(None)
    plain = Saver.on_save

    def save(self, args, state, control, **more):
        plain(self, args, state, control, **more)
        if state.global_step == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Saver, "on_save", save)
        with pytest.raises(KeyboardInterrupt):
            made(tmp_path / "work")
    resumed, small = made(tmp_path / "work")
    assert resumed == replace(whole, resumed_from=4)
    for name, value in expected.state_dict().items():
        assert torch.equal(small.state_dict()[name], value), name
    with monkeypatch.context() as patch:
        patch.setattr(DistilTrainer, "train", lambda *_, **__: pytest.fail("again"))
        again, small = made(tmp_path / "work")
    assert again == resumed
    for name, value in expected.state_dict().items():
        assert torch.equal(small.state_dict()[name], value), name
    options = replace(options, learning_rate=0.1)
    with pytest.raises(UsageError, match=r"learning_rate was 0\.003, now 0\.1"):
        made(tmp_path / "work")


def test_what_cannot_be_is_refused():
    small, full = pair(num_labels=3)

    def refused(match, full=full, given=None, options=OPTIONS, error: Any = UsageError):
        given = rows() if given is None else given
        with pytest.raises(error, match=match):
            distil_rows(small, full, given, options=options, device="cpu")

    refused("cannot be distilled from a LlamaForCausalLM", build("llama"))
    refused("other tokens in its vocabulary: 70, and the pruned one 61",
            build("bert", num_labels=3, vocab_size=70))  # fmt: skip
    refused("other labels: .*LABEL_1.*LABEL_2", build("bert", num_labels=2))
    wider = build("bert", num_labels=3, hidden_size=64)
    refused("leave --hidden out", wider, options=replace(OPTIONS, hidden=1.0))
    refused("4 calibration rows at least, to hold some back: there are 3", given=rows(3))
    refused("there is 1", given=rows(1))
    refused("texts or rows of tokens", given=[{"input_ids": torch.ones(2, 3)}])
    spoiled = copy.deepcopy(full)
    with torch.no_grad():
        spoiled.classifier.weight[0, 0] = float("nan")
    refused("not a number", spoiled, error=HeadcountError)
    with pytest.raises(UsageError, match="takes a model, not a name"):
        distil("small", full, rows())


def test_a_larger_model_of_the_same_kind_may_be_distilled_from():
    small, _ = pair(num_labels=3)
    larger = build("bert", num_labels=3, hidden_size=64, seed=1)
    options = replace(OPTIONS, steps=60)
    made = distil_rows(small, larger, rows(), options=options, device="cpu")
    assert made.kept
