from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headcount.heads import Layout, Mask
from headcount.views.tables.search import search_table

CUT = {"method": "surgeon", "seeds": [0], "rows": 99, "score": 0.79, "probability": 0.61,
       "difference": {"value": -0.01, "low": -0.03, "high": 0.02}}  # fmt: skip
DATA: dict[str, Any] = {
    "model": "tiny", "bound": "1 %", "task": "pets", "metric": "f1",
    "method": "surgeon", "kept": 24, "seed": 0,
    "sentence": "tiny needs 24 of its 48 heads.",
    "rows": {"calibration": {"split": "train", "n": 512, "seed": None},
             "held_out": {"split": "dev", "n": 1000, "seed": None}},
    "score": None, "heads": 48, "random": None,
    "sizes": [
        CUT | {"kept": 36, "accepted": True}, CUT | {"kept": 24, "accepted": True},
        CUT | {"kept": 12, "accepted": False},
        CUT | {"kept": 6, "accepted": None, "probability": None},
    ],
}  # fmt: skip


def test_every_cut_has_a_line_and_the_sentence_comes_last(shown: Callable[[Any], str]) -> None:
    lines = [line.split() for line in shown(search_table(DATA)).splitlines()]
    cuts = [line for line in lines if line[:1] == ["surgeon"]]
    assert [line[1] for line in cuts] == ["36", "24", "12", "6"]
    assert "seed" in lines[2]
    assert [" ".join(line[-2:]) for line in cuts[:3]] == ["% enough", "% selected", "too few"]
    assert "−0.0100" in cuts[0]
    assert "[−0.0300," in cuts[0]
    assert " ".join(lines[-2]) == "tiny needs 24 of its 48 heads."
    assert " ".join(lines[-1]) == "Calibrated on 512 rows of train, estimated on 1,000 rows of dev."


def test_a_number_of_heads_has_one_line_for_all_its_seeds(shown: Callable[[Any], str]) -> None:
    two = CUT | {"seeds": [4, 5], "kept": 24, "accepted": True, "probability": 0.861}
    said = shown(search_table(DATA | {"sizes": [two], "seed": 5}))
    (line,) = [line.split() for line in said.splitlines() if line.strip().startswith("surgeon")]
    assert line[1:4] == ["24", "4,", "5"]
    assert " ".join(line[-5:]) == "86.1 % selected, seed 5"


def test_the_held_out_score_stands_beside_random_heads(shown: Callable[[Any], str]) -> None:
    random = {"draws": 3, "mean": 0.811, "worst": 0.79, "best": 0.82}
    more = {"full": 0.85, "score": 0.84, "probability": 0.7, "difference": CUT["difference"]}
    said = shown(search_table(DATA | more | {"random": random}))
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "all heads 48 0.8500" in lines
    assert "surgeon, seed 0 24 0.8400 −0.0100 [−0.0300, 0.0200] 70.0 %" in lines
    assert "random, mean of 3: 0.7900 to 0.8200 24 0.8110 −0.0390" in lines
    alone = shown(search_table(DATA | more | {"random": random | {"draws": 1}}))
    assert "0.7900 to" not in alone


def test_the_heads_that_stay_are_drawn(shown: Callable[[Any], str]) -> None:
    mask = Mask.parse("21", Layout.of(encoder=[2, 2]))
    lines = shown(search_table(DATA | {"mask": mask.to_json()})).splitlines()
    start = lines.index("Heads kept, by layer")
    assert [line.count("#") for line in lines[start + 1 : start + 3]] == [2, 1]


def test_rows_that_were_not_used_are_left_out(shown: Callable[[Any], str]) -> None:
    rows = {"repair": None, "held_out": {"split": "dev", "n": 5, "seed": None}}
    assert shown(search_table(DATA | {"rows": rows})).endswith("Estimated on 5 rows of dev.")


def test_a_probability_that_rows_cannot_tell_is_unknown(shown: Callable[[Any], str]) -> None:
    """A number of heads of which nothing is known was said to be too few."""
    none = {"value": -0.01, "low": None, "high": None, "no_interval": "it takes 60 rows"}
    size = CUT | {"kept": 12, "accepted": False, "probability": None, "difference": none}
    text = shown(search_table(DATA | {"sizes": [size]}))
    assert "none: it takes 60 rows" in text
    assert "unknown" in text
    assert "too few" not in text
