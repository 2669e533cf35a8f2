"""What lies beside a model travels with it; where it came from is known without its path."""

from __future__ import annotations

import json

import pytest

from headcount.exports.export import export
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.origin import base_name, folder_of, front_matter, hub_name
from headcount.models.remove import remove
from models.zoo import build, mixed


@pytest.fixture
def sentences(tmp_path):
    """A folder as sentence-transformers writes it, with other things that lie about."""
    folder = tmp_path / "sentences"
    build("bert").save_pretrained(folder)
    kept = {
        "vocab.txt": "[PAD]\n",
        "modules.json": json.dumps(
            [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "../../etc"}]
        ),
        "config_sentence_transformers.json": "{}",
        "sentence_bert_config.json": '{"max_seq_length": 128}',
        "1_Pooling/config.json": '{"pooling_mode_mean_tokens": true}',
        "2_Dense/config.json": "{}",
        "2_Dense/model.safetensors": "of the dense layer",
        "notes/deep/a.txt": "a note",
        "LICENSE": "free",
    }
    left = {
        "pytorch_model.bin": "old",
        "model.safetensors.index.json": "{}",
        "onnx/model.onnx": "of all heads",
        "onnx/config.json": "{}",
        "checkpoint-7/model.safetensors": "earlier",
        "checkpoint-7/config.json": "{}",
        ".git/HEAD": "ref",
        ".eval_results/mrpc.yaml": "[]",
        "mask.json": "{}",
        "record.json": "{}",
        "curve.jsonl": "",
    }
    for name, text in (kept | left).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "secret").write_text("a key")
    (folder / "linked.txt").symlink_to(tmp_path / "secret")
    return folder, kept, left


def test_every_file_that_is_not_weights_config_or_record_is_kept(sentences, tmp_path):
    folder, kept, left = sentences
    model = load(folder)
    small = remove(model, mixed(layout(model)))
    for _ in range(2):  # into a folder that is there, too
        small.save_pretrained(tmp_path / "out")
    done = export(load(tmp_path / "out"), "zeroed", tmp_path / "full")
    assert "1_Pooling/config.json" in done.files
    for made in (tmp_path / "out", tmp_path / "full"):
        for name, text in kept.items():
            assert (made / name).read_text() == text, name
        for name in (*left, "linked.txt"):
            assert not (made / name).exists(), name
        assert layout(load(made)) is not None


def test_a_model_from_nowhere_takes_nothing_along(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "vocab.txt").write_text("mine")
    monkeypatch.chdir(tmp_path / "here")
    model = build("bert")
    remove(model, mixed(layout(model))).save_pretrained(tmp_path / "out")
    assert not (tmp_path / "out" / "vocab.txt").exists()


def test_files_of_a_model_in_the_hubs_cache(tmp_path, monkeypatch):
    from huggingface_hub import constants

    from headcount.models import origin

    cache = tmp_path / "models--some--bert"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text("a" * 40)
    (cache / "blobs").mkdir()
    (cache / "blobs" / "1").write_text("---\nlicense: mit\n---\n")
    shot = cache / "snapshots" / ("a" * 40)
    shot.mkdir(parents=True)
    (shot / "README.md").symlink_to("../../blobs/1")
    (shot / "vocab.txt").symlink_to("../../blobs/1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        origin, "snapshot_download", lambda name, **more: _offline(name, str(tmp_path), **more)
    )
    assert folder_of("some/bert") == shot
    assert front_matter("some/bert") == {"license": "mit"}
    (tmp_path / "out").mkdir()
    origin.copy_companions("some/bert", tmp_path / "out")
    assert (tmp_path / "out" / "vocab.txt").is_file()
    assert folder_of("some/other") is None


def _offline(name, cache, **more):
    from huggingface_hub import snapshot_download

    return snapshot_download(name, cache_dir=cache, local_files_only=True, **more)


def test_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half").mkdir()
    assert hub_name("org/name") == "org/name"
    assert hub_name("gpt2") == "gpt2"
    for path in ("half", "./gone", "../gone", "/gone", "~/gone", "a/b/c", "", "a b", "x\ny"):
        assert hub_name(path) == "", path
    config = build("bert").config
    config._name_or_path = "half"
    assert base_name(config) == "./half"
    config._name_or_path = ""
    assert base_name(config) == ""


@pytest.fixture
def with_code(tmp_path):
    """A folder that names code of its own, and has it."""
    folder = tmp_path / "foreign"
    build("bert").save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "modeling_foreign.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    words = {"auto_map": {"AutoTokenizer": ["words.Words", None]}, "a": {"auto_map": 1, "b": 2}}
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    (folder / "modeling_foreign.py").write_text("raise SystemExit('it ran')")
    (folder / "more").mkdir()
    (folder / "more" / "words.py").write_text("raise SystemExit('it ran')")
    return folder


def test_code_of_a_folder_is_not_carried_along_and_that_is_said(with_code, tmp_path, caplog):
    model = load(with_code)
    (note,) = [text for text in caplog.messages if "code of its own" in text]
    assert "(auto_map in its config.json, modeling_foreign.py)" in note
    small = remove(model, mixed(layout(model)))
    small.save_pretrained(tmp_path / "small")
    model.save_pretrained(tmp_path / "trained")
    export(load(tmp_path / "small"), "zeroed", tmp_path / "full")
    for made in ("small", "full", "trained"):
        assert not list((tmp_path / made).rglob("*.py")), made
        assert "auto_map" not in (tmp_path / made / "config.json").read_text(), made
    for made in ("small", "full"):
        assert json.loads((tmp_path / made / "tokenizer_config.json").read_text()) == {
            "a": {"b": 2}
        }


def test_a_model_that_transformers_loaded_leaves_its_code_too(with_code, tmp_path, caplog):
    from transformers import BertForSequenceClassification

    model = BertForSequenceClassification.from_pretrained(with_code)
    assert model.config.auto_map
    remove(model, mixed(layout(model))).save_pretrained(tmp_path / "small")
    assert "code of its own" in caplog.text
    assert "auto_map" not in (tmp_path / "small" / "config.json").read_text()
    assert not list((tmp_path / "small").rglob("*.py"))


def test_the_code_of_a_standalone_export_is_its_own(tmp_path):
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    export(small, "standalone", tmp_path / "alone")
    assert "auto_map" in (tmp_path / "alone" / "config.json").read_text()
    assert list((tmp_path / "alone").glob("*.py"))
