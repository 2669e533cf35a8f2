from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import BertModel, Wav2Vec2Config, Wav2Vec2ForCTC

from headcount.base.errors import UsageError
from headcount.heads import Head, Mask
from headcount.models.batches import ModelBatch
from headcount.models.find import layout
from headcount.models.gates import gate, open_gates
from headcount.models.load import load
from headcount.sensitivity.gradients import (
    ImportanceResult,
    by_example,
    example_losses,
    importance,
)
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds import task_kind
from models.zoo import build

FIXTURE = Path(__file__).parent.parent / "fixtures" / "v4-importance"


def batch(model, rows=5, length=8, seed=0):
    """Tokens with padding, and labels of the model's kind."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 61, (rows, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    name = type(model).__name__
    if "SequenceClassification" in name:
        labels = torch.randint(0, model.config.num_labels, (rows,), generator=generator)
        if model.config.num_labels == 1:
            labels = torch.randn(rows, generator=generator)
    else:
        labels = torch.where(mask.bool(), ids, -100)
        labels[2, 3:] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def one_by_one(model, data):
    """The oracle: one example at a time in double precision, by the model's own loss."""
    model = model.double()
    heads = layout(model)
    found = []
    for row in range(len(data["labels"])):
        one = {name: value[row : row + 1] for name, value in data.items()}
        if one["labels"].is_floating_point():
            one["labels"] = one["labels"].double()
        gates = open_gates(heads, dtype=torch.float64)
        with gate(model, gates):
            loss = model(**one).loss
        flat = [value for values in gates.values() for value in values]
        grads = torch.autograd.grad(loss, flat)
        found.append(torch.cat(grads).abs().numpy())
    return np.stack(found)


CASES = [
    ("bert", {"num_labels": 3}),
    ("bert", {"num_labels": 1}),
    ("distilbert", {}),
    ("albert", {}),
    ("gpt2", {}),
    ("llama", {}),
    ("t5", {}),
    ("bart", {}),
    ("marian", {}),
]


@pytest.mark.parametrize(("family", "changes"), CASES)
def test_equals_a_loop_over_single_examples(family, changes):
    model = build(family, **changes)
    data = batch(model)
    halves = [{k: v[:3] for k, v in data.items()}, {k: v[3:] for k, v in data.items()}]
    found = importance(model, halves)
    expected = one_by_one(model, data)
    assert found.n == 5
    mean = expected.mean(0)
    assert np.abs(np.array(found.values) - mean).max() <= 1e-5 * mean.max()
    spread = expected.std(0, ddof=1) / np.sqrt(5)
    assert np.abs(np.array(found.stderr) - spread).max() <= 1e-5 * spread.max()


def test_equals_the_head_mask_of_transformers_4():
    data = load_file(FIXTURE / "expected.st")
    gradients = data.pop("gradients")  # (example, layer, head)
    model = load(FIXTURE)
    found = importance(model, [data])
    expected = gradients.abs().mean(0).reshape(-1).numpy()
    assert np.abs(np.array(found.values) - expected).max() <= 1e-5 * expected.max()


def test_shared_layers_are_summed_before_the_absolute_value():
    model = build("albert")
    data = batch(model)
    heads = layout(model)
    assert heads.stacks[0].uses == (2, 2)
    gates = open_gates(heads, batch=5)
    seen: list[torch.Tensor] = []
    with gate(model, gates):
        outs = {m for name, m in model.named_modules() if name.endswith("attention.dense")}
        keep = [m.register_forward_pre_hook(lambda _, args: seen.append(args[0])) for m in outs]
        inputs = {name: value for name, value in data.items() if name != "labels"}
        logits = model(**inputs).logits
        for handle in keep:
            handle.remove()
    counts = data["labels"] != -100
    losses = torch.nn.functional.cross_entropy(
        logits[counts], data["labels"][counts], reduction="none"
    )
    rows = counts.nonzero()[:, 0]
    total = sum(losses[rows == row].mean() for row in range(5))
    grads = torch.autograd.grad(total, seen)
    # ∂L/∂ξ of one depth is the inner product of a head's output with its gradient
    depths = [
        (z * g).reshape(5, 8, 4, 8).sum((1, 3)).detach() for z, g in zip(seen, grads, strict=True)
    ]
    summed = torch.stack([depths[0] + depths[1], depths[2] + depths[3]])
    apart = torch.stack([depths[0].abs() + depths[1].abs(), depths[2].abs() + depths[3].abs()])
    expected = summed.abs().mean(1).reshape(-1).numpy()
    found = np.array(importance(model, [data]).values)
    assert np.abs(found - expected).max() < 1e-5 * expected.max()
    assert np.abs(apart.mean(1).reshape(-1).numpy() - expected).max() > 1e-2 * expected.max()


def test_rows_of_a_task_do_as_batches():
    model = build("bert", num_labels=3)
    data = batch(model)
    lengths = data["attention_mask"].sum(1)
    rows = [ids[:n].tolist() for ids, n in zip(data["input_ids"], lengths, strict=True)]
    encoded = EncodedRows({"input_ids": rows}, data["labels"].numpy())
    by_rows = importance(model, encoded, tokens=16)
    by_batch = importance(model, [data])
    assert by_rows.values == pytest.approx(by_batch.values, rel=1e-4)


