"""Numbers of Python's: at once where they are known, else by scalars of Relay.

Integers are int64 and floats float64, as they are in TorchScript.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call, tensor_type
from serde.torch.host.registry import evaluates
from serde.torch.import_context import ImportContext, Scalar
from serde.torch.promotion import category

__all__ = ["add", "as_number", "both", "equals", "multiply"]

Evaluate = Callable[..., AnyValue]

_PAIRS: Final = (
    "", ".int", ".float", ".int_float", ".float_int", ".bool", ".complex", ".int_complex",
    ".complex_int", ".float_complex", ".complex_float", ".Scalar_Scalar", ".int_int",
    ".float_float", ".int_bool", ".bool_int",
)  # fmt: skip
"""Overloads of two numbers."""

_SINGLES: Final = (".int", ".float", ".complex", ".bool", ".Scalar")
"""Overloads of one number."""


def _call_python(function: Callable[..., AnyValue], *values: AnyValue) -> AnyValue:
    try:
        found = function(*values)
    except (ArithmeticError, ValueError) as error:
        raise Unsupported(f"{function.__name__}{values}: {error}") from error
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        raise Unsupported(f"{function.__name__}{values} is beyond 64 bits")
    return found


def _known(values: tuple[AnyValue, ...]) -> bool:
    return not any(isinstance(each, Expr) for each in values)


def _operands(ctx: ImportContext, values: tuple[Scalar, ...]) -> list[Expr]:
    """Return numbers in the dtype that Python computes with."""
    operands = list(map(ctx.number, values))
    dtypes = {ctx.dtype(each) for each in operands}
    known = ("complex128", "float64", "int64", "bool")
    if not dtypes.issubset(known):
        raise Unsupported(f"expected numbers, found {sorted(dtypes.difference(known))}")
    wide = next(each for each in known if each in dtypes)
    return [ctx.cast(each, wide) for each in operands]


def as_number(ctx: ImportContext, x: Expr, dtype: str | None = None) -> Scalar:
    """Return a tensor of one element as a number; the tensor itself stays one.

    Raises:
        Unsupported: It has more elements, or that is not known.
    """
    type_ = ctx.type(x)
    if type_.rank and any(dim != 1 for dim in type_.shape):
        raise Unsupported(f"a number made of a tensor {type_!r}")
    found = x if dtype is None else ctx.cast(x, dtype)
    if found is x or type_.rank:
        found = relay.reshape(found, newshape=())
    return ctx.as_number(found)


def _pairs(
    name: str, python: Callable[..., AnyValue], build: Callable[..., Expr], dtype: str | None = None
) -> Evaluate:
    """Register an operator of two numbers.

    Args:
        name: Its name.
        python: What computes it of known ones.
        build: What computes it of scalars of one dtype.
        dtype: The dtype to compute in, if it is not that of the operands.
    """

    def evaluate(ctx: ImportContext, a: Scalar, b: Scalar) -> Scalar:
        if _known((a, b)):
            return _call_python(python, a, b)
        operands = _operands(ctx, (a, b))
        if dtype is not None:
            operands = [ctx.cast(each, dtype) for each in operands]
        return ctx.as_number(build(*operands))

    evaluates(*(f"{name}{overload}" for overload in _PAIRS))(evaluate)
    return evaluate


def _singles(name: str, python: Callable[..., AnyValue], build: Callable[..., Expr] | None) -> None:
    """Register a function of one number whose result is a float; `build` computes in float64."""

    def evaluate(ctx: ImportContext, a: Scalar) -> Scalar:
        if _known((a,)):
            return _call_python(python, a)
        if build is None:
            raise Unsupported("needs a number that is known beforehand")
        return ctx.as_number(build(ctx.cast(ctx.number(a), "float64")))

    evaluates(*(f"{name}{overload}" for overload in _SINGLES))(evaluate)


add = _pairs("aten::add", operator.add, relay.add)
subtract = _pairs("aten::sub", operator.sub, relay.subtract)
multiply = _pairs("aten::mul", operator.mul, relay.multiply)
_pairs("aten::div", operator.truediv, relay.divide, "float64")
floor_divide = _pairs("aten::floordiv", operator.floordiv, relay.floor_divide)
modulo = _pairs("aten::remainder", operator.mod, relay.floor_mod)
power = _pairs("aten::pow", lambda a, b: float(a) ** b, relay.power, "float64")
_pairs("aten::fmod", math.fmod, relay.mod, "float64")
_pairs("aten::__round_to_zero_floordiv", lambda a, b: int(a / b), relay.divide)
equals = _pairs("aten::eq", operator.eq, relay.equal)
_pairs("aten::ne", operator.ne, relay.not_equal)
_pairs("aten::lt", operator.lt, relay.less)
_pairs("aten::le", operator.le, relay.less_equal)
_pairs("aten::gt", operator.gt, relay.greater)
_pairs("aten::ge", operator.ge, relay.greater_equal)
_pairs("prim::min", min, relay.minimum)
maximum = _pairs("prim::max", max, relay.maximum)
both = _pairs("aten::__and__", operator.and_, relay.bitwise_and)
_pairs("aten::__or__", operator.or_, relay.bitwise_or)
_pairs("aten::__xor__", operator.xor, relay.bitwise_xor)


@evaluates("aten::gcd.int", "aten::copysign.float", "aten::log.int_int")
def refuse_unknown(ctx: ImportContext, a: Scalar, b: Scalar) -> Scalar:
    """Rare functions of numbers that must be known."""
    python: dict[str, Callable[..., AnyValue]] = {
        "gcd": math.gcd,
        "copysign": math.copysign,
        "log": math.log,
    }
    if not _known((a, b)):
        raise Unsupported("needs numbers that are known beforehand")
    return _call_python(python[ctx.source.op[6:].partition(".")[0]], a, b)


@evaluates("aten::divmod.int", "aten::divmod.float")
def divide_with_rest(ctx: ImportContext, x: Scalar, y: Scalar) -> list[Scalar]:
    return [floor_divide(ctx, x, y), modulo(ctx, x, y)]


@evaluates("aten::pow.int_to_int")
def power_of_integers(ctx: ImportContext, a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, int) and isinstance(b, int):
        if abs(a) > 1 and abs(b) > 64:
            raise Unsupported(f"{a} to the power of {b} is beyond 64 bits")
        return _call_python(operator.pow, a, b)
    return ctx.as_number(ctx.cast(ctx.number(power(ctx, a, b)), "int64"))


_ALIKE = "sqrt exp log log2 log10 sin cos tan asin acos atan sinh cosh tanh erf"
"""Functions that Python and Relay call alike."""

for _name in _ALIKE.split():
    _singles(f"aten::{_name}", getattr(math, _name), getattr(relay, _name))
for _name in ("log1p", "expm1", "degrees", "radians", "gamma", "lgamma"):
    _singles(f"aten::{_name}", getattr(math, _name), None)
_singles("aten::fabs", math.fabs, relay.abs)


def _one_number(
    python: Callable[..., AnyValue], build: Callable[[Expr], Expr], dtype: str | None = None
) -> Evaluate:
    """Return a function of one number in its own dtype, or of a float whose result has `dtype`."""

    def evaluate(ctx: ImportContext, a: Scalar) -> Scalar:
        if _known((a,)):
            return _call_python(python, a)
        operand = ctx.number(a)
        if dtype is not None and ctx.dtype(operand) == dtype:
            return a
        found = build(operand)
        return ctx.as_number(found if dtype is None else ctx.cast(found, dtype))

    return evaluate


def _negate(x: Expr) -> Expr:
    """Return what is negated; of a whole number as a difference, which lengths are followed by."""
    dtype = tensor_type(x).dtype
    if category(dtype) != category("int64"):
        return relay.negative(x)
    return relay.subtract(relay.const(0, dtype), x)


evaluates("aten::neg.int", "aten::neg.float", "aten::neg.complex", "aten::neg.Scalar")(
    _one_number(operator.neg, _negate)
)
evaluates("prim::abs.int", "prim::abs.float", "prim::abs.Scalar")(_one_number(abs, relay.abs))
evaluates("aten::ceil.int", "aten::ceil.float", "aten::ceil.Scalar")(
    _one_number(math.ceil, relay.ceil, "int64")
)
evaluates("aten::floor.int", "aten::floor.float", "aten::floor.Scalar")(
    _one_number(math.floor, relay.floor, "int64")
)
evaluates("aten::round.int", "aten::round.float", "aten::round.Scalar")(
    _one_number(lambda a: float(round(a)), lambda x: call("serde.round_even", x))
)
evaluates("aten::__not__")(_one_number(operator.not_, relay.logical_not))


# Conversions.


def _convert(python: Callable[..., AnyValue], dtype: str) -> Evaluate:
    def evaluate(ctx: ImportContext, a: AnyValue) -> Scalar:
        if not isinstance(a, Expr):
            return _call_python(python, a)
        return as_number(ctx, a, dtype)

    return evaluate


evaluates("aten::Int", "aten::IntImplicit")(_convert(int, "int64"))
evaluates("aten::Float", "aten::FloatImplicit")(_convert(float, "float64"))
evaluates("aten::Bool")(_convert(bool, "bool"))
evaluates("aten::Complex", "aten::ComplexImplicit")(_convert(complex, "complex128"))


@evaluates(
    "aten::_local_scalar_dense",
    "aten::item",
    "aten::ScalarImplicit",
    "prim::ImplicitTensorToNum",
    "prims::item",
)
def item(ctx: ImportContext, self: Expr) -> Scalar:
    """The only element as a number of the kind that its dtype is."""
    kinds = {0: "bool", 1: "int64", 2: "float64", 3: "complex128"}
    return as_number(ctx, self, kinds[category(ctx.dtype(self))])


@evaluates("prim::NumToTensor")
def number_as_tensor(ctx: ImportContext, a: Scalar) -> Expr:
    """A tensor without axes, which widens others as tensors do."""
    if not isinstance(a, Expr):
        kind = {bool: "bool", int: "int64", float: ctx.default_dtype}.get(type(a), "complex64")
        return Constant(np.array(a).astype(numpy_dtype(kind)))
    found = ctx.cast(a, ctx.default_dtype) if ctx.dtype(a) == "float64" else a
    return relay.reshape(found, newshape=()) if found is a else found


@evaluates("aten::__range_length")
def range_length(ctx: ImportContext, lo: Scalar, hi: Scalar, step: Scalar) -> Scalar:
    if _known((lo, hi, step)):
        return len(range(lo, hi, step))  # type: ignore[arg-type]
    if not isinstance(step, int) or step == 0:
        raise Unsupported("a range whose step is not known beforehand")
    distance = subtract(ctx, hi, lo) if step > 0 else subtract(ctx, lo, hi)
    if abs(step) != 1:
        distance = floor_divide(ctx, add(ctx, distance, abs(step) - 1), abs(step))
    return maximum(ctx, distance, 0)


@evaluates("aten::__derive_index")
def derive_index(ctx: ImportContext, index: Scalar, start: Scalar, step: Scalar) -> Scalar:
    return add(ctx, start, multiply(ctx, index, step))
