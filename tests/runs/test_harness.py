"""lm-evaluation-harness on models in memory: its numbers, paired differences, and refusals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headcount as hc
from headcount.base.errors import HeadcountError, UsageError
from headcount.models.model_options import ModelOptions
from headcount.models.shipped import locate
from headcount.runs.harness import compare_items, run_harness
from headcount.runs.kinds.lm_eval import LmEval
from headcount.tasks.loading import load_tokenizer
from models.zoo import build

TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{validation: {rows}}}}}
validation_split: validation
output_type: {kind}
doc_to_text: "{text}"
doc_to_target: {target}
metric_list: [{metrics}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder, half of it, and two local tasks on the same 64 sentences."""
    path = tmp_path_factory.mktemp("harness")
    words = load_tokenizer("pocket-bert")
    model = build("llama", vocab_size=len(words), num_hidden_layers=2, pad_token_id=0)
    half = hc.remove(model, hc.select(model, "random", 0.5))
    for name, one in (("llm", model), ("half", half)):
        one.save_pretrained(path / name)
        words.save_pretrained(path / name)
    rng = np.random.default_rng(0)
    nouns = ["cat", "dog", "king", "queen"]
    rows = []
    for _ in range(64):
        first, second = rng.choice(nouns, 2, replace=False)
        rows.append(
            {
                "q": f"the small {first} is",
                "options": [first, f"{second} with a dog"],
                "right": int(rng.integers(2)),
                "text": f"the {first} near a {second}",
            }
        )
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = path / "tasks"
    tasks.mkdir()
    choice = TASK.format(
        name="again", rows=path / "rows.jsonl", kind="multiple_choice", text="{{q}}",
        target="right", metrics="{metric: acc}, {metric: acc_norm}",
    )  # fmt: skip
    (tasks / "again.yaml").write_text(f"{choice}doc_to_choice: options\n")
    (tasks / "text.yaml").write_text(
        TASK.format(
            name="text-of-ours",
            rows=path / "rows.jsonl",
            kind="loglikelihood_rolling",
            text="",
            target="text",
            metrics="{metric: word_perplexity}, {metric: bits_per_byte}",
        )
    )
    (tasks / "hub.yaml").write_text(
        "task: of-the-hub\ndataset_path: nobody/has-this\ntest_split: test\n"
        "output_type: multiple_choice\ndoc_to_text: q\ndoc_to_target: right\n"
        "doc_to_choice: options\nmetric_list: [{metric: acc}]\n"
    )
    return path


def test_two_models_are_compared_item_by_item(folder: Path) -> None:
    options = LmEval(tasks=("again", "text-of-ours"), include_path=folder / "tasks")
    before = random.getstate(), torch.get_rng_state()
    outputs = [
        run_harness(str(folder / name), options, ModelOptions(), seed=0) for name in ("half", "llm")
    ]
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    mine, other = (output.tables for output in outputs)
    choice, text = compare_items(mine, other, bootstrap=400, seed=0)
    scores = {score.metric: score for score in choice.scores}
    assert set(scores) == {"acc", "acc_norm"}
    for metric, score in scores.items():
        values = [
            np.array([float(sample[metric]) for sample in tables["samples"]["again"]])
            for tables in (mine, other)
        ]
        assert score.n == 64
        assert score.value == pytest.approx(values[0].mean())
        assert score.against == pytest.approx(values[1].mean())
        assert score.difference == pytest.approx((values[0] - values[1]).mean())
        assert score.low is not None
        assert score.high is not None
        spread = 1.96 * (values[0] - values[1]).std() / 8
        assert score.low < score.difference < score.high
        assert score.low > score.difference - 2 * spread - 4 / 64  # where none differs, 3 / n
    for score in text.scores:
        pairs = [sample[score.metric] for sample in mine["samples"]["text-of-ours"]]
        loss = -sum(pair[0] for pair in pairs) / sum(pair[1] for pair in pairs)
        wanted = np.exp(loss) if score.metric == "word_perplexity" else loss / np.log(2)
        assert score.value == pytest.approx(wanted)
        assert score.low is not None
        assert score.low <= score.difference <= score.high  # pyright: ignore[reportOperatorIssue]


def test_weights_that_are_apart_stay_apart(folder: Path, tmp_path: Path) -> None:
    """The harness ties what the config calls tied; a T5 may be saved with both."""
    words = load_tokenizer("pocket-bert")
    model = build("t5", vocab_size=len(words), num_layers=1, num_decoder_layers=1)
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach() + 1.0)
    model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    loaded = hc.load(tmp_path).lm_head.weight
    options = LmEval(tasks=("again",), include_path=folder / "tasks", limit=2)
    output: Any = run_harness(str(tmp_path), options, ModelOptions(), seed=0)
    assert not torch.equal(output.model.shared.weight, loaded)
    assert torch.equal(output.model.lm_head.weight, loaded)


@pytest.mark.parametrize(
    ("model", "task", "message"),
    [
        ("llm", "agan", "no task 'agan'. Did you mean 'again'"),
        ("llm", "of-the-hub", "rows of of-the-hub cannot be read .*dataset_path: json"),
        ("pocket-bert", "again", "was saved as BertForPreTraining, which writes no text"),
    ],
)
def test_what_cannot_be_scored(folder: Path, model: str, task: str, message: str) -> None:
    name = str(locate(model)) if model == "pocket-bert" else str(folder / model)
    with pytest.raises(HeadcountError, match=message):
        run_harness(
            name, LmEval(tasks=(task,), include_path=folder / "tasks"), ModelOptions(), seed=0
        )


def test_other_items_are_no_pairs() -> None:
    sample = {
        "doc_id": 0,
        "filter": "none",
        "doc_hash": "a",
        "prompt_hash": "b",
        "target_hash": "c",
    }
    one, two = (
        {"results": {"x": {}}, "samples": {"x": [sample | {"doc_hash": name}]}} for name in "ab"
    )
    with pytest.raises(UsageError, match="asked other items of x"):
        compare_items(one, two, bootstrap=0, seed=0)
