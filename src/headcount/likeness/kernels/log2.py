"""log₂ of eight numbers at once: the bits of a float give the whole part, a polynomial the rest."""

from __future__ import annotations

from numba.core import types
from numba.core.base import BaseContext as Context
from numba.core.typing.templates import Signature

from headcount.likeness.kernels.lanes import (
    FLOATS,
    INTS,
    LANES,
    Builder,
    Intrinsic,
    Value,
    Values,
    constant,
    fused,
    kernel_code,
)

# log2(1 + u) = u q(u) for u in [1/√2 - 1, √2 - 1]: minimax by iterated weighted least squares
# (Lawson), largest error 4.9e-8; tests/likeness/kernels/test_log2.py measures it.
_Q = (
    1.44269478,
    -0.721357167,
    0.480939448,
    -0.360087216,
    0.286707461,
    -0.250069052,
    0.236890331,
    -0.145744368,
)
_HALF_ROOT_2 = 0x3F3504F3  # the bits of √½
_ONE_EXPONENT = -0x800000  # keeps sign and exponent, drops the mantissa


UNIT = 2.0**23


@kernel_code
def log2_units(typing: Context, a: types.Type) -> Intrinsic:
    """2²³ log₂ of positive numbers, to 1e-7 · 2²³; of 0 some finite number: 0 times it is 0.

    The exponent's bits, read as a whole number, are in units of 2²³ already: to leave them so
    saves a multiplication and a register.
    """

    def code(context: Context, builder: Builder, sig: Signature, args: Values) -> Value:
        bits = builder.bitcast(args[0], INTS)
        above = builder.sub(bits, constant(_HALF_ROOT_2, INTS))
        exponent = builder.and_(above, constant(_ONE_EXPONENT, INTS))
        mantissa = builder.bitcast(builder.sub(bits, exponent), FLOATS)  # in [1/√2, √2)
        u = builder.fsub(mantissa, constant(1.0))
        # Estrin's scheme: pairs, then pairs of pairs; half the wait of Horner's
        terms, power = [constant(q * UNIT) for q in _Q], u
        while len(terms) > 1:
            terms = [
                fused(builder, b, power, a) for a, b in zip(terms[::2], terms[1::2], strict=True)
            ]
            power = builder.fmul(power, power)
        # a multiple of 2²³ below 2³¹: this conversion is exact
        return fused(builder, terms[0], u, builder.sitofp(exponent, FLOATS))

    return LANES(LANES), code
