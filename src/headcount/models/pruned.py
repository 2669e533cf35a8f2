"""The class of a model with heads missing: it saves itself whole, with a card and its tokenizer."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from transformers import PreTrainedModel

from headcount.base.errors import HeadcountError
from headcount.base.files import partial_folder, share
from headcount.models import cut
from headcount.models.bars import bars_on_terminals_only
from headcount.models.card import write_card
from headcount.models.origin import copy_companions, leave_code
from headcount.models.sentences import write_modules


class PrunedModel(cut.Pruned):
    """A transformers model with heads missing; load it again with `headcount.load`."""

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], *args: object, **kwargs: object
    ):
        """Write the folder whole or not at all: weights, config, card, and what lay beside them."""
        source = getattr(self.config, "_name_or_path", "") or ""
        leave_code(source, self.config)
        if kwargs.get("push_to_hub"):
            kwargs.setdefault("repo_id", Path(save_directory).name)
        with whole_folder(save_directory) as folder, bars_on_terminals_only():
            super().save_pretrained(folder, *args, **kwargs)
            copy_companions(source, folder)
            write_modules(self, folder)  # pyright: ignore[reportArgumentType]
            write_card(self, folder)  # pyright: ignore[reportArgumentType]


def pruned_class(base: type[PreTrainedModel]) -> type[PreTrainedModel]:
    """The class of models like `base` that are built with the heads of `config.headcount` gone."""
    return cut.mixed_class(PrunedModel, getattr(base, "base_class", base))


@contextmanager
def whole_folder(target: str | os.PathLike[str]) -> Generator[Path]:
    """A temporary folder whose files move into `target` only when everything in it is written."""
    target = Path(target)
    try:
        with partial_folder(target) as partial:
            yield partial
            share(partial)
            target.mkdir(exist_ok=True)
            for item in sorted(path for path in partial.rglob("*") if path.is_file()):
                destination = target / item.relative_to(partial)
                destination.parent.mkdir(parents=True, exist_ok=True)
                os.replace(item, destination)
    except OSError as error:
        raise HeadcountError(f"Cannot write to {target}: {error.strerror or error}.") from error
