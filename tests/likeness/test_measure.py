from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

import headcount as hc
from headcount.base.errors import UnsupportedError, UsageError
from headcount.base.files import locked_file
from headcount.likeness import inputs as inputs_room
from headcount.likeness.distances import DISTANCES, distances
from headcount.models.capture import collect
from headcount.models.remove import remove
from headcount.tasks.encoding import EncodedRows
from models.zoo import build

NAMES = ["cos", "js", "dcor"]


def rows_of(lengths, *, seed=0, labels=None):
    rng = np.random.default_rng(seed)
    ids = [rng.integers(5, 61, length).tolist() for length in lengths]
    return EncodedRows({"input_ids": ids}, labels, {"input_ids": 0})


def nine_words():
    vocabulary = {word: number for number, word in enumerate("?abcdefgh")}
    inside = Tokenizer(WordLevel(vocabulary, unk_token="?"))
    return PreTrainedTokenizerFast(tokenizer_object=inside)


def by_hand(model, rows, stack="encoder", names=NAMES):
    """Every input alone, unpadded: (input, distance, head, head)."""
    found = []
    for row in range(len(rows)):
        kept = collect(model, {"input_ids": torch.tensor([rows[row]["input_ids"]])})
        attention = torch.cat([kept[place][0] for place in sorted(kept) if place.stack == stack])
        found.append([distances(attention, names)[name] for name in names])
    return np.array(found, np.float64)


@pytest.mark.parametrize("family", ["bert", "gpt2", "modernbert", "deberta-v2", "bloom"])
def test_mean_and_error_are_those_of_inputs_without_padding(family):
    model = build(family)
    rows = rows_of([3, 17, 9, 9, 30, 5, 12])
    stack = "decoder" if family in ("gpt2", "bloom") else "encoder"
    found = hc.redundancy(model, rows, NAMES)
    wanted = by_hand(model, rows, stack)
    assert found.count == 7
    assert found.stacks == (stack,)
    for place, name in enumerate(NAMES):
        np.testing.assert_allclose(found[name].values, wanted[:, place].mean(0), atol=2e-5)
        error = wanted[:, place].std(0, ddof=1) / 7**0.5
        np.testing.assert_allclose(found[name].stderr, error, atol=2e-5)


@pytest.mark.parametrize("left", [False, True])
def test_padding_in_ready_batches_is_cut_away(left):
    model = build("bert")
    rows = rows_of([4, 11, 7])
    batch = replace(rows, left=left).collate([rows[row] for row in range(3)])
    if left:  # BERT counts its positions from the first token, padding or not
        ends = batch["attention_mask"].cumsum(1) - 1
        batch["position_ids"] = ends.clamp_min(0)
    found = hc.redundancy(model, [batch], NAMES)
    wanted = by_hand(model, rows).mean(0)
    for place, name in enumerate(NAMES):
        np.testing.assert_allclose(found[name].values, wanted[place], atol=2e-5)


def test_without_a_mask_nothing_is_cut():
    model = build("bert")
    ids = torch.tensor([[5, 6, 0, 0]])
    attention = torch.cat(list(collect(model, {"input_ids": ids}).values()), 1)[0]
    found = hc.redundancy(model, {"input_ids": ids}, "js")
    np.testing.assert_allclose(found["js"].values, distances(attention, "js")["js"], atol=1e-6)
    assert np.isnan(found["js"].stderr).all()


