"""Eight float32 side by side, as one value that kernels can compute with.

LLVM turns such a value into one AVX register, two NEON ones, or whatever the machine has. Loops
that numba's own vectoriser leaves scalar (a polynomial on the bits of a float, a small matrix per
lane) become plain code:

    total = splat(0.0)
    for k in range(n):
        total = fma(load(a, 8 * k), load(b, 8 * k), total)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.base import BaseContext as Context
from numba.core.datamodel.manager import DataModelManager
from numba.core.typing.templates import ConcreteTemplate, Signature, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 8
_FLOAT = ir.FloatType()
_DOUBLE = ir.DoubleType()
_INT = ir.IntType(32)
FLOATS = ir.VectorType(_FLOAT, WIDTH)
INTS = ir.VectorType(_INT, WIDTH)
_DOUBLES = ir.VectorType(_DOUBLE, WIDTH)


class LanesType(types.Type):
    """numba's type of eight float32, or eight float64, side by side."""

    def __init__(self, bits: int) -> None:
        super().__init__(name=f"float{bits}x8")
        self.bits = bits


LANES, WIDE = LanesType(32), LanesType(64)
Lanes: TypeAlias = Any
"""A value of eight lanes in the signature of a kernel."""
Builder: TypeAlias = Any
"""llvmlite's ir.IRBuilder, which has no types: what is read off its code is wrong."""
Value: TypeAlias = ir.NamedValue | ir.Constant
Values: TypeAlias = Sequence[Value]
Code: TypeAlias = Callable[[Context, Builder, Signature, Values], Value]
Intrinsic: TypeAlias = tuple[Signature, Code]
"""What numba takes for a function of its own: its type, and what writes its code."""
# what a kernel calls has other arguments than the function that makes its code
kernel_code = cast(Callable[[Callable[..., Any]], Callable[..., Any]], intrinsic)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: DataModelManager, kind: LanesType) -> None:
        super().__init__(manager, kind, FLOATS if kind.bits == 32 else _DOUBLES)


