"""Numbers drawn at random, by a seed or by the keys of Threefry.

Words of 64 bits are kept as int64, whose sums wrap as those of uint64 do and which runtimes add;
only shifts, which ONNX has for unsigned integers, are on uint64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper

from serde.errors import Unsupported
from serde.onnx.ops.elementwise.bitwise import combine_bits
from serde.onnx.ops.elementwise.convert import as_dtype, cast
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call
from serde.relay.op.random.seeded import RandomNormal, RandomUniform
from serde.relay.op.random.threefry import PARITY, ROTATIONS, TOP

DType = np.dtype[AnyValue]


def _emit_random(
    ctx: Export,
    op: str,
    like: Value | None,
    *,
    shape: tuple[int, ...] | None,
    dtype: DType | None,
    **attrs: float | None,
) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    if like is None and shape:
        return ctx.emit(op, shape=list(shape), dtype=kind, **attrs)
    if like is None:
        # An attribute without elements has no type that the checker knows.
        return squeeze(ctx, ctx.emit(op, shape=[1], dtype=kind, **attrs), [0])
    return ctx.emit(f"{op}Like", like, dtype=kind, **attrs)


@OPS.exports("serde.random_uniform")
def export_random_uniform(ctx: Export, like: Value | None, *, random: RandomUniform) -> Value:
    return _emit_random(ctx, "RandomUniform", like, **vars(random))


@OPS.imports("RandomUniform", since=(1, 22))
def import_random_uniform(
    ctx: Import,
    *,
    shape: tuple[int, ...],
    dtype: int = onnx.TensorProto.FLOAT,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Expr:
    kind = ctx.dtype(dtype)
    return call("serde.random_uniform", shape=shape, low=low, high=high, dtype=kind, seed=seed)


@OPS.exports("serde.random_normal")
def export_random_normal(ctx: Export, like: Value | None, *, random: RandomNormal) -> Value:
    return _emit_random(ctx, "RandomNormal", like, **vars(random))


@OPS.imports("RandomNormal", since=(1, 22))
def import_random_normal(
    ctx: Import,
    *,
    shape: tuple[int, ...],
    dtype: int = onnx.TensorProto.FLOAT,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    kind = ctx.dtype(dtype)
    return call("serde.random_normal", shape=shape, mean=mean, scale=scale, dtype=kind, seed=seed)


@OPS.exports("serde.bernoulli", since=15)
def export_bernoulli(ctx: Export, x: Value, *, dtype: DType | None, seed: float | None) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Bernoulli", x, dtype=kind, seed=seed)


@OPS.exports("serde.bernoulli", ignored=("dtype",))
def export_bernoulli_v1(ctx: Export, x: Value, *, seed: float | None) -> Value:
    """What defines the operator from 15 on."""
    unit = ctx.emit("RandomUniformLike", x, seed=seed)
    return cast(ctx, ctx.emit("Less", unit, x), ctx.result_type().dtype)


@OPS.imports("Bernoulli", since=(15, 22))
def import_bernoulli(
    ctx: Import, x: Expr, *, dtype: int | None = None, seed: float | None = None
) -> Expr:
    kind = None if dtype is None else ctx.dtype(dtype)
    return call("serde.bernoulli", x, dtype=kind, seed=seed)


@OPS.exports("serde.multinomial")
def export_serde_multinomial(
    ctx: Export, x: Value, *, sample_size: int, dtype: DType, seed: float | None
) -> Value:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("Multinomial", x, sample_size=sample_size, dtype=kind, seed=seed)


@OPS.imports("RandomUniformLike", since=(1, 22))
def import_random_uniform_like(
    ctx: Import,
    x: Expr,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Expr:
    kind = None if dtype is None else ctx.dtype(dtype)
    return call("serde.random_uniform", x, low=low, high=high, dtype=kind, seed=seed)


@OPS.imports("RandomNormalLike", since=(1, 22))
def import_random_normal_like(
    ctx: Import,
    x: Expr,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    kind = None if dtype is None else ctx.dtype(dtype)
    return call("serde.random_normal", x, mean=mean, scale=scale, dtype=kind, seed=seed)


@OPS.imports("Multinomial", since=(7, 22))
def import_multinomial(
    ctx: Import,
    x: Expr,
    *,
    dtype: int = onnx.TensorProto.INT32,
    sample_size: int = 1,
    seed: float | None = None,
) -> Expr:
    kind = ctx.dtype(dtype)
    return call("serde.multinomial", x, sample_size=sample_size, dtype=kind, seed=seed)


WORDS = 10
"""A key is four words of the cipher, two of the path, two of the counter, two of its next bit."""


def _const_words(ctx: Export, values: AnyValue) -> Value:
    """Return words as int64 of the same bits."""
    return ctx.const(np.array(values, np.uint64).view(np.int64))


def _rotate(ctx: Export, x: Value, bits: tuple[int, int]) -> Value:
    """Return the two rows of `x`, each rotated to the left; the parts have no bits in common."""
    by = np.array(bits).reshape(2, 1)
    wide = cast(ctx, x, np.uint64)
    upper = ctx.emit("BitShift", wide, ctx.const(by, np.uint64), direction="LEFT")
    lower = ctx.emit("BitShift", wide, ctx.const(64 - by, np.uint64), direction="RIGHT")
    return ctx.emit("Add", cast(ctx, upper, np.int64), cast(ctx, lower, np.int64))


def _take_rows(ctx: Export, x: Value, *rows: int) -> Value:
    return ctx.emit("Gather", x, ctx.ints(rows), axis=0)


def _run_rounds(ctx: Export, key: Value, counters: Value) -> Value:
    """Return the 20 rounds over ``(4, blocks)``, without the addition of a key behind them.

    Two words are mixed with two others at once.

    Args:
        ctx: Where nodes are written.
        key: Whose first four words are the cipher's.
        counters: int64 of shape ``(4, blocks)``.
    """
    halves = combine_bits(ctx, "Xor", _take_rows(ctx, key, 0, 1), _take_rows(ctx, key, 2, 3))
    whole = combine_bits(ctx, "Xor", _take_rows(ctx, halves, 0), _take_rows(ctx, halves, 1))
    parity = combine_bits(ctx, "Xor", whole, _const_words(ctx, [PARITY]))
    words = unsqueeze(
        ctx, ctx.emit("Concat", _take_rows(ctx, key, 0, 1, 2, 3), parity, axis=0), [1]
    )
    left, right = _take_rows(ctx, counters, 0, 2), _take_rows(ctx, counters, 1, 3)
    for turn in range(5):
        left = ctx.emit("Add", left, _take_rows(ctx, words, turn, (turn + 2) % 5))
        right = ctx.emit("Add", right, _take_rows(ctx, words, (turn + 1) % 5, (turn + 3) % 5))
        right = ctx.emit("Add", right, ctx.const([[0], [turn]], np.int64))
        for step in range(4):
            left = ctx.emit("Add", left, right)
            transposed = _rotate(ctx, right, ROTATIONS[(4 * turn + step) % 8])
            right = _take_rows(ctx, combine_bits(ctx, "Xor", transposed, left), 1, 0)
    return _take_rows(ctx, ctx.emit("Concat", left, right, axis=0), 0, 2, 1, 3)


def _shift_bit(ctx: Export, bit: Value) -> Value:
    """Return a single bit of 128, in two words, shifted right by one."""
    one = ctx.const([1], np.uint64)
    shifted = ctx.emit("BitShift", cast(ctx, bit, np.uint64), one, direction="RIGHT")
    halves = cast(ctx, shifted, np.int64)
    high = _take_rows(ctx, bit, 0)
    free = ctx.emit("Equal", high, ctx.ints([0]))
    low = ctx.emit("Where", free, _take_rows(ctx, halves, 1), ctx.ints([0]))
    low = ctx.emit("Where", ctx.emit("Equal", high, ctx.ints([1])), _const_words(ctx, [TOP]), low)
    return ctx.emit("Concat", _take_rows(ctx, halves, 0), low, axis=0)


def _is_full(ctx: Export, bit: Value) -> Value:
    """Return whether a path is full: neither of two words has a bit left."""
    none = [ctx.emit("Equal", _take_rows(ctx, bit, each), ctx.ints([0])) for each in (0, 1)]
    return ctx.emit("And", *none)


def _extend_path(ctx: Export, key: Value) -> Value:
    """Return the two words of a key's path with its next bit."""
    return combine_bits(ctx, "Or", _take_rows(ctx, key, 4, 5), _take_rows(ctx, key, 8, 9))


