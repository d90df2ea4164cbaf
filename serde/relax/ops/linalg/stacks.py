"""Loops over stacks of matrices: what has no operator in Relax, nor a function in topi."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.precision import NARROW, widen

__all__ = ["Matrix", "exchange", "write_of_stacks"]

Lengths = Sequence[AnyValue]


class Matrix:
    """A matrix of a stack, read and written element by element.

    Attributes:
        shape: Its lengths.
        dtype: That of its elements.
    """

    def __init__(self, buffer: AnyValue, stack: AnyValue, place: AnyValue) -> None:
        self.shape: Lengths = buffer.shape[1:]
        self.dtype = str(buffer.dtype)
        self._stack = stack
        self._place = place

    def __getitem__(self, at: AnyValue) -> AnyValue:
        return self._stack[(self._place, *(at if isinstance(at, tuple) else (at,)))]

    def __setitem__(self, at: AnyValue, value: AnyValue) -> None:
        self._stack[(self._place, *(at if isinstance(at, tuple) else (at,)))] = value


def exchange(framework: Framework, matrix: Matrix, one: AnyValue, other: AnyValue) -> None:
    """Make the statements that exchange two rows of a matrix."""
    held = framework.cell(matrix.dtype)
    with framework.statements.serial(0, matrix.shape[1]) as column:
        held[0] = matrix[one, column]
        matrix[one, column] = matrix[other, column]
        matrix[other, column] = held[0]


def write_of_stacks(
    ctx: ExportContext,
    name: str,
    statements: Callable[..., None],
    operands: Sequence[Value],
    results: Callable[..., Sequence[Lengths]],
    *,
    kept: int,
) -> list[Value]:
    """Write what statements compute of each matrix of stacks, in float32 of narrower ones.

    Args:
        ctx: Where it is written.
        name: That of the function.
        statements: Gets the :class:`Matrix` of each operand and of each result.
        operands: Tensors whose leading axes are the same.
        results: Gets the shape of each operand's matrices; returns those of the results'.
        kept: How many of these are wanted: the others are what is computed with.
    """
    framework = ctx.framework
    topi, script = framework.topi, framework.statements
    type_ = ctx.type(operands[0])

    def loop(ins: Lengths, outs: Lengths) -> None:
        stacks = [(each, script.buffer_proxy(each)) for each in (*ins, *outs)]
        with script.parallel(0, ins[0].shape[0]) as place:
            statements(*(Matrix(*each, place) for each in stacks))

    def compute(*tensors: AnyValue) -> AnyValue:
        lead = list(tensors[0].shape[:-2])
        batch = math.prod(lead)
        flat = [topi.reshape(each, (batch, *each.shape[-2:])) for each in tensors]
        shapes = [(batch, *each) for each in results(*(each.shape[-2:] for each in tensors))]
        made = framework.extern_of_buffers(
            name, flat, shapes, [str(tensors[0].dtype)] * len(shapes),
            lambda ins, outs: framework.write_statements(lambda: loop(ins, outs)),
        )  # fmt: skip
        found = [topi.reshape(each, (*lead, *each.shape[1:])) for each in made[:kept]]
        return found if kept > 1 else found[0]

    compute.__name__ = name
    wide = [widen(ctx, each) for each in operands]
    if kept == 1:
        found = [ctx.emit_te(compute, *wide)]
    else:
        found = list(ctx.emit_te_tuple(compute, *wide, outputs=kept))
    if type_.dtype in NARROW:
        found = [ctx.emit("astype", each, type_.dtype) for each in found]
    return found
