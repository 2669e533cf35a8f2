from __future__ import annotations

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.lexicon import MARKERS


def test_the_corpus_mixes_sentences_pairs_and_answers() -> None:
    rows = examples("pocket-corpus", "train", 3000)
    pairs = [row["text_b"] for row in rows if row["text_b"] is not None]
    assert 0.7 < len(pairs) / len(rows) < 0.8
    openings = [text.split()[0] for text in pairs]
    for marker in MARKERS:
        assert openings.count(marker) > 0.03 * len(pairs)
    assert sum(opening not in MARKERS for opening in openings) > 0.3 * len(pairs)


def test_markers_stand_nowhere_else() -> None:
    for task in ("pocket-sentiment", "pocket-paraphrase", "pocket-entailment"):
        for row in examples(task, "dev", 300):
            words = set(row["text"].split()) | set(row.get("text_b", "").split())
            assert not words & set(MARKERS)
