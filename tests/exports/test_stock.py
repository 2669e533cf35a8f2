"""Plain checkpoints of uniform prunings: loaded by transformers alone, or refused by layer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import headcount as hc
from exports.exporting import unseen
from headcount.base.errors import UnsupportedError, UsageError
from headcount.exports.checkpoint import auto_names, plain_class
from headcount.exports.export import export
from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.instructions import set_biases
from headcount.models.probe import run
from headcount.models.remove import remove
from headcount.pruning.select import select
from models.zoo import build

FRESH = Path(__file__).parent / "fresh.py"
PLAIN = ("llama", "mistral", "qwen2", "qwen3", "gemma", "vit")
"""Families of the zoo whose config has the size of a head."""


def uniform(family, seed=0):
    model = build(family)
    return remove(model, select(layout(model), "random", 0.5, uniform=True, seed=seed))


def test_transformers_alone_loads_them_and_answers_alike(tmp_path):
    root = tmp_path / "exports"
    for family in PLAIN:
        small = uniform(family)
        inputs = unseen(small)
        answers = run(small, inputs)
        assert export(small, "stock", root / family).difference == 0
        torch.save((inputs, answers), root / family / "answers.pt")
        (root / family / "auto.txt").write_text(auto_names(small.config, plain_class(small))[0])
        names = {path.suffix for path in (root / family).iterdir()}
        assert ".py" not in names
    environment = os.environ | {"HF_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-I", FRESH, root], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == set(PLAIN)
    for answer in found.values():
        assert answer["difference"] <= 1e-6
        assert answer["changed"] > 1e-3
        assert answer["module"].startswith("transformers.models.")
        assert not answer["headcount"]


def test_the_config_says_what_is_left_and_the_cache_is_smaller(tmp_path):
    small = uniform("qwen3")
    export(small, "stock", tmp_path / "plain")
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (2, 1)
    assert config["head_dim"] == build("qwen3").config.head_dim
    assert "headcount" not in config
    plain = type(build("qwen3")).from_pretrained(tmp_path / "plain")
    assert plain.num_parameters() == small.num_parameters()
    ids = torch.arange(3, 9)[None]
    cache = plain(ids, use_cache=True).past_key_values
    assert {layer.keys.shape[1] for layer in cache.layers} == {1}
    kept = {"max_new_tokens": 8, "do_sample": False}
    assert torch.equal(plain.generate(ids, **kept), small.generate(ids, **kept))


def test_biases_that_recovery_added_are_in_the_config(tmp_path):
    llama, qwen = uniform("llama"), uniform("qwen2")
    for small in (llama, qwen):
        set_biases(small, [f"model.layers.{n}.self_attn.o_proj" for n in (1, 2)])
        with torch.no_grad():
            small.model.layers[1].self_attn.o_proj.bias += 0.5
    assert export(llama, "stock", tmp_path / "plain").difference == 0
    with pytest.raises(UnsupportedError, match=r"o_proj got a bias by recovery"):
        export(qwen, "stock", tmp_path / "qwen")


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ("4424", "decoder layer 2 has 2 heads on 1 key-value heads, and layer 0 has 4 on 2"),
        ("4404", "decoder layer 2 has none, and layer 0 has 4 on 2"),
        ("0444", "decoder layer 0 has none"),
    ],
)
def test_layers_that_differ_are_refused_by_layer(mask, words, tmp_path):
    model = build("llama")
    small = remove(model, Mask.parse(mask, layout(model)))
    with pytest.raises(UnsupportedError, match=f"{words}.*Prune with --uniform"):
        export(small, "stock", tmp_path / "plain")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "falcon-alibi", "electra"])
def test_a_config_that_computes_the_size_of_a_head_is_refused(family, tmp_path):
    model = build(family)
    alike = Mask.full(layout(model)).drop([h for h in layout(model) if h.index == 0])
    with pytest.raises(UnsupportedError, match=r"has no setting for fewer heads of the same size"):
        export(remove(model, alike), "stock", tmp_path / "plain")


def test_a_model_with_all_heads_needs_no_export(tmp_path):
    with pytest.raises(UsageError, match="has all its heads"):
        hc.export(build("llama"), "stock", tmp_path / "plain")


def test_heads_at_other_places_in_each_layer_are_one_config(tmp_path):
    """Which heads stayed does not matter, only how many."""
    model = build("llama")
    kept = [Head("decoder", layer, 2 * (layer % 2) + i) for layer in range(4) for i in range(2)]
    small = remove(model, Mask.of(layout(model), kept))
    assert export(small, "stock", tmp_path / "plain").difference == 0
