"""Every family through the same gate: find, gate, capture, remove, save, load, generate, train."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from headcount.base.errors import HeadcountError, UnsupportedError
from headcount.costs.cost import cost
from headcount.heads import Mask
from headcount.likeness.measure import redundancy
from headcount.models import cut
from headcount.models.capture import collect
from headcount.models.find import layout, sites_of
from headcount.models.gates import gate, open_gates
from headcount.models.load import load
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from headcount.models.sites import find_sites
from headcount.pruning import second_order
from headcount.sensitivity.gradients import importance
from models.zoo import FAMILIES, PATTERNS, attention_of, build, masks, removed, unchanged

BOTH = [(family, kind) for family in FAMILIES for kind in attention_of(family)]
# the family's own attention in every pattern; the other kind with all kinds of layers in one model
CUT = [
    (family, kind, pattern)
    for family, kind in BOTH
    for pattern in (PATTERNS if kind == attention_of(family)[-1] else ["mixed"])
]
SAVED = ("mixed", "all emptied")
SILENT = {"bert", "roberta", "xlm-roberta", "albert", "distilbert", "electra", "deberta-v2"}
SILENT |= {"modernbert", "mpnet", "vit", "clip"}
GENERATORS = [family for family in FAMILIES if family not in SILENT]


def other_inputs(model, **changes):
    """Inputs that `remove` has not seen when it verified itself."""
    inputs = probe_inputs(model, **({"batch": 3, "length": 9, "seed": 5} | changes))
    if not hasattr(model.config, "pad_token_id"):
        inputs.pop("attention_mask", None)
    return inputs


@pytest.mark.parametrize("family", FAMILIES)
def test_layout_counts_what_the_config_says(family):
    found = layout(build(family))
    config = FAMILIES[family][2]
    for stack in found.stacks:
        assert set(stack.heads) == {4}
        assert set(stack.groups) == {
            config.get("num_key_value_heads", config.get("num_kv_heads", 4))
        }
    total = sum(
        count * uses for s in found.stacks for count, uses in zip(s.heads, s.uses, strict=True)
    )
    stacks = {"clip": 2, "bert-decoder-cross": 2, "gpt2-cross": 2}.get(family, 1)
    stacks = (
        3 if family in ("t5", "mt5", "bart", "mbart", "marian", "pegasus", "whisper") else stacks
    )
    assert total == 4 * 4 * stacks


@pytest.mark.parametrize("family", FAMILIES)
def test_gate_gradients_match_finite_differences(family):
    model = build(family).double()
    inputs = other_inputs(model)
    gates = open_gates(layout(model), dtype=torch.float64)
    weights = [torch.randn_like(out) for out in run(model, inputs)]

    def loss():
        with gate(model, gates):
            outputs = model(**inputs)
        found = (
            [t for t in outputs.values() if torch.is_tensor(t)]
            if hasattr(outputs, "values")
            else []
        )
        return sum(
            (t * w).sum() for t, w in zip(found, weights, strict=False) if t.shape == w.shape
        )

    loss().backward()
    step = 1e-3  # several families compute their softmax or rotations in float32 whatever we ask
    slopes, grads = [], []
    for layers in gates.values():
        for layer, value in enumerate(layers):
            head = (layer + 1) % 4
            with torch.no_grad():
                value[head] += step
                up = loss()
                value[head] -= 2 * step
                down = loss()
                value[head] += step
            slopes.append((up - down) / (2 * step))
            grads.append(value.grad[head])
    slopes, grads = torch.stack(slopes), torch.stack(grads)
    assert (slopes - grads).norm() < 5e-3 * grads.norm()
    assert (grads.abs() > 1e-3 * grads.abs().max()).all()


@pytest.mark.parametrize(("family", "kind"), BOTH)
def test_capture_sees_the_models_own_probabilities(family, kind):
    model = build(family, attention=kind)
    before = model.config._attn_implementation
    inputs = other_inputs(model)
    captured = collect(model, inputs)
    assert model.config._attn_implementation == before
    assert len(captured) == sum(sum(stack.uses) for stack in layout(model).stacks)
    expected = own_attentions(build(family, attention="eager"), inputs)
    for stack, tensors in expected.items():
        # in the order of the layers: CLIP runs its second tower first
        found = [captured[place] for place in sorted(captured) if place.stack == stack]
        assert len(found) == len(tensors)
        for mine, theirs in zip(found, tensors, strict=True):
            torch.testing.assert_close(mine, theirs.detach(), rtol=1e-5, atol=1e-6)


def own_attentions(model, inputs):
    """What transformers itself returns with eager attention."""
    with torch.no_grad():
        out = model(**inputs, output_attentions=True)
    if "clip" in model.config.model_type:
        return {"encoder": (*out.text_model_output.attentions, *out.vision_model_output.attentions)}
    stacks = {
        "encoder": out.get("encoder_attentions"),
        "cross": out.get("cross_attentions"),
        "decoder": out.get("decoder_attentions"),
    }
    own = out.get("attentions")
    if own:
        stacks["encoder" if "encoder" in layout(model) else "decoder"] = own
    return {stack: value for stack, value in stacks.items() if value}


@pytest.mark.parametrize(("family", "kind", "pattern"), CUT)
def test_removed_equals_masked(family, kind, pattern):
    model, mask, small = removed(family, pattern, kind)
    assert sites_of(small) == find_sites(small)  # known without a walk
    assert len(layout(small)) == len(mask)
    inputs = other_inputs(model)
    with gate(model, mask):
        expected = run(model, inputs)
    assert relative_difference(expected, run(small, inputs)) <= 1e-5
    assert relative_difference(run(model, inputs), expected) > 1e-3, "the heads do not matter"


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_heads_are_noticed(family, monkeypatch):
    model = build(family)
    right = cut.rows_of

    def wrong(kind, kept, heads, groups, head_dim):
        size = heads // groups
        shift = size if groups > 1 else 1
        return right(kind, sorted((head + shift) % heads for head in kept), heads, groups, head_dim)

    monkeypatch.setattr(cut, "rows_of", wrong)
    with pytest.raises(UnsupportedError, match="cannot remove heads"):
        remove(model, masks(layout(model))["whole groups"])


@pytest.mark.parametrize("pattern", SAVED)
@pytest.mark.parametrize("family", FAMILIES)
def test_saved_loads_again_twice(family, pattern, tmp_path):
    model, _, small = removed(family, pattern)
    inputs = other_inputs(model)
    expected = run(small, inputs)
    small.save_pretrained(tmp_path / "once")
    once = load(tmp_path / "once")
    once.save_pretrained(tmp_path / "twice", max_shard_size="20KB")
    twice = load(tmp_path / "twice")
    assert len(list((tmp_path / "twice").glob("*.safetensors"))) > 1
    for again in (once, twice, copy.deepcopy(once), pickle.loads(pickle.dumps(twice))):
        assert type(again).__name__ == type(model).__name__
        assert layout(again) == layout(small)
        assert relative_difference(expected, run(again, inputs)) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_who_generates(family):
    assert build(family).can_generate() == (family in GENERATORS)


@pytest.mark.parametrize("pattern", SAVED)
@pytest.mark.parametrize("family", GENERATORS)
def test_generates_with_a_cache(family, pattern):
    model, _, small = removed(family, pattern)
    inputs = {"input_ids": torch.tensor([[7, 9, 11, 13, 8]])}
    if family == "whisper":
        inputs = {"input_features": other_inputs(model)["input_features"]}
    elif "cross" in family:
        # plain generate() gives these a cache that their own cross-attention cannot use
        return check_step_by_step(small, inputs["input_ids"])
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    cached = small.generate(**inputs, **options, use_cache=True)
    plain = small.generate(**inputs, **options, use_cache=False)
    assert cached.tolist() == plain.tolist()


def check_step_by_step(model, ids):
    """Feeding tokens one at a time through a cache gives the logits of feeding them at once."""
    from transformers import DynamicCache, EncoderDecoderCache

    states = torch.randn(1, 6, 32, generator=torch.Generator().manual_seed(2))
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    with torch.no_grad():
        whole = model(input_ids=ids, encoder_hidden_states=states).logits
        for step in range(ids.shape[1]):
            out = model(
                input_ids=ids[:, step : step + 1],
                encoder_hidden_states=states,
                past_key_values=cache,
                use_cache=True,
            )
            torch.testing.assert_close(out.logits[:, 0], whole[:, step], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_removed_model_trains(family):
    model, _, small = removed(family, "alternate layers emptied")
    small = copy.deepcopy(small).train()
    sum(t.float().square().mean() for t in tensors_of(small(**other_inputs(model)))).backward()
    reached = [p for p in small.parameters() if p.grad is not None and p.grad.abs().sum() > 0]
    assert len(reached) > len(list(small.parameters())) / 3
    assert all(torch.isfinite(p.grad).all() for p in small.parameters() if p.grad is not None)


def tensors_of(output):
    return [t for t in output.values() if torch.is_tensor(t) and t.requires_grad]


@pytest.mark.parametrize("family", FAMILIES)
def test_twice_removed_equals_removed_at_once(family):
    model, at_once, once = removed(family, "whole groups")
    full = layout(model)
    first = Mask.full(full).drop(head for head in at_once.dropped if head.layer < 2)
    half = remove(model, first)
    kept = {}
    for head in at_once:
        kept.setdefault(head[:2], []).append(first.indices(*head[:2]).index(head.index))
    rest = Mask.of(
        layout(half), [(*where, index) for where, all_ in kept.items() for index in all_]
    )
    inputs = other_inputs(model)
    assert relative_difference(run(once, inputs), run(remove(half, rest), inputs)) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_closing_the_gates_of_any_layer_changes_the_answer(family):
    model = build(family)
    inputs = other_inputs(model)
    plain = run(model, inputs)
    full = Mask.full(layout(model))
    for stack, layer, heads in full.layout.layers():
        with gate(model, full.drop((stack, layer, head) for head in range(heads))):
            masked = run(model, inputs)
        assert relative_difference(plain, masked) > 1e-4, (stack, layer)


@pytest.mark.parametrize("family", [*FAMILIES, "wavlm", "big-bird", "zamba"])
def test_the_model_is_as_it_was_after_every_call(family):
    model = build(family)
    # of one module in training the mode must come back, too
    list(model.modules())[-1].train()
    inputs = other_inputs(model)
    labelled = [inputs | {"labels": labels_for(model, inputs)}]
    calls = {
        "layout": lambda: layout(model),
        "gate": lambda: masked(model, inputs),
        "capture": lambda: collect(model, inputs),
        "remove": lambda: remove(model, masks(layout(model))["uneven"]),
        "cost": lambda: cost(model, length=8),
        "importance": lambda: importance(model, labelled),
        "surgeon": lambda: second_order.collect(model, labelled),
        "redundancy": lambda: redundancy(model, [inputs], "js", threads=1),
    }
    for name, call in calls.items():
        with unchanged(model):
            try:
                call()
            except HeadcountError:
                assert family not in FAMILIES or name in ("importance", "surgeon", "redundancy")


def masked(model, inputs):
    with gate(model, masks(layout(model))["uneven"]):
        run(model, inputs)


def labels_for(model, inputs):
    """Labels of the shape that the model's answer has, without its last axis."""
    return run(model, inputs)[0][..., 0].argsort(-1) % 2
