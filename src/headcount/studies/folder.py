"""The folder of a pruned model: it appears whole, by one rename, or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.errors import HeadcountError, UsageError
from headcount.heads import Mask
from headcount.learned.trace import FILE, Trace

CARD = """
## What it cost

{how}

{scores}
"""


def require_new(out: str | Path) -> Path:
    """The folder to write, which must be new or empty: asked before any work is done."""
    path = Path(out).expanduser()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} is there already; --out takes a new or empty folder.")
    return path


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
            _json(made / "mask.json", mask.to_json())
            _json(made / "record.json", self.record)
            if trace is not None:
                trace.save(made / FILE)
            with (made / "README.md").open("a", encoding="utf-8") as card:
                card.write(CARD.format(how=_how(self.record), scores=_table(self.record)))
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


def _how(record: dict[str, Any]) -> str:
    heads = record["heads"]
    text = f"Method `{record['method']}`, seed {record['seed']}"
    text += f": {heads['before']} heads before, {heads['after']} after (`{heads['kept']}`)."
    if record["recover"]:
        text += f" Output projections were solved again on inputs: {record['recovered_on']}."
    if record["finetune"]:
        text += f" Trained after the cut for {record['trained']['steps']} steps."
    if record["command"]:
        text += f"\n\n```sh\n{record['command']}\n```"
    return text


def _table(record: dict[str, Any]) -> str:
    scores = record.get("scores")
    if scores is None:
        return "It was not scored: no task was given."
    rows = [f"| {scores['task']} {scores['split']}, n = {scores['n']} | {scores['metric']} |"]
    rows.append("|---|---|")
    for name, each in (("all heads", scores["before"]), ("this model", scores["after"])):
        interval = f"[{each['low']:.4f}, {each['high']:.4f}]"
        rows.append(f"| {name} | {each['score']:.4f}, 95 % interval {interval} |")
    if "random" in scores:
        draw = scores["random"]
        spread = f"{draw['worst']:.4f} to {draw['best']:.4f}"
        rows.append(
            f"| as many heads removed at random, {draw['draws']} draws | {draw['mean']:.4f}, "
            f"{spread} |"
        )
    return "\n".join(rows)
