"""Matrix products, with packed weights too, and the bias that follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any as AnyValue

import numpy as np

from serde.core import dataclass, dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, broadcast, is_float, join_dim, normalize_axis, require_same_dtype
from serde.relay.ir.expr import Call, Expr, Tuple
from serde.relay.ir.layout import LayoutPlan, change_layout
from serde.relay.ir.precision import widen
from serde.relay.ir.registry import Arguments, Array, builder, call, get, relay_op, sample, tensor
from serde.relay.ir.shapes import broadcast_dim
from serde.relay.ir.traits import Fusion, FusionPattern, Linear, SameAxes, Work
from serde.relay.ir.types import TensorType, Type
from serde.relay.ir.work import PRODUCT, lengths
from serde.relay.lowering.einsum import decompose_einsum

__all__ = ["MatMul", "exact_operand", "parse_equation", "product_dtype", "to_product_dtype"]

Types = tuple[TensorType | None, ...]


@dataclass(frozen=True, kw_only=True)
class MatMul:
    """Attributes of ``nn.matmul``."""

    units: Dim | None
    out_dtype: np.dtype[AnyValue] | None = None
    transpose_a: bool = False
    transpose_b: bool = False


def product_dtype(a: TensorType, b: TensorType, out_dtype: np.dtype[AnyValue] | None) -> str:
    """Return the dtype of a sum of products: `out_dtype` if given, else that of `a`."""
    if is_float(a.dtype) or is_float(b.dtype):
        require_same_dtype(a, b)
    return a.dtype if out_dtype is None else dtype_name(out_dtype)


def exact_operand(data: Array, depth: int) -> Array:
    """Return `data` in a dtype in which sums of `depth` products of it lose as little as possible.

    Integers of at most 16 bits become float64, where such sums are exact and the
    products fast; narrow floating-point numbers become float32.
    """
    if data.dtype.kind not in "iub":
        return widen(data)
    if data.dtype.itemsize <= 2 and depth < 1 << 20:
        return data.astype(np.float64)
    return data.astype(np.int64)


def to_product_dtype(total: Array, data: Array, out_dtype: np.dtype[AnyValue] | None) -> Array:
    """Return sums computed with :func:`exact_operand` in the dtype that the operator has."""
    dtype = data.dtype if out_dtype is None else out_dtype
    if data.dtype.kind in "iub" and total.dtype.kind == "f" and dtype.kind in "iub":
        total = total.astype(np.int64)
    return total.astype(dtype, copy=False)


def _multiply(a: Array, b: Array, out_dtype: np.dtype[AnyValue] | None) -> Array:
    depth = a.shape[-1]
    total = np.matmul(exact_operand(a, depth), exact_operand(b, depth))
    return to_product_dtype(total, a, out_dtype)


def _matmul_type(a: TensorType, b: TensorType, *, matmul: MatMul) -> TensorType:
    """The inner lengths must agree, and `units` with the columns."""
    dtype = product_dtype(a, b, matmul.out_dtype)
    if a.rank < (2 if matmul.transpose_a else 1) or b.rank != 2:
        raise TypeInferenceError(f"cannot multiply {a!r} by a matrix {b!r}")
    rows = (*a.shape[:-2], a.shape[-1]) if matmul.transpose_a else a.shape[:-1]
    inner = a.shape[-2] if matmul.transpose_a else a.shape[-1]
    outer, depth = b.shape if matmul.transpose_b else b.shape[::-1]
    try:
        join_dim(inner, depth)
        columns = outer if matmul.units is None else join_dim(outer, matmul.units)
    except TypeInferenceError:
        asked = "" if matmul.units is None else f" into {matmul.units} units"
        raise TypeInferenceError(f"cannot multiply {a!r} by {b!r}{asked}") from None
    return TensorType((*rows, columns), dtype)


def _complete_matmul(a: TensorType | None, b: TensorType | None, *, matmul: MatMul) -> Types:
    units = matmul.units
    if a is None or b is not None or units is None or a.rank < (2 if matmul.transpose_a else 1):
        return a, b
    inner = a.shape[-2] if matmul.transpose_a else a.shape[-1]
    return a, TensorType((units, inner) if matmul.transpose_b else (inner, units), a.dtype)


def _of_dense(function: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    return lambda a, b, **attrs: function(a, b, matmul=MatMul(transpose_b=True, **attrs))


@relay_op(
    "nn.dense",
    traits=(PRODUCT, Linear),
    infer=_of_dense(_matmul_type),
    complete=_of_dense(_complete_matmul),
    samples=[
        sample((4, 6), (5, 6), units=5),
        sample((2, 3, 6), (5, 6), units=None),
        sample(tensor((4, 6), "int8"), tensor((5, 6), "int8"), units=5, out_dtype="int32"),
        sample(tensor((4, 6), "float16"), tensor((5, 6), "float16"), units=5),
    ],
)
def dense(
    data: Array, weight: Array, *, units: Dim | None, out_dtype: np.dtype[AnyValue] | None = None
) -> Array:
    """``y = data @ weight.T``, with a weight of shape (units, length of a row)."""
    return _multiply(data, weight.T, out_dtype)


@builder("nn.dense")
def build_dense(data: Expr, weight: Expr, units: AnyValue = None, out_dtype: AnyValue = "") -> Expr:
    """Build ``nn.dense``; without `units` the weight must have a type."""
    return call("nn.dense", data, weight, units=units, out_dtype=out_dtype)


@relay_op(
    "nn.matmul",
    traits=(PRODUCT, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_matmul_type,
    complete=_complete_matmul,
    samples=[
        sample((4, 6), (6, 5), units=None),
        sample((2, 6, 4), (5, 6), units=5, transpose_a=True, transpose_b=True),
    ],
)
def matmul(tensor_a: Array, tensor_b: Array, *, matmul: MatMul) -> Array:
    """``y = tensor_a @ tensor_b``, the last two axes of each transposed as asked."""
    left = np.swapaxes(tensor_a, -1, -2) if matmul.transpose_a else tensor_a
    return _multiply(left, tensor_b.T if matmul.transpose_b else tensor_b, matmul.out_dtype)


@builder("nn.matmul")
def build_matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    units: AnyValue = None,
    out_dtype: AnyValue = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Expr:
    """Build ``nn.matmul``, or ``nn.dense`` where only the right side is transposed, as TVM does."""
    if transpose_b and not transpose_a:
        return build_dense(tensor_a, tensor_b, units, out_dtype)
    return call(
        "nn.matmul", tensor_a, tensor_b, units=units, out_dtype=out_dtype, transpose_a=transpose_a,
        transpose_b=transpose_b,
    )  # fmt: skip


def _batch_matmul_type(
    a: TensorType,
    b: TensorType,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    transpose_a: bool,
    transpose_b: bool,
) -> TensorType:
    dtype = product_dtype(a, b, out_dtype)
    if a.rank != 3 or b.rank != 3:
        raise TypeInferenceError(f"expected tensors of rank 3, found {a!r} and {b!r}")
    rows, inner = a.shape[:0:-1] if transpose_a else a.shape[1:]
    columns, depth = b.shape[1:] if transpose_b else b.shape[:0:-1]
    try:
        join_dim(inner, depth)
        batch = broadcast_dim(a.shape[0], b.shape[0])
    except TypeInferenceError:
        raise TypeInferenceError(f"cannot multiply {a!r} by {b!r}") from None
    return TensorType((batch, rows, columns), dtype)


@relay_op(
    "nn.batch_matmul",
    traits=(PRODUCT, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_batch_matmul_type,
    samples=[
        sample((2, 3, 4), (2, 4, 5)),
        sample((2, 4, 3), (1, 5, 4), transpose_a=True, transpose_b=True),
    ],
)
def batch_matmul(
    tensor_a: Array,
    tensor_b: Array,
    *,
    out_dtype: np.dtype[AnyValue] | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Array:
    """``z[b] = x[b] @ y[b]``, transposed as asked; a batch of one serves all of the other's."""
    left = np.swapaxes(tensor_a, 1, 2) if transpose_a else tensor_a
    right = np.swapaxes(tensor_b, 1, 2) if transpose_b else tensor_b
    return _multiply(left, right, out_dtype)


