"""Modules that are no transformers models: torch's own encoder, and timm's where it is there."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import headcount as hc
from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.modules import load_into, save
from headcount.models.packed import unpack
from headcount.models.remove import remove

GONE = [Head("encoder", 0, 1), *(Head("encoder", 1, index) for index in range(4))]


def encoder(*, heads=4, batch_first=True, norm_first=False):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        32, heads, 40, batch_first=batch_first, norm_first=norm_first, dropout=0.0
    )
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


INPUTS = {"src": torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(1))}


def test_an_encoder_of_torch_from_layout_to_loading(tmp_path):
    full = encoder()
    with pytest.raises(UnsupportedError, match="does not understand 3 x MultiheadAttention"):
        layout(full)
    model = unpack(full)
    heads = layout(model)
    assert heads["encoder"].heads == (4, 4, 4)
    assert len(hc.select(heads, "random", 0.5)) == 6
    mask = Mask.full(heads).drop(GONE)
    with pytest.raises(UsageError, match=r"no inputs of TransformerEncoder.*probe="):
        remove(model, mask)
    small = remove(model, mask, probe=INPUTS)
    with torch.no_grad():
        with gate(model, mask):
            expected = model(**INPUTS)
        assert (full(**INPUTS) - expected).abs().max() > 1e-2
        assert torch.allclose(small(**INPUTS), expected, atol=1e-5)
        assert layout(small)["encoder"].heads == (3, 0, 4)
        assert small.layers[0].self_attn.q_proj.weight.shape == (24, 32)
        save(small, tmp_path / "small")
        again = load_into(encoder(), tmp_path / "small")
        assert torch.equal(again(**INPUTS), small(**INPUTS))
        twice = remove(again, Mask.full(layout(again)).drop([Head("encoder", 2, 3)]), probe=INPUTS)
        assert layout(twice)["encoder"].heads == (3, 0, 3)


def test_what_cannot_be_loaded_is_told(tmp_path):
    model = unpack(encoder())
    small = remove(model, Mask.full(layout(model)).drop(GONE), probe=INPUTS)
    save(small, tmp_path / "small")
    with pytest.raises(NotFoundError, match=r"it has no headcount\.json|it has no model"):
        load_into(encoder(), tmp_path)
    with pytest.raises(UsageError, match="this one lost some"):
        load_into(small, tmp_path / "small")
    with pytest.raises(NotFoundError, match="is damaged"):
        load_into(encoder(heads=2), tmp_path / "small")
    weights = load_file(tmp_path / "small" / "model.safetensors")
    weights["layers.0.self_attn.q_proj.weight"] = torch.ones(3, 32)
    save_file(weights, tmp_path / "small" / "model.safetensors")
    with pytest.raises(NotFoundError, match="do not fit this TransformerEncoder"):
        load_into(encoder(), tmp_path / "small")
    (tmp_path / "small" / "headcount.json").write_text("{}")
    with pytest.raises(NotFoundError, match="does not say which heads"):
        load_into(encoder(), tmp_path / "small")


def with_timm(monkeypatch):
    """timm, where it is installed or where HEADCOUNT_EXTRAS says; None where it is not.

    torchvision's wheel is built for CUDA: beside a CPU torch its operators are declared first.
    """
    extras = os.environ.get("HEADCOUNT_EXTRAS", "")
    if extras and Path(extras).is_dir():
        monkeypatch.setattr(sys, "path", [*sys.path, extras])
    if importlib.util.find_spec("timm") is None:
        return None
    if importlib.util.find_spec("torchvision") and not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in ("qnms", "roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool",
                     "deform_conv2d", "_roi_align_backward", "_ps_roi_align_backward",
                     "_roi_pool_backward", "_ps_roi_pool_backward",
                     "_deform_conv2d_backward"):  # fmt: skip
            library.define(f"{name}(Tensor input) -> Tensor")
    import timm

    return timm


@pytest.mark.filterwarnings("ignore")
def test_a_vit_of_timm(tmp_path, monkeypatch):
    timm = with_timm(monkeypatch)
    if timm is None:
        pytest.skip("timm is not installed: pip install --no-deps timm torchvision")

    def build():
        return timm.create_model("vit_tiny_patch16_224", depth=3, img_size=64).eval()

    torch.manual_seed(0)
    model = build()
    heads = layout(model)
    assert heads["encoder"].heads == (3, 3, 3)
    mask = Mask.full(heads).drop([("encoder", 0, 1), *(("encoder", 2, i) for i in range(3))])
    probe = {"x": torch.randn(2, 3, 64, 64)}
    small = remove(model, mask, probe=probe)
    with torch.no_grad():
        with gate(model, mask):
            expected = model(**probe)
        assert torch.allclose(small(**probe), expected, atol=1e-4)
        assert small.blocks[0].attn.qkv.weight.shape == (384, 192)
        save(small, tmp_path)
        again = load_into(build(), tmp_path)
        assert torch.equal(again(**probe), small(**probe))