def _reserve(ctx: Export, key: Value, count: int) -> Value:
    """Return a key whose counter can grow by `count`: itself, or one further along the path."""
    counter, bit = _take_rows(ctx, key, 7), _take_rows(ctx, key, 8, 9)
    # Without a sign, the last `count` + 1 numbers would overflow; with one, they are before zero.
    below = ctx.emit("Less", counter, ctx.ints([-1 - count]))
    fits = ctx.emit("Or", below, ctx.emit("Greater", counter, ctx.ints([-1])))
    hashed = _run_rounds(ctx, key, ctx.const([[-1]] * 4, np.int64))
    start = _const_words(ctx, [0, 0, 0, 0, TOP, 0])
    fresh = ctx.emit("Concat", squeeze(ctx, hashed, [1]), start, axis=0)
    further = ctx.emit(
        "Concat",
        _take_rows(ctx, key, 0, 1, 2, 3),
        _extend_path(ctx, key),
        ctx.ints([0, 0]),
        _shift_bit(ctx, bit),
        axis=0,
    )
    other = ctx.emit("Where", _is_full(ctx, bit), fresh, further)
    return ctx.emit("Where", fits, key, other)


def _generate(ctx: Export, key: Value, count: int) -> tuple[Value, Value]:
    """Return the next key as uint64, and `count` words of random bits as int64.

    All four words grow from block to block, the path as well as the counter; a last block
    of which only some words are taken has the counter alone grown.
    """
    state = _reserve(ctx, cast(ctx, key, np.int64), count)
    first = unsqueeze(ctx, _take_rows(ctx, state, 4, 5, 6, 7), [1])
    whole, rest = divmod(count, 4)
    blocks = []
    if whole:
        bounds = (ctx.const(each, np.int64) for each in (0, whole, 1))
        blocks.append(ctx.emit("Add", first, ctx.emit("Range", *bounds)))
    if rest:
        grown = ctx.const([[0], [0], [0], [4 * whole]], np.int64)
        blocks.append(ctx.emit("Add", first, grown))
    used = 4 * (whole + 1) if rest else count
    kept = ctx.ints(int(position != 6) for position in range(WORDS))
    added = ctx.ints(used if position == 7 else 0 for position in range(WORDS))
    after = ctx.emit("Add", ctx.emit("Mul", state, kept), added)
    if not blocks:
        return cast(ctx, after, np.uint64), ctx.ints([])
    counters = ctx.emit("Concat", *blocks, axis=1)
    mixed = ctx.emit("Transpose", _run_rounds(ctx, state, counters), perm=[1, 0])
    bits = ctx.emit("Reshape", mixed, ctx.ints([-1]))
    if rest:
        bits = ctx.emit("Slice", bits, ctx.ints([0]), ctx.ints([count]))
    return cast(ctx, after, np.uint64), bits


