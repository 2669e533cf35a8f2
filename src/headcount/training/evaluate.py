"""Score a model: `hc.evaluate(model, "sst2")`, with all heads or with masks.

    full   = evaluate(model, task)            # Evaluation: score, 95 % interval, n, seconds
    scores = evaluate(model, task, masks)     # one Evaluation per mask, in one pass
    loss   = difference(full, scores[0])      # Difference: −0.003 [−0.011, +0.004]

Rows are sorted by length and padded as little as possible.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.heads.as_mask import MaskLike, are_several
from headcount.models.find import mask_for, unwrap
from headcount.models.probe import text_config
from headcount.tasks import Task, bleu, open_task
from headcount.tasks.as_rows import Data
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import match, processor_of, require_finite
from headcount.tasks.metrics import score
from headcount.tasks.opening import model_for
from headcount.tasks.rows import ScoredRows
from headcount.training.doubts import doubts_about
from headcount.training.evaluation import Evaluation
from headcount.training.forward import run_masks
from headcount.training.scored import given_rows, scored_rows
from headcount.training.scoring import Scoring
from headcount.training.translate import translate

TOKENS = {"cpu": 1024, "gpu": 16384}
"""Tokens per batch: on a CPU more no longer fit its caches, measured on MiniLM."""
LOGITS = {"cpu": 2**23, "gpu": 2**25}
"""Logits of a language model held at once: 32 or 128 MB in single precision. On a CPU more are
slower, measured with SmolLM2's 49,152 words."""


@overload
def evaluate(
    model: PreTrainedModel | str | Path,
    task: Data,
    masks: Mask | str | Path | Mapping[int, object] | Mapping[str, object] | Tensor | None = None,
    *,
    scoring: Scoring = ...,
    tokenizer: PreTrainedTokenizerBase | None = None,
    tokens: int | None = None,
    beams: int = 1,
    share: bool = True,
) -> Evaluation: ...
@overload
def evaluate(
    model: PreTrainedModel | str | Path,
    task: Data,
    masks: Sequence[MaskLike | Tensor],
    *,
    scoring: Scoring = ...,
    tokenizer: PreTrainedTokenizerBase | None = None,
    tokens: int | None = None,
    beams: int = 1,
    share: bool = True,
) -> list[Evaluation]: ...
def evaluate(
    model: PreTrainedModel | str | Path,
    task: Data,
    masks: MaskLike | Tensor | Sequence[MaskLike | Tensor] | None = None,
    *,
    scoring: Scoring = Scoring(),  # noqa: B008
    tokenizer: PreTrainedTokenizerBase | None = None,
    tokens: int | None = None,
    beams: int = 1,
    share: bool = True,
) -> Evaluation | list[Evaluation]:
    """Score a model as it is, with one mask, or with several in one pass over the data.

    `model` may be named. A mask is whatever `hc.remove` takes; several of them are a list.
    `task` is a task or its name, or rows with labels: tokenised rows, a `datasets.Dataset`, a
    DataLoader or batches of tensors, and texts for a causal language model. Their labels are the
    model's own numbers; classes are scored by accuracy, numbers by Spearman, tokens by perplexity.

    `tokens` is the size of a batch, padding included; `beams` how many texts are kept while
    one is written; `share` false runs the masks one by one.
    """
    if isinstance(masks, list | tuple) and not masks:
        raise UsageError("There are no masks to evaluate.")
    known = open_task(task) if isinstance(task, str | Task) else None
    loaded: PreTrainedModel = model_for(model, "hc.evaluate", known)
    several = None
    if masks is not None:
        separate: Any = masks if are_several(masks) else [masks]
        several = [mask_for(unwrap(loaded), mask) for mask in separate]
    if known is not None:
        tokenizer = tokenizer if tokenizer is not None else processor_of(loaded)
        rows = scored_rows(loaded, known, tokenizer, scoring)
    else:
        rows = given_rows(loaded, task, tokenizer, scoring)
    evaluations = evaluate_rows(
        loaded,
        rows,
        several,
        tokenizer=tokenizer,
        scoring=scoring,
        tokens=tokens,
        beams=beams,
        share=share,
    )
    if masks is None:
        for doubt in doubts_about(evaluations[0], rows, tokenizer, scoring):
            logging.getLogger("headcount").warning(doubt)
    return evaluations if are_several(masks) else evaluations[0]


