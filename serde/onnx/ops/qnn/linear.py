"""Quantisation as ONNX has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper

import serde.relay as relay
from serde.core.allocation import zeros
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import FLOAT8
from serde.onnx.ops.table import OPS
from serde.onnx.schemas import allowed_types, require_dtype, type_text
from serde.onnx.versions import CHANGES
from serde.relay.ir.expr import Call, Expr, TupleGetItem
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType


def _make_check(op: str, version: int) -> Callable[[Call], bool]:
    """Return whether an operator, as it stands at a version, is what a call says.

    So it is, too, where that version lacks a type altogether: what the call decomposes into
    would need it as well.
    """
    schema = onnx.defs.get_schema(op, version)
    everything = allowed_types(cast_schema := onnx.defs.get_schema("Cast", version),
                          cast_schema.inputs[0])  # fmt: skip

    def takes(node: Call) -> bool:
        types = [*(each.type for each in node.args), node.type]
        formals = [*schema.inputs, schema.outputs[0]]
        bound: dict[str, str] = {}
        fits = True
        for formal, type_ in zip(formals, types, strict=True):
            if not isinstance(type_, TensorType):
                continue
            name = type_text(type_.dtype)
            if name not in everything:
                return True
            same = bound.setdefault(formal.type_str, name) == name
            fits = fits and same and name in allowed_types(schema, formal)
        scale = node.args[1].type
        vector = isinstance(scale, TensorType) and scale.rank > 0 and scale.size != 1
        if (vector or node.attrs["block_size"]) and "axis" not in schema.attributes:
            return False
        wanted = {"block_size"} if node.attrs["block_size"] else set()
        wanted |= {"precision"} if node.attrs.get("precision") is not None else set()
        return fits and wanted <= set(schema.attributes)

    return takes


def export_quantize_linear(
    ctx: ExportContext,
    x: Value,
    scale: Value,
    zero_point: Value | None,
    *,
    axis: int,
    block_size: int,
    out_dtype: np.dtype[AnyValue],
    saturate: bool,
    precision: np.dtype[AnyValue] | None,
) -> Value:
    """Before 21 the zero point alone gives the type of the result; integers always saturate."""
    dtype = dtype_name(out_dtype)
    require_dtype(dtype, ctx.version)
    kind = helper.np_dtype_to_tensor_dtype(out_dtype)
    explicit = zero_point is None and dtype != "uint8"
    if explicit and ctx.version < 21:
        zero_point = ctx.const(zeros(ctx.static_shape(scale)), out_dtype)
        explicit = False
    return ctx.emit(
        "QuantizeLinear",
        x,
        scale,
        zero_point,
        axis=_axis_or_none(ctx, scale, axis),
        block_size=block_size or None,
        output_dtype=kind if explicit else None,
        saturate=0 if dtype in FLOAT8 and not saturate else None,
        precision=None if precision is None else helper.np_dtype_to_tensor_dtype(precision),
    )


@OPS.imports("QuantizeLinear", since=(19, 21, 23, 24, 25, 28))
def import_quantize_linear(
    ctx: ImportContext,
    x: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    saturate: bool = True,
    precision: int = 0,
) -> Expr:
    """``y = saturate(round(x / scale) + zero_point)``, in the type of the zero point if given."""
    dtype = ctx.dtype(output_dtype) if output_dtype else "uint8"
    if zero_point is not None:
        given = ctx.type(zero_point).dtype
        if output_dtype and given != dtype:
            raise Unsupported(f"output_dtype {dtype} with a zero point of {given}")
        dtype = given
    return call(
        "serde.quantize_linear",
        x,
        scale,
        _match_rank(ctx, scale, zero_point),
        axis=_normalize_axis(ctx, scale, axis),
        block_size=block_size,
        out_dtype=dtype,
        saturate=saturate,
        precision=ctx.dtype(precision) if precision else None,
    )


@OPS.imports("QuantizeLinear", since=(10, 13))
def import_quantize_linear_v10(
    ctx: ImportContext, x: Expr, scale: Expr, zero_point: Expr | None = None, *, axis: int = 1
) -> Expr:
    return import_quantize_linear(ctx, x, scale, zero_point, axis=axis)


def _axis_or_none(ctx: ExportContext, scale: Value, axis: int) -> int | None:
    return None if ctx.type(scale).rank == 0 else axis


def export_dequantize_linear(
    ctx: ExportContext,
    x: Value,
    scale: Value,
    zero_point: Value | None,
    *,
    axis: int,
    block_size: int,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    require_dtype(ctx.type(x).dtype, ctx.version)
    explicit = out_dtype is not None and dtype_name(out_dtype) != ctx.type(scale).dtype
    return ctx.emit(
        "DequantizeLinear",
        x,
        scale,
        zero_point,
        axis=_axis_or_none(ctx, scale, axis),
        block_size=block_size or None,
        output_dtype=helper.np_dtype_to_tensor_dtype(out_dtype) if explicit and out_dtype else None,
    )


@OPS.imports("DequantizeLinear", since=(10, 13, 19, 21, 23, 24, 25, 28))
def import_dequantize_linear(
    ctx: ImportContext,
    x: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Expr:
    return call(
        "serde.dequantize_linear",
        x,
        scale,
        _match_rank(ctx, scale, zero_point),
        axis=_normalize_axis(ctx, scale, axis),
        block_size=block_size,
        out_dtype=ctx.dtype(output_dtype) if output_dtype else None,
    )


for _op, _name, _export in (
    ("QuantizeLinear", "serde.quantize_linear", export_quantize_linear),
    ("DequantizeLinear", "serde.dequantize_linear", export_dequantize_linear),
):
    for _version in CHANGES[_op]:
        if _version <= onnx.defs.onnx_opset_version():
            OPS.exports(_name, since=_version, when=_make_check(_op, _version))(_export)


@OPS.exports("serde.dynamic_quantize_linear")
def export_dynamic_quantize_linear(ctx: ExportContext, x: Value) -> tuple[Value, ...]:
    return ctx.emit_tuple("DynamicQuantizeLinear", x, outputs=3)


@OPS.imports("DynamicQuantizeLinear", since=11)
def import_dynamic_quantize_linear(ctx: ImportContext, x: Expr) -> list[Expr]:
    found = call("serde.dynamic_quantize_linear", x)
    return [TupleGetItem(found, index) for index in range(3)]


def _match_rank(ctx: ImportContext, scale: Expr, zero_point: Expr | None) -> Expr | None:
    """Return a zero point in the rank of its scale; a vector of one element is a scalar, too."""
    if zero_point is None or ctx.type(zero_point).rank == ctx.type(scale).rank:
        return zero_point
    if {ctx.type(scale).shape, ctx.type(zero_point).shape} != {(), (1,)}:
        return zero_point
    if ctx.type(zero_point).rank:
        return relay.squeeze(zero_point, axis=[0])
    return relay.expand_dims(zero_point, axis=0)


def _normalize_axis(ctx: ImportContext, scale: Expr, axis: int) -> int:
    """Return the axis, which has no meaning for one scale."""
    shape = ctx.type(scale).shape
    return axis if shape and shape != (1,) else 1
