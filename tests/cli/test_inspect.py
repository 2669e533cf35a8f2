from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, FNetConfig, ReformerConfig, SiglipConfig

import headcount as hc
from headcount.cli.main import main
from headcount.costs.cost import cost
from models.zoo import build

Cli = Callable[..., Any]
FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder with the config of a small model, and nothing else."""

    def make(family: str, **changes: Any) -> Path:
        model = build(family, **changes)
        model.config.architectures = [type(model).__name__]
        model.config.save_pretrained(tmp_path / family)
        return tmp_path / family

    return make


def test_bert_base_from_its_config(cli: Cli, tmp_path: Path) -> None:
    BertConfig(architectures=["BertModel"]).save_pretrained(tmp_path)
    for name in (tmp_path, tmp_path / "config.json"):
        ran = cli("inspect", name)
        assert (ran.code, ran.err) == (0, "")
        lines = ran.out.splitlines()
        assert lines[0] == "BertModel: 109 M parameters, 438 MB in float32"
        assert "encoder  12 layers x 12 heads  (144 heads, 64 wide)" in lines
        assert "All heads: 28.3 M parameters (25.9 % of the model's), 113 MB" in lines
        assert "At 128 tokens: 7.85 GFLOPs (35.1 % of the model's 22.3 GFLOPs)" in lines
        assert "With every head removed it could be 1.54 x as fast, at best" in lines
        rows = [line.split() for line in lines if "attention.self" in line]
        assert len(rows) == 12
        path = "encoder.layer.11.attention.self"
        assert " ".join(rows[11]) == f"encoder 11 {path} 12 64 2.36 M 9.45 MB 654 M"
        assert " ".join(lines[-2].split()) == "all heads 144 28.3 M 113 MB 7.85 G"
        assert " ".join(lines[-1].split()) == "whole model 109 M 438 MB 22.3 G"


def test_what_heads_could_save_where_they_serve(cli: Cli, folder: Callable[..., Path]) -> None:
    path = folder("llama")
    ran = cli("inspect", path, "--context", 40, "--batch", 3)
    assert ran.code == 0
    assert "At 40 tokens: " in ran.out
    assert "For 3 users of 40 tokens: " in ran.out
    found = hc.inspect(path, context=40, batch=3).serving
    assert found is not None
    assert found.verdict in ran.out
    data = json.loads(cli("inspect", path, "--context", 40, "--batch", 3, "--json").out)
    assert data["serving"]["cache"] == found.cache
    assert data["serving"]["most"]["all heads"]["cache"] == 1
    assert "serving" not in json.loads(cli("inspect", path, "--json").out)
    ran = cli("inspect", path, "--context", 65)
    assert (ran.code, ran.out) == (2, "")
    assert "takes 64 tokens, not 65" in ran.err


def test_images_and_sound_are_counted_as_such(cli: Cli, folder: Callable[..., Path]) -> None:
    path = folder("vit")
    ran = cli("inspect", path)
    assert "For an image of 3 x 16 x 16: 177 kFLOPs" in ran.out
    assert "tokens" not in ran.out
    found = json.loads(cli("inspect", path, "--json").out)
    assert (found["length"], found["reads"]) == (None, "an image of 3 x 16 x 16")
    refused = cli("inspect", path, "--length", "20")
    assert refused.code == 2
    assert "reads an image of 3 x 16 x 16, not tokens: leave out --length" in refused.err
    assert "For 8 x 24 audio features and 32 tokens:" in cli("inspect", folder("whisper")).out


def test_json_says_all_that_is_known(cli: Cli, folder: Callable[..., Path]) -> None:
    path = folder("llama")
    ran = cli("inspect", path, "--length", "20", "--json")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    model = build("llama")
    expected = cost(model, length=20)
    assert found["model"] == str(path)
    assert (found["class"], found["model_type"]) == ("LlamaForCausalLM", "llama")
    assert (found["dtype"], found["length"], found["flops_of"]) == (
        "float32", 20, "LlamaForCausalLM",
    )  # fmt: skip
    assert (found["heads"], found["heads_before"]) == (16, 16)
    assert found["layout"] == hc.layout(model).to_json()
    assert (found["parameters"], found["memory"], found["flops"]) == (
        expected.parameters, expected.memory, expected.flops,
    )  # fmt: skip
    assert found["attention"] == {
        "parameters": expected.attention_parameters,
        "memory": expected.attention_memory,
        "flops": expected.attention_flops,
        "share_of_flops": expected.share,
        "ceiling": expected.ceiling,
    }
    assert len(found["modules"]) == 4
    assert found["modules"][3] == {
        "path": "model.layers.3.self_attn",
        "stack": "decoder",
        "layer": 3,
        "heads": 4,
        "key_value_heads": 2,
        "head_width": 8,
        "uses": 1,
        "parameters": expected.sites[3].parameters,
        "memory": expected.sites[3].memory,
        "flops": expected.sites[3].flops,
        "cache_per_token": 2 * 2 * 8 * 4,
    }


def test_groups_cache_and_shared_layers_have_their_lines(
    cli: Cli, folder: Callable[..., Path]
) -> None:
    grouped = cli("inspect", folder("llama")).out
    assert "decoder  4 layers x 4 heads, 2 key-value heads  (16 heads, 8 wide)" in grouped
    assert "Key-value cache: 512 B for each token" in grouped
    assert "KV heads" in grouped
    shared = cli("inspect", folder("albert", num_hidden_groups=1)).out
    assert "shared: each used 4 times" in shared
    assert "runs" in shared
    assert "KV heads" not in shared
    assert "cache" not in shared
    three = cli("inspect", folder("t5")).out.splitlines()
    assert [line.split()[0] for line in three[2:5]] == ["encoder", "cross", "decoder"]


def test_a_pruned_folder_says_how_many_are_left(cli: Cli, tmp_path: Path) -> None:
    model = build("bert")
    mask = hc.Mask.parse("4102", hc.layout(model))
    hc.remove(model, mask).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    ran = cli("inspect", tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "encoder  4 layers x (4102) heads  (7 heads, 8 wide)" in ran.out
    assert "7 of 16 heads are left" in ran.out


def test_heads_that_transformers_4_removed(cli: Cli) -> None:
    found = json.loads(cli("inspect", FIXTURES / "v4-pruned-bert", "--json").out)
    assert found["heads"] == len(hc.layout(hc.load(FIXTURES / "v4-pruned-bert")))
    assert found["heads"] < found["heads_before"]


def test_flops_that_cannot_be_counted_are_left_open(cli: Cli, tmp_path: Path) -> None:
    ReformerConfig(
        architectures=["ReformerModel"], attn_layers=["local"], is_decoder=True
    ).save_pretrained(tmp_path)
    ran = cli("inspect", tmp_path)
    assert ran.code == 0
    assert ran.err.startswith("headcount: The FLOPs of ReformerModel cannot be counted")
    assert "FLOPs (" not in ran.out
    assert ran.out.splitlines()[-1].split()[-1] == "-"
    assert json.loads(cli("inspect", tmp_path, "--json").out)["flops"] is None


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        (None, 4, "is not a model folder: it has no config.json."),
        ("{nope", 4, "cannot be read as JSON"),
        ('{"model_type": "bert", "num_hidden_layers": "x"}', 5, "describes no model"),
        ('{"model_type": "nonsense"}', 5, "nonsense"),
        (json.dumps(FNetConfig().to_dict()), 5, "finds no attention heads in FNetModel ('fnet')"),
    ],
)
def test_bad_input_is_one_sentence(
    cli: Cli, tmp_path: Path, text: str | None, code: int, sentence: str
) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    ran = cli("inspect", tmp_path)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("headcount: ")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


def test_a_name_that_is_nowhere_is_4(cli: Cli) -> None:
    ran = cli("inspect", "no-such-model-anywhere")
    assert (ran.code, ran.out) == (4, "")
    assert "There is no model 'no-such-model-anywhere'" in ran.err


def test_a_length_that_does_not_fit_is_2(cli: Cli, folder: Callable[..., Path]) -> None:
    path = folder("bert")
    for length in ("0", "65", "many"):
        assert cli("inspect", path, "--length", length).code == 2
    assert "takes 64 tokens, not 65" in cli("inspect", path, "--length", "65").err


@pytest.mark.parametrize(("width", "hidden"), [(200, 0), (80, 2), (40, 4), (24, 5)])
def test_a_narrow_terminal_loses_columns_not_sense(
    folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, width: int, hidden: int
) -> None:
    path = folder("bert")
    lines = on_a_terminal(monkeypatch, width, "inspect", str(path))
    assert all(len(line) <= width for line in lines)
    assert not any("…" in line for line in lines)
    rows = [line.split() for line in lines if line.strip().startswith("encoder ")]
    assert [row[1] for row in rows[-4:]] == ["0", "1", "2", "3"]
    text = " ".join(lines)
    assert ("Too narrow to show:" in text) == bool(hidden)
    if hidden:
        assert text.partition("Too narrow to show:")[2].count(",") == hidden - 1


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int, *tokens: str) -> list[str]:
    """What a command shows on a terminal of this width."""
    master, slave = os.openpty()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(tokens) == 0
        terminal.flush()
        seen = os.read(master, 100_000).decode()
        monkeypatch.undo()
    os.close(master)
    plain = re.sub(r"\x1b\[[\d;]*m", "", seen)
    return [line.rstrip() for line in plain.replace("\r", "").splitlines()]


def test_attention_that_is_not_understood_is_named(cli: Cli, tmp_path: Path) -> None:
    tower = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    tower |= {"intermediate_size": 40, "image_size": 16, "patch_size": 8, "vocab_size": 61}
    config = SiglipConfig(text_config=tower, vision_config=tower, architectures=["SiglipModel"])
    config.save_pretrained(tmp_path)
    path = "vision_model.head.attention"
    ran = cli("inspect", tmp_path)
    assert f"not understood: 1 x MultiheadAttention ({path}): its heads are not counted" in ran.out
    found = json.loads(cli("inspect", tmp_path, "--json").out)
    assert found["not_understood"] == [{"path": path, "class": "MultiheadAttention"}]


def test_tied_layers_are_one_that_runs_twice(cli: Cli, folder: Callable[..., Path]) -> None:
    found = json.loads(cli("inspect", folder("zamba"), "--json").out)
    (module,) = found["modules"]
    assert module["uses"] == 2
    assert found["layout"]["decoder"] == {"heads": [4], "groups": [4], "uses": [2]}
