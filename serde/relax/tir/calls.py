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
from serde.relax.tir.stages import Length, Node, Number
from serde.relay.ir import Dim, Expr

__all__ = ["run_function"]


def run_function(
    framework: Framework,
    ctx: ImportContext,
    function: AnyValue,
    given: Sequence[AnyValue],
    results: Sequence[AnyValue],
    lengths: Sequence[AnyValue] = (),
    inplace: Sequence[int] | None = None,
) -> list[Expr]:
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
    if not hasattr(function, "params") or type(function).__name__ != "PrimFunc":
        raise Unsupported("it is no function of TIR")
    kinds = [-1] * len(results) if inplace is None else [int(each) for each in inplace]
    params = [_buffer(function, each) for each in function.params]
    more = [each for shape in lengths if isinstance(shape, Shape) for each in shape.dims]
    values = [*given, *[None] * kinds.count(-1), *(Scalar(dim, "int64") for dim in more)]
    if len(values) != len(params) or len(kinds) != len(results):
        raise Unsupported(f"{len(values)} arguments and results for {len(params)} parameters")
    fresh = params[len(given) : len(given) + kinds.count(-1)]
    own = iter(fresh)
    filled = [next(own) if kind == -1 else params[kind] for kind in kinds]
    known = [_lengths_of(framework, ctx, each) for each in results]
    ctx.lengths.names = {}
    numbers = _bind(ctx, params, values)
    for buffer, type_, dims in zip(filled, results, known, strict=True):
        _match_result(ctx, buffer, type_, dims)
    machine = Reductions(ctx)
    given = {
        handle_of(each) for each, value in zip(params, values, strict=True) if value is not None
    }
    reader = Reader(framework, ctx.lengths, numbers, given, machine.most)
    for buffer, value in zip(params, values, strict=True):
        if isinstance(value, Expr):
            shape = tuple(map(reader.length, buffer_type(buffer).shape))
            machine.buffers[handle_of(buffer)] = Buffer(value, shape)
    reader.read(function.body)
    for stage in reader.stages:
        machine.buffers[stage.buffer] = Buffer(ctx.fold(machine.stage(stage)), stage.shape)
    missing = [each for each in filled if handle_of(each) not in machine.buffers]
    if missing:
        raise Unsupported("it does not fill what it gives")
    return [machine.buffers[handle_of(each)].expr for each in filled]


def _buffer(function: AnyValue, param: AnyValue) -> AnyValue:
    """Return the buffer that a parameter is, itself where it is a number."""
    buffers = getattr(function, "buffer_map", None)
    return buffers[param] if buffers is not None and param in buffers else param


def _lengths_of(framework: Framework, ctx: ImportContext, type_: AnyValue) -> list[Dim] | None:
    """Return the lengths of a result where it is called."""
    lengths = framework.lengths(type_)
    return None if lengths is None else [ctx.lengths.read(each) for each in lengths]


def _bind(
    ctx: ImportContext, params: Sequence[AnyValue], values: Sequence[AnyValue]
) -> dict[int, Node]:
    """Note what lengths arguments show, and return the parameters that are numbers."""
    numbers: dict[int, Node] = {}
    for param, value in zip(params, values, strict=True):
        if isinstance(value, Scalar):
            dtype, held = dtype_of(param), value.value
            if isinstance(held, (bool, int, float)):
                numbers[handle_of(param)] = Number(dtype, held)
            else:
                numbers[handle_of(param)] = Length(dtype, held)
            if not isinstance(held, float):
                source = partial(ctx.lengths.tensor, held)
                ctx.lengths.match_length(param, ctx.lengths.known(held), source)
        elif isinstance(value, Expr):
            type_ = buffer_type(param)
            if type_ is param and not hasattr(param, "shape"):
                raise Unsupported("a tensor is given for what is no buffer")
            ctx.lengths.match(type_.shape, value)
            if dtype_of(type_) != ctx.dtype(value):
                raise Unsupported(f"a tensor of {ctx.dtype(value)} for one of {dtype_of(type_)}")
        elif value is not None:
            raise Unsupported(f"an argument that is {type(value).__name__}")
    return numbers


def _match_result(
    ctx: ImportContext, buffer: AnyValue, type_: AnyValue, dims: Sequence[Dim] | None
) -> None:
    """Note what lengths the type of a result shows."""
    shape = buffer_type(buffer).shape
    if str(type_.dtype) != dtype_of(buffer_type(buffer)):
        raise Unsupported(f"a result of {type_.dtype} from a buffer of another dtype")
    if dims is None:
        return
    if len(dims) != len(shape):
        raise Unsupported(f"a result of {len(dims)} axes from a buffer of {len(shape)}")
    for length, dim in zip(shape, dims, strict=True):
        source = partial(ctx.lengths.tensor, dim)
        ctx.lengths.match_length(length, ctx.lengths.known(dim), source)
