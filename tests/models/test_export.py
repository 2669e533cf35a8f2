"""Exports: every family as a checkpoint in a fresh process without headcount; graphs by example."""

from __future__ import annotations

import copy
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForSequenceClassification,
    dynamic_module_utils,
)

from headcount.errors import HeadcountError, MissingExtraError, UnsupportedError, UsageError
from headcount.heads import Mask
from headcount.models import cut, export_checkpoint, export_graph
from headcount.models import export as room
from headcount.models.export import export
from headcount.models.export_checkpoint import auto_names, plain_class
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.encoding import encode
from models.zoo import FAMILIES, build, masks, mixed, shallow
from training.conftest import tiny

FRESH = Path(__file__).parent / "fresh.py"


def pruned(family, **changes):
    model = build(family, **changes)
    return remove(model, mixed(layout(model)))


def unseen(model):
    """Inputs that the export has not seen when it verified itself."""
    inputs = probe_inputs(model, batch=2, length=9, seed=7)
    if not hasattr(model.config, "pad_token_id"):
        inputs.pop("attention_mask", None)
    return inputs


# --- zeroed and standalone: every family, in a process that cannot import headcount ---


def export_the_zoo(to: str, root: Path) -> dict:
    """{family: what one fresh process found in all the exports}."""
    for family in FAMILIES:
        small = pruned(family)
        assert export(small, to, root / family).difference <= 1e-5
        inputs = unseen(small)
        torch.save((inputs, run(small, inputs)), root / family / "answers.pt")
        (root / family / "auto.txt").write_text(auto_names(small.config, plain_class(small))[0])
    return fresh(root)


