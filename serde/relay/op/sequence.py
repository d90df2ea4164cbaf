"""Sequences of tensors whose length or positions are known only when the model runs.

Their type is :class:`serde.relay.ir.types.SequenceType`. TVM has none of this, so nothing here has
a decomposition and legal text for TVM refuses it; ``transform.SequencesToTuples`` turns what is
known beforehand into tuples, which all targets have.

An optional tensor is a sequence of at most one tensor: all that can be asked of the one can be
asked of the other, and no second type is needed. The builders ``serde.optional_*`` say so.
Positions count from the end where they are negative. Source: the sequence operators of ONNX 11.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, InRange, Values, const, normalize_axis, ranges
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, sequence, tensor
from serde.relay.ir.types import SequenceType, TensorType, join_types

_LENGTH = TensorType((), "int64")


def _join_element_types(elements: Sequence[TensorType]) -> SequenceType:
    """Return the type of a sequence of these, of which there is one at least."""
    result = elements[0]
    for element in elements[1:]:
        both = join_types(result, element)
        if not isinstance(both, TensorType):
            raise TypeInferenceError(f"expected elements like {result!r}, found {element!r}")
        result = both
    return SequenceType(result)


def _require_position(position: TensorType | None) -> None:
    if position is None:
        return
    if position.rank != 0 or position.dtype not in ("int32", "int64"):
        raise TypeInferenceError(
            f"operand position: expected a scalar of int32 or int64, found {position!r}"
        )


def _index(position: Array, count: int, *, end: bool = False) -> int:
    """Return a position counted from the start; `end` allows the one after the last."""
    given = int(position)
    index = given + count if given < 0 else given
    if not 0 <= index < count + end:
        raise IndexError(f"position {given} is outside a sequence of {count}")
    return index


def _empty_type(*, shape: tuple[Dim, ...], dtype: np.dtype[np.generic]) -> SequenceType:
    return SequenceType(TensorType(shape, dtype))


@relay_op(
    "serde.sequence_empty",
    infer=_empty_type,
    samples=[sample(shape=("?", 3)), sample(shape=(), dtype="int64")],
)
def sequence_empty(
    *, shape: tuple[Dim, ...], dtype: np.dtype[np.generic] = np.dtype("float32")
) -> list[Array]:
    """No tensors.

    Args:
        shape: Lengths of the axes of the elements to come; anonymous where they differ.
        dtype: Their element type.
    """
    return []


def _construct_type(data: Sequence[TensorType]) -> SequenceType:
    if not data:
        raise TypeInferenceError("expected at least one tensor; serde.sequence_empty takes none")
    return _join_element_types(data)


@relay_op(
    "serde.sequence_construct",
    traits=(Values(0),),
    infer=_construct_type,
    samples=[sample([(2, 3), (4, 3)]), sample([tensor((), "int64")])],
)
def sequence_construct(data: tuple[Array, ...]) -> list[Array]:
    """The tensors in their order."""
    return list(data)


def _insert_type(
    data: SequenceType, value: TensorType, position: TensorType | None
) -> SequenceType:
    _require_position(position)
    return _join_element_types([data.element, value])


@relay_op(
    "serde.sequence_insert",
    traits=(InRange(ranges.sequence_position(2, end=True)),),
    infer=_insert_type,
    samples=[
        sample(sequence((2, 3), (2, 3)), (2, 3)),
        sample(sequence((2, 3), (4, 3)), (1, 3), np.array(1, np.int64)),
        sample(sequence((2,), (2,)), (2,), tensor((), "int32", low=-2, high=2)),
    ],
)
def sequence_insert(data: list[Array], value: Array, position: Array | None) -> list[Array]:
    """The sequence with `value` before what stands at `position`, at the end if that is absent."""
    at = len(data) if position is None else _index(position, len(data), end=True)
    return [*data[:at], value, *data[at:]]


def _erase_type(data: SequenceType, position: TensorType | None) -> SequenceType:
    _require_position(position)
    return data


@relay_op(
    "serde.sequence_erase",
    traits=(Values(0), InRange(ranges.sequence_position(1))),
    infer=_erase_type,
    samples=[
        sample(sequence((2, 3), (4, 3))),
        sample(sequence((2,), (3,), (4,)), np.array(-3, np.int64)),
        sample(sequence((2,), (2,)), tensor((), "int64", low=-2, high=1)),
    ],
)
def sequence_erase(data: list[Array], position: Array | None) -> list[Array]:
    """The sequence without what stands at `position`, without the last if that is absent."""
    at = len(data) - 1 if position is None else _index(position, len(data))
    if at < 0:
        raise IndexError("a sequence of 0 has no last tensor")
    return [*data[:at], *data[at + 1 :]]


def _at_type(data: SequenceType, position: TensorType) -> TensorType:
    _require_position(position)
    return data.element


@relay_op(
    "serde.sequence_at",
    traits=(Values(0), InRange(ranges.sequence_position(1))),
    infer=_at_type,
    samples=[
        sample(sequence((2, 3), (4, 3)), np.array(1, np.int64)),
        sample(sequence((2,), (3,)), np.array(-2, np.int32)),
        sample(sequence((2,), (2,)), tensor((), "int64", low=-2, high=1)),
    ],
)
def sequence_at(data: list[Array], position: Array) -> Array:
    """The tensor at `position`."""
    return data[_index(position, len(data))]


@relay_op(
    "serde.sequence_length",
    infer=lambda data: _LENGTH,
    samples=[sample(sequence((2, 3), (4, 3))), sample(sequence(tensor((), "int32")))],
)
def sequence_length(data: list[Array]) -> Array:
    """The number of tensors, a scalar of int64."""
    return np.array(len(data), np.int64)


def _concat_type(data: SequenceType, *, axis: int, new_axis: bool) -> TensorType:
    shape: list[Dim] = list(data.element.shape)
    along = normalize_axis(axis, len(shape) + new_axis)
    shape[along : along + 1 - new_axis] = [Any()]
    return TensorType(shape, data.element.dtype)


@relay_op(
    "serde.sequence_concat",
    traits=(Values(0),),
    infer=_concat_type,
    samples=[
        sample(sequence((2, 3), (4, 3)), axis=0),
        sample(sequence((2, 3), (2, 3)), axis=-1),
        sample(sequence((2, 3), (2, 3)), axis=-1, new_axis=True),
        sample(sequence((), ()), axis=0, new_axis=True),
    ],
)
def sequence_concat(data: list[Array], *, axis: int, new_axis: bool = False) -> Array:
    """The tensors one after the other along `axis`, or as the entries of a new axis there."""
    if not data:
        raise ValueError("a sequence of 0 has nothing to concatenate")
    return np.stack(data, axis) if new_axis else np.concatenate(data, axis)


def _split_type(
    data: TensorType, split: TensorType | Array | None, *, axis: int, keepdims: bool
) -> SequenceType:
    along = normalize_axis(axis, data.rank)
    shape: list[Dim] = list(data.shape)
    if split is None:
        shape[along : along + 1] = [1] if keepdims else []
        return SequenceType(TensorType(shape, data.dtype))
    given = TensorType(split.shape, split.dtype)
    if given.rank > 1 or given.dtype not in ("int32", "int64"):
        raise TypeInferenceError(
            f"operand split: expected int32 or int64 of rank 0 or 1, found {given!r}"
        )
    shape[along] = _part(shape[along], split)
    return SequenceType(TensorType(shape, data.dtype))


def _part(length: Dim, split: TensorType | Array) -> Dim:
    """Return the length that all parts have."""
    if not isinstance(split, np.ndarray):
        return Any()
    if split.ndim == 1:
        if (split < 0).any() or (isinstance(length, int) and int(split.sum()) != length):
            raise TypeInferenceError(f"parts of {split.tolist()} do not make a length of {length}")
        return int(split[0]) if len(set(split.tolist())) == 1 else Any()
    if split <= 0:
        raise TypeInferenceError(f"a part cannot have the length {split}")
    return int(split) if isinstance(length, int) and length % int(split) == 0 else Any()


@relay_op(
    "serde.sequence_split",
    traits=(Values(0),),
    infer=_split_type,
    by_value=("split",),
    samples=[
        sample((3, 2)),
        sample((2, 3), axis=-1, keepdims=False),
        sample((5, 2), np.array(2, np.int64)),
        sample((4, 2), np.array(2, np.int64), keepdims=False),
        sample((2, 6), np.array([1, 3, 2], np.int64), axis=1),
        sample((7,), tensor((), "int64", low=2, high=3)),
    ],
)
def sequence_split(
    data: Array, split: Array | None, *, axis: int = 0, keepdims: bool = True
) -> list[Array]:
    """Parts of a tensor along `axis`.

    Args:
        data: The tensor.
        split: A scalar: the length of every part, the last of which may be shorter. A vector:
            the lengths of the parts, which make up the axis. Absent: every part has length 1.
        axis: The axis.
        keepdims: Whether parts keep the axis where `split` is absent; otherwise they do.
    """
    length = data.shape[axis]
    if split is None:
        parts = np.split(data, length, axis) if length else []
        return parts if keepdims else [part.squeeze(axis) for part in parts]
    if split.ndim == 0:
        if split <= 0:
            raise ValueError(f"a part cannot have the length {split}")
        return np.split(data, range(int(split), length, int(split)), axis) if length else []
    if (split < 0).any() or split.sum() != length:
        raise ValueError(f"parts of {split.tolist()} do not make a length of {length}")
    return np.split(data, np.cumsum(split)[:-1], axis) if len(split) else []


@builder("serde.optional_construct")
def optional_construct(value: Expr) -> Expr:
    """Return an optional tensor that is there: a sequence of one."""
    return call("serde.sequence_construct", [value])


@builder("serde.optional_empty")
def optional_empty(shape: Sequence[Dim | str], dtype: str = "float32") -> Expr:
    """Return an optional tensor that is absent: a sequence of none."""
    return call("serde.sequence_empty", shape=tuple(shape), dtype=dtype)


@builder("serde.optional_has_element")
def optional_has_element(data: Expr) -> Expr:
    """Return whether an optional tensor is there, a scalar of bool."""
    return call("greater", call("serde.sequence_length", data), const(0, "int64"))


@builder("serde.optional_get_element")
def optional_get_element(data: Expr) -> Expr:
    """Return the tensor that an optional holds; running it fails where that is absent."""
    return call("serde.sequence_at", data, const(0, "int64"))
