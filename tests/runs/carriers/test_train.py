from __future__ import annotations

import json

import headcount as hc


def test_training_leaves_a_model_and_its_record(trained):
    run, folder, record = trained
    assert (record["steps"], record["rows_trained"]) == (2, 40)
    used = record["rows"]["trained"]
    assert (used["split"], used["n"], used["seed"]) == ("train", 40, 0)  # not all of the split
    again = hc.load_record(folder)
    assert again.run == run
    assert again.to_json() == json.loads(json.dumps(record.to_json()))
    assert hc.load(folder, head="sequence-classification").num_labels == 2
