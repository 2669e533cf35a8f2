"""Rows of long contexts, the best answer, losses and samples against plain loops."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import BertConfig, BertForQuestionAnswering

import headcount as hc
from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.batches import ModelBatch
from headcount.models.gates import open_gates
from headcount.pruning.second_order import collect
from headcount.tasks import Examples, Task
from headcount.tasks.encoding import encode
from headcount.tasks.kinds.question_answering import LONGEST, QuestionAnswering
from headcount.tasks.rows import labelled_rows
from headcount.tasks.squad import answer_scores, read_answers, write_answers
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune
from headcount.training.scored import scored_rows

WORDS = "the a small unbelievable big young king queen baker near with".split()  # noqa: SIM905


def load(split: str, *, may_have_none: bool = False) -> Examples:
    """What comes behind the one dog of a context?"""
    rng = np.random.default_rng(len(split))
    rows: list[tuple[str, str, str]] = []
    for number in range(24):
        words = [str(word) for word in rng.choice(WORDS, rng.integers(3, 30))]
        at = int(rng.integers(len(words)))
        words[at:at] = ["dog", "doctor"]
        start = len(" ".join([*words[: at + 1], ""]))
        answers = [("doctor", start)] if not may_have_none or number % 3 else []
        rows.append(("who ?", " ".join(words), write_answers(answers, may_have_none)))
    return Examples(tuple(zip(*rows, strict=True)))


TASK = Task(
    name="behind", kind="question-answering", texts=("question", "context", "answers"),
    metrics=("answer_f1", "exact_match"), loader=load,
)  # fmt: skip
NONE = replace(TASK, loader=lambda split: load(split, may_have_none=True))
SCORING = hc.Scoring(bootstrap=0, max_length=20)


def reader(tokenizer: Any) -> BertForQuestionAnswering:
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForQuestionAnswering(config)
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "embeddings" not in name:
                torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
    return model.eval()


def test_rows_cover_a_long_context_and_know_their_answer(tokenizer: Any) -> None:
    examples = load("dev")
    rows = encode(replace(TASK, stride=5), examples, tokenizer, max_length=20)
    assert rows.count == 24
    assert len(rows) > 40
    assert rows.examples is not None
    assert isinstance(rows.labels, list)
    found: set[int] = set()
    covered: dict[int, set[int]] = {}
    for row, (first, last, nothing, begin, end) in enumerate(rows.labels):
        number = int(rows.examples[row])
        ids = rows.columns["input_ids"][row]
        assert len(ids) <= 20
        assert nothing == ids.index(tokenizer.cls_token_id)
        starts, ends = (rows.columns[name][row] for name in ("starts", "ends"))
        context = str(examples.texts[1][number])
        whole = tokenizer(context, add_special_tokens=False, return_offsets_mapping=True)
        places = [whole["offset_mapping"].index(pair) for pair in zip(starts, ends, strict=True)
                  if pair != (0, 0)]  # fmt: skip
        assert places == list(range(places[0], places[0] + end - begin + 1))
        assert ids[begin : end + 1] == whole["input_ids"][places[0] : places[-1] + 1]
        assert places[0] % 5 == 0  # rows begin a stride apart
        covered.setdefault(number, set()).update(places)
        if first != nothing:
            assert context[starts[first] : ends[last]] == "doctor"
            found.add(number)
    assert found == set(range(24))
    assert all(len(places) == max(places) + 1 for places in covered.values())


def test_without_a_stride_a_third_overlaps_and_short_contexts_are_one_row(tokenizer: Any) -> None:
    rows = encode(TASK, load("dev"), tokenizer, max_length=64)
    assert len(rows) == rows.count == 24
    rows = encode(TASK, load("dev"), tokenizer, max_length=20)
    free = 20 - 3 - len(tokenizer("who ?", add_special_tokens=False)["input_ids"])
    many = [number for number in range(24) if (rows.examples == number).sum() > 1]
    first, second = rows.rows_of([many[0]])[0][:2]
    starts = [rows.columns["starts"][row][-free - 1 : -1] for row in (first, second)]
    assert starts[0][free - free // 3 :] == starts[1][: free // 3]


def test_no_room_for_the_context(tokenizer: Any) -> None:
    long = Examples((["who ? " * 20], ["the dog"], [write_answers([("dog", 4)], False)]))
    with pytest.raises(UsageError, match=r"0 are left .* Pass a longer --max-length"):
        encode(TASK, long, tokenizer, max_length=16)
    with pytest.raises(UsageError, match="rows begin 30 apart"):
        encode(replace(TASK, stride=30), load("dev"), tokenizer, max_length=20)
    slow = type("Slow", (), {"is_fast": False, "model_max_length": 64})()
    with pytest.raises(UnsupportedError, match=r"tokenizer\.json"):
        encode(TASK, load("dev"), slow, max_length=20)


@pytest.mark.parametrize("task", [TASK, NONE])
def test_the_best_answer_is_that_of_a_plain_loop(
    task: Task, tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model, examples = reader(tokenizer), task.load("dev")
    with torch.no_grad():
        model.qa_outputs.bias += 0.1
    rows = encode(task, examples, tokenizer, max_length=20)
    said, scores, losses = [], [], []
    for number, several in enumerate(rows.rows_of(range(24))):
        best, text, none, total = -np.inf, "", np.inf, 0.0
        for row in several:
            names = ("input_ids", "token_type_ids")
            inputs = {name: torch.tensor([rows.columns[name][row]]) for name in names}
            first, last, nothing, begin, end = rows.labels[row]  # pyright: ignore[reportOptionalSubscript]
            with torch.no_grad():
                out = model(
                    **inputs,
                    start_positions=torch.tensor([first]),
                    end_positions=torch.tensor([last]),
                )
            total += 2 * float(out.loss)
            starts, ends = out.start_logits[0].tolist(), out.end_logits[0].tolist()
            none = min(none, starts[nothing] + ends[nothing])
            for one, other in product(range(begin, end + 1), repeat=2):
                if one <= other < one + LONGEST and starts[one] + ends[other] > best:
                    best = starts[one] + ends[other]
                    letters = rows.columns["starts"][row][one], rows.columns["ends"][row][other]
                    text = str(examples.texts[1][number])[slice(*letters)]
        golds, may_have_none = read_answers(str(examples.texts[2][number]))
        said.append("" if may_have_none and none > best else text)
        scores.append(answer_scores(said[-1], [gold for gold, _ in golds]))
        losses.append(total)
    found = evaluate(model, task, tokenizer=tokenizer, tokens=60, scoring=SCORING)
    assert "as many tokens as --max-length" not in caplog.text  # a context is read to its end
    assert found.predictions["prediction"] == said
    assert [score.value for score in found.scores] == pytest.approx(np.mean(scores, axis=0))
    np.testing.assert_allclose(found.predictions["nll"], losses, rtol=1e-5)
    assert found.n == 24
    if task is NONE:
        assert 0 < said.count("") < 24


def test_an_answer_inside_a_word_is_that_of_its_own_tokens(tokenizer: Any) -> None:
    context = "the baker (king-doctor) was near ."
    answers = write_answers([("king", context.index("king"))], False)
    rows = encode(TASK, Examples((["who ?"], [context], [answers])), tokenizer)
    assert isinstance(rows.labels, list)
    first, last = rows.labels[0][:2]
    assert rows.columns["starts"][0][first] == context.index("king")
    assert rows.columns["ends"][0][last] == context.index("-")


def test_no_answer_scores_least_in_any_row_against_the_best_answer(tokenizer: Any) -> None:
    scored = scored_rows(reader(tokenizer), NONE, tokenizer, SCORING)
    number = next(n for n, rows in enumerate(scored.rows.rows_of(range(24))) if len(rows) == 2)
    two = scored.take(np.array([number]))
    assert isinstance(two.rows.labels, list)
    begin, end = two.rows.labels[1][3:]
    for none, empty in (([2.0, 9.0], False), ([9.0, 2.0], False), ([4.0, 9.0], True)):
        kept = np.array([[none[0], 1.0, 5, 5, 0.5], [none[1], 3.0, begin, end, 0.25]])
        _, table = QuestionAnswering().score(kept, two)
        assert (table["prediction"] == [""]) is empty
        assert (table["nll"].tolist(), table["rows"].tolist()) == ([0.75], [2])


def test_masked_is_removed_and_shared_passes_are_plain_ones(tokenizer: Any) -> None:
    model = reader(tokenizer)
    masks = [hc.Mask.full(hc.layout(model)), hc.Mask.parse("21", hc.layout(model))]
    many = evaluate(model, TASK, masks, tokenizer=tokenizer, scoring=SCORING)
    small = evaluate(hc.remove(model, masks[1]), TASK, tokenizer=tokenizer, scoring=SCORING)
    plain = evaluate(model, TASK, tokenizer=tokenizer, scoring=SCORING)
    for one, other in ((many[1], small), (many[0], plain)):
        assert one.predictions["prediction"] == other.predictions["prediction"]
        np.testing.assert_allclose(one.predictions["nll"], other.predictions["nll"], rtol=1e-4)
    assert not np.allclose(many[0].predictions["nll"], many[1].predictions["nll"], rtol=1e-3)


def test_importance_is_of_an_examples_rows_together(tokenizer: Any) -> None:
    model = reader(tokenizer).double()
    rows = labelled_rows(model, TASK, tokenizer, limit=4, max_length=20)
    assert len(rows) > 4
    found = hc.importance(model, rows, tokens=90)
    total, step, heads = np.zeros(8), 1e-4, hc.layout(model)
    for number in range(4):
        ((_, batch),) = rows.take([number]).batches()
        inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
        for at, head in enumerate(heads):
            sides = []
            for sign in (1, -1):
                gates = open_gates(heads, trainable=False, dtype=torch.float64)
                gates[head.stack][head.layer][head.index] += sign * step
                losses = []
                for row in range(len(batch["labels"])):
                    keep = batch["attention_mask"][row].bool()
                    one = {name: value[row : row + 1, keep] for name, value in inputs.items()}
                    first, last = batch["labels"][row : row + 1, :2].T
                    with torch.no_grad(), hc.gate(model, gates):
                        losses.append(model(**one, start_positions=first, end_positions=last).loss)
                sides.append(float(torch.stack(losses).mean()))
            total[at] += abs(sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose(found.values, total / 4, rtol=1e-4, atol=1e-9)
    assert found.n == 4


def test_the_surgeon_draws_first_and_last_tokens(tokenizer: Any) -> None:
    """Against the gradient of the drawn tokens' mean cross-entropy, example by example."""
    model = reader(tokenizer)
    rows = labelled_rows(model, TASK, tokenizer, limit=4, max_length=20)
    found = collect(model, rows, seed=7)["encoder", 1]
    ((_, batch),) = rows.batches()
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    real = batch["attention_mask"].bool()
    assert not real.all()
    kept: list[torch.Tensor] = []
    layer = model.bert.encoder.layer[1].attention.output.dense
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        out = model(**inputs)
    sides = [
        logits.masked_fill(~real, float("-inf")) for logits in (out.start_logits, out.end_logits)
    ]
    generator = torch.Generator().manual_seed(7)
    chances = torch.stack(sides, dim=1).detach().softmax(-1).flatten(0, 1)
    drawn = torch.multinomial(chances, 1, generator=generator).view(-1, 2)
    losses = [
        functional.cross_entropy(logits, drawn[:, side], reduction="none")
        for side, logits in enumerate(sides)
    ]
    number, count = batch["examples"], batch["examples"].bincount()
    loss = ((losses[0] + losses[1]) / (2 * count[number])).sum()
    (grad,) = torch.autograd.grad(loss, kept[0])
    grad = grad[real].double()
    assert torch.allclose(found.gg, grad.T @ grad, rtol=1e-3, atol=1e-9)
    assert found.gg.abs().max() > 1e-7
    bare = replace(rows, kind=None, labels=None, examples=None)  # calibration texts without a task
    assert collect(model, bare, seed=7)["encoder", 1].gg.abs().max() > 1e-7


