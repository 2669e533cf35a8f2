"""By example; benchmarks/coverage/exports.py does this for every family."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from exports.exporting import feeds_of, numpy, one_layer, pruned, two_layers
from headcount.base import extras
from headcount.base.errors import MissingExtraError
from headcount.exports import graph as export_graph
from headcount.exports.export import export
from headcount.models.probe import probe_inputs, relative_difference


def test_onnx_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(MissingExtraError, match=r"onnxscript.*pip install 'headcount\[onnx\]'"):
        export(pruned("bert"), "onnx", tmp_path / "out")


@pytest.mark.parametrize(
    ("family", "made"),
    [
        ("bert", two_layers),
        ("t5", one_layer),  # torch cannot turn its fused attention into ONNX
        ("clip", one_layer),  # texts and images each in their own number
        ("falcon-alibi", one_layer),  # eager is not its fused attention; a part is bfloat16
    ],
)
def test_onnx_runs_in_onnxruntime(family, made, tmp_path, capfd):
    import onnxruntime

    small = made(family)
    capfd.readouterr()
    done = export(small, "onnx", tmp_path / "out")
    assert capfd.readouterr() == ("", "")
    assert done.difference <= 1e-4
    assert set(done.files) == {"README.md", "model.onnx"}
    assert (
        str(Path(torch.__file__).parent).encode() not in (tmp_path / "out/model.onnx").read_bytes()
    )
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert {put.name for put in session.get_inputs()} == set(feeds_of(small))
    for put in session.get_inputs():
        assert [word for word in put.shape if isinstance(word, str)] == list(
            export_graph.AXES.get(put.name, (f"{put.name}_batch",))
        )
    feeds = feeds_of(small)
    with torch.no_grad():
        expected = small(**feeds)
    names = [put.name for put in session.get_outputs()]
    assert names[0] == "logits_per_image" if family == "clip" else "logits"
    for name, found in zip(names, session.run(None, numpy(feeds)), strict=True):
        assert relative_difference([expected[name]], [torch.from_numpy(found)]) <= 1e-4


def test_padding_outside_a_window_of_attention_is_no_answer(tmp_path):
    # a window of 4 in a row with 9 padded tokens: softmax over nothing is anything
    small = one_layer("mistral")
    light, heavy = (probe_inputs(small, length=length) for length in (7, 14))
    heavy["attention_mask"][1, 5:] = 0
    assert export(small, "onnx", tmp_path / "out", rows=[light, heavy]).difference <= 1e-4
