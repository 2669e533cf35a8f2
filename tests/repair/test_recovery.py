from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.instructions import set_paths
from headcount.models.linear import write_path
from headcount.models.load import load
from headcount.models.probe import probe_inputs, run
from headcount.models.remove import remove
from headcount.repair.recover import Recover
from headcount.repair.recovery import Fit, few_tokens, recover, recover_layers
from models.zoo import FAMILIES, build, mixed


def data(model, batches=6, seed=0):
    made = []
    for number in range(batches):
        inputs = probe_inputs(model, batch=4, length=10, seed=seed + number)
        made.append(inputs)
    return made


def outputs(model, path, batch, side):
    seen = []
    module = model.get_submodule(path)
    handle = module.register_forward_hook(
        lambda _m, args, out: seen.append(args[0] if side == "in" else out)
    )
    with torch.no_grad():
        model(**batch)
    handle.remove()
    return seen[0]


def test_equals_least_squares_over_stored_activations():
    """The oracle keeps every activation and solves each layer in turn by numpy, in float64."""
    model = build("bert").double()
    heads = layout(model)
    keep = Mask.parse("3204", heads)
    small = remove(model, keep)
    batches = data(model)
    oracle = copy.deepcopy(small)
    for layer in range(4):
        path = f"bert.encoder.layer.{layer}.attention.output.dense"
        out = oracle.get_submodule(path)
        rows, targets = [], []
        for batch in batches:
            real = batch["attention_mask"].bool()
            y = outputs(model, path, batch, "out")[real]
            if keep.indices("encoder", layer):
                z = outputs(oracle, path, batch, "in")[real]
            else:
                z = y.new_zeros(len(y), 0)
            rows.append(torch.cat([z, z.new_ones(len(z), 1)], 1).numpy())
            targets.append(y.numpy())
        x, y = np.concatenate(rows), np.concatenate(targets)
        start = torch.cat([out.weight.T, out.bias[None]]).detach().numpy()
        root = np.sqrt(1e-3 * np.mean(np.diag(x.T @ x)))
        solved = np.linalg.lstsq(
            np.concatenate([x, root * np.eye(x.shape[1])]),
            np.concatenate([y, root * start]),
            rcond=None,
        )[0]
        with torch.no_grad():
            out.weight.copy_(torch.from_numpy(solved[:-1].T.copy()))
            out.bias.copy_(torch.from_numpy(solved[-1]))
    recover(small, model, batches)
    for (name, found), expected in zip(small.named_parameters(), oracle.parameters(), strict=True):
        assert (found - expected).abs().max() < 1e-8 if found.numel() else True, name


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_comes_closer_to_the_full_model(family):
    model = build(family)
    small = remove(model, mixed(layout(model)))
    batches = data(model)
    before = [run(small, batch) for batch in batches]
    fits = recover_layers(small, model, batches)
    assert fits
    assert all(fit.after <= fit.before for fit in fits)
    assert any(fit.after < 0.9 * fit.before for fit in fits)
    after = [run(small, batch) for batch in batches]
    full = [run(model, batch) for batch in batches]

    def far(found):
        return sum(float((a[0] - b[0]).square().sum()) for a, b in zip(found, full, strict=True))

    assert far(after) < far(before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_layers_below_the_first_missing_head_stay_as_they_are():
    model = build("bert")
    small = remove(model, Mask.parse("4421", layout(model)))
    fits = recover_layers(small, model, data(model))
    assert [fit.layer for fit in fits] == [2, 3]
    first = "bert.encoder.layer.0.attention.output.dense.weight"
    assert torch.equal(small.get_parameter(first), model.get_parameter(first))
    assert recover_layers(remove(model, Mask.full(layout(model))), model, data(model)) == []


def test_padding_does_not_count():
    model = build("bert")
    batch = probe_inputs(model, batch=4, length=10)
    other = {name: value.clone() for name, value in batch.items()}
    hidden = batch["attention_mask"] == 0
    assert hidden.any()
    other["input_ids"][hidden] = 7
    keep = Mask.parse("2222", layout(model))
    one = recover(remove(model, keep), model, [batch])
    two = recover(remove(model, keep), model, [other])
    for left, right in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.allclose(left, right, atol=1e-6)


def test_a_recovered_model_saves_and_loads(tmp_path):
    model = build("gpt2")
    small = recover(remove(model, mixed(layout(model))), model, data(model))
    small.save_pretrained(tmp_path / "small")
    batch = data(model)[0]
    again = run(load(tmp_path / "small"), batch)
    assert torch.allclose(run(small, batch)[0], again[0], atol=1e-6)


def test_a_generator_of_batches_and_progress():
    model = build("bert", num_hidden_layers=2)
    small = remove(model, Mask.parse("22", layout(model)))
    seen = []
    recover(small, model, iter(data(model)), report=lambda *done: seen.append(done))
    assert seen == [(1, 2), (2, 2)]


def test_refusals():
    model = build("bert")
    small = remove(model, Mask.parse("2222", layout(model)))
    with pytest.raises(UsageError, match="There is no data"):
        recover(small, model, [])
    with pytest.raises(UsageError, match="not negative"):
        recover(small, model, data(model), options=Recover(ridge=-1))
    with pytest.raises(UsageError, match="is not GPT2LMHeadModel with heads removed"):
        recover(small, build("gpt2"), data(model))
    with pytest.raises(UsageError, match=r"is not .* with heads removed"):
        recover(model, small, data(model))
    few = [{name: value[:1, :2] for name, value in data(model, 1)[0].items()}]
    with pytest.raises(UsageError, match="encoder layer 0 is singular: 2 tokens for 49 unknowns"):
        recover(copy.deepcopy(small), model, few, options=Recover(ridge=0, path_rank=4))
    with pytest.raises(UsageError, match=r"is not .* with heads removed"):
        recover(build("llama"), build("llama", hidden_size=48), data(model))
    none = [{**data(model, 1)[0], "attention_mask": torch.zeros(4, 10).long()}]
    with pytest.raises(UsageError, match="No token of the inputs counts"):
        recover(small, model, none)


def test_an_emptied_layer_gets_the_mean_output_where_it_is_read():
    model = build("bert")
    small = remove(model, Mask.parse("4040", layout(model)))
    rows = data(model)
    rows[0]["attention_mask"][1, 6:] = 0
    recover(small, model, rows, options=Recover(ridge=0))
    for layer, first in ((1, False), (3, True)):
        path = f"bert.encoder.layer.{layer}.attention.output.dense"
        wanted = []
        for batch in rows:
            out = outputs(model, path, batch, "out")
            wanted.append(out[:, 0] if first else out[batch["attention_mask"].bool()])
        bias = small.get_submodule(path).bias
        assert torch.allclose(bias, torch.cat(wanted).mean(0), atol=1e-5), layer


def test_layers_of_the_same_weights_are_refused():
    model = build("zamba")
    with pytest.raises(UnsupportedError, match=r"layers\.2\..* and .*layers\.4\..* same weights"):
        recover(model, model, [{"input_ids": torch.tensor([[5, 6, 7]])}])


def test_the_layer_with_the_fewest_tokens_is_named():
    fits = [Fit("encoder", layer, 0.1, 0.1, tokens, 33) for layer, tokens in enumerate((400, 90))]
    told = few_tokens(fits)
    assert told is not None
    assert "90 tokens for 33 unknowns in encoder layer 1" in told
    assert few_tokens(fits[:1]) is None
    assert "needs about 330: on other rows it may do harm" in told
    scaled = few_tokens([replace(fits[1], scaled=True)])
    assert scaled is not None
    assert "needs about 330: it only scaled the kept heads" in scaled


def test_with_too_few_tokens_the_heads_are_scaled():
    """17 unknowns in three layers and 9 in one, with 8 rows of 10 tokens."""
    model = build("bert")
    small = remove(model, Mask.parse("2122", layout(model)))
    rows = data(model, 1) + data(model, 1)
    fits = recover_layers(copy.deepcopy(small), model, rows)
    tokens = fits[0].tokens
    assert [fit.scaled for fit in fits] == [tokens < 5 * fit.unknowns for fit in fits]
    assert {fit.scaled for fit in fits} == {False, True}
    scales, plain = copy.deepcopy(small), copy.deepcopy(small)
    recover_layers(scales, model, rows, options=Recover(scales=True))
    recover_layers(plain, model, rows)
    first = [each.bert.encoder.layer[0].attention.output.dense for each in (scales, plain)]
    assert torch.equal(first[0].weight, first[1].weight)


def lstsq(x, y, start, ridge=1e-3):
    """Ridge towards `start` by numpy, the penalty as rows of their own."""
    root = np.sqrt(ridge * np.mean(np.diag(x.T @ x)))
    rows = np.concatenate([x, root * np.eye(x.shape[1])])
    return np.linalg.lstsq(rows, np.concatenate([y, root * start]), rcond=None)[0]


def stacked(model, path, batches, side):
    real = [batch["attention_mask"].bool() for batch in batches]
    pairs = zip(batches, real, strict=True)
    return np.concatenate([outputs(model, path, b, side)[r].numpy() for b, r in pairs])


@pytest.mark.parametrize(
    ("family", "layer", "attention", "second", "before"),
    [
        (
            "bert",
            "bert.encoder.layer.{}",
            ("attention.output.dense", "attention.self"),
            ("output.dense", "intermediate"),
            1,
        ),
        (
            "llama",
            "model.layers.{}",
            ("self_attn.o_proj", "input_layernorm"),
            ("mlp.down_proj", "post_attention_layernorm"),
            0,
        ),
    ],
)
def test_the_stream_and_the_feed_forward_part_are_as_by_stored_activations(
    family, layer, attention, second, before
):
    """The oracle runs the whole models for each part, and adds up the stream itself."""
    model = build(family).double()
    keep = Mask.parse("4220" if family == "llama" else "3204", layout(model))
    small = remove(model, keep)
    oracle = copy.deepcopy(small)
    batches = data(model)
    for number in range(1 if family == "llama" else 0, 4):
        for part, (projection, residual) in enumerate((attention, second)):
            path, beside = (f"{layer.format(number)}.{name}" for name in (projection, residual))
            out = oracle.get_submodule(path)
            bias = out.bias is not None
            emptied = part == 0 and not keep.indices(layout(model).stacks[0].name, number)
            if emptied and not bias:
                continue
            y = stacked(model, path, batches, "out") + stacked(model, beside, batches, "in")
            y -= stacked(oracle, beside, batches, "in")
            x = y[:, :0] if emptied else stacked(oracle, path, batches, "in")
            if bias:
                x = np.concatenate([x, np.ones((len(x), 1))], 1)
            rows = [out.weight.T] + ([out.bias[None]] if bias else [])
            solved = lstsq(x, y, torch.cat(rows).detach().numpy())
            with torch.no_grad():
                out.weight.copy_(torch.from_numpy(solved[: out.weight.shape[1]].T.copy()))
                if bias:
                    out.bias.copy_(torch.from_numpy(solved[-1]))
    options = Recover(target="stream", feed_forward=True)
    fits = recover_layers(small, model, batches, options=options)
    assert [fit.part for fit in fits[:2]] == ["attention", "feed-forward"]
    for (name, mine), expected in zip(small.named_parameters(), oracle.parameters(), strict=True):
        assert (mine - expected).abs().max() < 1e-8 if mine.numel() else True, name


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_takes_the_stream_and_the_feed_forward_part(family):
    model = build(family)
    small = remove(model, mixed(layout(model)))
    batches = data(model)
    options = Recover(target="stream", feed_forward=True)
    before = [run(small, batch)[0] for batch in batches]
    fits = recover_layers(small, model, batches, options=options)
    assert all(fit.after <= fit.before for fit in fits)
    assert any(fit.part == "feed-forward" for fit in fits) or family in (
        *("gpt-neox", "falcon", "falcon-alibi"),  # attention and feed-forward side by side
    )
    full = [run(model, batch)[0] for batch in batches]

    def far(made):
        return sum(float((a - b).square().sum()) for a, b in zip(made, full, strict=True))

    assert far([run(small, batch)[0] for batch in batches]) < far(before)
    assert not any(m._forward_hooks for m in [*model.modules(), *small.modules()])


def test_scales_keep_the_direction_of_every_heads_rows():
    model = build("llama")
    small = remove(model, mixed(layout(model)))
    start = {name: value.clone() for name, value in small.named_parameters()}
    fits = recover_layers(small, model, data(model), options=Recover(scales=True))
    assert all(fit.after <= fit.before for fit in fits)
    site = layout(small)
    for name, value in small.named_parameters():
        if "o_proj" not in name or not value.numel():
            assert torch.equal(value, start[name])
            continue
        factors = (value / start[name]).unflatten(1, (-1, 8))
        assert torch.allclose(factors, factors[:1, :, :1].expand_as(factors), atol=1e-3), name
    assert {fit.unknowns for fit in fits} <= set(range(1, max(site.stacks[0].heads) + 1))


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_a_bias_where_the_projection_has_none_is_solved_saved_and_loaded(family, tmp_path):
    model = build(family)
    keep = mixed(layout(model))
    small = remove(model, keep)
    batches = data(model)
    fits = recover_layers(small, model, batches, options=Recover(bias=True))
    plain = recover_layers(remove(model, keep), model, batches)
    without = {(fit.stack, fit.layer): fit.unknowns for fit in plain}
    assert all(
        fit.unknowns == without.get((fit.stack, fit.layer), 0) + 1 and fit.after < fit.before
        for fit in fits
    )
    assert len(fits) > len(plain)  # layers without heads have something to solve
    biases = small.config.headcount["biases"]
    emptied = [part for part in small.config.headcount["sites"] if not part["kept"]]
    assert emptied
    assert {part["out"] for part in emptied} <= set(biases)
    assert all(bool(small.get_submodule(path).bias.any()) for path in biases)
    small.save_pretrained(tmp_path / "small")
    again = load(tmp_path / "small")
    assert again.config.headcount == small.config.headcount
    assert {f"{path}.bias" for path in biases} <= {name for name, _ in again.named_parameters()}
    for (name, one), two in zip(small.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two), name
    assert torch.allclose(run(small, batches[0])[0], run(again, batches[0])[0], atol=1e-6)
    # what is cut once more keeps them
    fewer = remove(small, Mask.full(layout(small)))
    assert fewer.config.headcount["biases"] == biases
    assert torch.allclose(run(small, batches[0])[0], run(fewer, batches[0])[0], atol=1e-5)
    # a bias moves the answers in the layer that has nothing else
    with torch.no_grad():
        small.get_submodule(emptied[0]["out"]).bias += 1
    assert not torch.allclose(run(small, batches[0])[0], run(again, batches[0])[0], atol=1e-3)


def test_a_bias_is_that_of_least_squares_from_zero():
    model = build("llama").double()
    small = remove(model, Mask.parse("4442", layout(model)))
    batches = data(model)
    path = "model.layers.3.self_attn.o_proj"
    x, y = stacked(small, path, batches, "in"), stacked(model, path, batches, "out")
    start = small.get_submodule(path).weight.T.detach().numpy()
    start = np.concatenate([start, np.zeros((1, len(start[0])))])
    solved = lstsq(np.concatenate([x, np.ones((len(x), 1))], 1), y, start)
    recover_layers(small, model, batches, options=Recover(bias=True))
    out = small.get_submodule(path)
    assert np.abs(out.weight.T.detach().numpy() - solved[:-1]).max() < 1e-8
    assert np.abs(out.bias.detach().numpy() - solved[-1]).max() < 1e-8


def ridged(x, y, start, on_path, rank, share=1e-3):
    """Least squares over stored rows with a ridge for the path's columns and one for the others;
    at a low rank by going back and forth between the two factors of the path."""
    ridge, squares = np.zeros(x.shape[1]), np.diag(x.T @ x)
    for part in (on_path, ~on_path):
        ridge[part] = share * squares[part].mean() if part.any() else 0
    root = np.sqrt(ridge)
    x = np.concatenate([x, np.diag(root)])
    y = np.concatenate([y, root[:, None] * start])
    w = np.linalg.lstsq(x, y, rcond=None)[0]
    if rank >= on_path.sum():
        return w
    kept = x[:, ~on_path]
    beside = x[:, on_path] - kept @ np.linalg.lstsq(kept, x[:, on_path], rcond=None)[0]
    left = y - kept @ np.linalg.lstsq(kept, y, rcond=None)[0]
    down = np.linalg.svd(w[on_path])[0][:, :rank]
    for _ in range(4000):
        up = np.linalg.lstsq(beside @ down, left, rcond=None)[0]
        down = np.linalg.lstsq(beside, left @ np.linalg.pinv(up), rcond=None)[0]
    w[on_path] = down @ np.linalg.lstsq(beside @ down, left, rcond=None)[0]
    w[~on_path] = np.linalg.lstsq(kept, y - x[:, on_path] @ w[on_path], rcond=None)[0]
    return w


@pytest.mark.parametrize("target", ["output", "stream"])
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_linear_path_is_that_of_least_squares_over_stored_activations(family, target):
    """The oracle keeps what goes into each module, and gives the model its own path to go on."""
    model = build(family).double()
    keep = Mask.parse("4220" if family == "llama" else "3204", layout(model))
    small = remove(model, keep)
    batches = data(model)
    options = Recover(path_rank=2, linear=True, target=target)
    oracle, sites = remove(model, keep), layout(model)
    names = {
        "bert": ("bert.encoder.layer.{}.attention.", "self", "output.dense", "self"),
        "llama": ("model.layers.{}.", "self_attn", "self_attn.o_proj", "input_layernorm"),
    }
    base, *parts = names[family]
    for number in range(1 if family == "llama" else 0, 4):
        attention, projection, stream = (base.format(number) + part for part in parts)
        # what the module reads: of BERT the stream, of Llama its norm
        reads = attention if family == "bert" else stream
        side = "in" if family == "bert" else "out"
        emptied = not keep.indices(sites.stacks[0].name, number)
        out = oracle.get_submodule(projection)
        y = stacked(model, projection, batches, "out")
        if target == "stream":
            y = y + stacked(model, stream, batches, "in") - stacked(oracle, stream, batches, "in")
        x = stacked(oracle, reads, batches, side)
        z = x[:, :0] if emptied else stacked(oracle, projection, batches, "in")
        ones = np.ones((len(x), 1 if out.bias is not None else 0))
        start = np.zeros((z.shape[1] + 32 + ones.shape[1], 32))
        start[: z.shape[1]] = out.weight.T.detach().numpy()[: z.shape[1]]
        if ones.shape[1]:
            start[-1] = out.bias.detach().numpy()
        regressors = np.concatenate([z, x, ones], 1)
        at = np.arange(len(start))
        on_path = (at >= z.shape[1]) & (at < z.shape[1] + 32)
        rank = 32 if emptied else 2
        solved = ridged(regressors, y, start, on_path, rank)
        entry = {"path": attention, "out": projection, "width": 32, "rank": rank}
        set_paths(oracle, [*oracle.config.headcount.get("linear", []), entry])
        with torch.no_grad():
            out.weight.copy_(torch.from_numpy(solved[: z.shape[1]].T.copy()))
            if ones.shape[1]:
                out.bias.copy_(torch.from_numpy(solved[-1]))
            path = oracle.get_submodule(attention).linear_path
            write_path(path, torch.from_numpy(solved[on_path]))
    fits = recover_layers(small, model, batches, options=options)
    assert small.config.headcount["linear"] == oracle.config.headcount["linear"]
    assert all(fit.after <= fit.before for fit in fits)
    for batch in batches:
        assert torch.allclose(run(small, batch)[0], run(oracle, batch)[0], atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_takes_a_linear_path_or_goes_without(family, tmp_path):
    model = build(family)
    small, plain = (remove(model, mixed(layout(model))) for _ in range(2))
    batches = data(model)
    fits = recover_layers(small, model, batches, options=Recover(path_rank=4, linear=True))
    without = recover_layers(plain, model, batches)
    assert all(fit.after <= fit.before for fit in fits)
    linear = small.config.headcount["linear"]
    assert len(linear) == len(fits) >= len(without)
    # the layers above stand on others then; one without heads has nothing to solve without a path
    if (fits[0].stack, fits[0].layer) == (without[0].stack, without[0].layer):
        assert fits[0].after <= without[0].after + 1e-9
    small.save_pretrained(tmp_path / "small")
    again = load(tmp_path / "small")
    assert torch.allclose(run(small, batches[0])[0], run(again, batches[0])[0], atol=1e-6)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_path_that_is_there_is_solved_again_or_left_to_the_factors():
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    batches = data(model)
    recover_layers(small, model, batches, options=Recover(path_rank=4))
    linear = small.config.headcount["linear"]
    far = [run(small, batch)[0] - run(model, batch)[0] for batch in batches]
    again = recover_layers(small, model, batches)
    assert small.config.headcount["linear"] == linear
    # it begins where the last one ended, and its own ridge lets it go on
    assert all(fit.after <= fit.before < 0.999 for fit in again)
    nearer = [run(small, batch)[0] - run(model, batch)[0] for batch in batches]
    assert sum(d.square().sum() for d in nearer) < 1.05 * sum(d.square().sum() for d in far)
    paths = {n: p.clone() for n, p in small.named_parameters() if "linear_path" in n}
    recover_layers(small, model, batches, options=Recover(scales=True))
    assert all(torch.equal(small.get_parameter(n), p) for n, p in paths.items())
    assert len(paths) == 2 * len(linear)


def test_a_rank_that_costs_more_than_one_matrix_is_one():
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    recover_layers(small, model, data(model), options=Recover(path_rank=16))
    assert {entry["rank"] for entry in small.config.headcount["linear"]} == {32}
    assert small.bert.encoder.layer[1].attention.self.linear_path.down is None


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_weights_in_bfloat16_stay_so_and_are_solved_in_float64(family):
    """As good, but for rounding, as the solution over what the same weights give in float32."""
    model = build(family).to(torch.bfloat16)
    small = remove(model, mixed(layout(model)))
    batches = data(model)
    fits = recover_layers(small, model, batches, options=Recover(path_rank=4))
    assert {parameter.dtype for parameter in small.parameters()} == {torch.bfloat16}
    wide = copy.deepcopy(model).float()
    other = remove(wide, mixed(layout(wide)))
    expected = recover_layers(other, wide, batches, options=Recover(path_rank=4))
    for mine, theirs in zip(fits, expected, strict=True):
        assert mine.after == pytest.approx(theirs.after, abs=0.02)
