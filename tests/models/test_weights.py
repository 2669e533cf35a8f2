"""Checkpoints that lack weights, or have others than their config describes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModel, BertModel, MarianModel

import headcount as hc
from headcount.base.errors import NotFoundError, UsageError
from headcount.models.find import layout
from headcount.models.fingerprint import weights_fingerprint
from headcount.models.load import load
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from models.zoo import build, masks


def saved(
    folder: Path, model: Any, change: Callable[[dict[str, Tensor]], object], **config: Any
) -> Path:
    """A model's folder with other weights and another config than it was saved with."""
    model.save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    written = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(written | config))
    return folder


def without(*parts: str) -> Callable[[dict[str, Tensor]], None]:
    def drop(weights: dict[str, Tensor]) -> None:
        for name in [name for name in weights if any(part in name for part in parts)]:
            del weights[name]

    return drop


def notes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "headcount"]


def same(weights: dict[str, Tensor]) -> None:
    pass


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("classifier.", r"classifier\.bias, classifier\.weight, which BertForSeq.* train a new"),
        ("pooler.", r"bert\.pooler\.dense\.bias, bert\.pooler\.dense\.weight"),
        ("classifier.bias", r"classifier\.bias, which"),
        ("layer.3.output.dense.weight", r"bert\.encoder\.layer\.3\.output\.dense\.weight, which"),
        ("word_embeddings", r"bert\.embeddings\.word_embeddings\.weight"),
        ("layer.2.", r"layer\.2\.attention\.output\.LayerNorm\.bias.* and 12 more"),
    ],
)
def test_missing_weights_are_refused_by_name(tmp_path: Path, part: str, named: str) -> None:
    saved(tmp_path, build("bert"), without(part))
    with pytest.raises(NotFoundError, match=f"lack {'.*' if 'layer.2' in part else ''}{named}"):
        load(tmp_path)


def test_weights_that_are_a_link_to_nothing_are_refused(tmp_path: Path) -> None:
    model = build("bert")
    remove(model, masks(layout(model))["uneven"]).save_pretrained(tmp_path)
    (tmp_path / "training.bin").symlink_to("nothing")  # nobody reads it
    assert load(tmp_path) is not None
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").symlink_to("nothing")
    for allow_pickle in (False, True):
        with pytest.raises(NotFoundError, match=r"link to nothing|Cannot load"):
            load(tmp_path, allow_pickle=allow_pickle)


def test_a_pruned_model_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    model = build("bert")
    saved(tmp_path, remove(model, masks(layout(model))["uneven"]), without("classifier."))
    with pytest.raises(NotFoundError, match=r"lack classifier\.bias"):
        load(tmp_path)


def test_layers_that_the_config_does_not_know_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, build("bert"), same, num_hidden_layers=3)
    with pytest.raises(NotFoundError, match=r"have bert\.encoder\.layer\.3.* no place for"):
        load(tmp_path)
    saved(tmp_path, build("bert"), same, num_hidden_layers=5)
    with pytest.raises(NotFoundError, match=r"lack bert\.encoder\.layer\.4"):
        load(tmp_path)
    saved(tmp_path, build("bert").base_model, same, num_hidden_layers=3)
    with pytest.raises(NotFoundError, match=r"have encoder\.layer\.3"):
        load(tmp_path)


HEAD: Any = {"head": "sequence-classification", "num_labels": 3}


def test_a_head_that_is_missing_is_refused_unless_a_new_one_is_asked_for(tmp_path: Path) -> None:
    saved(tmp_path, build("bert").base_model, without("pooler."))
    with pytest.raises(NotFoundError, match=r"lack bert\.pooler.*new_head=True"):
        load(tmp_path, **HEAD)


def test_a_new_head_is_told_and_nothing_else_may_be_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saved(tmp_path, build("bert").base_model, without("pooler."))
    with caplog.at_level(logging.WARNING, "headcount"):
        assert load(tmp_path, **HEAD, new_head=True).num_labels == 3
    (told,) = notes(caplog)
    assert "new weights, to be trained" in told
    assert "classifier.weight" in told
    saved(tmp_path, build("bert").base_model, without("layer.1.", "pooler."))
    with pytest.raises(NotFoundError, match=r"lack bert\.encoder\.layer\.1"):
        load(tmp_path, **HEAD, new_head=True)


