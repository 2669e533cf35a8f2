"""What makes a score doubtful: guessing, unknown tokens, texts cut off, choices that are alike."""

from __future__ import annotations

import math

from transformers import PreTrainedTokenizerBase

from headcount.models.batches import TARGETS
from headcount.tasks.guessing import against_guessing
from headcount.tasks.rows import ScoredRows
from headcount.training.evaluation import Evaluation
from headcount.training.scoring import Scoring

MOST = 0.5
"""Share of unknown tokens above which a tokenizer is taken for another model's."""
LONG = 0.1
"""Share of rows with as many tokens as fit above which texts are said to be cut off."""


def doubts_about(
    evaluation: Evaluation,
    scored: ScoredRows,
    tokenizer: PreTrainedTokenizerBase | None,
    scoring: Scoring,
) -> list[str]:
    """Sentences about a score no better than guessing, and about rows that are not read well."""
    doubts = (
        *doubts_about_rows(scored, tokenizer),
        compared_with_itself(evaluation, scored),
        no_better_than_guessing(evaluation, scoring),
    )
    return [doubt for doubt in doubts if doubt is not None]


def doubts_about_rows(
    scored: ScoredRows, tokenizer: PreTrainedTokenizerBase | None
) -> tuple[str, ...]:
    """Sentences about rows that no model reads well."""
    doubts = (unknown_tokens(scored, tokenizer), cut_off(scored), equal_choices(scored))
    return tuple(doubt for doubt in doubts if doubt is not None)


def compared_with_itself(evaluation: Evaluation, scored: ScoredRows) -> str | None:
    """Whether the model was held against its own answers: pruned or not, they are the same."""
    if scored.reference is None or evaluation.mask is not None:
        return None
    return (
        "The model is compared with itself as it was loaded, so this is 1 by definition. Pass "
        "--mask to compare heads; what a pruned model lost is in its record, or shown by "
        "--task similarity or retrieval."
    )


def unknown_tokens(scored: ScoredRows, tokenizer: PreTrainedTokenizerBase | None) -> str | None:
    """Whether most tokens of the texts are not in the vocabulary."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    if tokenizer is None or unknown is None:
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


def cut_off(scored: ScoredRows) -> str | None:
    """Whether many rows are as long as a row can be: their texts went on, in all likelihood."""
    rows = scored.rows.with_corpus()
    if scored.length is None or "input_ids" not in rows.columns:
        return None
    share = float((rows.lengths >= scored.length).mean())
    if share <= LONG:
        return None
    return (
        f"{100 * share:.0f} % of the rows have as many tokens as --max-length and the model's "
        f"positions allow, {scored.length}: what comes behind them in a longer text is not read."
    )


def equal_choices(scored: ScoredRows) -> str | None:
    """Whether rows have choices of the same tokens."""
    if not scored.task.choices:
        return None
    tokens = list(map(tuple, scored.rows.columns[TARGETS]))
    examples = scored.rows.rows_of(range(len(scored)))
    alike = sum(len({tokens[row] for row in rows}) < len(rows) for rows in examples)
    if not alike:
        return None
    return (
        f"{alike} of {len(scored)} rows have choices that are the same tokens: they are equally "
        "likely, and the first of them is taken."
    )


def no_better_than_guessing(evaluation: Evaluation, scoring: Scoring) -> str | None:
    """Whether the model does no better than one constant prediction."""
    if evaluation.outcome is None or not scoring.bootstrap:
        return None
    metric = evaluation.scores[0].metric
    guessing = against_guessing(
        metric, evaluation.outcome, bootstrap=scoring.bootstrap, seed=scoring.seed
    )
    if guessing is None or guessing.better or guessing.difference.no_interval:
        return None  # too few rows
    if math.isnan(evaluation.score):
        return None  # equal labels have no correlation, and a guess has none either
    score = f"{metric} {evaluation.score:.4f}"
    if guessing.difference.high < 0:
        return (
            f"{score} is worse than guessing ({guessing.guess:.4f}): labels may be swapped (see "
            "--labels), or the tokenizer or the task is not the model's."
        )
    return f"{score} is not better than guessing ({guessing.guess:.4f}) on these rows."
