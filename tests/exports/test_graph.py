"""By example; benchmarks/coverage/exports.py does this for every family."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import (
    BertForSequenceClassification,
)

from exports.exporting import feeds_of, one_layer, two_layers
from headcount.base.errors import UnsupportedError
from headcount.exports import graph as export_graph
from headcount.exports.export import export
from headcount.models.probe import probe_inputs, relative_difference
from models.zoo import build, shallow


@pytest.mark.parametrize(
    ("family", "made"), [("gpt2-cross", two_layers), ("llama", one_layer), ("whisper", one_layer)]
)
def test_torch_export_loads_again(family, made, tmp_path, capfd):
    small = made(family)
    capfd.readouterr()
    done = export(small, "torch-export", tmp_path / "out")
    assert capfd.readouterr() == ("", "")
    assert done.difference <= 1e-5
    assert set(done.files) == {"README.md", "model.pt2"}
    again = torch.export.load(tmp_path / "out" / "model.pt2").module()
    feeds = feeds_of(small)
    with torch.no_grad():
        expected, answers = small(**feeds), again(**feeds)
    for name, found in answers.items():
        assert relative_difference([expected[name]], [found]) <= 1e-5


def test_a_whole_model_as_a_graph_by_its_own_probe(tmp_path):
    model = build("bert", **shallow("bert", 1)).train()
    inputs = probe_inputs(model, batch=2, length=5)
    export(model, "torch-export", tmp_path / "out", probe=inputs)
    assert model.training
    again = torch.export.load(tmp_path / "out" / "model.pt2").module()
    feeds = {name: value for name, value in feeds_of(model).items() if name in inputs}
    model.eval()
    with torch.no_grad():
        difference = relative_difference([model(**feeds).logits], [again(**feeds)["logits"]])
    assert difference <= 1e-5


@pytest.mark.parametrize(("to", "words"), [("onnx", "ONNX"), ("torch-export", "torch.export")])
def test_what_cannot_be_a_graph_is_refused(to, words, tmp_path):
    model = Moody(build("bert", **shallow("bert", 1)).config)
    with pytest.raises(
        UnsupportedError, match=rf"cannot export Moody \('bert'\) to {words}: "
    ) as no:
        export(model, to, tmp_path / "out")
    assert "\n" not in str(no.value)
    assert "float32" not in str(no.value)
    # onnxruntime lacks much in other dtypes, so that is worth a hint
    with pytest.raises(UnsupportedError, match=r"bfloat16; float32 may work \(--dtype float32\)"):
        export(model.to(torch.bfloat16), to, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_answers_otherwise_is_refused(tmp_path, monkeypatch):
    def wrong(answers, inputs, right=export_graph.traced):
        other = copy.deepcopy(answers)
        with torch.no_grad():
            other.model.classifier.bias.add_(1)
        return right(other, inputs)

    monkeypatch.setattr(export_graph, "traced", wrong)
    with pytest.raises(UnsupportedError, match=r"torch.export: its answers differ"):
        export(two_layers("bert"), "torch-export", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_for_one_shape_only_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(export_graph, "open_axes", lambda name, tensor: {})
    with pytest.raises(UnsupportedError, match=r"to torch.export: "):
        export(two_layers("bert"), "torch-export", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


class Moody(BertForSequenceClassification):
    """What it does depends on the data, so it is no graph."""

    def forward(self, input_ids, attention_mask=None):
        if input_ids.sum() % 2:
            input_ids = input_ids.flip(1)
        return super().forward(input_ids, attention_mask)
