from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from transformers import AutoTokenizer, ResNetConfig, ResNetModel

from headcount.base.header import header
from headcount.changes.sentence import attention
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.models.shipped import locate
from tasks.media import write_images, write_vit
from training.conftest import tiny

TEXT = "the king near a cat"


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """A tiny BERT, and the same with heads removed."""
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    made = tmp_path_factory.mktemp("models")
    model: Any = tiny(tokenizer)
    small = remove(model, Mask.parse("413", layout(model)))
    for name, each in (("big", model), ("small", small)):
        each.save_pretrained(made / name)
        tokenizer.save_pretrained(made / name)
    return made / "big", made / "small"


def test_the_command_does_as_the_function(cli, folders, tmp_path):
    ran = cli("attention", *folders, "--text", TEXT, "--out", tmp_path / "maps", "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    found = json.loads(ran.out)
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    from headcount.models.load import load

    expected = attention(load(folders[0]), TEXT, pruned=load(folders[1]), tokenizer=tokenizer)
    rows = list(expected.rows())
    assert len(found["heads"]) == 12
    assert found["heads"][5] == json.loads(json.dumps(rows[5]))
    assert [row["after"] is None for row in found["heads"]].count(True) == 4
    assert (found["kept"], found["cut"]) == ("413", 0)
    assert {path.name for path in (tmp_path / "maps").iterdir()} == {
        "attention.json", "attention.npz", "attention.png", "attention.svg",
    }  # fmt: skip
    written = json.loads((tmp_path / "maps" / "attention.json").read_text())
    assert written == header("attention") | found


def test_without_matplotlib_only_the_figures_are_missing(cli, folders, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = cli("attention", folders[0], "--text", TEXT, "--out", tmp_path / "maps")
    assert ran.code == 0, ran.err
    assert "There will be no figures." in ran.err
    assert {path.name for path in (tmp_path / "maps").iterdir()} == {
        "attention.json", "attention.npz",
    }  # fmt: skip


def test_one_head_for_people(cli, folders, tmp_path):
    more = ("--layer", 1, "--head", 0, 3, "--out", tmp_path)
    ran = cli("attention", *folders, "--text", TEXT, *more)
    assert ran.code == 0, ran.err
    lines = [line for line in ran.out.splitlines() if line.strip().startswith("encoder.")]
    assert [line.split()[0] for line in lines] == ["encoder.1.0", "encoder.1.3"]
    assert "removed" in lines[1]
    assert "[CLS] the king near a cat [SEP]" in ran.out
    assert "layer 1, head 3: removed" in (tmp_path / "attention.svg").read_text(encoding="utf-8")


def test_three_stacks_have_a_figure_each(cli, tmp_path):
    ran = cli("attention", "pocket-translator", "--text", "the dog sees .", "--out", tmp_path)
    assert ran.code == 0, ran.err
    figures = {path.stem for path in tmp_path.glob("*.png")}
    assert figures == {"attention-encoder", "attention-cross", "attention-decoder"}
    ran = cli("attention", "pocket-translator", "--text", "the dog sees .", "--stack", "cross",
              "--target", "kavo ri .", "--json")  # fmt: skip
    found = json.loads(ran.out)
    assert {row["stack"] for row in found["heads"]} == {"cross"}
    assert found["target"] == "kavo ri ."


def test_a_text_that_is_cut_is_told(cli, folders):
    ran = cli("attention", folders[0], "--text", TEXT, "--max-length", 4, "--json")
    assert ran.code == 0
    assert "3 tokens were truncated" in ran.err
    assert json.loads(ran.out)["cut"] == 3


def test_refusals(cli, folders, tmp_path):
    big, small = folders
    ResNetModel(ResNetConfig(embedding_size=8, hidden_sizes=[8], depths=[1])).save_pretrained(
        tmp_path / "none"
    )
    (tmp_path / "file").touch()
    words = ("--tokenizer", big)
    for code, tokens, said in (
        (2, (big, "--text", " "), "The text is empty"),
        (2, (big,), "one text or one image"),
        (2, (small, big, "--text", TEXT), "which the first has not"),
        (2, (big, "pocket", "--text", TEXT), "different"),
        (2, (big, "--text", TEXT, "--layer", 3), "no layer 3: this model's heads per layer are"),
        (2, (big, "--text", TEXT, "--head", 4), "no head 4"),
        (2, (big, "--text", TEXT, "--stack", "decodr"), "decodr"),
        (2, (big, "--text", TEXT, "--out", tmp_path / "file"), "is a file"),
        (4, (tmp_path / "nothing", "--text", TEXT), "nothing"),
        (5, (tmp_path / "none", "--text", TEXT, *words), "no attention heads in ResNetModel"),
    ):
        ran = cli("attention", *tokens)
        assert (ran.code, ran.out) == (code, ""), ran.err
        assert said in ran.err


def test_an_image_is_drawn_over(cli: Any, tmp_path: Path) -> None:
    write_images(tmp_path / "images", train=1, dev=1)
    write_vit(tmp_path / "vit")
    image = tmp_path / "images/dev/ring/0.png"
    ran = cli("remove", tmp_path / "vit", "--keep", "21", "--out", tmp_path / "small")
    assert ran.code == 0, ran.err
    ran = cli("attention", tmp_path / "vit", tmp_path / "small", "--image", image,
              "--out", tmp_path / "maps", "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["picture"] == {"rows": 4, "columns": 4, "start": 1}
    assert [row["after"] is None for row in found["heads"]] == [False, False, False, True]
    with np.load(tmp_path / "maps" / "attention.npz") as arrays, Image.open(image) as opened:
        np.testing.assert_array_equal(arrays["picture"], np.asarray(opened))
    drawn = (tmp_path / "maps" / "attention.svg").read_text(encoding="utf-8")
    assert "What the class token attends to, over 0.png." in drawn
    ran = cli("attention", tmp_path / "vit", "--image", image, "--layer", 1, "--head", 0,
              "--out", tmp_path / "one")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "layer 1, head 0" in (tmp_path / "one/attention.svg").read_text(encoding="utf-8")
    for words, message in (
        (("--image", image, "--text", "x"), "one text or one image"),
        (("--image", image, "--target", "x"), "An image has no pair"),
        (("--image", tmp_path / "none.png"), "There is no file"),
    ):
        ran = cli("attention", tmp_path / "vit", *words)
        assert ran.code in (2, 4), (words, ran.err)
        assert message in ran.err
