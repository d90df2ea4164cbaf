"""Dense layers and matrix products of quantised tensors, summed in integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Dim, Expr, builder, call, get, relay_op, sample, tensor
from serde.relay.ir.registry import TensorSpec
from serde.relay.ir.traits import Fusion, FusionPattern, Quantized, Rescales
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import PRODUCT
from serde.relay.op.linalg.product import batch_matmul as multiply_batches, dense as multiply
from serde.relay.op.qnn.parameters import require_dtype, require_parameters, require_scalars
from serde.relay.op.qnn.sums import body_of_sums

__all__ = [
    "KERNEL_NAMES", "completion", "int8", "require_kernel", "require_out_dtype",
    "sample_parameters", "subtract_zero_point", "uint8",
]  # fmt: skip

Types = tuple[TensorType | None, ...]

KERNEL_NAMES = {"weight_zero_point": "kernel_zero_point", "weight_scale": "kernel_scale"}
"""What TVM's builders call parameters of a weight."""


def int8(*shape: int) -> TensorSpec:
    """Return an operand of a sample: any int8."""
    return tensor(shape, "int8", low=-128, high=127)


def uint8(*shape: int) -> TensorSpec:
    """Return an operand of a sample: any uint8."""
    return tensor(shape, "uint8", low=0, high=255)


def sample_parameters(
    input_zero_point: int, kernel_zero_point: int | list[int], kernel_scale: float | list[float]
) -> tuple[Array, ...]:
    """Return zero points and scales of a sample, in the order of the operands."""
    return (
        np.array(input_zero_point, np.int32),
        np.array(kernel_zero_point, np.int32),
        np.array(0.5, np.float32),
        np.array(kernel_scale, np.float32),
    )


def subtract_zero_point(data: Array, zero_point: Array) -> Array:
    """Return `data` without its zero point, as int16 where that holds the differences.

    Sums of products of such narrow integers are fast and exact.
    """
    wide = np.asarray(data.astype(np.int64) - zero_point)
    limits = np.iinfo(np.int16)
    narrow = wide.size == 0 or (wide.min() >= limits.min and wide.max() <= limits.max)
    return wide.astype(np.int16) if narrow else wide


def require_kernel(
    scale: TensorType, zero_point: TensorType, channels: Dim, input_scale: TensorType,
    input_zero_point: TensorType,
) -> None:  # fmt: skip
    """Refuse parameters of a weight that are neither scalars nor one for each output channel.

    Those of the data are scalars.
    """
    length = None if scale.rank == zero_point.rank == 0 else channels
    require_parameters(scale, zero_point, length, "kernel_")
    require_scalars((input_scale, input_zero_point))


def require_out_dtype(out_dtype: np.dtype[AnyValue] | None, allowed: tuple[str, ...]) -> None:
    """Refuse a dtype of the sums that is not allowed."""
    if out_dtype is None or dtype_name(out_dtype) not in allowed:
        raise TypeInferenceError(f"out_dtype: expected {', '.join(allowed)}, found {out_dtype}")


def completion(name: str) -> Callable[..., Types]:
    """Return the function that gives a weight its type as the plain operator does."""

    def complete(
        data: TensorType | None, weight: TensorType | None, *rest: TensorType | None,
        **attrs: AnyValue,
    ) -> Types:  # fmt: skip
        plain = get(name).complete
        if plain is None or weight is not None:
            return (data, weight, *rest)
        return (*plain(data, weight, **attrs), *rest)

    return complete


def _dense_type(
    data: TensorType,
    weight: TensorType,
    *parameters: TensorType,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
) -> TensorType:
    input_zero_point, weight_zero_point, input_scale, weight_scale = parameters
    require_dtype(data, ("int8", "uint8", "int16", "uint16"), "data")
    require_dtype(weight, ("int8", "uint8"), "weight")
    require_out_dtype(out_dtype, ("int32", "int64"))
    result = get("nn.dense").infer(data, weight, units=units, out_dtype=out_dtype)
    inputs = (input_scale, input_zero_point)
    require_kernel(weight_scale, weight_zero_point, weight.shape[0], *inputs)
    return TensorType(result.shape, result.dtype)