def fresh(root: Path) -> dict:
    """Run fresh.py over the folders in `root` with headcount out of reach."""
    environment = os.environ | {"HF_HOME": str(root.parent / "home"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-I", FRESH, root],
        capture_output=True,
        text=True,
        cwd=root,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_zeroed_loads_with_plain_transformers(tmp_path):
    found = export_the_zoo("zeroed", tmp_path / "zoo")
    assert list(found) == sorted(FAMILIES)
    for family, seen in found.items():
        assert seen["class"] == "".join(FAMILIES[family][:2])
        assert seen["module"].startswith("transformers.models.")
        assert not seen["headcount"], family
        assert seen["difference"] <= 1e-5, family
        assert seen["changed"] > 1e-3, f"the weights of {family} do not matter"


def test_standalone_loads_without_headcount(tmp_path):
    found = export_the_zoo("standalone", tmp_path / "zoo")
    assert list(found) == sorted(FAMILIES)
    for family, seen in found.items():
        assert seen["class"] == "".join(FAMILIES[family][:2])
        assert seen["module"].startswith("transformers_modules.")
        assert seen["headcount"], family
        assert seen["difference"] == 0, family
        assert seen["changed"] > 1e-3, f"the weights of {family} do not matter"
        for again in ("copied", "pickled", "saved again", "backbone"):
            assert seen[again] == 0, (family, again)


def test_all_heads_gone_everywhere(tmp_path):
    for family in ("bert", "t5", "llama", "albert", "bloom"):
        model = build(family)
        small = remove(model, masks(layout(model))["all emptied"])
        for to in ("zeroed", "standalone"):
            assert export(small, to, tmp_path / family / to).difference <= 1e-5


def test_zeroed_has_zeros_where_heads_were(tmp_path):
    model = build("bert")
    small = remove(model, Mask.full(layout(model)).drop([("encoder", 1, 2)]))
    export(small, "zeroed", tmp_path / "out")
    full = BertForSequenceClassification.from_pretrained(tmp_path / "out")
    attention = full.bert.encoder.layer[1].attention
    own = model.bert.encoder.layer[1].attention
    gone, kept = slice(16, 24), [*range(16), *range(24, 32)]
    for name in ("query", "key", "value"):
        for part in ("weight", "bias"):
            found = getattr(getattr(attention.self, name), part)
            assert not found[gone].any()
            assert torch.equal(found[kept], getattr(getattr(own.self, name), part)[kept])
    assert not attention.output.dense.weight[:, gone].any()
    assert torch.equal(attention.output.dense.weight[:, kept], own.output.dense.weight[:, kept])
    assert torch.equal(attention.output.dense.bias, own.output.dense.bias)


def test_zeroed_keeps_dtype_and_ties(tmp_path):
    model = build("gpt2").to(torch.bfloat16)
    small = remove(model, mixed(layout(model)))
    export(small, "zeroed", tmp_path / "out")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert again.dtype == torch.bfloat16
    assert again.lm_head.weight is again.transformer.wte.weight
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert "headcount" not in config
    assert small.config.headcount["sites"], "the model's own config is left alone"


def test_zeroed_of_a_model_pruned_twice(tmp_path):
    model = build("llama")
    once = remove(model, mixed(layout(model)))
    twice = remove(once, Mask.full(layout(once)).drop([("decoder", 3, 0), ("decoder", 3, 1)]))
    export(twice, "zeroed", tmp_path / "out")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    inputs = unseen(twice)
    assert relative_difference(run(twice, inputs), run(again, inputs)) <= 1e-5


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


def test_a_wrong_modelling_file_is_refused(tmp_path, monkeypatch):
    source = export_checkpoint._source
    monkeypatch.setattr(
        export_checkpoint, "_source", lambda kinds: source(kinds).replace("+ bias", "- bias")
    )
    with pytest.raises(UnsupportedError, match="differ from the model's"):
        export(pruned("gpt2"), "standalone", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_modelling_file_needs_nothing_else(tmp_path):
    export(pruned("bert"), "standalone", tmp_path / "out")
    text = (tmp_path / "out" / "modeling_headcount.py").read_text()
    assert "import headcount" not in text
    assert "from headcount" not in text
    assert text.startswith(Path(cut.__file__).read_text().rstrip())
    # headcount itself still reads the folder
    assert len(layout(load(tmp_path / "out"))) == 9


def test_a_class_of_ones_own_cannot_stand_alone(tmp_path):
    class Mine(BertForSequenceClassification):
        pass

    model = Mine(build("bert").config)
    small = remove(model, mixed(layout(model)))
    with pytest.raises(UnsupportedError, match="Mine is not one of transformers' own classes"):
        export(small, "standalone", tmp_path / "out")


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


def test_zeroed_of_a_whole_model_is_the_model(tmp_path):
    model = build("bert")
    export(model, "zeroed", tmp_path / "out")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert relative_difference(run(model, unseen(model)), run(again, unseen(model))) == 0
    assert "AutoModelForSequenceClassification" in (tmp_path / "out" / "README.md").read_text()


def test_standalone_of_a_whole_model_is_pointless(tmp_path):
    with pytest.raises(UsageError, match="has all its heads, so it needs no code of its own"):
        export(build("bert"), "standalone", tmp_path / "out")


# --- what is refused at the door ---


def test_bad_input(tmp_path):
    model = pruned("bert")
    with pytest.raises(UsageError, match=r"no export to 'zeroes'. Did you mean 'zeroed'\?"):
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


def test_onnx_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(MissingExtraError, match=r"onnxscript.*pip install 'headcount\[onnx\]'"):
        export(pruned("bert"), "onnx", tmp_path / "out")


# --- graphs; benchmarks/coverage/exports.py does this for every family ---


def one_layer(family):
    model = build(family, **shallow(family, 1))
    return remove(model, masks(layout(model))["uneven"])


def two_layers(family):
    """Layer 0 emptied, layer 1 uneven."""
    return pruned(family, **shallow(family, 2))


def feeds_of(model):
    """Inputs of a shape that no export has seen."""
    inputs = probe_inputs(model, batch=5, length=13, seed=3)
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = inputs["input_ids"] % 2
    return inputs


@pytest.mark.parametrize(
    ("family", "made"),
    [
        ("bert", two_layers),
        ("t5", one_layer),  # torch cannot turn its fused attention into ONNX
        ("clip", one_layer),  # texts and images each in their own number
        ("falcon-alibi", one_layer),  # eager is not its fused attention; a part is bfloat16
    ],
)
def test_onnx_runs_in_onnxruntime(family, made, tmp_path, capfd):
    import onnxruntime

    small = made(family)
    capfd.readouterr()
    done = export(small, "onnx", tmp_path / "out")
    assert capfd.readouterr() == ("", "")
    assert done.difference <= 1e-4
    assert set(done.files) == {"README.md", "model.onnx"}
    assert (
        str(Path(torch.__file__).parent).encode() not in (tmp_path / "out/model.onnx").read_bytes()
    )
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert {put.name for put in session.get_inputs()} == set(feeds_of(small))
    for put in session.get_inputs():
        assert [word for word in put.shape if isinstance(word, str)] == list(
            export_graph.AXES.get(put.name, (f"{put.name}_batch",))
        )
    feeds = feeds_of(small)
    with torch.no_grad():
        expected = small(**feeds)
    names = [put.name for put in session.get_outputs()]
    assert names[0] == "logits_per_image" if family == "clip" else "logits"
    for name, found in zip(names, session.run(None, numpy(feeds)), strict=True):
        assert relative_difference([expected[name]], [torch.from_numpy(found)]) <= 1e-4


def numpy(feeds):
    return {name: tensor.numpy() for name, tensor in feeds.items()}


@pytest.mark.parametrize(
    ("family", "made"), [("gpt2-cross", two_layers), ("llama", one_layer), ("whisper", one_layer)]
)
def test_torch_export_loads_again(family, made, tmp_path, capfd):
    small = made(family)
    capfd.readouterr()
    done = export(small, "torch-export", tmp_path / "out")
    assert capfd.readouterr() == ("", "")
    assert done.difference <= 1e-5
    assert set(done.files) == {"README.md", "model.pt2"}
    again = torch.export.load(tmp_path / "out" / "model.pt2").module()
    feeds = feeds_of(small)
    with torch.no_grad():
        expected, answers = small(**feeds), again(**feeds)
    for name, found in answers.items():
        assert relative_difference([expected[name]], [found]) <= 1e-5


def test_a_whole_model_as_a_graph_by_its_own_probe(tmp_path):
    model = build("bert", **shallow("bert", 1)).train()
    inputs = probe_inputs(model, batch=2, length=5)
    export(model, "torch-export", tmp_path / "out", probe=inputs)
    assert model.training
    again = torch.export.load(tmp_path / "out" / "model.pt2").module()
    feeds = {name: value for name, value in feeds_of(model).items() if name in inputs}
    model.eval()
    with torch.no_grad():
        difference = relative_difference([model(**feeds).logits], [again(**feeds)["logits"]])
    assert difference <= 1e-5


class Moody(BertForSequenceClassification):
    """What it does depends on the data, so it is no graph."""

    def forward(self, input_ids, attention_mask=None):
        if input_ids.sum() % 2:
            input_ids = input_ids.flip(1)
        return super().forward(input_ids, attention_mask)


@pytest.mark.parametrize(("to", "words"), [("onnx", "ONNX"), ("torch-export", "torch.export")])
def test_what_cannot_be_a_graph_is_refused(to, words, tmp_path):
    model = Moody(build("bert", **shallow("bert", 1)).config)
    with pytest.raises(
        UnsupportedError, match=rf"cannot export Moody \('bert'\) to {words}: "
    ) as no:
        export(model, to, tmp_path / "out")
    assert "\n" not in str(no.value)
    assert "float32" not in str(no.value)
    # onnxruntime lacks much in other dtypes, so that is worth a hint
    with pytest.raises(UnsupportedError, match=r"bfloat16; float32 may work \(--dtype float32\)"):
        export(model.to(torch.bfloat16), to, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_answers_otherwise_is_refused(tmp_path, monkeypatch):
    def wrong(answers, inputs, right=export_graph.traced):
        other = copy.deepcopy(answers)
        with torch.no_grad():
            other.model.classifier.bias.add_(1)
        return right(other, inputs)

    monkeypatch.setattr(export_graph, "traced", wrong)
    with pytest.raises(UnsupportedError, match=r"torch.export: its answers differ"):
        export(two_layers("bert"), "torch-export", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_for_one_shape_only_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(export_graph, "open_axes", lambda name, tensor: {})
    with pytest.raises(UnsupportedError, match=r"to torch.export: "):
        export(two_layers("bert"), "torch-export", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# --- text pairs ---


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


@pytest.mark.parametrize("to", list(room.FORMATS))
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


def test_padding_outside_a_window_of_attention_is_no_answer(tmp_path):
    # a window of 4 in a row with 9 padded tokens: softmax over nothing is anything
    small = one_layer("mistral")
    light, heavy = (probe_inputs(small, length=length) for length in (7, 14))
    heavy["attention_mask"][1, 5:] = 0
    assert export(small, "onnx", tmp_path / "out", rows=[light, heavy]).difference <= 1e-4


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
