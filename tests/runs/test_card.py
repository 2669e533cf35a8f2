"""What a card says of the run that made a model."""

from __future__ import annotations

import json

import pytest
from huggingface_hub import ModelCard, parse_eval_result_entries

from headcount.models.card import CardResults, card
from headcount.runs.card import card_results, without_paths, write_results
from models.test_card import RECORD, pruned


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


@pytest.mark.parametrize(
    "damage", [{"heads": 3}, {"scores": []}, {"scores": {"n": 1}}, {"seed": {}}]
)
def test_a_damaged_record_costs_a_section_not_the_card(damage):
    small = pruned()
    assert "## How to load" in card(small, results=card_results(RECORD | damage))
    assert card_results({}) == CardResults()


def test_a_score_that_is_undefined_is_no_number():
    record = json.loads(json.dumps(RECORD))
    record["scores"]["after"] = {"score": None, "low": None, "high": None}
    text = card(pruned(), results=card_results(record))
    assert "| this model | undefined, no interval |" in text
    assert ModelCard(text).data.eval_results is None


def test_commands_keep_their_names_and_lose_their_paths():
    said = without_paths("headcount prune '/home/me/my run' --out=~/x/half ../a/b 'unclosed")
    assert "/home" not in said
    assert "~" not in said
    assert without_paths("headcount prune org/name --ratio 0.5").endswith("org/name --ratio 0.5")


def test_the_name_of_a_half_is_in_no_card(tmp_path):
    scores = RECORD["scores"] | {"split": "dev:held-out:0.5:0"}
    text = card(pruned(), results=card_results(RECORD | {"scores": scores}))
    write_results(tmp_path, {"scores": scores})
    results = (tmp_path / ".eval_results" / "mrpc.yaml").read_text()
    assert "half of dev (held-out set), n = 408" in text
    assert "half of dev (held-out set, 408 rows)" in " ".join(results.split())
    assert "dev:held-out" not in text + results
