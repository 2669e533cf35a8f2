from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

import headcount as hc
from headcount.base.errors import NotFoundError, UsageError
from headcount.behaviour.result import Roles, quantity
from headcount.behaviour.words import ROLES
from headcount.heads import Layout

LAYOUT = Layout.of(encoder=[3, 1])


def roles(layout: Layout = LAYOUT, **values: Any) -> Roles:
    """Scores with errors of 0.01 and chances of 0.1; what is not given is 0.1."""
    heads = len(layout)
    chance = np.full(heads, 0.1)
    own = {
        name: quantity(name, values.get(name, chance), np.full(heads, 0.01), 100, chance=chance)
        for name in ROLES
    }
    return Roles(layout=layout, count=100, inputs="made up", quantities=own, provenance={"seed": 1})


def test_intervals_are_students() -> None:
    found = quantity("previous", [0.5], [0.1], [5])
    wide = t.ppf(0.975, 4) * 0.1
    np.testing.assert_allclose([found.low[0], found.high[0]], [0.5 - wide, 0.5 + wide])
    assert found.unit == "share"
    wide = quantity("same", [0.99], [0.1], [5])
    assert wide.high[0] == 1, "a share is no more than all"
    assert quantity("reach", [0.1], [1.0], [5]).low[0] < 0


def test_a_role_is_the_largest_share_that_is_clearly_above_chance() -> None:
    # the lower end of 0.36 is 0.34: a quarter of the way from 0.1 to 1 is 0.325
    found = roles(previous=[0.36, 0.34, 0.6, 0.1], first=[0.1, 0.1, 0.7, math.nan])
    assert found.roles == ("previous", None, "first", None)


def test_without_an_interval_there_is_no_role() -> None:
    one = quantity("same", [0.9] * 4, [math.nan] * 4, [1] * 4, chance=np.full(4, 0.1))
    found = Roles(layout=LAYOUT, count=1, inputs="", quantities={"same": one})
    assert found.roles == (None,) * 4
    assert Roles(layout=LAYOUT, count=1, inputs="", quantities={}).roles == (None,) * 4


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    found = roles(previous=[0.9, math.nan, 0.2, 2 / 3])
    again = hc.load_roles(found.save(tmp_path / "roles.json"))
    assert again.to_json() == found.to_json()
    assert again.roles == found.roles == ("previous", None, None, "previous")
    assert math.isnan(again["previous"].values[1])
    data = json.loads((tmp_path / "roles.json").read_text())
    assert data["quantities"]["previous"]["values"][1] is None
    assert data["chance"]["previous"] == 0.1
    assert data["roles"] == list(found.roles)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "something"}, "is no file of roles"),
        ({"version": 9}, "another version of headcount"),
        ({"count": "many"}, "are damaged"),
        ({"quantities": {"previous": {"unit": 1}}}, "are damaged"),
        ({"layout": {"encoder": 3}}, "are damaged"),
        ({"examples": [3]}, "are damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = roles().save(tmp_path / "roles.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UsageError, match=says):
        hc.load_roles(path)


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(NotFoundError):
        hc.load_roles("nowhere.json")
    with pytest.raises(UsageError, match="Did you mean 'previous'"):
        roles()["previus"]
    one = roles()["same"]
    with pytest.raises(UsageError, match="'same' has 4 numbers, and there are 2 heads"):
        Roles(layout=Layout.of(encoder=[2]), count=1, inputs="", quantities={"same": one})


def test_it_shows_itself() -> None:
    found = roles(previous=[0.9, 0.1, 0.9, 0.9])
    assert repr(found) == "Roles(4 heads: 3 previous; 100 inputs)"
    assert repr(roles()) == "Roles(4 heads: no roles; 100 inputs)"
    assert repr(found["previous"]) == ("Quantity(attention to the token before: 0.1 to 0.9 share)")
    shown = found._repr_html_()
    assert shown.count("previous 0.9") == 3
    assert shown.count("no role") == 1
