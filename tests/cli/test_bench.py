from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertForMaskedLM, FNetConfig

import headcount as hc
from headcount.base import extras
from headcount.costs import speed
from headcount.costs.cost import cost
from headcount.runs.record import COMMON
from models.zoo import build

Cli = Callable[..., Any]
QUICK = ("--no-onnx", "--batch", "2", "--length", "8", "--repeats", "6", "--device", "cpu",
         "--timing-seconds", "0")  # fmt: skip


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    """The folder of a small model; with `mask`, of the same with heads removed."""

    def make(family: str = "bert", mask: str | None = None, **changes: Any) -> Path:
        model = build(family, **changes)
        if mask:
            model = hc.remove(model, hc.Mask.parse(mask, hc.layout(model)))
        folder = tmp_path / f"{family}-{mask}-{len(list(tmp_path.iterdir()))}"
        model.save_pretrained(folder)
        return folder

    return make


def rows(ran: Any) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    return {row["name"]: row for row in json.loads(ran.out)["timings"]}


def test_random_heads_at_several_ratios(cli: Cli, saved: Callable[..., Path]) -> None:
    folder = saved()
    ran = cli("bench", folder, "--ratio", "0.5", "0.75", *QUICK, "--json")
    assert ran.err == ""
    found = json.loads(ran.out)
    assert set(found) - set(COMMON) == {
        "model", "pruned", "weights", "seed", "class", "batch", "length", "reads", "rounds",
        "threads", "machine", "share_of_flops", "ceiling", "shapes", "timings",
    }  # fmt: skip
    assert set(COMMON) <= set(found)
    assert (found["weights"], found["pruned"], found["seed"]) == ("saved", None, 0)
    assert (found["batch"], found["length"], found["rounds"]) == (2, 8, 6)
    assert (found["device"], found["threads"]) == ("cpu", torch.get_num_threads())
    assert found["versions"]["torch"] == version("torch")
    names = ["dense", "masked 75.0 %", "removed 50.0 %", "removed 75.0 %"]
    assert [row["name"] for row in found["timings"]] == names
    counted = cost(hc.load(folder), length=8)
    assert found["share_of_flops"] == counted.share
    half = found["timings"][2]
    assert set(half) == {
        "name", "kind", "heads", "sparsity", "ratio", "ideal", "over_ideal", "seconds",
        "parameters", "memory", "speedup", "bound", "batch", "length",
    }  # fmt: skip
    assert (half["kind"], half["heads"], half["sparsity"]) == ("removed", 8, 0.5)
    assert set(half["ratio"]) == set(half["seconds"]) == {"median", "low", "high"}
    assert half["ideal"] == pytest.approx(1 - (counted.share or 0) / 2)
    # one statistic: whichever of its forms is read, it says the same
    dense, took = (row["seconds"]["median"] for row in (found["timings"][0], half))
    assert dense / took == pytest.approx(half["speedup"]["median"])
    assert half["speedup"]["median"] == pytest.approx(1 / half["ratio"]["median"])
    assert half["memory"] < found["timings"][0]["memory"] == 4 * counted.parameters


def test_the_table_says_it_to_people(cli: Cli, saved: Callable[..., Path]) -> None:
    ran = cli("bench", saved(), "--ratio", "0.5", *QUICK)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("BertForSequenceClassification, saved weights, batch 2 × 8 tokens")
    cells = [line.split() for line in lines]
    (dense,) = [row for row in cells if row[:1] == ["dense"]]
    assert dense[1:4] == ["16", "1.00", "1.00"]
    assert any(row[:3] == ["masked", "50.0", "%"] for row in cells)
    (half,) = [row for row in cells if row[:3] == ["removed", "50.0", "%"]]
    assert half[3] == "8"
    assert any(line.endswith("× as fast at best.") for line in lines)
    assert lines[-1].endswith("which saves no time.")


