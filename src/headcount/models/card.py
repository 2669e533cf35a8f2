"""The model card of a model that lost heads: what was kept, of what, and how to load it.

What it scores and how it was made is given (`CardResults`), or read from the card of the folder
that a model was loaded from. Names and texts in a card come from files and from users: they are
escaped, and paths of this machine are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from huggingface_hub import EvalResult, metadata_load
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results
from huggingface_hub.utils import yaml_dump
from transformers import PreTrainedModel

from headcount import __version__
from headcount.base.files import read_json, read_text, whole
from headcount.base.text import printable
from headcount.models.cut import sites_in
from headcount.models.origin import LARGEST_CARD, base_name, front_matter, hub_name
from headcount.models.sites import find_sites

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

RESULTS = "\n## What it cost\n"
"""The heading of the section on how a model was made and what it scores."""

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


def fenced(text: str) -> str:
    """A command between lines of backticks."""
    ticks = "`" * max(3, 1 + _longest_ticks(text))
    return f"{ticks}sh\n{printable(text)}\n{ticks}"


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


@dataclass(frozen=True)
class CardResults:
    """How a model was made and what it scores, for its card."""

    section: str = ""
    """Markdown, below the heading `RESULTS`."""
    scores: tuple[EvalResult, ...] = ()
    """As the hub reads them from a card."""


NO_RESULTS = CardResults()


def write_card(model: PreTrainedModel, folder: Path, results: CardResults = NO_RESULTS) -> None:
    """Write README.md into the folder of a saved pruned model."""
    with whole(folder / "README.md") as file:
        file.write_text(card(model, results=results), encoding="utf-8")


def card(
    model: PreTrainedModel,
    usage: str = USAGE,
    *,
    results: CardResults = NO_RESULTS,
    library: str = "transformers",
    zeros: bool = False,
) -> str:
    """The card's text; `usage` says how to load what it lies beside.

    With `zeros`, the removed heads are in the file as zeros.
    """
    sites = sites_in(model.config)
    rows = "\n".join(
        f"| {escaped(site['stack'])} {site['layer']} | {site['heads']} | {len(site['kept'])} "
        f"| {', '.join(map(str, site['kept'])) or 'none'} |"
        for site in sites
    )
    pruned = {site["path"] for site in sites}
    untouched = sum(site.heads for site in find_sites(model) if site.path not in pruned)
    kept = untouched + sum(len(site["kept"]) for site in sites)
    base = base_name(model.config).removeprefix("./")
    title = f"{PurePath(base).name or type(model).__name__} with {kept} heads"
    text = TEMPLATE.format(
        front=front(model, title, results=results, library=library),
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
    return text + (f"{RESULTS}{results.section}" if results.section else "")


def front(
    model: PreTrainedModel,
    title: str,
    *,
    results: CardResults = NO_RESULTS,
    library: str = "transformers",
) -> str:
    """The lines for the hub on top of a card, as YAML."""
    inherited = front_matter(getattr(model.config, "_name_or_path", "") or "")
    base = hub_name(base_name(model.config)) or inherited.pop("base_model", None)
    tag = inherited.pop("pipeline_tag", None) or pipeline_tag(model)
    pruned = bool(sites_in(model.config))
    lines: dict[str, object] = {"library_name": library}
    lines |= {"base_model": base} if base else {}
    lines |= {key: value for key, value in inherited.items() if key != "base_model"}
    lines |= {"pipeline_tag": tag} if tag else {}
    lines["tags"] = ["headcount", "pruned-attention-heads"] if pruned else ["headcount"]
    if results.scores and tag:
        scores = [replace(score, task_type=tag) for score in results.scores]
        lines["model-index"] = eval_results_to_model_index(printable(title), scores)
    return yaml_dump(lines, sort_keys=False)


def pipeline_tag(model: PreTrainedModel) -> str | None:
    """What the hub calls the thing that this model does, None where the class does not say."""
    kind = getattr(type(model), "base_class", type(model)).__name__
    return next((tag for end, tag in TAGS.items() if kind.endswith(end)), None)


def results_of(model: PreTrainedModel) -> CardResults:
    """What the card in a model's folder says, where headcount wrote it for exactly these heads."""
    folder = Path(getattr(model.config, "_name_or_path", "") or "/nowhere")
    try:
        written = read_json(folder / "config.json", "config of a model").get("headcount")
        if written != getattr(model.config, "headcount", None):
            return NO_RESULTS  # heads have been removed since
        text = read_text(folder / "README.md", "card of a model", LARGEST_CARD)
        data = metadata_load(folder / "README.md") or {}
        section = text.partition(RESULTS)[2]
        if "headcount" not in data.get("tags", []) or not section:
            return NO_RESULTS
        index = data.get("model-index")
        scores = model_index_to_eval_results(index)[1] if index else []
        return CardResults(section, tuple(scores))
    except Exception:
        # whatever a damaged card holds, it says nothing
        return NO_RESULTS
