"""The answer that a finished search left in its folder, and whether it is the one asked for.

search.json has the id of its question and a sum over itself, and the same of the model beside it.
What is missing is made again; what is of another question, or was changed, is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.files import require_fields, write_json
from headcount.base.header import header
from headcount.heads import Mask
from headcount.models.card import escaped, write_card
from headcount.models.load import load
from headcount.pruning.methods import name_of
from headcount.runs.card import card_results
from headcount.runs.contents import content_of
from headcount.runs.folder import work_of
from headcount.runs.identity import AGAIN, read_sealed, seal
from headcount.runs.kinds.prune import Prune
from headcount.runs.prune_result import PruneResult
from headcount.runs.record import load_record
from headcount.studies.search.answer_card import AnswerCard
from headcount.studies.search.answers import MODEL, SearchRequest, pruned
from headcount.studies.search.budgets import exactly
from headcount.studies.search.estimate import SearchResult

FILE = "search.json"
FULL = "selection.json"
"""The full model on the selection set."""
RESULTS = (FILE, "search.png", "search.svg", MODEL, work_of(Path(MODEL)).name)
"""What a search leaves beside its runs."""


def keep_answer(result: SearchResult, folder: Path | None, id: str) -> SearchResult:
    """Write search.json, where there is a folder."""
    checkpoint = None
    if folder is not None and result.model is not None:
        _write_card(result, folder / MODEL)
        checkpoint = _checkpoint(folder / MODEL)
    data = seal({**header("search"), **result.data, "checkpoint": checkpoint}, id)
    if folder is not None:
        write_json(folder / FILE, data)
    return replace(result, data=data)


def kept_answer(request: SearchRequest, folder: Path | None, id: str) -> SearchResult | None:
    """What an earlier call with the same question wrote; a model that is gone is made again."""
    if folder is None or not (folder / FILE).exists():
        return None
    data = read_sealed(folder / FILE, "search", id)
    # another file of the same question has its id, too
    complaint = f"{folder / FILE} is no search ({AGAIN})"
    require_fields(data, {"kept": int, "checkpoint": dict | None}, complaint)
    model, wanted = folder / MODEL, data["checkpoint"]
    if wanted is not None and not (model.is_dir() and any(model.iterdir())):
        return _made_again(request, data, folder)
    if wanted is not None and _checkpoint(model) != wanted:
        raise UsageError(f"{model} is not the model that this search wrote: {AGAIN}.")
    request.note(
        f"{folder} is there already, made by the same question: nothing is computed again."
    )
    if wanted is None:
        return SearchResult(data)
    return SearchResult(data, load(model), Mask.from_json(data["mask"]))


def _made_again(
    request: SearchRequest, data: Mapping[str, Any], parent: Path
) -> SearchResult | None:
    """The answer with its model pruned once more; None where that came out otherwise."""
    folder = parent / MODEL
    request.note(f"{folder} is gone: it is made again.")
    model = pruned(request, _pruning(request, data), data["seed"], parent)
    if _checkpoint(folder) == data["checkpoint"]:
        result = SearchResult(data, model.model, model.mask)
        _write_card(result, folder)
        return result
    request.note(
        f"{folder} has other weights than it had, made with other versions or on another device: "
        "what it scores is measured anew."
    )
    return None


def _pruning(request: SearchRequest, data: Mapping[str, Any]) -> Prune:
    """How the answer was pruned."""
    if data["by"] == "budget":
        return exactly(request, Mask.from_json(data["mask"]))
    method = next(method for method in request.methods if name_of(method) == data["method"])
    return request.cut(method)(data["kept"], data["seed"]).options


def _write_card(result: SearchResult, folder: Path) -> None:
    """The card of the selected model: the answer above what every pruned model's says."""
    record, model = load_record(folder), result.model
    assert model is not None
    results = card_results(record.result_as(PruneResult), record.notes, record.command)
    section = f"\n{answer_section(result.card)}{results.section}"
    write_card(model, folder, replace(results, section=section))


def answer_section(card: AnswerCard) -> str:
    """The answer as Markdown: the line, a table of its figures, the small print."""
    tiles = ((tile.label, f"**{escaped(tile.value)}**", tile.detail) for tile in card.tiles)
    labels, values, details = zip(*tiles, strict=True)
    rows = (map(escaped, labels), ["---"] * len(labels), values, map(escaped, details))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    title = f"**{escaped(card.title)}**: {escaped(card.subject)}"
    return f"{title}\n\n{table}\n\n{escaped(card.small_print)}\n"


def _checkpoint(folder: Path) -> dict[str, str | None]:
    """A pruned model by what it was made for and by what its files hold."""
    return {"id": load_record(folder).id, "files": content_of(str(folder))}
