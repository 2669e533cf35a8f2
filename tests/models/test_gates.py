from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.gates import gate, open_gates
from headcount.models.probe import probe_inputs, relative_difference, run
from launching import in_two_processes
from models.zoo import build, masks, shallow


@pytest.fixture
def bert():
    return build("bert")


def logits(model, inputs):
    return model(**inputs).logits


def test_open_gates_change_nothing(bert):
    inputs = probe_inputs(bert)
    with gate(bert, open_gates(layout(bert))):
        gated = run(bert, inputs)
    assert relative_difference(run(bert, inputs), gated) == 0


def test_closing_a_gate_zeroes_that_heads_slice_and_no_other(bert):
    seen = []
    out = bert.bert.encoder.layer[1].attention.output.dense
    with gate(bert, Mask.full(layout(bert)).drop([("encoder", 1, 2)])):
        handle = out.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        run(bert, probe_inputs(bert))
        handle.remove()
    by_head = seen[0].unflatten(-1, (4, 8)).abs().sum((0, 1, 3))
    assert by_head[2] == 0
    assert (by_head[[0, 1, 3]] > 0).all()


def test_gates_per_example_give_every_examples_gradient_in_one_pass(bert):
    inputs = probe_inputs(bert, batch=3)
    labels = torch.tensor([0, 1, 0])
    gates = open_gates(layout(bert), batch=3)
    with gate(bert, gates):
        loss = torch.nn.functional.cross_entropy(logits(bert, inputs), labels, reduction="sum")
        loss.backward()
    for example in range(3):
        alone = open_gates(layout(bert))
        one = {name: value[example : example + 1] for name, value in inputs.items()}
        with gate(bert, alone):
            torch.nn.functional.cross_entropy(
                logits(bert, one), labels[example : example + 1]
            ).backward()
        for batched, single in zip(gates["encoder"], alone["encoder"], strict=True):
            torch.testing.assert_close(batched.grad[example], single.grad, rtol=1e-4, atol=1e-6)


def test_a_shared_layers_gate_sums_over_its_uses():
    albert = build("albert", num_hidden_layers=3, num_hidden_groups=1)
    inputs = probe_inputs(albert)
    gates = open_gates(layout(albert))
    with gate(albert, gates):
        logits(albert, inputs).square().sum().backward()
    by_use = torch.zeros(3, 4)
    for use in range(3):
        calls = []
        leaf = torch.ones(4, requires_grad=True)

        def multiply(_, args, use=use, calls=calls, leaf=leaf):
            calls.append(1)
            if len(calls) - 1 == use:
                return (args[0] * leaf.repeat_interleave(8),)
            return None

        dense = albert.albert.encoder.albert_layer_groups[0].albert_layers[0].attention.dense
        handle = dense.register_forward_pre_hook(multiply)
        logits(albert, inputs).square().sum().backward()
        handle.remove()
        by_use[use] = leaf.grad
    torch.testing.assert_close(gates["encoder"][0].grad, by_use.sum(0), rtol=1e-4, atol=1e-4)


