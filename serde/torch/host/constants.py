"""Constants of TorchScript, and what compares or hands on values whatever they are."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.host.registry import evaluates
from serde.torch.host.values import UNINITIALIZED
from serde.torch.import_context import ImportContext, Scalar
from serde.torch.quantization import PackedCell, PackedParams


@evaluates("prim::Constant", moves=True)
def constant(ctx: ImportContext, value: AnyValue = None) -> AnyValue:
    return value


@evaluates("prim::Uninitialized", moves=True)
def uninitialized(ctx: ImportContext) -> AnyValue:
    return UNINITIALIZED


@evaluates(
    "prim::unchecked_cast",
    "prim::unchecked_unwrap_optional",
    "aten::_unwrap_optional",
    "prim::annotate",
    "prim::Guard",
    "prim::data",
    "aten::Size",
    moves=True,
)
def hand_on(ctx: ImportContext, value: AnyValue) -> AnyValue:
    """What only bears on types."""
    return value


@evaluates("serde::packed_params")
def packed_params(ctx: ImportContext, *values: AnyValue) -> PackedParams | PackedCell:
    parts: dict[str, AnyValue] = {
        name: tuple(each) if isinstance(each, list) else each
        for (name, _), each in zip(ctx.source.arguments, values, strict=True)
    }
    return PackedCell(**parts) if "layers" in parts else PackedParams(**parts)


# Whether values are the same.


def _same(a: AnyValue, b: AnyValue) -> bool:
    if a is UNINITIALIZED or b is UNINITIALIZED:
        raise Unsupported("a value that is not there on all paths")
    if a is None or b is None:
        return a is b
    if isinstance(a, bool) and isinstance(b, bool):
        return a == b
    if isinstance(a, (int, float, complex, str)):
        raise Unsupported("whether two values are one object")
    return a is b


evaluates("aten::__is__", moves=True)(lambda _ctx, a, b: _same(a, b))
evaluates("aten::__isnot__", moves=True)(lambda _ctx, a, b: not _same(a, b))


_TYPES = {
    "BoolType": bool, "IntType": int, "FloatType": float, "StringType": str, "ListType": list,
    "TupleType": tuple, "DictType": dict, "NoneType": type(None),
}  # fmt: skip


@evaluates("prim::isinstance")
def is_instance(ctx: ImportContext, value: AnyValue, types: list[str]) -> bool:
    """Entries of lists are not looked at: TorchScript knows their types itself."""
    if isinstance(value, Expr):
        if ctx.is_number(value):
            raise Unsupported("whether a number that is computed is of some type")
        return "TensorType" in types
    if any(each not in _TYPES and each != "TensorType" for each in types):
        raise Unsupported(f"whether a value is one of {', '.join(types)}")
    return any(type(value) is _TYPES.get(each) for each in types)


for _kind in ("str", "device", "enum"):
    evaluates(f"aten::eq.{_kind}")(lambda _ctx, a, b: bool(a == b))
    evaluates(f"aten::ne.{_kind}")(lambda _ctx, a, b: bool(a != b))


@evaluates("prim::EnumName", "prim::EnumValue.int", "prim::EnumValue.str", "prim::EnumValue.float")
def enum_value(ctx: ImportContext, enum: AnyValue) -> Scalar:
    return enum[0 if ctx.source.op == "prim::EnumName" else 1]
