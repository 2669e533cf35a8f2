"""Whether a model with heads removed answers as the masked one does, judged by rounding alone.

Both run at once, and token by token through a cache where the model has one. Where their answers
are not the same they run again, in float64 if they run in it: they may differ by what
rounding does on the same input and no more. How much that is, is measured: the masked model runs
with the inputs of all its linear layers nudged by about one unit in their last place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any, NamedTuple
from typing import cast as cast_to

import torch
from torch import Tensor, nn

from headcount.base.errors import in_words
from headcount.heads import Mask
from headcount.models.cached import may_cache
from headcount.models.gates import gate
from headcount.models.hooks import hooked
from headcount.models.memory import known_of, remembered
from headcount.models.probe import dtype_of, tensors
from headcount.models.probes import ModelProbe
from headcount.models.seen import seeing
from headcount.models.sites import Site, linear_sizes
from headcount.models.watch import watching

NUDGES = 2
"""How often the rounding is measured; the larger counts."""
NATIVE_FACTOR = 16.0
"""Rounding happens in more places than are nudged, when it is not float32's seen from float64."""


WIDE = torch.float64
COPIED = 2**30
"""Bytes that a whole copy in float64 may take."""
ROWS = 2**12
"""Rows of a linear layer that are in float64 at once, where there is no such copy."""
EPSILON = torch.finfo(torch.float32).eps
Allowed = Callable[[Any, int, Tensor], Tensor]
"""How far each row of a tensor may be off: (key, number, the tensor's rows) -> one number a row."""


class Answers(NamedTuple):
    """A model's answers, and what each attention layer added on the way."""

    final: list[Tensor]
    added: dict[tuple[str, str], list[Tensor]]


class RoundingTest:
    """The masked model's answers, and the verdict on models that should give the same ones."""

    def __init__(self, model: nn.Module, sites: list[Site], probe: ModelProbe, mask: Mask) -> None:
        self.model, self.sites, self.probe, self.mask = model, sites, probe, mask
        caches: list[bool] = []

        def look(_key: str, _args: tuple[object, ...], answer: object) -> None:
            caches.append(may_cache(answer))

        whole = [("", probe.path)]
        with seeing(model, sites, probe.batch) as self.seen, watching(model, whole, look):
            plain = self._answers(model, "", mask)
        # whether a model has a cache is found out once
        key = ("ways", probe.path, bool(probe.call))
        ways = remembered(model, key, lambda: [way for way in probe.ways if way and all(caches)])
        self.expected = {"": plain, **self._expected(model, ways)}
        ways[:] = [way for way in self.expected if way]

    def refusal(self, small: nn.Module) -> str:
        """Why `small` is not the masked model, or an empty string when it is."""
        answers = {}
        for way in self.expected:
            try:
                answers[way] = self._answers(small, way)
            except Exception as error:
                return f"it does not run{way} with fewer heads ({in_words(error)})"
        if not any(compare(self.expected[way], answers[way], least)[0] > 1 for way in answers):
            return ""
        wide = self._wide_expected
        if wide:
            subject = in_float64(small)
            answers = {way: self._answers(subject, way, dtype=WIDE) for way in wide}
        for way, expected in (wide or self.expected).items():
            excess, difference = compare(expected, answers[way], least)
            if excess > 1:
                allowed = self._rounding(way, bool(wide))
                excess, difference = compare(expected, answers[way], allowed)
            if excess > 1:
                return (
                    f"its answers{way} differ from the masked model's by {difference:.2g} of their "
                    f"size, {excess:.2g} times what rounding explains"
                )
        return ""

    @cached_property
    def _wide_expected(self) -> dict[str, Answers]:
        """The masked model's answers in float64, none when it does not run in it."""
        try:
            return self._expected(in_float64(self.model), self.expected, WIDE)
        except Exception:
            # some models mix in numbers of a fixed type
            return {}

    def _expected(
        self, subject: nn.Module, ways: Iterable[str], dtype: torch.dtype | None = None
    ) -> dict[str, Answers]:
        expected = {}
        for way in ways:
            try:
                expected[way] = self._answers(subject, way, self.mask, dtype=dtype)
            except Exception:
                # the model itself has no cache, or none of this kind
                if not way:
                    raise
        return expected

    def _answers(
        self,
        subject: nn.Module,
        way: str,
        mask: Mask | None = None,
        *,
        dtype: torch.dtype | None = None,
    ) -> Answers:
        added: dict[tuple[str, str], list[Tensor]] = {}

        def keep(key: tuple[str, str]) -> Callable[..., None]:
            return lambda _module, _args, out: added.setdefault(key, []).extend(tensors(out)[:1])

        hooks = []
        for site in self.sites:
            # an emptied layer may add its bias without calling the projection
            inside = site.out.startswith(site.path + ".")
            for path in (site.out, site.path) if inside else (site.out,):
                key = (site.path, path)
                with suppress(AttributeError):  # of a layer that was narrow and now is empty
                    module = subject.get_submodule(path)
                    hooks.append(partial(module.register_forward_hook, keep(key)))
        with hooked(hooks), gate(subject, mask) if mask is not None else nullcontext():
            return Answers(self.probe.run(subject, way, dtype or dtype_of(subject)), added)

    def _rounding(self, way: str, wide: bool) -> Allowed:
        """What rounding does to each row of the masked model's answers."""
        subject = in_float64(self.model) if wide else self.model
        epsilon = EPSILON if wide else torch.finfo(dtype_of(self.model)).eps
        factor = 1.0 if wide else NATIVE_FACTOR
        runs = []
        for seed in range(NUDGES):
            with nudged(subject, epsilon, seed):
                answers = self._answers(subject, way, self.mask, dtype=WIDE if wide else None)
                runs.append(by_key(answers))

        def allowed(key: object, index: int, rows: Tensor) -> Tensor:
            noises = [largest(rows - as_rows(nudge[key][index])) for nudge in runs]
            return epsilon * largest(rows) + factor * torch.stack(noises).amax(0)

        return allowed


