"""A table or figure of a paper by one call: its runs executed, drawn, and its claims judged.

(item,) = hc.reproduce("weak-link", "table-4")            # at the scale pocket, in minutes
item.sheets[0].to_markdown(), item.verdicts[0].word
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headcount.base.errors import UnsupportedError, UsageError
from headcount.base.files import expanded, whole, write_json
from headcount.base.header import header
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
    """Runs behind the item that are done, of those that it needs."""
    drawn: DrawnItem | None
    """Its tables and figures; None while a run is missing."""
    verdicts: Sequence[Verdict]
    files: Sequence[Path] = ()

    @property
    def sheets(self) -> Sequence[Sheet]:
        """Our tables, and what the paper prints."""
        ours = () if self.drawn is None else self.drawn.sheets
        paper = printed_sheet(self.item.printed)
        return (*ours, *(() if paper is None else (paper,)))

    @property
    def command(self) -> str:
        """What makes it again."""
        return command_of(self.item.paper, self.item.name, self.scale)

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return self.item.to_json() | {
            "scale": self.scale,
            "folder": str(self.folder),
            "done": self.done,
            "total": self.total,
            "sheets": [sheet.to_json() for sheet in self.sheets],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "notes": [] if self.drawn is None else list(self.drawn.notes),
            "files": [str(path) for path in self.files],
            "command": self.command,
        }


def command_of(paper: str, item: str, scale: str) -> str:
    """The command that reproduces an item.

    >>> command_of("weak-link", "table-4", "small")
    'headcount reproduce weak-link table-4 --scale small'
    """
    return f"headcount reproduce {paper} {item}{'' if scale == 'pocket' else f' --scale {scale}'}"


def select_items(paper: str | None, item: str | None) -> list[Item]:
    """One item, all of a paper, or all."""
    if item is not None:
        if paper is None:
            raise UsageError("An item is one of a paper: name both, as in weak-link table-4.")
        return [get_item(paper, item)]
    items = [one for (of, _), one in read_items().items() if paper in (None, of)]
    if paper is not None and not items:
        get_item(paper, "")  # refuses the paper
    return items


def plan_items(
    items: Sequence[Item], scale: str, paths: DataPaths | None = None, *, elsewhere: bool = False
) -> Plan:
    """The runs that some items are made from, as one study."""
    require("scale", scale, SCALES)
    papers = {item.paper for item in items}
    name = scale if len(papers) > 1 else f"{scale}-{items[0].paper}"
    if len(items) == 1:  # other items are no change of the same study
        require_scale(items[0], scale)
        name += f"-{items[0].name}"
    known = set(groups_of(scale))
    groups = [group for item in items for group in item.needs if group in known]
    return read_scale(scale, groups, paths, name=name, elsewhere=elsewhere)


def reproduce(
    paper: str | None = None,
    item: str | None = None,
    *,
    scale: str = "pocket",
    out: str | Path | None = None,
    paths: DataPaths | None = None,
    executor_options: ExecutorOptions | None = None,
    run: bool = True,
    note: Callable[[str], None] = log,
    progress: Progress | None = None,
) -> list[ReproducedItem]:
    """Tables and figures of the papers, each beside the paper's own numbers.

    `paper` is redundancy, weak-link, autoattention or lay-off, and `item` a table or figure of it
    (`table-4`, `figure-7`); without an item all of the paper, without a paper all of them. `scale`
    is pocket (offline), small (real weights and data in `paths`) or paper (the papers' own). Runs
    are kept in `out` and shared by all items; the same call again goes on. Not `run`, only what is
    there is drawn.
    """
    items = select_items(paper, item)
    executor_options = executor_options or ExecutorOptions()
    if run:
        _require_means(scale, executor_options)
    plan = plan_items(items, scale, paths, elsewhere=not run and scale == "paper")
    folder = _folder(scale, out)
    if run:
        Study(plan, folder).run(executor_options, update=True, note=note, progress=progress)
    return draw_items(PaperRuns(plan, folder), scale, items)


def _folder(scale: str, out: str | Path | None) -> Path:
    return expanded(out) if out is not None else Path(OUT) / scale


def plan_summary(
    paper: str | None = None,
    item: str | None = None,
    *,
    scale: str = "pocket",
    out: str | Path | None = None,
    paths: DataPaths | None = None,
) -> PlanSummary:
    """How many runs that takes, how many are done, and how long the rest may take."""
    plan = plan_items(select_items(paper, item), scale, paths, elsewhere=scale == "paper")
    return Study(plan, _folder(scale, out)).plan()


def _require_means(scale: str, executor_options: ExecutorOptions) -> None:
    """Refuse the papers' own models on a machine that cannot train them."""
    if scale != "paper" or executor_options.executor not in HERE:
        return
    import torch

    if not torch.cuda.is_available():
        raise UnsupportedError(
            "The scale 'paper' trains the papers' own models, and there is no GPU here: use "
            "--executor ray or slurm, look at it with --plan, or take --scale pocket or small."
        )


def draw_items(finished: PaperRuns, scale: str, items: Sequence[Item]) -> list[ReproducedItem]:
    """Items of this scale, drawn and written where their runs are done."""
    claims, reproduced = read_claims(), []
    for item in (item for item in items if scale in item.scales):
        done, total = finished.count(item.groups)
        result = ReproducedItem(
            item=item,
            scale=scale,
            folder=finished.folder,
            done=done,
            total=total,
            drawn=item.draw(finished) if finished.is_whole(*item.groups) else None,
            verdicts=[judge(claims[code], finished, scale) for code in item.claims],
        )
        reproduced.append(result if result.drawn is None else _write(result, result.drawn))
    return reproduced


def _write(result: ReproducedItem, drawn: DrawnItem) -> ReproducedItem:
    """Write the item's tables as Markdown, CSV and JSON, and its figures as SVG."""
    from headcount.views.figures import save_figure

    folder, item = result.folder / ITEMS, result.item
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{item.paper}-{item.name}"
    parts = [f"# {item.paper}, {item.name}: {item.what}", f"`{result.command}`"]
    parts += [sheet.to_markdown() for sheet in result.sheets]
    texts = {f"{name}.md": "\n\n".join(parts) + "\n"}
    for at, sheet in enumerate(drawn.sheets):
        texts[f"{name}{f'-{at + 1}' if at else ''}.csv"] = sheet.to_csv()
    for file, text in texts.items():
        with whole(folder / file) as partial:
            partial.write_text(text, encoding="utf-8")
    figures = [
        save_figure(figure, folder / f"{name}{f'-{slug(title)}' if title else ''}.svg")
        for title, figure in drawn.figures.items()
    ]
    files = [*(folder / file for file in texts), *figures]
    data = folder / f"{name}.json"
    write_json(data, header("paper-item") | result.to_json())
    return replace(result, files=[*files, data])


def slug(title: str) -> str:
    """A title as part of a file's name.

    >>> slug("layers top:2+bottom:2 emptied")
    'layers-top-2-bottom-2-emptied'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def claims(
    *folders: str | Path, scales: Iterable[str] | None = None, paths: DataPaths | None = None
) -> list[Verdict]:
    """What the runs in some folders say of every claim.

    Without a folder it is `reproduce/SCALE` for every scale that is there, or for each of `scales`.
    The scale of a folder is in the names of its study files.
    """
    return judge_all(open_folders(folders, scales, paths))


def judge_all(scales: Sequence[tuple[str, PaperRuns]]) -> list[Verdict]:
    """A verdict for every claim by the runs of each scale."""
    return [
        judge(claim, finished, scale)
        for claim in read_claims().values()
        for scale, finished in scales
    ]


def open_folders(
    folders: Iterable[str | Path] = (),
    scales: Iterable[str] | None = None,
    paths: DataPaths | None = None,
) -> list[tuple[str, PaperRuns]]:
    """The scale and the runs of each folder, `reproduce/*` if none; of `scales` alone if named."""
    named = None if scales is None else {require("scale", scale, SCALES) for scale in scales}
    opened = [open_folder(folder, paths) for folder in folders or existing_folders()]
    return [pair for pair in opened if named is None or pair[0] in named]


def existing_folders() -> list[Path]:
    """Folders of `headcount reproduce` that are here."""
    return [folder for scale in SCALES if (folder := Path(OUT) / scale).is_dir()]


def open_folder(folder: str | Path, paths: DataPaths | None = None) -> tuple[str, PaperRuns]:
    """The scale of a folder, and the runs that are in it."""
    folder = expanded(folder)
    scale, paths = scale_of(folder), paths or DataPaths()
    if missing := paths.missing(scale):
        log(
            f"Runs of {folder} are known by what they were made from: without "
            f"{' and '.join(f'--{name}' for name in missing)} most count as not run."
        )
    return scale, PaperRuns(read_scale(scale, groups_of(scale), paths, elsewhere=True), folder)


def scale_of(folder: Path) -> str:
    """The scale of the runs in a folder."""
    names = [path.stem for path in sorted((folder / "studies").glob("*.json"))]
    for scale in SCALES:
        if any(name == scale or name.startswith(f"{scale}-") for name in names):
            return scale
    raise UsageError(f"{folder} has no runs of headcount reproduce: it names no scale.")


def count_verdicts(verdicts: Iterable[Verdict]) -> Mapping[str, int]:
    """How many claims have which verdict."""
    return dict(Counter(verdict.word for verdict in verdicts))
