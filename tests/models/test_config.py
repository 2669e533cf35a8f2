"""Any config.json is read or refused in one sentence, before anything large is built by it."""

from __future__ import annotations

import json
import resource

import pytest
import torch
from transformers import AutoConfig, BertConfig, MusicgenConfig

from headcount.base.errors import HeadcountError, NotFoundError, UnsupportedError
from headcount.costs.cost import inspect
from headcount.models import config as configs
from headcount.models.config import load_config, model_class
from headcount.models.load import load
from models.zoo import build


@pytest.fixture
def folder(tmp_path):
    build("bert").save_pretrained(tmp_path)
    return tmp_path


def change(folder, **keys):
    file = folder / "config.json"
    written = json.loads(file.read_text())
    file.write_text(json.dumps({**written, **keys}))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"hidden_act": ["gelu"]}, "describes no model: .*hidden_act"),
        ({"use_return_dict": 5}, "describes no model: .*use_return_dict"),
        ({"hidden_size": 2.0}, "describes no model: .*hidden_size"),
        ({"num_attention_heads": 3}, "describes no model"),
        ({"chunk_size_feed_forward": "x"}, "describes no model: chunk_size_feed_forward is 'x'"),
        ({"model_type": ["bert"]}, r"has the model_type \['bert'\]"),
        ({"model_type": "nothing"}, "describes no model"),
        ({"architectures": True}, "names of classes, not True"),
        ({"architectures": [["BertModel"]]}, "names of classes, not"),
        ({"text_config": []}, r"its part for text is \[\]"),
        ({"to_dict": 5}, "describes no model"),
        ({"save_pretrained": 5}, "save_pretrained' is no setting"),
        ({"num_hidden_layers": 10**5}, "num_hidden_layers.* is 100000, .*at most 2,000"),
        ({"num_labels": 10**9}, "num_labels.* at most 1,000,000"),
        ({"vocab_size": 2**63}, "vocab_size"),
        ({"n_head": -4}, "describes no model: 'n_head' is -4"),
        ({"nested": [{"hidden_size": -(10**30)}]}, "hidden_size"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, r"quantised .*'gptq'"),
        ({"quantization_config": {}}, "are quantised"),
        ({"dtype": "nothing"}, "Cannot load|describes no model"),
        ({"_attn_implementation": "nothing"}, "Cannot load|describes no model"),
    ],
)
def test_what_describes_no_model_is_refused(folder, keys, sentence, capfd):
    change(folder, **keys)
    capfd.readouterr()
    with pytest.raises(UnsupportedError, match=sentence) as refusal:
        load(folder)
    assert "\n" not in str(refusal.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("text", ["null", "[]", "5", "{", "", "\x00", "[" * 9999 + "]" * 9999])
def test_what_is_no_config_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(NotFoundError, match=r"config\.json (is no config|cannot be read)"):
        load_config(folder)


def test_a_far_larger_model_than_its_files_takes_no_memory(folder):
    change(folder, max_position_embeddings=2**28)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(NotFoundError, match=r"describes a model of [\d,]+ weights, and its files"):
        load(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # KB


def test_an_extra_that_a_config_asks_for_is_named(folder):
    change(folder, _attn_implementation="flash_attention_2")
    with pytest.raises(HeadcountError, match=r"(?i)flash") as refusal:
        load(folder)
    assert refusal.value.exit_code == 3


@pytest.mark.parametrize("name", ["BertTokenizer", "Trainer", "pipeline", "__doc__", "nothing"])
def test_a_name_that_is_no_model_is_passed_over(name):
    config = BertConfig(architectures=[name])
    assert model_class(config).__name__ == "BertModel"


def test_answers_have_names_whatever_the_config_says(folder):
    change(folder, return_dict=False, output_attentions=True)
    model = load(folder)
    assert list(model(**model.dummy_inputs).keys()) == ["logits"]
    model.save_pretrained(folder / "again")  # transformers refuses to save it with attention


def test_a_model_that_works_in_chunks_takes_rows_of_any_length(folder):
    ids = torch.arange(5)[None]
    with torch.no_grad():
        whole = load(folder, head="base")(input_ids=ids).last_hidden_state
        change(folder, chunk_size_feed_forward=3)
        assert torch.equal(load(folder, head="base")(input_ids=ids).last_hidden_state, whole)


def test_a_text_encoder_beside_another_decoder_is_counted(tmp_path):
    kinds = ("text_encoder", "audio_encoder", "decoder")
    parts = {"text_encoder": {"model_type": "t5"}, "audio_encoder": {"model_type": "encodec"}}
    made = MusicgenConfig(
        **parts,
        architectures=["MusicgenForConditionalGeneration"],
        decoder={"num_hidden_layers": 1},
    )
    made.save_pretrained(tmp_path)
    assert set(kinds) <= set(json.loads((tmp_path / "config.json").read_text()))
    assert inspect(str(tmp_path)).length == 128


def test_transformers_talks_again_afterwards(folder):
    from transformers.utils import logging

    before = logging.get_verbosity()
    with configs.silent():
        assert logging.get_verbosity() == logging.CRITICAL
    assert logging.get_verbosity() == before
    assert isinstance(load_config(folder), type(AutoConfig.from_pretrained(folder)))
