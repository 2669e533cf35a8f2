"""A study file becomes runs, or a list of all that is wrong with it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.runs.kinds.redundancy import RedundancyOptions
from headcount.runs.kinds.train import Train
from headcount.runs.run import Best
from headcount.studies.groups import read_plan
from headcount.studies.written import SHIPPED
from models.zoo import build

FILE = """\
name: methods
defaults:
  task: pocket-acceptability
runs:
  base:
    kind: train
    model: pocket
    seeds: 2
    options: {training: {preset: pocket, steps: 3}}
  near:
    kind: redundancy
    model: {run: base}
    seeds: 2
    options: {input_options: {random: 5}}
  cut:
    kind: prune
    model: {run: base}
    methods: [random, {name: importance, step: 0.25}, cluster]
    ratios: [0.25, 0.5]
    seeds: 2
    options: {baseline: 0}
    grid: {options.calibration.samples: [8, 16]}
    overrides:
      - when: {method: cluster}
        set: {options.method.redundancy: {run: near}}
      - when: {method: random, ratio: 0.5}
        set: {options.repair: [recover]}
    exclude:
      - {method: random, samples: 16}
  scored:
    kind: evaluate
    model: {each: cut, ratio: 0.5}
    seeds: 1
  last:
    kind: evaluate
    model: {best: base}
