"""Linear algebra: products, transforms, sparse matrices."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.mlprogram.operators import NUMBERS, cast_to, compute_dtype
from serde.coreml.mlprogram.ops.shape.reshape import expand_dims, reshape, squeeze
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Dim, Expr, TensorType, call, is_float

WHOLE = ("nchw,nwhu->nchu", "chw,whr->chr")
"""The equations of MIL's einsum."""


@OPS.imports("linear", since=1)
def import_linear_v1(ctx: Import, x: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    found = call("nn.dense", x, weight, units=ctx.type(weight).shape[0])
    if bias is None:
        return found
    return relay.nn.bias_add(found, bias, axis=-1)


@OPS.imports("linear", since=17)
def import_linear(ctx: Import, x: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """Weights may be of another dtype, and are brought into that of the data."""
    dtype = ctx.type(x).dtype
    parts = [weight] if bias is None else [weight, bias]
    cast = [part if ctx.type(part).dtype == dtype else relay.cast(part, dtype) for part in parts]
    return import_linear_v1(ctx, x, *cast)


@OPS.exports("nn.dense", ignored=("units", "out_dtype"))
def export_dense(ctx: Export, data: Value, weight: Value, bias: Value | None = None) -> Value:
    """MIL has dense layers of constant weights, for data of up to three axes."""
    constant = weight.is_constant and (bias is None or bias.is_constant)
    alike = ctx.type(data).dtype == ctx.type(weight).dtype == ctx.result_type().dtype
    if constant and alike and is_float(ctx.type(data).dtype) and ctx.type(data).rank <= 3:
        return ctx.emit("linear", x=data, weight=weight, bias=bias)
    found = _product(ctx, data, weight, ctx.result_type(), turn_y=True)
    if bias is None:
        return found
    return ctx.emit("add", x=found, y=cast_to(ctx, bias, ctx.result_type().dtype))


def _product(
    ctx: Export,
    x: Value,
    y: Value,
    type_: TensorType,
    *,
    turn_x: bool = False,
    turn_y: bool = False,
) -> Value:
    """Return the product of the last two axes, summed in the dtype of the result."""
    work = compute_dtype(ctx, type_.dtype, NUMBERS)
    sides = [cast_to(ctx, each, work) for each in (x, y)]
    made = TensorType(type_.shape, work)
    found = ctx.emit("matmul", made, x=sides[0], y=sides[1], transpose_x=turn_x, transpose_y=turn_y)
    return cast_to(ctx, found, type_.dtype)


@OPS.imports("matmul", since=(1, 17))
def import_matmul(
    ctx: Import, x: Expr, y: Expr, *, transpose_x: bool = False, transpose_y: bool = False
) -> Expr:
    """A constant side may be of another dtype, and is brought into that of the other."""
    if ctx.type(x).dtype != ctx.type(y).dtype:
        if ctx.is_constant(x):
            x = relay.cast(x, ctx.type(y).dtype)
        else:
            y = relay.cast(y, ctx.type(x).dtype)
    ranks = ctx.type(x).rank, ctx.type(y).rank
    if ranks == (3, 3):
        return relay.nn.batch_matmul(x, y, transpose_a=transpose_x, transpose_b=transpose_y)
    if ranks[1] == 2 and ranks[0] == 2:
        return call("nn.matmul", x, y, units=None, transpose_a=transpose_x, transpose_b=transpose_y)
    left = _transpose_matrices(x, ranks[0]) if transpose_x and ranks[0] > 1 else x
    right = _transpose_matrices(y, ranks[1]) if transpose_y and ranks[1] > 1 else y
    return call("serde.matmul", left, right)


def _transpose_matrices(x: Expr, rank: int) -> Expr:
    return relay.transpose(x, axes=[*range(rank - 2), rank - 1, rank - 2])


@OPS.exports("nn.matmul", ignored=("units", "out_dtype"))
@OPS.exports("nn.batch_matmul", ignored=("out_dtype",))
def export_batch_matmul(
    ctx: Export, tensor_a: Value, tensor_b: Value, *, transpose_a: bool, transpose_b: bool
) -> Value:
    turned = {"turn_x": transpose_a, "turn_y": transpose_b}
    return _product(ctx, tensor_a, tensor_b, ctx.result_type(), **turned)


@OPS.exports("serde.matmul")
def export_matmul_of_stacks(ctx: Export, a: Value, b: Value) -> Value:
    """A vector is a row on the left and a column on the right, whose axis then goes."""
    left, right, result = ctx.type(a).rank, ctx.type(b).rank, ctx.result_type()
    dims: list[Dim] = list(result.shape)
    gone = []
    if right == 1:
        b = expand_dims(ctx, b, [1])
        dims.append(1)
        gone.append(len(dims) - 1)
    if left == 1:
        a = expand_dims(ctx, a, [0])
        dims.insert(len(dims) - 1, 1)
        gone = [len(dims) - 1] * len(gone) + [len(dims) - 2]
    found = _product(ctx, a, b, TensorType(dims, result.dtype))
    return squeeze(ctx, found, sorted(gone))


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Export, data: Value, bias: Value, *, axis: int) -> Value:
    rank = ctx.type(data).rank
    following = rank - 1 - axis % rank
    shape = [*ctx.type(bias).shape, *[1] * following]
    work = compute_dtype(ctx, ctx.type(data).dtype, NUMBERS)
    sides = [cast_to(ctx, each, work) for each in (data, reshape(ctx, bias, shape))]
    made = TensorType(ctx.result_type().shape, work)
    found = ctx.emit("add", made, x=sides[0], y=sides[1])
    return cast_to(ctx, found, ctx.result_type().dtype)


@OPS.imports("einsum")
def import_einsum(ctx: Import, *values: Expr, equation: str) -> Expr:
    """Axes of length 1 are spread over those of the other side."""
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    lengths: dict[str, Dim] = {}
    if [len(term) for term in terms] != [ctx.type(value).rank for value in values]:
        ranks = [ctx.type(value).rank for value in values]
        raise Unsupported(f"the equation {equation!r:.100} for tensors of {ranks} axes")
    for term, value in zip(terms, values, strict=True):
        for letter, dim in zip(term, ctx.type(value).shape, strict=True):
            if lengths.get(letter, 1) == 1:
                lengths[letter] = dim
    spread = []
    for term, value in zip(terms, values, strict=True):
        wanted = [lengths[letter] for letter in term]
        if list(ctx.type(value).shape) != wanted:
            value = relay.broadcast_to(value, wanted)
        spread.append(value)
    return relay.einsum(spread, equation.replace(" ", ""))


def _normalize_equation(equation: str) -> str:
    """Return an equation with its letters numbered in the order of their appearance."""
    letters = dict.fromkeys(each for each in equation if each.isalpha())
    names = dict(zip(letters, "abcdefghijklmnopqrstuvwxyz", strict=False))
    return "".join(names.get(each, each) for each in equation)


def _is_whole(node: Call) -> bool:
    fields = getattr(node.args[0], "fields", ())
    floats = all(isinstance(x.type, TensorType) and is_float(x.type.dtype) for x in fields)
    return floats and _normalize_equation(node.attrs["equation"]) in [
        _normalize_equation(each) for each in WHOLE
    ]


@OPS.exports("einsum", when=_is_whole)
def export_einsum(ctx: Export, data: tuple[Value, ...], *, equation: str) -> Value:
    """Any letters will do."""
    whole = next(
        (each for each in WHOLE if _normalize_equation(each) == _normalize_equation(equation)), None
    )
    if whole is None:
        raise Unsupported(f"einsum of {equation!r}")
    return ctx.emit("einsum", values=data, equation=whole)
