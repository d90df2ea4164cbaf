"""Products between linear operators as quantised products in one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue, ClassVar, Final

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Call, Constant, Expr, Function, TensorType, call, called_name
from serde.relay.ir.visit import rewrite_function, use_counts
from serde.relay.transform.base import FunctionPass

__all__ = ["QuantizedAsLinear"]

_BYTES: Final = ("int8", "uint8")
_WINDOW: Final = ("strides", "padding", "dilation", "groups")


class QuantizedAsLinear(FunctionPass):
    """Write a convolution or product between linear operators as one quantised operator.

    What :class:`QuantizedAsFloat` makes of quantised graphs has this form. The integer sums are
    exact then, and are rescaled once. Blocks stay as they are where their scales are not
    constants, their elements not of 8 bits, their layouts not NCHW and OIHW, something else
    reads the floats between, or a product has a bias, which ONNX's has not.
    """

    name: ClassVar[str] = "QuantizedAsLinear"

    def transform(self, function: Function) -> Function:
        """Rewrite each quantisation that ends such a block."""
        uses = use_counts(function)

        def replace(old: Expr, new: Expr) -> Expr:
            if called_name(new) != "serde.quantize_linear" or not isinstance(new, Call):
                return new
            try:
                return _fuse_block(old, new, uses) or new
            except TypeInferenceError:
                return new

        return rewrite_function(function, replace)


@dataclass(frozen=True)
class _Quantized:
    """An operand: its integers, and the constants that say what they stand for."""

    data: Expr
    scale: Constant
    zero: Constant
    axis: int


def _rank(node: Expr) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else 0


def _fuse_block(old: Expr, node: Call, uses: Mapping[Expr, int]) -> Expr | None:
    """Return one operator for the block that a quantisation ends."""
    end = _parameters(node, node.args[1], node.args[2])
    inner = old.args[0] if isinstance(old, Call) else old
    plain = node.attrs["precision"] is None and not node.attrs["block_size"]
    if end is None or end[0].data.ndim or not plain or uses[inner] != 1:
        return None
    real, bias = node.args[0], None
    if called_name(real) in ("nn.bias_add", "add") and isinstance(real, Call):
        real, bias = real.args
        if isinstance(inner, Call) and uses[inner.args[0]] != 1:
            return None
    if not isinstance(real, Call) or called_name(real) not in _BUILDERS:
        return None
    lhs, rhs = _operand(real.args[0]), _operand(real.args[1])
    if lhs is None or rhs is None or lhs.scale.data.ndim:
        return None
    return _BUILDERS[called_name(real)](real, lhs, rhs, bias, end, node)


def _parameters(node: Expr, scale: Expr, zero: Expr) -> tuple[Constant, Constant] | None:
    """Return scale and zero point of integers of 8 bits, where both are constants."""
    dtype = node.type.dtype if isinstance(node.type, TensorType) else ""
    if dtype not in _BYTES or not isinstance(scale, Constant):
        return None
    if not isinstance(zero, Constant):
        zero = Constant(np.zeros(scale.data.shape, dtype))
    fits = scale.data.dtype == np.float32 and zero.data.shape == scale.data.shape
    return (scale, zero) if fits and scale.data.ndim < 2 else None


def _operand(node: Expr) -> _Quantized | None:
    if called_name(node) != "serde.dequantize_linear" or not isinstance(node, Call):
        return None
    data, scale, zero = node.args
    found = _parameters(data, scale, zero)
    if found is None or node.attrs["block_size"]:
        return None
    return _Quantized(data, *found, node.attrs["axis"] % max(1, _rank(data)))


def _conv(
    real: Call,
    lhs: _Quantized,
    rhs: _Quantized,
    bias: Expr | None,
    end: tuple[Constant, Constant],
    node: Call,
) -> Expr | None:
    """Return one quantised convolution; None for other layouts or scales."""
    attrs = real.attrs
    layouts = (attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"] or "NCHW")
    if layouts != ("NCHW", "OIHW", "NCHW") or (rhs.scale.data.ndim and rhs.axis):
        return None
    term = None if bias is None else _bias(bias, lhs, rhs)
    if bias is not None and term is None:
        return None
    return call(
        "serde.qlinear_conv2d", lhs.data, rhs.data, term, lhs.scale, lhs.zero, rhs.scale, rhs.zero,
        *end, out_dtype=node.attrs["out_dtype"], span=node.span,
        **{name: attrs[name] for name in _WINDOW},
    )  # fmt: skip


def _bias(node: Expr, lhs: _Quantized, rhs: _Quantized) -> Expr | None:
    """Return a bias in steps of both scales as a vector with one item for each channel."""
    channels = rhs.data.type.shape[0] if isinstance(rhs.data.type, TensorType) else None
    if called_name(node) != "serde.dequantize_linear" or not isinstance(node, Call):
        return None
    data, scale, zero = node.args
    type_ = data.type
    if not isinstance(type_, TensorType) or type_.dtype != "int32" or not isinstance(channels, int):
        return None
    if not isinstance(scale, Constant) or (isinstance(zero, Constant) and zero.data.any()):
        return None
    joint = lhs.scale.data.astype(np.float64) * rhs.scale.data
    if scale.data.size not in (1, joint.size) and joint.size != 1:
        return None
    if not np.allclose(scale.data, joint, rtol=1e-5, atol=0):
        return None
    place = type_.rank - 3 if type_.rank >= 3 else 0
    long = [axis for axis, length in enumerate(type_.shape) if length != 1]
    if type_.rank == 0 or type_.size != channels or long not in ([], [place]):
        return None
    return data if type_.rank == 1 else call("reshape", data, newshape=(channels,))


def _product(
    real: Call,
    lhs: _Quantized,
    rhs: _Quantized,
    bias: Expr | None,
    end: tuple[Constant, Constant],
    node: Call,
) -> Expr | None:
    """Return one quantised matrix product; None where ranks or scales do not fit."""
    rank = _rank(rhs.data)
    is_dense = called_name(real) == "nn.dense"
    transposed = is_dense or real.attrs["transpose_b"]
    columns = rank - 2 if transposed else rank - 1
    if bias is not None or _rank(lhs.data) != rank or (rhs.scale.data.ndim and rhs.axis != columns):
        return None
    left = lhs.data if is_dense or not real.attrs["transpose_a"] else _transpose_last_two(lhs.data)
    return call(
        "serde.qlinear_matmul", left, _transpose_last_two(rhs.data) if transposed else rhs.data,
        lhs.scale, lhs.zero, rhs.scale, rhs.zero, *end, out_dtype=node.attrs["out_dtype"],
        span=node.span,
    )  # fmt: skip


def _transpose_last_two(x: Expr) -> Expr:
    order = [*range(_rank(x))]
    order[-2:] = reversed(order[-2:])
    return call("transpose", x, axes=tuple(order))


_BUILDERS: Final[dict[str, AnyValue]] = {
    "nn.batch_matmul": _product,
    "nn.conv2d": _conv,
    "nn.dense": _product,
}
