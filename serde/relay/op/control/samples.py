"""Bodies of the loops that are samples."""

from __future__ import annotations

from serde.relay.ir import Any, Function, SequenceType, TensorType, Tuple, Var, call, const
from serde.relay.op import elementwise, reduce, sequence, shape  # noqa: F401  (declares what is called here)
from serde.relay.op.control.body import SCALAR_INT

__all__ = ["accumulation", "collection", "countdown", "growth", "product", "running_sum"]


def countdown() -> Function:
    """Return a body that halves a state and stacks it, while its sum is above a capture."""
    number, x = Var("i", SCALAR_INT), Var("x", TensorType((2, 3)))
    least = Var("least", TensorType(()))
    half = call("multiply", x, const(0.5, "float32"))
    going = call("greater", call("sum", call("abs", half)), least)
    return Function([number, x, least], Tuple([going, half, call("negative", half), number]))


def accumulation() -> Function:
    """Return a body that adds a capture to a state, three to a counter, and always goes on."""
    number, x = Var("i", SCALAR_INT), Var("x", TensorType((2, 2)))
    count, step = Var("count", TensorType((), "int32")), Var("step", TensorType((2,)))
    added = call("add", x, step)
    counted = call("add", count, const(3, "int32"))
    fields = [const(True, "bool"), added, counted, call("sum", added, axis=1)]
    return Function([number, x, count, step], Tuple(fields))


def growth() -> Function:
    """Return a body that appends the number of the iteration to a state."""
    number, x = Var("i", SCALAR_INT), Var("x", TensorType((Any(),), "int64"))
    row = call("expand_dims", number, axis=0)
    grown = call("concatenate", [x, row], axis=0)
    return Function([number, x], Tuple([const(True, "bool"), grown]))


def collection() -> Function:
    """Return a body that puts a capture at the front of a sequence."""
    row = Var("row", TensorType((2,)))
    number, rows = Var("i", SCALAR_INT), Var("rows", SequenceType(TensorType((Any(),))))
    following = call("serde.sequence_insert", rows, row, const(0, "int64"))
    return Function([number, rows, row], Tuple([const(True, "bool"), following]))


def running_sum() -> Function:
    """Return a body that adds a row to a state, and yields the sum and the scaled row."""
    total, row = Var("total", TensorType((3,))), Var("row", TensorType((3,)))
    scale = Var("scale", TensorType(()))
    added = call("add", total, row)
    return Function([total, row, scale], Tuple([added, added, call("multiply", row, scale)]))


def product() -> Function:
    """Return a body without a state that multiplies two slices."""
    left, right = Var("left", TensorType((2,))), Var("right", TensorType((2, 3)))
    column = call("expand_dims", left, axis=1)
    return Function([left, right], Tuple([call("multiply", column, right)]))
