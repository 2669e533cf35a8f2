"""Three scales, one set of groups: all are planned, and a run of each of the papers' is study."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.papers.scales import SCALES, DataPaths, groups_of, read_scale, read_written_scale
from headcount.studies.plan import Cell
from headcount.studies.study import Study
from papers.shrunk import make_data, shrunk_plan

EXTRA = {
    "small": {
        "masked", "masked-base", "gates-base", "few-random", "mt-base", "unshared",
        "unshared-words", "near-short", "looks", "chance-one", "moved-whole", "slow-tuned",
        "moved-slow", "dropout-long", "alike-long", "base-slow", "near-slow",
    },
    "paper": {
        "base-near", "zero-shot-full", "frozen-full",
        "shared-large-base", "shared-large-curve",
        "mt-base", "mt-base-de", "mt-full-de", "mt-random-de", "mt-left-de",
    },
}  # fmt: skip
"""Groups that a scale has beside those of the pocket scale."""
LEFT_OUT = {"small": {"shared-base", "shared-curve"}, "paper": {"shared"}}
"""Groups that it does without; its study file says why."""


@cache
def cells_of(scale: str) -> Sequence[Cell]:
    """All runs of a scale, planned once."""
    return read_scale(scale, groups_of(scale), elsewhere=True).cells


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_scales_have_the_same_groups(scale: str) -> None:
    pocket, groups = set(groups_of("pocket")), set(groups_of(scale))
    assert (groups - pocket, pocket - groups) == (EXTRA[scale], LEFT_OUT[scale])


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_groups_have_the_axes_of_the_pocket_scale(scale: str) -> None:
    def axes(which: str) -> dict[str, set[str]]:
        return {cell.group: set(cell.axes) for cell in cells_of(which)}

    pocket, others = axes("pocket"), axes(scale)
    missing = {
        name: pocket[name] - others[name] - {"task"} for name in pocket.keys() & others.keys()
    }
    assert not any(missing.values()), missing


@pytest.mark.parametrize("scale", SCALES)
def test_every_group_is_planned_without_models_and_data(
    scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = read_written_scale(scale)
    monkeypatch.setattr("headcount.papers.scales.read_written_scale", lambda scale: written)
    for group in groups_of(scale):
        plan = read_scale(scale, [group], elsewhere=True)
        assert plan.cells[-1].group == group  # after all that it starts from
        assert not [cell for cell in plan.cells if not cell.run.key]


def test_the_papers_have_their_numbers_of_runs() -> None:
    counts = Counter(cell.group for cell in cells_of("paper"))
    assert counts["zero-shot"] == 8 * 19 * 10  # tasks, ratios, trials
    assert counts["random"] == 4 * 9 * 3
    assert counts["layers"] == 4 * 18 * 3
    assert counts["grid-trained"] == 4 * 5 * 4
    assert counts["mt-random"] == 7 * 3
    assert counts["dropout-both"] == 10 * 5
    assert counts["cut"] == (3 + 4) * 3


def test_freezing_and_gates_are_the_papers() -> None:
    frozen = next(cell.run for cell in cells_of("paper") if cell.group == "frozen")
    assert (frozen.model, frozen.options.training.freeze) == ("roberta-large", 5)
    gates = [cell for cell in cells_of("paper") if cell.group == "gates"]
    step = [cell for cell in gates if cell.axes["method"] == "straight-through"]
    assert {cell.run.options.method.coarse for cell in step} == {"softplus"}
    assert {cell.axes["ratio"] for cell in gates if cell.axes["task"] == "rte"} == {
        cell.axes["ratio"] for cell in step
    }


@pytest.mark.parametrize(("scale", "group", "name"), [
    ("small", "near", "bge"), ("small", "base", "bge"), ("paper", "near", "glue"),
    ("paper", "mt-full", "wmt14/en-ru"), ("paper", "words", "wikipedia"),
])  # fmt: skip
def test_a_folder_that_nobody_named_is_asked_for(
    scale: str, group: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HEADCOUNT_DATA", "HEADCOUNT_WEIGHTS"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(NotFoundError, match=f"{name}.*(--data|--weights).*HEADCOUNT_"):
        read_scale(scale, [group])


def test_what_is_not_in_the_folder_is_named_with_its_place(tmp_path: Path) -> None:
    make_data(tmp_path)
    (tmp_path / "data" / "wikitext-103" / "wiki.test.tokens").unlink()
    wanted = re.escape(str(tmp_path / "data" / "wikitext-103" / "wiki.test.tokens"))
    with pytest.raises(NotFoundError, match=f"needs {wanted}, and it is not there"):
        read_scale("paper", ["alike-hidden"], DataPaths(data=tmp_path / "data"))
    with pytest.raises(NotFoundError, match=re.escape(str(tmp_path / "none" / "bge"))):
        read_scale("small", ["near"], DataPaths(data=tmp_path / "data", weights=tmp_path / "none"))


def test_folders_are_found_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_data(tmp_path)
    monkeypatch.setenv("HEADCOUNT_DATA", str(tmp_path / "data"))
    plan = read_scale("paper", ["mt-full"])
    assert {cell.run.source.data for cell in plan.cells} == {tmp_path / "data/wmt14/en-ru"}


def test_hub_models_are_asked_for_where_the_hub_is_switched_off(tmp_path: Path) -> None:
    make_data(tmp_path)
    with pytest.raises(UsageError, match=r"no model 'bert-base-uncased'.*hub is switched off"):
        read_scale("paper", ["near"], DataPaths(data=tmp_path / "data"))
    assert read_scale("paper", ["near"], elsewhere=True).cells  # what was refused once is over


def test_an_unknown_scale_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"no scale 'papper'.*paper"):
        groups_of("papper")


def test_unknown_groups_alone_are_refused() -> None:
    with pytest.raises(UsageError, match="has runs at the scale 'small'"):
        read_scale("small", ["shared-curve"], elsewhere=True)


def test_one_run_of_each_group_of_the_papers_is_carried_out(tmp_path: Path) -> None:
    make_data(tmp_path)
    plan = shrunk_plan("paper", groups_of("paper"), tmp_path)
    driven = Study(plan, tmp_path / "store").run()
    names = {key: cell.group for key, cell in plan.by_key.items()}
    assert {names[key]: why for key, why in driven.failed.items()} == {}
    assert driven.done == len(plan.by_key)
    assert {cell.group for cell in plan.cells} == set(groups_of("paper"))
