"""Functions of one quantised number, which are tables of 256 entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serde.core.weights import numpy_dtype
from serde.relay.ir import Constant, Elementwise, Expr, Fusion, FusionPattern, const, tensor_type
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Quantized
from serde.relay.ir.types import TensorType
from serde.relay.op.elementwise.erf import erf
from serde.relay.op.qnn.parameters import require_dtype, require_scalars
from serde.relay.op.qnn.rescale import dequantize, quantize

Function = Callable[[Array], Array]


def _hard_swish(x: Array) -> Array:
    return np.asarray(x * np.clip(x + np.float32(3), np.float32(0), np.float32(6)) / np.float32(6))


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.float32(1) / (np.float32(1) + np.exp(-x)))


FUNCTIONS: dict[str, tuple[Function, str]] = {
    "abs": (np.abs, "``y = abs(x)``"),
    "erf": (erf, "``y = erf(x)``"),
    "exp": (np.exp, "``y = exp(x)``"),
    "hardswish": (_hard_swish, "``y = x * min(max(x + 3, 0), 6) / 6``"),
    "log": (np.log, "``y = log(x)``"),
    "rsqrt": (lambda x: np.asarray(np.float32(1) / np.sqrt(x)), "``y = 1 / sqrt(x)``"),
    "sigmoid": (_sigmoid, "``y = 1 / (1 + exp(-x))``"),
    "sqrt": (np.sqrt, "``y = sqrt(x)``"),
    "tanh": (np.tanh, "``y = tanh(x)``"),
}
"""Name behind ``qnn.``: the function of real numbers, and what it is."""

TABLE_INPUTS = {"int8": np.arange(-128, 128), "uint8": np.arange(256)}
"""Every number of a dtype, in ascending order."""


def _unary_type(data: TensorType, *parameters: TensorType) -> TensorType:
    scale, zero_point, output_scale, output_zero_point = parameters
    require_dtype(data, tuple(TABLE_INPUTS), "data")
    require_scalars((scale, zero_point), (output_scale, output_zero_point))
    return data


def _declare(name: str, function: Function, doc: str) -> None:
    """Declare `function` of real numbers as an operator of bytes: a table of 256 entries."""

    def kernel(
        data: Array, scale: Array, zero_point: Array, output_scale: Array, output_zero_point: Array
    ) -> Array:
        real = dequantize(data, scale, zero_point, out_dtype=np.dtype(np.float32))
        with np.errstate(all="ignore"):
            result = np.asarray(function(real))
        return quantize(result, output_scale, output_zero_point, out_dtype=data.dtype)

    def decompose(data: Expr, *parameters: Expr) -> Expr:
        """Look the number up; with parameters that are not constant there is no table."""
        dtype = tensor_type(data).dtype
        values = [each.data for each in parameters if isinstance(each, Constant)]
        if len(values) < len(parameters):
            return _by_real_numbers(name, dtype, data, *parameters)
        table = kernel(TABLE_INPUTS[dtype].astype(numpy_dtype(dtype)), *values)
        index = call("cast", data, dtype="int32")
        if dtype == "int8":
            index = call("add", index, const(128, "int32"))
        return call("take", Constant(table), index, axis=0, mode="fast")

    kernel.__doc__ = (
        f"{doc}, by way of float32 and with halves rounded away from zero.\n\n"
        "A result that is no number counts as zero before the zero point is added."
    )
    parameters = (np.array(0.03, np.float32), np.array(3, np.int32))
    target = (np.array(0.02, np.float32), np.array(-5, np.int32))
    samples = [
        sample(tensor((4, 50), "int8", low=4, high=127), *parameters, *target),
        sample(tensor((4, 50), "uint8", low=0, high=255), *parameters, *target[:1], parameters[1]),
    ]
    relay_op(
        f"qnn.{name}",
        traits=(Elementwise, Fusion(FusionPattern.OPAQUE), Quantized),
        infer=_unary_type,
        samples=samples,
        decompose=decompose,
    )(kernel)

    def build(
        x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
    ) -> Expr:
        return call(f"qnn.{name}", x, scale, zero_point, output_scale, output_zero_point)

    build.__doc__ = f"Build ``qnn.{name}``."
    build.__name__ = build.__qualname__ = name
    builder(f"qnn.op.{name}")(build)


def _by_real_numbers(
    name: str, dtype: str, data: Expr, scale: Expr, zero_point: Expr, output_scale: Expr,
    output_zero_point: Expr,
) -> Expr:  # fmt: skip
    real = call("qnn.dequantize", data, scale, zero_point, out_dtype="float32")
    if name == "hardswish":
        lifted = call("clip", call("add", real, const(3.0, "float32")), a_min=0.0, a_max=6.0)
        result = call("divide", call("multiply", real, lifted), const(6.0, "float32"))
    else:
        result = call(name, real)
    return call("qnn.quantize", result, output_scale, output_zero_point, out_dtype=dtype)


for _name, (_function, _doc) in FUNCTIONS.items():
    _declare(_name, _function, _doc)
