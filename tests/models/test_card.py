"""Cards: what a pruned model says about itself, whatever names and files say."""

from __future__ import annotations

import json

import pytest
from huggingface_hub import ModelCard, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results
from markdown_it import MarkdownIt

from headcount.exports.formats import export
from headcount.heads import Mask
from headcount.models.card import as_code, card, cost, escaped, without_paths, write_results
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.remove import remove
from models.zoo import build, mixed

RECORD = {
    "method": "random",
    "seed": 0,
    "heads": {"before": 16, "after": 9, "kept": "0234"},
    "repair": [{"name": "recover", "rows": "task", "steps": 0}],
    "command": "headcount prune /home/me/secret/bert --out /home/me/half --task mrpc",
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
    remove(model, mixed(layout(model))).save_pretrained(tmp_path / "half")
    (tmp_path / "half" / "record.json").write_text(json.dumps(RECORD))
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


def test_results_as_the_hub_reads_them(tmp_path):
    import yaml

    write_results(tmp_path, RECORD)
    (entry,) = parse_eval_result_entries(
        yaml.safe_load((tmp_path / ".eval_results" / "mrpc.yaml").read_text())
    )
    assert (entry.dataset_id, entry.task_id, entry.value) == ("nyu-mll/glue", "mrpc", 0.85)
    assert "408 rows of dev, 95 %" in entry.notes
    long = {"scores": RECORD["scores"] | {"task": "a" * 5000}}  # as a damaged record has it
    write_results(tmp_path, long)
    assert (tmp_path / ".eval_results" / f"{'a' * 60}.yaml").is_file()
    write_results(tmp_path / "none", {})  # a task of one's own is no benchmark of the hub
    write_results(tmp_path / "none", {"scores": RECORD["scores"] | {"dataset": None}})
    nameless = {name: value for name, value in RECORD["scores"].items() if name != "task"}
    write_results(tmp_path / "none", {"scores": nameless})
    assert not (tmp_path / "none").exists()


# --- text from files and names ---


def test_names_are_no_markup():
    small = pruned()
    small.config.headcount["base"] = NASTY
    small.config.headcount["sites"][0]["stack"] = "a | b <b>"
    small.config.model_type = "bert"
    record = json.loads(json.dumps(RECORD))
    record |= {"method": NASTY, "command": NASTY}
    record["repair"] = [{"name": NASTY, "rows": NASTY, "steps": 0}]
    record["scores"] |= {"task": NASTY, "metric": NASTY, "split": NASTY}
    text = card(small, record=record)
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


@pytest.mark.parametrize(
    "damage", [{"heads": 3}, {"scores": []}, {"scores": {"n": 1}}, {"seed": {}}]
)
def test_a_damaged_record_costs_a_section_not_the_card(damage):
    small = pruned()
    assert "## How to load" in card(small, record=RECORD | damage)
    assert isinstance(cost({}), str)


def test_a_score_that_is_undefined_is_no_number():
    record = json.loads(json.dumps(RECORD))
    record["scores"]["after"] = {"score": None, "low": None, "high": None}
    text = card(pruned(), record=record)
    assert "| this model | undefined, no interval |" in text
    assert ModelCard(text).data.eval_results is None


def test_commands_keep_their_names_and_lose_their_paths():
    said = without_paths("headcount prune '/home/me/my run' --out=~/x/half ../a/b 'unclosed")
    assert "/home" not in said
    assert "~" not in said
    assert without_paths("headcount prune org/name --ratio 0.5").endswith("org/name --ratio 0.5")


def test_the_name_of_a_half_is_in_no_card(tmp_path):
    scores = RECORD["scores"] | {"split": "dev:scored:0.5:0"}
    text = card(pruned(), record=RECORD | {"scores": scores})
    write_results(tmp_path, {"scores": scores})
    results = (tmp_path / ".eval_results" / "mrpc.yaml").read_text()
    assert "half of dev (held-out set), n = 408" in text
    assert "half of dev (held-out set, 408 rows)" in " ".join(results.split())
    assert "dev:scored" not in text + results
