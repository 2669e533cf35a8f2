from __future__ import annotations

from pathlib import Path

import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.costs.bench import time_removed, weight_bytes
from headcount.costs.cost import cost
from headcount.heads import Mask
from headcount.models.random_weights import random_model
from models.zoo import build, masks


def removed(model: torch.nn.Module, *names: str) -> dict:
    every = masks(hc.layout(model))
    return {name: (every[name], hc.remove(model, every[name])) for name in names}


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "vit", "whisper", "clip", "albert"])
def test_each_way_has_its_row(family: str) -> None:
    model = build(family)
    smaller = removed(model, "uneven", "all emptied")
    found = time_removed(model, smaller, batch=2, length=9, rounds=6)
    assert [row.name for row in found.rows] == [
        "dense", "masked all emptied", "removed uneven", "removed all emptied",
    ]  # fmt: skip
    counted = cost(model, length=9)
    dense, masked, uneven, emptied = found.rows
    assert dense.heads == len(counted.layout)
    assert (dense.ratio.median, dense.ratio.low, dense.ratio.high) == (1, 1, 1)
    assert dense.ideal == masked.ideal == 1
    assert (masked.heads, masked.sparsity) == (emptied.heads, emptied.sparsity) == (0, 1)
    assert masked.parameters == dense.parameters > uneven.parameters > emptied.parameters
    assert uneven.ideal == counted.ratio(smaller["uneven"][0])
    assert emptied.bound == pytest.approx(found.shapes[0].ceiling)
    for row in found.rows:
        assert 0 < row.seconds.low <= row.seconds.median <= row.seconds.high
        assert row.ratio.low <= row.ratio.median <= row.ratio.high
        assert row.over_ideal == row.ratio.median / (row.ideal or 0)
    (shape,) = found.shapes
    assert (shape.batch, shape.length, shape.rounds) == (2, 9, 6)
    assert found.threads == torch.get_num_threads()
    assert shape.share == counted.share


def test_what_is_timed_is_what_it_says() -> None:
    model = build("bert")
    calls: list[tuple[str, bool, torch.Size]] = []
    smaller = removed(model, "uneven")

    def watch(name: str, watched: torch.nn.Module) -> None:
        out = watched.bert.encoder.layer[0].attention.output.dense

        def look(module: torch.nn.Module, args: tuple) -> None:
            calls.append((name, len(module._forward_pre_hooks) > 1, args[0].shape))

        out.register_forward_pre_hook(look)

    watch("dense", model)
    watch("removed", smaller["uneven"][1])
    time_removed(model, smaller, batch=3, length=10, rounds=6)
    # layer 0 of "uneven" keeps two of four heads of width 8
    assert {call[0] for call in calls if call[2] == (3, 10, 16)} == {"removed"}
    assert {call[1] for call in calls if call[2] == (3, 10, 32)} == {True, False}
    assert all(call[2][:2] == (3, 10) for call in calls)
    # no hook of a gate stays behind
    assert len(model.bert.encoder.layer[0].attention.output.dense._forward_pre_hooks) == 1


def test_onnxruntime_runs_beside_torch() -> None:
    model = build("bert", num_hidden_layers=1)
    found = time_removed(model, removed(model, "uneven"), batch=2, length=8, rounds=6, onnx=True)
    assert [row.name for row in found.rows][3:] == ["onnx dense", "onnx removed uneven"]
    assert [row.kind for row in found.rows][3:] == ["onnx", "onnx"]
    assert found.rows[4].ideal == found.rows[2].ideal


def test_every_combination_of_batches_and_lengths_is_timed() -> None:
    model = build("bert", num_hidden_layers=1)
    found = time_removed(model, removed(model, "uneven"), batch=(1, 2), length=[4, 8], rounds=6)
    assert list(map(str, found.shapes)) == [
        "1 × 4 tokens", "1 × 8 tokens", "2 × 4 tokens", "2 × 8 tokens",
    ]  # fmt: skip
    assert len(found.rows) == 4 * 3
    # attention is a larger part of longer inputs, whatever the batch
    ideals = [shape.rows[2].ideal for shape in found.shapes]
    assert ideals[:2] == ideals[2:]
    assert (ideals[0] or 0) > (ideals[1] or 0)
    data = found.to_json()
    assert [(row["batch"], row["length"]) for row in data["timings"][::3]] == [
        (1, 4), (1, 8), (2, 4), (2, 8),
    ]  # fmt: skip
    assert (data["batch"], data["length"]) == (1, 4)
    assert [shape["batch"] for shape in data["shapes"]] == [1, 1, 2, 2]


def test_nothing_removed_is_the_dense_model_alone() -> None:
    found = time_removed(build("bert"), {}, batch=1, length=8, rounds=6)
    assert [row.name for row in found.rows] == ["dense"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "at least 1 example, not 0"),
        ({"length": 65}, "takes 64 tokens, not 65"),
        ({"length": 0}, "at least 1 token"),
        ({"rounds": 3}, "3 rounds are too few"),
    ],
)
def test_bad_sizes_are_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        time_removed(build("bert"), {}, **options)  # pyright: ignore


def test_what_does_not_run_is_refused_with_the_reason() -> None:
    # RoBERTa's positions start after its padding token: 64 of them are 62 tokens
    with pytest.raises(
        UsageError, match=r"does not run on 2 x 64 tokens: index 64 is out of bounds"
    ):
        time_removed(build("roberta"), {}, batch=2, length=64, rounds=6)


@pytest.mark.parametrize("family", ["bert", "t5", "gpt2", "bart"])
def test_weight_bytes_are_those_of_the_file(family: str, tmp_path: Path) -> None:
    model = build(family)
    small = hc.remove(model, masks(hc.layout(model))["uneven"])
    for number, each in enumerate((model, small)):
        folder = tmp_path / str(number)
        each.save_pretrained(folder)
        file = folder / "model.safetensors"
        header = 8 + int.from_bytes(file.read_bytes()[:8], "little")
        assert weight_bytes(each) == file.stat().st_size - header


def test_the_dtype_of_the_config_is_kept(tmp_path: Path) -> None:
    build("llama").to(torch.bfloat16).save_pretrained(tmp_path)
    assert random_model(str(tmp_path / "config.json")).dtype == torch.bfloat16


def test_masks_of_another_layout_are_refused() -> None:
    model = build("bert")
    other = build("bert", num_hidden_layers=2)
    with pytest.raises(UsageError, match="another layout"):
        time_removed(
            model, {"x": (Mask.none(hc.layout(other)), other)}, batch=1, length=8, rounds=6
        )
