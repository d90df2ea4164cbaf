"""Positions told to attention by turning pairs of features."""

from __future__ import annotations

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, InRange, TensorType, TupleGetItem, ranges, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype


def _head_size(data: TensorType, num_heads: int) -> Dim:
    """Return the width of a head."""
    if data.rank not in (3, 4):
        raise TypeInferenceError(f"expected data of rank 3 or 4, found {data!r}")
    width = data.shape[-1]
    if data.rank == 4:
        return width
    if num_heads < 1 or (isinstance(width, int) and width % num_heads):
        raise TypeInferenceError(f"{width} features cannot be shared by {num_heads} heads")
    return width // num_heads


def _rotary_type(
    data: TensorType, cos: TensorType, sin: TensorType, positions: TensorType | None,
    *, num_heads: int, rotary_dim: int, interleaved: bool,
) -> TensorType:  # fmt: skip
    """The number of rotated features is even, and twice the pairs of the tables."""
    require_float(data)
    require_same_dtype(data, cos, sin)
    size = _head_size(data, num_heads)
    if num_heads and data.rank == 4:
        join_dim(data.shape[1], num_heads)
    rotated = rotary_dim or size
    too_wide = isinstance(rotated, int) and isinstance(size, int) and not 0 < rotated <= size
    if too_wide or (isinstance(rotated, int) and rotated % 2):
        raise TypeInferenceError(f"rotary_dim {rotated} must be even and at most {size}")
    batch, length = data.shape[0], data.shape[-2]
    if positions is not None:
        if positions.rank != 2 or positions.dtype not in ("int32", "int64"):
            raise TypeInferenceError(f"expected positions (batch, length), found {positions!r}")
        join_dim(positions.shape[0], batch)
        join_dim(positions.shape[1], length)
    for table in (cos, sin):
        if table.rank != (3 if positions is None else 2):
            raise TypeInferenceError(f"expected a table of rank {2 + (positions is None)}")
        if isinstance(rotated, int):
            join_dim(table.shape[-1], rotated // 2)
        if positions is None:
            join_dim(table.shape[0], batch)
            join_dim(table.shape[1], length)
    join_dim(cos.shape[0], sin.shape[0])
    return data


def _decompose_rotary(
    data: Expr, cos: Expr, sin: Expr, positions: Expr | None,
    *, num_heads: int, rotary_dim: int, interleaved: bool,
) -> Expr:  # fmt: skip
    """Pairs are the entries of an axis of two, before or behind the features."""
    type_ = tensor_type(data)
    size = _head_size(type_, num_heads)
    if not isinstance(size, int):
        raise TypeInferenceError(f"{data!r}: the number of features is unknown")
    rotated = rotary_dim or size
    head_axis = 1 if type_.rank == 4 else 2
    if positions is not None:
        cos, sin = (call("take", each, positions, axis=0, mode="fast") for each in (cos, sin))
    cos, sin = (call("expand_dims", each, axis=head_axis) for each in (cos, sin))
    if type_.rank == 3:
        data = call("reshape", data, newshape=(0, 0, num_heads, size))
    rest: list[Expr] = []
    if rotated < size:
        parts = call("split", data, indices_or_sections=(rotated,), axis=3)
        data, rest = TupleGetItem(parts, 0), [TupleGetItem(parts, 1)]
    if interleaved:
        pairs = call("reshape", data, newshape=(0, 0, 0, rotated // 2, 2))
        halves = call("split", pairs, indices_or_sections=2, axis=4)
        first = _half(halves, 0, axis=4)
        second = _half(halves, 1, axis=4)
    else:
        halves = call("split", data, indices_or_sections=2, axis=3)
        first, second = _half(halves, 0), _half(halves, 1)
    real = call("subtract", call("multiply", cos, first), call("multiply", sin, second))
    imaginary = call("add", call("multiply", sin, first), call("multiply", cos, second))
    if interleaved:
        stacked = call("stack", [real, imaginary], axis=4)
        parted: list[Expr] = [call("reshape", stacked, newshape=(0, 0, 0, rotated))]
    else:
        parted = [real, imaginary]
    result: Expr = call("concatenate", [*parted, *rest], axis=3)
    return call("reshape", result, newshape=(0, 0, -1)) if type_.rank == 3 else result


def _half(halves: Expr, index: int, axis: int | None = None) -> Expr:
    half = TupleGetItem(halves, index)
    return half if axis is None else call("squeeze", half, axis=(axis,))


_POSITIONS = tensor((2, 3), "int64", low=0, high=6)


@relay_op(
    "serde.rotary_embedding",
    traits=(InRange(ranges.along_operand(3, 1, 0)),),
    infer=_rotary_type,
    decompose=_decompose_rotary,
    samples=[
        sample((2, 4, 3, 8), (7, 4), (7, 4), _POSITIONS),
        sample((2, 4, 3, 8), (2, 3, 4), (2, 3, 4), interleaved=True),
        sample((2, 3, 32), (7, 4), (7, 4), _POSITIONS, num_heads=4),
        sample((2, 4, 3, 8), (7, 2), (7, 2), _POSITIONS, rotary_dim=4, num_heads=4),
        sample((2, 3, 32), (7, 2), (7, 2), _POSITIONS, rotary_dim=4, num_heads=4, interleaved=True),
        sample(
            tensor((2, 4, 3, 8), "float16"),
            tensor((2, 3, 4), "float16"),
            tensor((2, 3, 4), "float16"),
        ),
    ],
)
def rotary_embedding(
    data: Array, cos: Array, sin: Array, positions: Array | None,
    *, num_heads: int = 0, rotary_dim: int = 0, interleaved: bool = False,
) -> Array:  # fmt: skip
    """``y1 = cos * x1 - sin * x2``, ``y2 = sin * x1 + cos * x2`` for pairs of features (Su, 2021).

    Source: RotaryEmbedding of ONNX 23.

    Args:
        data: (batch, heads, length, width), or (batch, length, heads times width).
        cos: Cosines of the angles, one for each pair: (positions, pairs), or without
            `positions` (batch, length, pairs).
        sin: Their sines, of the same shape.
        positions: (batch, length): the row of the tables that each place takes.
        num_heads: Number of heads, wanted where `data` has rank 3.
        rotary_dim: How many features of a head are rotated, the first ones; all if 0.
        interleaved: Whether neighbours are a pair; otherwise one is of the first half of the
            features that are rotated and one of the second.

    Returns:
        A tensor of the shape of `data`.
    """
    wide, cosines, sines = widen(data), widen(cos), widen(sin)
    heads = wide
    if data.ndim == 3:
        heads = wide.reshape(*data.shape[:2], num_heads, -1).transpose(0, 2, 1, 3)
    if positions is not None:
        cosines, sines = cosines[positions], sines[positions]
    cosines, sines = cosines[:, None], sines[:, None]
    rotated = rotary_dim or heads.shape[-1]
    pick = (slice(0, rotated, 2), slice(1, rotated, 2))
    if not interleaved:
        pick = (slice(rotated // 2), slice(rotated // 2, rotated))
    first, second = (heads[..., each] for each in pick)
    result = heads.copy()
    result[..., pick[0]] = cosines * first - sines * second
    result[..., pick[1]] = sines * first + cosines * second
    if data.ndim == 3:
        result = result.transpose(0, 2, 1, 3)
    return result.reshape(data.shape).astype(data.dtype)
