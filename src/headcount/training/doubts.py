"""What makes a score doubtful: a model that only guesses, or texts its tokenizer does not know."""

from __future__ import annotations

from typing import Any

from headcount.tasks.guessing import against_guessing
from headcount.tasks.rows import ScoredRows
from headcount.training.evaluation import Evaluation
from headcount.training.scoring import Scoring

MOST = 0.5
"""Share of unknown tokens above which a tokenizer is taken for another model's."""


def doubts_about(
    found: Evaluation, scored: ScoredRows, tokenizer: Any, scoring: Scoring
) -> list[str]:
    """Sentences about a score that is no better than guessing, and about unknown tokens."""
    doubts = [unknown_tokens(scored, tokenizer), no_better_than_guessing(found, scoring)]
    return [doubt for doubt in doubts if doubt is not None]


def unknown_tokens(scored: ScoredRows, tokenizer: Any) -> str | None:
    """Whether most tokens of the texts are not in the vocabulary."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown is None:
        return None
    special = {*tokenizer.all_special_ids} - {unknown}
    tokens = [
        id for row in scored.rows.columns.get("input_ids", []) for id in row if id not in special
    ]
    share = tokens.count(unknown) / len(tokens) if tokens else 0.0
    if share <= MOST:
        return None
    return (
        f"{100 * share:.0f} % of the tokens are unknown to the tokenizer ({tokenizer.unk_token}): "
        "it is another model's, or the texts are in another language. Pass --tokenizer."
    )


def no_better_than_guessing(found: Evaluation, scoring: Scoring) -> str | None:
    """Whether all heads do no better than one answer throughout."""
    if found.outcome is None or not scoring.bootstrap:
        return None
    metric, how = found.scores[0].metric, {"bootstrap": scoring.bootstrap, "seed": scoring.seed}
    held = against_guessing(metric, found.outcome, **how)
    if held is None or held.better or held.difference.no_interval:
        return None  # of too few rows nothing is known
    score = f"{metric} {found.score:.4f}"
    if held.difference.high < 0:
        return (
            f"{score} is worse than guessing ({held.guess:.4f}): labels may be exchanged (see "
            "--labels), or the tokenizer or the task is not the model's."
        )
    return f"{score} is not better than guessing ({held.guess:.4f}) on these rows."
