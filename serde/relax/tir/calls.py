"""Calls of functions of TIR: their parameters, what they fill, and what that is in Relay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.import_context import ImportContext
from serde.relax.lengths import Scalar, Shape
from serde.relax.reflection import dtype_of, handle_of, name_of
from serde.relax.tir.indexing import Frame
from serde.relax.tir.loads import Buffer
from serde.relax.tir.reading import Reader, buffer_type
from serde.relax.tir.reductions import Reductions
from serde.relax.tir.stages import Node
from serde.relay.ir import Any, Dim, Expr
from serde.relay.ir.dims import SymDim

__all__ = ["compute_number", "legalize", "run_function"]


def legalize(framework: Framework, call: AnyValue) -> tuple[AnyValue, dict[str, AnyValue]]:
    """Return the call of a function of TIR that TVM makes of an operator, and these functions."""
    relax = framework.relax
    if call.attrs is None:  # TVM crashes.
        raise Unsupported("a call without attributes")
    try:
        params = [relax.Var(f"x{i}", framework.type_of(x)) for i, x in enumerate(call.args)]
        builder = relax.BlockBuilder()
        with builder.function("main", params):
            builder.emit_func_output(builder.emit(relax.Call(call.op, params, call.attrs)))
        module = relax.transform.LegalizeOps()(builder.get())
        legal = module["main"].body.blocks[0].bindings[0].value
    except Exception as error:
        raise Unsupported(framework.last_line(error)) from error
    return legal, {name_of(variable): each for variable, each in module.functions.items()}


def run_function(
    framework: Framework, ctx: ImportContext, function: AnyValue, given: Sequence[AnyValue],
    results: Sequence[AnyValue], lengths: Sequence[AnyValue], inplace: Sequence[int] | None,
) -> list[Expr]:  # fmt: skip
    """Return what a function of TIR computes; names of lengths are its own afterwards.

    It is called with tensors and numbers, and with shapes whose lengths stand behind everything
    else, and gives results of some types, each in a buffer of its own, for which -1 stands, or in
    one of its parameters. It is refused if Relay cannot say it, or it is declared otherwise.
    """
    kinds = [-1] * len(results) if inplace is None else list(inplace)
    more = [Scalar(n, "int64") for shape in lengths if isinstance(shape, Shape) for n in shape.dims]
    values = [*given, *[None] * kinds.count(-1), *more]
    buffers = getattr(function, "buffer_map", {})
    params = [buffers.get(each, each) for each in getattr(function, "params", ())]
    fits = len(values) == len(params) and len(kinds) == len(results)
    if not fits or not all(-1 <= kind < len(given) for kind in kinds):
        raise Unsupported(f"{len(values)} arguments and results for {len(params)} parameters")
    rest = iter(params[len(given) :])
    filled = [next(rest) if kind == -1 else params[kind] for kind in kinds]
    shapes = [getattr(buffer_type(each), "shape", ()) for each in params]
    counted = {handle_of(x) for shape in shapes for n in shape for x in ctx.lengths.variables(n)}
    known = [[ctx.lengths.read(x) for x in framework.lengths(each) or ()] for each in results]
    ctx.lengths.names = {}
    machine, numbers, tensors = Reductions(ctx), dict[int, Node](), dict[AnyValue, Expr]()
    for param, value in zip(params, values, strict=True):
        if isinstance(value, Scalar):
            if isinstance(value.value, (int, SymDim)):
                ctx.lengths.same(param, value.value)
            own, handle = Scalar(value.value, dtype_of(param)), handle_of(param)
            numbers[handle] = _number(machine, handle, own, handle in counted)
        elif isinstance(value, Expr):
            _match(ctx, param, ctx.dtype(value), ctx.rank(value))
            ctx.lengths.match(buffer_type(param).shape, value)
            tensors[param] = value
        elif value is not None:
            raise Unsupported(f"an argument that is {type(value).__name__}")
    for buffer, type_, dims in zip(filled, results, known, strict=True):
        _match(ctx, buffer, str(type_.dtype), type_.ndim, dims)
    reader = Reader(framework, ctx.lengths, numbers, map(handle_of, tensors), machine.most)
    for buffer, value in tensors.items():
        shape = tuple(map(reader.length, buffer_type(buffer).shape))
        machine.buffers[handle_of(buffer)] = Buffer(value, shape)
    reader.read(function.body)
    for stage in reader.stages:
        machine.buffers[stage.buffer] = Buffer(ctx.fold(machine.stage(stage)), stage.shape)
    if not all(handle_of(each) in machine.buffers for each in filled):
        raise Unsupported("it does not fill what it gives")
    return [machine.buffers[handle_of(each)].expr for each in filled]


def compute_number(
    framework: Framework, ctx: ImportContext, expr: AnyValue, given: Mapping[int, AnyValue]
) -> Expr:
    """Return an expression of numbers, some of which are given by their handles.

    Raises:
        Unsupported: Relay cannot say it.
    """
    machine = Reductions(ctx)
    numbers = {each: _number(machine, each, value) for each, value in given.items()}
    reader = Reader(framework, ctx.lengths, numbers, (), machine.most)
    return machine.compute(reader.node(expr), Frame(())).expr


def _number(machine: Reductions, handle: int, given: AnyValue, counts: bool = False) -> Node:
    """Return a number, one that may be negative or is no integer as what a buffer holds.

    Unless it counts elements: axes have one at least.
    """
    if not isinstance(given, Scalar):
        raise Unsupported(f"expected a number, found {type(given).__name__}")
    held, ctx = given.value, machine.ctx
    if isinstance(held, SymDim) and (counts or not isinstance(ctx.lengths.known(held), Any)):
        return Node("length", given.dtype, held=held)
    if not isinstance(held, (Expr, SymDim)):
        return Node("number", given.dtype, held=held)
    machine.buffers[handle] = Buffer(ctx.tensor(given), ())
    return Node("load", given.dtype, held=handle)


def _match(
    ctx: ImportContext, param: AnyValue, dtype: str, rank: int, dims: Sequence[Dim] = ()
) -> None:
    """Compare a buffer with a tensor, and note what lengths of the function this shows."""
    type_ = buffer_type(param)
    shape = getattr(type_, "shape", ())
    if dtype_of(type_) != dtype or rank not in (-1, len(shape)):
        raise Unsupported(f"a tensor of {dtype} with {rank} axes for {param!s:.100}")
    for length, dim in zip(shape, dims, strict=False):
        source = partial(ctx.lengths.tensor, dim)
        ctx.lengths.match_length(length, ctx.lengths.known(dim), source)