"""


@pytest.fixture
def plan(tmp_path: Path):
    path = tmp_path / "study.yaml"
    path.write_text(FILE, encoding="utf-8")
    return read_plan(path)


def cells(plan: Any, group: str) -> list[Any]:
    return [cell for cell in plan.cells if cell.group == group]


def test_runs_are_methods_by_ratios_by_seeds_by_any_option(plan):
    found = cells(plan, "cut")
    assert len(found) == 3 * 2 * 2 * 2 - 2 * 2
    assert found[0].axes == {"method": "random", "ratio": 0.25, "seed": 0, "samples": 8}
    importance = next(cell for cell in found if cell.axes["method"] == "importance")
    assert importance.run.options.method == hc.Importance(step=0.25)
    assert {cell.run.options.calibration.samples for cell in found} == {8, 16}


def test_a_run_starts_from_the_run_with_its_own_seed(plan):
    base = {cell.run.seed: cell.run for cell in cells(plan, "base")}
    assert base[1].options_as(Train).training.seed == 1
    assert base[1].options.training.learning_rate == 3e-4
    assert all(cell.run.model == base[cell.run.seed] for cell in cells(plan, "cut"))
    near = {cell.run.seed: cell.run for cell in cells(plan, "near")}
    assert near[1].options_as(RedundancyOptions).input_options.seed == 1
    for cell in cells(plan, "cut"):
        if cell.axes["method"] == "cluster":
            assert cell.run.option_runs == (("method.redundancy", near[cell.run.seed]),)
    (last,) = cells(plan, "last")
    assert last.run.model == Best(tuple(base.values()))


def test_a_group_may_start_from_each_run_of_another(plan):
    wanted = [
        cell for cell in cells(plan, "cut") if cell.axes["ratio"] == 0.5 and not cell.run.seed
    ]
    found = cells(plan, "scored")
    assert [cell.run.model for cell in found] == [cell.run for cell in wanted]
    assert [cell.axes for cell in found] == [dict(cell.axes) for cell in wanted]


def test_overrides_act_where_they_are_meant(plan):
    recovered = [cell.axes for cell in cells(plan, "cut") if cell.run.options.repair]
    assert [(each["method"], each["ratio"]) for each in recovered] == [("random", 0.5)] * 2


def test_runs_come_after_those_they_start_from_and_their_models_are_kept(plan):
    order = list(plan.by_key)
    for key, cell in plan.by_key.items():
        assert all(order.index(each.key) < order.index(key) for each in cell.run.inputs)
    assert {cell.group for cell in plan.by_key.values() if cell.keep} == {"base", "near", "cut"}


def test_the_same_run_of_two_groups_is_one(tmp_path: Path):
    one = {"kind": "probe", "model": "none", "seeds": 3}
    plan = read_plan({"runs": {"a": one, "b": one}})
    assert (len(plan.cells), len(plan.by_key)) == (6, 3)


def wrong(tmp_path: Path, old: str, new: str) -> str:
    path = tmp_path / "study.yaml"
    assert old in FILE
    path.write_text(FILE.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as told:
        read_plan(path)
    return str(told.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("methods: [random", "methods: [randm", "Did you mean 'random'?"),
        ("    ratios:", "    ratois:", "line 19: runs.cut.ratois: a group of runs has no 'ratois'. "
         "Did you mean 'ratios'?"),
        ("baseline: 0", "basline: 0", "line 21: runs.cut.options.basline: there is no option"),
        ("steps: 3", "steps: 3.5", "line 9: runs.base.options.training.steps: 3.5 is not a whole"),
        ("{run: near}", "{run: naer}", "no group of runs 'naer'. Did you mean 'near'?"),
        ("{best: base}", "{run: base}", "2 runs of the group 'base' are meant, which differ in "
         "seed: say which"),
        ("model: pocket", "model: {run: last}", "cannot start from themselves"),
        ("kind: evaluate", "kind: evalute", "Did you mean 'evaluate'?"),
        ("task: pocket-acceptability", "task: pocket-aceptability", "Did you mean 'pocket-acc"),
        ("- when: {method: cluster}", "- when: {metod: cluster}", "line 24: runs.cut.overrides.0: "
         "the group has no axis 'metod'"),
        ("steps: 3", "seed: 3", "line 9: runs.base.options.training.seed: the run's seed is 0: "
         "leave out the one in its options"),
        ("0.25, 0.5]", "0.25, 1.5]", "1.5"),
        ("set: {options.repair: [recover]}", "set: {options.repair: [recover], options.gated: "
         "true}", "Only a model without the heads can be repaired"),
        ("    ratios:", "    launch: 5\n    ratios:", "line 19: runs.cut.launch: launch is "
         "a command, or a list of its words"),
        ("    ratios:", "    launch: {a: 1}\n    ratios:", "line 19: runs.cut.launch: launch is"),
        ("    ratios:", "    launch: [a, 1]\n    ratios:", "line 19: runs.cut.launch: launch is"),
        ("    ratios:", "    keep: model\n    ratios:", "line 19: runs.cut.keep: keep is "
         "'records' or 'models', not 'model'"),
        ("    ratios:", "    keep: [models]\n    ratios:", "line 19: runs.cut.keep: keep is"),
        ("name: methods", "keep: model", "line 1: keep:"),
        ("{method: cluster}", "3", "line 24: runs.cut.overrides.0.when: 'when' has axes with"),
        ("{method: cluster}", "[method]", "runs.cut.overrides.0.when: 'when' has axes with"),
        ("{baseline: 0}", "x", "line 21: runs.cut.options: "),
        ("{training: {preset: pocket, steps: 3}}", "[x]", "line 9: runs.base.options: "),
        ("{training: {preset: pocket, steps: 3}}", "x", "line 9: runs.base.options: "),
        ("task: pocket-acceptability", "options: x", "line 3: defaults.options: "),
        ("    seeds: 2\n    options: {baseline", "    seeds: 9999999999\n    options: {baseline",
         "line 20: runs.cut.seeds: seeds has at most 10,000,000 values"),
        ("    ratios:", f"    seconds: {10**400}\n    ratios:", "runs.cut.seconds: seconds of a"),
        ("    ratios:", "    seconds: .inf\n    ratios:", "runs.cut.seconds: seconds of a run are"),
        ("name: methods", "nam: methods", "line 1: nam: a study has no 'nam'. Did you mean 'name'"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_the_nearest_name(tmp_path, old, new, said):
    assert said in wrong(tmp_path, old, new)


def test_all_mistakes_are_told_at_once(tmp_path: Path):
    path = tmp_path / "study.yaml"
    text = FILE.replace("steps: 3", "stepz: 3").replace("baseline: 0", "basline: 0")
    path.write_text(text.replace("kind: evaluate", "kind: evalute"), encoding="utf-8")
    with pytest.raises(UsageError) as told:
        read_plan(path)
    said = str(told.value)
    for part in ("line 9", "stepz", "line 21", "basline", "evalute"):
        assert part in said


def test_a_mistake_hides_no_other_in_its_group(tmp_path: Path):
    path = tmp_path / "study.yaml"
    path.write_text(WRONG, encoding="utf-8")
    with pytest.raises(UsageError) as told:
        read_plan(path)
    said = str(told.value)
    for line, part in enumerate(WRONG.splitlines(), 1):
        if "#" in part:
            wanted = part.partition("#")[2].strip()
            assert f"line {line}: {wanted}" in said, (line, wanted, said)
    assert f"has {WRONG.count('#')} mistakes" in said


WRONG = """\
name: bad
defaults: {task: pocket-sentimnt}     # defaults.task: There is no task 'pocket-sentimnt'
retires: 2                            # retires: a study has no 'retires'
runs:
  base:
    kind: trian                       # runs.base.kind: base: There is no kind of run 'trian'
    model: pocket
    seeds: two                        # runs.base.seeds: base.seed is a whole number
    options:
      training: {presett: pocket}     # runs.base.options.training.presett: there is no option
    launch: []
  cut:
    kind: prune
    model: {run: bas}                 # runs.cut.model: there is no group of runs 'bas'
    methods:
      - random
      - importanse                    # runs.cut.methods.1: There is no method 'importanse'
    ratios:
      - 0.25
      - 1.5                           # runs.cut.ratios.1: The ratio of heads to remove is between
    grid:
      options.calibration.sample: [64]  # runs.cut.grid.options.calibration.sample.0: there is no
      options.baseline: []            # runs.cut.grid.options.baseline: options.baseline has no
    exclude: {ratio: 0.25}            # runs.cut.exclude: exclude is a list of conditions
    colour: red                       # runs.cut.colour: a group of runs has no 'colour'
    optoins: {baseline: 0}            # runs.cut.optoins: a group of runs has no 'optoins'
