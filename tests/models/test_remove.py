from __future__ import annotations

import pytest
import torch
from transformers import ResNetConfig, ResNetModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Head, Layout, Mask
from headcount.models import cut
from headcount.models.cached import run_cached
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.load import load
from headcount.models.probe import find_probe, probe_inputs, relative_difference, run
from headcount.models.remove import make_own, remove, remove_sharing
from headcount.models.sites import find_sites
from headcount.models.verify import RoundingTest
from models.zoo import build, masks, shallow


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
    with pytest.raises(
        UsageError, match=r"decoder layer 1 would keep 1 and 2 heads of its 2 key-value"
    ):
        remove(model, Mask.full(full).drop([Head("decoder", 1, 0)]))


def test_a_mask_in_any_form_removes_the_same_heads():
    model = build("bert")
    rows = [[1, 0, 1, 0], *([[1] * 4] * (len(layout(model)["encoder"].heads) - 1))]
    wanted = remove(model, Mask.full(layout(model)).drop([("encoder", 0, 1), ("encoder", 0, 3)]))
    for given in ({0: [1, 3]}, rows, torch.tensor(rows), torch.tensor(rows).bool()):
        small = remove(model, given)
        assert small.config.headcount == wanted.config.headcount
        inputs = probe_inputs(model)
        assert relative_difference(run(wanted, inputs), run(small, inputs)) == 0
    with pytest.raises(UsageError, match="does not say whether they stay or go"):
        remove(model, [("encoder", 0, 1)])
    with pytest.raises(UsageError, match=r"may be an old or a new number"):
        remove(wanted, {0: [1]})


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


class NormedOverAllHeads(torch.nn.Linear):
    """A query projection as OLMo 2 has it: no head can go without changing the others."""

    def forward(self, x):
        return torch.nn.functional.normalize(super().forward(x), dim=-1) * 5


class CentredOutput(torch.nn.Linear):
    """An output projection that knows how many heads there are: nothing narrower is the same."""

    def forward(self, x):
        return super().forward(x - x.mean(-1, keepdim=True))


def test_queries_normed_over_all_heads_stay():
    model = build("bert")
    attention = model.bert.encoder.layer[0].attention.self
    attention.query = NormedOverAllHeads(32, 32)
    mask = Mask.full(layout(model)).drop([Head("encoder", 0, 1)])
    small = remove(model, mask)
    own = small.bert.encoder.layer[0].attention.self
    assert own.query.weight.shape == (32, 32)
    assert own.value.weight.shape == (24, 32)


def test_refuses_an_output_that_depends_on_the_number_of_heads():
    model = build("bert")
    attention = model.bert.encoder.layer[0].attention
    attention.output.dense = CentredOutput(32, 32)
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
    model = build(family, **shallow(family, 2))  # one emptied, one whole
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


def spared(model, mask):
    """The mask with all heads of vision towers, which tokens alone do not reach."""
    towers = {(s.stack, s.layer) for s in find_sites(model) if "vis" in s.path}
    return mask.keep(head for head in mask.layout if head[:2] in towers)


EMPTIED = ["fsmt", "t5gemma2", "cosmos3", "t5", "mt5", "whisper", "llama"]
# T5Gemma 2 itself raises with a static cache
CACHED = [
    (f, static) for f in EMPTIED for static in (False, True) if (f, static) != (EMPTIED[1], 1)
]


@pytest.mark.parametrize(("family", "static"), CACHED)
def test_a_cache_works_where_the_first_decoder_layer_is_empty(family, static):
    model = build(family)
    mask = spared(model, masks(layout(model))["alternate layers emptied"])
    small = remove(model, mask)
    inputs = find_probe(model, length=9, seed=5)
    with gate(model, mask):
        expected = run_cached(model, inputs, static=static)
    assert relative_difference(expected, run_cached(small, inputs, static=static)) < 1e-5


def test_a_refusal_says_what_failed_and_what_can_be_done():
    model = build("bert")
    model.bert.encoder.layer[0].attention.output.dense = CentredOutput(32, 32)
    with pytest.raises(UnsupportedError) as told:
        remove(model, Mask.full(layout(model)).drop([("encoder", 0, 0)]))
    assert "all heads of a layer can be removed from it (the method 'layers'), and hc.gate" in str(
        told.value
    )


def test_a_model_that_asserts_its_width_keeps_it():
    model = build("fsmt")
    mask = Mask.full(layout(model)).drop([("encoder", 0, 0), ("cross", 1, 2)])
    small = remove(model, mask)
    assert {site["narrow"] for site in small.config.headcount["sites"]} == {"all"}


def test_each_kind_of_layer_is_emptied_in_its_own_way():
    """Cosmos 3's vision tower returns a tensor alone, its decoder keeps a cache."""
    model = build("cosmos3")
    ids = torch.tensor([[7, model.config.image_token_id, 9, 11, 13, 8, 5]])
    image = torch.randn(4, 3 * 8 * 8, generator=torch.Generator().manual_seed(0))
    probe = {
        "input_ids": ids,
        "pixel_values": image,
        "image_grid_thw": torch.tensor([[1, 2, 2]]),
        "mm_token_type_ids": (ids == model.config.image_token_id).long(),
    }
    mask = masks(layout(model))["alternate layers emptied"]
    small = remove(model, mask, probe=probe)
    with gate(model, mask):
        expected = run_cached(model, probe)
    assert relative_difference(expected, run_cached(small, probe)) < 1e-5


