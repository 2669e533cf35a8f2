"""What a card says of the run that made a model."""

from __future__ import annotations

import json

from huggingface_hub import ModelCard, parse_eval_result_entries

from headcount.models.card import card
from headcount.runs.card import card_results, write_results
from headcount.runs.prune_result import PruneResult
from models.test_card import RECORD, pruned
from runs.whole import result


def test_results_as_the_hub_reads_them(tmp_path):
    import yaml

    write_results(tmp_path, result(PruneResult, RECORD))
    (entry,) = parse_eval_result_entries(
        yaml.safe_load((tmp_path / ".eval_results" / "mrpc.yaml").read_text())
    )
    assert (entry.dataset_id, entry.task_id, entry.value) == ("nyu-mll/glue", "mrpc", 0.85)
    assert "408 rows of dev, 95 %" in entry.notes
    long = {"scores": RECORD["scores"] | {"task": "a" * 5000}}
    write_results(tmp_path, result(PruneResult, long))
    assert (tmp_path / ".eval_results" / f"{'a' * 60}.yaml").is_file()
    for scores in (
        None,
        RECORD["scores"] | {"dataset": None},  # a task of one's own is no benchmark of the hub
        RECORD["scores"] | {"after": {"score": None}},
    ):
        write_results(tmp_path / "none", result(PruneResult, {"scores": scores}))
    assert not (tmp_path / "none").exists()


def test_without_scores_the_card_says_so():
    results = card_results(result(PruneResult, RECORD | {"scores": None}), ["Mind the rows."])
    assert results.scores == ()
    text = card(pruned(), results=results)
    assert "It was not scored: no task was given." in text
    assert "> Mind the rows." in text


def test_a_score_that_is_undefined_is_no_number():
    record = json.loads(json.dumps(RECORD))
    record["scores"]["after"] = {"score": None, "low": None, "high": None}
    text = card(pruned(), results=card_results(result(PruneResult, record)))
    assert "| this model | undefined, no interval |" in text
    assert ModelCard(text).data.eval_results is None


def test_the_name_of_a_half_is_in_no_card(tmp_path):
    scores = RECORD["scores"] | {"split": "dev:held-out:0.5:0"}
    made = result(PruneResult, RECORD | {"scores": scores})
    text = card(pruned(), results=card_results(made))
    write_results(tmp_path, made)
    results = (tmp_path / ".eval_results" / "mrpc.yaml").read_text()
    assert "half of dev (held-out set), n = 408" in text
    assert "half of dev (held-out set, 408 rows)" in " ".join(results.split())
    assert "dev:held-out" not in text + results
