"""The keeper of the gates: a callback of Trainer that trains one number per head on the side.

Every step it sets the gates (leaves of the autograd graph, multiplied onto the heads), and once
Trainer has the gradients of the weights it takes those of the gates, moves the values behind them
with an optimizer of their own, and notes what closed and what reopened. After the search the
gates are fixed at exactly the target number, and the weights train on.

Values, optimizer, random state and trace go into every checkpoint, so a killed run ends in the
same mask. With several processes gradients are averaged and noise is drawn from one seed, so the
gates are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from headcount.base.errors import HeadcountError, UsageError
from headcount.heads import Layout, Mask, Scores
from headcount.heads.choose import keep_best
from headcount.learned.gap import Measurement
from headcount.learned.methods import GateOptions
from headcount.learned.trace import Trace, load_trace
from headcount.models.gates import gate, open_gates

STATE = "gates.pt"
TRACE = "gates.npz"


class AllClosedError(HeadcountError):
    """No gate was open after `step`; `mask` is the last state in which some were."""

    def __init__(self, step: int, mask: Mask) -> None:
        super().__init__(
            f"All gates closed at step {step}: the penalty (mu) or the gates' learning rate is too "
            f"large for this task. The last open state kept {len(mask)} heads ({mask.pattern})."
        )
        self.step, self.mask = step, mask
        self.model: PreTrainedModel | None = None
        """The model with all its heads and the weights it had before that step."""


class Keeper(TrainerCallback):
    """Gates under training."""

    def __init__(
        self,
        layout: Layout,
        options: GateOptions,
        *,
        keep: int | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        measure_gap: Callable[[Keeper], Measurement] | None = None,
        measure_score: Callable[[], Measurement] | None = None,
    ) -> None:
        self.layout, self.options, self.keep = layout, options, keep
        self.kind = kind = options.kind()
        self.measure_gap = measure_gap
        """Called once when the search is over, before the gates are fixed."""
        self.measure_score = measure_score
        """Called at the run's score points, with the test gates of that moment shown."""
        self.seed = seed
        self.random = torch.Generator().manual_seed(seed)
        self.values = kind.start(len(layout), self.random).requires_grad_()
        # where the model is: processes average gradients there
        self.leaves = open_gates(layout, device=device)
        self._flat = [leaf for leaves in self.leaves.values() for leaf in leaves]
        if options.gate_optimizer == "adam":
            self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
                [self.values], lr=options.gate_lr
            )
        else:
            self.optimizer = torch.optim.SGD(
                [self.values], lr=options.gate_lr, momentum=options.gate_momentum
            )
        self.trace = Trace(layout)
        self.mask: Mask | None = None
        """The heads that stay, once the search is over."""
        self.route: dict[str, object] = {}
        """How the final number of heads came about."""
        self.gap: Measurement | None = None
        self.scale: Callable[[], float] = lambda: 1.0
        """What the loss was multiplied by before its gradients were taken (fp16)."""
        self.search = self.every = 1
        self._score_at: Collection[int] = ()
        self._drawn: Tensor | None = None
        self._reached: int | None = None

    @contextmanager
    def attached(self, model: nn.Module) -> Generator[None]:
        """Inside, the model's heads are multiplied by the gates."""
        with gate(model, self.leaves):
            yield

    def show(self, gates: Tensor) -> None:
        """Set the gates that the model sees."""
        with torch.no_grad():
            for leaf, part in zip(
                self._flat, gates.split([len(x) for x in self._flat]), strict=True
            ):
                leaf.copy_(part)

    def open(self) -> np.ndarray:
        """(head,) which gates are open when nothing is drawn."""
        if self.mask is not None:
            return np.array([head in self.mask for head in self.layout])
        return self.kind.open(self.values.detach(), self.keep).numpy()

    def numbers(self) -> dict[str, float]:
        """How many gates are open, the share that is closed, and the gap once it was measured."""
        count = int(self.open().sum())
        numbers = {"gates_open": count, "gates_sparsity": 1 - count / len(self.layout)}
        return numbers if self.gap is None else numbers | {"gates_gap": float(self.gap["gap"])}

    def target(self, step: int) -> int:
        """How many gates may be open after this step: falls from all to the target number."""
        assert self.keep is not None
        whole = self.options.reach * self.search
        left = 1 - min(1.0, step / whole) if whole >= 1 else 0.0
        return self.keep + round((len(self.layout) - self.keep) * left**3)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Plan the search; go on from the checkpoint that Trainer goes on from."""
        total = state.max_steps
        self.search = max(1, total - round(self.options.settle * total))
        self.every = max(1, total // self.options.trace)
        many = self.options.score_points
        self._score_at = {round(total * point / many) for point in range(many + 1)} if many else ()
        if state.global_step:
            self._load(Path(str(args.output_dir)) / f"checkpoint-{state.global_step}")
        else:
            self.trace.note(0, self.values.detach().numpy(), self.open())
            self._score(state)
        self.show(torch.from_numpy(self.open()).float())

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """This step's gates."""
        if self.mask is None:
            with torch.enable_grad():
                self._drawn = self.draw(state.global_step / self.search, self.random)
            self.show(self._drawn.detach())
        for leaf in self._flat:
            leaf.grad = None

    def draw(self, done: float, random: torch.Generator) -> Tensor:
        """Training gates as they are at this point of the search."""
        keep = self.keep if self.keep is not None else len(self.layout)
        return self.kind.draw(self.values, random, min(done, 1.0), keep)

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Trainer has the gradients: move the values behind the gates."""
        if self.mask is not None or self._drawn is None:
            return
        grads = [torch.zeros_like(g) if g.grad is None else g.grad for g in self._flat]
        grad = torch.cat(grads).float().cpu() / self.scale()
        if not torch.isfinite(grad).all():
            if self.scale() != 1.0:
                return  # fp16 overflowed: Trainer leaves this step out, too
            raise HeadcountError(
                f"The gradient of the gates was not a number (NaN or infinite) at step "
                f"{state.global_step + 1}. Try a lower learning rate."
            )
        before = self.values.detach().clone()
        was_open = self.open()
        self._move(grad, state.global_step)
        if not self.open().any():
            with torch.no_grad():
                self.values.copy_(before)
            raise AllClosedError(state.global_step + 1, self._mask_of(was_open))
        self.trace.count(was_open, self.open())

    def _move(self, grad: Tensor, step: int) -> None:
        assert self._drawn is not None
        with torch.enable_grad():
            objective = (self._drawn * grad).sum()
            if mu := self._penalty(step):
                objective = objective + mu * self.kind.count(self.values)
            (self.values.grad,) = torch.autograd.grad(objective, self.values)
        self._drawn = None
        self.optimizer.param_groups[0]["lr"] = self.options.rate(step / self.search)
        self.optimizer.step()
        self.values.grad = None
        if self.keep is not None and self.options.hold == "shift":
            with torch.no_grad():
                self.values.copy_(self.kind.hold(self.values, self.target(step + 1)))

    def _penalty(self, step: int) -> float:
        if self.keep is None:
            return self.options.mu
        if self.options.hold == "shift":
            return 0.0  # the shift takes the penalty's place
        return self.options.mu if int(self.open().sum()) > self.target(step + 1) else 0.0

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Note the gates; fix them when the search is over."""
        step = state.global_step
        if self.mask is None:
            count = int(self.open().sum())
            if self._reached is None and self.keep is not None and count <= self.keep:
                self._reached = step
            if step >= self.search:
                if self.measure_gap is not None and state.is_world_process_zero:
                    self.gap = self.measure_gap(self)
                self._fix(step)
        if step % self.every == 0 or step in (self.search, state.max_steps):
            self.trace.note(step, self.values.detach().numpy(), self.open())
        self._score(state)

    def _score(self, state: TrainerState) -> None:
        """A score point, where this step is one; other processes wait at their next gradients."""
        step = state.global_step
        if self.measure_score and step in self._score_at and state.is_world_process_zero:
            now = self.open()
            self.show(torch.from_numpy(now).float())  # the next step draws its own again
            point = {"step": step, "open": int(now.sum()), **self.measure_score()}
            self.trace.scores.append(point)

    def chosen(self) -> Mask:
        """The heads that stay if the search ends now: exactly the target number, removable."""
        scores = Scores(self.layout, tuple(self.values.detach().tolist()))
        if self.keep is not None:
            return keep_best(scores, self.keep)
        open_now = self._mask_of(self.open())
        best = _removable(scores, len(open_now))
        plain = all(stack.groups == stack.heads for stack in self.layout.stacks)
        return open_now if plain else best

    def _fix(self, step: int) -> None:
        was_open = self._mask_of(self.open())
        self.mask = self.chosen()
        self.route = {
            "rule": self._rule(),
            "fixed_at_step": step,
            "asked": self.keep,
            "open_then": len(was_open),
            "reached_at_step": self._reached,
            "closed_by_ranking": len(was_open.kept - self.mask.kept),
            "opened_by_ranking": len(self.mask.kept - was_open.kept),
        }
        self.show(torch.from_numpy(self.open()).float())

    def _rule(self) -> str:
        if self.keep is None:
            return "free: the heads whose gates were open when the search was over"
        rule = {
            "shift": "all values shifted alike in every step so that as many gates are open as the "
            "schedule allows",
            "penalty": "penalised while more gates are open than the schedule allows",
        }[self.options.hold]
        if self.kind.name == "subset":
            rule = "exactly the target number open in every step"
        return f"{rule}; at the end the best by value stay"

    def _mask_of(self, state: np.ndarray) -> Mask:
        kept = (head for head, is_open in zip(self.layout, state, strict=True) if is_open)
        return Mask(self.layout, frozenset(kept))

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Trainer has written a checkpoint: put the gates beside it."""
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            torch.save(
                {
                    "values": self.values.detach(),
                    "optimizer": self.optimizer.state_dict(),
                    "random": self.random.get_state(),
                    "kept": None if self.mask is None else torch.from_numpy(self.open()),
                    "route": self.route,
                    "gap": self.gap,
                    "reached": self._reached,
                },
                folder / STATE,
            )
            self.trace.save(folder / TRACE)

    def _load(self, folder: Path) -> None:
        saved = torch.load(folder / STATE, weights_only=True)
        with torch.no_grad():
            self.values.copy_(saved["values"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.random.set_state(saved["random"])
        self.route, self.gap, self._reached = saved["route"], saved["gap"], saved["reached"]
        if saved["kept"] is not None:
            self.mask = self._mask_of(saved["kept"].numpy())
        self.trace = load_trace(folder / TRACE)


def _removable(scores: Scores, count: int) -> Mask:
    """The best `count` heads, or a few more where heads share keys and values."""
    for more in range(count, len(scores.layout) + 1):
        try:
            return keep_best(scores, more)
        except UsageError:
            continue
    return Mask.full(scores.layout)