def least(_key: object, _index: int, rows: Tensor) -> Tensor:
    """What float32 rounds away when it only stores a row: allowed in any case."""
    return EPSILON * largest(rows)


def compare(expected: Answers, actual: Answers, allowed: Allowed) -> tuple[float, float]:
    """(largest difference over what is allowed there, largest difference over the row's size).

    Token by token: what one token with huge numbers rounds away would hide wrong heads elsewhere.
    """
    left, right = by_key(expected), by_key(actual)
    worst, size = 0.0, 0.0
    for key, tensors_left in left.items():
        if key not in right:
            # some layers without heads do not call their projection; their module's output is here
            continue
        if [t.shape for t in tensors_left] != [t.shape for t in right[key]]:
            return float("inf"), float("inf")
        for index, (a, b) in enumerate(zip(tensors_left, right[key], strict=True)):
            if not a.numel():
                continue
            a, b = as_rows(a), as_rows(b)
            gap = largest(a - b)
            if not torch.isfinite(gap).all():
                return float("inf"), float("inf")
            tiny = torch.finfo(torch.float64).tiny
            worst = max(worst, float((gap / allowed(key, index, a).clamp_min(tiny)).max()))
            size = max(size, float((gap / largest(a).clamp_min(tiny)).max()))
    return worst, size


def by_key(answers: Answers) -> dict[object, list[Tensor]]:
    """All tensors of some answers, final ones first."""
    return {0: answers.final, **answers.added}


def as_rows(tensor: Tensor) -> Tensor:
    """(row, number) in float64: a row is one token, or whatever the last axis holds."""
    return tensor.double().reshape(-1, tensor.shape[-1] if tensor.ndim else 1)


def largest(rows: Tensor) -> Tensor:
    """The largest absolute number of each row."""
    return rows.abs().amax(-1)


@contextmanager
def nudged(model: nn.Module, epsilon: float, seed: int) -> Generator[None]:
    """Inside, the inputs of all linear layers are off by `epsilon` of themselves, up or down."""
    generator = torch.Generator().manual_seed(seed)

    def nudge(_: nn.Module, args: tuple[object, ...]) -> tuple[object, ...] | None:
        if not args or not isinstance(args[0], Tensor):
            return None
        up = torch.randint(2, args[0].shape, generator=generator).to(args[0]) * 2 - 1
        return (args[0] * (1 + epsilon * up), *args[1:])

    layers = [module for module in model.modules() if linear_sizes(module)]
    with hooked([lambda layer=layer: layer.register_forward_pre_hook(nudge) for layer in layers]):
        yield


def in_float64(model: nn.Module) -> nn.Module:
    """A copy that computes in float64.

    That of a small model has all its numbers in float64. That of a larger one shares the model's
    weights, and every module makes its own wide as it reads them.
    """
    weights = [tensor for tensor in model.parameters() if tensor.is_floating_point()]
    large = sum(tensor.numel() for tensor in weights) * WIDE.itemsize > COPIED
    memo: dict[int, object] = {id(tensor): tensor for tensor in weights} if large else {}
    for tensor in chain(() if large else weights, model.buffers()):
        if tensor.is_floating_point():
            double = tensor.detach().double()
            parameter = isinstance(tensor, nn.Parameter)
            memo[id(tensor)] = nn.Parameter(double, tensor.requires_grad) if parameter else double
    wide = copy.deepcopy(model, memo)
    if large:
        for module in wide.modules():
            module.__class__ = _wide_class(type(module))
    # not looked for there: a weight that is read is another tensor every time
    known_of(wide, model, "sites")
    return wide


class Wide(nn.Module):
    """A module in front of whose own class this stands: its weights are read in float64."""

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name in self._parameters and isinstance(value, Tensor) and value.is_floating_point():
            return value.detach().double()
        return value


class WideLinear(Wide):
    """A linear layer: of a large one, as words have, only some rows are wide at a time."""

    def forward(self, x: Tensor) -> Tensor:
        """x Wᵀ + b"""
        weight = cast_to(Tensor, self._parameters["weight"])
        parts = weight.detach().split(ROWS)
        out = torch.cat([nn.functional.linear(x, part.double()) for part in parts], -1)
        return out if self._parameters["bias"] is None else out + self.bias


class WideEmbedding(Wide):
    """A table: what is looked up is made wide."""

    def forward(self, ids: Tensor) -> Tensor:
        """The rows of `ids`."""
        weight = cast_to(Tensor, self._parameters["weight"])
        return nn.functional.embedding(ids, weight.detach()).double()


@cache
def _wide_class(base: type[nn.Module]) -> type[nn.Module]:
    """`base` with its weights read in float64, looking like `base` to everyone who asks."""
    plain = {nn.Linear: WideLinear, nn.Embedding: WideEmbedding}
    body: dict[str, object] = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    if hasattr(base, "dtype"):
        body["dtype"] = WIDE
    return type(base.__name__, (plain.get(base, Wide), base), body)
