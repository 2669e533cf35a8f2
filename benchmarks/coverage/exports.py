"""Every family of the zoo through every export, with what the export itself found on reading back.

    python benchmarks/coverage/exports.py [--json] [--only bert,t5] [--to onnx,zeroed] [--layers 2]

Each family is built small with random weights and written twice: with heads missing in every way
at once (a layer emptied, one uneven, one without a key-value group, one whole), and with no head
left. It is verified on pairs of texts as a tokenizer writes them: with padding, segments and
several lengths. A number is the largest difference from the model's answers, relative to the
largest of them; a sentence is a refusal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from transformers import AutoTokenizer

from headcount.base.errors import HeadcountError
from headcount.exports.export import export
from headcount.exports.formats import FORMATS
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.models.shipped import locate
from models.zoo import FAMILIES, build, masks, mixed, shallow


def sweep(families: list[str], formats: list[str], layers: int | None = None) -> dict[str, Any]:
    """{family: {format: {pattern: difference or refusal}}}."""
    results: dict[str, Any] = {}
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    for family in families:
        model = build(family, **_changes(family, layers, len(tokenizer)))
        heads = layout(model)
        for name, mask in (("mixed", mixed(heads)), ("all emptied", masks(heads)["all emptied"])):
            small = remove(model, mask)
            for to in formats:
                outcome = written(small, to, tokenizer)
                results.setdefault(family, {}).setdefault(to, {})[name] = outcome
                print(f"{family:20}{to:14}{name:12} {outcome}", file=sys.stderr, flush=True)
    return results


def _changes(family: str, layers: int | None, words: int) -> dict[str, Any]:
    """What makes a family as shallow as asked, with the tokenizer's words."""
    changes = shallow(family, layers) if layers else {}
    known = FAMILIES[family][2]
    if "vocab_size" in known:
        changes["vocab_size"] = words
    elif "text_config" in known:
        changes["text_config"] = changes.get("text_config", known["text_config"]) | {
            "vocab_size": words
        }
    return changes


def written(model: Any, to: str, tokenizer: Any) -> float | str:
    """The largest difference after an export to a folder that is thrown away, or the refusal."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return export(model, to, Path(folder) / "out", tokenizer=tokenizer).difference
        except HeadcountError as error:
            return str(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default=",".join(FAMILIES), help="families, with commas")
    parser.add_argument("--to", default=",".join(FORMATS), help="formats, with commas")
    parser.add_argument("--layers", type=int, default=None, help="layers (default the zoo's four)")
    options = parser.parse_args()
    formats = options.to.split(",")
    results = sweep(options.only.split(","), formats, options.layers)
    if options.json:
        print(json.dumps(results, indent=2))
        return 0
    print(f"{'family':20}" + "".join(f"{to:>14}" for to in formats))
    refusals = []
    for family, row in results.items():
        cells = [list(row[to].values()) for to in formats]
        refusals += [cell for column in cells for cell in column if isinstance(cell, str)]
        shown = [
            "refused" if any(isinstance(c, str) for c in column) else f"{max(column):.1e}"
            for column in cells
        ]
        print(f"{family:20}" + "".join(f"{cell:>14}" for cell in shown))
    print("\n".join(dict.fromkeys(refusals)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
