"""Exports as a whole; what each kind writes is tested beside it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    dynamic_module_utils,
)

from exports.exporting import numpy, pruned
from headcount.base.errors import HeadcountError, UnsupportedError, UsageError
from headcount.exports import checkpoint as export_checkpoint
from headcount.exports import graph as export_graph
from headcount.exports.export import export
from headcount.exports.formats import FORMATS
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.probe import relative_difference
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.encoding import encode
from training.conftest import tiny


def test_a_wrong_export_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    right = export_checkpoint._places

    def wrong(model, sites):
        for number, places in right(model, sites):
            # only where the heads come together: all turned around alike would be right again
            yield number, [(axis, rows[::-1] if axis else rows) for axis, rows in places]

    monkeypatch.setattr(export_checkpoint, "_places", wrong)
    with pytest.raises(UnsupportedError, match=r"cannot export Bert.* differ from the model's by"):
        export(pruned("bert"), "zeroed", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_tokenizer_and_card_travel_along(tmp_path):
    small = pruned("bert")
    small.save_pretrained(tmp_path / "small")
    (tmp_path / "small" / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    for to in ("zeroed", "standalone"):
        done = export(load(tmp_path / "small"), to, tmp_path / to)
        assert "vocab.txt" in done.files
        card = (tmp_path / to / "README.md").read_text()
        assert "AutoModelForSequenceClassification.from_pretrained" in card
        assert "| encoder 1 | 4 | 2 | 1, 3 |" in card
        assert ("trust_remote_code=True" in card) == (to == "standalone")
        assert done.bytes == sum(file.stat().st_size for file in (tmp_path / to).iterdir())
        assert Path(done) == tmp_path / to


# --- a model with all its heads ---


# --- what is refused at the door ---


def test_bad_input(tmp_path):
    model = pruned("bert")
    with pytest.raises(UsageError, match=r"no export format 'zeroes'. Did you mean 'zeroed'\?"):
        export(model, "zeroes", tmp_path / "out")
    with pytest.raises(UsageError, match="takes a transformers model, not Linear"):
        export(torch.nn.Linear(2, 2), "zeroed", tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        export(model, "zeroed", tmp_path / "full")
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(HeadcountError):
            export(model, "zeroed", place)
    with torch.no_grad():
        model.bert.encoder.layer[3].attention.output.dense.bias[0] = float("nan")
    with pytest.raises(UsageError, match=r"weights in bert.*bias are not all numbers"):
        export(model, "zeroed", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


# --- graphs; benchmarks/coverage/exports.py does this for every family ---


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    """A pruned BERT that hears its segments well, saved, and rows of pairs with its own labels."""
    folder = tmp_path_factory.mktemp("paired") / "small"
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    model = tiny(tokenizer, num_hidden_layers=2)
    seeded = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.bert.embeddings.token_type_embeddings.weight.normal_(std=0.1, generator=seeded)
    mask = Mask.full(layout(model)).drop([("encoder", 0, 1), ("encoder", 1, 0), ("encoder", 1, 3)])
    remove(model, mask).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    small = load(folder)
    task = open_task("pocket-paraphrase")
    rows = encode(task, task.load("dev", limit=48), tokenizer)
    logits = answered(lambda batch: small(**batch).logits, rows)
    small.classifier.bias.data -= logits.mean(0)  # about as many rows of each class
    small.save_pretrained(folder)
    return folder, rows, (logits - logits.mean(0)).argmax(1)


def answered(answer, rows):
    """(row, class) the logits of all rows, in their order."""
    logits = {}
    with torch.no_grad():
        for numbers, batch in rows.batches(256):
            batch.pop("labels")
            logits |= dict(zip(numbers.tolist(), answer(batch), strict=True))
    return torch.stack([logits[row] for row in range(len(rows))])


def opened(folder, to):
    """The export as a function from a batch to logits, loaded as its card says."""
    if to == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(folder / "model.onnx")
        return lambda batch: torch.from_numpy(session.run(None, numpy(batch))[0])
    if to == "torch-export":
        graph = torch.export.load(folder / "model.pt2").module()
        return lambda batch: graph(**batch)["logits"]
    kind = AutoModelForSequenceClassification
    again = kind.from_pretrained(folder, trust_remote_code=to == "standalone")
    return lambda batch: again(**batch).logits


# language models, and as many heads in every layer: tests/exports/ has a file for each of these
OTHERS = {"gguf", "vllm", "onnx-cache", "stock"}


@pytest.mark.parametrize("to", [entry.name for entry in FORMATS if entry.name not in OTHERS])
def test_an_export_scores_text_pairs_as_the_model_does(to, paired, tmp_path, monkeypatch):
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder, rows, labels = paired
    small = load(folder)
    own = answered(lambda batch: small(**batch).logits, rows)
    deaf = answered(
        lambda batch: small(batch["input_ids"], batch["attention_mask"]).logits, rows
    ).argmax(1)
    assert (deaf == labels).float().mean() < 0.8, "the segments do not matter"
    done = export(small, to, tmp_path / "out")
    found = answered(opened(tmp_path / "out", to), rows)
    assert (found.argmax(1) == labels).all()
    # the bias took most of the logits away, so rounding in onnxruntime shows more than elsewhere
    bar = 1e-4 if to == "onnx" else 1e-5
    assert relative_difference([own], [found]) <= bar
    assert done.difference <= bar
    # the card's own code, on the folder where it lies
    card = (tmp_path / "out" / "README.md").read_text()
    code = card.split("```python\n")[1].split("```")[0]
    answers: dict = {}
    exec(code.replace("path/to/this/folder", str(tmp_path / "out")), answers)
    given = answers["answers"]
    logits = torch.as_tensor(given[0] if to == "onnx" else given["logits"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pair = tokenizer("a text", "another text", return_tensors="pt")
    assert relative_difference([small(**pair).logits.detach()], [logits.detach()]) <= bar
    assert "text pairs, tokenised and padded" in card


def test_an_export_that_drops_an_input_is_refused(paired, tmp_path, monkeypatch):
    def without(model, inputs, right=export_graph.named_answers):
        made = right(model, inputs)
        forward = type(made).forward

        def deaf(self, **given):
            zeros = torch.zeros_like(given["token_type_ids"])
            return forward(self, **(given | {"token_type_ids": zeros}))

        deaf.__signature__ = inspect.signature(forward)
        type(made).deaf = deaf
        return made

    def deaf_trace(answers, inputs, right=export_graph.traced):
        type(answers).forward, hearing = type(answers).deaf, type(answers).forward
        try:
            return right(answers, inputs)
        finally:
            type(answers).forward = hearing

    monkeypatch.setattr(export_graph, "named_answers", without)
    monkeypatch.setattr(export_graph, "traced", deaf_trace)
    with pytest.raises(UnsupportedError, match=r"torch.export: its answers differ"):
        export(load(paired[0]), "torch-export", tmp_path / "out")
