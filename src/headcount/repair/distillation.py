"""Distillation: `small = hc.distil(small, model, texts, tokenizer=tokenizer)`.

The pruned model learns the full model's answers to the calibration rows. The loss of a row is the
mean over its tokens (padding left out), or its one answer, of

    KL(full ‖ small), where answers are logits;   ‖small - full‖², where they are numbers

(embeddings of length 1, a regression's number), plus `hidden` times the mean over all layers of
‖h_small - h_full‖² / ‖h_full‖², h a layer's output at the row's tokens. No row needs a label.

Some rows are held back. The divergence from the full model there is measured before and after, and
where it is not smaller afterwards the weights from before are put back: a repair that does harm is
not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.base.files import read_json, require_fields, write_json
from headcount.base.header import header
from headcount.models.batches import batches_for, counted_tokens
from headcount.models.door import require_pretrained
from headcount.models.find import unwrap
from headcount.models.fingerprint import identity
from headcount.models.hooks import evaluating
from headcount.repair.distil import Distil
from headcount.repair.fidelity import divergence
from headcount.sensitivity.gradients import answers_of
from headcount.tasks.as_rows import Data, as_rows
from headcount.tasks.encoding import IGNORED, EncodedRows, rows_fingerprint
from headcount.tasks.kinds import task_kind
from headcount.tasks.kinds.kind import TaskKind
from headcount.tasks.task import Examples, Task
from headcount.training import checkpoints
from headcount.training.finetune import ADVICE
from headcount.training.order import examples_seen
from headcount.training.session import Session
from headcount.training.trainer import TaskTrainer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from headcount.training.logging import Logging

FEWEST = 4
"""Rows without which none can be held back."""
STATES = ("hidden_states", "encoder_hidden_states", "decoder_hidden_states")
WORSE = (
    "Distillation brought the answers to the rows that were held back no nearer to the full "
    "model's ({after:.4g}, before {before:.4g}), so its weights were not kept: give it more rows "
    "(--calibration-samples, --calibration) or a lower --learning-rate."
)


@dataclass(frozen=True, kw_only=True)
class DistillationResult:
    """What a distillation did, and how far the answers to held-back rows were then."""

    steps: int
    rows: int
    examples: int
    """Rows trained on, each as often as it was."""
    tokens: int
    """Their tokens."""
    held_back: int
    """Rows."""
    before: float
    after: float
    """Divergence from the full model on these, as `fidelity.divergence` measures it."""
    resumed_from: int | None = None

    @property
    def note(self) -> str | None:
        """That it did not help."""
        return None if self.kept else WORSE.format(before=self.before, after=self.after)

    @property
    def kept(self) -> bool:
        """Whether the model has the weights that were trained."""
        return self.after < self.before

    def to_json(self) -> dict[str, Any]:
        """As a record has it, beside the steps."""
        return {
            "loss": {"before": self.before, "after": self.after},
            "kept": self.kept,
            "tokens": self.tokens,
            "held_back": self.held_back,
            "resumed_from": self.resumed_from,
        }


def distil(
    small: PreTrainedModel,
    model: PreTrainedModel,
    data: Data,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    options: Distil = Distil(),  # noqa: B008
    work: str | Path | None = None,
    device: str = "auto",
) -> PreTrainedModel:
    """Train `small` in place towards the answers of `model`, without labels.

    `data` are texts (with the `tokenizer`), rows of tokens, or a task or its name. `work` is a
    folder for the caller to delete: a killed call goes on there.
    """
    for bare in (small, model):
        require_pretrained(unwrap(bare), "hc.distil")
    rows = as_rows(
        model, data, tokenizer=tokenizer, seed=options.seed, max_length=options.max_length
    )
    distil_rows(small, model, rows, options=options, work=work, device=device)
    return small


def distil_rows(
    small: PreTrainedModel,
    full: PreTrainedModel,
    rows: object,
    *,
    options: Distil,
    kind: TaskKind | None = None,
    work: str | Path | None = None,
    device: str = "auto",
    logging: Logging | None = None,
) -> DistillationResult:
    """As `distil`; `kind` says what the answers are where the model does not tell."""
    require_alike(small, full, options)
    if not isinstance(rows, EncodedRows):
        raise UsageError("Distillation takes texts or rows of tokens, and not batches of tensors.")
    if rows.count < FEWEST:
        raise UsageError(
            f"Distillation needs {FEWEST} calibration rows at least, to hold some back: there "
            f"{'is' if rows.count == 1 else 'are'} {rows.count}."
        )
    kind, writes = _kind_of(full, rows, kind)
    rows = replace(rows, kind=kind.name)
    order = np.random.default_rng(options.seed).permutation(rows.count)
    number = min(max(1, round(rows.count * options.hold_back)), rows.count - 1)
    held, learnt = rows.take(np.sort(order[:number])), rows.take(np.sort(order[number:]))
    if not writes:
        # labels that only say which rows count: those that fill up a batch do not
        learnt = replace(learnt, labels=np.zeros(len(learnt), dtype=np.int64))
    elif not isinstance(learnt.labels, list):
        # a decoder beside an encoder reads what it is to write, and without labels the row again
        learnt = replace(learnt, labels=learnt.columns["input_ids"])
    session = Session(small, _as_task(kind), None, options, rows=learnt, logging=logging)
    settings: dict[str, object] = {
        **identity(small),
        "full": identity(full)["weights"],
        "data": rows_fingerprint(learnt),
        "held_back": rows_fingerprint(held),
        **options.identity(),
    }
    with session.opened(work, settings, device=device):
        if session.is_done:
            return _finished(session)
        for model in (unwrap(small), unwrap(full)):
            model.to(session.arguments.device)
        before, start = divergence(small, full, held), _weights(small)
        with options.trained(small), evaluating(full):
            session.set_up(trainer=partial(DistilTrainer, full=full, hidden=options.hidden))
            session.train(advice=ADVICE)
        result = _result(session, number, before, divergence(small, full, held))
        if not result.kept:
            _put_back(small, start)
        session.finish(lambda folder: _save(session.model, result, folder))
    return result


def require_alike(small: PreTrainedModel, full: PreTrainedModel, options: Distil) -> None:
    """Refuse a full model whose answers cannot be compared with those of the small one."""
    mine, other = unwrap(small), unwrap(full)
    names = [getattr(type(m), "base_class", type(m)).__name__ for m in (mine, other)]
    if names[0] != names[1]:
        raise UsageError(
            f"A {names[0]} cannot be distilled from a {names[1]}: the two are one architecture "
            "with one head."
        )
    sizes = [_answer_sizes(m) for m in (mine, other)]
    for what, left in sizes[0].items():
        if (right := sizes[1].get(what)) != left:
            raise UsageError(
                f"The model to distil from has other {what}: {right}, and the pruned one {left}."
            )
    layers = [[getattr(m.config, name, None) for name in WIDTHS] for m in (mine, other)]
    if options.hidden and layers[0] != layers[1]:
        raise UsageError(
            "Layers' outputs are compared only with those of a model with as many layers of the "
            "same width: leave --hidden out."
        )


WIDTHS = ("num_hidden_layers", "num_decoder_layers", "decoder_layers", "hidden_size")


def _answer_sizes(model: nn.Module) -> dict[str, object]:
    """What answers are about, by name: as many tokens, the same labels."""
    config: Any = model.config
    text = config.get_text_config()
    return {
        "tokens in its vocabulary": getattr(text, "vocab_size", None),
        "labels": list((config.id2label or {}).values()),
    }


def _kind_of(
    full: PreTrainedModel, rows: EncodedRows, kind: TaskKind | None
) -> tuple[TaskKind, bool]:
    """What the full model answers (without a head embeddings), and whether a decoder beside an
    encoder does.
    """
    if kind is None and rows.kind is not None:
        kind = task_kind(rows.kind)
    batch = next(batches_for(full, rows.take([0])))
    with torch.no_grad(), evaluating(full):
        try:
            kind, _ = answers_of(full, batch, kind)
        except UsageError:
            kind, _ = answers_of(full, batch, task_kind("embedding"))
    return kind, "decoder_input_ids" in batch.inputs


def _as_task(kind: TaskKind) -> Task:
    """Rows without a task, for a session."""

    def load(split: str) -> Examples:
        raise UsageError(f"Calibration rows have no split '{split}'.")

    return Task(
        name="calibration", kind=kind.name, texts=("text",), metrics=kind.metrics, loader=load
    )


class DistilTrainer(TaskTrainer):
    """Trains on the full model's answers; every row counts as much as any other."""

    def __init__(self, *, full: PreTrainedModel, hidden: float, **settings: Any) -> None:
        super().__init__(**settings)
        self.full, self.hidden = full, hidden

    def count(self, labels: Tensor) -> Tensor:
        """Rows that are not blank."""
        return counted_rows(labels).sum()

    def total_loss(self, model: nn.Module, inputs: dict[str, Tensor]) -> tuple[Tensor, Any]:
        """The losses of the rows, added up."""
        piece = dict(inputs)
        counts = counted_rows(piece["labels"])
        if piece["labels"].ndim == 1:
            del piece["labels"]  # a mark
        batch = next(batches_for(self.full, [piece]))
        given = batch.inputs | ({"output_hidden_states": True} if self.hidden else {})
        with torch.no_grad():
            wanted: Any = self.full(**given)
        outputs = model(**given)
        kind = self.task_kind
        small, full = (
            kind.distributions(kind.predict(output, batch.inputs, unwrap(of)), batch)
            for output, of in ((outputs, model), (wanted, self.full))
        )
        written = batch.targets if batch.targets is not None else piece.get("labels")
        tokens = None if written is None else written != IGNORED
        if tokens is None or tokens.numel() != full.shape[:-1].numel():
            tokens = counted_tokens(batch.inputs, "decoder", full.shape[:-1].numel())
        losses = row_distances(small, full, tokens, logits=kind.logits)
        if self.hidden:
            losses = losses + self.hidden * state_errors(outputs, wanted, batch.inputs, tokens)
        return (losses * counts).sum(), outputs