@builder("nn.batch_matmul")
def build_batch_matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    out_dtype: AnyValue = "",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Expr:
    """Build ``nn.batch_matmul``; as in TVM, the right side is transposed unless told otherwise."""
    return call(
        "nn.batch_matmul",
        tensor_a,
        tensor_b,
        out_dtype=out_dtype,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


def _bias_add_type(data: TensorType, bias: TensorType, *, axis: int) -> TensorType:
    require_same_dtype(data, bias)
    axis = normalize_axis(axis, data.rank)
    if bias.rank != 1:
        raise TypeInferenceError(f"expected a bias of rank 1, found {bias!r}")
    shape = list(data.shape)
    try:
        shape[axis] = join_dim(shape[axis], bias.shape[0])
    except TypeInferenceError:
        raise TypeInferenceError(
            f"a bias of {bias.shape[0]} does not fit axis {axis} of {data!r}"
        ) from None
    return TensorType(shape, data.dtype)


def _complete_bias_add(data: TensorType | None, bias: TensorType | None, *, axis: int) -> Types:
    if data is None or bias is not None:
        return data, bias
    return data, TensorType([data.shape[normalize_axis(axis, data.rank)]], data.dtype)


@relay_op(
    "nn.bias_add",
    traits=(SameAxes(("axis",)), Fusion(FusionPattern.BROADCAST)),
    infer=_bias_add_type,
    complete=_complete_bias_add,
    samples=[sample((2, 3, 4), (3,)), sample((2, 3, 4), (4,), axis=-1)],
)
def bias_add(data: Array, bias: Array, *, axis: int = 1) -> Array:
    """``y = x + bias[c]``, where c is the index along `axis`."""
    shape = [1] * data.ndim
    shape[axis] = -1
    return data + bias.reshape(shape)


def _einsum_type(data: tuple[TensorType, ...], *, equation: str) -> TensorType:
    dtype = require_same_dtype(*data)
    inputs, output = parse_equation(equation)
    if len(inputs) != len(data):
        raise TypeInferenceError(f"{equation!r} names {len(inputs)} tensors, found {len(data)}")
    lengths: dict[str, Dim] = {}
    spread: tuple[Dim, ...] = ()
    for letters, type_ in zip(inputs, data, strict=True):
        before, dots, after = letters.partition("...")
        free = type_.rank - len(before) - len(after)
        if free < 0 or (free and not dots):
            raise TypeInferenceError(f"{letters!r} does not describe {type_!r}")
        ends = type_.shape[: len(before)] + type_.shape[type_.rank - len(after) :]
        for letter, dim in zip(before + after, ends, strict=True):
            lengths[letter] = broadcast_dim(lengths.get(letter, dim), dim)
        spread = broadcast(spread, type_.shape[len(before) : len(before) + free])
    before, dots, after = output.partition("...")
    if any(letter not in lengths for letter in before + after):
        raise TypeInferenceError(f"{equation!r}: the result has an index that no tensor has")
    head, tail = [lengths[a] for a in before], [lengths[a] for a in after]
    return TensorType([*head, *(spread if dots else ()), *tail], dtype)


def parse_equation(equation: str) -> tuple[list[str], str]:
    """Return the indices of each tensor and of the result, which may be implied."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    for term in (*inputs, right):
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise TypeInferenceError(f"{equation!r} is no Einstein summation")
    if arrow:
        if len(set(right.replace("...", ""))) != len(right.replace("...", "")):
            raise TypeInferenceError(f"{equation!r}: the result names an index twice")
        return inputs, right
    every = left.replace("...", "").replace(",", "")
    once = sorted(letter for letter in set(every) if every.count(letter) == 1)
    return inputs, ("..." if "..." in left else "") + "".join(once)


def _count_products(call: Call) -> int:
    """Return the product of the lengths of all indices, which no order of products exceeds."""
    fields = call.args[0].fields if isinstance(call.args[0], Tuple) else call.args
    inputs, _ = parse_equation(call.attrs["equation"])
    sides: dict[str, int] = {}
    for letters, field in zip(inputs, fields, strict=False):
        before, dots, after = letters.partition("...")
        shape = lengths(field)
        named = len(shape) - len(after)
        sides.update(zip(after, shape[named:], strict=False))
        sides.update(zip(before, shape, strict=False))
        if dots:
            free = prod(shape[len(before) : named])
            sides["..."] = max(free, sides.get("...", 1))
    return prod(sides.values())


@relay_op(
    "einsum",
    traits=(Work(_count_products), Fusion(FusionPattern.INJECTIVE)),
    infer=_einsum_type,
    decompose=decompose_einsum,
    samples=[
        sample([(2, 3), (3, 4)], equation="ij,jk->ik"),
        sample([(2, 3, 4), (2, 4, 5)], equation="...ij,...jk"),
        sample([(3, 3)], equation="ii->i"),
    ],
)
def einsum(data: tuple[Array, ...], *, equation: str) -> Array:
    """Sum of products of tensors over the indices that the result does not have."""
    wide = [widen(item) for item in data]
    return np.asarray(np.einsum(equation, *wide, optimize=True)).astype(data[0].dtype, copy=False)


@builder("einsum")
def build_einsum(data: Expr | Iterable[Expr], equation: str) -> Expr:
    """Build ``einsum`` of a tuple or several expressions."""
    operand = data if isinstance(data, Expr) else list(data)
    return call("einsum", operand, equation=equation)


def _dense_pack_type(
    data: TensorType, weight: TensorType, *, weight_layout: str, **attrs: AnyValue
) -> Type:
    if data.rank != 2:
        raise TypeInferenceError(f"expected data of rank 2, found {data!r}")
    plain = TensorType(LayoutPlan(weight.shape, weight_layout, "NC").shape, weight.dtype)
    result: Type = get("nn.dense").infer(data, plain, **attrs)
    return result


def _as_dense(data: Expr, weight: Expr, *, weight_layout: str, **attrs: AnyValue) -> Expr:
    plain = call("layout_transform", weight, src_layout=weight_layout, dst_layout="NC")
    return call("nn.dense", data, plain, **attrs)


@relay_op(
    "nn.contrib_dense_pack",
    traits=(PRODUCT, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_dense_pack_type,
    decompose=_as_dense,
    samples=[
        sample((3, 4), (2, 4, 3), units=6, weight_layout="NC3n"),
        sample((2, 6), (2, 3, 4, 2), units=None, weight_layout="NC4n2c"),
    ],
    arguments=Arguments(order=("weight_layout",), defaults={"units": None}),
)
def contrib_dense_pack(
    data: Array,
    weight: Array,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None = None,
    weight_layout: str = "NC",
) -> Array:
    """As ``nn.dense``, of a weight kept in blocks such as those of NC16n."""
    plain = change_layout(weight, weight_layout, "NC")
    result: Array = get("nn.dense").kernel(data, plain, units=units, out_dtype=out_dtype)
    return result
