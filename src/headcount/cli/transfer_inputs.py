"""What `headcount transfer` reads: two models, one tokenizer, rows of inputs, rows with labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.cli.common import say
from headcount.cli.progress import bar
from headcount.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from headcount.changes.recall import Ranked
    from headcount.heads import Scores
    from headcount.tasks import Task
    from headcount.tasks.encoding import Encoded


def load_model(name: str, task: Task | None, allow_pickle: bool) -> Any:
    """The model as it was saved, or for its task, which it must have a head for."""
    from headcount.models.load import load
    from headcount.tasks.loading import load_for_task

    if task is None:
        return load(name, allow_pickle=allow_pickle)
    return load_for_task(name, task, new_head=False, allow_pickle=allow_pickle)


def shared_tokenizer(tokenizer: str | None, *models: str) -> Any:
    """The tokenizer that was named, or that of the models, which must be one."""
    from headcount.tasks.loading import load_tokenizer, require_text

    for name in models:
        require_text(name)
    if tokenizer is not None:
        return load_tokenizer(tokenizer)
    found, missing = [], None
    for name in models:
        try:
            found.append(load_tokenizer(name))
        except NotFoundError as error:
            missing = missing or error
    if not found and missing is not None:
        raise missing
    if len(found) > 1 and found[0].get_vocab() != found[1].get_vocab():
        raise UsageError(
            "The two models have different vocabularies: their tokenizers do not agree. Pass the "
            "right one with --tokenizer."
        )
    return found[0]


@dataclass(frozen=True)
class Work:
    """What reading inputs, ranking heads and scoring them have in common."""

    tokenizer: Any
    count: int
    seed: int
    max_length: int

    def inputs(
        self,
        model: Any,
        task: Task | None,
        text: Path | None,
        split: str | None,
    ) -> tuple[Encoded, str]:
        """Rows of tokens that both models read, and what they are."""
        from headcount.cli.redundancy_inputs import POOL, Tokens, random_rows, text_rows
        from headcount.tasks.loading import room
        from headcount.tasks.sampling import rows_of

        longest = room(model, self.max_length)
        tokens = Tokens(tokenizer=self.tokenizer, longest=longest, count=self.count, seed=self.seed)
        if text is not None:
            return text_rows(text, tokens), text.name
        if task is None:
            return random_rows(tokens), "random tokens"
        how = {"limit": POOL * self.count, "seed": self.seed, "max_length": longest}
        # nothing is masked: attention is looked at as it is in use
        return rows_of(task, self.tokenizer, split, **how, masked=False)[1], task.name

    def rank(self, model: Any, task: Task, samples: int, normalize: str | None) -> Scores:
        """Importance on a sample of labelled rows."""
        from headcount.changes.recall import rank_heads
        from headcount.tasks.rows import labelled_rows

        rows = labelled_rows(
            model, task, self.tokenizer, limit=samples, seed=self.seed, max_length=self.max_length
        )
        with bar(f"importance on {task.name}") as progress:
            report = lambda done: progress(done, len(rows))  # noqa: E731
            return rank_heads(model, task, rows, normalize=normalize, report=report)

    def score(
        self,
        model: Any,
        task: Task,
        ranking: Scores,
        points: int,
        limit: int | None,
        split: str | None,
    ) -> Ranked:
        """Scores with fewer and fewer heads."""
        from headcount.changes.recall import score_counts
        from headcount.training.scoring import Scoring

        say(f"headcount: scoring {task.name} with fewer and fewer heads")
        scoring = Scoring(split=split, limit=limit, seed=self.seed, max_length=self.max_length)
        how = {"points": points, "tokenizer": self.tokenizer, "scoring": scoring}
        return score_counts(model, task, ranking, **how)