def counted_rows(labels: Tensor) -> Tensor:
    """(row,) which are not blank."""
    return (labels != IGNORED).reshape(len(labels), -1).any(1)


def row_distances(
    small: Tensor, full: Tensor, counts: Tensor | None = None, *, logits: bool
) -> Tensor:
    """(row,) the mean over a row's answers that count of KL(full ‖ small), or of ‖small - full‖².

    >>> right, left = torch.tensor([[[0.0, 0.0]]]), torch.tensor([[[1.0, 0.0]]])
    >>> row_distances(left, right, logits=True), row_distances(left, right, logits=False)
    (tensor([0.1201]), tensor([1.]))
    """
    rows = len(full)
    wide = torch.promote_types(full.dtype, torch.float32)
    small, full = (x.reshape(-1, x.shape[-1]) for x in (small, full))
    if counts is None:
        counts = torch.ones(len(full), dtype=torch.bool, device=full.device)
    counts = counts.reshape(-1)
    small, full = small[counts].to(wide), full[counts].to(wide)  # no softmax over padding
    if logits:
        log_p, log_q = full.log_softmax(-1), small.log_softmax(-1)
        values = functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
    else:
        values = (small - full).square().sum(-1)
    return _row_means(values, counts.reshape(rows, -1))


def _row_means(values: Tensor, counts: Tensor) -> Tensor:
    """(row,) means of the values that count, which stand in one line, row after row."""
    sums = torch.zeros(counts.shape, dtype=values.dtype, device=values.device)
    return sums.masked_scatter(counts, values).sum(1) / counts.sum(1).clamp_min(1)


