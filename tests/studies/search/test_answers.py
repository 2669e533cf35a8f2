"""The end of a search; what it says of the answer is tested in test_search.py."""

from __future__ import annotations

from typing import Any

import pytest

import headcount as hc
from headcount.pruning.methods import as_method
from headcount.runs.kinds.prune import Prune
from headcount.runs.subject import make_subject
from headcount.studies.search.answers import SearchRequest, mean_length, speed_of, timed
from headcount.training.scoring import Scoring

HELD_OUT = Scoring(split="dev:held-out:0.5:0", bootstrap=20)


def asked(model: Any, task: Any, tokenizer: Any, **search_options: Any) -> SearchRequest:
    return SearchRequest(
        subject=make_subject(model, task, tokenizer=tokenizer),
        methods=(as_method("surgeon"),),
        bound=None,
        like=Prune(method=as_method("surgeon"), repair=()),
        held_out=HELD_OUT,
        search_options=hc.SearchOptions(repeats=6, timing_seconds=0, **search_options),
        seed=0,
        command=None,
        report=lambda text: None,
        note=lambda text: None,
    )


def test_a_cut_says_its_number_of_heads_as_a_ratio(model, task, tokenizer):
    own = asked(model, task, tokenizer)
    for kept in range(13):
        cut = own.cut(own.methods[0])(kept, 2)
        assert own.subject.layout.kept_at(cut.options.share or 0.0) == kept
        assert (cut.label, cut.seed, cut.options.gated) == ("surgeon", 2, True)


def test_the_answer_is_timed_on_rows_like_those_of_the_held_out_set(model, task, tokenizer):
    own = asked(model, task, tokenizer, batch=2)
    lengths = own.subject.scored(HELD_OUT).rows.lengths
    assert mean_length(own) == round(lengths.mean())
    mask = hc.Mask.parse("211", own.subject.layout)
    found = timed(own, mask, hc.remove(model, mask))
    _, row = found.rows
    speed = speed_of(found)
    how = speed["timing"]
    assert (how["batch"], how["length"], how["rounds"]) == (2, mean_length(own), 6)
    assert (row.kind, row.heads) == ("removed", 4)
    assert speed["speedup"]["value"] == row.speedup.median
    assert how["bound"] == row.bound
    assert how["milliseconds"]["before"] / how["milliseconds"]["after"] == pytest.approx(
        row.speedup.median
    )
    several = timed(asked(model, task, tokenizer, length=(5, 6)), mask, hc.remove(model, mask))
    shapes = speed_of(several)["timing"]["shapes"]
    assert [(shape["batch"], shape["length"]) for shape in shapes] == [(8, 5), (8, 6)]
    assert shapes[0]["speedup"] != shapes[1]["speedup"]


def test_trained_gates_are_told_from_other_methods(model, task, tokenizer):
    own = asked(model, task, tokenizer)
    assert not own.trains_gates
    learned = SearchRequest(**{**vars(own), "methods": (as_method("subset"),)})
    assert learned.trains_gates
    assert not learned.cut(learned.methods[0])(3, 0).options.gated