def _operator(symbol: Callable[..., object], instruction: str) -> None:
    @cast(Any, infer_global)(symbol)
    class _Typing(ConcreteTemplate):
        cases = [signature(kind, kind, kind) for kind in (LANES, WIDE)]  # noqa: RUF012

    @lower_builtin(symbol, LanesType, LanesType)
    def _lower(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
        return getattr(builder, instruction)(*args)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


def _plain(sig: Signature, write: Callable[[Builder, Values], Value]) -> Intrinsic:
    """An intrinsic whose code is made of its arguments alone."""
    return sig, lambda context, builder, sig, args: write(builder, args)


def constant(value: float, kind: ir.VectorType = FLOATS) -> ir.Constant:
    """One number in all lanes, known when the code is made."""
    return ir.Constant(kind, [value] * WIDTH)


def call(builder: Builder, name: str, args: Values, result: ir.Type = FLOATS) -> Value:
    """A call of one of LLVM's own functions."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def fused(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """a * b + c, fused where the machine can."""
    return call(builder, f"llvm.fmuladd.v{WIDTH}f32", [a, b, c])


def _pointer(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
    array = context.make_array(sig.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]], source_etype=_element(sig.args[0]))


def _element(array: types.Array) -> ir.Type:
    return _FLOAT if array.dtype == types.float32 else _DOUBLE


@kernel_code
def load(typing: Context, array: types.Array, index: types.Type) -> Intrinsic:
    """The eight values of a flat float32 (or float64: wide) array from `index` on."""
    one = _element(array)

    def code(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
        eight = ir.VectorType(one, WIDTH)
        pointer = builder.bitcast(_pointer(context, builder, sig, args), eight.as_pointer())
        return builder.load(pointer, align=4, typ=eight)

    return (LANES if one is _FLOAT else WIDE)(array, types.intp), code


@kernel_code
def repeat(typing: Context, array: types.Array, index: types.Type) -> Intrinsic:
    """One value of a flat array in all lanes; `index` does not count from the end."""
    one = _element(array)

    def code(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
        pointer = _pointer(context, builder, sig, args)
        return _splat(builder, builder.load(pointer, align=4, typ=one))

    return (LANES if one is _FLOAT else WIDE)(array, types.intp), code


@kernel_code
def store(typing: Context, array: types.Array, index: types.Type, value: types.Type) -> Intrinsic:
    """Write eight values to a flat array of their precision from `index` on."""

    def code(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
        pointer = _pointer(context, builder, sig, args)
        builder.store(args[2], builder.bitcast(pointer, args[2].type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, LANES if _element(array) is _FLOAT else WIDE), code


def _splat(builder: Builder, value: Value) -> Value:
    none = ir.Constant(ir.VectorType(value.type, WIDTH), ir.Undefined)
    first = builder.insert_element(none, value, _INT(0))
    return builder.shuffle_vector(first, none, constant(0, INTS))


@kernel_code
def splat(typing: Context, value: types.Type) -> Intrinsic:
    """One number in all lanes."""
    return _plain(LANES(types.float32), lambda builder, args: _splat(builder, args[0]))


def _elementwise(name: str, count: int) -> Intrinsic:
    full = f"llvm.{name}.v{WIDTH}f32"
    return _plain(LANES(*[LANES] * count), lambda builder, args: call(builder, full, args))


@kernel_code
def fma(typing: Context, a: types.Type, b: types.Type, c: types.Type) -> Intrinsic:
    """a * b + c, fused where the machine can."""
    return _elementwise("fmuladd", 3)


@kernel_code
def without(typing: Context, c: types.Type, a: types.Type, b: types.Type) -> Intrinsic:
    """c - a * b, fused where the machine can."""
    return _plain(
        LANES(LANES, LANES, LANES),
        lambda builder, args: fused(builder, builder.fneg(args[1]), args[2], args[0]),
    )


@kernel_code
def sqrt(typing: Context, a: types.Type) -> Intrinsic:
    """Square roots."""
    return _elementwise("sqrt", 1)


@kernel_code
def absolute(typing: Context, a: types.Type) -> Intrinsic:
    """Absolute values."""
    return _elementwise("fabs", 1)


@kernel_code
def copysign(typing: Context, a: types.Type, b: types.Type) -> Intrinsic:
    """The size of `a` with the sign of `b`."""
    return _elementwise("copysign", 2)


@kernel_code
def larger(typing: Context, a: types.Type, b: types.Type) -> Intrinsic:
    """The larger of two values in each lane."""
    return _plain(
        LANES(LANES, LANES),
        lambda builder, args: builder.select(builder.fcmp_ordered(">", *args), *args),
    )


@kernel_code
def where_less(
    typing: Context, a: types.Type, b: types.Type, yes: types.Type, no: types.Type
) -> Intrinsic:
    """`yes` in the lanes where a < b, else `no`."""

    def code(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return LANES(LANES, LANES, LANES, LANES), code


@kernel_code
def widen(typing: Context, a: types.Type) -> Intrinsic:
    """The same numbers in double precision, which has + - * / only."""
    return _plain(WIDE(LANES), lambda builder, args: builder.fpext(args[0], _DOUBLES))


@kernel_code
def narrow(typing: Context, a: types.Type) -> Intrinsic:
    """Double precision rounded to single."""
    return _plain(LANES(WIDE), lambda builder, args: builder.fptrunc(args[0], FLOATS))


def _reduce(name: str, start: Sequence[float], flags: Sequence[str]) -> Intrinsic:
    def code(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
        args = [*(ir.Constant(_FLOAT, value) for value in start), args[0]]
        kind = ir.FunctionType(_FLOAT, [arg.type for arg in args])
        full = f"llvm.vector.reduce.{name}.v{WIDTH}f32"
        function = cgutils.get_or_insert_function(builder.module, kind, full)
        return builder.call(function, args, fastmath=flags)

    return types.float32(LANES), code


@kernel_code
def total(typing: Context, a: types.Type) -> Intrinsic:
    """The sum over the lanes."""
    return _reduce("fadd", [0.0], ["reassoc"])


@kernel_code
def lowest(typing: Context, a: types.Type) -> Intrinsic:
    """The smallest of the lanes."""
    return _reduce("fmin", [], ["nnan"])