def evaluate_rows(
    model: PreTrainedModel,
    scored: ScoredRows,
    masks: Sequence[Mask] | None = None,
    *,
    tokenizer: PreTrainedTokenizerBase | None,
    scoring: Scoring,
    tokens: int | None = None,
    beams: int = 1,
    share: bool = True,
    report: Callable[[int, int], object] | None = None,
) -> list[Evaluation]:
    """Score rows that are loaded: one evaluation of the model as it is, or one for each mask.

    Of `scoring` only the seed and the bootstrap of the interval count here. `report` gets (rows
    done, all rows), but where texts are written.
    """
    if tokenizer is not None:
        match(model, tokenizer)  # it need not be the model that the rows were made for
    require_finite(model)
    processor = "cpu" if next(model.parameters()).device.type == "cpu" else "gpu"
    tokens = TOKENS[processor] if tokens is None else tokens
    started = time.monotonic()
    task, kind = scored.task, task_kind(scored.task.kind)
    if kind.generates(unwrap(model)):
        assert tokenizer is not None
        kept = translate(
            model, scored.rows, tokenizer, masks, beams=beams, tokens=tokens, inputs=kind.generation
        )
    else:
        if kind.asks_tokens or kind.writes:
            words = int(getattr(text_config(model.config), "vocab_size", None) or 1)
            tokens = max(1, min(tokens, LOGITS[processor] // words))
        rows = scored.rows.with_corpus()
        kept = run_masks(model, rows, kind, masks, tokens=tokens, share=share, report=report)
        for table, mask in zip(kept, masks or [None], strict=True):
            _require_finite_answers(table, mask)
        kept = [kind.decode(table, tokenizer) for table in kept]
    results = [kind.score(table, scored) for table in kept]
    seconds = (time.monotonic() - started) / len(results)
    return [
        Evaluation(
            task=task.name,
            split=scored.split,
            scores=tuple(
                score(name, outcome, bootstrap=scoring.bootstrap, seed=scoring.seed)
                for name in task.metrics
            ),
            n=len(outcome),
            seconds=seconds,
            seed=scoring.seed,
            mask=mask,
            signature=bleu.signature() if "bleu" in task.metrics else None,
            predictions=predictions,
            rows=scored.fingerprint,
            outcome=outcome,
        )
        for mask, (outcome, predictions) in zip(masks or [None], results, strict=True)
    ]


class RowScorer:
    """A model in training, scored again and again on rows that are loaded once."""

    def __init__(
        self,
        model: PreTrainedModel,
        task: Task,
        tokenizer: PreTrainedTokenizerBase,
        scoring: Scoring,
    ) -> None:
        self.model, self.task, self.tokenizer, self.scoring = model, task, tokenizer, scoring
        self._rows: ScoredRows | None = None

    def score(self, *, bootstrap: int | None = None) -> Evaluation:
        """The model as it is now; `bootstrap` instead of that of its scoring."""
        if self._rows is None:
            self._rows = scored_rows(self.model, self.task, self.tokenizer, self.scoring)
        scoring = self.scoring if bootstrap is None else replace(self.scoring, bootstrap=bootstrap)
        return evaluate_rows(self.model, self._rows, tokenizer=self.tokenizer, scoring=scoring)[0]

    def point(self) -> dict[str, float]:
        """The scores alone, for a learning curve."""
        return {score.metric: score.value for score in self.score(bootstrap=0).scores}


def _require_finite_answers(table: np.ndarray, mask: Mask | None) -> None:
    wrong = int((~np.isfinite(table)).any(axis=1).sum())
    if wrong:
        masked = "" if mask is None else f" with heads {mask.pattern}"
        raise UsageError(
            f"The model cannot be scored{masked}: its predictions are NaN or infinite for "
            f"{wrong} of {len(table)} rows, although its weights are finite: its activations "
            "overflow. Load it in float32."
        )