def test_another_number_of_labels_needs_a_new_head(tmp_path: Path) -> None:
    build("bert").save_pretrained(tmp_path)
    with pytest.raises(NotFoundError, match="than num_labels asks for: pass new_head=True"):
        load(tmp_path, num_labels=5)
    assert load(tmp_path, num_labels=5, new_head=True).num_labels == 5


def test_heads_that_are_left_over_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    build("bert").save_pretrained(tmp_path)
    with caplog.at_level(logging.WARNING, "headcount"):
        load(tmp_path, head="base")
        load(tmp_path, head="base")
    assert notes(caplog) == [
        f"'{tmp_path}' has weights that BertModel does not use, classifier.bias, classifier.weight."
    ]


def test_a_pooler_without_weights_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Swin's takes the mean of the patches: nothing of it can be missing from a file."""
    model = build("donut-swin")
    model.save_pretrained(tmp_path)
    with caplog.at_level(logging.WARNING, "headcount"):
        loaded = load(tmp_path)
    assert not notes(caplog)
    image = {"pixel_values": torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))}
    assert relative_difference(run(model, image), run(loaded, image)) == 0
    assert loaded(**image).pooler_output is not None


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_bare_encoder_without_a_pooler_is_loaded_without_one(
    family: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = AutoModel.from_config(build(family).config)
    folder = saved(tmp_path / "bare", whole.eval(), without("pooler."))
    with caplog.at_level(logging.WARNING, "headcount"):
        model = load(folder)
    assert "holds no pooler" in caplog.text
    assert model.pooler is None
    # nothing in it is drawn at random, so it is the same each time
    assert weights_fingerprint(model) == weights_fingerprint(load(folder))
    mask = masks(layout(model))["uneven"]
    remove(model, mask).save_pretrained(tmp_path / "small")
    again = load(tmp_path / "small")
    assert again.pooler is None
    inputs = probe_inputs(model)
    with hc.gate(model, mask):
        assert relative_difference(run(model, inputs), run(again, inputs)) < 1e-5


@pytest.mark.parametrize("to", ["zeroed", "standalone"])
def test_a_model_without_a_pooler_is_exported_without_one(to: str, tmp_path: Path) -> None:
    folder = saved(tmp_path / "bare", BertModel(build("bert").config).eval(), without("pooler."))
    model = load(folder)
    small = remove(model, masks(layout(model))["uneven"])
    hc.export(small, to, tmp_path / "out")
    assert not [key for key in load_file(tmp_path / "out" / "model.safetensors") if "pooler" in key]


def test_half_a_pooler_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, BertModel(build("bert").config), without("pooler.dense.bias"))
    with pytest.raises(NotFoundError, match=r"lack pooler\.dense\.bias"):
        load(folder)


def test_what_a_class_computes_may_be_missing(tmp_path: Path) -> None:
    build("marian").save_pretrained(tmp_path)
    model = load(tmp_path, head="base")
    assert isinstance(model, MarianModel)


@pytest.mark.parametrize(
    ("family", "buffers"),
    [
        ("bert", {"bert.embeddings.position_ids": torch.arange(64)[None]}),
        (
            "gpt2",
            {
                "transformer.h.0.attn.bias": torch.ones(1, 1, 64, 64),
                "transformer.h.0.attn.masked_bias": torch.tensor(-1e4),
            },
        ),
    ],
)
def test_buffers_of_older_versions_are_no_weights(
    family: str, buffers: dict[str, Tensor], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = build(family)
    saved(tmp_path, model, lambda weights: weights.update(buffers))
    with caplog.at_level(logging.WARNING, "headcount"):
        again = load(tmp_path)
    assert notes(caplog) == []
    inputs = probe_inputs(model)
    assert relative_difference(run(model, inputs), run(again, inputs)) == 0


def little(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free))


def test_weights_that_do_not_fit_into_memory_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build("bert")
    model.save_pretrained(tmp_path)
    needed = 4 * sum(parameter.numel() for parameter in model.parameters())
    little(monkeypatch, needed)
    load(tmp_path)
    little(monkeypatch, needed - 1)
    monkeypatch.setattr(type(model), "from_pretrained", None)  # it must not come to that
    with pytest.raises(UsageError, match=r"in float32 take 0\.0 GiB .* pass --dtype bfloat16"):
        load(tmp_path)
    little(monkeypatch, needed // 2 - 1)
    with pytest.raises(UsageError, match=r"in bfloat16 take .* are free: free some"):
        load(tmp_path, dtype="bfloat16")
