"""What exporters of several categories write: conversions, numbers and axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir import TensorType, TupleType, Type
from serde.torch.export_context import ExportContext, Value

__all__ = [
    "COMPUTED_AS", "FIRST_BIT", "DType", "cast", "dims_of", "in_computed_dtype", "in_signed",
    "integers", "on_axis", "permute", "unsqueeze", "widen",
]  # fmt: skip

Export: TypeAlias = Callable[..., AnyValue]
DType: TypeAlias = np.dtype[AnyValue]

COMPUTED_AS: Final = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
"""Unsigned dtypes of which PyTorch computes little, by those that arithmetic is done in."""

FIRST_BIT: Final = -(1 << 63)
"""The first of 64 bits, which is that of the sign."""


def cast(ctx: ExportContext, x: Value, dtype: str, source: str | None = None) -> Value:
    """Return `x` in another dtype.

    Args:
        ctx: What is written.
        x: A tensor.
        dtype: Its dtype to be.
        source: Its dtype, where `x` is a converter's own; None where it has a type.
    """
    known = source if source is not None else ctx.type(x).dtype
    return x if known == dtype else ctx.method(x, "to", ctx.dtype(dtype))


def in_computed_dtype(
    ctx: ExportContext, write: Callable[..., Value], *operands: Value, wraps: bool = True
) -> Value:
    """Return what `write` makes of operands of one dtype, in the dtype of the result.

    Unsigned integers that PyTorch computes little of are computed in a wider dtype and cut again.

    Args:
        ctx: What is written.
        write: Writes the computation.
        operands: Its operands.
        wraps: Whether the low bits of the result depend on the low bits of the operands alone,
            so that 64 bits may be computed as if they had a sign.
    """
    dtype = ctx.type(operands[0]).dtype
    work = COMPUTED_AS.get(dtype)
    if work is None:
        return write(*operands)
    if dtype == "uint64" and not wraps:
        raise Unsupported("PyTorch does not compute this of uint64")
    result = write(*[_wide(ctx, x, work) for x in operands])
    wanted = ctx.result_type().dtype
    return result if wanted == "bool" else ctx.method(result, "to", ctx.dtype(wanted))


def in_signed(export: Export, *, ordered: bool = False) -> Export:
    """Return an exporter that has unsigned integers, of which PyTorch can do little, signed.

    Args:
        export: The exporter, whose operands of the dtype of the first are so made.
        ordered: Whether it goes by the order of numbers; of 64 bits the first is turned over then,
            and back again in the results.
    """

    @wraps(export)
    def export_signed(ctx: ExportContext, *operands: AnyValue, **attrs: AnyValue) -> AnyValue:
        dtype = ctx.type(operands[0]).dtype
        work = COMPUTED_AS.get(dtype)
        if work is None:
            return export(ctx, *operands, **attrs)
        turned = ordered and dtype == "uint64"
        declared = ctx.result
        ctx.result = _with_dtype(declared, dtype, work)
        given = [_typed_wide(ctx, each, dtype, work, turned) for each in operands]
        found = export(ctx, *given, **attrs)
        types = declared.fields if isinstance(declared, TupleType) else (declared,)
        results = found if isinstance(found, tuple) else (found,)
        done = tuple(
            _narrow(ctx, each, dtype, turned) if _is_of(type_, dtype) else each
            for each, type_ in zip(results, types, strict=False)
        )
        ctx.result = declared
        return done if isinstance(found, tuple) else done[0]

    return export_signed


def _is_of(type_: Type, dtype: str) -> bool:
    return isinstance(type_, TensorType) and type_.dtype == dtype


def _with_dtype(type_: Type, old: str, new: str) -> Type:
    """Return a type with one dtype in place of another."""
    if isinstance(type_, TupleType):
        return TupleType([_with_dtype(each, old, new) for each in type_.fields])
    if isinstance(type_, TensorType) and type_.dtype == old:
        return TensorType(type_.shape, new)
    return type_


def _typed_wide(ctx: ExportContext, x: AnyValue, old: str, new: str, turned: bool) -> AnyValue:
    if not isinstance(x, Value) or ctx.type(x).dtype != old:
        return x
    wide = _wide(ctx, x, new)
    if turned:
        wide = ctx.infix("^", wide, FIRST_BIT)
    return ctx.typed(wide, TensorType(ctx.type(x).shape, new))


def _narrow(ctx: ExportContext, x: Value, dtype: str, turned: bool) -> Value:
    signed = ctx.infix("^", x, FIRST_BIT) if turned else x
    return ctx.method(signed, "to", ctx.dtype(dtype))


def _wide(ctx: ExportContext, x: Value, dtype: str) -> Value:
    if x.data is not None:
        return ctx.const(x.data.astype(dtype))
    return ctx.method(x, "to", ctx.dtype(dtype))


def dims_of(axes: Iterable[int]) -> int | tuple[int, ...]:
    """Return axes as PyTorch's functions take them: one as a number."""
    found = tuple(axes)
    return found[0] if len(found) == 1 else found


def permute(ctx: ExportContext, x: Value, axes: Sequence[int]) -> Value:
    """Return `x` with its axes in another order; nothing is written where it is the same."""
    if list(axes) == list(range(len(axes))):
        return x
    moved = [i for i, axis in enumerate(axes) if i != axis]
    if len(moved) == 2:
        return ctx.method(x, "transpose", *moved)
    return ctx.method(x, "permute", *axes)


def unsqueeze(ctx: ExportContext, x: Value, axes: Sequence[int]) -> Value:
    """Return `x` with axes of length 1, which are those of the result, in ascending order."""
    for axis in axes:
        x = ctx.method(x, "unsqueeze", axis)
    return x


def integers(ctx: ExportContext, x: Value) -> Value:
    """Return the integers of a tensor as a list of Python's."""
    return ctx.call(ctx.helper("integers"), x)


def widen(ctx: ExportContext, x: Value) -> tuple[Value, str]:
    """Return a tensor in a dtype that PyTorch factors, and that dtype."""
    dtype = ctx.type(x).dtype
    work = "float32" if dtype in ("float16", "bfloat16") else dtype
    found = cast(ctx, x, work)
    return ctx.typed(found, TensorType(ctx.type(x).shape, work)), work


def on_axis(
    ctx: ExportContext, data: Value, axis: int, place: int, write: Callable[[Value], Value]
) -> Value:
    """Return what `write` makes of a tensor with one axis at another place, moved back again."""
    axis %= ctx.type(data).rank
    if axis == place % ctx.type(data).rank:
        return write(data)
    shape = list(ctx.type(data).shape)
    shape.insert(place % len(shape), shape.pop(axis))
    moved = ctx.typed(
        ctx.method(data, "movedim", axis, place), type(ctx.type(data))(shape, ctx.type(data).dtype)
    )
    return ctx.method(write(moved), "movedim", place, axis)
