"""Every family as a checkpoint in a fresh process without headcount."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    BertForSequenceClassification,
)

from exports.exporting import pruned, unseen
from headcount.base.errors import UnsupportedError, UsageError
from headcount.exports import checkpoint as export_checkpoint
from headcount.exports.checkpoint import auto_names, plain_class
from headcount.exports.export import export
from headcount.exports.formats import FORMATS
from headcount.exports.inputs import find_probes
from headcount.heads import Mask
from headcount.models import cut
from headcount.models.find import layout
from headcount.models.instructions import set_biases, set_paths
from headcount.models.load import load
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from headcount.repair.recover import Recover
from headcount.repair.recovery import recover
from models.zoo import FAMILIES, build, masks, mixed, removed

FRESH = Path(__file__).parent / "fresh.py"


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> dict:
    """{"zeroed" or "standalone": {family: what one fresh process found in all the exports}}."""
    root = tmp_path_factory.mktemp("exports") / "zoo"
    for family in FAMILIES:
        _, _, small = removed(family, "mixed")
        inputs = unseen(small)
        answers = run(small, inputs)
        for to in ("zeroed", "standalone"):
            folder = root / f"{to}-{family}"
            assert export(small, to, folder).difference <= 1e-5
            torch.save((inputs, answers), folder / "answers.pt")
            (folder / "auto.txt").write_text(auto_names(small.config, plain_class(small))[0])
    found = fresh(root)
    return {
        to: {family: found[f"{to}-{family}"] for family in FAMILIES}
        for to in ("zeroed", "standalone")
    }


def fresh(root: Path) -> dict:
    """Run fresh.py over the folders in `root` with headcount out of reach."""
    environment = os.environ | {"HF_HOME": str(root.parent / "home"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-I", FRESH, root],
        capture_output=True,
        text=True,
        cwd=root,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_zeroed_loads_with_plain_transformers(exported):
    for family, seen in exported["zeroed"].items():
        assert seen["class"] == "".join(FAMILIES[family][:2])
        assert seen["module"].startswith("transformers.models.")
        assert not seen["headcount"], family
        assert seen["difference"] <= 1e-5, family
        assert seen["changed"] > 1e-3, f"the weights of {family} do not matter"


def test_standalone_loads_without_headcount(exported):
    for family, seen in exported["standalone"].items():
        assert seen["class"] == "".join(FAMILIES[family][:2])
        assert seen["module"].startswith("transformers_modules.")
        assert seen["headcount"], family
        assert seen["difference"] == 0, family
        assert seen["changed"] > 1e-3, f"the weights of {family} do not matter"
        for again in ("copied", "pickled", "saved again", "backbone"):
            assert seen[again] == 0, (family, again)


def test_all_heads_gone_everywhere(tmp_path):
    for family in ("bert", "t5", "llama", "albert", "bloom"):
        model = build(family)
        small = remove(model, masks(layout(model))["all emptied"])
        for to in ("zeroed", "standalone"):
            assert export(small, to, tmp_path / family / to).difference <= 1e-5


@pytest.mark.parametrize("family", ["swin", "swinv2", "beit-relative"])
def test_position_biases_of_a_child_are_exported(tmp_path, family):
    model = build(family)
    for pattern in ("uneven", "alternate layers emptied"):
        small = remove(model, masks(layout(model))[pattern])
        for to in ("zeroed", "standalone"):
            assert export(small, to, tmp_path / pattern / to).difference <= 1e-5


def test_zeroed_has_zeros_where_heads_were(tmp_path):
    model = build("bert")
    small = remove(model, Mask.full(layout(model)).drop([("encoder", 1, 2)]))
    export(small, "zeroed", tmp_path / "out")
    full = BertForSequenceClassification.from_pretrained(tmp_path / "out")
    attention = full.bert.encoder.layer[1].attention
    own = model.bert.encoder.layer[1].attention
    gone, kept = slice(16, 24), [*range(16), *range(24, 32)]
    for name in ("query", "key", "value"):
        for part in ("weight", "bias"):
            found = getattr(getattr(attention.self, name), part)
            assert not found[gone].any()
            assert torch.equal(found[kept], getattr(getattr(own.self, name), part)[kept])
    assert not attention.output.dense.weight[:, gone].any()
    assert torch.equal(attention.output.dense.weight[:, kept], own.output.dense.weight[:, kept])
    assert torch.equal(attention.output.dense.bias, own.output.dense.bias)


def test_zeroed_keeps_dtype_and_ties(tmp_path):
    model = build("gpt2").to(torch.bfloat16)
    small = remove(model, mixed(layout(model)))
    export(small, "zeroed", tmp_path / "out")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert again.dtype == torch.bfloat16
    assert again.lm_head.weight is again.transformer.wte.weight
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert "headcount" not in config
    assert small.config.headcount["sites"], "the model's own config is left alone"


def test_zeroed_keeps_weights_apart_that_the_config_calls_tied(tmp_path):
    """A T5 that was loaded from a file with both."""
    whole = build("t5")
    whole.lm_head.weight = torch.nn.Parameter(torch.randn_like(whole.lm_head.weight))
    whole.save_pretrained(tmp_path / "whole")
    model = load(tmp_path / "whole")
    export(remove(model, mixed(layout(model))), "zeroed", tmp_path / "out")
    again = plain_class(model).from_pretrained(tmp_path / "out")
    assert torch.equal(again.lm_head.weight, whole.lm_head.weight)
    assert again.encoder.embed_tokens.weight is again.shared.weight
    assert not torch.equal(again.lm_head.weight, again.shared.weight)


def test_zeroed_of_a_model_pruned_twice(tmp_path):
    model = build("llama")
    once = remove(model, mixed(layout(model)))
    twice = remove(once, Mask.full(layout(once)).drop([("decoder", 3, 0), ("decoder", 3, 1)]))
    export(twice, "zeroed", tmp_path / "out")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    inputs = unseen(twice)
    assert relative_difference(run(twice, inputs), run(again, inputs)) <= 1e-5


def test_a_wrong_modelling_file_is_refused(tmp_path, monkeypatch):
    source = export_checkpoint._source
    monkeypatch.setattr(
        export_checkpoint, "_source", lambda kinds: source(kinds).replace("+ bias", "- bias")
    )
    with pytest.raises(UnsupportedError, match="differ from the model's"):
        export(pruned("gpt2"), "standalone", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_modelling_file_needs_nothing_else(tmp_path):
    export(pruned("bert"), "standalone", tmp_path / "out")
    text = (tmp_path / "out" / "modeling_headcount.py").read_text()
    assert "import headcount" not in text
    assert "from headcount" not in text
    assert text.startswith(Path(cut.__file__).read_text().rstrip())
    # headcount itself still reads the folder
    assert len(layout(load(tmp_path / "out"))) == 9


def test_a_class_of_ones_own_cannot_stand_alone(tmp_path):
    class Mine(BertForSequenceClassification):
        pass

    model = Mine(build("bert").config)
    small = remove(model, mixed(layout(model)))
    with pytest.raises(UnsupportedError, match="Mine is not one of transformers' own classes"):
        export(small, "standalone", tmp_path / "out")


def test_zeroed_of_a_whole_model_is_the_model(tmp_path):
    model = build("bert")
    export(model, "zeroed", tmp_path / "out")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert relative_difference(run(model, unseen(model)), run(again, unseen(model))) == 0
    assert "AutoModelForSequenceClassification" in (tmp_path / "out" / "README.md").read_text()


def test_standalone_of_a_whole_model_is_pointless(tmp_path):
    with pytest.raises(UsageError, match="has all its heads, so it needs no code of its own"):
        export(build("bert"), "standalone", tmp_path / "out")


def test_biases_that_recovery_added_are_exported_or_refused(tmp_path):
    llama, t5 = (remove(m, mixed(layout(m))) for m in (build("llama"), build("t5")))
    set_biases(llama, [f"model.layers.{n}.self_attn.o_proj" for n in (1, 2)])
    with torch.no_grad():
        llama.model.layers[1].self_attn.o_proj.bias += 0.5
    for to in ("zeroed", "standalone"):  # which compares the answers
        export(llama, to, tmp_path / to)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "zeroed")
    assert plain.config.attention_bias
    ids = {"input_ids": torch.tensor([[5, 6, 7]])}
    assert relative_difference(run(llama, ids), run(plain, ids)) < 1e-5
    set_biases(t5, ["encoder.block.1.layer.0.SelfAttention.o"])
    export(t5, "standalone", tmp_path / "t5")
    with pytest.raises(UnsupportedError, match=r"SelfAttention\.o got a bias by recovery"):
        export(t5, "zeroed", tmp_path / "t5-zeroed")


def test_linear_paths_are_in_a_standalone_file_and_refused_by_plain_ones(tmp_path):
    for family in ("llama", "bert"):
        model = build(family)
        small = remove(model, mixed(layout(model)))
        batches = [probe_inputs(model, batch=4, length=10, seed=seed) for seed in range(3)]
        recover(small, model, batches, options=Recover(path_rank=4, linear=True))
        folder = tmp_path / family
        export(small, "standalone", folder)  # which compares the answers
        assert "class LinearPath" in (folder / "modeling_headcount.py").read_text()
        for to, words in (("zeroed", "a plain checkpoint"), ("stock", "a plain checkpoint")):
            with pytest.raises(UnsupportedError, match=f"got a linear path by recovery.*{words}"):
                export(small, to, tmp_path / to)
            assert not (tmp_path / to).exists()
    llama = remove(build("llama"), mixed(layout(build("llama"))))
    entry = {"path": "model.layers.1.self_attn", "out": "model.layers.1.self_attn.o_proj"}
    set_paths(llama, [{**entry, "width": 32, "rank": 4}])
    for to, words in (("vllm", "vLLM"), ("gguf", "GGUF")):
        with pytest.raises(UnsupportedError, match=rf"layers\.1\.self_attn got .*{words} cannot"):
            FORMATS[to]().write(llama, tmp_path, find_probes(llama, None, ()))


@pytest.mark.parametrize("family", ["llama", "bert", "t5"])
def test_linear_paths_are_in_a_graph(family, tmp_path):
    pytest.importorskip("onnxruntime")
    model = build(family)
    small = remove(model, mixed(layout(model)))
    batches = [probe_inputs(model, batch=4, length=10, seed=seed) for seed in range(3)]
    recover(small, model, batches, options=Recover(path_rank=4, linear=True))
    for to in ("onnx", "torch-export"):
        assert export(small, to, tmp_path / to).difference < 1e-4