@OPS.exports("random.threefry_generate")
def export_threefry_generate(
    ctx: Export, key: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, Value]:
    after, bits = _generate(ctx, key, math.prod(out_shape))
    return after, _reshape(ctx, cast(ctx, bits, np.uint64), out_shape)


def _reshape(ctx: Export, x: Value, shape: Sequence[int]) -> Value:
    """Return a vector in another shape; one without elements has a length of 0 kept as it is."""
    if 0 not in shape:
        return ctx.emit("Reshape", x, ctx.ints(shape))
    if ctx.version < 14:
        raise Unsupported("a shape with a length of 0 needs version 14")
    return ctx.emit("Reshape", x, ctx.ints(shape), allowzero=1)


@OPS.exports("random.threefry_split")
def export_threefry_split(ctx: Export, key: Value) -> tuple[Value, Value]:
    words = cast(ctx, key, np.int64)
    bit = _take_rows(ctx, words, 8, 9)
    counters = unsqueeze(ctx, _take_rows(ctx, words, 4, 5, 6, 7), [1])
    hashed = squeeze(ctx, _run_rounds(ctx, words, counters), [1])
    cipher, count = _take_rows(ctx, words, 0, 1, 2, 3), _take_rows(ctx, words, 6, 7)
    full, position = _is_full(ctx, bit), _shift_bit(ctx, bit)
    keys = []
    for path, start in ((_take_rows(ctx, words, 4, 5), 0), (_extend_path(ctx, words), TOP)):
        tail = _const_words(ctx, [start, 0, 0, 0, TOP >> 1, 0])
        fresh = ctx.emit("Concat", hashed, tail, axis=0)
        further = ctx.emit("Concat", cipher, path, count, position, axis=0)
        keys.append(cast(ctx, ctx.emit("Where", full, fresh, further), np.uint64))
    return keys[0], keys[1]


