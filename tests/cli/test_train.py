from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from headcount.cli import progress
from headcount.models.shipped import locate
from headcount.tasks.generated import SIZES
from headcount.training.trainer import TaskTrainer
from training.conftest import pets, tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and pets as train.csv and dev.csv."""
    made = tmp_path_factory.mktemp("pets")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(made / "model")
    tokenizer.save_pretrained(made / "model")
    (made / "data").mkdir()
    for split in ("train", "dev"):
        rows = pets().load(split)
        names = [["cat", "dog"][i] for i in rows.labels]  # type: ignore[union-attr]
        lines = [f"{text},{name}" for text, name in zip(rows.texts[0], names, strict=True)]
        (made / "data" / f"{split}.csv").write_text("text,pet\n" + "\n".join(lines) + "\n")
    return made


def words(folder: Path, *more: object) -> list[object]:
    data = ["--data", folder / "data", "--columns", "text", "--label", "pet"]
    return [folder / "model", "--task", "classification", *data, *more]


FAST = ["--epochs", 6, "--batch-size", 16, "--learning-rate", 3e-3, "--warmup", 0.1]


def test_train_evaluate_and_again(cli: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    line = ["train", *words(folder, *FAST, "--out", out, "--json")]
    ran = cli(*line)
    assert ran.code == 0, ran.err
    assert ran.err == ""
    result = json.loads(ran.out)
    assert result["steps"] == 36
    assert result["evaluation"]["score"] > 0.9
    assert result["evaluation"]["low"] <= result["evaluation"]["score"]
    again = cli(*line)
    assert json.loads(again.out) == result
    settings = words(folder)[1:]
    scored = cli("evaluate", out, *settings, "--json", "--predictions", tmp_path / "p.parquet")
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)["score"] == result["evaluation"]["score"]
    assert (tmp_path / "p.parquet").is_file()
    table = cli(*line[:-1])
    assert "dev accuracy" in table.out
    other = [1e-5 if word == 3e-3 else word for word in line]
    refused = cli(*other)
    assert refused.code == 2
    assert "learning_rate was 0.003, now 1e-05" in refused.err
    assert cli(*line, "--steps", 1, "--overwrite").code == 0


def test_a_preset_changes_only_where_nothing_was_typed() -> None:
    from headcount.cli.train import TrainingFlags
    from headcount.training.options import PRESETS, TrainOptions

    typed = TrainingFlags(epochs=3.0, schedule="linear")
    chosen = typed.on(PRESETS["translation"])
    assert (chosen.epochs, chosen.schedule) == (3.0, "linear")
    assert chosen.beta2 == PRESETS["translation"].beta2
    assert TrainingFlags().on(PRESETS["finetune"]) == TrainOptions()


def test_the_preset_and_options_reach_the_plan(cli: Callable[..., Any], folder: Path) -> None:
    line = ["train", *words(folder, "--out", "x", "--dry-run", "--json")]
    plain = json.loads(cli(*line).out)
    assert (plain["rows"], plain["steps"], plain["class"]) == (
        96,
        9,
        "BertForSequenceClassification",
    )
    preset = json.loads(cli(*line, "--preset", "translation", "--epochs", 2, "--rows", 10).out)
    assert preset["rows"] == 10
    assert preset["options"]["beta2"] == 0.997
    assert preset["options"]["epochs"] == 2
    assert not Path("x").exists()
    fraction = json.loads(cli(*line, "--fraction", 0.5).out)
    assert fraction["rows"] == 48


def test_from_scratch_with_a_config_and_a_tokenizer(
    cli: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.txt").write_text("the small dog sees a big cat .\n" * 20)
    line = ["train", folder / "model" / "config.json", "--from-scratch", "--tokenizer"]
    line += [folder / "model", "--task", "masked-lm", "--train", tmp_path / "train.txt"]
    line += ["--attention-dropout", 0.3, "--steps", 2, "--out", tmp_path / "run", "--json"]
    ran = cli(*line)
    assert ran.code == 0, ran.err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["attention_probs_dropout_prob"] == 0.3
    assert config["architectures"] == ["BertForMaskedLM"]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--task", "clasification"], 2, "Did you mean 'classification'?"),
        (["--data", "/no/such/folder"], 4, "There is no folder"),
        (["--columns", "txt"], 2, "no column txt. Did you mean 'text'?"),
        (["--batch-size", "0"], 2, "batch_size must be at least 1"),
        (["--rows", "3", "--fraction", "0.5"], 2, "not both"),
        (["--device", "warp"], 2, "no device 'warp'"),
        (["--freeze", "9"], 2, "Cannot freeze 9 layers: the model has 3"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_wrong_usage(
    change: list[str],
    code: int,
    message: str,
    cli: Callable[..., Any],
    folder: Path,
    tmp_path: Path,
) -> None:
    line = words(folder, "--out", tmp_path / "run")
    if change[0] in map(str, line):
        at = [str(word) for word in line].index(change[0])
        line[at : at + 2] = change
    else:
        line += change
    ran = cli("train", *line)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert ran.out == ""


def test_no_model_and_no_network(cli: Callable[..., Any], tmp_path: Path) -> None:
    ran = cli("train", tmp_path / "none", "--task", "pocket-sentiment", "--out", tmp_path / "x")
    assert ran.code == 4
    ran = cli("train", locate("pocket-bert"), "--task", "sst2", "--out", tmp_path / "x")
    assert ran.code == 4, ran.err


def test_translation_from_scratch_with_a_new_tokenizer(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIZES, "dev", 12)  # every row is translated when training is done
    config = {"model_type": "marian", "d_model": 32, "encoder_layers": 1, "decoder_layers": 1}
    config |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32}
    config |= {"decoder_ffn_dim": 32, "max_position_embeddings": 64}
    (tmp_path / "config.json").write_text(json.dumps(config))
    line = ["train", tmp_path / "config.json", "--task", "pocket-translation", "--size", 32]
    line += ["--preset", "translation", "--batch-size", 16, "--accumulate", 2, "--steps", 2]
    line += ["--from-scratch", "--out", tmp_path / "run", "--rows", 20, "--json"]
    refused = cli(*line, "--new-tokenizer", 300, "--tokenizer", locate("pocket-translator"))
    assert refused.code == 2
    assert "without --tokenizer" in refused.err
    ran = cli(*line, "--new-tokenizer", 300)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["evaluation"]["metric"] == "bleu"
    assert "tok:13a" in json.loads(ran.out)["evaluation"]["signature"]
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["vocab_size"] == 300
    settings = ["--task", "pocket-translation", "--limit", 3, "--beams", 2, "--json"]
    scored = cli("evaluate", tmp_path / "run", *settings)
    assert scored.code == 0, scored.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], "no checkpoint was saved yet, so the same command starts over; --save-minutes and"),
        (["--save-every", 2], "the same command again goes on from step 2 in "),
        (["--save-minutes", 1e-9], "the same command again goes on from step 3 in "),
    ],
)
def test_an_interruption_tells_the_truth(
    more: list[Any],
    told: str,
    cli: Callable[..., Any],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, passes = TaskTrainer.training_step, []

    def step(self: Any, *args: Any, **more: Any) -> Any:
        passes.append(0)
        if len(passes) == 4:
            raise KeyboardInterrupt
        return real(self, *args, **more)

    monkeypatch.setattr(TaskTrainer, "training_step", step)
    line = ["train", *words(folder, *FAST, *more, "--out", tmp_path / "run", "--json")]
    ran = cli(*line)
    assert ran.code == 130
    assert told in ran.err
    assert ran.err.endswith("headcount: Interrupted.\n")


def test_without_a_terminal_it_says_how_far_it_is(
    cli: Callable[..., Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, told = TaskTrainer.training_step, threading.Event()

    def say(text: str) -> None:
        if "headcount train, " in text and "training on classification, 1 of 2, loss " in text:
            told.set()

    def step(self: Any, *args: Any, **more: Any) -> Any:
        if self.state.global_step:
            assert told.wait(60)  # a line, while the second step takes its time
        return real(self, *args, **more)

    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setattr(progress, "say", say)
    monkeypatch.setattr(TaskTrainer, "training_step", step)
    line = words(folder, "--steps", 2, "--log-every", 1, "--out", tmp_path / "run")
    assert cli("train", *line).code == 0
