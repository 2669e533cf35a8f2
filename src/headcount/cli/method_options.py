"""What `prune` and `curve` share: the methods' own options, and opening a model to cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headcount.cli.masks import mask_text
from headcount.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from headcount.tasks import Task


@Parameter(name="*", group="Methods")
@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Options of methods; each is for the methods named in its help."""

    within: str | None = None
    """random: draw over the model, within each stack, or within each layer."""
    stack: str | None = None
    """random: cut this stack only: encoder, cross or decoder."""
    leave: int | None = None
    """random: heads left in every layer; without a ratio exactly so many are left."""
    keep: Annotated[str | None, Parameter(name=("--keep", "--mask"))] = None
    """pattern: heads to keep, per layer (777322), component (14,31,30), or exactly (mask.json)."""
    pick: str | None = None
    """pattern: which heads of a layer stay, random or first."""
    empty: str | None = None
    """layers: which lose all heads: top:3, bottom:3, top:3+bottom:3, middle:4, even, odd."""
    redundancy: tuple[Path, ...] | None = None
    """cluster: file of `headcount redundancy`; of several, the mean is taken."""
    distances: tuple[str, ...] | None = None
    """cluster: distances to use; of several, the mean is taken."""
    counter: str | None = None
    """cluster: without a ratio, what finds the number: affinity or hdbscan."""
    by: str | None = None
    """cluster: the head that stays: silhouette or medoid."""
    normalize: str | None = None
    """importance: divide by the layer's norm: none, l1 or l2; l1 for models with one stack."""
    step: float | None = None
    """importance: share of heads that goes between two estimates; one estimate when left out."""
    scorer: Path | None = None
    """meta: file of a scorer; trained on --inputs or the task's rows and written if not there."""
    scorer_steps: int | None = None
    """meta: steps of the scorer's training."""
    mu: float | None = None
    """straight-through, hard-concrete: penalty on every open gate."""
    gate_lr: float | None = None
    """learned gates: their learning rate."""
    gate_optimizer: str | None = None
    """learned gates: their optimizer, sgd or adam."""
    gate_momentum: float | None = None
    """straight-through: memory of sgd, 0 to 1."""
    gate_schedule: str | None = None
    """learned gates: how their learning rate falls: constant, linear or cosine."""
    coarse: str | None = None
    """straight-through: softplus, softplus-derivative, linear, relu or clipped-relu."""
    gate_start: float | None = None
    """straight-through: centre of the truncated normal that gates start from."""
    gate_spread: float | None = None
    """straight-through: its standard deviation."""
    settle: float | None = None
    """learned gates: share of the steps at the end in which gates are fixed."""
    reach: float | None = None
    """straight-through, hard-concrete: share of the search in which the number of open gates falls
    to the asked one."""
    hold: str | None = None
    """straight-through, hard-concrete: how the ratio is met, by shift or by penalty."""
    score_points: int | None = None
    """learned gates: so many times over the run the dev score is measured, for gates-path.png."""
    score_rows: int | None = None
    """learned gates: rows behind each such score, 512 when left out."""
    beta: float | None = None
    """hard-concrete: temperature."""
    gamma: float | None = None
    """hard-concrete: left end of the stretch, below 0."""
    zeta: float | None = None
    """hard-concrete: right end of the stretch, above 1."""
    hot: float | None = None
    """subset: temperature at the start."""
    cold: float | None = None
    """subset: temperature at the end."""

    def given(self) -> dict[str, Any]:
        """What was typed."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        typed = {name: value for name, value in every.items() if value is not None}
        if "keep" in typed:
            typed["keep"] = mask_text(typed["keep"])
        return {n: list(v) if isinstance(v, tuple) else v for n, v in typed.items()}

    def for_methods(self, methods: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Method -> its options; an option that none of the methods has is refused."""
        from headcount.pruning.select import options_of

        takes = {method: options_of(method) for method in methods}
        given = self.given()
        for name in given:
            if not any(name in known for known in takes.values()):
                raise UsageError(
                    f"--{name.replace('_', '-')} is no option of {' or '.join(methods)}."
                )
        return {
            method: {name: value for name, value in given.items() if name in known}
            for method, known in takes.items()
        }


METHOD_OPTIONS = MethodOptions()


def open_model(
    model: str, task: Task | None, tokenizer: str | None, *, trains: bool, seed: int, **how: Any
) -> tuple[Any, Any, bool]:
    """(model, tokenizer, whether its task head is new)."""
    from headcount.models.load import load
    from headcount.training.loading import load_for_task, load_tokenizer

    if task is None:
        loaded = load(model, **how)
        try:
            return loaded, load_tokenizer(tokenizer or model), False
        except NotFoundError:
            if tokenizer is not None:
                raise
            return loaded, None, False  # what needs no words needs no tokenizer
    words = load_tokenizer(tokenizer or model)
    try:
        return load_for_task(model, task, new_head=False, **how), words, False
    except UsageError:
        if not trains:
            raise
        return load_for_task(model, task, seed=seed, **how), words, True


def read_texts(path: Path | None, model: Any, tokenizer: Any, max_length: int) -> Any:
    """A text file's lines as rows of tokens; None without a file."""
    if path is None:
        return None
    from headcount.redundancy.inputs import encode_texts
    from headcount.training.loading import match, room

    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise NotFoundError(f"Cannot read the inputs {path}: {reason}.") from error
    lines = [line for line in lines if line]
    if not lines:
        raise UsageError(f"There is not a single line of text in {path}.")
    if tokenizer is None:
        raise UsageError("Texts need the model's tokenizer: pass --tokenizer.")
    match(model, tokenizer)
    return encode_texts(lines, tokenizer, max_length=room(model, max_length))
