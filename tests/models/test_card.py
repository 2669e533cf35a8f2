"""Cards: what a pruned model says about itself, whatever names and files say."""

from __future__ import annotations

import json

import pytest
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from markdown_it import MarkdownIt

from headcount.exports.export import export
from headcount.heads import Mask
from headcount.models.card import CardResults, as_code, card, escaped, results_of, write_card
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.remove import remove
from headcount.runs.card import card_results, write_results
from headcount.runs.prune_result import PruneResult
from models.zoo import build, mixed
from runs.whole import result

RECORD = {
    "method": "random",
    "seed": 0,
    "heads": {"before": 16, "after": 9, "kept": "0234"},
    "repair": [{"name": "recover", "rows": "task", "steps": 0}],
    "scores": {
        "task": "mrpc",
        "split": "dev",
        "metric": "f1",
        "n": 408,
        "before": {"score": 0.9, "low": 0.88, "high": 0.92},
        "after": {"score": 0.85, "low": 0.82, "high": 0.88},
        "random": {"draws": 3, "mean": 0.7, "worst": 0.65, "best": 0.75},
        "dataset": {"id": "nyu-mll/glue", "task": "mrpc"},
    },
}
COMMAND = "headcount prune /home/me/secret/bert --out /home/me/half --task mrpc"
NASTY = "<img src=x onerror=alert(1)>\n# Title\n---\nlicense: mine\n`` `rm -rf` | [a](http://b) *c*"


def pruned(name=""):
    model = build("bert")
    model.config._name_or_path = str(name)
    return remove(model, mixed(layout(model)))


@pytest.fixture
def half(tmp_path):
    """A pruned model in a folder called half, with its record, cut from a folder called bert."""
    build("bert").save_pretrained(tmp_path / "bert")
    (tmp_path / "bert" / "README.md").write_text(
        "---\nlicense: mit\nbase_model: google/bert\nlanguage:\n- en\nthumbnail: x\n---\n# B\n"
    )
    model = load(tmp_path / "bert")
    small = remove(model, mixed(layout(model)))
    small.save_pretrained(tmp_path / "half")
    made = result(PruneResult, RECORD)
    write_card(small, tmp_path / "half", card_results(made, command=COMMAND))
    write_results(tmp_path / "half", made)
    return tmp_path / "half"


def test_the_card_of_a_cut_names_base_license_and_use(half):
    found = ModelCard.load(half / "README.md")
    assert found.data.base_model == "google/bert"
    assert found.data.license == "mit"
    assert found.data.language == ["en"]
    assert found.data.pipeline_tag == "text-classification"
    assert found.data.tags == ["headcount", "pruned-attention-heads"]
    assert "thumbnail" not in found.data.to_dict()
    assert "9 of 16 attention heads of `bert`" in found.content


@pytest.mark.parametrize("to", ["zeroed", "standalone", "torch-export"])
def test_an_export_says_what_the_model_says(half, tmp_path, to):
    export(load(half), to, tmp_path / "out")
    found = ModelCard.load(tmp_path / "out" / "README.md")
    text = found.content
    assert "9 of 16 attention heads of `bert`" in text
    assert "of `half`" not in text
    assert "## What it cost" in text
    assert "0.8500, 95 % interval [0.8200, 0.8800]" in text
    assert ("zeros where heads were" in text) == (to == "zeroed")
    assert (found.data.license, found.data.base_model) == ("mit", "google/bert")
    assert found.data.library_name == ("pytorch" if to == "torch-export" else "transformers")
    (result,) = found.data.eval_results
    assert (result.metric_type, result.metric_value) == ("f1", 0.85)
    assert (tmp_path / "out" / ".eval_results" / "mrpc.yaml").is_file()
    for file in (path for path in (tmp_path / "out").rglob("*") if path.is_file()):
        held = file.read_bytes()
        assert str(tmp_path).encode() not in held, file
        assert b"/home/me" not in held, file


def test_an_export_of_another_cut_says_nothing_of_the_scores_of_this_one(half, tmp_path):
    once = load(half)
    twice = remove(once, Mask.full(layout(once)).drop([("encoder", 3, 0)]))
    export(twice, "zeroed", tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    assert "8 of 16 attention heads of `bert`" in text
    assert "What it cost" not in text
    assert "model-index" not in text
    assert not (tmp_path / "out" / ".eval_results").exists()


def test_a_card_that_is_damaged_or_somebody_elses_costs_the_scores_only(half, tmp_path):
    card_file = half / "README.md"
    written = card_file.read_text()
    assert results_of(load(half)).section
    for text in ("", "---\n", written.replace("- headcount", "- other"), "x" * 2**21, "\x00"):
        card_file.write_text(text)
        assert results_of(load(half)) == CardResults()
    card_file.write_bytes(b"\xff")
    assert results_of(load(half)) == CardResults()


def test_a_name_on_the_hub_is_the_base_and_a_path_is_not(tmp_path):
    front = ModelCard(card(pruned("google/bert-tiny"))).data
    assert front.base_model == "google/bert-tiny"
    for name in (tmp_path / "run", "./runs/one", "../elsewhere/run", "/gone/for/ever", ""):
        text = card(pruned(name))
        assert ModelCard(text).data.base_model is None, name
        assert str(tmp_path) not in text
        assert "runs" not in text
        assert "gone" not in text


def test_a_second_cut_still_names_the_first_model(half):
    once = load(half)
    twice = remove(once, Mask.full(layout(once)).drop([("encoder", 3, 0)]))
    assert "8 of 16 attention heads of `bert`" in card(twice)


# --- text from files and names ---


def test_names_are_no_markup():
    small = pruned()
    small.config.headcount["base"] = NASTY
    small.config.headcount["sites"][0]["stack"] = "a | b <b>"
    small.config.model_type = "bert"
    record = json.loads(json.dumps(RECORD))
    record |= {"method": NASTY}
    record["repair"] = [{"name": NASTY, "rows": NASTY, "steps": 0}]
    record["scores"] |= {"task": NASTY, "metric": NASTY, "split": NASTY}
    text = card(small, results=card_results(result(PruneResult, record), [NASTY], NASTY))
    body = text.split("---\n", 2)[2]
    parsed = MarkdownIt("commonmark", {"html": True}).enable("table").parse(body)
    every = [token for block in parsed for token in (block, *(block.children or ()))]
    kinds = {token.type for token in every}
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "em_open", "hr"}
    assert sum(token.type == "heading_open" for token in every) == 3
    assert sum(token.type == "table_open" for token in every) == 3
    front = ModelCard(text).data
    assert front.license is None
    name, _ = model_index_to_eval_results(front.to_dict()["model-index"])
    assert name == "b) *c* with 9 heads", "one text, whatever it holds"


def test_escapes():
    assert escaped("a*b_c <i>\x1b[31m\n# d") == r"a\*b\_c &lt;i&gt;\\x1b\[31m\\x0a\# d"
    assert as_code("plain") == "`plain`"
    assert as_code("a ` b") == "`` a ` b ``"


def test_a_front_matter_of_strange_things_is_left_out(half):
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nlicense: *b\nbase_model: {x: y}\nlanguage: 7\n"
    for front in (bomb, "license: [", "\x00", "- license: mit", "license: ''"):
        (half / "README.md").write_text(f"---\n{front}---\n", encoding="utf-8")
        text = card(load(half))
        assert ModelCard(text).data.license is None
        assert ModelCard(text).data.base_model is None
