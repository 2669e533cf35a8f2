"""A table or figure of a paper by one call: its runs carried out, drawn, and its claims judged.

found = hc.reproduce("weak-link", "table-4")            # at the scale pocket, in minutes
found[0].sheets[0].to_markdown(), found[0].verdicts[0].word
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.base.errors import UnsupportedError, UsageError
from headcount.base.files import expanded, whole, write_json
from headcount.base.names import require
from headcount.papers.claims import Verdict, judge, read_claims
from headcount.papers.finished import PaperRuns
from headcount.papers.items import Item, get_item, read_items, require_scale
from headcount.papers.scales import SCALES, DataPaths, groups_of, read_scale
from headcount.papers.sheets import DrawnItem, Sheet, printed_sheet
from headcount.runs.notes import log
from headcount.studies.driver import Progress
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.plan import Plan
from headcount.studies.study import PlanSummary, Study

OUT = "reproduce"
ITEMS = "items"
HERE = ("serial", "processes")


@dataclass(frozen=True, kw_only=True)
class ReproducedItem:
    """An item as it came out at a scale."""

    item: Item
    scale: str
    folder: Path
    """Where its runs are kept."""
    done: int
    total: int
    """Runs behind the item that are done, of those that it asks for."""
    drawn: DrawnItem | None
    """Its tables and figures; None while a run is missing."""
    verdicts: Sequence[Verdict]
    files: Sequence[Path] = field(default=())

    @property
    def sheets(self) -> Sequence[Sheet]:
        """Our tables, and what the paper prints."""
        own = () if self.drawn is None else self.drawn.sheets
        paper = printed_sheet(self.item.printed)
        return (*own, *(() if paper is None else (paper,)))

    @property
    def command(self) -> str:
        """What makes it again."""
        scale = "" if self.scale == "pocket" else f" --scale {self.scale}"
        return f"headcount reproduce {self.item.paper} {self.item.name}{scale}"

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return self.item.to_json() | {
            "scale": self.scale, "folder": str(self.folder), "done": self.done,
            "total": self.total, "sheets": [sheet.to_json() for sheet in self.sheets],
            "verdicts": [each.to_json() for each in self.verdicts],
            "notes": [] if self.drawn is None else list(self.drawn.notes),
            "files": [str(path) for path in self.files], "command": self.command,
        }  # fmt: skip


def chosen(paper: str | None, item: str | None) -> list[Item]:
    """One item, all of a paper, or all."""
    if item is not None:
        if paper is None:
            raise UsageError("An item is one of a paper: name both, as in weak-link table-4.")
        return [get_item(paper, item)]
    if paper is None:
        return list(read_items().values())
    known = list(dict.fromkeys(name for name, _ in read_items()))
    if paper not in known:
        get_item(paper, "")  # refuses the paper
    return [each for (name, _), each in read_items().items() if name == paper]


def plan_items(
    items: Sequence[Item], scale: str, places: DataPaths | None = None, *, elsewhere: bool = False
) -> Plan:
    """The runs that some items are made from, as one study."""
    require("scale", scale, SCALES)
    if len(items) == 1:
        require_scale(items[0], scale)
    there = set(groups_of(scale))
    groups = [group for item in items for group in item.needs if group in there]
    return read_scale(scale, groups, places, name=_name(items, scale), elsewhere=elsewhere)


def _name(items: Sequence[Item], scale: str) -> str:
    """What the study of some items is called: other items are no change of the same study."""
    if len(items) == 1:
        return f"{scale}-{items[0].paper}-{items[0].name}"
    papers = {item.paper for item in items}
    return scale if len(papers) > 1 else f"{scale}-{papers.pop()}"


def reproduce(
    paper: str | None = None,
    item: str | None = None,
    *,
    scale: str = "pocket",
    out: str | Path | None = None,
    places: DataPaths | None = None,
    executor_options: ExecutorOptions | None = None,
    run: bool = True,
    note: Callable[[str], None] = log,
    progress: Progress | None = None,
) -> list[ReproducedItem]:
    """Tables and figures of the papers, each beside the paper's own numbers.

    `paper` is redundancy, weak-link, autoattention or lay-off, and `item` a table or figure of it
    (`table-4`, `figure-7`); without an item all of the paper, without a paper all of them. `scale`
    is pocket (offline), small (real weights and data in `places`) or paper (the papers' own). Runs
    are kept in `out` and shared by all items; the same call again goes on. Not `run`, only what is
    there is drawn.
    """
    items = chosen(paper, item)
    folder = expanded(out) if out is not None else Path(OUT) / scale
    how = executor_options or ExecutorOptions()
    if run:
        _require_means(scale, how)
    plan = plan_items(items, scale, places, elsewhere=not run and scale == "paper")
    if run:
        Study(plan, folder).run(how, update=True, note=note, progress=progress)
    return drawn_items(PaperRuns(plan, folder), scale, items)


def drawn_items(found: PaperRuns, scale: str, items: Sequence[Item]) -> list[ReproducedItem]:
    """Items as the runs that are there make them, those of this scale."""
    return [_reproduced(each, found, scale, found.folder) for each in items if scale in each.scales]


def planned(
    paper: str | None = None, item: str | None = None, *, scale: str = "pocket",
    out: str | Path | None = None, places: DataPaths | None = None,
) -> PlanSummary:  # fmt: skip
    """How many runs that takes, how many are done, and how long the rest may take."""
    folder = expanded(out) if out is not None else Path(OUT) / scale
    plan = plan_items(chosen(paper, item), scale, places, elsewhere=scale == "paper")
    return Study(plan, folder).plan()


def _require_means(scale: str, how: ExecutorOptions) -> None:
    """Refuse the papers' own models on a machine that cannot train them."""
    if scale != "paper" or how.executor not in HERE:
        return
    import torch

    if not torch.cuda.is_available():
        raise UnsupportedError(
            "The scale 'paper' trains the papers' own models, and there is no GPU here: use "
            "--executor ray or slurm, look at it with --plan, or take --scale pocket or small."
        )


def _reproduced(item: Item, found: PaperRuns, scale: str, folder: Path) -> ReproducedItem:
    done, total = found.count(item.groups)
    drawn = item.draw(found) if found.is_whole(item.groups) else None
    claims = read_claims()
    made = ReproducedItem(
        item=item, scale=scale, folder=folder, done=done, total=total, drawn=drawn,
        verdicts=[judge(claims[code], found, scale) for code in item.claims],
    )  # fmt: skip
    if drawn is None:
        return made
    files = _write(made, folder / ITEMS)
    return ReproducedItem(**{**vars(made), "files": files})


def _write(made: ReproducedItem, folder: Path) -> list[Path]:
    """The item's tables as Markdown, CSV and JSON, and its figures as SVG."""
    from headcount.views.figures import save_figure

    assert made.drawn is not None
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{made.item.paper}-{made.item.name}"
    files = [folder / f"{name}.md"]
    with whole(files[0]) as partial:
        partial.write_text(_markdown(made), encoding="utf-8")
    for place, sheet in enumerate(made.drawn.sheets):
        path = folder / f"{name}{f'-{place + 1}' if place else ''}.csv"
        with whole(path) as partial:
            partial.write_text(sheet.to_csv(), encoding="utf-8")
        files.append(path)
    for title, figure in made.drawn.figures.items():
        files.append(
            save_figure(figure, folder / f"{name}{f'-{slug(title)}' if title else ''}.svg")
        )
    write_json(folder / f"{name}.json", made.to_json())
    return [*files, folder / f"{name}.json"]


def _markdown(made: ReproducedItem) -> str:
    parts = [f"# {made.item.paper}, {made.item.name}: {made.item.what}", f"`{made.command}`"]
    parts += [sheet.to_markdown() for sheet in made.sheets]
    return "\n\n".join(parts) + "\n"


def slug(title: str) -> str:
    """A title as part of a file's name.

    >>> slug("layers top:2+bottom:2 emptied")
    'layers-top-2-bottom-2-emptied'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def claims(
    *folders: str | Path, scales: Iterable[str] | None = None, places: DataPaths | None = None
) -> list[Verdict]:
    """What the runs in some folders say of every claim.

    Without a folder it is `reproduce/SCALE` for every scale that is there. A folder's scale is told
    by the study files that it was filled by.
    """
    found = [find_runs(folder, places) for folder in folders or existing_folders()]
    return judge_all([each for each in found if scales is None or each[0] in set(scales)])


def judge_all(found: Iterable[tuple[str, PaperRuns]]) -> list[Verdict]:
    """A verdict for every claim by the runs of each scale."""
    known = list(found)
    return [judge(claim, each, scale) for claim in read_claims().values() for scale, each in known]


def existing_folders() -> list[Path]:
    """Folders of `headcount reproduce` that are here."""
    there = [Path(OUT) / scale for scale in ("pocket", "small", "paper")]
    return [folder for folder in there if folder.is_dir()]


def find_runs(folder: str | Path, places: DataPaths | None = None) -> tuple[str, PaperRuns]:
    """The scale of a folder, and the runs that are in it."""
    folder = expanded(folder)
    scale = scale_of(folder)
    return scale, PaperRuns(read_scale(scale, groups_of(scale), places, elsewhere=True), folder)


def scale_of(folder: Path) -> str:
    """The scale of the runs in a folder."""
    names = [path.stem for path in sorted((folder / "studies").glob("*.json"))]
    for scale in ("pocket", "small", "paper"):
        if any(name == scale or name.startswith(f"{scale}-") for name in names):
            return scale
    raise UsageError(f"{folder} has no runs of headcount reproduce: it names no scale.")


def counted(verdicts: Iterable[Verdict]) -> Mapping[str, int]:
    """How many claims have which verdict."""
    found: dict[str, int] = {}
    for each in verdicts:
        found[each.word] = found.get(each.word, 0) + 1
    return found
