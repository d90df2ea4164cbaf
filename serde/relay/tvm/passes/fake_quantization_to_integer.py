"""What TVM's operators become where their operands are quantised.

Each function gets a call whose operands are integers already, and what expressions stand for; the
entry of the call itself says what the quantisation at the end of its region wants. It returns the
integer form and what that stands for. A function raises where it knows no form.

Source: the functions registered as ``FTVMFakeQuantizationToInteger`` in TVM 0.18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue, Final, TypeVar

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import RelayError
from serde.relay.ir import call, free_vars, infer_function, is_float, post_order, registration
from serde.relay.ir.affine_type import AffineType, TensorAffineType, TupleAffineType
from serde.relay.ir.builders import lookup_builder
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    Tuple,
    TupleWrapper,
    const,
    tensor_type,
)
from serde.relay.run.interpreter import evaluate

__all__ = [
    "approx_equal", "fold_constant", "get_zeros", "register_fake_quantization_to_integer",
    "register_optional_fake_quantization_to_integer",
]  # fmt: skip

Types = Mapping[Expr, AffineType]
Result = list[AnyValue]
RuleT = TypeVar("RuleT", bound=Callable[[Call, Types], Result])

register_fake_quantization_to_integer = registration("FTVMFakeQuantizationToInteger")
register_optional_fake_quantization_to_integer = registration(
    "FTVMOptionalFakeQuantizationToInteger"
)


def _rule(
    name: str, register: Callable[..., AnyValue] = register_fake_quantization_to_integer
) -> Callable[[RuleT], RuleT]:
    def decorate(rule: RuleT) -> RuleT:
        register(name, rule)
        return rule

    return decorate


def fold_constant(expr: Expr) -> Expr:
    """Return the value of what depends on constants alone, else the expression."""
    if isinstance(expr, Constant):
        return expr
    closed = all(
        isinstance(node, (Constant, Tuple)) or (isinstance(node, Call) and isinstance(node.op, Op))
        for node in post_order(expr)
    )
    return Constant(np.asarray(evaluate(expr))) if closed else expr


def get_zeros(scale: Expr) -> Expr:
    """Return zero points for a scale: zeros of int32 in its shape."""
    return fold_constant(call("cast", call("zeros_like", scale), dtype="int32"))


def approx_equal(x: Expr, y: Expr) -> bool:
    """Whether two constants are about equal, or two other expressions the same."""
    x, y = fold_constant(x), fold_constant(y)
    if isinstance(x, Constant) and isinstance(y, Constant):
        return bool(np.allclose(x.data, y.data))
    return structural_equal(x, y)


def _same(a: TensorAffineType, b: TensorAffineType) -> bool:
    return (
        a.dtype == b.dtype
        and approx_equal(a.scale, b.scale)
        and approx_equal(a.zero_point, b.zero_point)
    )


def _tensor(types: Types, expr: Expr) -> TensorAffineType:
    """Return what a tensor stands for."""
    found = types.get(expr)
    if not isinstance(found, TensorAffineType):
        raise RelayError(f"{expr!r} is no quantised tensor")
    return found


def _build(path: str, *args: AnyValue, **attrs: AnyValue) -> Expr:
    """Call the builder at a path below ``relay``."""
    built = lookup_builder(path)(*args, **attrs)
    return built.astuple() if isinstance(built, TupleWrapper) else built


def _requantize(
    x: Expr, found: TensorAffineType, wanted: TensorAffineType, dtype: str | None = None
) -> Expr:
    return call(
        "qnn.requantize", x, fold_constant(found.scale), fold_constant(found.zero_point),
        wanted.scale, wanted.zero_point, out_dtype=wanted.dtype if dtype is None else dtype,
        axis=found.axis,
    )  # fmt: skip


def _real_constant(x: Expr) -> Constant:
    """Return an operand that is not quantised."""
    if not isinstance(x, Constant) or not is_float(tensor_type(x).dtype):
        raise RelayError(f"{x!r} is neither quantised nor a floating-point constant")
    return x


@_rule("qnn.dequantize")
def convert_dequantize(expr: Call, types: Types) -> Result:
    """Return the integers."""
    return [expr.args[0], types[expr]]


@_rule("qnn.quantize")
def convert_quantize(expr: Call, types: Types) -> Result:
    """Requantise, unless the integers are what is wanted already."""
    data, scale, zero_point = expr.args
    found = _tensor(types, data)
    wanted = TensorAffineType(scale, zero_point, expr.attrs["out_dtype"], expr.attrs["axis"])
    return [data if _same(found, wanted) else _requantize(data, found, wanted), wanted]


def _convert_alike(expr: Call, types: Types) -> Result:
    """Compute on integers what only arranges or chooses elements."""
    return [expr, _tensor(types, expr.args[0])]


for _name in (
    "expand_dims", "image.resize2d", "max", "min", "nn.batch_flatten", "nn.depth_to_space",
    "nn.max_pool2d", "reshape", "squeeze", "strided_slice", "transpose",
):  # fmt: skip
    register_fake_quantization_to_integer(_name, _convert_alike)


def _rescale_to_int32(x: Expr, found: TensorAffineType, wanted: TensorAffineType) -> Expr:
    if _same(found, wanted):
        return call("cast", x, dtype="int32")
    return _requantize(x, found, wanted, "int32")


@_rule("nn.adaptive_avg_pool1d")
@_rule("nn.global_avg_pool2d")
def convert_pooled_mean(expr: Call, types: Types) -> Result:
    """Average what is rescaled beforehand, in int32."""
    found, wanted = _tensor(types, expr.args[0]), _tensor(types, expr)
    level = _rescale_to_int32(expr.args[0], found, wanted)
    name = expr.op.name if isinstance(expr.op, Op) else ""
    mean = call(name, level, **expr.attrs)
    return [mean, TensorAffineType(wanted.scale, wanted.zero_point, "int32", wanted.axis)]


@_rule("nn.avg_pool2d")
def convert_avg_pool2d(expr: Call, types: Types) -> Result:
    """Average what is rescaled beforehand, in int32, and saturate."""
    found, wanted = _tensor(types, expr.args[0]), _tensor(types, expr)
    mean: Expr = call("nn.avg_pool2d", _rescale_to_int32(expr.args[0], found, wanted), **expr.attrs)
    if wanted.dtype != "int32":
        info = np.iinfo(wanted.dtype)
        mean = call("clip", mean, a_min=float(info.min), a_max=float(info.max))
        mean = call("cast", mean, dtype=wanted.dtype)
    return [mean, wanted]


@_rule("broadcast_to")
def convert_broadcast_to(expr: Call, types: Types) -> Result:
    """Broadcast the integers."""
    found = _tensor(types, expr.args[0])
    return [_build("broadcast_to", expr.args[0], expr.attrs["shape"]), found]


@_rule("nn.bias_add")
def convert_bias_add(expr: Call, types: Types) -> Result:
    """Add a bias in the scale of the data; a constant is quantised."""
    data, bias = expr.args
    found = _tensor(types, data)
    if bias in types:
        given = _tensor(types, bias)
        if not _same(found, given):
            target = TensorAffineType(
                fold_constant(found.scale), fold_constant(found.zero_point), found.dtype
            )
            given = TensorAffineType(given.scale, given.zero_point, given.dtype, 0)
            bias = _requantize(bias, given, target)
    else:
        bias = call("qnn.quantize", _real_constant(bias), found.scale, found.zero_point, axis=0,
                    out_dtype=found.dtype)  # fmt: skip
    return [call("nn.bias_add", data, bias, **expr.attrs), found]


def _joint_scale(a: TensorAffineType, b: TensorAffineType) -> Expr:
    return fold_constant(call("multiply", a.scale, b.scale))


def _convert_product(
    expr: Call, types: Types, path: str, axis: Callable[[Mapping[str, AnyValue]], int]
) -> Result:
    """Multiply integers; the result has the product of both scales, and no zero point."""
    data, weight = expr.args
    a, b = _tensor(types, data), _tensor(types, weight)
    attrs = {key: value for key, value in expr.attrs.items() if key != "out_dtype"}
    scale = _joint_scale(a, b)
    operands = (data, weight, a.zero_point, b.zero_point, a.scale, b.scale)
    sums = _build(path, *operands, **attrs)
    return [sums, TensorAffineType(scale, get_zeros(scale), _out_dtype(sums), axis(attrs))]


def _out_dtype(node: Expr) -> str:
    return dtype_name(node.attrs["out_dtype"]) if isinstance(node, Call) else ""


def _channel_axis(attrs: Mapping[str, AnyValue]) -> int:
    layout: str = attrs["out_layout"] or attrs["data_layout"]
    return layout.index("C")


@_rule("nn.conv2d")
def convert_conv2d(expr: Call, types: Types) -> Result:
    """Convolve integers."""
    return _convert_product(expr, types, "qnn.op.conv2d", _channel_axis)


@_rule("nn.conv2d_transpose")
def convert_conv2d_transpose(expr: Call, types: Types) -> Result:
    """Convolve integers, transposed."""
    return _convert_product(expr, types, "qnn.op.conv2d_transpose", _channel_axis)


@_rule("nn.dense")
def convert_dense(expr: Call, types: Types) -> Result:
    """Multiply integers by a weight."""
    return _convert_product(expr, types, "qnn.op.dense", lambda _attrs: 1)


@_rule("nn.batch_matmul")
def convert_batch_matmul(expr: Call, types: Types) -> Result:
    """Multiply matrices of integers.

    Raises:
        RelayError: The matrices lie otherwise than ``qnn.batch_matmul`` is built.
    """
    if expr.attrs["transpose_a"] or not expr.attrs["transpose_b"]:
        raise RelayError("qnn.batch_matmul is built of a transposed right side alone")
    x, y = expr.args
    a, b = _tensor(types, x), _tensor(types, y)
    operands = (x, y, a.zero_point, b.zero_point, a.scale, b.scale)
    sums = _build("qnn.op.batch_matmul", *operands)
    zero = const(0, "int32")
    return [sums, TensorAffineType(_joint_scale(a, b), zero, _out_dtype(sums), a.axis)]


@_rule("concatenate")
def convert_concatenate(expr: Call, types: Types) -> Result:
    """Put integers together, each rescaled to what is wanted."""
    found, wanted = types[expr.args[0]], _tensor(types, expr)
    if not isinstance(found, TupleAffineType):
        raise RelayError("expected a tuple of quantised tensors")
    scales = Tuple([each.scale for each in found.types])
    zeros = Tuple([each.zero_point for each in found.types])
    operands = (expr.args[0], scales, zeros, wanted.scale, wanted.zero_point)
    return [call("qnn.concatenate", *operands, **expr.attrs), wanted]


@_rule("topk")
def convert_topk(expr: Call, types: Types) -> Result:
    """Choose among integers, where values alone are asked for."""
    if expr.attrs["ret_type"] != "values":
        raise RelayError(f"ret_type: expected values, found {expr.attrs['ret_type']}")
    return [expr, _tensor(types, expr.args[0])]


@_rule("take")
def convert_take(expr: Call, types: Types) -> Result:
    """Choose among integers."""
    return [call("take", *expr.args, **expr.attrs), _tensor(types, expr.args[0])]


@_rule("split")
def convert_split(expr: Call, types: Types) -> Result:
    """Take integers apart."""
    sections = expr.attrs["indices_or_sections"]
    count = sections if isinstance(sections, int) else len(sections) + 1
    return [expr, TupleAffineType([_tensor(types, expr.args[0])] * int(count))]


@_rule("clip")
def convert_clip(expr: Call, types: Types) -> Result:
    """Cut integers at the bounds in their scale, which are cut towards zero."""
    data = expr.args[0]
    found = _tensor(types, data)
    low, high = expr.attrs["a_min"], expr.attrs["a_max"]
    scale, zero = fold_constant(found.scale), fold_constant(found.zero_point)
    numbers = [each.data for each in (scale, zero) if isinstance(each, Constant)]
    if len(numbers) == 2 and all(each.size == 1 for each in numbers):
        step, origin = (each.item() for each in numbers)
        bounds = {"a_min": int(low / step + origin), "a_max": int(high / step + origin)}
        return [_build("clip", data, **bounds), found]
    least, greatest = (
        call("qnn.quantize", _along(const(bound, "float32"), scale, data, found.axis), scale, zero,
             axis=found.axis, out_dtype=found.dtype)
        for bound in (low, high)
    )  # fmt: skip
    cut = call("maximum", data, fold_constant(least))
    return [call("minimum", cut, fold_constant(greatest)), found]


def _along(value: Expr, scale: Expr, data: Expr, axis: int) -> Expr:
    """Return a value for each scale, where there are several, in a shape to broadcast with data."""
    shape = tensor_type(_infer(scale)).shape
    if not shape or shape[0] == 1:
        return value
    spread = [1] * tensor_type(_infer(data)).rank
    spread[axis] = -1
    return _build("reshape", _build("broadcast_to", value, shape), tuple(spread))


def _infer(x: Expr) -> Expr:
    if x.type is None:
        infer_function(Function(free_vars(x), x))
    return x


@_rule("nn.relu")
def convert_relu(expr: Call, types: Types) -> Result:
    """Cut integers at the zero point."""
    data = expr.args[0]
    found = _tensor(types, data)
    zero = _along(found.zero_point, found.scale, data, found.axis)
    level = fold_constant(call("cast", zero, dtype=found.dtype))
    return [call("maximum", data, level), found]


@_rule("nn.leaky_relu")
def convert_leaky_relu(expr: Call, types: Types) -> Result:
    """Scale integers below the zero point."""
    data = expr.args[0]
    found, wanted = _tensor(types, data), _tensor(types, expr)
    if found.dtype != wanted.dtype:
        wanted = TensorAffineType(wanted.scale, wanted.zero_point, found.dtype, wanted.axis)
    parameters = (found.scale, found.zero_point, wanted.scale, wanted.zero_point)
    return [call("qnn.leaky_relu", data, *parameters, alpha=expr.attrs["alpha"]), wanted]


@_rule("nn.pad")
def convert_pad(expr: Call, types: Types) -> Result:
    """Pad with the quantised number."""
    data, value = expr.args
    found = _tensor(types, data)
    if value in types:
        given = _tensor(types, value)
        if given != found:
            value = _requantize(value, given, found)
    else:
        value = call("qnn.quantize", _real_constant(value), found.scale, found.zero_point,
                     axis=-1, out_dtype=found.dtype)  # fmt: skip
    return [call("nn.pad", data, value, **expr.attrs), found]


@_rule("mean")
def convert_mean(expr: Call, types: Types) -> Result:
    """Average in int32."""
    found = _tensor(types, expr.args[0])
    mean = call("mean", call("cast", expr.args[0], dtype="int32"), **expr.attrs)
    return [call("cast", mean, dtype=found.dtype), found]


Pair = tuple[Expr, Expr, TensorAffineType, TensorAffineType, TensorAffineType]


def _operands(expr: Call, types: Types) -> Pair:
    """Return both operands, what they stand for, and what is wanted.

    One of them may be a constant: it is quantised as the other is. What is wanted is what the
    left one stands for, where its elements are of another type.
    """
    left, right = expr.args
    known = [_tensor(types, each) if each in types else None for each in (left, right)]
    a, b = known
    if a is None and b is None:
        raise RelayError("neither operand is quantised")
    if a is None and b is not None:
        left, a = _quantize_like(left, b), b
    if b is None and a is not None:
        right, b = _quantize_like(right, a), a
    if a is None or b is None:
        raise RelayError("an operand is not quantised")
    wanted = _tensor(types, expr)
    return left, right, a, b, a if a.dtype != wanted.dtype else wanted


def _quantize_like(x: Expr, like: TensorAffineType) -> Expr:
    return call("qnn.quantize", _real_constant(x), like.scale, like.zero_point, axis=-1,
                out_dtype=like.dtype)  # fmt: skip


def _convert_arithmetic(name: str) -> Callable[[Call, Types], Result]:
    def convert(expr: Call, types: Types) -> Result:
        left, right, a, b, wanted = _operands(expr, types)
        if name == "qnn.add" and _are_sums(a, b, wanted):
            return [call("add", left, right), wanted]
        parameters = (a.scale, a.zero_point, b.scale, b.zero_point)
        operands = (left, right, *parameters, wanted.scale, wanted.zero_point)
        return [call(name, *operands, lhs_axis=a.axis, rhs_axis=b.axis), wanted]

    convert.__doc__ = f"Return ``{name}``, of operands in scales of their own."
    return convert


def _are_sums(a: TensorAffineType, b: TensorAffineType, wanted: TensorAffineType) -> bool:
    """Whether operands and result are int32 in one scale without zero point."""
    zero = fold_constant(wanted.zero_point)
    plain = isinstance(zero, Constant) and not zero.data.any()
    return plain and a.dtype == "int32" and _same(a, b) and _same(a, wanted)


for _name, _integer in (("add", "qnn.add"), ("multiply", "qnn.mul"), ("subtract", "qnn.subtract")):
    register_fake_quantization_to_integer(_name, _convert_arithmetic(_integer))


def _convert_choice(name: str) -> Callable[[Call, Types], Result]:
    def convert(expr: Call, types: Types) -> Result:
        left, right, a, b, wanted = _operands(expr, types)
        if a != wanted:
            left = _requantize(left, a, wanted)
        if b != wanted:
            right = _requantize(right, b, wanted)
        return [call(name, left, right), wanted]

    convert.__doc__ = f"Return ``{name}`` of operands in the scale that is wanted."
    return convert


for _name in ("maximum", "minimum"):
    register_fake_quantization_to_integer(_name, _convert_choice(_name))


def _convert_function(name: str) -> Callable[[Call, Types], Result]:
    def convert(expr: Call, types: Types) -> Result:
        found, wanted = _tensor(types, expr.args[0]), _tensor(types, expr)
        parameters = (found.scale, found.zero_point, wanted.scale, wanted.zero_point)
        return [call(name, expr.args[0], *parameters), wanted]

    convert.__doc__ = f"Return ``{name}``."
    return convert


_FUNCTIONS: Final = (
    "abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh",
)  # fmt: skip
for _name in _FUNCTIONS:
    register_fake_quantization_to_integer(_name, _convert_function(f"qnn.{_name}"))


@_rule("nn.softmax", register_optional_fake_quantization_to_integer)
def convert_softmax(expr: Call, types: Types) -> Result:
    """Return ``qnn.softmax``, which is less precise."""
    found, wanted = _tensor(types, expr.args[0]), _tensor(types, expr)
    parameters = (found.scale, found.zero_point, wanted.scale, wanted.zero_point)
    return [call("qnn.softmax", expr.args[0], *parameters, **expr.attrs), wanted]
