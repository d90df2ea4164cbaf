"""Random numbers as functions of a key: the Threefry generator, which can be split.

The block function is Threefry with four words of 64 bits and 20 rounds (Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3", 2011), with no key added after the last round,
as TVM has it. A key is ten words: four of the cipher's key, two of the path of splits, two of
the counter, and two with a single bit where the path goes on (Claessen and Palka, "Splittable
pseudorandom number generators using cryptographic hashing", 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import BitLevel, Constant, Expr, TupleWrapper, const, join_dim, require_float
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import times

__all__ = [
    "ONES", "PARITY", "ROTATIONS", "TOP", "multinomial", "normal", "sizes", "threefry_key",
    "threefry_rounds", "uniform",
]  # fmt: skip

ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
PARITY = 0x1BD11BDAA9FC1A22
ONES = 2**64 - 1
TOP = 1 << 63

_KEY = tensor((10,), "uint64", low=0, high=1000)


def threefry_rounds(key: Array, counters: Array) -> Array:
    """Return the 20 rounds of Threefry over blocks, without the addition of a key behind them.

    Args:
        key: Four uint64.
        counters: uint64 of shape (blocks, 4).
    """
    words = [int(word) for word in key]
    words.append(PARITY ^ words[0] ^ words[1] ^ words[2] ^ words[3])
    a, b, c, d = (counters[:, word].copy() for word in range(4))
    with np.errstate(over="ignore"):
        for turn in range(5):
            a, b, c, d = (
                x + np.uint64((words[(turn + index) % 5] + (turn if index == 3 else 0)) & ONES)
                for index, x in enumerate((a, b, c, d))
            )
            for step in range(4):
                left, right = ROTATIONS[(4 * turn + step) % 8]
                a = a + b
                c = c + d
                b, d = _rotate_left(d, right) ^ c, _rotate_left(b, left) ^ a
    return np.stack([a, b, c, d], axis=1)


def _rotate_left(x: Array, bits: int) -> Array:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _shift_bit_right(high: int, low: int) -> tuple[int, int]:
    """Return a single bit of 128 one place further to the right."""
    if high == 1:
        return 0, TOP
    return (high >> 1, 0) if high else (0, low >> 1)


def _words(values: Sequence[int]) -> Array:
    return np.array([value & ONES for value in values], np.uint64)


def _reserve_counter(key: Array, count: int) -> Array:
    """Return a key whose counter can grow by `count`: itself, or one further along the path."""
    k = [int(word) for word in key]
    if k[7] < ONES - count:
        return key
    if k[8] == 0 and k[9] == 0:
        hashed = threefry_rounds(key[:4], _words([ONES] * 4)[None])[0]
        return np.concatenate([hashed, _words([0, 0, 0, 0, TOP, 0])])
    return _words([*k[:4], k[4] | k[8], k[5] | k[9], 0, 0, *_shift_bit_right(k[8], k[9])])


def _generate(key: Array, shape: Sequence[int]) -> tuple[Array, Array]:
    count = math.prod(shape)
    state = _reserve_counter(key, count)
    whole, rest = divmod(count, 4)
    with np.errstate(over="ignore"):
        # All four words grow from block to block, the path as well as the counter.
        counters = state[4:8][None] + np.arange(whole, dtype=np.uint64)[:, None]
        values = threefry_rounds(state[:4], counters).reshape(-1)
    after = state.copy()
    after[6] = 0
    after[7] = (int(state[7]) + count) & ONES
    if rest:
        last = state[4:8].copy()
        last[3] = (int(state[7]) + 4 * whole) & ONES
        values = np.concatenate([values, threefry_rounds(state[:4], last[None])[0, :rest]])
        after[7] = (int(last[3]) + 4) & ONES
    return after, values.reshape(tuple(shape))


def _key_type(key: TensorType) -> TensorType:
    if key.dtype != "uint64" or key.rank != 1:
        raise TypeInferenceError(f"expected a key of 10 uint64, found {key!r}")
    join_dim(key.shape[0], 10)
    return TensorType((10,), "uint64")


def _generate_type(key: TensorType, *, out_shape: tuple[int, ...]) -> tuple[TensorType, TensorType]:
    return _key_type(key), TensorType(sizes(out_shape), "uint64")


def sizes(shape: Sequence[int]) -> Sequence[int]:
    if any(length < 0 for length in shape):
        raise TypeInferenceError(f"out_shape: expected lengths, found {list(shape)}")
    return shape


@builder("random.threefry_key")
def threefry_key(seed: int) -> Constant:
    """Return a new key, a constant of ten uint64.

    Args:
        seed: Number of at most 256 bits.
    """
    seed = int(seed)
    if not 0 <= seed < 1 << 256:
        raise TypeInferenceError(f"seed: expected 0 to 2**256 - 1, found {seed}")
    words = [seed >> 64 * index for index in range(4)]
    return Constant(_words([*words, 0, 0, 0, 0, TOP, 0]))


@relay_op(
    "random.threefry_generate", traits=(times(8), BitLevel,),
    infer=_generate_type,
    samples=[sample(_KEY, out_shape=(2, 3)), sample(_KEY, out_shape=(8,)),
             sample(_KEY, out_shape=())],
    arguments=Arguments(names={"out_shape": "shape"}),
)  # fmt: skip
def threefry_generate(key: Array, *, out_shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The key to use next, and random bits."""
    return _generate(key, out_shape)


