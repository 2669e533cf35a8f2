from __future__ import annotations

import json
import shutil
import sys
from collections import Counter

import pytest
import torch
from transformers import AutoTokenizer, BertForMaskedLM, ResNetConfig, ResNetModel

import headcount as hc
from headcount.models.load import load
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.rows import labelled_rows
from models.zoo import build
from training.conftest import tiny

TASK = (
    "--task",
    "pocket-sentiment",
    "--calibration-samples",
    30,
    "--importance-samples",
    20,
    "--limit",
    30,
)
BOTH = (*TASK, "--pretraining-task", "pocket-corpus")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A tiny masked LM, and what fine-tuning might have made of it."""
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    made = tmp_path_factory.mktemp("models")
    after = tiny(tokenizer)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        before = BertForMaskedLM(after.config).eval()
        before.bert.load_state_dict(after.bert.state_dict(), strict=False)
        # it only ever says one of the usual words, so that it is right now and then
        texts = open_task("pocket-corpus").load(limit=50).texts[0]
        words = Counter(word for ids in tokenizer(list(texts))["input_ids"] for word in ids[1:-1])
        before.cls.predictions.bias[[word for word, _ in words.most_common(6)]] = 5.0
        for place, layer in enumerate(after.bert.encoder.layer):
            for parameter in layer.parameters():
                parameter.add_(0.02 * (place + 1) * torch.randn(parameter.shape))
    for name, model in (("before", before), ("after", after)):
        model.save_pretrained(made / name)
        tokenizer.save_pretrained(made / name)
    return made / "before", made / "after"


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("the king sees a cat\n\na small dog\nthe queen is near the young baker\n")
    return file


def test_the_command_does_as_the_function(cli, folders):
    ran = cli("transfer", *folders, *BOTH, "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    found = json.loads(ran.out)
    first, second = (load(folder) for folder in folders)
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    task = open_task("pocket-sentiment")
    texts = list(task.load(limit=600).texts[0])
    scores = hc.importance(
        second, labelled_rows(second, task, tokenizer, limit=20), normalize="l1", kind=task.kind
    )
    expected = hc.transfer(first, second, texts, tokenizer=tokenizer, samples=30, importance=scores)
    assert found["drift"]["n"] == 30
    drift = found["drift"]["attention"]["encoder"]
    for one, other in zip(drift, expected.drift.attention.by_layer()["encoder"], strict=True):
        assert one == pytest.approx(other, rel=1e-5)
    assert found["weight_change"]["heads"] == expected.change.total.by_layer()
    line = found["correlations"]["pocket-sentiment"]
    assert line["pearson"] == pytest.approx(expected.correlations["importance"].pearson, rel=1e-4)
    assert set(found["correlations"]) == {"pocket-sentiment", "pocket-corpus"}
    assert found["trends"]["encoder"]["weights"]["spearman"] == 1  # deeper layers moved more
    assert "recall" not in found


def test_recall_and_files(cli, folders, tmp_path):
    more = ("--recall", "--points", 6, "--out", tmp_path / "out", "--json")
    ran = cli("transfer", *folders, *BOTH, *more)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert json.loads((tmp_path / "out" / "transfer.json").read_text()) == found
    task, pretraining = found["rankings"]
    assert [row["kept"] for row in task["scores"]] == [12, 10, 8, 6, 4, 2, 0]
    assert task["scores"][0]["relative"] == 1
    heads = [(layer, head) for layer in range(3) for head in range(4)]

    def best(ranking, share):
        """The heads that are needed, by hand."""
        scores = ranking["importance"]["encoder"]
        count = 12
        for row in ranking["scores"]:
            if row["relative"] < share:
                break
            count = row["kept"]
        order = sorted(heads, key=lambda at: scores[at[0]][at[1]])
        return set(order[12 - count :])

    for row in found["recall"]:
        wanted, kept = best(task, 0.9), best(pretraining, row["at"])
        assert row["value"] == (pytest.approx(len(wanted & kept) / len(wanted)) if wanted else None)
        assert row["chance"] == pytest.approx(len(kept) / 12)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    figures = ("attention_drift", "weight_change", "layers", "drift_importance", "recall")
    assert names == {"transfer.json"} | {
        f"{name}.{ending}" for name in figures for ending in ("png", "svg")
    }


def test_the_table(cli, folders, lines):
    ran = cli("transfer", *folders, "--calibration", lines)
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert "3 inputs (lines.txt)" in ran.out
    assert ran.out.count("encoder ") == 3
    assert "|Δ q,k,v|" in ran.out
    assert "Spearman correlation of depth with" in ran.out
    assert "% of their mean" in ran.out
    ran = cli("transfer", *folders, *BOTH, "--recall", "--points", 2)
    assert "drift and importance on pocket-corpus: r =" in ran.out
    assert "p of chance" in ran.out


def test_without_matplotlib_only_the_figures_are_missing(
    cli, folders, lines, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = cli("transfer", *folders, "--calibration", lines, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "There will be no figures." in ran.err
    assert "|Δ q,k,v|" in ran.out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["transfer.json"]


def test_a_model_against_itself_on_random_tokens(cli, folders):
    ran = cli("transfer", folders[0], folders[0], "--random", 5, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert {row["mean"] for row in found["drift"]["layers"]} == {0}
    assert {row["hidden"] for row in found["drift"]["layers"]} == {0}
    assert found["weight_change"]["spread"] == {"encoder": 0, "all": 0}
    assert found["trends"]["encoder"]["attention"]["pearson"] is None
    assert found["inputs"] == "random tokens"


def test_masked_lm_against_masked_lm(cli, folders, tmp_path):
    texts = list(open_task("pocket-corpus").load(limit=240).texts[0])
    for name, part in (("one", texts[:120]), ("two", texts[120:])):
        (tmp_path / name).write_text("\n".join(part))
    ran = cli(
        "transfer", folders[0], folders[0], "--task", "masked-lm", "--data", tmp_path / "one",
        "--pretraining-task", "masked-lm", "--pretraining-data", tmp_path / "two",
        "--recall", "--points", 2, "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert set(found["correlations"]) == {"masked-lm", "pre-training masked-lm"}
    assert [each["task"] for each in found["rankings"]] == ["masked-lm", "pre-training masked-lm"]


def test_a_dry_run(cli, folders):
    ran = cli("transfer", *folders, *TASK, "--dry-run", "--json")
    assert json.loads(ran.out) == {
        "classes": "BertForMaskedLM, BertForSequenceClassification",
        "inputs": "30 (pocket-sentiment)",
        "recall": False,
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--recall", *TASK), "pass --task and --pretraining-task"),
        (("--calibration", "x", "--random", 3), "not both"),
        (("--pretraining-data", "x"), "goes with --pretraining-task"),
        (("--split", "dev"), "need --task"),
        ((*BOTH, "--share", 1.5), "above 0 and at most 1, not 1.5"),
        ((*BOTH, "--points", 0), "At least one number of heads"),
        ((*TASK, "--normalize", "l3"), "none, l1 or l2"),
        (("--task", "pocket-sentimen"), "Did you mean 'pocket-sentiment'"),
        (("--random", 0), "at least"),
        (("--pretraining-task", "pocket-sentiment"), "without a head for classification"),
    ],
)
def test_wrong_usage(cli, folders, more, said):
    ran = cli("transfer", *folders, *more)
    assert ran.code == 2, ran.err
    assert said.lower() in ran.err.lower()
    assert ran.out == ""
    assert ran.err.count("\n") == 1


def test_an_empty_file_and_none(cli, folders, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    ran = cli("transfer", *folders, "--calibration", empty)
    assert (ran.code, ran.out) == (2, "")
    assert "has no lines with text" in ran.err
    assert cli("transfer", *folders, "--calibration", tmp_path / "none.txt").code == 4
    (tmp_path / "file").write_text("in the way")
    file = cli("transfer", *folders, "--calibration", empty, "--out", tmp_path / "file")
    assert file.code == 2
    assert "is a file, not a folder" in file.err


def test_a_missing_folder(cli, folders, tmp_path):
    for pair in ((tmp_path / "none", folders[1]), (folders[0], tmp_path / "none")):
        ran = cli("transfer", *pair, "--random", 3)
        assert (ran.code, ran.out) == (4, "")
        assert "none" in ran.err


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: build("roberta"), "a 'bert' and the second a 'roberta'"),
        (lambda: build("bert", num_hidden_layers=2), "different heads"),
    ],
)
def test_two_different_models(cli, folders, tmp_path, other, said):
    other().save_pretrained(tmp_path / "other")
    ran = cli("transfer", folders[0], tmp_path / "other", "--random", 3)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_two_vocabularies(cli, folders, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    tiny(tokenizer, vocab_size=len(tokenizer) + 3).save_pretrained(tmp_path / "larger")
    ran = cli("transfer", folders[0], tmp_path / "larger", "--random", 3)
    assert ran.code == 2
    assert "different vocabularies" in ran.err
    shutil.copytree(folders[1], tmp_path / "swapped")
    file = tmp_path / "swapped" / "tokenizer.json"
    words = json.loads(file.read_text())
    vocabulary = words["model"]["vocab"]
    one, other = list(vocabulary)[-2:]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    file.write_text(json.dumps(words))
    ran = cli("transfer", folders[0], tmp_path / "swapped", "--random", 3)
    assert ran.code == 2
    assert "their tokenizers do not agree" in ran.err
    ran = cli(
        "transfer", folders[0], tmp_path / "swapped", "--random", 3, "--tokenizer", folders[0]
    )
    assert ran.code == 0, ran.err


def test_weights_that_are_no_numbers(cli, folders, tmp_path):
    broken = load(folders[1])
    with torch.no_grad():
        broken.bert.encoder.layer[0].output.dense.bias[0] = float("nan")
    broken.save_pretrained(tmp_path / "broken")
    ran = cli("transfer", folders[0], tmp_path / "broken", "--random", 3)
    assert (ran.code, ran.out) == (2, "")
    assert "output.dense.bias of the second model are not all numbers" in ran.err


def test_a_model_without_attention(cli, folders, tmp_path):
    tiny_net = ResNetModel(ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1]))
    tiny_net.save_pretrained(tmp_path / "net")
    ran = cli("transfer", tmp_path / "net", tmp_path / "net", "--random", 3)
    assert (ran.code, ran.out) == (5, "")
    assert "no attention heads" in ran.err
