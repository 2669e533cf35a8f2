"""The registry of kinds, and that nothing else in the source knows one from another."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from headcount.base.errors import UnsupportedError, UsageError
from headcount.pruning.second_order import collect
from headcount.tasks import Examples, Task
from headcount.tasks.encoding import EncodedRows, encode, rows_fingerprint
from headcount.tasks.kinds import TASK_KINDS, kind_of, task_kind
from headcount.tasks.rows import labelled_rows
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune
from headcount.training.scored import scored_rows
from headcount.training.scoring import Scoring
from models.zoo import build
from training.conftest import tiny

SOURCE = Path(__file__).parents[2] / "src" / "headcount"
NAMES = {entry.name for entry in TASK_KINDS}


def compared(text: str) -> list[str]:
    """Where a source text compares with the name of a kind, or has a table by kinds."""
    found = []
    for node in ast.walk(ast.parse(text)):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict) and len(node.keys) > 1:
            parts = node.keys
        elif isinstance(node, ast.Match):
            parts = [each.pattern.value for each in node.cases if hasattr(each.pattern, "value")]
        for part in parts:
            inside = part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else [part]
            names = {each.value for each in inside if isinstance(each, ast.Constant)} & NAMES
            found += [f"{node.lineno}: {name}" for name in names]
    return found


ALLOWED = {
    "cli/early.py": "the tasks of own files, whose columns must be named, have the names of kinds",
    "models/config.py": "what head an Auto class brings, by the name of the head",
    "training/options.py": "the presets of training, one of which is called translation",
}


def test_no_name_of_a_kind_is_compared_outside_its_file() -> None:
    found = {
        str(path.relative_to(SOURCE)): compared(path.read_text(encoding="utf-8"))
        for path in SOURCE.rglob("*.py")
        if path.parent.name != "kinds" or path.parent.parent.name != "tasks"
    }
    assert {path for path, lines in found.items() if lines} == set(ALLOWED), found


@pytest.mark.parametrize(
    "text",
    [
        'if task.kind == "causal-lm": pass',
        'x = kind in ("masked-lm", "causal-lm")',
        'UNITS = {"regression": 1, "classification": 2}',
        'match kind:\n  case "text-to-text": pass',
    ],
)
def test_the_rule_sees_what_it_should(text: str) -> None:
    assert compared(text)
    assert not compared('Task(kind="causal-lm")')


def test_every_kind_says_the_name_it_is_registered_by() -> None:
    assert {name: task_kind(name).name for name in NAMES} == {name: name for name in NAMES}
    with pytest.raises(UsageError, match="Did you mean 'regression'"):
        task_kind("regresion")


def test_what_a_model_predicts_is_seen_from_its_answer() -> None:
    model = BertForSequenceClassification(
        BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    )
    whole, words = torch.tensor([0, 1]), torch.zeros(2, 3, 9)
    assert kind_of(model, torch.zeros(2, 3), whole).name == "classification"
    assert kind_of(model, torch.zeros(2, 3), whole.float()).name == "regression"
    assert kind_of(model, torch.zeros(2, 1), whole).name == "regression"
    assert kind_of(model, words, torch.zeros(2, 3)).name == "masked-lm"
    assert kind_of(build("gpt2", n_layer=1), words, torch.zeros(2, 3)).name == "causal-lm"
    t5 = build("t5", num_layers=1, num_decoder_layers=1)
    assert kind_of(t5, words, torch.zeros(2, 3)).name == "translation"
    ctc = type("WavForCTC", (torch.nn.Module,), {})()
    assert kind_of(ctc, words, torch.zeros(2, 5)).name == "speech-recognition"
    with pytest.raises(UnsupportedError, match="No kind of task has the answers of WavForCTC"):
        kind_of(ctc, torch.zeros(2), torch.zeros(2, 3))


WORDS = "the a small big young king queen baker near with".split()  # noqa: SIM905


@pytest.fixture
def choice(registered: None) -> Task:
    """A task of a kind of its own: which of two texts speaks of the dog?"""
    page = (Path(__file__).parents[2] / "docs" / "design.md").read_text(encoding="utf-8")
    code = next(part for part in page.split("```") if "class Choice(" in part)
    names: dict[str, Any] = {}
    exec(code.partition("\n")[2], names)
    TASK_KINDS.add("choice", names["Choice"], "one of two texts")

    def load(split: str) -> Examples:
        rng = np.random.default_rng(len(split))
        labels = rng.integers(0, 2, 40)
        texts = []
        for label in labels:
            pair = [list(rng.choice(WORDS, rng.integers(2, 9))) for _ in range(2)]
            pair[label].insert(1, "dog")
            pair[1 - label].insert(0, "cat")
            texts.append([" ".join(words) for words in pair])
        return Examples(tuple(zip(*texts, strict=True)), labels)

    return Task(
        name="which", kind="choice", texts=("first", "second"), labels=("first", "second"),
        metrics=("accuracy",), loader=load,
    )  # fmt: skip


def one_by_one(model: Any, tokenizer: Any, examples: Examples) -> np.ndarray:
    """(example, text) what the model says to each text alone."""
    with torch.no_grad():
        return np.array(
            [
                [float(model(**tokenizer(text, return_tensors="pt")).logits) for text in pair]
                for pair in zip(*examples.texts, strict=True)
            ]
        )


def test_rows_are_counted_as_examples(choice: Task, tokenizer: Any) -> None:
    model = tiny(tokenizer, num_labels=1)
    rows = labelled_rows(model, choice, tokenizer, limit=10, seed=3)
    assert (len(rows), rows.count, rows.kind) == (20, 10, "choice")
    assert rows_fingerprint(rows).startswith("10 rows")
    for numbers, batch in rows.batches(tokens=40):
        assert numbers.reshape(-1, 2).tolist() == [[n, n + 1] for n in numbers[::2]]
        assert batch["examples"].tolist() == (numbers // 2).tolist()
        longest = rows.lengths[numbers].max()
        assert len(numbers) * longest <= 40 or len(numbers) == 2
    scored = scored_rows(model, choice, tokenizer, Scoring(limit=8))
    assert (len(scored), len(scored.rows), len(scored.examples)) == (8, 16, 8)
    part = scored.take(np.array([5, 2]))
    assert part.examples.texts[0][0] == scored.examples.texts[0][5]
    assert part.rows.columns["input_ids"] == [
        scored.rows.columns["input_ids"][row] for row in (10, 11, 4, 5)
    ]
    assert part.rows.examples is not None
    assert part.rows.examples.tolist() == [0, 0, 1, 1]
    assert part.fingerprint != scored.fingerprint


def test_a_kind_of_two_rows_is_scored_by_example(choice: Task, tokenizer: Any) -> None:
    model = tiny(tokenizer, num_labels=1)
    heads = hc.layout(model)
    masks = [hc.Mask.full(heads), hc.Mask.parse("401", heads), hc.Mask.parse("421", heads)]
    examples = choice.load("dev")
    many = evaluate(model, choice, masks, tokenizer=tokenizer, tokens=64)
    for mask, found in zip(masks, many, strict=True):
        with hc.gate(model, mask):
            said = one_by_one(model, tokenizer, examples)
            alone = evaluate(model, choice, tokenizer=tokenizer)
        right = said.argmax(1) == examples.labels
        assert found.n == alone.n == 40
        assert found.score == alone.score == pytest.approx(right.mean())
    assert len({each.score for each in many}) > 1


def test_importance_is_of_an_examples_rows_together(choice: Task, tokenizer: Any) -> None:
    """Against one backward pass an example, its two texts through the same gates."""
    model = tiny(tokenizer, num_labels=1)
    heads = hc.layout(model)
    rows = labelled_rows(model, choice, tokenizer, limit=6)
    found = hc.importance(model, rows, tokens=30)
    assert (found.n, found.kind) == (6, "choice")
    total = np.zeros(len(heads))
    for number in range(6):
        part = rows.take([number])
        ((_, batch),) = part.batches()
        gates = {"encoder": [torch.ones(4, requires_grad=True) for _ in range(3)]}
        inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
        with hc.gate(model, gates):
            logits = model(**inputs).logits.view(1, 2)
        loss = torch.nn.functional.cross_entropy(logits, batch["labels"][:1])
        total += torch.cat(torch.autograd.grad(loss, gates["encoder"])).abs().numpy()
    np.testing.assert_allclose(found.values, total / 6, rtol=1e-4, atol=1e-7)


def test_the_surgeon_draws_one_of_the_two_texts(choice: Task, tokenizer: Any) -> None:
    """Against the gradient of the pairs' cross-entropy, labels drawn by the same seed."""
    model = tiny(tokenizer, num_labels=1)
    rows = labelled_rows(model, choice, tokenizer, limit=5)
    found = collect(model, replace(rows, labels=None), seed=7)["encoder", 2]
    ((_, batch),) = rows.batches()
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    kept: list[torch.Tensor] = []
    layer = model.bert.encoder.layer[2].attention.output.dense
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        pairs = model(**inputs).logits.view(-1, 2)
    generator = torch.Generator().manual_seed(7)
    both = pairs.detach().softmax(-1).repeat_interleave(2, dim=0)
    drawn = torch.multinomial(both, 1, generator=generator)[::2, 0]
    loss = torch.nn.functional.cross_entropy(pairs, drawn, reduction="sum")
    (grad,) = torch.autograd.grad(loss, kept[0])
    grad = grad[batch["attention_mask"].bool()].double()
    assert torch.allclose(found.gg, grad.T @ grad, rtol=1e-3, atol=1e-9)
    assert found.gg.abs().max() > 1e-6


