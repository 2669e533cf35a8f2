"""What a result depends on, so that nothing goes on with something else: one identity for all.

A folder of a study or a pruned model keeps it. The same command again finds it there and goes on;
where something else is options, the refusal says what changed. Which versions computed it, on which
device and where the model lay is kept beside it: a difference is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields
from pathlib import Path

from headcount.base.digest import plain_digest
from headcount.base.errors import UsageError
from headcount.base.files import LARGEST, parse_json, read_text
from headcount.base.json_object import JsonDict
from headcount.base.options import changed, to_plain
from headcount.base.plugins import plugin_code
from headcount.likeness.distances import DISTANCES
from headcount.models import fingerprint
from headcount.pruning.methods import METHODS, Method, name_of
from headcount.repair.repairs import REPAIRS, repairs_identity
from headcount.runs.contents import content_of
from headcount.runs.kinds.prune import Prune
from headcount.runs.record import TOLD
from headcount.runs.subject import Subject
from headcount.runs.values import told
from headcount.tasks.calibration import Calibration
from headcount.tasks.loading import match

PLUGGABLE = (METHODS, REPAIRS, DISTANCES)
BY_NAME = frozenset({"method", "ratio", "repair", "learning", "baseline", "gated", "uniform"})
"""Options of a prune that `identity_of` and `repairs_identity` write: a study has several."""
AGAIN = "delete it to have it made again, or pass --overwrite to start anew"


def identity(
    subject: Subject,
    options: Prune,
    methods: Sequence[Method] = (),
    *,
    seed: int = 0,
    **more: object,
) -> JsonDict:
    """Everything prunings depend on; `methods` are those of a study, `more` what else it asks.

    The ratios and seeds of a study belong to its runs: with its `seed` the rows of one are read
    once.
    """
    if subject.tokenizer is not None:
        match(subject.model, subject.tokenizer)  # names the padding token to the config
    file = options.calibration.rows
    inputs = subject.given(options.calibration, options.scoring.max_length, seed)
    rows = content_of(str(file)) if isinstance(file, str | Path) else told(inputs)
    return {
        **computed(subject),
        **more,
        **({"uniform": True} if options.uniform else {}),
        **_options(subject, options),
        **_rows(subject, options),
        "calibration": None if inputs is None else rows,
        **repairs_identity(options.repair),
        "fresh": subject.fresh,
        **{name: value for method in methods for name, value in own_options(method).items()},
        **plugin_code([to_plain([options, *methods]), list(map(name_of, methods))], PLUGGABLE),
        "layout": subject.layout.to_json(),
        **subject.fingerprint(),
    }


def computed(subject: Subject) -> dict[str, object]:
    """What is recorded and may differ."""
    return {
        "model": subject.name,
        "device": str(next(subject.model.parameters()).device.type),
        "versions": fingerprint.versions(),
    }


def own_options(method: Method) -> dict[str, str]:
    """A method's options that are not its defaults."""
    name = name_of(method)
    return {
        # a scorer's file may be made by the first run that names it
        f"{name}.{option}": str(value) if option == "scorer" else told(value)
        for option, value in changed(method).items()
    }


def _options(subject: Subject, options: Prune) -> JsonDict:
    """Every option but those that stand in an identity in another form, so none is forgotten."""
    scoring = to_plain(options.scoring)
    if subject.task is None:  # nothing is scored
        scoring = {"max_length": scoring["max_length"]}
    return {
        **_but(options, BY_NAME | {"scoring", "calibration"}),
        **_but(options.calibration, {"rows"}),  # those by content
        **scoring,
    }


def _but(options: Prune | Calibration, names: Set[str]) -> JsonDict:
    """All fields with other names."""
    rest = [field.name for field in fields(options) if field.name not in names]
    return {name: to_plain(getattr(options, name)) for name in rest}


def _rows(subject: Subject, options: Prune) -> dict[str, object]:
    """Which rows are scored and which are looked at and trained on, by their content."""
    task = subject.task
    if task is None:
        return {}
    split = options.scoring.split or task.evaluation
    return {
        "task": task.name,
        "kind": task.kind,
        "labels": list(task.labels),
        "metric": task.metric,
        **({"metrics": list(chosen)} if (chosen := subject.source.metrics) else {}),
        "split": split,
        "scored": subject.rows_of(split),
        "looked_at": subject.looked_at,
        "rows": subject.rows_of(subject.looked_at),
    }


def require_same(then: object, now: Mapping[str, object], where: Path) -> str | None:
    """Refuse what was begun with something else; what differs and may is given back, in words."""
    if not isinstance(then, dict):
        raise UsageError(
            f"{where} is there already and does not say what it was begun with; --out takes a new "
            "or empty folder, and --overwrite starts anew."
        )
    parts = [
        fingerprint.differences(
            {name: value for name, value in then.items() if (name in TOLD) == open_},
            {name: value for name, value in now.items() if (name in TOLD) == open_},
        )
        for open_ in (False, True)
    ]
    if parts[0]:
        raise UsageError(
            f"{where} was begun with something else: {parts[0]}. Ask for that again to go on with "
            "it; otherwise --out takes a new or empty folder, and --overwrite starts anew."
        )
    return f"{where} was begun elsewhere and goes on: {parts[1]}." if parts[1] else None


def seal(data: Mapping[str, object], id: str) -> dict[str, object]:
    """A result as its file has it: with the id of the question it answers, and a sum over all."""
    plain = json.loads(json.dumps({**data, "id": id}, default=str))
    return plain | {"sum": plain_digest(plain)}


def read_sealed(path: Path, kind: str, id: str, largest: int = LARGEST) -> JsonDict:
    """A result that `seal` made for this question; refuse one of another, and a changed one."""
    complaint = f"{path} is no {kind} ({AGAIN})"
    data = parse_json(read_text(path, kind, largest), complaint)
    if not isinstance(data, dict):
        raise UsageError(f"{complaint}: it is no object.")
    if data.get("id") != id:
        raise UsageError(f"{path} answers another question than this one: {AGAIN}.")
    if data.pop("sum", None) != (total := plain_digest(data)):
        raise UsageError(f"{path} was changed after it was written: {AGAIN}.")
    return data | {"sum": total}
