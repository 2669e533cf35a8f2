"""lm-evaluation-harness on a model in memory, and two models' answers item by item."""

from __future__ import annotations

import io
import logging
import math
import random
import sys
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.digest import digest
from headcount.base.errors import HeadcountError, NotFoundError, UsageError, in_words, need_extra
from headcount.base.names import unknown
from headcount.models import fingerprint
from headcount.models.config import load_config
from headcount.models.devices import pick_device
from headcount.models.load import load
from headcount.models.model_options import ModelOptions
from headcount.runs.kinds.lm_eval import HarnessScore, HarnessTask, LmEval
from headcount.tasks.encoding import pad_token
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import load_tokenizer, match, require_text
from headcount.tasks.metrics import (
    Metric,
    Outcome,
    column,
    drawn,
    ends_of,
    get_metric,
    no_ends,
    too_few,
)

Tables = Mapping[str, Any]
"""What `lm_eval.simple_evaluate` gives."""
Sample = Mapping[str, Any]
"""What the harness logs of an item."""
SUMS = {
    "word_perplexity": "perplexity",
    "byte_perplexity": "perplexity",
    "bits_per_byte": "bits_per_byte",
}
"""Metrics whose items are (log-likelihood, size), and ours of such sums; others are means."""


@dataclass(frozen=True, eq=False)
class HarnessOutput:
    """What the harness gave for a model, and the model."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    tables: Tables
    version: str

    @property
    def identity(self) -> dict[str, Any]:
        """Class, weights, config and tokenizer."""
        return fingerprint.identity(self.model, self.tokenizer)


def run_harness(
    name: str, options: LmEval, model_options: ModelOptions, *, seed: int
) -> HarnessOutput:
    """Score a model that writes text; its weights are those that were loaded."""
    try:
        import lm_eval
        from lm_eval import evaluator
        from lm_eval.models.huggingface import HFLM
        from lm_eval.tasks import TaskManager
    except ImportError:
        raise need_extra("lm-evaluation-harness", "lm-eval") from None
    device: Any = pick_device(model_options.device)
    model, tokenizer = _open_writer(name, model_options)
    model.to(device)
    with _quietly(evaluator), _seeded():
        manager = TaskManager(
            include_path=None if options.include_path is None else str(options.include_path)
        )
        _require_tasks(options, manager)
        # some models are loaded with embeddings and output apart that their config calls tied
        tie, model.tie_weights = model.tie_weights, lambda *_, **__: None
        bare = tokenizer.bos_token_id is None and tokenizer.eos_token_id is None
        wrapped: Any = HFLM
        try:
            writer = wrapped(
                pretrained=model,
                tokenizer=tokenizer,
                batch_size=options.batch,
                prefix_token_id=pad_token(tokenizer) if bare else None,
            )
        finally:
            model.tie_weights = tie
        try:
            tables: Any = evaluator.simple_evaluate(
                writer,
                tasks=list(options.tasks),
                task_manager=manager,
                num_fewshot=options.shots,
                limit=options.limit,
                bootstrap_iters=options.bootstrap,
                random_seed=seed,
                numpy_random_seed=seed,
                torch_random_seed=seed,
                fewshot_random_seed=seed,
            )
        except HeadcountError:
            raise
        except Exception as error:
            raise _refused(options, error) from error
    return HarnessOutput(model, tokenizer, tables, lm_eval.__version__)


def _open_writer(
    name: str, model_options: ModelOptions
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model that was saved with a head for text, and its tokenizer."""
    require_text(name)
    kind = task_kind("multiple-choice")
    saved = " ".join(load_config(name).architectures or ["nothing"])
    if not any(mark in saved for mark in kind.saved_as):
        raise UsageError(
            f"'{name}' was saved as {saved}, which writes no text: lm-evaluation-harness scores "
            "decoders and encoder–decoders."
        )
    model = load(name, head=kind.head, **model_options.loading)
    tokenizer = load_tokenizer(model_options.tokenizer or name)
    match(model, tokenizer)
    return model, tokenizer


def _require_tasks(options: LmEval, manager: Any) -> None:
    """Refuse a folder that is none, and tasks that are not known, with the nearest name."""
    if options.include_path is not None and not options.include_path.is_dir():
        raise NotFoundError(f"There is no folder '{options.include_path}' with tasks.")
    for name in options.tasks:
        if name not in manager.all_tasks and not manager.match_tasks([name]):
            says = f"lm-evaluation-harness has no task '{name}'"
            raise unknown(says, name, manager.all_tasks, has="It has", most=5)


def _refused(options: LmEval, error: Exception) -> HeadcountError:
    """Rows that cannot be had, or whatever the harness raised, in a sentence."""
    from datasets.exceptions import DatasetsError

    names = ", ".join(options.tasks)
    if isinstance(error, OSError | DatasetsError):
        return NotFoundError(
            f"The rows of {names} cannot be read ({in_words(error)}): offline, a task's rows are "
            "local, with dataset_path: json and data_files in a YAML file of --include-path."
        )
    return UsageError(f"lm-evaluation-harness cannot run {names}: {in_words(error, 300)}")