def test_a_cut_that_is_wrong_through_a_cache_is_refused(monkeypatch):
    model = build("llama")
    # a layer without heads that forgets to tell the cache what it has seen
    monkeypatch.setattr(cut, "remember", lambda module, call, hidden: (0, hidden.shape[1]))
    with pytest.raises(UnsupportedError, match="with a key-value cache"):
        remove(model, masks(layout(model))["alternate layers emptied"])


def test_whisper_returns_its_cache_with_a_cross_layer_empty():
    model = build("whisper")
    full = layout(model)
    small = remove(model, Mask.full(full).drop(h for h in full if h[:2] == ("cross", 0)))
    features = probe_inputs(model)["input_features"]
    options = {"max_new_tokens": 3, "return_dict_in_generate": True, "eos_token_id": None}
    assert small.generate(input_features=features, **options)


def test_an_emptied_layer_is_compared_where_the_answer_hides_it(monkeypatch):
    """xcodec rounds its answer to codes, in which no layer of its encoder shows."""
    model = build("xcodec")
    probe = {"input_values": torch.randn(2, 1, 4000, generator=torch.Generator().manual_seed(0))}
    full = layout(model)
    mask = Mask.full(full).drop(head for head in full if head.layer == 0)
    assert layout(remove(model, mask, probe=probe))["encoder"].heads == (0, 2)
    right = cut.cut_model

    def wrong(small, instructions):
        right(small, instructions)
        out = small.get_submodule(instructions[0]["out"])
        out.bias = torch.nn.Parameter(out.bias + 1)

    monkeypatch.setattr(cut, "cut_model", wrong)
    with pytest.raises(UnsupportedError, match="differ from the masked model's"):
        remove(model, mask, probe=probe)


def test_i_bert_whose_projections_return_two_things():
    model = build("i-bert")
    mask = masks(layout(model))["alternate layers emptied"]
    small = remove(model, mask)
    inputs = find_probe(model, length=9, seed=5)
    with gate(model, mask):
        expected = run(model, inputs)
    assert relative_difference(expected, run(small, inputs)) < 1e-5


BIASED = ["swin", "swinv2", "swin2sr", "donut-swin", "beit-relative", "beit-shared"]


@pytest.mark.parametrize("pattern", ["uneven", "alternate layers emptied", "all emptied"])
@pytest.mark.parametrize("family", [*BIASED, "data2vec-relative"])
def test_position_biases_of_a_child_are_cut_with_the_heads(tmp_path, family, pattern):
    """Swin, BEiT: the bias of two patches for every head is a parameter of a module below."""
    model = build(family)
    mask = masks(layout(model))[pattern]
    small = remove(model, mask)
    image = {"pixel_values": torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(5))}
    with gate(model, mask):
        expected = run(model, image)
    assert relative_difference(expected, run(small, image)) < 1e-5
    small.save_pretrained(tmp_path)
    again = load(tmp_path, head=None)
    assert relative_difference(run(small, image), run(again, image)) == 0
    left = layout(again)
    if len(left):
        further = Mask.full(left).drop([next(iter(left))])
        assert len(layout(remove(again, further))) == len(left) - 1


def test_a_probe_that_does_not_run_is_told_in_one_sentence():
    model = build("bert")
    with pytest.raises(UsageError, match=r"does not run on the probe: .*input_ids"):
        remove(model, Mask.none(layout(model)), probe={"wrong_name": torch.ones(1)})


def test_attempts_share_the_weights_and_the_result_does_not(monkeypatch):
    model = build("bert")
    own = {parameter.data_ptr() for parameter in model.parameters()}
    judged = []

    class Watching(RoundingTest):
        def refusal(self, small):
            judged.append({parameter.data_ptr() for parameter in small.parameters()})
            return super().refusal(small)

    monkeypatch.setattr("headcount.models.remove.RoundingTest", Watching)
    small = remove(model, masks(layout(model))["uneven"])
    assert len(judged[0] & own) > len(own) / 2
    assert not {parameter.data_ptr() for parameter in small.parameters()} & own


def test_what_shares_weights_gets_its_own_before_it_changes():
    model = build("bert")
    weights = {name: value.clone() for name, value in model.named_parameters()}
    small = remove_sharing(model, masks(layout(model))["uneven"])
    own = {id(parameter) for parameter in model.parameters()}
    assert len(own & {id(parameter) for parameter in small.parameters()}) > len(own) / 2
    make_own(small, model)
    assert not own & {id(parameter) for parameter in small.parameters()}
    with torch.no_grad():
        for parameter in small.parameters():
            parameter.add_(1)
    assert all(torch.equal(value, weights[name]) for name, value in model.named_parameters())
