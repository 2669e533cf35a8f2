from __future__ import annotations

import json

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.likeness.agreement import agree
from headcount.likeness.compare import compare
from headcount.likeness.layers import layer_clusters, layer_gap, layers_of
from headcount.likeness.result import Measurement, Redundancy

LAYOUT = Layout.of(encoder=[3] * 4, decoder=[3] * 2)


def value(seed, names=("js", "dcor"), layout=LAYOUT):
    """Distances that grow with the layer gap, with some noise."""
    rng = np.random.default_rng(seed)
    measured = {}
    for stack in layout.stacks:
        layers = layers_of(layout, stack.name)
        for name in names:
            noise = rng.random((stack.total, stack.total)) / 5
            values = np.abs(layers[:, None] - layers) / 5 + (noise + noise.T) / 2
            np.fill_diagonal(values, 0)
            measured[stack.name, name] = Measurement(values, values / 30)
    return Redundancy(layout=layout, measured=measured, count=9, provenance={})


def test_every_pair_once():
    values = {"a": value(0), "b": value(1), "c": value(2, ["js"])}
    found = compare(values, permutations=49)
    assert found.files == ("a", "b", "c")
    assert [(p.stack, p.within, p.one, p.other) for p in found.between_distances] == [
        ("encoder", "a", "js", "dcor"),
        ("decoder", "a", "js", "dcor"),
        ("encoder", "b", "js", "dcor"),
        ("decoder", "b", "js", "dcor"),
    ]
    files = {(p.stack, p.within, p.one, p.other): p.agreement for p in found.between_files}
    assert len(files) == 2 * (3 + 1)
    wanted = agree(
        values["a"]["js", "encoder"].values, values["c"]["js", "encoder"].values, permutations=49
    )
    assert files["encoder", "js", "a", "c"] == wanted
    assert wanted.pearson > 0.8
    assert len(found.where) == 2 * 5
    json.dumps(found.to_json())


def test_where_it_is():
    values = {"a": value(0)}
    found = compare(values, permutations=49, clusters=2)
    encoder, decoder = found.where[0], found.where[2]
    layers = layers_of(LAYOUT, "encoder")
    assert encoder.gap == layer_gap(values["a"]["js", "encoder"].values, layers, permutations=49)
    assert encoder.clusters == layer_clusters(values["a"]["js", "encoder"].values, layers, 2)
    assert decoder.gap is None, "two layers are too few"
    assert found.between_files == ()


def test_the_work_can_be_tracked():
    seen = []
    compare({"a": value(0)}, permutations=9, track=lambda jobs: seen.append(len(jobs)) or jobs)
    assert seen == [2 + 4]


def test_different_models_are_refused():
    other = value(1, layout=Layout.of(encoder=[3] * 4, decoder=[4] * 2))
    with pytest.raises(UsageError, match=r"'a' and 'b' are of different models: Layout\(encoder"):
        compare({"a": value(0), "b": other})
    with pytest.raises(UsageError, match="at least one redundancy file"):
        compare({})
