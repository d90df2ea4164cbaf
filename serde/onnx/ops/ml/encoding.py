"""Categories as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import ML
from serde.relay.ir.expr import Expr
from serde.weights import Array

_STRINGS = "a tensor of strings has no counterpart in Relay"


ML.refuses(
    "ZipMap", "CastMap", "DictVectorizer",
    reason="maps have no counterpart in Relay",
    hint="export the scores as a tensor; of skl2onnx by options={'zipmap': False}",
)  # fmt: skip


ML.refuses("CategoryMapper", reason=_STRINGS)


@ML.imports("OneHotEncoder", ignored=["zeros"])
def import_one_hot_encoder(
    ctx: ImportContext,
    x: Expr,
    *,
    cats_int64s: tuple[int, ...] = (),
    cats_strings: tuple[str, ...] = (),
) -> Expr:
    """A value that is no category gives zeros, also where `zeros` makes that an error."""
    if cats_strings or not cats_int64s:
        raise Unsupported(_STRINGS if cats_strings else "no categories")
    whole = x if ctx.type(x).dtype == "int64" else relay.cast(x, "int64")
    found = relay.equal(relay.expand_dims(whole, axis=-1), ctx.array(np.array(cats_int64s)))
    return relay.cast(found, "float32")


@ML.imports("LabelEncoder", since=2)
def import_label_encoder(
    ctx: ImportContext,
    x: Expr,
    *,
    keys_int64s: tuple[int, ...] = (),
    keys_floats: tuple[float, ...] = (),
    keys_strings: tuple[str, ...] = (),
    values_int64s: tuple[int, ...] = (),
    values_floats: tuple[float, ...] = (),
    values_strings: tuple[str, ...] = (),
    default_int64: int = -1,
    default_float: float = -0.0,
    default_string: str = "_Unused",
) -> Expr:
    """Before version 4, NaN is none of the keys, also where one of them is NaN."""
    if keys_strings or values_strings:
        raise Unsupported(_STRINGS)
    keys = _to_array(keys_int64s, keys_floats)
    values = _to_array(values_int64s, values_floats)
    default = default_int64 if values_int64s else default_float
    return _look_up(ctx, x, keys, values, np.array(default, values.dtype), finds_nan=False)


@ML.imports("LabelEncoder", since=4)
def import_label_encoder_v4(
    ctx: ImportContext,
    x: Expr,
    *,
    keys_int64s: tuple[int, ...] = (),
    keys_floats: tuple[float, ...] = (),
    keys_strings: tuple[str, ...] = (),
    keys_tensor: onnx.TensorProto | None = None,
    values_int64s: tuple[int, ...] = (),
    values_floats: tuple[float, ...] = (),
    values_strings: tuple[str, ...] = (),
    values_tensor: onnx.TensorProto | None = None,
    default_int64: int = -1,
    default_float: float = -0.0,
    default_string: str = "_Unused",
    default_tensor: onnx.TensorProto | None = None,
) -> Expr:
    """Keys and values may also be tensors, of any dtype."""
    if keys_strings or values_strings:
        raise Unsupported(_STRINGS)
    keys = _read_tensor(ctx, keys_tensor, _to_array(keys_int64s, keys_floats))
    values = _read_tensor(ctx, values_tensor, _to_array(values_int64s, values_floats))
    scalar = np.array(default_int64 if values.dtype.kind in "iu" else default_float, values.dtype)
    return _look_up(ctx, x, keys, values, _read_tensor(ctx, default_tensor, scalar))


def _to_array(integers: Sequence[int], floats: Sequence[float]) -> Array:
    return np.array(integers, np.int64) if integers else np.array(floats, np.float32)


def _read_tensor(ctx: ImportContext, given: onnx.TensorProto | None, other: Array) -> Array:
    """Return the value of a tensor attribute, `other` where there is none."""
    if given is None:
        return other
    ctx.dtype(given.data_type)
    return numpy_helper.to_array(given)


def _look_up(
    ctx: ImportContext,
    x: Expr,
    keys: Array,
    values: Array,
    default: Array,
    *,
    finds_nan: bool = True,
) -> Expr:
    """Return the value of the key that each element is, the default where it is none."""
    if not keys.size or keys.shape != values.shape or keys.ndim != 1 or default.size != 1:
        raise Unsupported(f"{keys.size} keys, {values.size} values and {default.size} defaults")
    if len(np.unique(keys, equal_nan=True)) < len(keys):
        raise Unsupported("a key is given twice, which runtimes read differently")
    if str(keys.dtype) != ctx.type(x).dtype:
        raise Unsupported(f"keys of {keys.dtype} for an input of {ctx.type(x).dtype}")
    element = relay.expand_dims(x, axis=-1)
    same = relay.equal(element, ctx.array(keys))
    if finds_nan and keys.dtype.kind == "f" and np.isnan(keys).any():
        both = relay.logical_and(relay.isnan(element), ctx.array(np.isnan(keys)))
        same = relay.logical_or(same, both)
    position = relay.argmax(relay.cast(same, "int32"), axis=-1)
    known = relay.any(same, axis=-1)
    position = relay.where(known, position, relay.const(np.int32(len(keys))))
    table = np.append(values, default.reshape(1).astype(values.dtype))
    return relay.take(ctx.array(table), position, axis=0, mode="fast")
