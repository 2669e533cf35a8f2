from __future__ import annotations

import pytest
import torch
from transformers import ResNetConfig, ResNetModel

from headcount.errors import UnsupportedError, UsageError
from headcount.heads import Head, Layout, Mask
from headcount.models import cut
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from models.zoo import build, masks


def test_the_original_is_untouched():
    model = build("bert")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    remove(model, Mask.none(layout(model)))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not hasattr(model.config, "headcount")


def test_it_is_smaller_by_exactly_the_heads_weights():
    model = build("bert")
    small = remove(model, Mask.full(layout(model)).drop([Head("encoder", 0, 1)]))
    lost = model.num_parameters() - small.num_parameters()
    assert lost == 4 * 8 * 32 + 3 * 8  # q, k, v rows with their biases, and output columns


def test_a_whole_stack_can_go():
    model = build("bart")
    full = layout(model)
    mask = Mask.full(full).drop(head for head in full if head.stack == "cross")
    assert remove(model, mask)
    assert layout(remove(model, mask))["cross"].heads == (0, 0, 0, 0)


def test_same_number_in_every_group_is_allowed_and_part_of_one_is_not():
    model = build("llama")
    full = layout(model)
    even = Mask(full, frozenset(h for h in full if h.index % 2))
    assert layout(remove(model, even))["decoder"].groups == (2, 2, 2, 2)
    with pytest.raises(UsageError, match=r"decoder layer 1 would keep 12 heads in its 2 key-value"):
        remove(model, Mask.full(full).drop([Head("decoder", 1, 0)]))


def test_refuses_a_mask_for_another_model():
    with pytest.raises(UsageError, match="another layout"):
        remove(build("bert"), Mask.full(Layout.of(encoder=[4, 4])))


def test_refuses_heads_out_of_range():
    with pytest.raises(UsageError, match=r"encoder\.0\.9"):
        Mask.full(layout(build("bert"))).drop([Head("encoder", 0, 9)])


def test_refuses_a_model_without_attention():
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic")
    with pytest.raises(UnsupportedError, match="finds no attention heads in ResNetModel"):
        layout(ResNetModel(config))


def test_refuses_weights_that_are_not_numbers():
    model = build("bert")
    with torch.no_grad():
        model.bert.encoder.layer[1].attention.self.value.weight[3, 4] = float("nan")
    with pytest.raises(
        UsageError, match=r"bert\.encoder\.layer\.1\.attention\.self\.value\.weight"
    ):
        remove(model, Mask.full(layout(model)).drop([Head("encoder", 0, 1)]))


def test_refuses_heads_that_the_probe_does_not_reach():
    model = build("bert-decoder-cross")
    ids = {"input_ids": torch.tensor([[5, 6, 7]])}
    with pytest.raises(UnsupportedError, match=r"does not reach .*crossattention"):
        remove(model, Mask.none(layout(model)), probe=ids)


class NormedOverAllHeads(torch.nn.Linear):
    """A query projection as OLMo 2 has it: no head can go without changing the others."""

    def forward(self, x):
        return torch.nn.functional.normalize(super().forward(x), dim=-1) * 5


def test_refuses_an_unknown_layout_of_projections():
    model = build("bert")
    model.bert.encoder.layer[0].attention.self.query = NormedOverAllHeads(32, 32)
    with pytest.raises(UnsupportedError, match=r"Bert.*differ from the masked model's"):
        remove(model, Mask.full(layout(model)).drop([Head("encoder", 0, 1)]))


def test_head_mask_is_refused_not_ignored():
    model = build("bert")
    small = remove(model, masks(layout(model))["uneven"])
    with pytest.raises(ValueError, match="head_mask has no effect in transformers 5"):
        small(**probe_inputs(small), head_mask=torch.ones(4, 4))


def test_output_attentions_under_sdpa_is_refused_not_empty():
    model = build("bert", attention="sdpa")
    small = remove(model, masks(layout(model))["uneven"])
    with pytest.raises(ValueError, match="output_attentions returns nothing under sdpa"):
        small(**probe_inputs(small), output_attentions=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_number_types(dtype):
    model = build("bert").to(dtype)
    small = remove(model, masks(layout(model))["uneven"])
    assert small.dtype == dtype


@pytest.mark.parametrize("family", ["bert", "t5", "mpnet"])
def test_compiles_in_one_graph(family):
    model = build(family)
    small = remove(model, masks(layout(model))["alternate layers emptied"])
    compiled = torch.compile(small, backend="aot_eager", fullgraph=True)
    inputs = probe_inputs(small)
    assert relative_difference(run(small, inputs), run(compiled, inputs)) < 1e-5


def test_gates_and_further_cuts_work_on_a_removed_model():
    model = build("bert")
    small = remove(model, masks(layout(model))["uneven"])
    mask = Mask.full(layout(small)).drop([Head("encoder", 1, 3), Head("encoder", 0, 0)])
    smaller = remove(small, mask)
    with gate(small, mask):
        expected = run(small, probe_inputs(small))
    assert relative_difference(expected, run(smaller, probe_inputs(small))) < 1e-5
    kept = {site["layer"]: site["kept"] for site in smaller.config.headcount["sites"]}
    assert kept[0] == [3], "heads are named by their place in the first model"


def test_a_pipeline_and_trainer_see_the_arguments_of_forward():
    import inspect

    model = build("bert")
    small = remove(model, masks(layout(model))["uneven"])
    assert inspect.signature(small.forward) == inspect.signature(model.forward)
    assert type(small).__name__ == type(model).__name__
    assert isinstance(small, type(model))


@pytest.mark.parametrize("kind", ["q", "k", "kv", "qkv", "grouped"])
def test_rows_of_every_kind_by_a_loop(kind):
    heads, groups, width = 6, 3, 2
    size = heads // groups
    blocks = {
        "q": [("q", h) for h in range(heads)],
        "k": [("k", g) for g in range(groups)],
        "kv": [(c, g) for c in "kv" for g in range(groups)],
        "qkv": [("q", h) for h in range(heads)] + [(c, g) for c in "kv" for g in range(groups)],
        "grouped": [
            item
            for g in range(groups)
            for item in [("q", g * size + i) for i in range(size)] + [("k", g), ("v", g)]
        ],
    }[kind]
    for kept in ([0, 1, 4, 5], [1, 3], [0, 2, 4], []):
        wanted = {("q", h) for h in kept} | {(c, h // size) for h in kept for c in "kv"}
        expected = [
            i * width + j for i, block in enumerate(blocks) if block in wanted for j in range(width)
        ]
        assert cut.rows_of(kind, kept, heads, groups, width) == expected
