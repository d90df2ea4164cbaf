"""How much operators compute beyond the elements they read and give, as :class:`Work`.

A count may be too large by the factor that a simple formula costs; it is never much too small.
Calls have fixed types where it is asked for.
"""

from __future__ import annotations

from math import isqrt, prod
from typing import Final

from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.traits import Work
from serde.relay.ir.types import TensorType, TupleType, Type

__all__ = [
    "BY_VALUES", "PRODUCT", "STEPS", "elements", "filters", "lengths", "pairs", "powers",
    "spreads", "times", "windows",
]  # fmt: skip

_TURN: Final = 1000
"""What a turn of a loop of Python takes, as a number of elements."""


def elements(type_: Type | None) -> int:
    """Return the elements of a value; of lengths that are not fixed, none."""
    if isinstance(type_, TupleType):
        return sum(map(elements, type_.fields))
    if not isinstance(type_, TensorType) or type_.concrete_shape is None:
        return 0
    return prod(type_.concrete_shape)


def lengths(expr: Expr) -> tuple[int, ...]:
    """Return the shape of a tensor of fixed type."""
    return (expr.type.concrete_shape or ()) if isinstance(expr.type, TensorType) else ()


def _padded(call: Call) -> int:
    """Return a bound for the elements of operand 0 once ``padding`` is around it."""
    given = call.attrs.get("padding", ())
    padding = given if isinstance(given, tuple) else (given,)
    return elements(call.args[0].type) * prod(1 + abs(each) for each in padding)


def filters(weight: int = 1, factor: int = 1) -> Work:
    """Each element of the result is a sum over one filter of operand `weight`."""

    def count(call: Call) -> int:
        shape = lengths(call.args[weight])
        layout = call.attrs.get("kernel_layout", "OI")
        outputs = shape[layout.index("O")] if "O" in layout and layout.isalpha() else 1
        size = prod(shape) // max(outputs, 1)
        return max(factor * elements(call.type) * size, _padded(call))

    return Work(count)


def spreads(weight: int = 1) -> Work:
    """Each element of operand 0 goes into one filter of operand `weight`."""

    def count(call: Call) -> int:
        shape = lengths(call.args[weight])
        layout = call.attrs.get("kernel_layout", "IO")
        inputs = shape[layout.index("I")] if "I" in layout and layout.isalpha() else 1
        size = prod(shape) // max(inputs, 1)
        steps = prod(call.attrs.get("strides", ()))
        return max(2 * elements(call.args[0].type) * max(size, steps), 2 * elements(call.type))

    return Work(count)


def windows(*attributes: str, factor: int = 1) -> Work:
    """Each element of the result is computed from a window whose sides attributes tell."""

    def count(call: Call) -> int:
        found = [call.attrs[name] for name in attributes]
        size = prod(prod(each) if isinstance(each, tuple) else each for each in found)
        return max(factor * elements(call.type) * max(size, 1), _padded(call))

    return Work(count)


def times(factor: int) -> Work:
    """So much is done for each element of the operands and the result."""

    def count(call: Call) -> int:
        return factor * (elements(call.type) + sum(elements(arg.type) for arg in call.args))

    return Work(count)


def powers(factor: int = 1) -> Work:
    """A matrix is factorised, or a system solved: the cube of its side."""

    def count(call: Call) -> int:
        sides = [max(lengths(arg)[-2:], default=1) for arg in call.args]
        return sum(
            factor * (elements(arg.type) * side + side * _TURN)
            for arg, side in zip(call.args, sides, strict=True)
        )

    return Work(count)


def pairs(operand: int = 0, factor: int = 1) -> Work:
    """Each entry of an operand, such as a box, is compared with each, one after the other."""

    def count(call: Call) -> int:
        most = max(lengths(call.args[operand]), default=1)
        return factor * elements(call.args[operand].type) * (most + _TURN)

    return Work(count)


def _product(call: Call) -> int:
    """The inner length is that of a plain product, and no less where there are batches."""
    result = max(elements(call.type), 1)
    given = elements(call.args[0].type) * elements(call.args[1].type)
    return max(result * (isqrt(given // result) + 1), _padded(call))


PRODUCT: Final = Work(_product)
"""A product of operands 0 and 1, matrices or stacks of them."""


def _steps(call: Call) -> int:
    data = call.args[0]
    rows = elements(data.type) // max(lengths(data)[-1:] or (1,))
    return rows * (max(elements(arg.type) for arg in call.args) + 20 * _TURN)


STEPS: Final = Work(_steps)
"""All weights are used for each row of operand 0, one after the other."""

BY_VALUES: Final = Work(lambda _call: 2**62)
"""Only the values of operands tell what is computed, so that it must wait for the run."""
