from __future__ import annotations

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.pruning.random import Random
from headcount.runs.kinds.prune import Prune
from headcount.runs.prune_result import PruneResult
from headcount.runs.record import Record
from headcount.runs.run import Run
from headcount.studies.search.store import RUNS, opened
from headcount.tasks.metrics import Outcome, Score
from headcount.training.evaluation import Evaluation
from runs.whole import result


def record(seed: int, score: float = 0.5) -> Record:
    asked = Prune(method=Random(), ratio=0.5, baseline=0)
    scores = {"score": score, "low": 0.0, "high": 1.0, "n": 9}
    return Record(
        run=Run("prune", "a", seed=seed, options=asked),
        identity={"task": "a", "cut_seed": seed, "model": "here"},
        result=result(
            PruneResult,
            {
                "method": "random",
                "ratio": 0.5,
                "seed": seed,
                "heads": {"before": 4, "after": 2, "kept": "11"},
                "scores": {"after": scores},
            },
        ),
    )


def evaluation() -> Evaluation:
    score = Score(metric="accuracy", value=0.5, low=0.0, high=1.0)
    rows = np.array([0, 1])
    return Evaluation(
        task="a", split="dev", scores=(score,), n=2, seconds=0.1, outcome=Outcome(rows, rows)
    )


IDS = [record(seed).id for seed in range(3)]


def test_what_is_done_is_there_again(tmp_path):
    with opened(tmp_path, {"task": "a"}) as first:
        assert first.get(IDS[0]) is None
        for seed, score in ((0, 0.1), (1, 1 / 3)):
            made = record(seed, score)
            assert first.add(made) is made
    with opened(tmp_path, {"task": "a"}) as again:
        for seed, score in ((0, 0.1), (1, 1 / 3)):
            assert again.get(IDS[seed]) == record(seed, score)
        assert again.get(IDS[2]) is None
    assert {path.name for path in (tmp_path / RUNS).iterdir()} == set(IDS[:2])


def test_what_a_kill_left_beside_a_record_is_passed_over(tmp_path):
    with opened(tmp_path, {"task": "a"}) as store:
        where = store.folder_of(IDS[0])
        assert where is not None
        (where.parent / f".{where.name}.work").mkdir(parents=True)
        assert store.get(IDS[0]) is None
        store.add(record(0, 0.1))
        assert store.get(IDS[0]) == record(0, 0.1)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[:-9], r"record\.json is no record"),
        (lambda text: text.replace('"task": "a"', '"task": "b"'), "is damaged: its id is not"),
        (
            lambda text: text.replace('"after": 2', '"after": "two"'),
            "heads: after: 'two' is not",
        ),
    ],
)
def test_a_damaged_record_is_refused_by_its_name(tmp_path, damage, said):
    with opened(tmp_path, {"task": "a"}) as store:
        store.add(record(0, 0.1))
    path = tmp_path / RUNS / IDS[0] / "record.json"
    path.write_text(damage(path.read_text()))
    with opened(tmp_path, {"task": "a"}) as again, pytest.raises(UsageError, match=said) as error:
        again.get(IDS[0])
    assert str(path) in str(error.value)


def test_other_settings_are_refused_unless_overwritten(tmp_path):
    with opened(tmp_path, {"task": "a"}) as store:
        store.add(record(0, 0.1))
    with pytest.raises(UsageError, match="task was a, now b"), opened(tmp_path, {"task": "b"}):
        pass
    with opened(tmp_path, {"task": "b"}, overwrite=True) as anew:
        assert anew.get(IDS[0]) is None
        assert not (tmp_path / RUNS).exists()


def test_the_record_of_another_run_is_refused(tmp_path):
    with opened(tmp_path, {"task": "a"}) as store:
        store.add(record(0))
    (tmp_path / RUNS / IDS[0]).rename(tmp_path / RUNS / IDS[1])
    with (
        opened(tmp_path, {"task": "a"}) as again,
        pytest.raises(UsageError, match=r"record\.json is the record of another run: delete"),
    ):
        again.get(IDS[1])


