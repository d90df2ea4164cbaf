"""Calls of functions of TIR: their parameters, what they fill, and what that is in Relay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.import_context import ImportContext
from serde.relax.lengths import Scalar, Shape
from serde.relax.reflection import dtype_of, handle_of
from serde.relax.tir.loads import Buffer
from serde.relax.tir.reading import Reader, buffer_type
from serde.relax.tir.reductions import Reductions
from serde.relax.tir.stages import Node
from serde.relay.ir import Dim, Expr

__all__ = ["run_function"]


def run_function(
    framework: Framework, ctx: ImportContext, function: AnyValue, given: Sequence[AnyValue],
    results: Sequence[AnyValue], lengths: Sequence[AnyValue], inplace: Sequence[int] | None,
) -> list[Expr]:  # fmt: skip
    """Return what a function of TIR computes; names of lengths are its own afterwards.

    Args:
        framework: TVM.
        ctx: The call.
        function: The function.
        given: The tensors and numbers that it is called with.
        results: The types of what it gives.
        lengths: Shapes whose lengths it is given behind everything else.
        inplace: For each result which parameter it is stored into, -1 for one of its own.

    Raises:
        Unsupported: Relay cannot say it, or it is not called as it is declared.
    """
    kinds = [-1] * len(results) if inplace is None else list(inplace)
    fresh = kinds.count(-1)
    more = [Scalar(n, "int64") for shape in lengths if isinstance(shape, Shape) for n in shape.dims]
    values = [*given, *[None] * fresh, *more]
    params = [_buffer(function, each) for each in getattr(function, "params", ())]
    if len(values) != len(params) or len(kinds) != len(results):
        raise Unsupported(f"{len(values)} arguments and results for {len(params)} parameters")
    own = iter(params[len(given) :])
    filled = [next(own) if kind == -1 else params[kind] for kind in kinds]
    known = [[ctx.lengths.read(x) for x in framework.lengths(each) or ()] for each in results]
    ctx.lengths.names = {}
    numbers = _bind(ctx, params, values)
    for buffer, type_, dims in zip(filled, results, known, strict=True):
        _match_result(ctx, buffer_type(buffer), type_, dims)
    machine = Reductions(ctx)
    pairs = zip(map(handle_of, params), params, values, strict=True)
    tensors = {handle: (x, value) for handle, x, value in pairs if isinstance(value, Expr)}
    reader = Reader(framework, ctx.lengths, numbers, tensors, machine.most)
    for handle, (buffer, value) in tensors.items():
        shape = tuple(map(reader.length, buffer_type(buffer).shape))
        machine.buffers[handle] = Buffer(value, shape)
    reader.read(function.body)
    for stage in reader.stages:
        machine.buffers[stage.buffer] = Buffer(ctx.fold(machine.stage(stage)), stage.shape)
    if not all(handle_of(each) in machine.buffers for each in filled):
        raise Unsupported("it does not fill what it gives")
    return [machine.buffers[handle_of(each)].expr for each in filled]


def _buffer(function: AnyValue, param: AnyValue) -> AnyValue:
    """Return the buffer that a parameter is, itself where it is a number."""
    buffers = getattr(function, "buffer_map", {})
    return buffers.get(param, param)


def _bind(
    ctx: ImportContext, params: Sequence[AnyValue], values: Sequence[AnyValue]
) -> dict[int, Node]:
    """Note what lengths arguments show, and return the parameters that are numbers."""
    numbers: dict[int, Node] = {}
    for param, value in zip(params, values, strict=True):
        type_ = buffer_type(param)
        if isinstance(value, Scalar):
            held = value.value
            kind = "number" if isinstance(held, (bool, int, float)) else "length"
            numbers[handle_of(param)] = Node(kind, dtype_of(param), held=held)
            if not isinstance(held, float):
                source = partial(ctx.lengths.tensor, held)
                ctx.lengths.match_length(param, ctx.lengths.known(held), source)
        elif isinstance(value, Expr) and hasattr(type_, "shape"):
            ctx.lengths.match(type_.shape, value)
            if dtype_of(type_) != ctx.dtype(value):
                raise Unsupported(f"a tensor of {ctx.dtype(value)} for one of {dtype_of(type_)}")
        elif value is not None:
            raise Unsupported(f"an argument that is {type(value).__name__}")
    return numbers


def _match_result(
    ctx: ImportContext, buffer: AnyValue, type_: AnyValue, dims: Sequence[Dim]
) -> None:
    """Note what lengths the type of a result shows."""
    if str(type_.dtype) != dtype_of(buffer) or len(dims) not in (0, len(buffer.shape)):
        raise Unsupported(f"a result of another type than its buffer: {type_!s:.100}")
    for length, dim in zip(buffer.shape, dims, strict=False):
        source = partial(ctx.lengths.tensor, dim)
        ctx.lengths.match_length(length, ctx.lengths.known(dim), source)