def _draw_unit(ctx: Export, key: Value, shape: Sequence[int], dtype: str) -> tuple[Value, Value]:
    """Return the next key and numbers from 0 up to but not including 1.

    They are the upper 52 bits of each word as a fraction, or for float32 the upper 23 bits of
    its lower half.
    """
    after, words = _generate(ctx, key, math.prod(shape))
    bits = cast(ctx, words, np.uint64)
    if dtype == "float32":
        bits = ctx.emit("BitShift", bits, ctx.const([32], np.uint64), direction="LEFT")
    digits = 23 if dtype == "float32" else 52
    top = ctx.emit("BitShift", bits, ctx.const([64 - digits], np.uint64), direction="RIGHT")
    whole = cast(ctx, cast(ctx, top, np.int64), dtype)
    unit = ctx.emit("Mul", whole, ctx.const([2.0**-digits], dtype))
    return after, _reshape(ctx, unit, shape)


@OPS.exports("random.uniform", ignored=("out_dtype",))
def export_uniform(
    ctx: Export, key: Value, low: Value, high: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, Value]:
    after, unit = _draw_unit(ctx, key, out_shape, ctx.type(low).dtype)
    spread = ctx.emit("Mul", unit, ctx.emit("Sub", high, low))
    return after, ctx.emit("Add", spread, low)


@OPS.exports("random.normal", ignored=("out_dtype",))
def export_normal(
    ctx: Export, key: Value, mean: Value, scale: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, Value]:
    """Box and Muller: ``sqrt(-2 * log(1 - u)) * sin(2 * pi * v) * scale + mean``."""
    dtype = ctx.type(mean).dtype
    after, unit = _draw_unit(ctx, key, (2, *out_shape), dtype)
    first, angle = (ctx.emit("Gather", unit, ctx.const(half, np.int64), axis=0) for half in (0, 1))
    rest = ctx.emit("Sub", ctx.const(1, dtype), first)
    square = ctx.emit("Mul", ctx.const(-2, dtype), ctx.emit("Log", rest))
    sine = ctx.emit("Sin", ctx.emit("Mul", ctx.const(2 * math.pi, dtype), angle))
    normal = ctx.emit("Mul", ctx.emit("Sqrt", square), sine)
    return after, ctx.emit("Add", ctx.emit("Mul", normal, scale), mean)


@OPS.exports("random.multinomial")
def export_multinomial(
    ctx: Export, key: Value, probs: Value, *, num_samples: int
) -> tuple[Value, Value]:
    """The first index at which the cumulative sum of weights exceeds the number drawn."""
    *lead, _ = ctx.static_shape(probs, at_least=1)
    rank = len(lead) + 1
    zero, one = ctx.const(0, np.float32), ctx.const(1, np.float32)
    weights = ctx.emit("Max", as_dtype(ctx, probs, "float32"), zero)
    share = ctx.emit("Div", weights, emit_reduce(ctx, "ReduceSum", weights, [rank - 1], True))
    reach = ctx.emit("CumSum", share, ctx.const(rank - 1, np.int64))
    after, unit = _draw_unit(ctx, key, (*lead, num_samples), "float32")
    above = ctx.emit("Sub", unsqueeze(ctx, reach, [rank]), unsqueeze(ctx, unit, [rank - 1]))
    kept = ctx.emit("Where", ctx.emit("Greater", above, zero), above, one)
    drawn = ctx.emit("ArgMin", kept, axis=rank - 1, keepdims=0)
    return after, cast(ctx, drawn, np.int32)
