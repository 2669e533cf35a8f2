"""Scores of a model, importance of its heads, and what they attend to, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from headcount.base.names import split_words
from headcount.heads import Scores
from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.runs.kinds.lm_eval import LmEvalResult
    from headcount.sensitivity.gradients import ImportanceResult
    from headcount.tasks.metrics import Difference
    from headcount.training.evaluation import Evaluation

UNITS = {"none": "", "l1": ", ℓ1 per layer", "l2": ", ℓ2 per layer"}
ATTENTION = ("entropy, bits", "distance", "attends most to", "share")


def evaluation_table(scores: list[Evaluation], losses: list[list[Difference]]) -> Table:
    """Every score of the model and of each mask; `losses` are the masks' differences from it."""
    rows = [
        (
            "all" if model.mask is None or not model.mask.dropped else model.mask.pattern,
            score.metric,
            score.shown,
            score.interval,
            *([str(loss) if loss else ""] if losses else []),
            model.n,
            f"{model.seconds:.2f}",
        )
        for model, lost in zip(scores, [[None] * len(scores[0].scores), *losses], strict=True)
        for score, loss in zip(model.scores, lost, strict=True)
    ]
    against = ["from all heads"] if losses else []
    columns = ["heads kept", "metric", "score", "95 % interval", *against, "n", "seconds"]
    return table(columns, rows, title=f"{scores[0].task} {split_words(scores[0].split)}")


def harness_table(result: LmEvalResult) -> Table:
    """Every score of lm-evaluation-harness, with its difference from the other model's."""
    rows = []
    for task in result.tasks:
        for score in task.scores:
            row = [task.task, score.metric, _number(score.value), _number(score.stderr)]
            if result.against is not None:
                ends = f"[{_number(score.low)}, {_number(score.high)}]"
                difference = "" if score.difference is None else f"{score.difference:+.4f}"
                row += [_number(score.against), difference]
                row += [score.no_interval or ("" if score.low is None else ends)]
            rows.append([*row, score.n])
    two = ["other model", "difference", "95 % interval, paired"] if result.against else []
    columns = ["task", "metric", "score", "standard error", *two, "n"]
    return table(columns, rows, title=f"lm-evaluation-harness {result.harness}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def importance_table(importance: ImportanceResult) -> Table:
    """A row for each layer, a column for each head, and the layer's largest standard error."""
    errors = Scores(importance.layout, importance.stderr).by_layer()
    digits = 3 if max(importance.values, default=0.0) >= 0.05 else 5
    cells: dict[tuple[str, int], dict[int, str]] = {}
    for head, value in importance.items():
        number = importance.layout.original(head).index
        cells.setdefault((head.stack, head.layer), {})[number] = f"{value:.{digits}f}"
    widest = max((number + 1 for row in cells.values() for number in row), default=0)
    rows = []
    for stack, layer, _ in importance.layout.layers():
        row = cells.get((stack, layer), {})
        error = f"{max(errors[stack][layer], default=0.0):.{digits}f}"
        rows.append((f"{stack} {layer}", *(row.get(i, "") for i in range(widest)), error))
    title = (
        f"E |∂L/∂ξ|{UNITS[importance.normalize]}, {importance.n} examples, "
        f"mean loss {importance.loss:.4f}"
    )
    return table(["layer", *map(str, range(widest)), "error ≤"], rows, title=title)


def attention_table(data: Mapping[str, Any]) -> Group:
    """Entropy, distance and what is attended to most; of two models both, and how they differ."""
    two = data["pruned"] is not None
    many = any(row["run"] for row in data["heads"])
    rows = []
    for row in data["heads"]:
        name = f"{row['stack']}.{row['layer']}.{row['head']}"
        cells = [f"{name}, run {row['run']}" if many else name, *_attention(row)]
        if two:
            after = row["after"]
            cells += ["removed", "", "", ""] if after is None else _attention(after)
            cells += ["" if after is None else f"{row['divergence']:.3f}"]
        rows.append(cells)
    after = [f"after: {ATTENTION[0]}", *ATTENTION[1:], "JS, bits"] if two else []
    tokens = [f"{stack}: {' '.join(sides['keys'])}" for stack, sides in data["tokens"].items()]
    return Group(table(["head", *ATTENTION, *after], rows), Text("\n".join(tokens)))


def _attention(row: Mapping[str, Any]) -> list[str]:
    most = row["most_attended"]
    if most is None:
        return ["", "", "nothing", ""]
    distance = "" if row["distance"] is None else f"{row['distance']:.2f}"
    token = f"{most['token'] or ''} ({most['position']})".strip()
    return [f"{row['entropy']:.2f}", distance, token, f"{most['share']:.2f}"]