def test_every_stack_of_an_encoder_decoder_has_its_matrix():
    # corr sees columns of padding, which js and cos do not
    model = build("bart")
    rows = rows_of([9, 5, 12], labels=[[7, 8, 9, 2], [9, 2], [11, 12, 13, 14, 15, 2]])
    found = hc.redundancy(model, rows, "corr")
    assert found.stacks == ("encoder", "cross", "decoder")
    wanted = {stack: [] for stack in found.stacks}
    for row in range(3):
        labels = torch.tensor([rows.labels[row]])
        inputs = {"input_ids": torch.tensor([rows[row]["input_ids"]])}
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels=labels)
        kept = collect(model, inputs)
        for stack in wanted:
            layers = [kept[place][0] for place in sorted(kept) if place.stack == stack]
            wanted[stack].append(distances(torch.cat(layers), "corr")["corr"])
    for stack, each in wanted.items():
        np.testing.assert_allclose(found["corr", stack].values, np.mean(each, axis=0), atol=2e-5)
    # the same rows as a batch with labels, from which the model makes the decoder's inputs
    batch = rows.collate([rows[row] for row in range(3)])
    again = hc.redundancy(model, [batch], "corr")
    for stack in found.stacks:
        np.testing.assert_allclose(
            again["corr", stack].values, found["corr", stack].values, atol=2e-5
        )


def test_a_decoder_without_targets_reads_the_text_again():
    model = build("t5")
    found = hc.redundancy(model, rows_of([6, 9]), "js")
    assert found.stacks == ("encoder", "cross", "decoder")


def test_shared_layers_count_with_the_mean_over_their_runs():
    model = build("albert")
    rows = rows_of([9])
    kept = collect(model, {"input_ids": torch.tensor([rows[0]["input_ids"]])})
    runs = [
        torch.cat([kept[place][0] for place in sorted(kept) if place.use == use])
        for use in range(2)
    ]
    wanted = np.mean([distances(run, "js")["js"] for run in runs], axis=0)
    found = hc.redundancy(model, rows, "js")
    np.testing.assert_allclose(found["js"].values, wanted, atol=1e-5)


def test_emptied_layers_have_no_heads_to_compare():
    model = build("bert")
    full = hc.layout(model)
    small = remove(model, hc.Mask.parse("4031", full))
    found = hc.redundancy(small, rows_of([9, 5]), "js")
    assert found["js"].values.shape == (8, 8)


def test_texts_and_pairs(tokenizer):
    model = build("bert", vocab_size=len(tokenizer))
    texts = ["the small king", "a queen near the baker with a king"]
    found = hc.redundancy(model, texts, "js", tokenizer=tokenizer)
    rows = tokenizer(texts)["input_ids"]
    wanted = by_hand(model, EncodedRows({"input_ids": rows}), names=["js"]).mean(0)[0]
    np.testing.assert_allclose(found["js"].values, wanted, atol=2e-5)
    pairs = hc.redundancy(model, [("the king", "a queen")], "js", tokenizer=tokenizer)
    assert pairs.provenance["lengths"]["longest"] == len(
        tokenizer("the king", "a queen")["input_ids"]
    )
    with pytest.raises(UsageError, match="pass tokenizer="):
        hc.redundancy(model, texts)


def test_all_and_options():
    model = build("bert")
    found = hc.redundancy(model, rows_of([6]), "all", options={"cc": {"kappa": 1.0}})
    assert found.distances == tuple(entry.name for entry in DISTANCES if entry.name != "pq")
    plain = hc.redundancy(model, rows_of([6]), "cc")
    assert np.abs(found["cc"].values - plain["cc"].values).max() > 1e-4
    assert found.provenance["options"] == {"cc": {"kappa": 1.0}}


def test_a_run_stops_at_its_tolerance(monkeypatch):
    monkeypatch.setattr(inputs_room, "CHUNK", 16)
    model = build("bert")
    rows = rows_of([6, 9, 12, 15] * 40)
    full = hc.redundancy(model, rows, "js")
    early = hc.redundancy(model, rows, "js", tolerance=2 * full.largest_error)
    assert full.count == 160
    assert 32 <= early.count < 160
    assert early.largest_error <= 2 * full.largest_error
    assert early.provenance["stopped_early"]
    assert not full.provenance["stopped_early"]


class Stop(Exception):
    pass


