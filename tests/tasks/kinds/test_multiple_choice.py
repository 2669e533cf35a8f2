"""Choices by their log-likelihood: against one row at a time, brute force and lm-eval."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import headcount as hc
from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.pruning.second_order import collect
from headcount.tasks import Examples, Task
from headcount.tasks.encoding import IGNORED, RowOptions
from headcount.tasks.kinds.multiple_choice import MultipleChoice
from headcount.tasks.rows import labelled_rows
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune
from headcount.training.scored import scored_rows
from models.zoo import build

KIND = MultipleChoice()
FAMILIES = ("llama", "gpt2", "t5")


def load(split: str) -> Examples:
    """The animal of the prompt again, among two or three."""
    rng = np.random.default_rng(len(split))
    prompts, lists, labels = [], [], []
    for _ in range(24):
        animals = list(rng.permutation(["cat", "dog", "king"]))[: rng.integers(2, 4)]
        labels.append(int(rng.integers(len(animals))))
        words = ["the small", "a young big", "the king near the"][rng.integers(3)]
        prompts.append(f"{words} {animals[labels[-1]]} is a")
        endings = [" with", " with a queen near the baker", ""]
        lists.append(
            json.dumps([f"{one}{end}" for one, end in zip(animals, endings, strict=False)])
        )
    return Examples((prompts, lists), np.array(labels))


TASK = Task(
    name="again", kind="multiple-choice", texts=("prompt", "choices"), metrics=("acc", "acc_norm"),
    loader=load, choices=True,
)  # fmt: skip


def queens(split: str) -> Examples:
    """The choice that speaks of a queen."""
    rows = load(split)
    lists = [
        json.dumps(["the king" if at != label else "the queen" for at in range(2)])
        for label in rows.labels % 2  # pyright: ignore[reportOptionalOperand]
    ]
    return Examples((rows.texts[0], lists), rows.labels % 2)  # pyright: ignore[reportOptionalOperand]


QUEENS = replace(TASK, loader=queens)


def make(family: str, tokenizer: Any) -> Any:
    starts = {"decoder_start_token_id": 0, "pad_token_id": 0} if family == "t5" else {}
    layers = {"num_hidden_layers": 2} if family == "llama" else {}
    return build(family, vocab_size=len(tokenizer), **starts, **layers)


def by_hand(model: Any, tokenizer: Any, prompt: str, choice: str) -> torch.Tensor:
    """log p(choice | prompt) of one text alone."""
    if model.config.is_encoder_decoder:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        wanted = tokenizer(f" {choice}", add_special_tokens=False, return_tensors="pt").input_ids
        logits = model(input_ids=ids, labels=wanted).logits[0]
        return logits.log_softmax(-1)[torch.arange(wanted.shape[1]), wanted[0]].sum()
    whole = tokenizer(f"{prompt} {choice}", add_special_tokens=False).input_ids
    start = len(tokenizer(prompt, add_special_tokens=False).input_ids)
    chances = model(input_ids=torch.tensor([whole])).logits[0].log_softmax(-1)
    return sum((chances[at - 1, whole[at]] for at in range(start, len(whole))), torch.zeros(()))


def one_by_one(model: Any, tokenizer: Any, examples: Examples) -> list[torch.Tensor]:
    return [
        torch.stack([by_hand(model, tokenizer, str(prompt), choice) for choice in json.loads(text)])
        for prompt, text in zip(examples.texts[0], map(str, examples.texts[1]), strict=True)
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_choices_are_scored_one_by_one(family: str, tokenizer: Any) -> None:
    model, examples = make(family, tokenizer), load("dev")
    masks = [hc.Mask.full(hc.layout(model)), hc.select(model, "random", 0.5)]
    many = evaluate(model, TASK, masks, tokenizer=tokenizer, tokens=90)
    assert len({result.predictions["log_likelihoods"][0] for result in many}) == 2
    for mask, result in zip(masks, many, strict=True):
        with hc.gate(model, mask), torch.no_grad():
            values = [row.double().numpy() for row in one_by_one(model, tokenizer, examples)]
        given = [json.loads(text) for text in result.predictions["log_likelihoods"]]
        for one, other in zip(values, given, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)
        sizes = [[len(choice) for choice in json.loads(str(text))] for text in examples.texts[1]]
        plain = [row.argmax() for row in values]
        normed = [(row / np.array(size)).argmax() for row, size in zip(values, sizes, strict=True)]
        scores = {score.metric: score.value for score in result.scores}
        assert scores["acc"] == pytest.approx(np.mean(np.array(plain) == examples.labels))
        assert scores["acc_norm"] == pytest.approx(np.mean(np.array(normed) == examples.labels))
        assert result.predictions["prediction_norm"].tolist() == normed
        losses = [
            functional.cross_entropy(torch.tensor(row)[None], torch.tensor([label]))
            for row, label in zip(values, examples.labels, strict=True)  # pyright: ignore[reportArgumentType]
        ]
        np.testing.assert_allclose(result.predictions["loss"], losses, rtol=1e-3, atol=1e-6)
    plain, normed = (many[0].predictions[name] for name in ("prediction", "prediction_norm"))
    assert (plain != normed).any()


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_padding_before_the_tokens_changes_nothing(family: str, tokenizer: Any) -> None:
    left = copy.deepcopy(tokenizer)
    left.padding_side = "left"
    model = make(family, tokenizer)
    plain, other = (evaluate(model, TASK, tokenizer=words) for words in (tokenizer, left))
    for one, two in zip(
        *(each.predictions["log_likelihoods"] for each in (plain, other)), strict=True
    ):
        np.testing.assert_allclose(json.loads(one), json.loads(two), rtol=1e-4)


def encoded(tokenizer: Any, prompt: str, choices: list[str], length: int = 64, **more: Any) -> Any:
    examples = Examples(([prompt], [json.dumps(choices)]), np.array([1]))
    return KIND.encode(examples, tokenizer, RowOptions(length=length, **more))


def test_a_choice_has_the_space_before_it(tokenizer: Any) -> None:
    begin = copy.deepcopy(tokenizer)
    begin.bos_token = "[CLS]"
    cat, dog, the = tokenizer.convert_tokens_to_ids(["cat", "dog", "the"])
    rows = encoded(begin, "the\n", ["cat", "dog cat"])
    cls = begin.bos_token_id
    assert rows.columns["input_ids"] == [[cls, the], [cls, the, dog]]
    assert rows.columns["targets"] == [[IGNORED, cat], [IGNORED, dog, cat]]
    assert rows.labels.tolist() == [1, IGNORED]
    assert rows.examples.tolist() == [0, 0]
    again = encoded(begin, "[CLS] the\n", ["cat", "dog cat"])  # there once, as in lm-eval
    assert again.columns == rows.columns
    beside = encoded(tokenizer, "the", ["cat", "dog cat"], decoder=True)
    assert beside.columns["input_ids"] == [tokenizer("the").input_ids] * 2
    assert beside.columns["targets"] == [[cat], [dog, cat]]


def test_white_space_at_the_end_of_a_prompt_belongs_to_the_choice() -> None:
    """Byte for byte: in a tokenizer that has a token for every letter."""
    from transformers import ByT5Tokenizer

    letters: Any = ByT5Tokenizer()
    written = [
        letters.decode([token for token in encoded(letters, prompt, [choice, "b"]).columns[
            "targets"][0] if token != IGNORED])
        for prompt, choice in (("x", "a"), ("x:\n", "a"), ("x ", "a"), ("x", " a"))
    ]  # fmt: skip
    assert written == [" a", "\na", " a", "  a"]


def test_a_row_that_does_not_fit_is_refused(tokenizer: Any) -> None:
    long = "cat " * 80
    with pytest.raises(
        UsageError, match="Choice 1 of the prompt 'the dog' takes 81 tokens with it"
    ):
        encoded(tokenizer, "the dog", ["cat", long])
    with pytest.raises(UsageError, match="reads 64 at most"):
        encoded(tokenizer, "the dog", ["cat", long], decoder=True)
    model = make("llama", tokenizer)
    wide = replace(TASK, loader=lambda _: Examples(([long], ['["a", "b"]']), np.array([0])))
    with pytest.raises(UsageError, match="Choice 0 of the prompt"):
        evaluate(model, wide, tokenizer=tokenizer)
    fits = replace(TASK, loader=lambda _: Examples(([long[:200]], ['["a", "b"]']), np.array([0])))
    rows = scored_rows(model, fits, tokenizer, hc.Scoring(max_length=8))
    assert rows.rows.lengths.min() > 40  # rows are never truncated


def row_values(model: Any, rows: Any) -> torch.Tensor:
    """(row,) log-likelihoods, from the columns, row by row."""
    values = []
    for ids, wanted in zip(rows.columns["input_ids"], rows.columns["targets"], strict=True):
        kept = [(at, token) for at, token in enumerate(wanted) if token != IGNORED]
        more = {"labels": torch.tensor([wanted])} if model.config.is_encoder_decoder else {}
        chances = model(input_ids=torch.tensor([ids]), **more).logits[0].log_softmax(-1)
        values.append(sum((chances[at, token] for at, token in kept), torch.zeros(())))
    return torch.stack(values)


def open_gates(model: Any) -> dict[str, list[torch.Tensor]]:
    gates: dict[str, list[torch.Tensor]] = {}
    for stack, _, heads in hc.layout(model).layers():
        gates.setdefault(stack, []).append(torch.ones(heads, requires_grad=True))
    return gates


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_importance_is_of_the_choices_cross_entropy(family: str, tokenizer: Any) -> None:
    """Against one backward pass an example, all its choices through the same gates."""
    model = make(family, tokenizer)
    rows = labelled_rows(model, TASK, tokenizer, limit=4)
    result = hc.importance(model, rows, tokens=90)
    assert (result.n, result.kind) == (4, "multiple-choice")
    total = np.zeros(len(hc.layout(model)))
    for number in range(4):
        part, gates = rows.take([number]), open_gates(model)
        with hc.gate(model, gates):
            values = row_values(model, part)
        loss = functional.cross_entropy(values[None], torch.tensor(part.labels[:1]))
        flat = [gate for layers in gates.values() for gate in layers]
        total += torch.cat(torch.autograd.grad(loss, flat)).abs().numpy()
    np.testing.assert_allclose(result.values, total / 4, rtol=2e-3, atol=1e-6)


PLACES = {
    ("decoder", 1): ("llama", "model.layers.1.self_attn.o_proj"),
    ("cross", 0): ("t5", "decoder.block.0.layer.1.EncDecAttention.o"),
    ("encoder", 1): ("t5", "encoder.block.1.layer.0.SelfAttention.o"),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_surgeons_fisher_is_that_of_a_drawn_choice(
    place: tuple[str, int], tokenizer: Any
) -> None:
    """Brute force: the gradient for every choice, drawn as often as the model would choose it."""
    family, path = PLACES[place]
    model = make(family, tokenizer)
    examples = Examples((["the small cat is a"], ['["cat", "dog", "king"]']), np.array([0]))
    rows = labelled_rows(model, replace(TASK, loader=lambda _: examples), tokenizer)
    with torch.no_grad():
        model.lm_head.weight *= 0.2  # or one of the choices is hardly ever drawn
    layer = model.get_submodule(path)
    values, outputs = [], []
    for number in range(3):
        one = replace(rows, columns={name: [c[number]] for name, c in rows.columns.items()})
        with layer.register_forward_hook(lambda *args: outputs.append(args[2])):
            values.append(row_values(model, one)[0])
    chances = torch.stack(values).softmax(0)
    exact = []
    for choice in range(3):
        loss = -torch.stack(values).log_softmax(0)[choice]
        grads = torch.cat(torch.autograd.grad(loss, outputs, retain_graph=True), dim=1)[0].double()
        exact.append(grads.T @ grads)
    assert (exact[0] - exact[1]).abs().max() > 1e-3 * exact[0].abs().max()
    drawn = np.zeros(3)
    for seed in range(60):
        fisher = collect(model, replace(rows, labels=None), seed=seed)[place].gg
        (which,) = [
            at for at in range(3) if torch.allclose(fisher, exact[at], rtol=1e-2, atol=1e-9)
        ]
        drawn[which] += 1
    expected = 60 * chances.detach().numpy()
    assert min(expected) > 2
    assert (abs(drawn - expected) < 4 * np.sqrt(expected)).all()


def test_choices_are_drawn_by_the_models_own_probabilities() -> None:
    """Two or three choices of one token each, with probabilities that are known."""
    wanted = [[0.9, 0.1], [0.6, 0.3, 0.1]]
    rows = [chance for example in wanted for chance in example]
    logits = torch.tensor([[[chance, 1 - chance]] for chance in rows]).log()
    examples = torch.tensor([0, 0, 1, 1, 1])
    batch = ModelBatch({}, None, examples, torch.zeros(5, 1, dtype=torch.long))
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([KIND.sample_labels(logits, batch, generator) for _ in range(2000)])
    assert (drawn[:, [1, 3, 4]] == IGNORED).all()
    for first, chances in ((0, wanted[0]), (2, wanted[1])):
        shares = np.bincount(drawn[:, first].numpy(), minlength=len(chances)) / 2000
        np.testing.assert_allclose(shares, chances, atol=0.04)


def test_losses_of_a_batch(tokenizer: Any) -> None:
    """Smoothing, a blank example, and the sum, against plain cross-entropies."""
    model = make("llama", tokenizer)
    rows = labelled_rows(model, TASK, tokenizer, limit=4)
    batch = rows.collate([rows[row] for row in range(len(rows))])
    logits = model(**KIND.inputs(model, batch)).logits
    values = row_values(model, rows)
    groups = rows.rows_of(range(4))
    labels = batch["labels"].clone()
    labels[groups[2]] = IGNORED
    made = ModelBatch({}, labels, batch["examples"], batch["targets"])
    assert KIND.counts(labels).sum() == 3
    for smoothing in (0.0, 0.2):
        wanted = [
            functional.cross_entropy(
                values[group][None], labels[group[:1]], label_smoothing=smoothing
            )
            for group in map(torch.from_numpy, (groups[0], groups[1], groups[3]))
        ]
        losses = KIND.losses(logits, made, smoothing=smoothing)
        torch.testing.assert_close(losses[labels != IGNORED].float(), torch.stack(wanted))
        assert losses[labels == IGNORED].abs().sum() == 0
        whole = KIND.losses(logits, made, smoothing=smoothing, total=True)
        torch.testing.assert_close(whole.float(), torch.stack(wanted).sum())
    with pytest.raises(UsageError, match="takes one label for every answer"):
        KIND.require_labels(logits, torch.zeros(2, 3))


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_it_is_trained_pruned_and_measured(family: str, tokenizer: Any) -> None:
    model = make(family, tokenizer)
    options = hc.TrainOptions(epochs=8, batch_size=8, learning_rate=3e-3, precision="fp32")
    done = finetune(model, QUEENS, tokenizer=tokenizer, options=options)
    assert done.evaluation is not None
    assert done.evaluation.score > 0.9
    for method in ("surgeon", "importance"):
        result = hc.prune(
            done.model, method, 0.25, task=TASK, tokenizer=tokenizer,
            repair=(hc.Recover(),), calibration=hc.Calibration(samples=12), baseline=0,
        )  # fmt: skip
        assert result.record["scores"]["n"] == 24
    redundancy = hc.redundancy(model, TASK, "js", tokenizer=tokenizer)
    assert redundancy.count == sum(len(json.loads(str(text))) for text in load("dev").texts[1])
    roles = hc.roles(model, task=TASK, tokenizer=tokenizer, examples=0, alone=True)
    assert {"cost_alone", "score_alone"} <= set(roles.quantities)


def test_it_is_scored_as_lm_eval_scores_it(tokenizer: Any, tmp_path: Any) -> None:
    """The same rows through lm-evaluation-harness: every log-likelihood, acc and acc_norm."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    examples = load("dev")
    pairs = zip(examples.texts[0], map(str, examples.texts[1]), examples.labels, strict=True)  # pyright: ignore[reportArgumentType]
    (tmp_path / "rows.jsonl").write_text(
        "".join(
            json.dumps({"q": prompt, "options": json.loads(text), "right": int(label)}) + "\n"
            for prompt, text, label in pairs
        )
    )
    (tmp_path / "again.yaml").write_text(
        "task: again\ndataset_path: json\ndataset_kwargs:\n  data_files:\n"
        f"    validation: {tmp_path}/rows.jsonl\n"
        "validation_split: validation\noutput_type: multiple_choice\ndoc_to_text: q\n"
        "doc_to_choice: options\ndoc_to_target: right\n"
        "metric_list:\n  - metric: acc\n  - metric: acc_norm\n"
    )
    words = copy.deepcopy(tokenizer)
    words.eos_token = "[SEP]"  # it asks for one
    for family, begin in (("llama", False), ("t5", None)):
        model = make(family, tokenizer)
        lm = HFLM(pretrained=model, tokenizer=words, batch_size=4, add_bos_token=begin)
        manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
        theirs: Any = simple_evaluate(lm, tasks=["again"], task_manager=manager, bootstrap_iters=0)
        ours = evaluate(model, TASK, tokenizer=tokenizer)
        scores = {score.metric: score.value for score in ours.scores}
        assert scores["acc"] == theirs["results"]["again"]["acc,none"]
        assert scores["acc_norm"] == theirs["results"]["again"]["acc_norm,none"]
        for one, two in zip(
            ours.predictions["log_likelihoods"], theirs["samples"]["again"], strict=True
        ):
            given = [float(pair[0]) for pair in two["filtered_resps"]]
            np.testing.assert_allclose(json.loads(one), given, rtol=1e-4)


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_choices_of_the_same_tokens_are_told(
    family: str, tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """To a tokenizer of small letters: the first of them is taken, right or wrong."""
    texts = ["the king is"] * 2, ['["a dog", "A dog"]', '["a dog", "a cat"]']
    alike = replace(TASK, loader=lambda _: Examples(texts, np.array([1, 0])))
    evaluate(make(family, tokenizer), alike, tokenizer=tokenizer)
    assert "1 of 2 rows have choices that are the same tokens" in caplog.text
    caplog.clear()
    evaluate(make(family, tokenizer), TASK, tokenizer=tokenizer)
    assert "same tokens" not in caplog.text
