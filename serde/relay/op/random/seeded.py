"""Numbers drawn by a seed, of which the range is told and the values are the executor's.

Here a seed, by the bits of its float32, is a key of the Threefry generator. Calls are
neither merged nor evaluated beforehand.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.core import dataclass, dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Constant, Expr, TensorType, TupleGetItem, const, require_float
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.traits import BitLevel, Discontinuous, Random, Truth, TypeOnly
from serde.relay.op.activation import softmax
from serde.relay.op.random.threefry import multinomial, normal, sizes, threefry_key, uniform

__all__ = ["RandomNormal", "RandomUniform"]

_INT32 = np.dtype(np.int32)


@dataclass(frozen=True, kw_only=True)
class RandomNormal:
    """Attributes of ``serde.random_normal``."""

    shape: tuple[int, ...] | None = None
    mean: float = 0.0
    scale: float = 1.0
    dtype: np.dtype[AnyValue] | None = None
    seed: float | None = None


@dataclass(frozen=True, kw_only=True)
class RandomUniform:
    """Attributes of ``serde.random_uniform``."""

    shape: tuple[int, ...] | None = None
    low: float = 0.0
    high: float = 1.0
    dtype: np.dtype[AnyValue] | None = None
    seed: float | None = None


def _seed_key(seed: float | None) -> Constant:
    """Return the key that a seed stands for, by the bits of its float32; without one, a new key."""
    if seed is None:
        return threefry_key(secrets.randbits(256))
    return threefry_key(int(np.array(seed, np.float32).view(np.uint32)))


def _fixed_key(seed: float | None) -> Constant:
    if seed is None:
        raise TypeInferenceError("numbers that no seed determines have no decomposition")
    return _seed_key(seed)


def _draw_dtype(like: TensorType | None, dtype: np.dtype[AnyValue] | None) -> str:
    if dtype is not None:
        return dtype_name(dtype)
    return "float32" if like is None else like.dtype


def _draw_type(
    like: TensorType | None,
    *,
    shape: tuple[int, ...] | None,
    dtype: np.dtype[AnyValue] | None,
    seed: float | None,
    **_: float,
) -> TensorType:
    if (like is None) == (shape is None):
        raise TypeInferenceError("expected either a tensor to be like or a shape")
    found = sizes(shape or ()) if like is None else like.shape
    result = TensorType(found, _draw_dtype(like, dtype))
    require_float(result)
    return result


def _compute_dtype(dtype: str) -> str:
    """Return the dtype to draw in, from which narrower ones are rounded."""
    return "float64" if dtype == "float64" else "float32"


def _static(like: Expr | None, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    if like is None:
        return shape or ()
    found = like.type.concrete_shape if isinstance(like.type, TensorType) else None
    if found is None:
        raise TypeInferenceError(f"needs a fixed shape to draw, found {like.type!r}")
    return found


def _decompose_draw(
    like: Expr | None,
    *,
    name: str,
    bounds: tuple[str, str],
    shape: tuple[int, ...] | None,
    dtype: np.dtype[AnyValue] | None,
    seed: float | None,
    **given: float,
) -> Expr:
    kind = like.type if like is not None and isinstance(like.type, TensorType) else None
    wanted = _draw_dtype(kind, dtype)
    a, b = (const(given[bound], _compute_dtype(wanted)) for bound in bounds)
    sizes = _static(like, shape)
    drawn = call(name, _fixed_key(seed), a, b, out_shape=sizes, out_dtype=_compute_dtype(wanted))
    result = TupleGetItem(drawn, 1)
    return result if wanted == _compute_dtype(wanted) else call("cast", result, dtype=wanted)


def _draw(
    source: AnyValue, like: Array | None, shape: tuple[int, ...] | None,
    dtype: np.dtype[AnyValue] | None, seed: float | None, a: float, b: float,
) -> Array:  # fmt: skip
    wanted = np.dtype(dtype or (np.float32 if like is None else like.dtype))
    wide = np.dtype(_compute_dtype(wanted.name))
    sizes = (shape or ()) if like is None else like.shape
    key = _seed_key(seed).data
    _, drawn = source(key, wide.type(a), wide.type(b), out_shape=sizes, out_dtype=wide)
    return np.asarray(drawn).astype(wanted, copy=False)


@relay_op(
    "serde.random_uniform",
    traits=(Random, BitLevel, TypeOnly(0)),
    infer=_draw_type,
    decompose=partial(_decompose_draw, name="random.uniform", bounds=("low", "high")),
    samples=[
        sample(shape=[2, 3], seed=1.0),
        sample((4, 2), low=-1.0, high=5.0, seed=2.5),
        sample(tensor((4,), "int32"), dtype="float64", seed=0.0),
        sample(shape=[8], dtype="float16", seed=3.0),
    ],
)
def random_uniform(like: Array | None, *, random: RandomUniform) -> Array:
    """Numbers spread evenly from `low` up to `high`, of `shape` or shaped like a tensor.

    Which ones a seed gives is for each executor to say; without one they differ each time.
    """
    return _draw(uniform, like, random.shape, random.dtype, random.seed, random.low, random.high)


@relay_op(
    "serde.random_normal",
    traits=(Random, BitLevel, TypeOnly(0)),
    infer=_draw_type,
    decompose=partial(_decompose_draw, name="random.normal", bounds=("mean", "scale")),
    samples=[
        sample(shape=[2, 3], seed=1.0),
        sample((4, 2), mean=-1.0, scale=5.0, seed=2.5),
        sample(tensor((4,), "int32"), dtype="float64", seed=0.0),
    ],
)
def random_normal(like: Array | None, *, random: RandomNormal) -> Array:
    """Normally distributed numbers, of `shape` or shaped like a tensor.

    Seeds are as those of ``serde.random_uniform``.
    """
    return _draw(normal, like, random.shape, random.dtype, random.seed, random.mean, random.scale)


def _bernoulli_type(
    probs: TensorType, *, dtype: np.dtype[AnyValue] | None, seed: float | None
) -> TensorType:
    require_float(probs)
    return TensorType(probs.shape, probs.dtype if dtype is None else dtype_name(dtype))


def _decompose_bernoulli(
    probs: Expr, *, dtype: np.dtype[AnyValue] | None, seed: float | None
) -> Expr:
    shape = _static(probs, None)
    zero, one, key = const(0.0), const(1.0), _fixed_key(seed)
    drawn = call("random.uniform", key, zero, one, out_shape=shape, out_dtype="float32")
    marks = call("less", TupleGetItem(drawn, 1), call("cast", probs, dtype="float32"))
    kind = probs.type.dtype if isinstance(probs.type, TensorType) else "float32"
    return call("cast", marks, dtype=kind if dtype is None else dtype_name(dtype))


@relay_op(
    "serde.bernoulli",
    traits=(Random, BitLevel, Truth, Discontinuous),
    infer=_bernoulli_type,
    decompose=_decompose_bernoulli,
    samples=[
        sample(tensor((3, 4), low=0.0, high=1.0), seed=1.0),
        sample(tensor((5,), "float64", low=0.0, high=1.0), dtype="bool", seed=2.0),
    ],
)
def bernoulli(
    probs: Array, *, dtype: np.dtype[AnyValue] | None = None, seed: float | None = None
) -> Array:
    """One as often as `probs` says, else zero; seeds as of ``serde.random_uniform``."""
    key = _seed_key(seed).data
    zero, one = (np.array(bound, np.float32) for bound in (0, 1))
    _, unit = uniform(key, zero, one, out_shape=probs.shape, out_dtype=np.dtype(np.float32))
    return np.asarray(unit < probs.astype(np.float32)).astype(dtype or probs.dtype)


def _multinomial_of_logits_type(
    logits: TensorType, *, sample_size: int, dtype: np.dtype[AnyValue], seed: float | None
) -> TensorType:
    require_float(logits)
    if logits.rank != 2 or sample_size < 1:
        raise TypeInferenceError(f"cannot draw {sample_size} times by {logits!r}")
    if dtype_name(dtype) not in ("int32", "int64"):
        raise TypeInferenceError(f"dtype: expected int32 or int64, found {dtype}")
    return TensorType((logits.shape[0], sample_size), dtype)


def _decompose_multinomial(
    logits: Expr, *, sample_size: int, dtype: np.dtype[AnyValue], seed: float | None
) -> Expr:
    probs = call("nn.softmax", call("cast", logits, dtype="float32"), axis=-1)
    drawn = call("random.multinomial", _fixed_key(seed), probs, num_samples=sample_size)
    found = TupleGetItem(drawn, 1)
    return found if dtype == np.int32 else call("cast", found, dtype=dtype_name(dtype))


@relay_op(
    "serde.multinomial",
    traits=(Random, BitLevel),
    infer=_multinomial_of_logits_type,
    decompose=_decompose_multinomial,
    samples=[sample((2, 5), sample_size=7, seed=1.0), sample((2, 3), dtype="int64", seed=2.0)],
)
def multinomial_of_logits(
    logits: Array,
    *,
    sample_size: int = 1,
    dtype: np.dtype[AnyValue] = _INT32,
    seed: float | None = None,
) -> Array:
    """Classes of each row, drawn as often as the softmax of its logits says; seeds as above."""
    key = _seed_key(seed).data
    probs = softmax(logits.astype(np.float32), axis=-1)
    return multinomial(key, probs, num_samples=sample_size)[1].astype(dtype)
