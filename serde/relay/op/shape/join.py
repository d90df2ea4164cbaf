"""Operators that put tensors together and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, TupleWrapper, tensor_type
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.shapes import concat_dim, join_dim, normalize_axis, require_same_dtype
from serde.relay.ir.traits import Fusion, FusionPattern, Moves, Values
from serde.relay.ir.types import MAX_LEAVES, TensorType
from serde.relay.lowering.shape import decompose_meshgrid


def _alike(data: Sequence[TensorType]) -> tuple[int, str]:
    """Return the rank and the dtype that all fields share."""
    if not data:
        raise TypeInferenceError("expected at least one tensor")
    ranks = {field.rank for field in data}
    if len(ranks) != 1:
        raise TypeInferenceError(f"ranks differ: {', '.join(str(field.rank) for field in data)}")
    return data[0].rank, require_same_dtype(*data)


def _join_length(data: Sequence[TensorType], axis: int) -> Dim:
    length = data[0].shape[axis]
    for field in data[1:]:
        length = join_dim(length, field.shape[axis])
    return length


def _concatenate_type(data: Sequence[TensorType], *, axis: int) -> TensorType:
    rank, dtype = _alike(data)
    along = normalize_axis(axis, rank)
    shape = [
        concat_dim(field.shape[i] for field in data) if i == along else _join_length(data, i)
        for i in range(rank)
    ]
    return TensorType(shape, dtype)


@relay_op(
    "concatenate",
    traits=(Moves(all=True),),
    infer=_concatenate_type,
    samples=[
        sample([(2, 3), (2, 5)], axis=-1),
        sample([(2, 3), (1, 3), (4, 3)]),
        sample([tensor((2,), "int32")]),
    ],
)
def concatenate(data: tuple[Array, ...], *, axis: int = 0) -> Array:
    """The tensors one after the other along `axis`."""
    return np.concatenate(data, axis)


def _stack_type(data: Sequence[TensorType], *, axis: int) -> TensorType:
    rank, dtype = _alike(data)
    at = normalize_axis(axis, rank + 1)
    shape = [_join_length(data, i) for i in range(rank)]
    return TensorType([*shape[:at], len(data), *shape[at:]], dtype)


@relay_op(
    "stack",
    traits=(Moves(all=True),),
    infer=_stack_type,
    samples=[sample([(2, 3), (2, 3)], axis=1), sample([(), ()]), sample([(2,), (2,)], axis=-1)],
)
def stack(data: tuple[Array, ...], *, axis: int = 0) -> Array:
    """The tensors as the entries of a new axis."""
    return np.stack(data, axis)


def _split_type(
    data: TensorType, *, indices_or_sections: int | Sequence[int], axis: int
) -> list[TensorType]:
    along = normalize_axis(axis, data.rank)
    length = data.shape[along]
    parts: list[Dim]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1 or (isinstance(length, int) and length % count):
            raise TypeInferenceError(f"a length of {length} has no {count} equal parts")
        if count > MAX_LEAVES:
            raise TypeInferenceError(f"{count} parts are more than the {MAX_LEAVES} of a tuple")
        parts = [length // count] * count
    else:
        cuts = list(indices_or_sections)
        if cuts != sorted(cuts) or (cuts and cuts[0] < 0):
            raise TypeInferenceError(f"cuts {cuts} must ascend from 0")
        if cuts and isinstance(length, int) and cuts[-1] > length:
            raise TypeInferenceError(f"a cut at {cuts[-1]} is outside a length of {length}")
        edges: list[Dim] = [0, *cuts, length]
        parts = [stop - start for start, stop in pairwise(edges)]
    before, after = data.shape[:along], data.shape[along + 1 :]
    return [TensorType((*before, part, *after), data.dtype) for part in parts]


@relay_op(
    "split",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE)),
    infer=_split_type,
    samples=[
        sample((6, 4), indices_or_sections=3),
        sample((2, 6), indices_or_sections=[1, 4], axis=-1),
        sample((2, 6), indices_or_sections=1, axis=1),
    ],
)
def split(
    data: Array, *, indices_or_sections: int | tuple[int, ...], axis: int = 0
) -> tuple[Array, ...]:
    """Equal parts along `axis`, or the parts between the cuts that are given."""
    return tuple(np.split(data, indices_or_sections, axis))


@builder("split")
def build_split(
    data: Expr, indices_or_sections: int | Sequence[int], axis: int = 0
) -> TupleWrapper:
    """Build ``split``, whose parts are counted though `data` may have no type yet."""
    node = call("split", data, indices_or_sections=indices_or_sections, axis=axis)
    given = node.attrs["indices_or_sections"]
    return TupleWrapper(node, given if isinstance(given, int) else len(given) + 1)


def _meshgrid_type(data: Sequence[TensorType], *, indexing: str) -> list[TensorType]:
    if not data:
        raise TypeInferenceError("expected at least one tensor")
    dtype = require_same_dtype(*data)
    if any(field.rank > 1 for field in data):
        raise TypeInferenceError("expected scalars or tensors of rank 1")
    shape = [field.shape[0] if field.rank else 1 for field in data]
    if indexing == "xy" and len(shape) > 1:
        shape[:2] = shape[1::-1]
    return [TensorType(shape, dtype)] * len(shape)


@relay_op(
    "meshgrid",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE)),
    infer=_meshgrid_type,
    decompose=decompose_meshgrid,
    samples=[sample([(3,), (4,)]), sample([(3,), (), (2,)], indexing="xy")],
)
def meshgrid(data: tuple[Array, ...], *, indexing: Literal["ij", "xy"] = "ij") -> tuple[Array, ...]:
    """Each tensor spread over the grid that all of them span."""
    return tuple(np.meshgrid(*data, indexing=indexing))


def _fifo_buffer_type(data: TensorType, buffer: TensorType, *, axis: int) -> TensorType:
    require_same_dtype(data, buffer)
    along = normalize_axis(axis, buffer.rank)
    if data.rank != buffer.rank:
        raise TypeInferenceError(f"{data!r} and a buffer {buffer!r} differ in rank")
    for i, (new, old) in enumerate(zip(data.shape, buffer.shape, strict=True)):
        if i != along:
            join_dim(new, old)
    new, old = data.shape[along], buffer.shape[along]
    if isinstance(new, int) and isinstance(old, int) and new > old:
        raise TypeInferenceError(f"a length of {new} does not fit a buffer of {old}")
    return buffer


def _decompose_fifo_buffer(data: Expr, buffer: Expr, *, axis: int) -> Expr:
    """The last entries of the two together, as many as the buffer has."""
    joined = call("concatenate", (buffer, data), axis=axis)
    length = tensor_type(buffer).shape[axis]
    if isinstance(length, int):
        ends = (-length,), (np.iinfo(np.int32).max,)
        last = call("strided_slice", joined, begin=ends[0], end=ends[1], strides=(1,), axes=(axis,))
        return last if length else buffer
    kept = call("slice_like", call("reverse", joined, axis=axis), buffer, axes=(axis,))
    return call("reverse", kept, axis=axis)


@relay_op(
    "nn.fifo_buffer",
    infer=_fifo_buffer_type,
    decompose=_decompose_fifo_buffer,
    samples=[
        sample((1, 2), (1, 6), axis=1),
        sample((2, 3), (4, 3)),
        sample((2, 1, 3), (2, 5, 3), axis=-2),
    ],
    arguments=Arguments(required=("axis",)),
)
def fifo_buffer(data: Array, buffer: Array, *, axis: int = 0) -> Array:
    """`buffer` with `data` behind it, and as much less of its front."""
    joined = np.concatenate([buffer, data], axis)
    return np.take(joined, np.arange(data.shape[axis], joined.shape[axis]), axis)
