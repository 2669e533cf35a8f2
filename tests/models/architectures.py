"""Writes docs/architectures.md: what the zoo, the export sweep and the coverage run found.

python benchmarks/coverage/model_types.py --json > coverage.json
python benchmarks/coverage/exports.py --json > exports.json
python tests/models/architectures.py coverage.json exports.json > docs/architectures.md
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
sys.path.insert(0, str(Path(__file__).parent.parent))

from headcount.base.errors import HeadcountError
from headcount.models.capture import collect
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.probe import find_probe, relative_difference, run
from headcount.models.remove import remove
from models.zoo import FAMILIES, PATTERNS, attention_of, build, masks

HEADER = """# Architectures

Written by `tests/models/architectures.py` with transformers {version}; do not edit by hand.

## The zoo

Each family is built small with random weights and goes through the same tests: heads found, gated
(gradients against finite differences), captured, removed in four patterns ({patterns}; removed
equals masked to 1e-5 of the largest value), saved and loaded twice, exported.

| family | class | attention | captured | removed | zeroed | standalone | onnx | torch-export |
|---|---|---|---|---|---|---|---|---|
"""

COVERAGE = """
## Every model type in transformers {version}

{total} model types, each tried small with random weights by `benchmarks/coverage/model_types.py`:
heads are found in {found}; half of them are removed exactly, on inputs the removal has not seen,
in {exact}; {refused} are refused, {wrong} come out wrong. {none} have no heads of the kind
headcount knows, {parts} are parts of other models, {untried} could not be built small or run on a
made-up input (pass `probe=` to `hc.remove` with an input of your own: it verifies itself all the
same).

### Removed exactly

{exact_names}.

### Refused

| model type | why |
|---|---|
{refusals}
"""


def main(coverage_file: str, exports_file: str) -> None:
    coverage = json.loads(Path(coverage_file).read_text())
    exports = json.loads(Path(exports_file).read_text())
    out = sys.stdout
    out.write(HEADER.format(version=coverage["transformers"], patterns="; ".join(PATTERNS)))
    for family in FAMILIES:
        out.write(row(family, exports.get("families", exports)[family]) + "\n")
    out.write(covered(coverage))


def row(family: str, exports: dict[str, Any]) -> str:
    """One family's line, from what happens here and now and from the export sweep."""
    kinds = attention_of(family)
    model = build(family)
    try:
        captured = "yes" if collect(model, find_probe(model)) else "no"
    except HeadcountError as error:
        captured = str(error)
    worst = max(removal(family, kind) for kind in kinds)
    cells = [family, type(model).__name__, ", ".join(kinds), captured]
    cells.append("exact" if worst <= 1e-5 else f"differs by {worst:.1g}")
    for to in ("zeroed", "standalone", "onnx", "torch-export"):
        refusals = [
            why for why in exports.get(to, {"": "not tried"}).values() if isinstance(why, str)
        ]
        cells.append(refusals[0] if refusals else "yes")
    return "| " + " | ".join(cells) + " |"


def removal(family: str, kind: str) -> float:
    model = build(family, attention=kind)
    worst = 0.0
    for mask in masks(layout(model)).values():
        inputs = find_probe(model, seed=5)
        small = remove(model, mask)
        with gate(model, mask):
            expected = run(model, inputs)
        worst = max(worst, relative_difference(expected, run(small, inputs)))
    return worst


def covered(coverage: dict[str, Any]) -> str:
    counts, types = coverage["counts"], coverage["types"]
    exact, refused, wrong = (
        counts.get(name, 0) for name in ("removed exactly", "refused", "wrong")
    )
    refusals = "\n".join(
        f"| {kind} | {why.partition('exactly: ')[2] or why} |"
        for kind, why in types.get("refused", {}).items()
    )
    return COVERAGE.format(
        version=coverage["transformers"],
        total=sum(counts.values()),
        found=exact + refused + wrong,
        exact=exact,
        refused=refused,
        wrong=wrong,
        none=counts.get("no heads found", 0),
        parts=counts.get("not a model", 0),
        untried=counts.get("not tried", 0),
        exact_names=", ".join(types.get("removed exactly", {})),
        refusals=refusals,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
