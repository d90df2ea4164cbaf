"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.mxnet.ops.shape.reshape import at_least_3d, with_rank
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType, normalize_axis


@OPS.imports("Concat")
def import_concat(ctx: Import, *data: Expr, dim: int = 1, num_args: int = 0) -> Expr:
    return relay.concatenate(data, axis=dim)


@OPS.imports("_npi_concatenate")
def import_concatenate(ctx: Import, *data: Expr, num_args: int, axis: int | None = 0) -> Expr:
    if axis is None:
        return relay.concatenate([relay.reshape(each, (-1,)) for each in data], 0)
    return relay.concatenate(data, axis)


MOST_JOINED = 6
"""Rank of what oneDNN joins, at most, which MXNet asks to; its NumPy's operator does it itself."""


@OPS.exports("concatenate")
def export_concatenate(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    if len(data) == 1:
        return data[0]
    if ctx.result_type().rank > MOST_JOINED:
        return ctx.emit_bytes("_npi_concatenate", *data, axis=axis, num_args=len(data))
    return ctx.emit_bytes("Concat", *data, dim=axis, num_args=len(data))


@OPS.imports("stack", "_npi_stack")
def import_stack(ctx: Import, *data: Expr, axis: int = 0, num_args: int = 0) -> Expr:
    return relay.stack(data, axis=axis)


@OPS.exports("stack")
def export_stack(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    result = ctx.emit_bytes("stack", *data, axis=axis, num_args=len(data))
    if ctx.type(data[0]).rank:
        return result
    type_ = ctx.result_type()
    column = TensorType((len(data), 1), type_.dtype)  # a scalar of Relay's may have an axis here
    return ctx.reshape(replace(result, type=column), type_.shape)


@OPS.imports("_npi_hstack")
def import_hstack(ctx: Import, *data: Expr, num_args: int, dim: int = 1) -> Expr:
    """The axis follows from the rank; MXNet does not look at ``dim``."""
    parts = [with_rank(ctx, each, 1) for each in data]
    return relay.concatenate(parts, 0 if ctx.type(ctx.first(parts)).rank == 1 else 1)


@OPS.imports("_npi_vstack")
def import_vstack(ctx: Import, *data: Expr, num_args: int) -> Expr:
    return relay.concatenate([with_rank(ctx, each, 2) for each in data], 0)


@OPS.imports("_npi_dstack")
def import_dstack(ctx: Import, *data: Expr, num_args: int, dim: int = 1) -> Expr:
    """The axis is always 2; MXNet does not look at ``dim``."""
    return relay.concatenate([at_least_3d(ctx, each) for each in data], 2)


@OPS.imports("_npi_column_stack")
def import_column_stack(ctx: Import, *data: Expr, num_args: int) -> Expr:
    parts = [with_rank(ctx, each, 1) for each in data]
    columns = [relay.expand_dims(x, 1) if ctx.type(x).rank == 1 else x for x in parts]
    return relay.concatenate(columns, 1)


@OPS.imports("SliceChannel")
def import_slice_channel(
    ctx: Import, data: Expr, *, num_outputs: int, axis: int = 1, squeeze_axis: bool = False
) -> AnyValue:
    return _split_squeezed(data, num_outputs, axis, squeeze_axis)


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Where a tensor is split: at indices, or in as many equal sections."""

    indices: tuple[int, ...]
    squeeze_axis: bool = False
    sections: int = 0

    def split(self, data: Expr, axis: int) -> list[Expr]:
        """Return the pieces; the file's indices start with the 0 that Relay leaves out."""
        where = self.sections if self.sections > 0 else self.indices[1:]
        return _split_squeezed(data, where, axis, self.squeeze_axis)


@dataclass(frozen=True, kw_only=True)
class OptionalPieces(Pieces):
    """The same where indices may be left out."""

    indices: tuple[int, ...] = ()


@OPS.imports("_split_v2")
def import_split_v2(
    ctx: Import, data: Expr, *, axis: int = 1, pieces: OptionalPieces
) -> list[Expr]:
    return pieces.split(data, axis)


def _split_squeezed(
    data: Expr, where: int | tuple[int, ...], axis: int, squeeze: bool
) -> list[Expr]:
    parts = list(relay.split(data, where, axis=axis))
    return [relay.squeeze(part, (axis,)) for part in parts] if squeeze else parts


@OPS.imports("_npi_hsplit", ignored=("axis",))
def import_hsplit(ctx: Import, data: Expr, *, pieces: Pieces) -> list[Expr]:
    """The axis follows from the rank; MXNet does not look at ``axis``."""
    return pieces.split(data, 0 if ctx.type(data).rank == 1 else 1)


@OPS.imports("_npi_dsplit")
def import_dsplit(ctx: Import, data: Expr, *, axis: int = 1, pieces: Pieces) -> list[Expr]:
    if axis not in (2, 2 - ctx.type(data).rank):
        raise Unsupported(f"axis={axis}: MXNet gives the shapes of axis 2, the values of no axis")
    return pieces.split(data, 2)


@OPS.exports("split")
def export_split(
    ctx: Export, data: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> Sequence[Value]:
    """The indices of MXNet start with a 0; it splits no bools."""
    axis = normalize_axis(axis, ctx.type(data).rank)
    is_bool = ctx.type(data).dtype == "bool"
    given = ctx.cast(data, "uint8") if is_bool else data
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        parts = ctx.emit_tuple(
            "SliceChannel", given, outputs=count, num_outputs=count, axis=axis, squeeze_axis=False
        )
    else:
        positions = (0, *indices_or_sections)
        parts = ctx.emit_tuple(
            "_split_v2", given, outputs=len(positions), indices=positions, axis=axis,
            squeeze_axis=False, sections=0,
        )  # fmt: skip
    if not is_bool:
        return parts
    types = ctx.result_types()
    return [
        ctx.cast(replace(each, type=TensorType(type_.shape, "uint8")), "bool")
        for each, type_ in zip(parts, types, strict=True)
    ]
