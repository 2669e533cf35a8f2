from __future__ import annotations

import copy
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from fuzz.readers import tokenizer_files
from headcount.base.errors import HeadcountError, NotFoundError, UnsupportedError, UsageError
from headcount.tasks import Task, open_task
from headcount.tasks.encoding import encode_texts
from headcount.tasks.loading import (
    class_order,
    load_for_task,
    load_tokenizer,
    match,
    room,
    tokenizer_of,
)
from models.zoo import build
from training.conftest import tiny


@pytest.fixture
def folder(tokenizer: Any, tmp_path: Path) -> Path:
    tiny(tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_a_new_head_is_drawn_by_the_seed_and_named(folder: Path) -> None:
    entailment = open_task("pocket-entailment")
    first, again, other = (load_for_task(folder, entailment, seed=seed) for seed in (0, 0, 1))
    assert first.config.num_labels == 3
    assert tuple(first.config.id2label.values()) == entailment.labels
    weights = [model.classifier.weight for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_head_of_the_right_size_is_kept(folder: Path, task: Task, tokenizer: Any) -> None:
    model = load_for_task(folder, task)
    assert torch.equal(model.classifier.weight, tiny(tokenizer).classifier.weight)
    assert model.config.id2label[0] == "LABEL_0"


def named(tokenizer: Any, *names: str) -> Any:
    model = tiny(tokenizer, num_labels=len(names))
    model.config.id2label = dict(enumerate(names))
    return model


def own(tmp_path: Path, values: list[str], **more: Any) -> Task:
    rows = [f"{word} {i},{label}" for label in values for i, word in enumerate("ab")]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text("\n".join(["text,label", *rows]))
    return open_task("classification", data=tmp_path, columns="text", label="label", **more)


@pytest.mark.parametrize("names", [("NEGATIVE", "POSITIVE"), ("LABEL_0", "LABEL_1")])
def test_labels_unknown_to_the_model_are_asked_for(
    names: tuple[str, str], tokenizer: Any, tmp_path: Path
) -> None:
    model = named(tokenizer, *names)
    with pytest.raises(UsageError) as caught:
        class_order(model, own(tmp_path, ["good", "bad"]))
    for word in ("bad, good", ", ".join(names), "--labels"):
        assert word in str(caught.value)
    told = own(tmp_path, ["good", "bad"], labels={"good": names[0], "bad": "1"})
    assert class_order(model, told).tolist() == [1, 0]  # bad, good
    part = own(tmp_path, ["good", "bad"], labels="good=1")
    with pytest.raises(UsageError, match="no class for: bad"):
        class_order(model, part)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["0=positive"], "no class for: 1. .* Name every label in --labels"),
        (["0=1"], "no class for: 1"),
        (["0=positive", "1=1"], "labels 0 and 1 are both the model's class 'positive'"),
    ],
)
def test_named_labels_are_one_to_one_and_whole(
    labels: list[str], words: str, tokenizer: Any, tmp_path: Path
) -> None:
    """`--labels 0=positive` alone made both labels one class: accuracy 0.58 beside F1 1.0."""
    model = named(tokenizer, "negative", "positive")
    with pytest.raises(UsageError, match=words):
        class_order(model, own(tmp_path, ["0", "1"], labels=labels))
    whole = own(tmp_path, ["0", "1"], labels=["0=positive", "1=negative"])
    assert class_order(model, whole).tolist() == [1, 0]
    known = own(tmp_path, ["Negative", "good"], labels="good=positive")  # the other by its name
    assert class_order(model, known).tolist() == [0, 1]
    with pytest.raises(UsageError, match="Negative and negative are both"):
        class_order(model, own(tmp_path, ["Negative", "negative"]))


def test_labels_that_are_numbers_are_the_models_numbers(tokenizer: Any, tmp_path: Path) -> None:
    model = named(tokenizer, "LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3")
    assert class_order(model, own(tmp_path, ["3", "0"])).tolist() == [0, 3]
    with pytest.raises(UsageError, match="no class for: 4"):
        class_order(model, own(tmp_path, ["1", "4"]))
    stars = named(tokenizer, "1", "2", "3")
    assert class_order(stars, own(tmp_path, ["1", "3"])).tolist() == [0, 2]


def test_known_numbers_are_trusted_where_the_model_has_no_names(tokenizer: Any) -> None:
    sst2 = open_task("sst2")
    assert class_order(named(tokenizer, "LABEL_0", "LABEL_1"), sst2).tolist() == [0, 1]
    assert class_order(named(tokenizer, "POSITIVE", "negative"), sst2).tolist() == [1, 0]
    with pytest.raises(UsageError, match="the model knows none of them"):
        class_order(named(tokenizer, "bad", "good"), sst2)
    told = open_task("sst2", labels=["negative=bad", "positive=good"])
    assert class_order(named(tokenizer, "good", "bad"), told).tolist() == [1, 0]


def test_training_on_other_classes_renames_the_head(tokenizer: Any, tmp_path: Path) -> None:
    model = named(tokenizer, "NEGATIVE", "POSITIVE")
    model.save_pretrained(tmp_path / "model")
    loaded = load_for_task(tmp_path / "model", own(tmp_path, ["good", "bad"]))
    assert loaded.config.id2label == {0: "bad", 1: "good"}
    assert torch.equal(loaded.classifier.weight, model.classifier.weight)


def test_heads_for_every_kind(folder: Path) -> None:
    similarity = load_for_task(folder, open_task("pocket-similarity"))
    assert similarity.config.num_labels == 1
    corpus = load_for_task(folder, open_task("pocket-corpus"))
    assert type(corpus).__name__ == "BertForMaskedLM"


