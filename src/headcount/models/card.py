"""The model card of a pruned model: what was kept, of what, what it cost, and how to load it.

Names and texts in a card come from files and from users: they are escaped, and paths of this
machine are left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from huggingface_hub import (
    EvalResult,
    EvalResultEntry,
    eval_result_entries_to_yaml,
)
from huggingface_hub.repocard_data import eval_results_to_model_index
from huggingface_hub.utils import yaml_dump

from headcount import __version__
from headcount.base.names import split_words
from headcount.base.text import printable
from headcount.models.origin import base_name, front_matter, hub_name

TEMPLATE = """---
{front}---

# {title}

{kept} of {heads} attention heads of {base}, the others removed by headcount {version}.

| layer | heads before | heads kept | which |
|---|---|---|---|
{rows}

| | |
|---|---|
| parameters | {parameters:,}{zeros} |
| architecture | {architecture} |

## How to load

{usage}"""

USAGE = """```python
import headcount

model = headcount.load("path/to/this/folder")
```

Plain `from_pretrained` refuses these weights, because layers have different numbers of heads.
`headcount export --to zeroed` writes a full-size copy that it takes, and `--to standalone` one
that needs only `trust_remote_code=True`.
"""

COST = """
## What it cost

{how}

{scores}
"""

TAGS = {
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMaskedLM": "fill-mask",
    "ForPreTraining": "fill-mask",
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "MTModel": "translation",
    "ForImageClassification": "image-classification",
    "ForAudioClassification": "audio-classification",
    "ForCTC": "automatic-speech-recognition",
    "ForSpeechSeq2Seq": "automatic-speech-recognition",
}
"""How the hub calls what a class of transformers does, by the end of its name."""

_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_[]#|~$"}
_MARKS |= {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;"}


def escaped(text: object) -> str:
    """Text for a sentence, a heading or a table of a card: no markup, no second line."""
    return printable(str(text)).translate(_MARKS)


def as_code(text: object) -> str:
    """Text between backticks, one more of them than it has itself."""
    shown = printable(str(text)).replace("|", "\\|")
    ticks = "`" * (1 + _longest_ticks(shown))
    space = " " * (len(ticks) > 1)
    return f"{ticks}{space}{shown}{space}{ticks}"


def _fenced(text: str) -> str:
    ticks = "`" * max(3, 1 + _longest_ticks(text))
    return f"{ticks}sh\n{printable(text)}\n{ticks}"


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def write_card(model: Any, folder: Path, *, record: Mapping[str, Any] | None = None) -> None:
    """Write README.md into the folder of a saved pruned model."""
    (folder / "README.md").write_text(card(model, record=record), encoding="utf-8")


def card(
    model: Any,
    usage: str = USAGE,
    *,
    record: Mapping[str, Any] | None = None,
    library: str = "transformers",
    zeros: bool = False,
) -> str:
    """The card's text; `usage` says how to load what it lies beside, `record` how it was made.

    With `zeros`, the removed heads are in the file as zeros.
    """
    sites = model.config.headcount["sites"]
    rows = "\n".join(
        f"| {escaped(site['stack'])} {site['layer']} | {site['heads']} | {len(site['kept'])} "
        f"| {', '.join(map(str, site['kept'])) or 'none'} |"
        for site in sites
    )
    untouched = _untouched_heads(model, sites)
    kept = untouched + sum(len(site["kept"]) for site in sites)
    base = base_name(model.config).removeprefix("./")
    title = f"{PurePath(base).name or type(model).__name__} with {kept} heads"
    text = TEMPLATE.format(
        front=front(model, title, record=record, library=library),
        title=escaped(title),
        base=as_code(base) if base else f"a {escaped(model.config.model_type)} model",
        kept=kept,
        heads=untouched + sum(site["heads"] for site in sites),
        version=__version__,
        rows=rows,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        zeros=", and zeros where heads were" if zeros else "",
        architecture=escaped(type(model).__name__),
        usage=usage,
    )
    return text + (cost(record) if record else "")


def front(
    model: Any,
    title: str,
    *,
    record: Mapping[str, Any] | None = None,
    library: str = "transformers",
) -> str:
    """The lines for the hub on top of a card, as YAML."""
    name = getattr(model.config, "_name_or_path", "") or ""
    said = front_matter(name)
    base = hub_name(base_name(model.config)) or said.pop("base_model", None)
    tag = said.pop("pipeline_tag", None) or pipeline_tag(model)
    pruned = bool(getattr(model.config, "headcount", None))
    lines: dict[str, Any] = {"library_name": library}
    lines |= {"base_model": base} if base else {}
    lines |= {key: value for key, value in said.items() if key != "base_model"}
    lines |= {"pipeline_tag": tag} if tag else {}
    lines["tags"] = ["headcount", "pruned-attention-heads"] if pruned else ["headcount"]
    if record and tag:
        lines |= _index(record, title, tag)
    return yaml_dump(lines, sort_keys=False)


def pipeline_tag(model: Any) -> str | None:
    """What the hub calls the thing that this model does, None where the class does not say."""
    kind = getattr(type(model), "base_class", type(model)).__name__
    return next((tag for end, tag in TAGS.items() if kind.endswith(end)), None)


def _untouched_heads(model: Any, sites: list[dict[str, Any]]) -> int:
    from headcount.models.sites import find_sites

    cut = {site["path"] for site in sites}
    return sum(site.heads for site in find_sites(model) if site.path not in cut)


def cost(record: Mapping[str, Any]) -> str:
    """The section on how the model was made and what it scores; "" for a damaged record."""
    try:
        return COST.format(how=_how(record), scores=_table(record))
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""


def _how(record: Mapping[str, Any]) -> str:
    heads = record["heads"]
    text = f"Method {as_code(record['method'])}, seed {escaped(record['seed'])}: "
    text += f"{escaped(heads['before'])} heads before, {escaped(heads['after'])} after "
    text += f"({as_code(heads['kept'])})."
    for step in record["repair"]:
        text += f" Repaired by {as_code(step['name'])}"
        if step.get("with_gates"):
            text += ", together with its gates"
        elif step["steps"]:
            text += f": {escaped(step['steps'])} steps of training"
        else:
            text += f", on inputs of {escaped(step['rows'])}"
        text += "."
    if record.get("rows_said"):
        text += f"\n\n{escaped(record['rows_said'])}"
    for note in record.get("notes") or []:
        text += f"\n\n> {escaped(note)}"
    if record["command"]:
        text += f"\n\n{_fenced(without_paths(record['command']))}"
    return text


def without_paths(command: str) -> str:
    """A command with only the last part of every path that is this machine's.

    >>> without_paths("headcount prune /home/me/run --out=~/half --data glue/mrpc")
    'headcount prune run --out=half --data glue/mrpc'
    """

    def short(word: str) -> str:
        option, sign, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if value.startswith(("/", "~", "../")):
            value = PurePath(value).name or value
        return f"{option}{sign}{value}"

    try:
        words = shlex.split(command)
    except ValueError:
        # no shell would take it either: a quote is left open
        return re.sub(r"(?<![\w.])(/|~|\.\./)\S*/", "", command)
    return shlex.join(map(short, words))


def _table(record: Mapping[str, Any]) -> str:
    scores = record.get("scores")
    if scores is None:
        return "It was not scored: no task was given."
    on = f"{escaped(scores['task'])} {escaped(split_words(scores['split']))}, n = "
    on += escaped(scores["n"])
    rows = [f"| {on} | {escaped(scores['metric'])} |", "|---|---|"]
    for name, each in (("all heads", scores["before"]), ("this model", scores["after"])):
        rows.append(f"| {name} | {_number(each['score'])}, {_interval(each)} |")
    if "lost" in scores:
        rows.append(f"| difference, on the same rows | {escaped(scores['lost'])} |")
    if "random" in scores:
        draw = scores["random"]
        spread = f"{_number(draw['worst'])} to {_number(draw['best'])}"
        rows.append(
            f"| as many heads removed at random, {escaped(draw['draws'])} draws "
            f"| {_number(draw['mean'])}, {spread} |"
        )
    return "\n".join(rows)


def _interval(scored: Mapping[str, Any]) -> str:
    if scored["low"] is None:
        why = scored.get("no_interval")
        return "no interval" + (f": {escaped(why)}" if why else "")
    return f"95 % interval [{_number(scored['low'])}, {_number(scored['high'])}]"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _index(record: Mapping[str, Any], title: str, tag: str) -> dict[str, Any]:
    """The score as the hub reads it from a card."""
    try:
        scores = record["scores"]
        result = EvalResult(
            task_type=tag,
            dataset_type=printable(scores.get("dataset", {}).get("id", scores["task"])),
            dataset_name=printable(scores["task"]),
            dataset_split=printable(str(scores["split"]).partition(":")[0]),
            metric_type=printable(scores["metric"]),
            metric_value=float(scores["after"]["score"]),
        )
        return {"model-index": eval_results_to_model_index(printable(title), [result])}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def write_results(folder: Path, record: Mapping[str, Any]) -> None:
    """`.eval_results/TASK.yaml`, which the hub shows, for a score on a data set of the hub."""
    try:
        scores = record["scores"]
        after = scores["after"]
        file = re.sub(r"[^\w-]", "-", str(scores["task"])[:60]) + ".yaml"
        entry = EvalResultEntry(
            dataset_id=scores["dataset"]["id"],
            task_id=scores["dataset"]["task"],
            value=round(float(after["score"]), 6),
            notes=(
                f"{scores['metric']} on {split_words(scores['split'], scores['n'])}, "
                f"{_interval(after)}; headcount {__version__}"
            ),
        )
    except (KeyError, TypeError, ValueError):
        return
    (folder / ".eval_results").mkdir(exist_ok=True)
    text = yaml_dump(eval_result_entries_to_yaml([entry]), sort_keys=False)
    (folder / ".eval_results" / file).write_text(text, encoding="utf-8")
