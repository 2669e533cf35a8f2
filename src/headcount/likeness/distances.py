"""Seven distances between heads, from their attention on one input.

On Attention Redundancy (NAACL 2021), §4 and appendix A.

    distances(attention, ["js", "cc"], cc={"kappa": 0.5})["js"]     # (head, head)

NumPy arrays and CPU tensors go to compiled kernels on every core, GPU tensors to torch. A distance
is a function from attention (head, query, key) to a symmetric matrix (head, head) with zeros on the
diagonal and values in [0, 1]. A new one is registered in one line and used by its name:

    DISTANCES.add("mine", function, "what it measures")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.base.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import TypeIs

Distance = Callable[..., "ArrayLike | Tensor"]

Options = Mapping[str, Mapping[str, object]]
"""Options of distances, by the name of each."""
DISTANCES = Registry("distance", plugins="headcount.distances")
for _name, _file, _summary in (
    ("cos", "gram", "1 - cosine of the rows, mean over tokens"),
    ("corr", "gram", "(1 - correlation of the rows) / 2, mean over tokens"),
    ("js", "js", "Jensen–Shannon distance of the rows, mean over tokens"),
    ("bc", "gram", "1 - Bhattacharyya coefficient, mean over tokens"),
    ("dcor", "dcor", "1 - distance correlation of the matrices"),
    ("pc", "pc", "1 - Procrustes (RLS) coefficient of the matrices"),
    ("cc", "cc", "1 - canonical correlation (ridge) of the matrices"),
    ("pq", "gram", "1 - product of the rows: bc as a paper prints it; not in `all`"),
):
    DISTANCES.add(_name, f"headcount.likeness.kernels.{_file}:{_name}", _summary)

TOKEN_BASED = ("cos", "corr", "js", "bc")
SENTENCE_BASED = ("dcor", "pc", "cc")
_BUILT_IN = frozenset(TOKEN_BASED + SENTENCE_BASED)
# Up to so many tokens these are done side by side, the longest first, and not spread over threads.
_LONG = 64
_SMALL = ("js", "cc", "dcor", "corr", "cos", "bc")


def distances(
    attention: ArrayLike | Tensor,  # (head, query, key)
    names: str | Iterable[str] = ("js",),
    *,
    threads: int | None = None,
    **options: Mapping[str, object],
) -> dict[str, NDArray[np.float32]]:
    """The matrices (head, head) of the distances in `names`, for one input.

    `attention` holds one stack's probabilities, rows summing to 1, padding cut away. Options go
    under the name of their distance. `threads` defaults to OMP_NUM_THREADS or the usable cores.
    """
    from headcount.likeness.kernels.threads import side_by_side, using

    names = [names] if isinstance(names, str) else list(names)
    functions = {name: DISTANCES[name] for name in names}
    check_option_names(options, functions)
    with using(threads):
        ready, functions = _ready(attention, functions)
        for name, function in functions.items():
            _check_options(name, function, options.get(name, {}))
        works = {
            name: partial(function, ready, **options.get(name, {}))
            for name, function in functions.items()
        }
        small = [name for name in _SMALL if name in works and ready.shape[1] < _LONG]
        out: dict[str, NDArray[np.float32]] = {}
        if len(small) > 1 and not hasattr(ready, "detach"):
            matrices = side_by_side([works[name] for name in small])
            out = dict(zip(small, map(_as_array, matrices), strict=True))
        for name, work in works.items():
            if name not in out:
                out[name] = _as_array(work())
            if name not in _BUILT_IN:
                _check_result(name, out[name], len(ready))
    return {name: out[name] for name in names}


def check_option_names(options: Mapping[str, object], names: Iterable[str]) -> None:
    """Refuse options of a distance that is not requested."""
    names = list(names)
    for name in options:
        if name not in names:
            says = f"Options for '{name}', which is not among the distances requested"
            raise unknown(says, name, names, has="Requested")


def _ready(
    attention: ArrayLike | Tensor, functions: dict[str, Distance]
) -> tuple[Any, dict[str, Distance]]:
    """Checked attention, and the functions that can take it where it is."""
    from headcount.likeness.kernels.check import checked

    if not _is_tensor(attention):
        return checked(attention), functions
    if attention.device.type != "cpu":
        from headcount.likeness import torch_kernels

        on_device = {name: torch_kernels.KERNELS.get(name, functions[name]) for name in functions}
        return torch_kernels.checked(attention), on_device
    # sums of half-precision probabilities are off in the third digit
    half = attention.dtype.itemsize < 4
    return checked(attention.detach().float().numpy(), 2e-2 if half else 1e-3), functions


def _check_options(name: str, function: Distance, options: Mapping[str, object]) -> None:
    known = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
        return
    for option in options:
        usable = [p.name for p in list(known)[1:] if p.kind is not p.VAR_POSITIONAL]
        if option not in usable:
            raise unknown(f"The distance '{name}' has no option '{option}'", option, usable)


def _is_tensor(values: ArrayLike | Tensor) -> TypeIs[Tensor]:
    return hasattr(values, "detach")


def _as_array(values: ArrayLike | Tensor) -> NDArray[np.float32]:
    return np.asarray(values.detach().cpu() if _is_tensor(values) else values, np.float32)


def _check_result(name: str, values: NDArray[np.float32], heads: int) -> None:
    """Hold a distance that somebody registered to what all that follows relies on."""
    wrong = None
    if values.shape != (heads, heads):
        wrong = f"gave the shape {values.shape} for {heads} heads"
    elif not np.isfinite(values).all():
        wrong = "gave values that are not finite"
    elif values.min() < 0 or values.max() > 1:
        wrong = f"gave values outside [0, 1]: {values.min():.4g} … {values.max():.4g}"
    elif values.diagonal().any() or not np.array_equal(values, values.T):
        wrong = "is not symmetric with zeros on its diagonal"
    if wrong:
        raise UsageError(f"The distance '{name}' {wrong}.")
