from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from headcount.base.errors import HeadcountError
from headcount.heads import Layout
from headcount.learned.keeper import AllClosedError, Keeper
from headcount.learned.methods import StraightThrough

LAYOUT = Layout.of(encoder=[3, 3])


def begun(options: StraightThrough, keep: int | None, steps: int = 10) -> tuple[Keeper, object]:
    keeper = Keeper(LAYOUT, options, keep=keep)
    state = SimpleNamespace(global_step=0, max_steps=steps, is_world_process_zero=True)
    keeper.on_train_begin(None, state, None)
    return keeper, state


def step(keeper: Keeper, state, grad: list[float]) -> None:
    keeper.on_step_begin(None, state, None)
    for leaf, part in zip(keeper._flat, torch.tensor(grad).split(3), strict=True):
        leaf.grad = part.clone()
    keeper.on_pre_optimizer_step(None, state, None)
    state.global_step += 1
    keeper.on_step_end(None, state, None)


def test_the_heads_that_the_loss_wants_closed_go_first() -> None:
    keeper, state = begun(StraightThrough(settle=0.4, gate_lr=1.0), keep=4)
    assert (keeper.search, keeper.target(0), keeper.target(6)) == (6, 6, 4)
    for _ in range(10):
        step(keeper, state, [0.0, 0.0, 9.0, 9.0, 0.0, 0.0])
    assert keeper.mask is not None
    assert sorted(map(str, keeper.mask.dropped)) == ["encoder.0.2", "encoder.1.0"]
    assert keeper.route["fixed_at_step"] == 6
    assert [gate.item() for leaf in keeper._flat for gate in leaf] == [1, 1, 0, 0, 1, 1]


def test_fixed_gates_do_not_move_again() -> None:
    keeper, state = begun(StraightThrough(settle=0.5), keep=3, steps=4)
    for _ in range(2):
        step(keeper, state, [0.0] * 6)
    before = keeper.values.detach().clone()
    step(keeper, state, [9.0] * 6)
    assert torch.equal(before, keeper.values)


def test_gates_that_all_close_are_told_with_the_last_that_were_open() -> None:
    keeper, state = begun(StraightThrough(gate_lr=1e6, gate_optimizer="sgd"), keep=None)
    with pytest.raises(AllClosedError, match="All gates closed at step 1") as found:
        step(keeper, state, [9.0] * 6)
    assert len(found.value.mask) == 6


def test_a_gradient_that_is_no_number_is_refused() -> None:
    keeper, state = begun(StraightThrough(), keep=3)
    with pytest.raises(HeadcountError, match=r"not a number .* at step 1"):
        step(keeper, state, [float("nan")] * 6)


def test_saved_beside_a_checkpoint_and_gone_on_with(tmp_path) -> None:
    keeper, state = begun(StraightThrough(), keep=3)
    step(keeper, state, [1.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    folder = SimpleNamespace(output_dir=str(tmp_path))
    (tmp_path / "checkpoint-1").mkdir()
    keeper.on_save(folder, state, None)
    again = Keeper(LAYOUT, StraightThrough(), keep=3, seed=9)
    again.on_train_begin(folder, state, None)
    assert torch.equal(again.values, keeper.values)
    assert torch.equal(again.random.get_state(), keeper.random.get_state())
    assert again.trace.opened == keeper.trace.opened