"""


def test_paths_are_meant_from_the_file(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.tsv").write_text("x")
    path = tmp_path / "study.yaml"
    path.write_text(
        "runs:\n  a:\n    kind: evaluate\n    model: pocket\n    task: sst2\n"
        "    source: {data: data}\n", encoding="utf-8",
    )  # fmt: skip
    (cell,) = read_plan(path).cells
    assert cell.run.source.data == (tmp_path / "data").resolve()


def test_a_folder_beside_the_file_does_not_hide_a_shipped_model(tmp_path: Path, plan):
    (tmp_path / "pocket" / "runs").mkdir(parents=True)  # a study of that name keeps its runs so
    again = read_plan(tmp_path / "study.yaml")
    assert [cell.key for cell in again.cells] == [cell.key for cell in plan.cells]


def test_the_studies_of_the_repository_can_be_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Those that name folders beside them, with such folders."""
    found = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))
    assert "pruning" in [path.stem for path in found]
    monkeypatch.chdir(tmp_path)
    for name in ("minilm", "bge"):
        build("bert").save_pretrained(name)
    build("llama").save_pretrained("smollm2")
    for folder in ("wikitext-2", "glue/STS-B", "glue/MRPC", "glue/CoLA", "glue/RTE", "ner"):
        Path(folder).mkdir(parents=True)
    for file in ("texts.txt", "wikitext-2/valid.txt", "wikitext-2/test.txt"):
        Path(file).write_text("a text\n", encoding="utf-8")
    for path in found:
        shutil.copy(path, path.name)
        assert read_plan(path.name).cells


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.yaml")))
def test_shipped_studies_can_be_planned_and_are_kept_here(name: str):
    plan = read_plan(name)
    assert (plan.name, plan.out) == (name, Path(name))
    assert plan.settings.about


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "/tmp/x", "..", ".", "a\\b", "a\0b", "a\nb", " ", "a" * 151, "é" * 80]
)
def test_a_name_that_leads_elsewhere_is_refused(name: str):
    """A study's files are named by it: they were written outside of its folder."""
    with pytest.raises(UsageError, match="a study's name is also that of its files"):
        hc.study({"name": name, "runs": {"a": {"kind": "probe", "model": "none"}}})


