from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.cli.main import main
from headcount.costs.cost import inspect
from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.probes import as_probes, find_probes, read_probe
from headcount.models.remove import remove
from headcount.models.sites import find_sites
from models.zoo import build, masks

CROSS = Head("cross", 1, 2)


@pytest.fixture
def decoder():
    return build("bert-decoder-cross")


def test_a_function_of_the_model_is_a_probe(decoder):
    inputs, seen = probe_inputs(decoder, length=6, seed=3), []

    def ask(model):
        seen.append(type(model))
        return model(**inputs)

    mask = Mask.full(layout(decoder)).drop([CROSS])
    small = remove(decoder, mask, probe=ask)
    assert len(seen) >= 2
    with gate(decoder, mask):
        expected = run(decoder, inputs)
    assert relative_difference(expected, run(small, inputs)) < 1e-5


def test_several_probes_reach_together_what_none_reaches_alone(decoder):
    ids = torch.tensor([[5, 6, 7, 8]])
    text = {"input_ids": ids}

    def crossing(model):
        states = torch.ones(1, 3, 32, dtype=model.dtype)
        layer = model.bert.encoder.layer[1].crossattention
        return layer(torch.randn(1, 4, 32, dtype=model.dtype), encoder_hidden_states=states)

    heads = Mask.full(layout(decoder)).drop([CROSS, Head("decoder", 0, 1)])
    for alone in (text, crossing):
        with pytest.raises(UnsupportedError, match="does not reach"):
            remove(decoder, heads, probe=alone)
    small = remove(decoder, heads, probe=[text, crossing])
    assert layout(small)["cross"].heads == (4, 3, 4, 4)


def test_a_damaged_cut_shows_on_the_second_probe(decoder, monkeypatch):
    """Each probe has its say: the first alone would accept heads cut at the wrong place."""
    from headcount.models import cut

    def wrong(layer, columns):
        keep(layer, [*columns[8:], *columns[:8]])

    keep = cut.keep_inputs
    monkeypatch.setattr(cut, "keep_inputs", wrong)
    inputs = probe_inputs(decoder)
    for probe in (inputs, [lambda model: model.dtype and None, inputs]):
        with pytest.raises(UnsupportedError, match="differ from the masked model's"):
            remove(decoder, Mask.full(layout(decoder)).drop([CROSS]), probe=probe)


def test_towers_that_the_model_s_own_input_does_not_reach_get_one_of_their_own():
    model = build("paligemma")
    probes = find_probes(model, find_sites(model))
    assert [bool(probe.path) for probe in probes] == [False, True]
    mask = masks(layout(model))["uneven"]
    small = remove(model, mask)
    for probe in find_probes(model, find_sites(model), seed=5):
        with gate(model, mask):
            expected = probe.run(model)
        assert relative_difference(expected, probe.run(small)) < 1e-5


def test_models_that_draw_when_they_run_are_given_the_same_numbers():
    from transformers import ViTMAEConfig, ViTMAEModel

    torch.manual_seed(0)
    model = ViTMAEModel(
        ViTMAEConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=40,
            image_size=16,
            patch_size=4,
            decoder_hidden_size=32,
        )
    ).eval()
    state = torch.random.get_rng_state()
    small = remove(model, Mask.full(layout(model)).drop([Head("encoder", 0, 1)]))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert layout(small)["encoder"].heads == (3, 4)


@pytest.mark.parametrize("given", [[], "inputs.pt", 3])
def test_what_is_no_probe_is_told(given):
    with pytest.raises(UsageError, match="A probe is a dict of tensors, a function"):
        as_probes(given)


def test_probes_in_files(tmp_path):
    inputs = {"input_ids": torch.tensor([[1, 2]]), "attention_mask": torch.ones(1, 2)}
    save_file(inputs, tmp_path / "probe.safetensors")
    np.savez(tmp_path / "probe.npz", **{name: value.numpy() for name, value in inputs.items()})
    for name in ("probe.safetensors", "probe.npz"):
        read = read_probe(tmp_path / name)
        assert set(read) == set(inputs)
        assert all(torch.equal(read[key], inputs[key]) for key in read)
    (tmp_path / "damaged.safetensors").write_bytes(b"\0" * 40)
    (tmp_path / "damaged.npz").write_bytes(b"PK\3\4")
    for name in ("damaged.safetensors", "damaged.npz"):
        with pytest.raises(UsageError, match="is no file of probe inputs"):
            read_probe(tmp_path / name)
    with pytest.raises(NotFoundError, match="no probe file"):
        read_probe(tmp_path / "none.npz")


def test_probes_on_the_command_line(tmp_path, capsys):
    model = build("vit")
    model.save_pretrained(tmp_path / "full")
    save_file({"pixel_values": torch.randn(1, 3, 16, 16)}, tmp_path / "image.safetensors")
    save_file({"pixels": torch.randn(1, 3, 16, 16)}, tmp_path / "wrong.safetensors")
    line = ["remove", str(tmp_path / "full"), "--keep", "4321", "--out", str(tmp_path / "small")]
    assert main([*line, "--probe", str(tmp_path / "wrong.safetensors")]) != 0
    assert "does not run on the probe" in capsys.readouterr().err
    assert main([*line, "--probe", str(tmp_path / "image.safetensors")]) == 0
    capsys.readouterr()
    look = ["inspect", str(tmp_path / "small"), "--probe"]
    assert main([*look, str(tmp_path / "wrong.safetensors")]) != 0
    assert "does not run on the probe" in capsys.readouterr().err
    assert main([*look, str(tmp_path / "image.safetensors")]) == 0


def test_flops_are_counted_on_the_probe():
    model = build("bert")
    one, two = (
        inspect(model, probe={"input_ids": torch.ones(1, length, dtype=torch.long)}).flops
        for length in (8, 16)
    )
    assert one == inspect(model, length=8).flops
    assert two == inspect(model, length=16).flops
