"""Diagonals and triangles of the innermost matrices."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, TensorType, builder, call, const, relay_op, sample, tensor
from serde.relay.ir.shapes import is_float, join_dim, require_same_dtype
from serde.relay.ir.traits import Fusion, FusionPattern, Values
from serde.relay.lowering.shape import decompose_matrix_set_diag, decompose_trilu

__all__ = ["Diagonals"]


@dataclass(frozen=True, kw_only=True)
class Diagonals:
    """Attributes of ``matrix_set_diag``."""

    k1: int = 0
    k2: int = 0
    super_diag_right_align: bool = True
    sub_diag_right_align: bool = False


def _longest(rows: int, columns: int, k1: int, k2: int) -> int:
    """Return the length of the longest diagonal from `k1` to `k2`."""
    return min(rows + min(k2, 0), columns - max(k1, 0))


def _set_diag_type(
    input: TensorType, diagonal: TensorType, *, k1: int, k2: int, **_: AnyValue
) -> TensorType:
    """One diagonal has no axis of diagonals; several are rows of the longest."""
    require_same_dtype(input, diagonal)
    if input.rank < 2 or k1 > k2:
        raise TypeInferenceError(f"{input!r} has no diagonals from {k1} to {k2}")
    rank = input.rank - (k1 == k2)
    if diagonal.rank != rank:
        raise TypeInferenceError(f"expected diagonals of rank {rank}, found {diagonal!r}")
    for expected, found in zip(input.shape[:-2], diagonal.shape, strict=False):
        join_dim(expected, found)
    if k1 != k2:
        join_dim(k2 - k1 + 1, diagonal.shape[-2])
    rows, columns = input.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        if not -rows < k1 <= k2 < columns:
            raise TypeInferenceError(f"diagonals {k1} to {k2} are outside {input!r}")
        join_dim(_longest(rows, columns, k1, k2), diagonal.shape[-1])
    return input


@relay_op(
    "matrix_set_diag",
    traits=(Fusion(FusionPattern.INJECTIVE),),
    infer=_set_diag_type,
    decompose=decompose_matrix_set_diag,
    samples=[
        sample((2, 3, 4), (2, 3)),
        sample((4, 3), (3, 3), k1=-1, k2=1),
        sample((3, 5), (2, 3), k1=1, k2=2, super_diag_right_align=False),
        sample((5, 3), (2, 3), k1=-3, k2=-2, sub_diag_right_align=True),
    ],
)
def matrix_set_diag(input: Array, diagonal: Array, *, diagonals: Diagonals) -> Array:
    """The matrices with diagonals `k1` to `k2` replaced; the rows of `diagonal` go from `k2` down.

    A diagonal shorter than its row stands at the right or at the left of it.
    """
    result = input.copy()
    rows, columns = input.shape[-2:]
    lines = diagonal[..., None, :] if diagonals.k1 == diagonals.k2 else diagonal
    for k in range(diagonals.k1, diagonals.k2 + 1):
        length = min(rows + min(k, 0), columns - max(k, 0))
        right = diagonals.super_diag_right_align if k >= 0 else diagonals.sub_diag_right_align
        skip = lines.shape[-1] - length if right else 0
        steps = np.arange(length)
        line = lines[..., diagonals.k2 - k, skip : skip + length]
        result[..., steps - min(k, 0), steps + max(k, 0)] = line
    return result


@builder("matrix_set_diag")
def build_matrix_set_diag(
    data: Expr, diagonal: Expr, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT"
) -> Expr:
    """Return `data` with diagonals `k` replaced.

    Args:
        data: The matrices.
        diagonal: The new diagonals.
        k: One diagonal, or the lowest and the highest.
        align: Where short upper and lower diagonals stand, as ``"RIGHT_LEFT"``.
    """
    low, high = (k, k) if isinstance(k, (int, np.integer)) else (k[0], k[-1])
    sides = align.split("_")
    if len(sides) != 2 or not set(sides) <= {"LEFT", "RIGHT"}:
        raise TypeInferenceError(f"matrix_set_diag: align {align!r} is not as RIGHT_LEFT")
    return call(
        "matrix_set_diag", data, diagonal, k1=low, k2=high,
        super_diag_right_align=sides[0] == "RIGHT", sub_diag_right_align=sides[1] == "RIGHT",
    )  # fmt: skip


def _trilu_type(data: TensorType, k: TensorType, *, upper: bool) -> TensorType:
    if data.rank < 2:
        raise TypeInferenceError(f"expected matrices, found {data!r}")
    if k.rank or is_float(k.dtype):
        raise TypeInferenceError(f"expected k to be an integer scalar, found {k!r}")
    return data


@relay_op(
    "trilu",
    traits=(Values(0), Fusion(FusionPattern.ELEMWISE)),
    infer=_trilu_type,
    decompose=decompose_trilu,
    meta_class="relay.attrs.TriluAttrs",
    samples=[
        sample((3, 4), np.array(1, np.int32), upper=False),
        sample((2, 3, 3), tensor((), "int64")),
    ],
)
def trilu(data: Array, k: Array, *, upper: bool = True) -> Array:
    """The triangle on and above diagonal `k`, or on and below it; zero elsewhere."""
    return np.triu(data, int(k)) if upper else np.tril(data, int(k))


@builder("trilu")
def build_trilu(data: Expr, k: AnyValue, upper: bool = True) -> Expr:
    """Return a triangle of `data`; `k` is an integer or an expression."""
    return call("trilu", data, k if isinstance(k, Expr) else const(k, "int32"), upper=upper)