def test_lists_of_batches_and_lengths(cli: Cli, saved: Callable[..., Path]) -> None:
    line = ("bench", saved(), "--ratio", "0.5", "--repeats", "6", "--timing-seconds", "0",
            "--no-onnx", "--batch", "1,2")  # fmt: skip
    ran = cli(*line, "--length", "4", "8", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    shapes = [(shape["batch"], shape["length"]) for shape in found["shapes"]]
    assert shapes == [(1, 4), (1, 8), (2, 4), (2, 8)]
    assert len(found["timings"]) == 4 * 3
    assert found["run"]["options"]["batch"] == [1, 2]
    table = cli(*line, "--length", "8").out
    assert "2 shapes of inputs" in table
    assert "1 × 8 tokens" in table


def test_the_ratios_that_are_timed_by_default(cli: Cli, saved: Callable[..., Path]) -> None:
    found = rows(cli("bench", saved(num_hidden_layers=5), *QUICK, "--json"))
    assert [row["heads"] for row in found.values()] == [20, 2, 10, 5, 2]


def test_a_pruned_folder_beside_its_model(cli: Cli, saved: Callable[..., Path]) -> None:
    found = rows(cli("bench", saved(), saved(mask="4102"), *QUICK, "--json"))
    assert list(found) == ["dense", "masked 56.2 %", "removed 56.2 %"]
    assert found["removed 56.2 %"]["heads"] == 7
    assert found["removed 56.2 %"]["parameters"] < found["dense"]["parameters"]


def test_a_pruned_model_with_another_top(
    cli: Cli, saved: Callable[..., Path], tmp_path: Path
) -> None:
    BertForMaskedLM(build("bert").config).save_pretrained(tmp_path / "lm")
    ran = cli("bench", tmp_path / "lm", saved(mask="4102"), *QUICK, "--json")
    assert list(rows(ran)) == ["dense", "masked 56.2 %", "removed 56.2 %"]
    assert json.loads(ran.out)["class"] == "BertModel"
    assert ran.err == (
        "headcount: BertForMaskedLM and BertForSequenceClassification are compared as BertModel.\n"
    )


def test_without_weights_random_ones_are_used_and_said(
    cli: Cli, saved: Callable[..., Path]
) -> None:
    folder = saved()
    asked = json.loads(cli("bench", folder, "--from-config", "--ratio", "1", *QUICK, "--json").out)
    assert asked["weights"] == "random"
    (folder / "model.safetensors").unlink()
    for name in (folder, folder / "config.json"):
        ran = cli("bench", name, "--ratio", "1", *QUICK, "--json")
        assert ran.err == f"headcount: '{name}' has no weights; random ones take the same time.\n"
        assert json.loads(ran.out)["weights"] == "random"
        assert rows(ran)["removed 100.0 %"]["heads"] == 0


def test_grouped_heads_go_in_groups(cli: Cli, saved: Callable[..., Path]) -> None:
    found = rows(cli("bench", saved("llama"), "--ratio", "0.4", *QUICK, "--json"))
    assert [row["heads"] for row in found.values()] == [16, 10, 10]


def test_a_decoder_writes(cli: Cli, saved: Callable[..., Path]) -> None:
    line = ("bench", saved("llama"), "--generate", "--ratio", "0.5", *QUICK)
    found = json.loads(cli(*line, "--json").out)
    assert [shape["phase"] for shape in found["shapes"]] == ["prefill", "decode"]
    assert found["run"]["options"]["generate"] is True
    last = found["timings"][-1]
    assert (last["phase"], last["name"]) == ("decode", "removed 50.0 %")
    assert last["tokens_per_second"]["median"] == pytest.approx(2 / last["seconds"]["median"])
    assert found["shapes"][1]["share_of_flops"] is None
    table = cli(*line).out
    assert "tokens/s" in table
    assert "of the bytes read for a token with 2 × 8 tokens, decode" in table
    ran = cli(*line, "--dry-run")
    assert (ran.code, ran.out) == (2, "")
    assert "inspect --context" in ran.err


def test_a_dry_run_shows_the_ideals_and_loads_nothing(
    cli: Cli, saved: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "_open", None)
    folder, pruned = saved(), saved(mask="4102")
    for path in (folder, pruned):
        (path / "model.safetensors").unlink()
    ran = cli("bench", folder, "--ratio", "0.5", "--length", "8", "--dry-run", "--json")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    share = cost(build("bert"), length=8).share or 0
    assert found["dry_run"] == [
        {"name": "removed 50.0 %", "heads": 8, "ideal": pytest.approx(1 - share / 2)}
    ]
    table = cli("bench", folder, pruned, "--length", "8", "--dry-run").out.splitlines()
    assert table[-1].split()[:4] == ["removed", "56.2", "%", "7"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--ratio", "1.5"], "The ratio of heads to remove is between 0 and 1, not 1.5."),
        (["--ratio", "-0.1"], "between 0 and 1"),
        (["--ratio", "half"], "half"),
        (["--batch", "0"], "A batch is at least 1 example, not 0."),
        (["--length", "65"], "takes 64 tokens, not 65."),
        (["--length", "0"], "A length is at least 1 token, not 0."),
        (["--batch", "8,0"], "A batch is at least 1 example, not 0."),
        (["--timing-seconds=-1"], "--timing-seconds is a time of 0 seconds or more, not -1.0."),
        (["--repeats", "5"], "5 rounds are too few for a 95 % interval; take 6 or more."),
        (["--device", "moon"], "There is no device 'moon'."),
    ],
)
def test_wrong_options_are_2(
    cli: Cli, saved: Callable[..., Path], options: list[str], sentence: str
) -> None:
    ran = cli("bench", saved(), *options, "--no-onnx")
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


def test_wrong_models_are_told_apart(cli: Cli, saved: Callable[..., Path], tmp_path: Path) -> None:
    bert = saved()
    wide = saved(hidden_size=64)
    FNetConfig(architectures=["FNetModel"], num_hidden_layers=1).save_pretrained(tmp_path / "fnet")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "config.json").write_text("{nope")
    for tokens, code, sentence in [
        ([bert, saved("gpt2")], 2, "GPT2LMHeadModel is no pruned BertForSequenceClassification"),
        ([bert, wide], 2, "other widths"),
        ([bert, bert, "--ratio", "0.5"], 2, "either PRUNED or --ratio"),
        ([tmp_path / "nowhere"], 4, "There is no model"),
        ([tmp_path / "text"], 4, "cannot be read as JSON"),
        ([tmp_path / "fnet"], 5, "finds no attention heads"),
    ]:
        ran = cli("bench", *tokens, "--no-onnx")
        assert (ran.code, ran.out) == (code, ""), ran.err
        assert sentence in ran.err


def test_onnx_follows_what_is_installed(
    monkeypatch: pytest.MonkeyPatch, cli: Cli, saved: Callable[..., Path]
) -> None:
    extra = extras.Extra(name="onnx", summary="", modules=("no_such_module",))
    monkeypatch.setattr(extras, "EXTRAS", (extra,))
    ran = cli("bench", saved(), "--ratio", "0.5", *QUICK[1:], "--json")
    assert ran.err == "headcount: no_such_module is not installed, so onnxruntime is not timed.\n"
    assert list(rows(ran)) == ["dense", "masked 50.0 %", "removed 50.0 %"]
    refused = cli("bench", saved(), "--onnx", *QUICK[1:])
    assert refused.code == 3
    assert "pip install 'headcount[onnx]'" in refused.err
