"""What prepares features: scaling, filling of gaps, selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.ml.scores import cast_to_float32
from serde.onnx.ops.table import ML, Import
from serde.relay.ir.expr import Expr


@ML.imports("Scaler")
def import_scaler(
    ctx: Import, x: Expr, *, offset: tuple[float, ...] = (), scale: tuple[float, ...] = ()
) -> Expr:
    """``y = (x - offset) * scale`` along the last axis; the result is float32."""
    if not offset or len(offset) != len(scale):
        raise Unsupported(f"{len(offset)} offsets and {len(scale)} factors")
    found = cast_to_float32(ctx, x)
    found = relay.subtract(found, ctx.array(np.array(offset, np.float32)))
    return relay.multiply(found, ctx.array(np.array(scale, np.float32)))


@ML.imports("Normalizer")
def import_normalizer(ctx: Import, x: Expr, *, norm: str = "MAX") -> Expr:
    """A row of which the maximum or the norm is zero stays as it is."""
    if ctx.type(x).rank not in (1, 2):
        raise Unsupported(f"an input of rank {ctx.type(x).rank}")
    if norm not in _NORMS:
        raise Unsupported(f"norm {norm!r} is unknown")
    found = cast_to_float32(ctx, x)
    length = _NORMS[norm](found)
    none = relay.equal(length, scalar_like(ctx, found, 0.0))
    return relay.divide(found, relay.where(none, scalar_like(ctx, found, 1.0), length))


_NORMS: dict[str, Callable[[Expr], Expr]] = {
    "MAX": lambda x: relay.max(x, axis=-1, keepdims=True),
    "L1": lambda x: relay.sum(relay.abs(x), axis=-1, keepdims=True),
    "L2": lambda x: relay.sqrt(relay.sum(relay.multiply(x, x), axis=-1, keepdims=True)),
}


@ML.imports("Imputer")
def import_imputer(
    ctx: Import,
    x: Expr,
    *,
    imputed_value_floats: tuple[float, ...] = (),
    imputed_value_int64s: tuple[int, ...] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Expr:
    """Floats are filled by the floats, integers by the integers; NaN stands for every NaN."""
    dtype = ctx.type(x).dtype
    floats = dtype.startswith("float")
    values = imputed_value_floats if floats else imputed_value_int64s
    replaced = replaced_value_float if floats else replaced_value_int64
    if not values:
        raise Unsupported(f"no values for an input of {dtype}")
    if floats and np.isnan(replaced):
        missing = relay.isnan(x)
    else:
        missing = relay.equal(x, scalar_like(ctx, x, replaced))
    filler = ctx.array(np.array(values, numpy_dtype(dtype)))
    return relay.where(missing, filler, x)


@ML.imports("Binarizer")
def import_binarizer(ctx: Import, x: Expr, *, threshold: float = 0.0) -> Expr:
    above = relay.greater(x, scalar_like(ctx, x, threshold))
    return relay.cast(above, ctx.type(x).dtype)


@ML.imports("FeatureVectorizer")
def import_feature_vectorizer(ctx: Import, *x: Expr, inputdimensions: tuple[int, ...] = ()) -> Expr:
    """Each input gives as many columns as `inputdimensions` says, cut or filled up by zeros."""
    if len(inputdimensions) != len(x):
        raise Unsupported(f"{len(inputdimensions)} lengths for {len(x)} inputs")
    columns = [_fit_columns(ctx, each, n) for each, n in zip(x, inputdimensions, strict=True)]
    return relay.concatenate(columns, axis=1)


def _fit_columns(ctx: Import, x: Expr, wanted: int) -> Expr:
    """Return the first `wanted` columns as float32, of zeros where there are fewer."""
    rank = ctx.type(x).rank
    if rank not in (1, 2):
        raise Unsupported(f"an input of rank {rank}")
    rows = cast_to_float32(ctx, x if rank == 2 else relay.expand_dims(x, axis=1))
    (length,) = ctx.static_lengths(rows, [1])
    if wanted < length:
        return relay.strided_slice(rows, begin=[0], end=[wanted], strides=[1], axes=[1])
    if wanted > length:
        return relay.nn.pad(rows, ((0, 0), (0, wanted - length)))
    return rows


@ML.imports("ArrayFeatureExtractor")
def import_array_feature_extractor(ctx: Import, x: Expr, y: Expr) -> Expr:
    """Entries of the last axis; the result of a vector is one row."""
    rows = x if ctx.type(x).rank > 1 else relay.expand_dims(x, axis=0)
    return relay.take(rows, relay.reshape(y, newshape=(-1,)), axis=-1, mode="fast")
