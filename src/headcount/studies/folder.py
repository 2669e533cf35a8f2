"""The folder of a pruned model: it appears whole, by one rename, or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.errors import HeadcountError
from headcount.heads import Mask
from headcount.learned.trace import FILE, Trace
from headcount.models.card import write_card, write_results
from headcount.models.numbers import original_mask
from headcount.tasks.glue import HUB, LAYOUTS


@dataclass(frozen=True)
class Folder:
    """Where a pruned model goes, and the record of how it was made."""

    target: Path
    record: dict[str, Any]

    def write(
        self, model: PreTrainedModel, mask: Mask, tokenizer: Any = None, trace: Trace | None = None
    ) -> None:
        """Model, tokenizer, mask.json, record.json, the card with its scores, and gates.npz."""
        made: Path | None = None
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.", dir=self.target.parent))
            model.save_pretrained(made)
            if tokenizer is not None:
                tokenizer.save_pretrained(made)
            _json(made / "mask.json", original_mask(model, mask).to_json())
            record = _with_dataset(self.record)
            _json(made / "record.json", record)
            if trace is not None:
                trace.save(made / FILE)
            write_card(model, made, record=record)
            write_results(made, record)
            made.chmod(0o755)  # mkdtemp's folders are private
            made.replace(self.target)
        except OSError as error:
            reason = error.strerror or error
            raise HeadcountError(f"Cannot write to {self.target}: {reason}.") from error
        finally:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)


def _json(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    path.write_text(text + "\n", encoding="utf-8")


def _with_dataset(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the hub's name of the task's data set, where it is one of the hub's."""
    scores = record.get("scores")
    if not scores or scores["task"] not in LAYOUTS:
        return record
    dataset = {"id": HUB, "task": LAYOUTS[scores["task"]].config}
    return record | {"scores": scores | {"dataset": dataset}}
