"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir import Array, Expr, TensorType, is_float, normalize_axis, sample, tensor
from serde.relay.ir.registry import builder, call, relay_op
from serde.relay.ir.traits import Arithmetic, Float32, SameAxes


def _scan_type(
    data: TensorType, *, axis: int | None, dtype: AnyValue, exclusive: bool
) -> TensorType:
    result = dtype or data.dtype
    if axis is None:
        return TensorType([data.size], result)
    normalize_axis(axis, data.rank)
    return TensorType(data.shape, result)


def _declare(name: str, scan: Callable[..., AnyValue], identity: int, doc: str) -> None:
    """Declare a running reduction that starts from its `identity`."""

    def kernel(
        data: Array,
        *,
        axis: int | None = None,
        dtype: np.dtype[AnyValue] | None = None,
        exclusive: bool = False,
    ) -> Array:
        values, along = (data.reshape(-1), 0) if axis is None else (data, axis % data.ndim)
        result = np.dtype(dtype or data.dtype)
        wide = np.float32 if is_float(result.name) and result.itemsize < 4 else result
        moved = np.moveaxis(values, along, 0)
        if exclusive:
            first = np.full_like(moved[:1], identity, dtype=wide)
            moved = np.concatenate([first, moved[:-1].astype(wide)])
        with np.errstate(all="ignore"):
            running = scan(moved, axis=0, dtype=wide).astype(result)
        return np.ascontiguousarray(np.moveaxis(running, 0, along))

    kernel.__doc__ = doc
    samples = [
        sample((2, 9), axis=1, exclusive=True),
        sample((2, 9), axis=-2),
        sample((2, 3)),
        sample(tensor((2, 3), "int32"), axis=0, dtype="int64"),
        sample(tensor((4,), "bool"), dtype="int32"),
        sample(tensor((4,), "float16"), axis=0),
    ]
    relay_op(
        name,
        traits=(SameAxes(("axis",)), Float32(), Arithmetic),
        infer=_scan_type,
        samples=samples,
        meta_class="relay.attrs.ScanopAttrs",
    )(kernel)

    def build(
        data: Expr, axis: int | None = None, dtype: AnyValue = None, exclusive: bool | None = None
    ) -> Expr:
        return call(name, data, axis=axis, dtype=dtype, exclusive=bool(exclusive))

    build.__doc__ = doc
    builder(name)(build)


_declare("cumsum", np.cumsum, 0, "``y[i] = sum(x[j] for j <= i)`` along `axis`, or of the flat "
         "tensor; with `exclusive` for j < i.")  # fmt: skip
_declare("cumprod", np.cumprod, 1, "``y[i] = prod(x[j] for j <= i)`` along `axis`, or of the flat "
         "tensor; with `exclusive` for j < i.")  # fmt: skip
