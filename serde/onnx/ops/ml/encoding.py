"""Categories as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

import serde.relay as relay
from serde.core import Array, dataclass
from serde.errors import Unsupported
from serde.onnx.ops.table import ML, Import
from serde.relay.ir.expr import Expr

_STRINGS = "a tensor of strings has no counterpart in Relay"


ML.refuses(
    "ZipMap", "CastMap", "DictVectorizer",
    reason="maps have no counterpart in Relay",
    hint="export the scores as a tensor; of skl2onnx by options={'zipmap': False}",
)  # fmt: skip


ML.refuses("CategoryMapper", reason=_STRINGS)


@ML.imports("OneHotEncoder", ignored=["zeros"])
def import_one_hot_encoder(
    ctx: Import, x: Expr, *, cats_int64s: tuple[int, ...] = (), cats_strings: tuple[str, ...] = ()
) -> Expr:
    """A value that is no category gives zeros, also where `zeros` makes that an error."""
    if cats_strings or not cats_int64s:
        raise Unsupported(_STRINGS if cats_strings else "no categories")
    whole = x if ctx.type(x).dtype == "int64" else relay.cast(x, "int64")
    found = relay.equal(relay.expand_dims(whole, axis=-1), ctx.array(np.array(cats_int64s)))
    return relay.cast(found, "float32")


@dataclass(frozen=True, kw_only=True)
class LabelAttributes:
    """Attributes that the versions of LabelEncoder share."""

    keys_int64s: tuple[int, ...] = ()
    keys_floats: tuple[float, ...] = ()
    keys_strings: tuple[str, ...] = ()
    values_int64s: tuple[int, ...] = ()
    values_floats: tuple[float, ...] = ()
    values_strings: tuple[str, ...] = ()
    default_int64: int = -1
    default_float: float = -0.0
    default_string: str = "_Unused"

    def keys(self) -> Array:
        """Return the keys."""
        if self.keys_strings or self.values_strings:
            raise Unsupported(_STRINGS)
        return _to_array(self.keys_int64s, self.keys_floats)

    def values(self) -> Array:
        """Return the values."""
        return _to_array(self.values_int64s, self.values_floats)


@ML.imports("LabelEncoder", since=2)
def import_label_encoder(ctx: Import, x: Expr, *, labels: LabelAttributes) -> Expr:
    """Before version 4, NaN is none of the keys, also where one of them is NaN."""
    keys, values = labels.keys(), labels.values()
    default = labels.default_int64 if labels.values_int64s else labels.default_float
    return _look_up(ctx, x, keys, values, np.array(default, values.dtype), finds_nan=False)


@ML.imports("LabelEncoder", since=4)
def import_label_encoder_v4(
    ctx: Import,
    x: Expr,
    *,
    labels: LabelAttributes,
    keys_tensor: onnx.TensorProto | None = None,
    values_tensor: onnx.TensorProto | None = None,
    default_tensor: onnx.TensorProto | None = None,
) -> Expr:
    """Keys and values may also be tensors, of any dtype."""
    keys = _read_tensor(ctx, keys_tensor, labels.keys())
    values = _read_tensor(ctx, values_tensor, labels.values())
    number = labels.default_int64 if values.dtype.kind in "iu" else labels.default_float
    scalar = np.array(number, values.dtype)
    return _look_up(ctx, x, keys, values, _read_tensor(ctx, default_tensor, scalar))


def _to_array(integers: Sequence[int], floats: Sequence[float]) -> Array:
    return np.array(integers, np.int64) if integers else np.array(floats, np.float32)


def _read_tensor(ctx: Import, given: onnx.TensorProto | None, other: Array) -> Array:
    """Return the value of a tensor attribute, `other` where there is none."""
    if given is None:
        return other
    return ctx.values(given)


def _look_up(
    ctx: Import, x: Expr, keys: Array, values: Array, default: Array, *, finds_nan: bool = True
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
