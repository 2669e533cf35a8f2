"""Greedy paths against direct solutions, and the Fisher of every kind against all labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from headcount.models.find import sites_of
from headcount.pruning.second_order import collect, greedy_path
from headcount.tasks.encoding import IGNORED, EncodedRows
from models.zoo import build
from pruning.conftest import cheapest, data, spd


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize(("heads", "size"), [(4, 3), (3, 6)])  # a group of two heads is a unit, too
def test_costs_are_those_of_solving_the_rest_again(heads, size, bias):
    """Along the whole path, against a direct solution for every set of heads gone so far."""
    outputs = 5
    rng = np.random.default_rng(1)
    a, g = spd(heads * size + bias, 2), spd(outputs, 3)
    w = rng.normal(size=(heads * size + bias, outputs))
    path, costs = greedy_path(a, g, w, heads, damping=1e-12)
    gone: list[int] = []
    before = 0.0
    for head, cost in zip(path, costs, strict=True):
        left = [h for h in range(heads) if h * size not in gone]
        totals = {h: cheapest(a, g, w, [*gone, *range(h * size, (h + 1) * size)]) for h in left}
        assert min(totals, key=totals.__getitem__) == head
        assert cost == pytest.approx(totals[head] - before, rel=1e-6)
        before = totals[head]
        gone += range(head * size, (head + 1) * size)
    assert sorted(path) == list(range(heads))


def test_the_sums_of_one_pass():
    model = build("bert", num_labels=3)
    (batch,) = data(model)
    sums = collect(model, [batch])
    real = batch["attention_mask"].bool()
    kept = {}

    def keep(_, args, out):
        kept["z"], kept["y"] = args[0], out

    handle = model.bert.encoder.layer[2].attention.output.dense.register_forward_hook(keep)
    logits = model(**batch).logits
    handle.remove()
    z = torch.cat([kept["z"][real], torch.ones(int(real.sum()), 1)], 1).double()
    found = sums["encoder", 2]
    assert torch.allclose(found.zz, z.T @ z, rtol=1e-4, atol=1e-5)
    assert found.tokens == int(real.sum())
    # the Fisher: labels drawn by the same seed from the model's own prediction
    generator = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(logits.detach().softmax(-1), 1, generator=generator)[:, 0]
    loss = torch.nn.functional.cross_entropy(logits, drawn, reduction="sum")
    (g,) = torch.autograd.grad(loss, kept["y"])
    g = g[real].double()
    assert torch.allclose(found.gg, g.T @ g, rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "examples of two rows"])
def test_tokens_of_an_example_that_act_together(grouped: bool):
    """Beside the gradients of gates of single tokens, and of whole examples."""
    model = build("bert", num_labels=3)
    (batch,) = data(model)
    rows = len(batch["input_ids"])
    numbers = torch.arange(rows) // (2 if grouped else 1)
    if grouped:
        batch["examples"] = 3 + numbers
    found = collect(model, [batch])["encoder", 2]
    gates = torch.ones(*batch["input_ids"].shape, found.heads, 1, requires_grad=True)

    def shut(_, args):
        (z,) = args
        return (z.unflatten(-1, (found.heads, -1)) * gates).flatten(-2)

    dense = model.bert.encoder.layer[2].attention.output.dense
    handle = dense.register_forward_pre_hook(shut)
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    handle.remove()
    generator = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(logits.detach().softmax(-1), 1, generator=generator)[:, 0]
    loss = torch.nn.functional.cross_entropy(logits, drawn, reduction="sum")
    (grads,) = torch.autograd.grad(loss / (2 if grouped else 1), gates)  # a mean over its labels
    grads = grads[..., 0].double() * batch["attention_mask"][..., None]
    whole = torch.stack([grads[numbers == n].sum((0, 1)) for n in numbers.unique()])
    assert found.apart == pytest.approx(float(grads.square().sum()), rel=1e-4)
    assert found.together == pytest.approx(float(whole.square().sum()), rel=1e-4)
    assert abs(found.coherence - 1) > 0.05


SIZES: dict[str, Any] = {
    "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "max_position_embeddings": 12, "pad_token_id": 0,
}  # fmt: skip
TOKENS = [[3, 4, 5, 6, 7], [8, 9, 3]]
TARGETS = [[4, 5, 1], [9, 1]]
TAGS = [[IGNORED, 0, 1, IGNORED, 2], [1, IGNORED, 0]]
DRAWS = 2500


def bert(head: str, **more: Any) -> nn.Module:
    return getattr(hf, f"Bert{head}")(hf.BertConfig(**SIZES, **more))


def llama() -> nn.Module:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, num_key_value_heads=1))


def vit() -> nn.Module:
    return hf.ViTForImageClassification(
        hf.ViTConfig(image_size=4, patch_size=2, num_labels=3, **SIZES)
    )


def bart() -> nn.Module:
    return hf.BartForConditionalGeneration(
        hf.BartConfig(
            vocab_size=11, d_model=8, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=12,
            encoder_attention_heads=2, decoder_attention_heads=2, decoder_ffn_dim=12,
            max_position_embeddings=12, pad_token_id=0, bos_token_id=1, eos_token_id=1,
            decoder_start_token_id=2, forced_eos_token_id=1,
        )
    )  # fmt: skip


def by_token(logits: Tensor, labels: Tensor) -> Tensor:
    """Log-probabilities (question, answer): one question for each label that counts."""
    return logits[0][labels[0] != IGNORED].log_softmax(-1)


CASES: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "classification": (lambda: bert("ForSequenceClassification", num_labels=3), {}),
    "regression": (lambda: bert("ForSequenceClassification", num_labels=1), {}),
    "masked-lm": (lambda: bert("ForMaskedLM"), {"labels": TAGS}),
    "causal-lm": (llama, {"labels": TOKENS}),
    "translation": (bart, {"labels": TARGETS}),
    "image-classification": (vit, {}),
    "token-classification": (
        lambda: bert("ForTokenClassification", num_labels=3),
        {"labels": TAGS},
    ),
    "embedding": (lambda: bert("Model"), {}),
    "similarity": (lambda: bert("Model"), {"examples": np.array([0, 0])}),
    "retrieval": (lambda: bert("Model"), {}),
}


def fisher(kind: str, model: nn.Module, batch: dict[str, Tensor], layer: nn.Module) -> Tensor:
    """Σ over tokens of E[ggᵀ] at a layer's output, of one row: no label is drawn."""
    kept: list[Tensor] = []
    inputs = {name: value for name, value in batch.items() if name != "examples"}
    if kind != "translation":
        inputs.pop("labels", None)
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        out: Any = model(**inputs)

    def outer(value: Tensor) -> Tensor:
        grad = torch.autograd.grad(value, kept[0], retain_graph=True)[0]
        grad = grad.reshape(-1, grad.shape[-1]).double()
        return grad.T @ grad

    if kind in ("embedding", "similarity", "retrieval"):
        mean = out.last_hidden_state[0].mean(0)
        texts = 2 if kind == "similarity" else 1  # an example's loss is their mean
        return torch.stack([outer(value) for value in mean / mean.norm()]).sum(0) / texts**2
    if kind == "regression":
        return outer(out.logits[0, 0])
    if kind in ("classification", "image-classification"):
        chances = out.logits.log_softmax(-1)
    elif kind == "causal-lm":
        chances = by_token(out.logits[:, :-1], batch["labels"][:, 1:])
    else:
        chances = by_token(out.logits, batch["labels"])
    parts = [outer(answer) * answer.exp().item() for answers in chances for answer in answers]
    # an example's loss is the mean over its labels, which are drawn one by one
    return torch.stack(parts).sum(0) / len(chances) ** 2


