"""The first table of docs/real.md has a row for every kind of task, and what it says runs."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoTokenizer, BertConfig, LlamaConfig, T5Config

from headcount.models.shipped import locate
from headcount.tasks.kinds import TASK_KINDS
from snippets import ROOT
from tasks.media import write_images, write_vit
from tasks.sounds import write_ctc, write_speech

TABLE = (ROOT / "docs/real.md").read_text(encoding="utf-8").split("\n\n")[1]
COMMANDS = {
    re.findall(r"--task (\S+)", command)[0]: command
    for command in re.findall(r"`headcount (search [^`]+)`", TABLE)
}
FEW = "--methods magnitude --calibration-samples 8 --seeds 1 --baseline 0 --no-bench"
SAID = [
    f"the {who} sees the {whom} ."
    for who in ("cat", "king", "dog", "bird", "judge", "baker")
    for whom in (a + b for a in "abcdefghijkl" for b in "vwxyz")
]
HALF = len(SAID) // 2


def test_every_kind_has_a_row() -> None:
    assert sorted(COMMANDS) == sorted(entry.name for entry in TASK_KINDS)
    assert len(re.findall("^[|] (?!your model|---)", TABLE, re.M)) == len(COMMANDS)


@pytest.mark.parametrize("kind", COMMANDS)
def test_what_the_table_says_runs(
    kind: str, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(kind, Path("model"))
    write_data(kind)
    ran = cli(*shlex.split(COMMANDS[kind].replace("MODEL", "model", 1)), *FEW.split())
    assert ran.code in (0, 6), ran.err  # 6: not within the loss, on so few rows
    assert Path("small/search.json").is_file()


BERT = {
    "classification": "BertForSequenceClassification",
    "regression": "BertForSequenceClassification",
    "token-classification": "BertForTokenClassification",
    "question-answering": "BertForQuestionAnswering",
    "masked-lm": "BertForMaskedLM",
}
NAMES = {"classification": ["no", "yes"], "token-classification": ["O", "B-who"]}


def write_model(kind: str, folder: Path) -> None:
    """A model of this kind with random weights, and what makes its inputs."""
    if kind == "image-classification":
        write_vit(folder)
        return
    if kind == "speech-recognition":
        write_ctc(folder)
        return
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    common: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": 0}
    if kind in ("causal-lm", "multiple-choice"):
        name, config = "LlamaForCausalLM", LlamaConfig(
            hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=512, **common,
        )  # fmt: skip
    elif kind in ("text-to-text", "translation"):
        name, config = "T5ForConditionalGeneration", T5Config(
            d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, decoder_start_token_id=0,
            eos_token_id=tokenizer.sep_token_id, **common,
        )  # fmt: skip
    else:
        labels = NAMES.get(kind, ["score"] if kind == "regression" else ["a", "b"])
        name, config = BERT.get(kind, "BertModel"), BertConfig(
            hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=400, id2label=dict(enumerate(labels)),
            label2id={label: number for number, label in enumerate(labels)}, **common,
        )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        getattr(transformers, name)(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_table(path: str, names: list[str], rows: list[list[Any]]) -> None:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])


def write_data(kind: str) -> None:
    """Data as the row of the table names them."""
    halves = {"train": SAID[:HALF], "dev": SAID[HALF:]}
    if kind == "image-classification":
        write_images(Path("FOLDER"))
    elif kind == "speech-recognition":
        write_speech(Path("FOLDER"), dev=130)
    elif kind == "multiple-choice":
        rows = [{"prompt": text, "choices": ["good", "bad"], "answer": 0} for text in SAID]
        Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    elif kind == "similarity":
        rows = [[text, SAID[0], number] for number, text in enumerate(SAID)]
        write_table("pairs.csv", ["FIRST", "SECOND", "NUMBER"], rows)
    elif kind == "text-to-text":
        write_table("pairs.csv", ["SOURCE", "TARGET"], [[text, text[4:]] for text in SAID])
    elif kind == "question-answering":
        for split, texts in halves.items():
            paragraphs = [
                {"context": text, "qas": [{"id": text, "question": "who ?", "answers": [
                    {"text": text.split()[1], "answer_start": 4}]}]}
                for text in texts
            ]  # fmt: skip
            data = {"version": "1.1", "data": [{"title": "x", "paragraphs": paragraphs}]}
            Path(f"{split}.json").write_text(json.dumps(data))
    else:
        Path("FOLDER").mkdir()
        Path("texts.txt").write_text("\n".join(SAID))
        lines = np.random.default_rng(0).choice(" ".join(SAID).split(), (22000, 9))
        Path("text.txt").write_text("\n".join(map(" ".join, lines)))
        for split, texts in halves.items():
            rows = [[text, ["no", "yes"][n % 2], n % 5] for n, text in enumerate(texts)]
            if kind == "token-classification":
                tagged = [f"the O\n{text.split()[1]} B-who\nsees O\n" for text in texts]
                Path(f"FOLDER/{split}.conll").write_text("\n".join(tagged))
            elif kind == "translation":
                for language in ("en", "de"):
                    Path(f"FOLDER/{split}.{language}").write_text("\n".join(texts))
            elif kind == "retrieval":
                found = [
                    f"q{n}\td{n}\t1\n" for n in range(len(SAID)) if (n < HALF) == (split == "train")
                ]
                Path("FOLDER/qrels").mkdir(exist_ok=True)
                for name, letter in (("corpus", "d"), ("queries", "q")):
                    lines = [json.dumps({"_id": f"{letter}{n}", "title": "", "text": text})
                             for n, text in enumerate(SAID)]  # fmt: skip
                    Path(f"FOLDER/{name}.jsonl").write_text("\n".join(lines))
                Path(f"FOLDER/qrels/{split}.tsv").write_text(
                    "query-id\tcorpus-id\tscore\n" + "".join(found)
                )
            else:
                write_table(f"FOLDER/{split}.csv", ["TEXT", "CLASS", "SCORE"], rows)
