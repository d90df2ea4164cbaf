"""Forms whose positions or lengths are operands."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, TensorType, ranges, relay_op, sample, tensor
from serde.relay.ir.shapes import normalize_axes, normalize_axis
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Moves, Ordering, Values
from serde.relay.lowering.index import decompose_dyn_one_hot
from serde.relay.lowering.sparse import decompose_dyn_sparse_to_dense
from serde.relay.op.index import scatter, select, slicing, sorting
from serde.relay.op.shape.dynamic import Given, count_of, integers_of, scalar_of, static_type

__all__ = ["DynamicTopK"]


@dataclass(frozen=True, kw_only=True)
class DynamicTopK:
    """Attributes of ``dyn.topk``."""

    axis: int = -1
    ret_type: Literal["both", "values", "indices"] = "both"
    is_ascend: bool = False
    dtype: np.dtype[AnyValue] | None = None


def _one_hot_type(
    indices: TensorType,
    on_value: TensorType,
    off_value: TensorType,
    depth: Given,
    *,
    axis: int,
    dtype: AnyValue,
) -> TensorType:
    length = scalar_of(depth)
    known = 1 if length is None else length
    result: TensorType = static_type(
        "one_hot", indices, on_value, off_value, depth=known, axis=axis, dtype=dtype
    )
    if length is not None:
        return result
    place = normalize_axis(axis, result.rank)
    return TensorType([Any() if i == place else d for i, d in enumerate(result.shape)], dtype)


_ON, _OFF = np.array(1, np.float32), np.array(0, np.float32)


@relay_op(
    "dyn.one_hot",
    traits=(
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
        InRange(ranges.below_operand_depth, exact=False),
    ),
    infer=_one_hot_type,
    decompose=decompose_dyn_one_hot,
    by_value=["depth"],
    samples=[
        sample(tensor((2, 3), "int32"), _ON, _OFF, np.array(4, np.int64), dtype="float32"),
        sample(
            tensor((2, 3), "int64", low=0),
            (),
            (),
            tensor((), "int64", low=3, high=3),
            axis=1,
            dtype="float32",
        ),
    ],
)
def one_hot(
    indices: Array,
    on_value: Array,
    off_value: Array,
    depth: Array,
    *,
    axis: int = -1,
    dtype: np.dtype[AnyValue] | None = None,
) -> Array:
    """`on_value` at each index along a new axis of `depth`, elsewhere `off_value`."""
    return select.one_hot(
        indices, on_value, off_value, depth=int(depth.item()), axis=axis, dtype=dtype
    )


def _topk_type(data: TensorType, k: Given, *, topk: DynamicTopK) -> AnyValue:
    count = scalar_of(k)
    found = static_type("topk", data, k=0 if count is None else count, **vars(topk))
    if count is not None:
        return found
    axis = normalize_axis(topk.axis, data.rank)
    shape = [Any() if i == axis else dim for i, dim in enumerate(data.shape)]
    if isinstance(found, TensorType):
        return TensorType(shape, found.dtype)
    return [TensorType(shape, field.dtype) for field in found]


@relay_op(
    "dyn.topk", traits=(Values(0), Ordering, InRange(ranges.along_axis(1, "axis", least=1))),
    infer=_topk_type,
    by_value=["k"],
    samples=[
        sample((2, 9), np.array(3, np.int64), dtype="int32"),
        sample((4, 7), tensor((1,), "int64", low=2, high=2), axis=0, ret_type="values",
               is_ascend=True),
        sample((4, 7), tensor((), "int32", low=0, high=0), ret_type="indices", dtype="int64"),
    ],
)  # fmt: skip
def topk(data: Array, k: Array, *, topk: DynamicTopK) -> Array | tuple[Array, ...]:
    """The `k` greatest (or smallest) elements along `axis` in order; see ``topk``."""
    return sorting.topk(data, topk=sorting.TopK(k=int(k.item()), **vars(topk)))


def _strided_slice_type(
    data: TensorType,
    begin: Given,
    end: Given,
    strides: Given,
    *,
    slice_mode: str,
    axes: tuple[int, ...] | None,
) -> TensorType:
    """Lengths along the axes are anonymous unless all three operands are known."""
    counts = {count_of(operand) for operand in (begin, end, strides)}
    over = range(max(counts)) if axes is None else normalize_axes(axes, data.rank)
    if counts != {len(over)} or len(over) > data.rank:
        raise TypeInferenceError(f"begin, end and strides do not fit {len(over)} axes of {data!r}")
    operands = (begin, end, strides)
    known = [integers_of(each) for each in operands if isinstance(each, np.ndarray)]
    if len(known) == len(operands):
        first, last, steps = known
        return static_type(
            "strided_slice", data, begin=first, end=last, strides=steps, slice_mode=slice_mode,
            axes=axes,
        )  # fmt: skip
    return TensorType([Any() if i in over else d for i, d in enumerate(data.shape)], data.dtype)


_ONE = tensor((1,), "int64", low=1, high=1)


@relay_op(
    "dyn.strided_slice", traits=(Moves(), InRange(ranges.slice_ends, exact=False)),
    infer=_strided_slice_type,
    by_value=["begin", "end", "strides"],
    samples=[
        sample((8, 9), *(np.array(v, np.int64) for v in ([-1, 1], [-9, 7], [-2, 3])), axes=None),
        sample((8, 9), _ONE, tensor((1,), "int64", low=6, high=6), _ONE, axes=[1]),
        sample((8, 9), _ONE, tensor((1,), "int64", low=4, high=4), _ONE, slice_mode="size",
               axes=None),
    ],
)  # fmt: skip
def strided_slice(
    data: Array,
    begin: Array,
    end: Array,
    strides: Array,
    *,
    slice_mode: Literal["end", "size"] = "end",
    axes: tuple[int, ...] | None,
) -> Array:
    """A region of `data`; see ``strided_slice``."""
    first, last, steps = map(integers_of, (begin, end, strides))
    region = slicing.StridedSlice(
        begin=first, end=last, strides=steps, slice_mode=slice_mode, axes=axes
    )
    return slicing.strided_slice(data, region=region)


def _sparse_to_dense_type(
    sparse_indices: TensorType,
    sparse_values: TensorType,
    default_value: TensorType,
    output_shape: Given,
) -> TensorType:
    rank = count_of(output_shape)
    if isinstance(output_shape, np.ndarray):
        return static_type(
            "sparse_to_dense", sparse_indices, sparse_values, default_value,
            output_shape=integers_of(output_shape),
        )  # fmt: skip
    scatter.require_coordinates(sparse_indices, sparse_values, default_value)
    return TensorType([Any()] * rank, sparse_values.dtype)


@relay_op(
    "dyn.sparse_to_dense",
    infer=_sparse_to_dense_type,
    decompose=decompose_dyn_sparse_to_dense,
    by_value=["output_shape"],
    samples=[
        sample(np.array([[0, 1], [2, 2]]), (2,), _OFF, np.array([3, 4], np.int64)),
        sample(np.array([1, 4, 7]), (3,), _OFF, tensor((1,), "int64", low=9, high=9)),
    ],
)
def sparse_to_dense(
    sparse_indices: Array, sparse_values: Array, default_value: Array, output_shape: Array
) -> Array:
    """A tensor of `default_value` with the values at the indices, one index a row."""
    return scatter.sparse_to_dense(
        sparse_indices, sparse_values, default_value, output_shape=integers_of(output_shape)
    )