def _split_type(key: TensorType) -> tuple[TensorType, TensorType]:
    return _key_type(key), _key_type(key)


@relay_op("random.threefry_split", traits=(BitLevel,), infer=_split_type, samples=[sample(_KEY)])
def threefry_split(key: Array) -> tuple[Array, Array]:
    """Two keys, whose numbers have nothing to do with each other."""
    k = [int(word) for word in key]
    if k[8] == 0 and k[9] == 0:
        hashed = [int(word) for word in threefry_rounds(key[:4], key[None, 4:8])[0]]
        ends = (0, 0, 0, TOP >> 1, 0)
        return _words([*hashed, 0, *ends]), _words([*hashed, TOP, *ends])
    place = _shift_bit_right(k[8], k[9])
    return _words([*k[:8], *place]), _words([*k[:4], k[4] | k[8], k[5] | k[9], *k[6:8], *place])


def _drawn_type(
    key: TensorType,
    a: TensorType,
    b: TensorType,
    *,
    out_shape: tuple[int, ...],
    out_dtype: np.dtype[AnyValue] | None,
) -> tuple[TensorType, TensorType]:
    if out_dtype not in (np.float32, np.float64):
        raise TypeInferenceError(f"out_dtype: expected float32 or float64, found {out_dtype}")
    for bound in (a, b):
        if bound.rank or bound.dtype != dtype_name(out_dtype):
            raise TypeInferenceError(f"expected a scalar of {out_dtype}, found {bound!r}")
    return _key_type(key), TensorType(sizes(out_shape), out_dtype)


def _unit(key: Array, shape: Sequence[int], dtype: AnyValue) -> tuple[Array, Array]:
    """Return the next key and numbers from 0 up to but not including 1.

    The bits become the fraction of a number between 1 and 2; for float32 they are the
    upper ones of the lower half of each word.
    """
    after, bits = _generate(key, shape)
    if dtype == np.float64:
        pattern = (bits >> np.uint64(12)) | np.uint64(0x3FF << 52)
        return after, pattern.view(np.float64) - 1.0
    narrow = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    single = np.asarray((narrow >> np.uint32(9)) | np.uint32(0x7F << 23))
    return after, np.asarray(single.view(np.float32) - np.float32(1))


@relay_op(
    "random.uniform",
    traits=(times(16), BitLevel),
    infer=_drawn_type,
    samples=[
        sample(_KEY, tensor(()), tensor((), low=3, high=5), out_shape=(2, 3), out_dtype="float32"),
        sample(_KEY, np.array(-1.0), np.array(1.0), out_shape=(5,), out_dtype="float64"),
    ],
)
def uniform(
    key: Array,
    low: Array,
    high: Array,
    *,
    out_shape: tuple[int, ...],
    out_dtype: np.dtype[AnyValue] | None = None,
) -> tuple[Array, Array]:
    """The key to use next, and numbers spread evenly from `low` up to `high`."""
    after, unit = _unit(key, out_shape, out_dtype)
    return after, np.asarray(unit * (high - low) + low)