def test_dropout_stays_the_same_with_the_same_seed(bert):
    bert.train()
    inputs = probe_inputs(bert)

    def draw(gates):
        torch.manual_seed(3)
        with gate(bert, gates):
            return logits(bert, inputs)

    torch.manual_seed(3)
    plain = logits(bert, inputs)
    torch.testing.assert_close(draw(open_gates(layout(bert))), plain)


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(bert, reentrant):
    inputs = probe_inputs(bert)

    def gradients():
        gates = open_gates(layout(bert))
        bert.zero_grad()
        with gate(bert, gates):
            logits(bert, inputs).square().sum().backward()
        return [g.grad for g in gates["encoder"]]

    bert.train()
    for module in bert.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for layer in bert.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.0
    plain = gradients()
    bert.gradient_checkpointing_enable({"use_reentrant": reentrant})
    for a, b in zip(plain, gradients(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_compiles_in_one_graph_and_is_noticed_after_compiling(family):
    model = build(family, **shallow(family, 2))
    inputs = probe_inputs(model)
    mask = masks(layout(model))["uneven"]
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    open_ = run(compiled, inputs)
    with gate(compiled, mask):
        gated = run(compiled, inputs)
    with gate(model, mask):
        expected = run(model, inputs)
    assert relative_difference(expected, gated) < 1e-5
    assert relative_difference(open_, gated) > 1e-3
    assert relative_difference(open_, run(compiled, inputs)) < 1e-5, "the gate outlived its with"


def test_works_under_autocast(bert):
    gates = open_gates(layout(bert))
    with torch.autocast("cpu", dtype=torch.bfloat16), gate(bert, gates):
        out = logits(bert, probe_inputs(bert))
        out.float().square().sum().backward()
    assert all(
        torch.isfinite(g.grad).all() and g.grad.dtype == torch.float32 for g in gates["encoder"]
    )


def test_nested_gates_multiply(bert):
    inputs = probe_inputs(bert)
    half = {"encoder": [torch.full((4,), 0.5)] * 4}
    with gate(bert, half), gate(bert, half):
        twice = run(bert, inputs)
    with gate(bert, {"encoder": torch.full((4, 4), 0.25)}):
        assert relative_difference(run(bert, inputs), twice) < 1e-6


def test_hooks_go_even_when_the_inside_fails(bert):
    with pytest.raises(ZeroDivisionError), gate(bert, Mask.none(layout(bert))):
        raise ZeroDivisionError
    assert not any(module._forward_pre_hooks for module in bert.modules())


def test_attention_that_does_not_call_its_output_projection_is_refused_by_name():
    wavlm = build("wavlm")
    mask = Mask.full(layout(wavlm)).drop([("encoder", 1, 2)])
    inputs = probe_inputs(wavlm)
    with (
        pytest.raises(
            UnsupportedError,
            match=r"Gates do nothing in WavLMModel: encoder.layers.1.attention runs without "
            r"calling its output projection encoder.layers.1.attention.out_proj",
        ),
        gate(wavlm, mask),
    ):
        run(wavlm, inputs)
    run(wavlm, inputs)


def test_an_output_projection_beside_the_attention_that_is_not_called_is_refused(bert, monkeypatch):
    dense = bert.bert.encoder.layer[2].attention.output.dense
    monkeypatch.setattr(
        type(bert.bert.encoder.layer[2].attention.output),
        "forward",
        lambda self, hidden, residual: (
            torch.nn.functional.linear(hidden, self.dense.weight, self.dense.bias) + residual
            if self.dense is dense
            else self.dense(hidden) + residual
        ),
    )
    with (
        pytest.raises(UnsupportedError, match=r"encoder.layer.2.attention.self runs without"),
        gate(bert, open_gates(layout(bert))),
    ):
        run(bert, probe_inputs(bert))


def test_attention_that_an_input_does_not_reach_is_no_mistake():
    gpt = build("gpt2-cross")
    inputs = {"input_ids": torch.tensor([[5, 7, 9]])}
    with gate(gpt, Mask.full(layout(gpt)).drop([("cross", 0, 0)])):
        masked = run(gpt, inputs)
    assert relative_difference(run(gpt, inputs), masked) == 0


def closed_first(bert):
    heads = layout(bert)
    return Mask.full(heads).drop([("encoder", 0, 1), ("encoder", 0, 3)])


@pytest.mark.parametrize("form", ["by layer", "rows", "tensor", "tensors", "json"])
def test_a_mask_in_any_form_closes_the_same_heads(bert, form):
    inputs, mask = probe_inputs(bert), closed_first(bert)
    rows = [[1, 0, 1, 0], *([[1] * 4] * (len(layout(bert)["encoder"].heads) - 1))]
    given = {
        "by layer": {0: [1, 3]},
        "rows": rows,
        "tensor": torch.tensor(rows),
        "tensors": list(torch.tensor(rows).float()),
        "json": mask.to_json(),
    }[form]
    with gate(bert, mask):
        wanted = run(bert, inputs)
    with gate(bert, given):
        assert relative_difference(wanted, run(bert, inputs)) == 0
    assert relative_difference(wanted, run(bert, inputs)) > 0


def test_a_head_mask_tensor_keeps_its_numbers_and_its_gradient(bert):
    heads = torch.full((len(layout(bert)["encoder"].heads), 4), 0.5, requires_grad=True)
    with gate(bert, heads):
        logits(bert, probe_inputs(bert)).sum().backward()
    assert heads.grad is not None
    assert (heads.grad != 0).any()
    for wrong, says in [
        (torch.ones(4), "1 axis"),
        (heads[:1], "1 gates for the encoder"),
        ({"encoder": torch.tensor(1.0)}, "0 axes"),
        ({0: torch.tensor([9])}, "9 is not a head of encoder layer 0"),
    ]:
        with pytest.raises(UsageError, match=says), gate(bert, wrong):
            pass


def test_refuses_what_does_not_fit(bert):
    with (
        pytest.raises(UsageError, match="another layout"),
        gate(bert, Mask.full(layout(build("gpt2")))),
    ):
        pass
    with pytest.raises(UsageError, match="3 gates for the encoder, which has 4 layers"):
        gate(bert, {"encoder": [torch.ones(4)] * 3}).__enter__()
    with pytest.raises(UsageError, match=r"shape \(5,\); it is \(4,\) or \(batch, 4\)"):
        gate(bert, {"encoder": [torch.ones(5)] * 4}).__enter__()
    with (
        pytest.raises(UsageError, match="Gates for 3 examples meet a batch of 2"),
        gate(bert, open_gates(layout(bert), batch=3)),
    ):
        bert(**probe_inputs(bert, batch=2))


def test_gradients_are_averaged_over_processes(bert, tmp_path):
    in_two_processes(Path(__file__).with_name("averaged.py"), tmp_path)
    gates = open_gates(layout(bert))
    with gate(bert, gates):
        bert(**probe_inputs(bert, batch=4)).logits.square().mean().backward()
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    for alone, a, b in zip(gates["encoder"], first, second, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
        torch.testing.assert_close(a, alone.grad, rtol=1e-4, atol=1e-6)