def state_errors(
    small: Any, full: Any, inputs: Mapping[str, object], written: Tensor | None
) -> Tensor:
    """(row,) the mean over layers of ‖h_small - h_full‖² / ‖h_full‖², over a row's tokens.

    `written` are those that a decoder beside an encoder is to write.
    """
    errors: list[Tensor] = []
    for name in STATES:
        states = (getattr(outputs, name, None) or () for outputs in (small, full))
        for mine, whole in zip(*states, strict=True):
            rows = len(whole)
            wide = torch.promote_types(whole.dtype, torch.float32)
            mine, whole = (x.reshape(rows, -1, x.shape[-1]).to(wide) for x in (mine, whole))
            counts = counted_tokens(inputs, "encoder", rows * whole.shape[1])
            if name.startswith("decoder"):
                counts = written
            if counts is not None:
                kept = counts.reshape(rows, -1, 1)
                mine, whole = mine * kept, whole * kept
            error = (mine - whole).square().sum((1, 2))
            errors.append(error / whole.square().sum((1, 2)).clamp_min(torch.finfo(wide).tiny))
    if not errors:
        raise UsageError("The model does not return its layers' outputs: leave --hidden out.")
    return torch.stack(errors).mean(0)


def _result(session: Session, held: int, before: float, after: float) -> DistillationResult:
    rows, steps = session.encoded, session.trainer.state.global_step
    seen = examples_seen(rows.count, session.options.batch_size, steps)
    order = session.trainer.order
    lengths = np.array([rows.lengths[numbers].sum() for numbers in order.rows.numbers])
    whole, rest = divmod(seen, rows.count)
    order.set_epoch(whole)
    tokens = whole * lengths.sum() + lengths[list(order)[:rest]].sum()
    return DistillationResult(
        steps=steps,
        rows=rows.count,
        examples=seen,
        tokens=int(tokens),
        held_back=held,
        before=before,
        after=after,
        resumed_from=session.resumed_from,
    )


def _save(model: nn.Module, result: DistillationResult, folder: Path) -> None:
    checkpoints.save_weights(model, folder)
    write_json(folder / checkpoints.RESULT, {**header("training"), **asdict(result)})


def _finished(session: Session) -> DistillationResult:
    """What was done before, its weights loaded into the model."""
    assert session.folder is not None
    path = session.folder / checkpoints.RESULT
    result = read_json(path, "result of a run")
    numbers = dict.fromkeys(("steps", "rows", "examples", "tokens", "held_back"), int)
    types = {**numbers, "before": float, "after": float, "resumed_from": int | None}
    require_fields(result, types, f"{path} is no result of a distillation")
    checkpoints.load_weights(session.model, session.folder)
    session.model.eval()
    return DistillationResult(**{name: result[name] for name in types})


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def _put_back(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(weights[name])