@pytest.mark.parametrize(("normalize", "power"), [("l1", 1), ("l2", 2)])
def test_layers_are_divided_by_their_norm(normalize, power):
    model = build("bert", num_labels=3)
    plain = importance(model, [batch(model)])
    scaled = importance(model, [batch(model)], normalize=normalize)
    for layer, values in enumerate(plain.by_layer()["encoder"]):
        norm = np.linalg.norm(values, power)
        assert scaled.by_layer()["encoder"][layer] == pytest.approx(np.array(values) / norm)
    assert np.array(scaled.stderr) / np.array(scaled.values) == pytest.approx(
        np.array(plain.stderr) / np.array(plain.values)
    )
    with pytest.raises(UsageError, match="normalised already"):
        scaled.normalized("l1")


def test_closed_heads_change_the_scores_of_the_others():
    model = build("bert", num_labels=3)
    data = batch(model)
    mask = Mask.full(layout(model)).drop([Head("encoder", 0, 1), Head("encoder", 2, 0)])
    found = importance(model, [data], mask=mask)
    gates = open_gates(layout(model), batch=5)
    with torch.no_grad():
        gates["encoder"][0][:, 1] = 0
        gates["encoder"][2][:, 0] = 0
    with gate(model, gates):
        logits = model(data["input_ids"], attention_mask=data["attention_mask"]).logits
        loss = torch.nn.functional.cross_entropy(logits, data["labels"], reduction="sum")
    grads = torch.autograd.grad(loss, gates["encoder"])
    expected = torch.cat([g.abs().mean(0) for g in grads]).numpy()
    assert np.array(found.values) == pytest.approx(expected, rel=1e-4)


def test_the_last_layer_is_felt_at_cls_alone():
    """A head of the last layer that writes nothing at [CLS] has no importance; below, it has."""
    model = build("bert", num_labels=3)
    data = batch(model)

    def without_cls(layer):
        module = model.bert.encoder.layer[layer].attention.output.dense

        def zero(_, args):
            z = args[0].clone()
            z[:, 0] = 0
            return (z,)

        handle = module.register_forward_pre_hook(zero)
        try:
            return importance(model, [data]).by_layer()["encoder"][layer]
        finally:
            handle.remove()

    assert max(without_cls(3)) == 0
    assert min(without_cls(2)) > 0


def test_the_model_is_left_as_it_was():
    model = build("bert", num_labels=3).train()
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    trains = [p.requires_grad for p in model.parameters()]
    importance(model, [batch(model)])
    assert model.training
    assert [p.requires_grad for p in model.parameters()] == trains
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())


def test_json_reads_back():
    model = build("bert", num_labels=3)
    found = importance(model, [batch(model)], normalize="l2")
    assert ImportanceResult.from_json(found.to_json()) == found


def test_refusals():
    model = build("bert", num_labels=3)
    data = batch(model)
    unlabelled = {name: value for name, value in data.items() if name != "labels"}
    with pytest.raises(UsageError, match="needs labels"):
        importance(model, [unlabelled])
    with pytest.raises(UsageError, match="BertModel has no loss"):
        importance(BertModel(model.config), [data])
    with pytest.raises(UsageError, match="There is no data"):
        importance(model, [])
    with pytest.raises(UsageError, match="no example has a label"):
        importance(model, [{**data, "labels": torch.full((5,), -100)}])
    with pytest.raises(UsageError, match="Did you mean 'l1'"):
        importance(model, [data], normalize="l11")
    with pytest.raises(UsageError, match="another layout"):
        importance(model, [data], mask=Mask.full(layout(build("gpt2"))))
    with pytest.raises(UsageError, match="needs labels"):
        importance(model, [[1, 2]])
    with torch.no_grad():
        model.classifier.weight[0, 0] = float("nan")
    with pytest.raises(UsageError, match="not a number"):
        importance(model, [data])


def test_a_model_that_learns_by_ctc_is_seen_without_a_task():
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    narrow = {"conv_dim": (4,), "conv_kernel": (4,), "conv_stride": (4,)}
    config = Wav2Vec2Config(
        vocab_size=7, intermediate_size=8, num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, **sizes, **narrow,
    )  # fmt: skip
    model = Wav2Vec2ForCTC(config).eval()
    batch = {"input_values": torch.randn(2, 64), "labels": torch.tensor([[1, 2, 3], [1, 2, -100]])}
    model.config.ctc_loss_reduction = "mean"
    scores = importance(model, [batch])
    assert scores.kind == "speech-recognition"
    assert scores.loss == pytest.approx(model(**batch).loss.item(), rel=1e-5)


def test_each_loss_is_the_mean_over_the_examples_own_labels():
    """Against torch's mean over one example at a time."""
    torch.manual_seed(0)
    logits = torch.randn(5, 7, 11)
    labels = torch.randint(0, 11, (5, 7))
    labels[1, 3:] = -100
    labels[4] = -100
    for kind, shift in (("masked-lm", 0), ("translation", 0), ("causal-lm", 1)):
        losses, counts = example_losses(task_kind(kind), logits, ModelBatch({}, labels))
        assert counts.tolist() == [True, True, True, True, False]
        for row in range(4):
            words, wanted = logits[row, : 7 - shift], labels[row, shift:]
            expected = torch.nn.functional.cross_entropy(words, wanted)
            assert losses[row].item() == pytest.approx(expected.item(), rel=1e-6)
        assert losses[4] == 0


def test_the_rows_of_an_example_are_added():
    batch = ModelBatch({}, torch.tensor([3.0, 2.5, -100.0, 1.0]), torch.tensor([4, 4, 9, 2]))
    assert by_example(torch.tensor([1, 2, 3, 4]), batch).tolist() == [4, 3, 3]
    answers = torch.tensor([[1.0], [2.0], [5.0], [1.0]])
    losses, counts = example_losses(task_kind("regression"), answers, batch)
    assert losses.tolist() == [0.0, (4.0 + 0.25) / 2, 0.0]
    assert counts.tolist() == [True, True, False]
