"""Products of matrices, of groups of rows, and of two vectors with a tensor."""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from functools import reduce
from string import ascii_letters
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Expr, call, called_name, const, is_float, tensor_type
from serde.relay.op.linalg.product import parse_equation
from serde.relay.transform.purity import unpacks
from serde.torch.ops.elementwise.binary import scale
from serde.torch.ops.elementwise.paired import round_once
from serde.torch.ops.reduce.plain import as_summed
from serde.torch.ops.table import OPS, Export, Import, Scalar, Value
from serde.torch.ops.written import cast


@OPS.imports("aten::linear")
def import_linear(ctx: Import, input: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A weight of one axis is a matrix of one row whose result axis is dropped."""
    if ctx.type(weight).rank == 1:
        found = build_matmul(ctx, input, weight)
        return found if bias is None else relay.add(found, bias)
    if isinstance(weight, Call) and called_name(weight) == "take":
        input, weight = _in_order(input, weight)
    found = relay.nn.dense(input, weight, units=None)
    if bias is None:
        return found
    if ctx.type(bias).rank != 1:
        return relay.add(found, bias)
    return relay.nn.bias_add(found, bias, axis=-1)


def _in_order(data: Expr, weight: Call) -> tuple[Expr, Expr]:
    """Return data and weight; the data is permuted where columns of an unpacked weight are."""
    columns, order = weight.args
    known = order.data.tolist() if isinstance(order, Constant) and order.data.ndim == 1 else []
    width = len(known) if sorted(known) == [*range(len(known))] else -1
    whole = tensor_type(columns).shape[1:] == (width,)
    if not unpacks(columns) or weight.attrs["axis"] != 1 or not whole:
        return data, weight
    back = const(np.argsort(known).astype(np.int32))
    return call("take", data, back, axis=-1, mode="fast"), columns


def _widened(ctx: Export, a: Value, b: Value) -> tuple[Value, Value, str]:
    """Return two operands in a dtype that holds their product's sums, which PyTorch multiplies."""
    wanted = ctx.result_type().dtype
    own = ctx.type(a).dtype
    if is_float(own) and is_float(wanted):
        work = wanted if np.dtype(wanted).itemsize > np.dtype(own).itemsize else own
    elif is_float(own) or is_float(wanted):
        raise Unsupported(f"a product of {own} as {wanted}")
    else:
        work = wanted if wanted in ("int32", "int64") else "int64"
    return cast(ctx, a, work), cast(ctx, b, work), work


def _transposed(ctx: Export, x: Value, rank: int) -> Value:
    return ctx.method(x, "t") if rank == 2 else ctx.method(x, "transpose", -2, -1)


@OPS.exports("nn.dense", ignored=("units", "out_dtype"))
def export_dense(ctx: Export, data: Value, weight: Value, bias: Value | None = None) -> Value:
    """Integers have no layer: their product is one of matrices."""
    shape, dtype = ctx.type(weight).shape, ctx.type(data).dtype
    if not is_float(dtype):
        a, b, work = _widened(ctx, data, weight)
        result = ctx.infix("@", a, _transposed(ctx, b, 2))
        result = cast(ctx, result, ctx.result_type().dtype, work)
        return result if bias is None else ctx.infix("+", result, bias)
    x, w, work = _widened(ctx, data, weight)
    fixed = [each for each in shape if isinstance(each, int)]
    if w is weight and ctx.is_weight(weight, bias) and len(fixed) == 2:
        weights = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
        options = {"bias": False} if bias is None else {}
        result = ctx.layer(
            "nn.Linear", (x,), weights, in_features=fixed[1], out_features=fixed[0], **options
        )
    else:
        result = ctx.call("F.linear", x, w, *([] if bias is None else [bias]))
    return cast(ctx, result, ctx.result_type().dtype, work)


@OPS.imports("aten::matmul", "aten::linalg_matmul", "aten::vdot")
@OPS.imports("aten::mm", "aten::bmm", renamed={"mat2": "other"})
@OPS.imports("aten::mv", renamed={"vec": "other"})
@OPS.imports("aten::dot", renamed={"tensor": "other"})
def build_matmul(ctx: Import, self: Expr, other: Expr) -> Expr:
    """Return a product of matrices, in the operator of Relay that says it most plainly."""
    left, right = ctx.type(self).rank, ctx.type(other).rank
    if right == 2 and left > 1:
        return call("nn.matmul", self, other, units=None)
    if left == right == 3:
        return relay.nn.batch_matmul(self, other, transpose_b=False)
    return call("serde.matmul", self, other)


def _add_product(ctx: Import, x: Expr, product: Expr, beta: Scalar, alpha: Scalar) -> Expr:
    """Return ``beta * x + alpha * product``; a `beta` of 0 leaves out even what is no number."""
    found = scale(ctx, product, alpha)
    if not isinstance(beta, Expr) and beta == 0:
        return found
    if ctx.dtype(found) == "bool":
        return relay.logical_or(scale(ctx, x, beta), found)
    return relay.add(scale(ctx, x, beta), found)


@OPS.imports("aten::addmm")
@OPS.imports("aten::addmv", renamed={"mat": "mat1", "vec": "mat2"})
@OPS.imports("aten::baddbmm", renamed={"batch1": "mat1", "batch2": "mat2"})
def import_addmm(
    ctx: Import, self: Expr, mat1: Expr, mat2: Expr, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Expr:
    return _add_product(ctx, self, build_matmul(ctx, mat1, mat2), beta, alpha)


@OPS.imports("aten::addbmm")
def import_addbmm(
    ctx: Import, self: Expr, batch1: Expr, batch2: Expr, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Expr:
    total = relay.einsum([batch1, batch2], "bij,bjk->ik")
    return _add_product(ctx, self, total, beta, alpha)


@OPS.imports("aten::addr")
def import_addr(
    ctx: Import, self: Expr, vec1: Expr, vec2: Expr, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Expr:
    """Operands may have several dtypes, unlike those of other products."""

    def function(x: Expr, one: Expr, two: Expr) -> Expr:
        return _add_product(ctx, x, import_outer(ctx, one, two), beta, alpha)

    return round_once(ctx, function, self, vec1, vec2, floats=False)


@OPS.imports("aten::outer", "aten::ger")
def import_outer(ctx: Import, self: Expr, vec2: Expr) -> Expr:
    one, two = ctx.promote(self, vec2)
    column = relay.expand_dims(one, axis=1)
    if ctx.dtype(one) == "bool":
        return relay.logical_and(column, two)
    return relay.multiply(column, two)


@OPS.imports("aten::inner")
def import_inner(ctx: Import, self: Expr, other: Expr) -> Expr:
    """A sum over the last axis of both; a scalar is a factor."""
    if not ctx.type(self).rank or not ctx.type(other).rank:
        return relay.multiply(self, other)
    return relay.einsum([self, other], _contraction(ctx, self, other, [-1], [-1]))


def _contraction(
    ctx: Import, a: Expr, b: Expr, axes_a: Sequence[int], axes_b: Sequence[int]
) -> str:
    """Return the equation of a sum of products over pairs of axes."""
    ranks = ctx.type(a).rank, ctx.type(b).rank
    left = list(ascii_letters[: ranks[0]])
    right = list(ascii_letters[ranks[0] : sum(ranks)])
    if sum(ranks) > len(ascii_letters):
        raise Unsupported(f"a product of tensors of ranks {ranks[0]} and {ranks[1]}")
    if len(axes_a) != len(axes_b):
        raise Unsupported(f"a product over axes {list(axes_a)} and {list(axes_b)}")
    for x in (a, b) if axes_a else ():
        ctx.require_rank(x, 1)
    for one, two in zip(axes_a, axes_b, strict=True):
        right[ctx.axis(b, two)] = left[ctx.axis(a, one)]
    free = [letter for letter in left if letter not in right]
    free += [letter for letter in right if letter not in left]
    return f"{''.join(left)},{''.join(right)}->{''.join(free)}"


@OPS.imports("aten::tensordot")
def import_tensordot(
    ctx: Import, self: Expr, other: Expr, *, dims_self: tuple[int, ...], dims_other: tuple[int, ...]
) -> Expr:
    return relay.einsum([self, other], _contraction(ctx, self, other, dims_self, dims_other))


@OPS.imports("aten::einsum", ignored=("path",))
def import_einsum(ctx: Import, *tensors: Expr, equation: str) -> Expr:
    """What is summed of one tensor alone is summed before, integers as int64."""
    plain = equation.replace(" ", "")
    terms, result = parse_equation(plain)
    letters = [letter for term in terms for letter in set(term) - {"."}]
    alone = [letter for letter in letters if letters.count(letter) == 1 and letter not in result]
    operands = [as_summed(ctx, x, None) if alone else x for x in tensors]
    return relay.einsum(operands, plain)


@OPS.exports("einsum")
def export_einsum(ctx: Export, data: tuple[Value, ...], *, equation: str) -> Value:
    """PyTorch adds no integers of its own accord in few bits, so they are made wider."""
    dtype = ctx.type(data[0]).dtype
    work = dtype if is_float(dtype) or dtype in ("int32", "int64") else "int64"
    equation = equation.replace(" ", "")
    if set(equation) - set(string.ascii_letters) - set(".,->"):
        raise Unsupported(f"the equation {equation!r}")
    given = [cast(ctx, each, work) for each in data]
    return cast(ctx, ctx.call("torch.einsum", equation, given), dtype, work)


@OPS.imports("aten::linalg_vecdot")
def import_vecdot(ctx: Import, x: Expr, y: Expr, *, dim: int = -1) -> Expr:
    one, two = ctx.promote(x, y)
    product = relay.multiply(one, two)
    return relay.sum(product, axis=[ctx.axis(product, dim)])


@OPS.imports("aten::kron")
def import_kron(ctx: Import, self: Expr, other: Expr) -> Expr:
    """Each element of the first times the whole of the second, axis by axis."""
    one, two = ctx.promote(self, other)
    rank = max(ctx.type(one).rank, ctx.type(two).rank)
    one, two = (
        relay.expand_dims(x, 0, rank - ctx.type(x).rank) if ctx.type(x).rank < rank else x
        for x in (one, two)
    )
    for axis in range(rank):
        one = relay.expand_dims(one, 2 * axis + 1)
        two = relay.expand_dims(two, 2 * axis)
    joint = relay.logical_and if ctx.dtype(one) == "bool" else relay.multiply
    return relay.reshape(joint(one, two), newshape=(-3,) * rank)


@OPS.imports("aten::chain_matmul")
def import_chain_matmul(ctx: Import, *matrices: Expr) -> Expr:
    return reduce(lambda a, b: build_matmul(ctx, a, b), matrices)


@OPS.imports("aten::linalg_multi_dot")
def import_multi_dot(ctx: Import, *tensors: Expr) -> Expr:
    return reduce(lambda a, b: build_matmul(ctx, a, b), tensors)


def _cross(ctx: Import, a: Expr, b: Expr, axis: int) -> Expr:
    following, last = (Constant(np.array(places)) for places in ([1, 2, 0], [2, 0, 1]))
    one = relay.multiply(relay.take(a, following, axis=axis), relay.take(b, last, axis=axis))
    two = relay.multiply(relay.take(a, last, axis=axis), relay.take(b, following, axis=axis))
    return relay.subtract(one, two)


@OPS.imports("aten::linalg_cross")
def import_linalg_cross(ctx: Import, self: Expr, other: Expr, *, dim: int = -1) -> Expr:
    """The axis is counted from the end, for both sides broadcast."""
    one, two = ctx.promote(self, other)
    rank = max(ctx.type(one).rank, ctx.type(two).rank)
    place = dim if dim < 0 else dim - rank
    return _cross(ctx, one, two, place)


@OPS.imports("aten::cross")
def import_cross(ctx: Import, self: Expr, other: Expr, *, dim: int | None = None) -> Expr:
    """Without an axis, it is the first one of length 3."""
    if dim is None:
        shape = ctx.type(self).shape
        if 3 not in shape:
            raise Unsupported("a cross product of tensors without an axis of length 3")
        dim = shape.index(3) - len(shape)
    return import_linalg_cross(ctx, self, other, dim=dim)


def power_of(ctx: Import, x: Expr, exponent: int) -> Expr:
    """Return a matrix times itself, `exponent` times, which is at least 1."""
    found: Expr | None = None
    while True:
        if exponent % 2:
            found = x if found is None else build_matmul(ctx, found, x)
        exponent //= 2
        if not exponent:
            break
        x = build_matmul(ctx, x, x)
    if found is None:
        raise Unsupported("a power below 1")
    return found


@OPS.exports("nn.matmul", ignored=("units", "out_dtype"))
@OPS.exports("nn.batch_matmul", ignored=("out_dtype",))
def export_nn_matmul(
    ctx: Export,
    tensor_a: Value,
    tensor_b: Value,
    bias: Value | None = None,
    *,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    a, b, work = _widened(ctx, tensor_a, tensor_b)
    if transpose_a:
        a = _transposed(ctx, a, ctx.type(tensor_a).rank)
    if transpose_b:
        b = _transposed(ctx, b, ctx.type(tensor_b).rank)
    result = cast(ctx, ctx.infix("@", a, b), ctx.result_type().dtype, work)
    return result if bias is None else ctx.infix("+", result, bias)


@OPS.exports("serde.matmul")
def export_serde_matmul(ctx: Export, a: Value, b: Value) -> Value:
    x, y, work = _widened(ctx, a, b)
    return cast(ctx, ctx.infix("@", x, y), ctx.result_type().dtype, work)


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Export, data: Value, bias: Value, *, axis: int) -> Value:
    behind = ctx.type(data).rank - axis % ctx.type(data).rank - 1
    if behind:
        bias = ctx.method(bias, "reshape", -1, *[1] * behind)
    return ctx.infix("+", data, bias)


@OPS.imports("aten::bilinear")
def import_bilinear(
    ctx: Import, input1: Expr, input2: Expr, weight: Expr, bias: Expr | None = None
) -> Expr:
    """``y[..., o] = sum(x1[..., i] * weight[o, i, j] * x2[..., j]) + bias[o]``."""
    ctx.require_rank(weight, 3, 3)
    ctx.require_rank(input1, 1)
    outputs, inputs, others = ctx.static_shape(weight)
    rank = ctx.type(input1).rank
    rows = relay.reshape(input1, (-1, inputs))
    columns = relay.reshape(input2, (-1, others))
    matrix = relay.reshape(relay.transpose(weight, axes=[1, 0, 2]), (inputs, outputs * others))
    left = relay.reshape(relay.nn.matmul(rows, matrix, units=None), (-1, outputs, others))
    found = relay.sum(relay.multiply(left, relay.expand_dims(columns, axis=1)), axis=[2])
    if bias is not None:
        found = relay.nn.bias_add(found, bias, axis=-1)
    if rank == 2:
        return found
    head = [ctx.size(input1, axis) for axis in range(rank - 1)]
    return relay.reshape(found, ctx.shape_vector([*head, outputs]))


@OPS.imports("aten::_trilinear", ignored=("unroll_dim",))
def import_trilinear(
    ctx: Import, i1: Expr, i2: Expr, i3: Expr,
    *, expand1: tuple[int, ...], expand2: tuple[int, ...], expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
) -> Expr:  # fmt: skip
    """The product of three tensors, each with axes of length 1 put in, summed over axes."""
    parts = []
    for x, axes in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for axis in sorted(axes):
            x = relay.expand_dims(x, axis=axis)
        parts.append(x)
    return relay.sum(functools.reduce(relay.multiply, parts), axis=list(sumdim))


@OPS.imports("aten::_grouped_mm")
def import_grouped_mm(
    ctx: Import,
    self: Expr,
    mat2: Expr,
    offs: Expr | None = None,
    bias: Expr | None = None,
    *,
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Expr:
    """Products of groups that end where `offs` says: of rows, of columns, or of what is summed.

    All products are made, and those that belong to another group left out.
    """
    if bias is not None:
        raise Unsupported("a bias of grouped products")
    ranks = (ctx.type(self).rank, ctx.type(mat2).rank)
    dtype = ctx.dtype(self) if out_dtype is None else dtype_name(out_dtype)
    if offs is None:
        found = relay.nn.batch_matmul(self, mat2, transpose_b=False)
    elif ranks == (2, 3):
        every = relay.nn.batch_matmul(_per_group(ctx, self, mat2), mat2, transpose_b=False)
        own = relay.expand_dims(_members(ctx, offs, self, 0), axis=2)
        found = relay.sum(_keep(ctx, own, every), axis=[0])
    elif ranks == (3, 2):
        every = relay.nn.batch_matmul(self, _per_group(ctx, mat2, self), transpose_b=False)
        own = relay.expand_dims(_members(ctx, offs, mat2, 1), axis=1)
        found = relay.sum(_keep(ctx, own, every), axis=[0])
    else:
        own = relay.expand_dims(_members(ctx, offs, self, 1), axis=1)
        left = _keep(ctx, own, relay.expand_dims(self, axis=0))
        (groups,) = ctx.static_lengths(offs, [0])
        right = relay.repeat(relay.expand_dims(mat2, axis=0), groups, axis=0)
        found = relay.nn.batch_matmul(left, right, transpose_b=False)
    return ctx.cast(found, dtype)


@OPS.imports("transformers::grouped_mm_fallback")
def import_grouped_rows(ctx: Import, input: Expr, weight: Expr, offs: Expr) -> Expr:
    """What the package transformers registers for dtypes that PyTorch's own operator refuses."""
    return import_grouped_mm(ctx, input, weight, offs)


def _per_group(ctx: Import, x: Expr, groups: Expr) -> Expr:
    (count,) = ctx.static_lengths(groups, [0])
    return relay.repeat(relay.expand_dims(x, axis=0), count, axis=0)


def _keep(ctx: Import, own: Expr, x: Expr) -> Expr:
    return relay.where(own, x, ctx.scalar(0, ctx.dtype(x)))


def _members(ctx: Import, offs: Expr, x: Expr, axis: int) -> Expr:
    """Return for each group and element of an axis whether the one holds the other."""
    ends = relay.expand_dims(relay.cast(offs, "int64"), axis=1)
    (groups,) = ctx.static_lengths(offs, [0])
    padded = relay.nn.pad(ends, [(1, 0), (0, 0)], 0)
    starts = relay.strided_slice(padded, begin=[0], end=[groups], strides=[1], axes=[0])
    length = ctx.size(x, axis)
    zero, one = relay.const(0, "int64"), relay.const(1, "int64")
    if isinstance(length, int):
        places: Expr = relay.const(allocation.arange(length), "int64")
    else:
        places = relay.arange(zero, length, one, dtype="int64")
    return relay.logical_and(relay.less_equal(starts, places), relay.less(places, ends))
