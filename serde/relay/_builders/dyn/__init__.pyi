"""Builders below ``relay.dyn``; generated from the declarations."""

from collections.abc import Sequence
from typing import Literal

from serde.relay._builders._types import DType
from serde.relay._builders.dyn import image as image, nn as nn
from serde.relay.ir.expr import Expr

def broadcast_to(data: Expr, shape: Expr, dtype: DType | None = None) -> Expr:
    """`data` spread over `shape`."""

def expand_dims(data: Expr, axis: Expr, num_newaxis: int = 1) -> Expr:
    """`data` with `num_newaxis` axes of length 1 before axis `axis`."""

def full(fill_value: Expr, shape: Expr, dtype: DType | None = None) -> Expr:
    """One value everywhere."""

def one_hot(
    indices: Expr,
    on_value: Expr,
    off_value: Expr,
    depth: Expr,
    axis: int = -1,
    dtype: DType | None = None,
) -> Expr:
    """`on_value` at each index along a new axis of `depth`, elsewhere `off_value`."""

def ones(shape: Expr, dtype: DType | None = None) -> Expr:
    """Ones."""

def reshape(data: Expr, newshape: Expr, allowzero: bool = False) -> Expr:
    """The elements in another shape; of the codes, a shape that is computed holds 0 and -1 only."""

def sparse_to_dense(
    sparse_indices: Expr, sparse_values: Expr, default_value: Expr, output_shape: Expr
) -> Expr:
    """A tensor of `default_value` with the values at the indices, one index a row."""

def squeeze(data: Expr, axes: Expr) -> Expr:
    """`data` without the axes named, which have length 1."""

def strided_slice(
    data: Expr,
    begin: Expr,
    end: Expr,
    strides: Expr,
    axes: int | Sequence[int] | None,
    slice_mode: Literal["end", "size"] = "end",
) -> Expr:
    """A region of `data`; see ``strided_slice``."""

def tile(data: Expr, reps: Expr) -> Expr:
    """The whole tensor repeated along each axis, aligned at the last."""

def topk(
    data: Expr,
    k: Expr,
    axis: int = -1,
    ret_type: Literal["both", "values", "indices"] = "both",
    is_ascend: bool = False,
    dtype: DType | None = None,
) -> Expr:
    """The `k` greatest (or smallest) elements along `axis` in order; see ``topk``."""

def zeros(shape: Expr, dtype: DType | None = None) -> Expr:
    """Zeros."""
