"""Matrix products with a weight that is kept in blocks."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.layout import LayoutPlan, change_layout
from serde.relay.ir.registry import Arguments, Array, call, get, relay_op, sample
from serde.relay.ir.traits import Fusion, FusionPattern
from serde.relay.ir.types import TensorType, Type
from serde.relay.ir.work import PRODUCT

__all__: list[str] = []


def _dense_pack_type(
    data: TensorType,
    weight: TensorType,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
    weight_layout: str,
) -> Type:
    if data.rank != 2:
        raise TypeInferenceError(f"expected data of rank 2, found {data!r}")
    plain = TensorType(LayoutPlan(weight.shape, weight_layout, "NC").shape, weight.dtype)
    result: Type = get("nn.dense").infer(data, plain, units=units, out_dtype=out_dtype)
    return result


def _as_dense(
    data: Expr,
    weight: Expr,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
    weight_layout: str,
) -> Expr:
    plain = call("layout_transform", weight, src_layout=weight_layout, dst_layout="NC")
    return call("nn.dense", data, plain, units=units, out_dtype=out_dtype)


@relay_op(
    "nn.contrib_dense_pack",
    traits=(
        PRODUCT,
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
    ),
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
