"""The generator: the same examples every time, splits apart, labels balanced and true."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.tasks.pocket import POCKET_TASKS, SPLITS, examples, split_of

TASKS = list(POCKET_TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_the_same_examples_every_time(task: str) -> None:
    assert examples(task, "train", 50, 3) == examples(task, "train", 50, 3)


@pytest.mark.parametrize("task", TASKS)
def test_seeds_splits_and_tasks_differ(task: str) -> None:
    assert examples(task, "train", 20, 0) != examples(task, "train", 20, 1)
    assert examples(task, "train", 20, 0) != examples(task, "dev", 20, 0)


@given(
    task=st.sampled_from(TASKS),
    split=st.sampled_from(SPLITS),
    start=st.integers(0, 10_000),
    count=st.integers(0, 5),
    seed=st.integers(-5, 1 << 70),
)
@settings(max_examples=60, deadline=None)
def test_an_example_depends_on_its_index_alone(
    task: str, split: str, start: int, count: int, seed: int
) -> None:
    run = examples(task, split, count, seed, start=start)
    alone = [examples(task, split, 1, seed, start=start + place)[0] for place in range(count)]
    assert run == alone


def test_the_first_examples_never_change() -> None:
    # Shipped weights and published figures stand on these; change them only with a new build.
    first = {task: next(iter(examples(task, "dev", 1)[0].values()))[:60] for task in TASKS}
    assert first == FIRST


FIRST: dict[str, str] = {
    "pocket-acceptability": "many small kings are chased by those old boys with the boy b",
    "pocket-sentiment": "they hate this film but that song is very lovely .",
    "pocket-paraphrase": "the doctor is called by the big boys .",
    "pocket-similarity": "the old doctors are chased by the small dogs .",
    "pocket-entailment": "the tall queens do not push the old girls .",
    "pocket-corpus": "the shows are very awful .",
    "pocket-translation": "that boy beside two teachers is not short and the singer who",
}


@pytest.mark.parametrize("task", TASKS)
def test_splits_are_disjoint_whatever_the_seed(task: str) -> None:
    field = POCKET_TASKS[task].fields[0]
    texts = {
        split: {row[field] for seed in (0, 1) for row in examples(task, split, 1500, seed)}
        for split in SPLITS
    }
    for split in SPLITS:
        assert {split_of(text) for text in texts[split]} == {split}
    assert not texts["train"] & texts["dev"]
    assert not texts["train"] & texts["test"]
    assert not texts["dev"] & texts["test"]


def test_a_sentence_and_its_twisted_twin_share_a_split() -> None:
    assert split_of("the dogs chase the cat .") == split_of("the cat are chase dog not those .")
    assert split_of("the dogs chase the cat .") != split_of("the cats chase the cat .")


@pytest.mark.parametrize("task", TASKS)
def test_the_keys_are_as_documented(task: str) -> None:
    about = POCKET_TASKS[task]
    extra = {"masked-lm": ["together"], "translation": []}.get(about.kind, ["label"])
    for row in examples(task, "test", 50):
        assert set(row) == {*about.fields, *extra}


@pytest.mark.parametrize("task", TASKS)
def test_few_examples_repeat(task: str) -> None:
    rows = [tuple(row.values()) for row in examples(task, "dev", 2000)]
    assert len(set(rows)) > 0.93 * len(rows)


@pytest.mark.parametrize("task", [name for name in TASKS if POCKET_TASKS[name].labels])
@pytest.mark.parametrize("split", SPLITS)
def test_labels_are_balanced(task: str, split: str) -> None:
    classes = len(POCKET_TASKS[task].labels)
    counts = Counter(row["label"] for row in examples(task, split, 3000))
    assert set(counts) == set(range(classes))
    assert all(abs(count / 3000 - 1 / classes) < 0.04 for count in counts.values())


def test_similarity_uses_its_whole_scale() -> None:
    counts = Counter(row["label"] for row in examples("pocket-similarity", "train", 3000))
    assert set(counts) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    assert min(counts.values()) > 60
    assert max(counts.values()) < 0.4 * 3000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("pocket-sentimant", "train", 1), "Did you mean 'pocket-sentiment'"),
        (("pocket-sentiment", "tset", 1), "Did you mean 'test'"),
        (("pocket-sentiment", "train", -1), "must not be negative"),
    ],
)
def test_bad_requests_are_refused(arguments: tuple[str, str, int], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        examples(*arguments)