def test_loading_leaves_the_global_generator_alone(folder: Path, task: Task) -> None:
    torch.manual_seed(5)
    want = torch.rand(1)
    torch.manual_seed(5)
    load_for_task(folder, task, seed=3)
    assert torch.equal(torch.rand(1), want)


def test_from_scratch_uses_the_config_only(folder: Path, task: Task, tokenizer: Any) -> None:
    (folder / "model.safetensors").unlink()
    first, again, other = (
        load_for_task(folder, task, from_scratch=True, seed=seed) for seed in (0, 0, 1)
    )
    weights = [model.bert.encoder.layer[0].output.dense.weight for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    by_file = load_for_task(folder / "config.json", task, from_scratch=True)
    assert by_file.config.hidden_size == 32


def test_scoring_needs_a_trained_head(tmp_path: Path, task: Task) -> None:
    build("distilbert").save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="saved as DistilBertForMaskedLM, without a head for cl"):
        load_for_task(tmp_path, task, new_head=False)
    assert load_for_task(tmp_path, open_task("pocket-corpus"), new_head=False)


def test_the_tokenizer_is_found_or_missed_clearly(folder: Path, task: Task) -> None:
    model = load_for_task(folder, task)
    assert tokenizer_of(model).mask_token_id is not None
    with pytest.raises(NotFoundError, match="No tokenizer in"):
        load_tokenizer(folder / "nothing")


@pytest.mark.parametrize(
    ("family", "reads"), [("vit", "images (pixel_values)"), ("whisper", "sound (input_features)")]
)
def test_a_model_of_images_or_sound_is_told_what_it_can_do(
    family: str, reads: str, task: Task, tmp_path: Path
) -> None:
    build(family).config.save_pretrained(tmp_path)
    for new_head in (True, False):
        with pytest.raises(UnsupportedError) as caught:
            load_for_task(tmp_path, task, new_head=new_head)
        assert f"reads {reads}" in str(caught.value)
        assert "prune without a task" in str(caught.value)
        assert "train it first" not in str(caught.value)


def test_room_is_what_the_positions_leave() -> None:
    assert room(build("bert"), 512) == 64
    assert room(build("bert"), 12) == 12
    assert room(build("roberta"), 512) == 62
    assert room(build("gpt2"), 512) == 64
    assert room(build("t5"), 512) == 512


def test_a_foreign_tokenizer_is_refused(tokenizer: Any) -> None:
    with pytest.raises(UsageError, match=r"tokenizer has \d+ tokens, the model 61"):
        match(build("bert"), tokenizer)


def test_padding_is_named_to_a_model_without(tokenizer: Any) -> None:
    model = build("gpt2", vocab_size=len(tokenizer))
    assert model.config.pad_token_id is None
    match(model, tokenizer)
    assert model.config.pad_token_id == tokenizer.pad_token_id


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda words: words["post_processor"]["single"].pop(), None),
        (lambda words: words["post_processor"].update(single=PANICS), "No tokenizer in .*fails"),
        (lambda words: words["post_processor"].update(pair=PANICS), "The tokenizer fails"),
        (lambda words: words.update(model=7), "No tokenizer in .*fails"),
        (lambda words: words.update(added_tokens="x"), "No tokenizer in .*fails"),
    ],
)
def test_a_damaged_tokenizer_is_one_sentence(tmp_path, change, said) -> None:
    """The second and third panic in Rust, when the tokenizer is tried and when it is used."""
    for name, data in tokenizer_files().items():
        (tmp_path / name).write_bytes(data)
    words = json.loads((tmp_path / "tokenizer.json").read_text())
    change(words)
    (tmp_path / "tokenizer.json").write_text(json.dumps(words))
    refused = pytest.raises(HeadcountError, match=said) if said else nullcontext()
    with refused:
        encode_texts([("the cat", "cats")], load_tokenizer(tmp_path))


PANICS = [{"SpecialToken": {"id": "[NONE]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
"""A template with a token that is not among the special ones."""


def test_nothing_is_asked_on_the_terminal(tmp_path, monkeypatch) -> None:
    for name, data in tokenizer_files().items():
        (tmp_path / name).write_bytes(data)
    about = json.loads((tmp_path / "tokenizer_config.json").read_text())
    about["auto_map"] = {"AutoTokenizer": ["code.Words", None]}
    about["tokenizer_class"] = "Words"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(about))
    (tmp_path / "code.py").write_text("raise SystemExit('it was run')")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on the terminal"))
    with pytest.raises(NotFoundError, match="contains custom code"):
        load_tokenizer(tmp_path)


def test_padding_that_moves_positions_is_refused(tokenizer: Any) -> None:
    """A row beside a longer one: BERT reads it at other positions, RoBERTa at the same."""
    left = copy.deepcopy(tokenizer)
    left.padding_side = "left"
    ids = torch.tensor([[5, 6, 7]])
    padded = torch.tensor([[0, 0, 5, 6, 7]])
    sizes = {
        "vocab_size": len(tokenizer), "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 8, "pad_token_id": 0,
    }  # fmt: skip
    for name, moves in (("Bert", True), ("Roberta", False), ("Llama", False)):
        config = getattr(transformers, f"{name}Config")(**sizes)
        model = getattr(transformers, f"{name}Model")(config).eval()
        alone = model(ids).last_hidden_state
        beside = model(padded, attention_mask=(padded > 0).long()).last_hidden_state[:, 2:]
        assert torch.allclose(alone, beside, atol=1e-5) != moves
        match(model, tokenizer)
        if moves:
            with pytest.raises(UsageError, match="pads on the left, and BertModel counts"):
                match(model, left)
        else:
            match(model, left)