@builder("random.uniform")
def build_uniform(
    key: Expr,
    shape: Sequence[int],
    dtype: AnyValue = "float32",
    low: AnyValue = 0.0,
    high: AnyValue = 1.0,
) -> TupleWrapper:
    """Return the next key and evenly spread numbers of `shape`; bounds may be numbers."""
    return _build_drawn("random.uniform", key, shape, dtype, low, high)


@relay_op(
    "random.normal",
    traits=(times(16), BitLevel),
    infer=_drawn_type,
    samples=[
        sample(_KEY, tensor(()), tensor((), low=1, high=2), out_shape=(2, 3), out_dtype="float32"),
        sample(_KEY, np.array(2.0), np.array(0.5), out_shape=(5,), out_dtype="float64"),
    ],
)
def normal(
    key: Array,
    mean: Array,
    scale: Array,
    *,
    out_shape: tuple[int, ...],
    out_dtype: np.dtype[AnyValue] | None = None,
) -> tuple[Array, Array]:
    """The key to use next, and normally distributed numbers, by the method of Box and Muller."""
    after, (first, second) = _unit(key, (2, *out_shape), out_dtype)
    kind = first.dtype.type
    radius = np.sqrt(kind(-2) * np.log(kind(1) - first))
    return after, np.asarray(radius * np.sin(kind(2 * math.pi) * second) * scale + mean)


@builder("random.normal")
def build_normal(
    key: Expr,
    shape: Sequence[int],
    dtype: AnyValue = "float32",
    mean: AnyValue = 0.0,
    scale: AnyValue = 1.0,
) -> TupleWrapper:
    """Return the next key and normal numbers of `shape`; mean and deviation may be numbers."""
    return _build_drawn("random.normal", key, shape, dtype, mean, scale)


def _build_drawn(
    name: str, key: Expr, shape: Sequence[int], dtype: AnyValue, *bounds: AnyValue
) -> TupleWrapper:
    a, b = (bound if isinstance(bound, Expr) else const(bound, dtype) for bound in bounds)
    return TupleWrapper(call(name, key, a, b, out_shape=shape, out_dtype=dtype), 2)


def _multinomial_type(
    key: TensorType, probs: TensorType, *, num_samples: int
) -> tuple[TensorType, TensorType]:
    require_float(probs)
    if probs.rank == 0 or num_samples < 0:
        raise TypeInferenceError(f"cannot draw {num_samples} times by {probs!r}")
    return _key_type(key), TensorType((*probs.shape[:-1], num_samples), "int32")


@relay_op(
    "random.multinomial",
    traits=(times(16), BitLevel),
    infer=_multinomial_type,
    samples=[
        sample(_KEY, tensor((5,), low=-0.5, high=1.0), num_samples=7),
        sample(_KEY, tensor((2, 3, 4), "float64", low=0.1, high=9.0), num_samples=2),
        sample(_KEY, tensor((2, 3), low=0.1)),
    ],
    arguments=Arguments(required=("num_samples",)),
)
def multinomial(key: Array, probs: Array, *, num_samples: int = 1) -> tuple[Array, Array]:
    """The key to use next, and indices of the last axis, each drawn as often as `probs` says.

    Weights need not sum to one, and those below zero count as zero.
    """
    weights = np.maximum(probs.astype(np.float32), np.float32(0))
    with np.errstate(all="ignore"):
        reach = np.cumsum(weights / weights.sum(-1, keepdims=True), -1, dtype=np.float32)
    after, unit = _unit(key, (*probs.shape[:-1], num_samples), np.dtype(np.float32))
    above = reach[..., :, None] - unit[..., None, :]
    return after, np.where(above > 0, above, np.float32(1)).argmin(-2).astype(np.int32)