def test_it_is_trained_searched_and_repaired(tokenizer: Any) -> None:
    model = reader(tokenizer)
    options = hc.TrainOptions(
        epochs=25, batch_size=8, learning_rate=5e-3, precision="fp32", max_length=40,
        label_smoothing=0.05,
    )  # fmt: skip
    done = finetune(model, TASK, tokenizer=tokenizer, options=options)
    assert done.evaluation is not None
    assert done.evaluation.score > 0.9
    found = hc.prune(
        model, "surgeon", 0.5, task=TASK, tokenizer=tokenizer, scoring=SCORING, baseline=0,
        repair=(hc.Recover(),), calibration=hc.Calibration(samples=12),
    )  # fmt: skip
    assert len(found.mask) == 4
    assert found.record["scores"]["n"] == 24


def test_smoothing_leaves_padding_out(tokenizer: Any) -> None:
    torch.manual_seed(0)
    answers, labels = torch.randn(2, 6, 2), torch.tensor([[1, 2], [0, 3]])
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    batch = ModelBatch({"attention_mask": mask}, labels)
    found = QuestionAnswering().losses(answers, batch, smoothing=0.2)
    for row, length in ((0, 6), (1, 4)):
        for side in range(2):
            wanted = functional.cross_entropy(
                answers[row, :length, side], labels[row, side], label_smoothing=0.2
            )
            assert found[row, side] == pytest.approx(float(wanted), rel=1e-5)


def test_rows_without_texts_are_not_scored(tokenizer: Any) -> None:
    model = reader(tokenizer)
    rows = labelled_rows(model, TASK, tokenizer, limit=2)
    with pytest.raises(UsageError, match="has no logits to score rows by: pass a task"):
        evaluate(model, rows, tokenizer=tokenizer)
    assert json.loads(write_answers([("a", 1)], True)) == [[["a", 1]], True]