@pytest.mark.parametrize("at", [5, 16, 37])
def test_an_interrupted_run_goes_on_to_the_same_bits(at, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs_room, "CHUNK", 8)
    model = build("bert")
    rows = rows_of([6, 9, 12, 15, 21] * 9)
    settings = {"distances": NAMES, "samples": 40, "seed": 3, "every": 8}
    whole = hc.redundancy(model, rows, **settings)
    state = tmp_path / "run.state"
    calls = []

    def stop(done, total):
        calls.append(done)
        assert total == 40
        if done == at:
            raise Stop

    with pytest.raises(Stop):
        hc.redundancy(model, rows, **settings, state=state, progress=stop)
    assert state.exists() == (at >= 8)
    calls.clear()
    again = hc.redundancy(
        model, rows, **settings, state=state, progress=lambda done, _: calls.append(done)
    )
    assert calls == list(range((at - 1) // 8 * 8 + 1, 41)), "only what was missing"
    assert not state.exists()
    assert again.provenance == whole.provenance
    for name in NAMES:
        assert np.array_equal(again[name].values, whole[name].values)
        assert np.array_equal(again[name].stderr, whole[name].stderr)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distances": ["js"]}, r"other settings: distances was .*, now \['js'\]"),
        (
            {"seed": 1, "samples": 20},
            "samples was None, now 20; seed was 0, now 1",
        ),
        ({"rows": rows_of([6] * 24, seed=9)}, "rows was 24 rows .*, now 24 rows "),
        ({"rows": rows_of([6] * 8)}, "rows was 24 rows .*, now 8 rows "),
        ({"rows": rows_of([6] * 25)}, "rows was 24 rows .*, now 25 rows "),
        ({"model": build("bert", seed=1)}, "other settings: weights was "),
        (
            {"model": build("bert", hidden_act="relu")},
            "other settings: config.hidden_act was gelu, now relu. Repeat it",
        ),
        ({"tokenizer": nine_words()}, "other settings: tokenizer was not there, now 9 tokens"),
    ],
    ids=["distances", "seed", "inputs", "fewer", "more", "model", "activation", "tokenizer"],
)
def test_an_unfinished_run_is_not_mixed_with_another(change, message, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs_room, "CHUNK", 8)
    state = tmp_path / "run.state"
    given = {"model": build("bert"), "rows": rows_of([6] * 24), "distances": NAMES, "every": 8}

    def run(progress=None, **settings):
        return hc.redundancy(
            settings.pop("model"), settings.pop("rows"), **settings, state=state, progress=progress
        )

    def stop(done, total):
        if done == 20:
            raise Stop

    with pytest.raises(Stop):
        run(progress=stop, **given)
    before = state.read_bytes()
    with pytest.raises(UsageError, match=message):
        run(**(given | change))
    assert state.read_bytes() == before


def test_batches_can_go_on_too(tmp_path):
    model = build("bert")
    drawn = [rows_of([5, 8], seed=seed) for seed in range(4)]
    batches = [rows.collate([rows[0], rows[1]]) for rows in drawn]
    whole = hc.redundancy(model, batches, "js")
    state = tmp_path / "s"

    def stop(done, total):
        assert total == 8
        if done == 5:
            raise Stop

    with pytest.raises(Stop):
        hc.redundancy(model, batches, "js", state=state, every=2, progress=stop)
    again = hc.redundancy(model, (each for each in batches), "js", state=state, every=2)
    assert np.array_equal(again["js"].values, whole["js"].values)
    assert hc.redundancy(model, batches, "js", samples=5).count == 5


def test_ready_batches_that_are_others_are_refused(tmp_path):
    model = build("bert")
    state = tmp_path / "s"

    def batches(seed, many=4):
        drawn = [rows_of([5, 8], seed=seed + each) for each in range(many)]
        return [rows.collate([rows[0], rows[1]]) for rows in drawn]

    def stop(done, total):
        if done == 5:
            raise Stop

    with pytest.raises(Stop):
        hc.redundancy(model, batches(0), "js", state=state, every=2, progress=stop)
    with pytest.raises(UsageError, match="on other inputs"):
        hc.redundancy(model, batches(9), "js", state=state)
    with pytest.raises(UsageError, match="more inputs than there are"):
        hc.redundancy(model, batches(0, 1), "js", state=state)


