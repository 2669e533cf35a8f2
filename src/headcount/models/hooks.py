"""What is put on a model for a while and taken off again: hooks, evaluation mode, eager attention.

A model may be used in several threads. Hooks act in the thread that put them there and in no
other, so two threads may gate one model differently at the same time. Evaluation mode and the
kind of attention belong to the model as a whole: while one thread has changed them, the model is
`held`, and every other thread's use of it is refused by name.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from headcount.base.errors import UsageError

PLAIN = (bool, int, float, str, type(None), Tensor)
"""Attributes that a forward pass may write, and that are put back: settings, cached tensors."""


@contextmanager
def hooked(hooks: list[Callable[[], Any]]) -> Generator[None]:
    """Register hooks (each call returns a handle) inside, remove every one afterwards."""
    handles = []
    try:
        for register in hooks:
            handles.append(register())
            _bind(handles[-1])
        yield
    finally:
        for handle in handles:
            handle.remove()


def _bind(handle: Any) -> None:
    """Make a hook act in this thread only."""
    hook, owner = handle.hooks_dict_ref()[handle.id], threading.get_ident()

    def bound(*args: object, **kwargs: object) -> Any:
        # torch.compile cannot ask for the thread while it traces
        if torch.compiler.is_compiling() or _is_own(owner):
            return hook(*args, **kwargs)
        return None

    handle.hooks_dict_ref()[handle.id] = bound


def _is_own(owner: int) -> bool:
    """Whether this thread is the owner, or works for it: autograd runs checkpoints in its own."""
    if threading.get_ident() == owner:
        return True
    # Python knows the threads that torch has started by this class only
    return isinstance(threading.current_thread(), threading._DummyThread)


@contextmanager
def evaluating(model: nn.Module) -> Generator[None]:
    """Evaluation mode inside; afterwards every module has its own mode, parts and settings again.

    A few models change themselves when they run: BigBird swaps its attention on a short input.
    """
    before = [
        (module, dict(module._modules), dict(module._buffers), _plain(module))
        for module in model.modules()
    ]
    with ExitStack() as stack:
        if any(module.training for module, *_ in before):
            stack.enter_context(held(model, "in evaluation mode"))
        model.eval()
        try:
            yield
        finally:
            for module, parts, buffers, plain in before:
                _put_back(module._modules, parts)
                _put_back(module._buffers, buffers)
                _put_back(vars(module), plain)


def _put_back(now: dict[str, Any], then: dict[str, Any]) -> None:
    # what has gone meanwhile was meant to go: another thread's, or a hand's
    now.update({name: value for name, value in then.items() if now.get(name, value) is not value})


def _plain(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if isinstance(value, PLAIN)}


_HELD: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
"""Models that one thread has changed for a while, and that thread."""
_LOCK = threading.Lock()


@contextmanager
def held(model: nn.Module, state: str) -> Generator[None]:
    """Only this thread may use the model inside: `state` says what it has made of it."""
    thread = threading.get_ident()
    with _LOCK:
        first = model not in _HELD
        if _HELD.get(model, thread) != thread or (first and _running_elsewhere(model)):
            raise _in_two_threads(model, state)
        _HELD[model] = thread
    if not first:
        yield
        return

    def refuse(*_: object) -> None:
        if not torch.compiler.is_compiling() and not _is_own(thread):
            raise _in_two_threads(model, state)

    handle = model.register_forward_pre_hook(refuse, prepend=True)
    try:
        yield
    finally:
        handle.remove()
        with _LOCK:
            del _HELD[model]


def _running_elsewhere(model: nn.Module) -> bool:
    """Whether another thread is in the middle of one of the model's forward passes."""
    if threading.active_count() == 1:
        return False
    modules = {id(module) for module in model.modules()}
    for thread, top in sys._current_frames().items():
        frame = top if thread != threading.get_ident() else None
        while frame is not None:
            called = frame.f_code.co_name == "_call_impl"
            if called and id(frame.f_locals.get("self")) in modules:
                return True
            frame = frame.f_back
    return False


def _in_two_threads(model: nn.Module, state: str) -> UsageError:
    return UsageError(
        f"This {type(model).__name__} is used in two threads at once while one of them needs it "
        f"{state}: the other's answers would be wrong. "
        "Give each thread its own copy.deepcopy(model)."
    )
