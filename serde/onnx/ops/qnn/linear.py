"""Quantisation as ONNX has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.onnx.schemas import allowed_types, type_text
from serde.onnx.versions import CHANGES
from serde.relay.expr import Call
from serde.relay.types import TensorType
from serde.weights import dtype_name


def _takes(op: str, version: int) -> Callable[[Call], bool]:
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


def _require_type(ctx: Ctx, dtype: str) -> None:
    schema = onnx.defs.get_schema("Cast", ctx.version)
    if type_text(dtype) not in allowed_types(schema, schema.inputs[0]):
        raise Unsupported(f"ONNX has no {dtype} at version {ctx.version}")


def export_quantize_linear(
    ctx: Ctx,
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
    """Before 21 the zero point alone tells the type of the result."""
    dtype = dtype_name(out_dtype)
    _require_type(ctx, dtype)
    kind = helper.np_dtype_to_tensor_dtype(out_dtype)
    told = zero_point is None and dtype != "uint8"
    if told and ctx.version < 21:
        zero_point = ctx.const(np.zeros(ctx.static_shape(scale)), out_dtype)
        told = False
    return ctx.emit(
        "QuantizeLinear",
        x,
        scale,
        zero_point,
        axis=_place(ctx, scale, axis),
        block_size=block_size or None,
        output_dtype=kind if told else None,
        saturate=None if saturate else 0,
        precision=None if precision is None else helper.np_dtype_to_tensor_dtype(precision),
    )


def _place(ctx: Ctx, scale: Value, axis: int) -> int | None:
    return None if ctx.type(scale).rank == 0 else axis


def export_dequantize_linear(
    ctx: Ctx,
    x: Value,
    scale: Value,
    zero_point: Value | None,
    *,
    axis: int,
    block_size: int,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    _require_type(ctx, ctx.type(x).dtype)
    told = out_dtype is not None and dtype_name(out_dtype) != ctx.type(scale).dtype
    return ctx.emit(
        "DequantizeLinear",
        x,
        scale,
        zero_point,
        axis=_place(ctx, scale, axis),
        block_size=block_size or None,
        output_dtype=helper.np_dtype_to_tensor_dtype(out_dtype) if told and out_dtype else None,
    )


for _op, _name, _export in (
    ("QuantizeLinear", "serde.quantize_linear", export_quantize_linear),
    ("DequantizeLinear", "serde.dequantize_linear", export_dequantize_linear),
):
    for _version in CHANGES[_op]:
        if _version <= onnx.defs.onnx_opset_version():
            OPS.exports(_name, since=_version, when=_takes(_op, _version))(_export)


@OPS.exports("serde.dynamic_quantize_linear")
def export_dynamic_quantize_linear(ctx: Ctx, x: Value) -> tuple[Value, ...]:
    return ctx.emit_tuple("DynamicQuantizeLinear", x, outputs=3)