def test_a_name_is_that_of_the_file_where_it_says_none(tmp_path: Path):
    path = tmp_path / f"{'a' * 200}.yaml"
    path.write_text("runs: {a: {kind: probe, model: none}}", encoding="utf-8")
    with pytest.raises(UsageError, match="150 letters at most"):
        hc.study(path)


@pytest.mark.parametrize("model", ["a" * 5000, "~nobody-here/x", "a\0b"])
def test_a_model_that_can_be_no_file_is_refused(model: str):
    runs = {"a": {"kind": "evaluate", "model": model, "task": "pocket-sentiment"}}
    with pytest.raises(UsageError, match=r"runs\.a\.model"):
        read_plan({"runs": runs})


def test_a_folder_without_a_model_is_not_read_whole(tmp_path: Path, monkeypatch: Any):
    """`model: /` of a probe read what is in /proc, and waited."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "kmsg").write_text("")
    (tmp_path / "info.json").write_text("")
    monkeypatch.setattr("headcount.runs.contents._file", lambda path: pytest.fail(str(path)))
    assert read_plan({"runs": {"a": {"kind": "probe", "model": str(tmp_path)}}}).by_key


@pytest.mark.parametrize("grid", ["x", ["x"], [["a", "b"]]])
def test_a_grid_of_another_kind_is_one_mistake(grid: Any):
    group = {"kind": "probe", "model": "none", "grid": grid, "seeds": ["x"]}
    with pytest.raises(UsageError, match="a grid has places with lists of values"):
        read_plan({"runs": {"a": group}})


class Counted(int):
    """A seed that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


@pytest.mark.parametrize("word", ["run", "each"])
def test_a_plan_compares_each_run_a_few_times(monkeypatch: pytest.MonkeyPatch, word: str):
    """Each run was compared with each that it could start from: 40 s for 10,000 runs."""
    count = 400
    seeds = [Counted(seed) for seed in range(count)]
    base = {"kind": "probe", "model": "none", "seeds": seeds}
    after = {"kind": "probe", "model": {word: "base"}, "seeds": seeds}
    monkeypatch.setattr(Counted, "compared", 0)
    plan = read_plan({"runs": {"base": base, "after": after}})
    assert len(plan.by_key) == 2 * count
    assert [cell.run.inputs[0].seed for cell in cells(plan, "after")] == list(range(count))
    assert Counted.compared < 20 * count


def test_a_run_may_be_chosen_on_an_axis_that_both_have():
    base = {"kind": "probe", "model": "none", "seeds": 3}
    after = {"kind": "probe", "model": {"run": "base", "seed": 0}, "seeds": 2}
    plan = read_plan({"runs": {"base": base, "after": after}})
    assert [cell.run.inputs[0].seed for cell in cells(plan, "after")] == [0, 0]


def test_more_runs_than_anybody_wants_are_asked_for_twice():
    many = {
        "kind": "probe",
        "model": "none",
        "grid": {f"options.a{at}": [1, 2] for at in range(60)},
    }
    with pytest.raises(UsageError, match=r"more than 100,000 runs: 1,152,921.* Pass --yes"):
        read_plan({"runs": {"many": many}})


def test_all_groups_count(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headcount.studies.groups.MANY", 5)
    several = {"kind": "probe", "model": "none", "seeds": 3}
    runs = {"a": several, "b": {**several, "options": {"say": "b"}}}
    with pytest.raises(UsageError, match="more than 5 runs: 6 or more"):
        read_plan({"runs": runs})
    assert len(read_plan({"runs": runs}, many=True).cells) == 6


def test_groups_in_a_row_end_somewhere():
    runs: dict[str, Any] = {"g0": {"kind": "probe", "model": "none"}}
    for at in range(1, 400):
        runs[f"g{at}"] = {"kind": "probe", "model": {"run": f"g{at - 1}"}}
    with pytest.raises(UsageError, match="start from each other more than 50 deep"):
        read_plan({"runs": dict(reversed(runs.items()))})
