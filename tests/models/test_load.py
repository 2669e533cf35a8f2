from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast

from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.models.config import load_config
from headcount.models.find import layout
from headcount.models.load import load, skeleton
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from models.zoo import build, masks

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(("family", "heads"), [("bert", (2, 4, 1)), ("gpt2", (4, 3, 2))])
def test_pruned_by_transformers_4(family, heads, tmp_path):
    folder = FIXTURES / f"v4-pruned-{family}"
    expected = load_file(folder / "expected.st")
    model = load(folder)
    assert layout(model).stacks[0].heads == heads
    logits = model(
        input_ids=expected["input_ids"], attention_mask=expected["attention_mask"]
    ).logits
    torch.testing.assert_close(logits, expected["logits"], rtol=1e-5, atol=1e-6)
    model.save_pretrained(tmp_path / "again")
    again = load(tmp_path / "again")
    assert (
        relative_difference(run(model, probe_inputs(model)), run(again, probe_inputs(model))) == 0
    )


def test_plain_transformers_refuses_rather_than_loads_it_wrong(pruned):
    with pytest.raises(RuntimeError):
        AutoModel.from_pretrained(pruned[1])


@pytest.mark.parametrize("head", ["base", "masked-lm", "sequence-classification"])
def test_another_head_on_top(pruned, head):
    small, folder = pruned
    other = load(folder, head=head, num_labels=5, new_head=True)
    assert layout(other) == layout(small)
    if head == "sequence-classification":
        assert other.classifier.out_features == 5
    mine, theirs = small.base_model, other.base_model
    inputs = probe_inputs(small)
    expected, found = mine(**inputs).last_hidden_state, theirs(**inputs).last_hidden_state
    torch.testing.assert_close(expected, found)


def test_dtype_and_device_map(pruned):
    model = load(pruned[1], dtype=torch.bfloat16, device_map="cpu")
    assert model.dtype == torch.bfloat16
    assert layout(model) == layout(pruned[0])


def test_tied_weights_stay_tied(tmp_path):
    model = build("bart")
    small = remove(model, masks(layout(model))["all emptied"])
    small.save_pretrained(tmp_path / "small")
    again = load(tmp_path / "small")
    assert again.lm_head.weight is again.model.shared.weight


def test_the_tokenizer_and_a_card_come_along(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    source = tmp_path / "source"
    build("bert").save_pretrained(source)
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(source)
    model = load(source)
    remove(model, masks(layout(model))["uneven"]).save_pretrained(tmp_path / "small")
    assert AutoTokenizer.from_pretrained(tmp_path / "small")("a b").input_ids == [0, 1]
    card = (tmp_path / "small" / "README.md").read_text()
    assert "12 of 16 attention heads of `source`" in card
    assert "| encoder 0 | 4 | 2 | 1, 3 |" in card
    assert str(tmp_path) not in card


def test_a_pipeline_takes_it(tmp_path, pruned):
    from tokenizers import Tokenizer, models
    from transformers import pipeline

    words = Tokenizer(models.WordLevel({str(i): i for i in range(61)}, unk_token="0"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="0")
    answer = pipeline("text-classification", model=pruned[0], tokenizer=tokenizer)("5 6 7")
    assert answer[0]["label"].startswith("LABEL_")


def test_a_skeleton_needs_no_weights(pruned):
    (pruned[1] / "model.safetensors").unlink()
    config = load_config(pruned[1])
    bones = skeleton(config, type(build("bert")))
    assert next(bones.parameters()).device.type == "meta"
    assert layout(bones) == layout(pruned[0])


def test_a_config_that_forgot_its_type(pruned):
    file = pruned[1] / "config.json"
    written = json.loads(file.read_text())
    del written["model_type"]
    file.write_text(json.dumps(written))
    assert layout(load(pruned[1])) == layout(pruned[0])
    del written["architectures"]
    file.write_text(json.dumps(written))
    with pytest.raises(UnsupportedError, match="pass model_type="):
        load(pruned[1])
    assert layout(load(pruned[1], model_type="bert")) == layout(pruned[0])


def test_refuses_a_truncated_file(pruned):
    file = pruned[1] / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(NotFoundError, match="cannot be read"):
        load(pruned[1])


def test_refuses_pickled_weights_without_consent(tmp_path):
    model = build("bert")
    model.save_pretrained(tmp_path)
    torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"pickled weights .*--allow-pickle"):
        load(tmp_path)
    again = load(tmp_path, allow_pickle=True)
    assert (
        relative_difference(run(model, probe_inputs(model)), run(again, probe_inputs(model))) == 0
    )


def test_refuses_what_is_not_there(tmp_path):
    with pytest.raises(NotFoundError, match="There is no model 'no/such'"):
        load("no/such")
    with pytest.raises(NotFoundError, match=r"no config\.json"):
        load(tmp_path)
    build("bert").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(NotFoundError, match="no weights"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(NotFoundError, match="JSON"):
        load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "nonsense"}')
    with pytest.raises(UnsupportedError, match="nonsense"):
        load(tmp_path)


def test_refuses_another_models_weights(tmp_path, pruned):
    build("gpt2").save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", pruned[1] / "model.safetensors")
    with pytest.raises(
        NotFoundError, match=r"lack bert\.embeddings\.LayerNorm\.bias.* and 69 more"
    ):
        load(pruned[1])


def test_an_unknown_head_is_named(pruned):
    with pytest.raises(UsageError, match="Did you mean 'masked-lm'"):
        load(pruned[1], head="masked_lm")
    with pytest.raises(UnsupportedError, match="no seq2seq-lm model for 'bert'"):
        load(pruned[1], head="seq2seq-lm")


def test_a_layer_without_heads_needs_no_first_weights(tmp_path):
    """FastSpeech 2 draws its first weights by 1 / sqrt(inputs), and an emptied layer has none."""
    model = build("fastspeech2")
    small = remove(model, masks(layout(model))["alternate layers emptied"])
    small.save_pretrained(tmp_path)
    inputs = probe_inputs(model)
    assert relative_difference(run(small, inputs), run(load(tmp_path), inputs)) == 0