def test_a_kept_state_gives_the_result_again_without_measuring(tmp_path):
    model, state, calls = build("bert"), tmp_path / "s", []
    settings = {"state": state, "keep_state": True, "tolerance": 0.5}
    rows = rows_of([6, 9] * 50)
    whole = hc.redundancy(model, rows, "js", **settings)
    again = hc.redundancy(model, rows, "js", **settings, progress=lambda *at: calls.append(at))
    assert calls == []
    assert again.provenance == whole.provenance
    assert np.array_equal(again["js"].values, whole["js"].values)
    assert state.exists()


def test_a_state_that_is_none_is_refused(tmp_path):
    state = tmp_path / "s"
    state.write_text("not a state")
    with pytest.raises(UsageError, match="no unfinished redundancy run"):
        hc.redundancy(build("bert"), rows_of([5]), "js", state=state)


def test_broken_attention_is_named():
    model = build("bert")
    with torch.no_grad():
        model.bert.encoder.layer[1].attention.self.query.bias[8:16] = float("nan")
    with pytest.raises(UsageError, match=r"head encoder\.1\.1 holds NaN"):
        hc.redundancy(model, rows_of([5, 6]), "js")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"inputs": []}, "no data"),
        ({"inputs": rows_of([])}, "no inputs"),
        ({"inputs": iter([])}, "no data"),
        ({"inputs": "one text"}, "a list of texts"),
        ({"inputs": [{"input_ids": [[5]]}, "text"]}, "one is 'text'"),
        ({"distances": "jss"}, r"no distance 'jss'\. Did you mean 'js'\?"),
        ({"distances": []}, "at least one distance"),
        ({"options": {"cc": {}}}, "which is not among"),
        ({"tolerance": 0.0}, "above 0"),
        ({"samples": 0}, "At least one input"),
        ({"inputs": [{"input_ids": [[5]], "attention_mask": [[0]]}]}, "padding only"),
        ({"inputs": [{"input_ids": [[5]], "attention_mask": [1]}]}, r"must be \(input, token\)"),
        ({"inputs": [{"input_ids": [[5]], "attention_mask": [[1], [1]]}]}, "numbers of rows"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(next(iter(value.items())))[:40],
)
def test_wrong_calls(call, message):
    with pytest.raises(UsageError, match=message):
        hc.redundancy(build("bert"), **({"inputs": rows_of([5]), "distances": "js"} | call))


def test_one_head_is_refused():
    model = build("bert", num_hidden_layers=1, num_attention_heads=1)
    with pytest.raises(UsageError, match=r"between two heads; this model has .*1 layer x 1 head"):
        hc.redundancy(model, rows_of([5]), "js")


def test_towers_that_see_different_things_are_refused():
    from headcount.models.probe import probe_inputs

    model = build("clip")
    with pytest.raises(UnsupportedError, match="different numbers of tokens"):
        hc.redundancy(model, probe_inputs(model), "js")


def test_nothing_is_left_on_the_model():
    model = build("bert").train()
    hc.redundancy(model, rows_of([5, 6]), "js")
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())
    assert model.config._attn_implementation == "sdpa"


def test_a_second_run_with_the_same_unfinished_file_is_refused(tmp_path):
    model, rows = build("bert"), rows_of([4, 5, 6])
    state = tmp_path / "run.state"
    with (
        locked_file(state),
        pytest.raises(UsageError, match=r"run\.state' is being worked on by process \d+"),
    ):
        hc.redundancy(model, rows, "js", state=state)
    assert list(tmp_path.iterdir()) == []
    assert hc.redundancy(model, rows, "js", state=state).count
    assert list(tmp_path.iterdir()) == []