@contextmanager
def _quietly(evaluator: Any) -> Generator[None]:
    """No warnings of the harness inside, no bars but on a terminal, no calls of git and pip."""
    replaced = {name: getattr(evaluator, name) for name in ("get_git_commit_hash", "add_env_info")}
    for name in replaced:
        setattr(evaluator, name, lambda *_: None)
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with ExitStack() as stack:
            if not sys.stderr.isatty():
                stack.enter_context(redirect_stderr(io.StringIO()))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        for name, function in replaced.items():
            setattr(evaluator, name, function)


@contextmanager
def _seeded() -> Generator[None]:
    """The harness seeds what is global; afterwards it is as it was."""
    plain, numbers = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(plain)
            np.random.set_state(numbers)


def compare_items(
    mine: Tables, other: Tables | None, *, bootstrap: int, seed: int
) -> tuple[HarnessTask, ...]:
    """The scores of every task and group; with another model's, the paired differences."""
    tasks = []
    for name, row in mine["results"].items():
        samples = mine.get("samples", {}).get(name, [])
        items = digest(_items(samples)) if samples else ""
        if other is not None and samples and items != digest(_items(other["samples"][name])):
            raise UsageError(f"The two models were asked other items of {name}.")
        scores = []
        for key, value in row.items():
            metric, _, filtered = key.partition(",")
            if metric.endswith("_stderr") or not filtered or not isinstance(value, int | float):
                continue
            stderr = row.get(f"{metric}_stderr,{filtered}")
            ours = _outcome(samples, metric, filtered)
            more: dict[str, Any] = {}
            if other is not None:
                before = float(other["results"][name][key])
                theirs = _outcome(other["samples"].get(name, []), metric, filtered)
                more = {"against": before, "difference": value - before}
                more |= _interval(metric, theirs, ours, (before, value), bootstrap, seed)
            scores.append(
                HarnessScore(
                    metric=metric if filtered == "none" else key,
                    value=_finite(value),
                    stderr=_finite(stderr),
                    n=len(ours) if ours is not None else int(row.get("sample_len", 0)),
                    **more,
                )
            )
        version = mine.get("versions", {}).get(name)
        tasks.append(
            HarnessTask(
                task=name,
                version="" if version is None else str(version),
                shots=mine.get("n-shot", {}).get(name),
                scores=tuple(scores),
                items=items,
            )
        )
    return tuple(tasks)


def _finite(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _items(samples: Sequence[Sample]) -> Generator[str]:
    """What was asked, and what is right."""
    for sample in sorted(samples, key=lambda sample: (sample["doc_id"], str(sample["filter"]))):
        yield " ".join(str(sample[name]) for name in ("doc_hash", "prompt_hash", "target_hash"))


def _outcome(samples: Sequence[Sample], metric: str, filtered: str) -> Outcome | None:
    """What the items have of a metric: numbers, or (log-likelihood, size); else None."""
    kept = sorted(
        (sample for sample in samples if sample["filter"] == filtered and metric in sample),
        key=lambda sample: sample["doc_id"],
    )
    values = [sample[metric] for sample in kept]
    if metric in SUMS and all(isinstance(value, tuple | list) for value in values) and values:
        table = np.array([[0.0, -value[0], value[1]] for value in values])
        return Outcome(table, table[:, 2])
    if not values or not all(isinstance(value, int | float | np.number) for value in values):
        return None
    numbers = np.array(values, dtype=float)
    return Outcome(np.column_stack([numbers, numbers]), np.ones(len(values)))


def _interval(
    name: str,
    before: Outcome | None,
    after: Outcome | None,
    reported: tuple[float, float],
    bootstrap: int,
    seed: int,
) -> dict[str, Any]:
    """The ends of after minus before; none where the score is not one of the items' numbers."""
    metric: Metric = (
        get_metric(SUMS[name]) if name in SUMS else column(0, low=-math.inf, high=math.inf)
    )
    pair = [(one, value) for one, value in zip((before, after), reported, strict=True) if one]
    whole = len(pair) == 2 and all(
        math.isclose(metric.score(one.predictions, one.labels), value, rel_tol=1e-6, abs_tol=1e-9)
        for one, value in pair
    )
    if not whole or before is None or after is None:
        ends = no_ends("the items have no numbers that the score is made of")
    elif few := too_few(metric, len(after)):
        ends = no_ends(few)
    elif not bootstrap:
        ends = no_ends()
    else:
        ends = ends_of(drawn(metric, [before, after], paired=True, bootstrap=bootstrap, seed=seed))
    return {**ends, "low": _finite(ends["low"]), "high": _finite(ends["high"])}
