"""What `prune` and `curve` share: the methods' own options, and opening a model to cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.cli.masks import mask_text
from headcount.cli.typed import Typed, make_typed
from headcount.errors import NotFoundError, UsageError
from headcount.options import types_of
from headcount.pruning.methods import METHODS

if TYPE_CHECKING:
    from headcount.tasks import Task


_kinds: dict[str, Any] = {entry.name: METHODS[entry.name] for entry in METHODS}
if TYPE_CHECKING:
    MethodOptions = Typed
else:
    MethodOptions = make_typed("MethodOptions", "Methods", _kinds)
"""Options of all methods; each is for the methods named in its help."""


def for_methods(chosen: Typed, methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Method -> its options of those that were typed; one that none of them has is refused."""
    takes = {method: types_of(_kinds.get(method) or METHODS[method]) for method in methods}  # pyright: ignore[reportArgumentType]
    given = chosen.given()
    if "keep" in given:
        given["keep"] = mask_text(given["keep"])
    for name in given:
        if not any(name in known for known in takes.values()):
            raise UsageError(f"--{name.replace('_', '-')} is no option of {' or '.join(methods)}.")
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
    from headcount.tasks.loading import load_for_task, load_tokenizer, require_text

    if task is None:
        loaded = load(model, **how)
        try:
            return loaded, load_tokenizer(tokenizer or model), False
        except NotFoundError:
            if tokenizer is not None:
                raise
            return loaded, None, False  # what needs no words needs no tokenizer
    require_text(model)
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
    from headcount.tasks.encoding import encode_texts
    from headcount.tasks.loading import match, room

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