@relay_op(
    "qnn.dense", traits=(PRODUCT, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), Rescales, Quantized),
    infer=_dense_type,
    decompose=body_of_sums("qnn.dense"),
    complete=completion("nn.dense"),
    samples=[
        sample(int8(4, 6), int8(5, 6), *sample_parameters(0, 0, 0.25),
               units=5, out_dtype="int32"),
        sample(uint8(4, 6), int8(3, 6),
               *sample_parameters(7, [1, 0, -2], [0.25, 0.5, 1.0]), units=3, out_dtype="int32"),
        sample(uint8(2, 3, 6), uint8(5, 6), *sample_parameters(128, 3, 0.25),
               units=5, out_dtype="int64"),
        sample(tensor((4, 6), "int16", low=-9000, high=9000), int8(5, 6),
               *sample_parameters(-300, 0, 0.25), units=None, out_dtype="int64"),
    ],
    arguments=Arguments(names=KERNEL_NAMES, defaults={"out_dtype": "int32"}),
)  # fmt: skip
def dense(
    data: Array, weight: Array, input_zero_point: Array, weight_zero_point: Array,
    input_scale: Array, weight_scale: Array,
    *, units: Dim | None, out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:  # fmt: skip
    """``y = (data - input_zero_point) @ (weight - weight_zero_point).T`` in integers."""
    kernel = subtract_zero_point(weight, weight_zero_point.reshape(-1, 1))
    return multiply(
        subtract_zero_point(data, input_zero_point), kernel, units=units, out_dtype=out_dtype
    )


def _unpack_weight(weight: TensorType, layout: str) -> TensorType:
    attrs = {"src_layout": layout, "dst_layout": "NC"}
    result = get("layout_transform").infer(weight, **attrs)
    return TensorType(result.shape, result.dtype)


def _dense_pack_type(
    data: TensorType,
    weight: TensorType,
    *parameters: TensorType,
    weight_layout: str,
    **attrs: AnyValue,
) -> TensorType:
    if data.rank != 2:
        raise TypeInferenceError(f"expected data of rank 2, found {data!r}")
    return _dense_type(data, _unpack_weight(weight, weight_layout), *parameters, **attrs)


def _as_dense(
    data: Expr, weight: Expr, *parameters: Expr, weight_layout: str, **attrs: AnyValue
) -> Expr:
    plain = call("layout_transform", weight, src_layout=weight_layout, dst_layout="NC")
    return call("qnn.dense", data, plain, *parameters, **attrs)


@relay_op(
    "qnn.contrib_dense_pack",
    traits=(PRODUCT, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), Rescales, Quantized),
    infer=_dense_pack_type,
    decompose=_as_dense,
    samples=[
        sample(uint8(3, 8), int8(2, 2, 3, 4), *sample_parameters(9, 1, 0.25),
               units=6, out_dtype="int32", weight_layout="NC3n4c"),
    ],
    arguments=Arguments(
        order=("weight_layout",),
        names={**KERNEL_NAMES, "weight_layout": "kernel_layout"},
        defaults={"units": None, "out_dtype": "int32"},
    ),
)  # fmt: skip
def contrib_dense_pack(
    data: Array, weight: Array, input_zero_point: Array, weight_zero_point: Array,
    input_scale: Array, weight_scale: Array,
    *, units: Dim | None, out_dtype: np.dtype[AnyValue] | None = None, weight_layout: str = "NC",
) -> Array:  # fmt: skip
    """As ``qnn.dense``, of a weight kept in blocks such as those of NC32n4c."""
    plain = get("layout_transform").kernel(weight, src_layout=weight_layout, dst_layout="NC")
    parameters = (input_zero_point, weight_zero_point, input_scale, weight_scale)
    return dense(data, plain, *parameters, units=units, out_dtype=out_dtype)


def _batch_matmul_type(
    x: TensorType, y: TensorType, *parameters: TensorType, **attrs: AnyValue
) -> TensorType:
    x_zero_point, y_zero_point, x_scale, y_scale = parameters
    require_dtype(x, ("int8", "uint8"), "x")
    require_dtype(y, ("int8", "uint8"), "y")
    require_out_dtype(attrs["out_dtype"], ("int32",))
    require_scalars((x_scale, x_zero_point), (y_scale, y_zero_point))
    result = get("nn.batch_matmul").infer(x, y, **attrs)
    return TensorType(result.shape, result.dtype)


@relay_op(
    "qnn.batch_matmul", traits=(PRODUCT, Rescales, Quantized),
    infer=_batch_matmul_type,
    decompose=body_of_sums("qnn.batch_matmul"),
    samples=[
        sample(int8(2, 3, 4), int8(2, 5, 4), *sample_parameters(3, -7, 0.25),
               out_dtype="int32", transpose_b=True),
        sample(uint8(2, 4, 3), int8(1, 4, 5), *sample_parameters(0, 1, 0.25),
               out_dtype="int32", transpose_a=True),
    ],
)  # fmt: skip
def batch_matmul(
    x: Array, y: Array, x_zero_point: Array, y_zero_point: Array, x_scale: Array, y_scale: Array,
    *, out_dtype: np.dtype[AnyValue] | None = None, transpose_a: bool = False,
    transpose_b: bool = False,
) -> Array:  # fmt: skip
    """``y[b] = (x[b] - x_zero_point) @ (y[b] - y_zero_point)`` in int32, transposed as asked."""
    return multiply_batches(
        subtract_zero_point(x, x_zero_point),
        subtract_zero_point(y, y_zero_point),
        out_dtype=out_dtype,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


@builder("qnn.op.batch_matmul")
def build_batch_matmul(
    x: Expr, y: Expr, x_zero_point: Expr, y_zero_point: Expr, x_scale: Expr, y_scale: Expr,
    out_dtype: AnyValue = "int32",
) -> Expr:  # fmt: skip
    """Build ``qnn.batch_matmul`` with the right side transposed, the only form TVM builds."""
    parameters = (x_zero_point, y_zero_point, x_scale, y_scale)
    attrs = {"out_dtype": out_dtype, "transpose_b": True}
    return call("qnn.batch_matmul", x, y, *parameters, **attrs)