@pytest.mark.parametrize("kind", CASES)
def test_it_is_the_mean_over_all_labels(kind: str) -> None:
    make, more = CASES[kind]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = make().eval()
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "embed" not in name:  # fresh ones hardly matter
                nn.init.normal_(weight, std=1.5 * weight.shape[1] ** -0.5)
    rng = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {"input_ids": TOKENS}
    if kind == "image-classification":
        columns = {"pixel_values": list(rng.normal(size=(2, 3, 4, 4)).astype(np.float32))}
    rows = EncodedRows(columns, padding={"input_ids": 0}, kind=kind, **more)
    one = [0] if "examples" in more else [0, 1]
    many = rows.take(np.repeat(one, DRAWS))
    single = EncodedRows(columns, more.get("labels"), {"input_ids": 0})
    found = collect(model, many, seed=5)
    for site in sites_of(model):
        layer = model.get_submodule(site.out)
        want = torch.zeros(1)
        for row in range(2):
            ((_, batch),) = single.take([row]).batches()
            want = want + fisher(kind, model, batch, layer)
        off = (found[site.stack, site.layer].gg / DRAWS - want).norm() / want.norm()
        assert want.norm() > 1e-6
        assert off < 0.1, site
        if kind in ("masked-lm", "causal-lm"):  # tokens are predicted one by one
            assert found[site.stack, site.layer].coherence == pytest.approx(1)
