from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import headcount as hc
from headcount.base.errors import NotFoundError, UsageError
from headcount.heads import Layout
from headcount.likeness.result import Measurement, Redundancy

PLAIN = Layout.of(encoder=[3, 3])
SEVERAL = Layout.of(encoder=[2, 2], cross=[2, 2], decoder=[2, 2])


def matrix(heads, seed=0):
    values = np.random.default_rng(seed).random((heads, heads))
    values = (values + values.T) / 2
    np.fill_diagonal(values, 0)
    return values


def made(layout=PLAIN, names=("js", "dcor"), **changes):
    keys = [(stack.name, name) for stack in layout.stacks for name in names]
    measured = {
        key: Measurement(matrix(layout[key[0]].total, seed), matrix(layout[key[0]].total, 9) / 50)
        for seed, key in enumerate(keys)
    }
    return Redundancy(
        layout=layout, measured=measured, count=20, provenance={"model": "small", **changes}
    )


@pytest.mark.parametrize("layout", [PLAIN, SEVERAL])
def test_saved_and_loaded_it_is_the_same(layout, tmp_path):
    value = made(layout, inputs="Zürich")
    path = value.save(tmp_path / "new" / "r.npz")
    again = hc.load_redundancy(path)
    assert again.layout == value.layout
    assert again.count == 20
    assert again.provenance == value.provenance
    assert list(again.measured) == list(value.measured)
    for key, each in value.measured.items():
        assert np.array_equal(again.measured[key].values, each.values)
        assert np.array_equal(again.measured[key].stderr, each.stderr)
    assert [file.name for file in path.parent.iterdir()] == ["r.npz"]


def test_what_is_in_it():
    value = made()
    assert value["js"].values is value.measured["encoder", "js"].values
    assert value["js", "encoder"] is value["js"]
    assert value.matrices("js")["encoder"].tolist() == value["js"].values.tolist()
    mean = (value["js"].values + value["dcor"].values) / 2
    assert np.allclose(value.matrices()["encoder"], mean)
    assert str(value.heads("encoder")[3]) == "encoder.1.0"
    assert "20 inputs" in repr(value)
    summary = value.to_json()["summary"]
    assert [each["distance"] for each in summary] == ["js", "dcor"]
    assert summary[0]["smallest"] == value["js"].values[np.triu_indices(6, 1)].min()
    json.dumps(value.to_json())
    with pytest.raises(ValueError, match="read-only"):
        value["js"].values[0, 1] = 3


def test_wrong_keys():
    with pytest.raises(UsageError, match=r"'jss' was not measured\. Did you mean 'js'\?"):
        made()["jss"]
    with pytest.raises(UsageError, match="cross heads were not measured"):
        made()["js", "cross"]
    with pytest.raises(UsageError, match=r"several stacks \(encoder, cross, decoder\)"):
        made(SEVERAL)["js"]
    assert made(SEVERAL)["js", "cross"].values.shape == (4, 4)
    with pytest.raises(UsageError, match="at least one distance"):
        made().matrices([])


def test_matrices_are_of_the_layouts_size():
    with pytest.raises(UsageError, match=r"has the shape \(4, 4\); the model has 6 heads"):
        Redundancy(
            layout=PLAIN, measured={("encoder", "js"): Measurement(matrix(4), matrix(4))},
            count=1, provenance={},
        )  # fmt: skip
    with pytest.raises(UsageError, match="at least one matrix"):
        Redundancy(layout=PLAIN, measured={}, count=1, provenance={})


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "r.npz"
    with pytest.raises(NotFoundError, match="There is no file"):
        hc.load_redundancy(path)
    path.write_text("hello")
    with pytest.raises(UsageError, match=r"r\.npz is no redundancy file"):
        hc.load_redundancy(path)
    path.write_bytes(b"")
    with pytest.raises(UsageError, match="is no redundancy file"):
        hc.load_redundancy(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(UsageError, match="is no redundancy file"):
        hc.load_redundancy(path)
    np.save(tmp_path / "r.npy", np.ones(3))
    with pytest.raises(UsageError, match="is no redundancy file"):
        hc.load_redundancy(tmp_path / "r.npy")
    np.savez(path, about=np.array(json.dumps({"format": "else"})))
    with pytest.raises(UsageError, match="is no redundancy file"):
        hc.load_redundancy(path)


def test_nothing_in_a_file_is_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("it was run",))

    path = tmp_path / "r.npz"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UsageError, match="is no redundancy file"):
        hc.load_redundancy(path)


def test_damaged_files_are_refused(tmp_path):
    path = made().save(tmp_path / "r.npz")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(UsageError, match="is no redundancy file, or only a part of one"):
        hc.load_redundancy(path)
    about = {"format": "headcount redundancy", "version": 1, "matrices": [["encoder", "js"]]}
    np.savez(path, about=np.array(json.dumps(about)))
    with pytest.raises(UsageError, match="is damaged"):
        hc.load_redundancy(path)
    np.savez(path, about=np.array(json.dumps(about | {"version": 2})))
    with pytest.raises(UsageError, match="another version of headcount"):
        hc.load_redundancy(path)


def test_a_notebook_shows_a_table_and_the_nearest_heads():
    text = made(SEVERAL, names=("<script>", "js"))._repr_html_()
    assert "<script>" not in text
    assert text.count("&lt;script&gt;") > 3
    assert text.count("<caption>") == 3
    value = made()
    near = int((value.matrices()["encoder"][0] + np.eye(6)[0] * 9).argmin())
    assert f'title="encoder.0.0: {value.heads("encoder")[near]}, ' in value._repr_html_()


def test_a_head_that_is_alone_in_its_stack_has_no_neighbour():
    layout = Layout.of(encoder=[2], decoder=[1])
    measured = {("encoder", "js"): Measurement(matrix(2), matrix(2))}
    value = Redundancy(layout=layout, measured=measured, count=1, provenance={})
    assert "decoder.0.0: alone" in value._repr_html_()