def test_the_surgeon_and_prune_take_it(choice: Task, tokenizer: Any) -> None:
    model = tiny(tokenizer, num_labels=1)
    rows = labelled_rows(model, choice, tokenizer, limit=12)
    mask = hc.select(model, "surgeon", 0.5, data=rows)
    assert len(mask) == 6
    for method in ("surgeon", "importance"):
        found = hc.prune(
            model, method, 0.5, task=choice, tokenizer=tokenizer,
            repair=(hc.Recover(),), calibration=hc.Calibration(samples=12),
        )  # fmt: skip
        assert len(found.mask) == 6
        assert found.record["scores"]["n"] == 40


def test_it_is_trained_on_whole_examples(choice: Task, tokenizer: Any) -> None:
    model = tiny(tokenizer, num_labels=1)
    options = hc.TrainOptions(epochs=12, batch_size=8, learning_rate=5e-3, precision="fp32")
    done = finetune(model, choice, tokenizer=tokenizer, options=options)
    assert done.steps == 60
    assert done.evaluation is not None
    assert done.evaluation.score > 0.9


def test_rows_without_tokens_are_stacked(tokenizer: Any) -> None:
    pictures = [np.full((3, 4, 4), n, dtype=np.float32) for n in range(3)]
    rows = EncodedRows({"pixel_values": pictures}, np.arange(3))
    ((numbers, batch),) = rows.batches()
    assert batch["pixel_values"].shape == (3, 3, 4, 4)
    assert "attention_mask" not in batch
    assert batch["pixel_values"][:, 0, 0, 0].tolist() == numbers.tolist()
    other = EncodedRows({"pixel_values": pictures[::-1]}, np.arange(3))
    assert rows_fingerprint(rows) != rows_fingerprint(other)


def test_a_task_of_a_kind_that_is_not_there_is_refused(tokenizer: Any, task: Task) -> None:
    odd = replace(task, kind="clasification")
    with pytest.raises(UsageError, match="no kind of task 'clasification'"):
        encode(odd, odd.load("dev"), tokenizer)
