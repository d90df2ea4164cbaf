"""Functions of two tensors, and the choice between two, as they are written."""

from __future__ import annotations

from functools import partial

from serde.relay.ir.shapes import is_float
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import COMPUTED_AS, FIRST_BIT, cast, in_computed_dtype


def _export_infix(ctx: ExportContext, x: Value, y: Value, *, sign: str, wraps: bool) -> Value:
    def write(a: Value, b: Value) -> Value:
        return ctx.infix(sign, a, b)

    return in_computed_dtype(ctx, write, x, y, wraps=wraps)


for _name, _sign in {
    "add": "+",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "equal": "==",
    "left_shift": "<<",
    "multiply": "*",
    "not_equal": "!=",
    "subtract": "-",
}.items():
    OPS.exports(_name)(partial(_export_infix, sign=_sign, wraps=True))


for _name, _sign in {"floor_divide": "//", "floor_mod": "%"}.items():
    OPS.exports(_name)(partial(_export_infix, sign=_sign, wraps=False))


@OPS.exports("right_shift")
def export_right_shift(ctx: ExportContext, x: Value, y: Value) -> Value:
    """The sign that PyTorch shifts in is cut off from what has none."""
    if ctx.type(x).dtype != "uint64":
        return in_computed_dtype(ctx, lambda a, b: ctx.infix(">>", a, b), x, y)
    signed = (ctx.method(each, "to", ctx.dtype("int64")) for each in (x, y))
    found = ctx.call(ctx.helper("shift_right_unsigned"), *signed)
    return ctx.method(found, "to", ctx.dtype("uint64"))


def _export_comparison(ctx: ExportContext, x: Value, y: Value, *, sign: str) -> Value:
    """Of 64 bits without a sign, the first one is turned over, which keeps their order."""
    if ctx.type(x).dtype == "uint64":
        x, y = (
            ctx.infix("^", ctx.method(each, "to", ctx.dtype("int64")), FIRST_BIT) for each in (x, y)
        )
        return ctx.infix(sign, x, y)
    return in_computed_dtype(ctx, lambda a, b: ctx.infix(sign, a, b), x, y)


for _name, _sign in {
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
}.items():
    OPS.exports(_name)(partial(_export_comparison, sign=_sign))


@OPS.exports("divide")
def export_divide(ctx: ExportContext, x: Value, y: Value) -> Value:
    """Of integers, rounded towards zero; PyTorch's quotient is a float."""
    if is_float(ctx.type(x).dtype):
        return ctx.infix("/", x, y)
    return export_trunc_divide(ctx, x, y)


@OPS.exports("trunc_divide")
def export_trunc_divide(ctx: ExportContext, x: Value, y: Value) -> Value:
    def write(a: Value, b: Value) -> Value:
        return (
            ctx.method(a, "div", b, rounding_mode="trunc")
            if a.data is not None
            else ctx.call("torch.div", a, b, rounding_mode="trunc")
        )

    return in_computed_dtype(ctx, write, x, y, wraps=False)


@OPS.exports("mod", "trunc_mod")
def export_mod(ctx: ExportContext, x: Value, y: Value) -> Value:
    def write(a: Value, b: Value) -> Value:
        return ctx.call("torch.fmod", a, b) if a.data is None else ctx.method(a, "fmod", b)

    return in_computed_dtype(ctx, write, x, y, wraps=False)


@OPS.exports("power")
def export_power(ctx: ExportContext, x: Value, y: Value) -> Value:
    """A number as the exponent of integers must not be negative, a tensor may."""
    if is_float(ctx.type(x).dtype):
        return ctx.infix("**", x, y)
    return in_computed_dtype(ctx, lambda a, b: ctx.method(a, "pow", b), x, y, wraps=False)


def _export_extremum(ctx: ExportContext, x: Value, y: Value, *, target: str) -> Value:
    """Of 64 bits without a sign, the first one is turned over and back again."""
    if ctx.type(x).dtype != "uint64":
        return in_computed_dtype(ctx, lambda a, b: ctx.call(target, a, b), x, y)
    turned = (
        ctx.infix("^", ctx.method(each, "to", ctx.dtype("int64")), FIRST_BIT) for each in (x, y)
    )
    found = ctx.infix("^", ctx.call(target, *turned), FIRST_BIT)
    return ctx.method(found, "to", ctx.dtype("uint64"))


for _name in ("maximum", "minimum"):
    OPS.exports(_name)(partial(_export_extremum, target=f"torch.{_name}"))


def _export_logical(ctx: ExportContext, x: Value, y: Value, *, sign: str, target: str) -> Value:
    """Relay takes numbers, too, and gives their dtype back."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.infix(sign, x, y)
    if dtype in COMPUTED_AS:
        truths = (ctx.method(each, "to", ctx.dtype("bool")) for each in (x, y))
        return cast(ctx, ctx.infix(sign, *truths), dtype, "bool")
    return cast(ctx, ctx.call(target, x, y), dtype, "bool")


for _name, _sign in {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}.items():
    OPS.exports(_name)(partial(_export_logical, sign=_sign, target=f"torch.{_name}"))


@OPS.exports("where")
def export_where(ctx: ExportContext, condition: Value, x: Value, y: Value) -> Value:
    known = ctx.scalar(condition) if not ctx.type(condition).shape else None
    if known is not None:
        chosen, shape = (x if known else y), ctx.result_type().shape
        same = ctx.type(chosen).shape == shape
        return chosen if same else ctx.method(chosen, "expand", ctx.sizes(shape))
    if ctx.type(condition).dtype != "bool":
        condition = ctx.infix("!=", condition, 0)
    return ctx.call("torch.where", condition, x, y)
