"""Drift against plain loops over captured attention and transformers' own hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from headcount.base.errors import UsageError
from headcount.changes.drift import drift
from headcount.models.capture import collect
from headcount.models.find import layout
from headcount.models.remove import remove
from models.zoo import build, mixed

FAMILIES = (
    "bert", "albert", "deberta-v2", "modernbert", "distilbert", "vit", "gpt2", "llama", "bloom",
    "mistral", "t5", "marian", "whisper", "gpt2-cross",
)  # fmt: skip
FINAL_NORM = (
    "gpt2",
    "llama",
    "bloom",
    "mistral",
    "t5",
    "modernbert",
    "vit",
    "whisper",
    "gpt2-cross",
)
"""Their last hidden state is after a norm of the whole stack, ours is before it."""


def batches(model, family, count=2):
    """Batches of two, the second row shorter; padded before the tokens in the last batch."""
    generator = torch.Generator().manual_seed(3)

    def ids(*shape):
        return torch.randint(5, 60, shape, generator=generator)

    for number in range(count):
        length = 7 + number
        if family == "vit":
            yield {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
            continue
        mask = torch.ones(2, length, dtype=torch.long)
        mask[1, 4:] = 0
        if number == 1 and family in ("bert", "llama"):
            mask = mask.flip(1)
        if family == "whisper":
            sound = torch.randn(2, 8, 24, generator=generator)
            yield {"input_features": sound, "decoder_input_ids": ids(2, 5)}
        elif family in ("t5", "marian"):
            told = mask[:, : length - 2]
            yield {
                "input_ids": ids(2, length), "attention_mask": mask,
                "decoder_input_ids": ids(2, length - 2), "decoder_attention_mask": told,
            }  # fmt: skip
        elif family == "gpt2-cross":
            states = torch.randn(2, 6, 32, generator=generator)
            seen = torch.ones(2, 6, dtype=torch.long)
            seen[0, 5:] = 0
            yield {
                "input_ids": ids(2, length), "attention_mask": mask,
                "encoder_hidden_states": states, "encoder_attention_mask": seen,
            }  # fmt: skip
        else:
            yield {"input_ids": ids(2, length), "attention_mask": mask}


def masks_by_hand(batch, stack):
    own, decoder = batch.get("attention_mask"), batch.get("decoder_attention_mask")
    if "decoder_input_ids" in batch:
        return {"encoder": (own, own), "decoder": (decoder, decoder), "cross": (decoder, own)}[
            stack
        ]
    return (own, batch.get("encoder_attention_mask") if stack == "cross" else own)


def js_by_hand(first, second, given, heads):
    """(input, head) in float64 loops, with scipy."""
    rows = []
    for batch in given:
        left, right = (collect(model, batch) for model in (first, second))
        for row in range(2):
            values = []
            for stack, layer, index in heads:
                uses = []
                for place in [p for p in left if (p.stack, p.layer) == (stack, layer)]:
                    p, q = (x[place][row, index].double().numpy() for x in (left, right))
                    queries, keys = (
                        np.ones(size, bool) if m is None else m[row].bool().numpy()
                        for m, size in zip(masks_by_hand(batch, stack), p.shape, strict=True)
                    )
                    p, q = p[queries][:, keys], q[queries][:, keys]
                    each = [jensenshannon(a, b, base=2) for a, b in zip(p, q, strict=True)]
                    uses.append(np.mean(np.square(each)))
                values.append(np.mean(uses))
            rows.append(values)
    return np.array(rows)


@pytest.fixture(scope="module")
def pairs():
    made = {}

    def get(family):
        if family not in made:
            made[family] = build(family), build(family, seed=1)
        return made[family]

    return get


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_drift_is_the_mean_of_scipys(pairs, family):
    first, second = pairs(family)
    given = list(batches(first, family))
    found = drift(first, second, given)
    rows = js_by_hand(first, second, given, layout(first))
    assert found.n == 4
    assert found.attention.values == pytest.approx(rows.mean(0), abs=1e-6)
    errors = rows.std(0, ddof=1) / np.sqrt(len(rows))
    assert found.stderr.values == pytest.approx(errors, abs=1e-6)
    assert max(found.attention.values) > 0.005
    by_layer = found.attention.by_layer()
    for row in found.layers:
        own = [h for h, head in enumerate(layout(first)) if head[:2] == (row.stack, row.layer)]
        assert row.mean == pytest.approx(np.mean(by_layer[row.stack][row.layer]))
        assert row.max == pytest.approx(max(by_layer[row.stack][row.layer]))
        each = rows[:, own].mean(1)
        assert row.mean_stderr == pytest.approx(each.std(ddof=1) / 2, abs=1e-6)
        assert row.max_stderr == pytest.approx(errors[own[int(rows[:, own].mean(0).argmax())]],
                                               abs=1e-6)  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_drift_is_that_of_the_models_hidden_states(pairs, family):
    first, second = pairs(family)
    given = list(batches(first, family))
    found = drift(first, second, given)
    sums: dict = {}
    for batch in given:
        outs = []
        for model in (first, second):
            with torch.no_grad():
                outs.append(model(**batch, output_hidden_states=True))
        both = "encoder_hidden_states" in outs[0] and "decoder_hidden_states" in outs[0]
        names = {"encoder": "encoder_hidden_states", "decoder": "decoder_hidden_states"}
        for stack in dict.fromkeys(row.stack for row in found.layers if row.stack != "cross"):
            states = [out[names[stack]] if both else out["hidden_states"] for out in outs]
            mask = masks_by_hand(batch, stack)[0]
            for depth in range(1, len(states[0])):
                apart = (states[0][depth] - states[1][depth]).double().norm(dim=-1)
                for row in range(2):
                    real = slice(None) if mask is None else mask[row].bool()
                    sums.setdefault((stack, depth), []).append(float(apart[row, real].mean()))
    layers = {(row.stack, row.layer): row for row in found.layers}
    depths = {stack: max(d for s, d in sums if s == stack) for stack, _ in sums}
    checked = 0
    for (stack, depth), values in sums.items():
        if family == "albert":  # two groups of layers, each run twice
            values = sums[stack, depth + depth % 2], sums[stack, depth - 1 + depth % 2]
            values = np.mean(values, axis=0)
        elif depth == depths[stack] and family in FINAL_NORM:
            continue
        row = layers[stack, (depth - 1) // (2 if family == "albert" else 1)]
        assert row.hidden == pytest.approx(np.mean(values), rel=1e-5)
        assert row.hidden_stderr == pytest.approx(np.std(values, ddof=1) / 2, rel=1e-4)
        checked += 1
    assert checked >= 3
    assert all(np.isnan(row.hidden) for row in found.layers if row.stack == "cross")


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "t5"])
def test_identical_models_do_not_drift(pairs, family):
    model, _ = pairs(family)
    found = drift(model, model, list(batches(model, family)))
    assert set(found.attention.values) == {0.0}
    assert {row.hidden for row in found.layers if row.stack != "cross"} == {0.0}


def test_padding_does_not_matter(pairs):
    first, second = pairs("gpt2")
    ids = torch.arange(5, 15)[None]
    plain = drift(first, second, [{"input_ids": ids}])
    padded = drift(
        first,
        second,
        [
            {
                "input_ids": torch.cat([ids, torch.full((1, 6), 9)], 1),
                "attention_mask": torch.tensor([[1] * 10 + [0] * 6]),
            }
        ],
    )
    assert padded.attention.values == pytest.approx(plain.attention.values, abs=1e-6)
    for one, other in zip(plain.layers, padded.layers, strict=True):
        assert other.hidden == pytest.approx(one.hidden, rel=1e-5)
        assert np.isnan(one.hidden_stderr)  # of a single input there is no error


def test_pruned_models_with_emptied_layers(pairs):
    first, second = (
        remove(model, mixed(layout(model))) for model in pairs("bert")
    )  # layers of 0, 2, 3 and 4 heads
    found = drift(first, second, list(batches(first, "bert")))
    assert [len(layer) for layer in found.attention.by_layer()["encoder"]] == [0, 2, 3, 4]
    assert np.isnan(found.layers[0].mean)
    assert found.layers[0].hidden > 0
    assert found.layers[1].mean > 0


def test_different_heads_on_top(pairs):
    from transformers import BertForMaskedLM, BertForSequenceClassification

    first, second = pairs("bert")
    assert isinstance(first, BertForSequenceClassification)
    other = BertForMaskedLM(second.config).eval()
    other.bert.load_state_dict(second.bert.state_dict(), strict=False)
    given = list(batches(first, "bert"))
    assert drift(first, other, given).attention == drift(first, second, given).attention


def test_nothing_is_left_behind():
    first, second = build("bert"), build("bert", seed=1)
    first.train()
    drift(first, second, list(batches(first, "bert")))
    assert first.training
    assert not second.training
    for model in (first, second):
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_no_inputs(pairs):
    first, second = pairs("bert")
    for nothing in ([], iter([]), ()):
        with pytest.raises(UsageError, match=r"no inputs|no data"):
            drift(first, second, nothing)


def test_inputs_that_do_not_reach_all_heads(pairs):
    first, second = pairs("gpt2-cross")
    with pytest.raises(UsageError, match="do not reach the cross heads"):
        drift(first, second, [{"input_ids": torch.tensor([[5, 6, 7]])}])


def test_attention_that_is_not_a_number(pairs):
    first, second = pairs("bert")
    broken = build("bert")
    broken.load_state_dict(second.state_dict())
    with torch.no_grad():  # a number itself, but not what comes of it
        broken.bert.encoder.layer[1].attention.self.query.weight.fill_(1e38)
    with pytest.raises(UsageError, match="encoder heads is not a number"):
        drift(first, broken, list(batches(first, "bert")))
