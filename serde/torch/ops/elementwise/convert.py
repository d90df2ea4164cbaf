"""Conversion of element types, and operators that give their operand back."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.ops.table import OPS, Export, Import, Scalar, Value
from serde.torch.ops.written import DType, cast

PLACEMENT = ("layout", "device", "pin_memory", "memory_format", "non_blocking", "copy")
"""Arguments that say where and how a tensor lies in memory."""


CASTS = {
    "Byte": "uint8", "Char": "int8", "Double": "float64", "Float": "float32", "Half": "float16",
    "Int": "int32", "Long": "int64", "Short": "int16",
}  # fmt: skip
"""Dtypes by their old names."""


def _register_cast(op: str, dtype: str) -> None:
    @OPS.imports(op, ignored=PLACEMENT)
    def import_cast(ctx: Import, self: Expr) -> Expr:
        return ctx.cast(self, dtype)


for _name, _dtype in CASTS.items():
    _register_cast(f"aten::_cast_{_name}", _dtype)


@OPS.imports("prims::convert_element_type")
def import_convert_element_type(ctx: Import, a: Expr, *, dtype: np.dtype[AnyValue]) -> Expr:
    return ctx.cast(a, dtype.name)


@OPS.imports("aten::to", "aten::_to_copy", ignored=PLACEMENT)
def import_to(ctx: Import, self: Expr, *, dtype: np.dtype[AnyValue] | None = None) -> Expr:
    return self if dtype is None else ctx.cast(self, dtype.name)


@OPS.imports("aten::to.other", ignored=PLACEMENT)
@OPS.imports("aten::type_as")
def import_to_other(ctx: Import, self: Expr, other: Expr) -> Expr:
    return ctx.cast(self, ctx.dtype(other))


@OPS.imports(
    "aten::alias",
    "aten::clone",
    "aten::contiguous",
    "aten::detach",
    "aten::detach_",
    "aten::lift",
    "aten::lift_fresh",
    "aten::lift_fresh_copy",
    "aten::detach_copy",
    "aten::alias_copy",
    "aten::conj",
    "aten::conj_physical",
    "aten::positive",
    "aten::resolve_conj",
    "aten::resolve_neg",
    "prims::clone",
    "prims::conj_physical",
    ignored=PLACEMENT,
)
@OPS.imports("prims::conj", "prims::device_put", ignored=PLACEMENT, renamed={"a": "self"})
def import_identity(ctx: Import, self: Expr) -> Expr:
    return self


def as_float(number: Scalar) -> float:
    """Return a number that must be known as a float."""
    if isinstance(number, (Expr, complex)):
        raise Unsupported("needs a fixed number, found one that is computed or complex")
    return float(number)


def widen(ctx: Import, x: Expr) -> Expr:
    """Return floats of less than 32 bits as float32, in which PyTorch computes with them."""
    return ctx.cast(x, "float32") if ctx.dtype(x) in ("float16", "bfloat16") else x


@OPS.exports("cast")
def export_cast(ctx: Export, data: Value, *, dtype: DType) -> Value:
    """PyTorch saturates where a float of 8 bits has no infinity; Relay gives NaN."""
    if dtype.name == "float8_e8m0fnu":
        raise Unsupported("PyTorch rounds zeros and negative numbers to float8_e8m0fnu otherwise")
    if dtype.name == "float8_e4m3fn" and ctx.type(data).dtype != "float8_e4m3fn":
        return ctx.call(ctx.helper("to_float8"), data)
    return cast(ctx, data, dtype.name)


@OPS.exports("reinterpret")
def export_reinterpret(ctx: Export, data: Value, *, dtype: DType) -> Value:
    """TorchScript does not know ``view`` of a dtype."""
    return ctx.call("torch.view_copy", data, dtype=ctx.dtype(dtype.name))