def test_lost_settings_are_written_again_where_the_full_model_was_scored_for_this(tmp_path):
    settings = tmp_path / "settings.json"
    with opened(tmp_path, {"task": "a"}) as store:
        store.add(record(0))
    settings.unlink()
    with pytest.raises(UsageError, match="does not say what it was begun with"), opened(
        tmp_path, {"task": "a"}
    ):  # fmt: skip
        pass
    with opened(tmp_path, {"task": "a"}, overwrite=True) as store:
        store.keep_full(evaluation())
        store.add(record(0))
    whole = settings.read_text()
    settings.unlink()
    with pytest.raises(UsageError, match=r"full\.json answers another"), opened(
        tmp_path, {"task": "b"}
    ):  # fmt: skip
        pass
    assert not settings.exists()
    with opened(tmp_path, {"task": "a"}) as again:
        assert again.full() == evaluation()
        assert again.get(IDS[0]) is not None
    assert settings.read_text() == whole


def test_overwriting_deletes_results_first_and_says_what_is_asked_last(tmp_path, monkeypatch):
    with opened(tmp_path, {"task": "a"}) as store:
        store.add(record(0))
    for name in ("answer.json", "full.json"):  # whatever has its place
        (tmp_path / name).mkdir()
    seen: list[list[str]] = []

    def look():
        seen.append(sorted(path.name for path in tmp_path.iterdir() if path.name != ".lock"))
        assert '"a"' in (tmp_path / "settings.json").read_text()

    with monkeypatch.context() as patch:
        patch.setattr("headcount.base.files.danger", look)
        patch.setattr("headcount.studies.search.store.write_json", lambda *_: look())
        with opened(tmp_path, {"task": "b"}, results=["answer.json"], overwrite=True):
            pass
    assert seen == [
        ["full.json", "runs", "settings.json"], ["runs", "settings.json"], ["settings.json"],
        ["settings.json"],
    ]  # fmt: skip


def test_a_second_store_of_the_same_folder_is_refused(tmp_path):
    with (
        opened(tmp_path, {"task": "a"}),
        pytest.raises(UsageError, match="is being worked on by process"),
        opened(tmp_path, {"task": "a"}),
    ):
        pass


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(None, {"task": "a"}) as store:
        store.add(record(0, 0.1))
        assert store.get(IDS[0]) is not None
    assert list(tmp_path.iterdir()) == []


def test_overwriting_deletes_only_what_a_study_wrote(tmp_path):
    with opened(tmp_path, {"task": "a"}) as store:
        store.add(record(0))
    (tmp_path / RUNS / "thesis").mkdir()
    (tmp_path / RUNS / "thesis" / "record.json").write_text("{}")
    (tmp_path / RUNS / "notes.txt").write_text("mine")
    with opened(tmp_path, {"task": "b"}, overwrite=True):
        pass
    assert {path.name for path in (tmp_path / RUNS).iterdir()} == {"thesis", "notes.txt"}


@pytest.mark.parametrize("name", [RUNS, "model", "full.json", "settings.json"])
def test_a_folder_that_no_study_began_is_not_overwritten(tmp_path, name):
    if "." in name:
        (tmp_path / name).write_text("{}")
    else:
        (tmp_path / name / "thesis").mkdir(parents=True)
    with (
        pytest.raises(UsageError, match=f"{name} is nothing that this study wrote"),
        opened(tmp_path, {"task": "b"}, results=["model"], overwrite=True),
    ):
        pass
    assert (tmp_path / name).exists()


def test_the_runs_of_a_study_file_are_not_those_of_a_curve(tmp_path):
    (tmp_path / RUNS / IDS[0]).mkdir(parents=True)
    (tmp_path / "studies").mkdir()
    with (
        pytest.raises(UsageError, match="runs is nothing that this study wrote"),
        opened(tmp_path, {"task": "b"}, overwrite=True),
    ):
        pass
    assert (tmp_path / RUNS / IDS[0]).is_dir()
