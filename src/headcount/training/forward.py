"""One pass over the rows with one mask or with many, the answers of each read into a small table.

Masks are sorted by their layers from the bottom up. Two neighbours that agree in the lowest k
layers share everything below layer k (see `Replay`); masks that part at the same layer run side
by side in one batch when the batch is small.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from headcount.heads import Mask
from headcount.models.batches import TARGETS, ModelBatch
from headcount.models.find import require_layout, sites_of, unwrap
from headcount.models.gates import gate
from headcount.models.hooks import evaluating
from headcount.models.layers import call_order, find_layers
from headcount.models.partial import Replay
from headcount.models.probe import relative_difference
from headcount.models.sites import Site
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds.kind import TaskKind

Key = tuple[tuple[tuple[int, ...], ...], ...]
"""What a mask keeps in each layer call, from the first call to the last."""
TOLERANCE = 1e-4
"""Largest difference, relative to the largest logit, at which a replayed answer counts as equal."""


class GateBoard:
    """Gates that stay on the model and are set to one mask after the other, or to several."""

    def __init__(self, model: PreTrainedModel, masks: Sequence[Mask]) -> None:
        self.model = unwrap(model)
        self.sites = sites_of(self.model)
        for mask in masks:
            require_layout(self.model, mask.layout)
        device = next(self.model.parameters()).device
        self.gates = [torch.ones(1, site.heads, device=device) for site in self.sites]
        self.rows = [[_row(mask, site) for site in self.sites] for mask in masks]

    @contextmanager
    def attached(self) -> Generator[None]:
        """Inside, the gates act."""
        stacks: dict[str, list[Tensor]] = {}
        for site, value in zip(self.sites, self.gates, strict=True):
            stacks.setdefault(site.stack, []).append(value)
        with gate(self.model, stacks):
            yield

    def show(self, chosen: Sequence[int]) -> None:
        """Set the gates to masks by number: one for all rows, or one for each copy of the batch."""
        for number, value in enumerate(self.gates):
            value.resize_(len(chosen), value.shape[1])
            value.copy_(torch.stack([self.rows[which][number] for which in chosen]))


def _row(mask: Mask, site: Site) -> Tensor:
    kept = set(mask.indices(site.stack, site.layer))
    return torch.tensor([float(head in kept) for head in range(site.heads)])


def run_masks(
    model: PreTrainedModel,
    rows: EncodedRows,
    kind: TaskKind,
    masks: Sequence[Mask] | None,
    *,
    tokens: int,
    share: bool = True,
    report: Callable[[int, int], object] | None = None,
) -> list[np.ndarray]:
    """A table (row, number) for every mask, or one for the model as it is when `masks` is None.

    `report` gets (rows done, all rows) after each batch.
    """
    device = next(model.parameters()).device

    def batches() -> Generator[tuple[np.ndarray, ModelBatch]]:
        done = 0
        for numbers, batch in rows.batches(tokens):
            moved = {name: value.to(device) for name, value in batch.items()}
            inputs = kind.inputs(unwrap(model), moved)
            yield (
                numbers,
                ModelBatch(inputs, moved.get("labels"), moved.get("examples"), moved.get(TARGETS)),
            )
            done += len(numbers)
            if report is not None:
                report(done, len(rows))

    tables: list[np.ndarray | None] = [None] * (1 if masks is None else len(masks))

    def put(which: int, numbers: np.ndarray, answers: Tensor, batch: ModelBatch) -> None:
        part: np.ndarray = kind.read(answers, batch).cpu().numpy()
        table: np.ndarray | None = tables[which]
        if table is None:
            table = tables[which] = np.zeros((len(rows), *part.shape[1:]))
        if (more := part.shape[1] - table.shape[1]) > 0:
            # sounds of about the same length differ a little in frames
            table = tables[which] = np.concatenate(
                [table, np.zeros((len(rows), more, *part.shape[2:]))], axis=1
            )
        table[numbers, : part.shape[1]] = part  # the first batch has the longest rows

    with torch.inference_mode(), evaluating(unwrap(model)):
        if masks is None:
            for numbers, batch in batches():
                outputs = model(**batch.inputs)
                put(0, numbers, kind.predict(outputs, batch.inputs, model), batch)
        else:
            board = GateBoard(model, masks)
            with board.attached():
                chain = _chain(model, board, rows, kind, masks) if share else None
                for numbers, batch in batches():
                    for which, answers in _answers(board, chain, kind, batch.inputs, tokens):
                        put(which, numbers, answers, batch)
    return [table for table in tables if table is not None]


def _answers(
    board: GateBoard,
    chain: MaskChain | None,
    kind: TaskKind,
    inputs: dict[str, Tensor],
    tokens: int,
) -> Generator[tuple[int, Tensor]]:
    """(number of the mask, answers) for every mask on one batch."""
    if chain is not None:
        together = max(1, tokens // next(iter(inputs.values())).numel())
        with chain.replay.attached():
            yield from chain.visit(inputs, chain.order, 0, together)
        return
    for which in range(len(board.rows)):
        board.show([which])
        yield which, kind.predict(board.model(**inputs), inputs, board.model)


class MaskChain:
    """Masks sorted so that neighbours share as many of the lowest layers as they can."""

    def __init__(
        self, board: GateBoard, replay: Replay, masks: Sequence[Mask], kind: TaskKind
    ) -> None:
        self.board = board
        self.kind = kind
        self.replay = replay
        inside = {layer.path: layer.sites for layer in replay.layers}
        self.keys: list[Key] = [
            tuple(
                tuple(mask.indices(site.stack, site.layer) for site in inside[path])
                for path in replay.calls
            )
            for mask in masks
        ]
        self.order = sorted(range(len(masks)), key=self.keys.__getitem__)

    def answers(self, outputs: Any, inputs: dict[str, Tensor]) -> Tensor:
        """What the model predicts; the outputs may be of several copies of the inputs."""
        return self.kind.predict(outputs, inputs, self.board.model)

    def shared(self, first: int, second: int) -> int:
        """How many layer calls two masks have in common from the first one on."""
        pairs = zip(self.keys[first], self.keys[second], strict=True)
        return next((at for at, (a, b) in enumerate(pairs) if a != b), len(self.keys[first]))

    def visit(
        self, inputs: dict[str, Tensor], chosen: Sequence[int], start: int, together: int
    ) -> Generator[tuple[int, Tensor]]:
        """Answers of sorted masks that agree below call `start`, whose outputs are remembered."""
        head, *rest = chosen
        part = {self.keys[which][start] for which in chosen} if rest else set()
        if together > 1 and len(part) == len(chosen) and start < len(self.replay.calls):
            for at in range(0, len(chosen), together):
                yield from self._side_by_side(inputs, chosen[at : at + together], start)
            return
        self.board.show([head])
        answers = self.answers(self.replay.run(inputs, start), inputs)
        yield head, answers
        for depth, group in groupby(rest, lambda which: self.shared(head, which)):
            if depth == len(self.replay.calls):  # the same mask once more
                for which in group:
                    yield which, answers
            else:
                yield from self.visit(inputs, list(group), depth, together)

    def _side_by_side(
        self, inputs: dict[str, Tensor], chosen: Sequence[int], start: int
    ) -> Generator[tuple[int, Tensor]]:
        self.board.show(chosen)
        outputs = self.replay.run(inputs, start, copies=len(chosen), keep=False)
        answers = self.answers(outputs, inputs).chunk(len(chosen))
        yield from zip(chosen, answers, strict=True)


def _chain(
    model: PreTrainedModel,
    board: GateBoard,
    rows: EncodedRows,
    kind: TaskKind,
    masks: Sequence[Mask],
) -> MaskChain | None:
    """The chain, or None when sharing is of no use or does not give the plain answers here."""
    layers = find_layers(model)
    if len(masks) < 2 or not layers:
        return None
    device = next(model.parameters()).device
    longest = np.array([rows.lengths[numbers].max() for numbers in rows.rows_of(range(rows.count))])
    few = rows.take(np.argsort(longest, kind="stable")[[0, rows.count // 2]])
    batch = few.collate([few[row] for row in range(len(few))])
    inputs = kind.inputs(board.model, {name: value.to(device) for name, value in batch.items()})
    board.show([0])
    try:
        chain = MaskChain(
            board, Replay(model, layers, call_order(model, layers, inputs)), masks, kind
        )
        return chain if _holds(chain, inputs) else None
    except Exception:
        return None  # a layer that cannot be driven from outside: the plain loop is always right


def _holds(chain: MaskChain, inputs: dict[str, Tensor], samples: int = 5) -> bool:
    """Whether replayed answers are the plain ones, on a small batch."""
    steps = np.linspace(0, len(chain.order) - 1, min(samples, len(chain.order))).astype(int)
    chosen = [chain.order[step] for step in steps]
    plain: dict[int, Tensor] = {}
    for which in chosen:
        chain.board.show([which])
        plain[which] = chain.answers(chain.board.model(**inputs), inputs).clone()

    def near(which: int, answers: Tensor) -> bool:
        return relative_difference([plain[which]], [answers]) < TOLERANCE

    with chain.replay.attached() as replay:
        # from every layer on: a layer that writes into its input spoils what is remembered
        chain.board.show(chosen[:1])
        depths = range(len(replay.calls))
        answers = (chain.answers(replay.run(inputs, depth), inputs) for depth in depths)
        if not all(near(chosen[0], answer) for answer in answers):
            return False
        for which, then in pairwise(chosen):
            chain.board.show([which])
            replay.run(inputs, 0)
            start = chain.shared(which, then)
            pair = list(chain._side_by_side(inputs, [then, which], start))
            chain.board.show([then])
            alone = chain.answers(replay.run(inputs, start, keep=False), inputs)
            if not (near(then, alone) and all(near(*answer) for answer in pair)):
                return False
    return True
