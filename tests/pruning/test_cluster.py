from __future__ import annotations

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout, Stack
from headcount.likeness.measure import redundancy
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning import cluster as clusters
from headcount.pruning.cluster import random_inputs, read_matrices
from headcount.pruning.select import prepare
from headcount.tasks.vocabulary import train_tokenizer
from models.zoo import build


def cluster(model, **options):
    return prepare(model, "cluster", **options)


THREE = Layout.of(encoder=[5] * 3, cross=[5] * 3, decoder=[5] * 3)


def matrix(size, seed=0):
    points = np.random.default_rng(seed).random((size, 3))
    found = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    return found / found.max()


def matrices(given):
    return {stack.name: matrix(stack.total, i) for i, stack in enumerate(given.stacks)}


@pytest.mark.parametrize("ratio", [0, 0.05, 0.3, 0.5, 0.87, 0.95, 1])
def test_exact_over_all_stacks(ratio):
    mask = cluster(THREE, redundancy=matrices(THREE))(ratio, 0)
    assert len(mask) == THREE.kept_at(ratio)
    for counts in mask.counts().values():
        assert abs(sum(counts) - 15 * (1 - ratio)) < 1


def test_seeds_are_trials():
    decide = cluster(THREE, redundancy=matrices(THREE))
    assert decide(0.5, 1) == decide(0.5, 1)
    assert len({decide(0.5, seed) for seed in range(6)}) > 1


def test_like_heads_are_not_both_kept():
    far = np.ones((6, 6)) - np.eye(6)
    for a, b in ((0, 3), (1, 4), (2, 5)):
        far[a, b] = far[b, a] = 0.01
    for seed in range(4):
        kept = cluster(Layout.of(encoder=[6]), redundancy={"encoder": far})(0.5, seed)
        assert {head.index % 3 for head in kept} == {0, 1, 2}


def test_it_finds_the_number_itself():
    far = 1 - np.kron(np.eye(3), np.ones((4, 4))) * 0.9
    np.fill_diagonal(far, 0)
    mask = cluster(Layout.of(encoder=[4] * 3), redundancy={"encoder": far})(None, 0)
    assert len(mask) == 3


def test_the_mean_of_several(tmp_path):
    model = build("bert", num_hidden_layers=2)
    found = redundancy(model, random_inputs(model, count=20), ["js", "cos"])
    found.save(tmp_path / "r.npz")
    own = layout(model)
    mean = read_matrices(str(tmp_path / "r.npz"), own, None)["encoder"]
    one = read_matrices(found, own, ["js"])["encoder"]
    other = read_matrices(found, own, ["cos"])["encoder"]
    assert mean == pytest.approx((one + other) / 2)
    again = read_matrices([{"encoder": one}, {"encoder": other}], own, None)["encoder"]
    assert again == pytest.approx(mean)


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "vit"])
def test_needs_no_data(family):
    model = build(family)
    mask = cluster(model, distances="js")(0.5, 0)
    assert len(mask) == layout(model).kept_at(0.5)
    remove(model, mask)  # groups of key-value heads stay removable


def test_distances_of_many_heads_are_measured_on_fewer_inputs_and_their_time_is_said(
    monkeypatch, caplog
):
    model = build("bert", num_hidden_layers=2)
    rows = []
    real = clusters.random_inputs
    monkeypatch.setattr(
        clusters, "random_inputs", lambda *given: rows.append(given[2]) or real(*given)
    )
    cluster(model, distances="js")
    assert (rows, caplog.text) == ([200], "")
    monkeypatch.setattr(clusters, "MANY", len(layout(model)) // 2)
    cluster(model, distances="js")
    assert rows == [200, 50]
    assert f"Distances between {len(layout(model))} heads take about" in caplog.text


def test_random_inputs_fit_a_short_decoder():
    model = build("whisper")  # 32 positions, under a name of its own
    batches = random_inputs(model, count=300)
    assert max(batch["decoder_input_ids"].shape[1] for batch in batches) < 32
    model(**max(batches, key=lambda batch: batch["decoder_input_ids"].shape[1]))


@pytest.mark.parametrize("family", ["whisper", "t5", "bart", "bart base"])
def test_an_encoder_decoder_with_a_tokenizer_needs_no_data_either(family):
    model = build(family.split()[0])
    if family == "bart base":  # without a head, nothing shifts texts to decoder inputs
        model = model.model
    tokenizer = train_tokenizer(["a text"], 300)
    tokenizer.pad_token_id = 0
    if hasattr(model, "resize_token_embeddings"):
        model.resize_token_embeddings(len(tokenizer))
    decide = cluster(model, tokenizer=tokenizer)
    heads = layout(model)
    assert len(decide(0.25, 0)) == heads.kept_at(0.25)


def test_long_sound_is_noise_of_a_few_inputs_and_that_is_said(caplog, monkeypatch):
    model = build("whisper")
    assert len(random_inputs(model)) == 20
    monkeypatch.setattr(clusters, "FRAMES", 8)
    assert [len(each["input_features"]) for each in random_inputs(model)] == [1] * clusters.NOISE
    assert "reads long inputs: heads are compared on 3 of noise only" in caplog.text


def test_groups_give_the_nearest_set_that_can_be_removed():
    grouped = Layout((Stack("decoder", (4,) * 4, (2,) * 4, (1,) * 4),))
    assert len(cluster(grouped, redundancy=matrices(grouped))(0.5, 0)) == 8


def test_refusals(tmp_path):
    with pytest.raises(UsageError, match="needs a model"):
        cluster(THREE)
    with pytest.raises(UsageError, match="matrix of the decoder"):
        cluster(THREE, redundancy={"encoder": matrix(15), "cross": matrix(15)})
    with pytest.raises(UsageError, match="is of 3 heads; the model has 15"):
        cluster(THREE, redundancy=matrices(THREE) | {"encoder": matrix(3)})
    with pytest.raises(UsageError, match="no cross heads"):
        cluster(Layout.of(encoder=[4]), redundancy={"cross": matrix(4)})
    with pytest.raises(UsageError, match="mean of no"):
        cluster(THREE, redundancy=[])
    (tmp_path / "no.npz").write_text("no")
    with pytest.raises(UsageError, match="no redundancy file"):
        cluster(THREE, redundancy=tmp_path / "no.npz")
    model = build("bert", num_hidden_layers=2)
    found = redundancy(model, random_inputs(model, count=10), ["js"])
    with pytest.raises(UsageError, match="of another model"):
        cluster(THREE, redundancy=found)
