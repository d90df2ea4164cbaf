"""Numbers that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType
from serde.relay.op.random.threefry import PARITY, ROTATIONS

_WORD = "uint64"
_KEY_WORDS = 10


class _Cipher:
    """Statements of the generator; see the kernels for what they compute."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._script = framework.statements
        self._tir = framework.tir
        self.zero = self.word(0)
        self.top = framework.tir.shift_left(self.word(1), self.word(63))

    def word(self, value: AnyValue) -> AnyValue:
        """Return a number, below 2**63 if it is Python's, as a word."""
        if isinstance(value, int):
            return self._tir.const(value, _WORD)
        return self._tir.Cast(_WORD, value)

    def _either(self, *words: AnyValue) -> AnyValue:
        return self._tir.bitwise_or(*words)

    def run_rounds(
        self, key: AnyValue, block: AnyValue, words: AnyValue, *, added: bool = False
    ) -> None:
        """Make the statements of the 20 rounds over a block of four words, in its place.

        Args:
            key: Four words.
            block: Likewise.
            words: Room for six.
            added: Whether the key is added to the block already.
        """
        tir = self._tir
        words[4] = self.word(PARITY)
        for index in range(4):
            words[index] = key[index]
            words[4] = tir.bitwise_xor(words[4], key[index])
        for turn in range(5):
            for index in range(0 if added and not turn else 4):
                term = words[(turn + index) % 5]
                term = term + self.word(turn) if index == 3 and turn else term
                block[index] = block[index] + term
            for step in range(4):
                left, right = ROTATIONS[(4 * turn + step) % 8]
                block[0] = block[0] + block[1]
                block[2] = block[2] + block[3]
                words[5] = tir.bitwise_xor(self._rotate(block[3], right), block[2])
                block[3] = tir.bitwise_xor(self._rotate(block[1], left), block[0])
                block[1] = words[5]

    def _rotate(self, x: AnyValue, bits: int) -> AnyValue:
        tir = self._tir
        lower = tir.shift_right(x, self.word(64 - bits))
        return self._either(tir.shift_left(x, self.word(bits)), lower)

    def shift_bit(self, high: AnyValue, low: AnyValue, out: AnyValue, at: int) -> None:
        """Make the statements that put a single bit of 128 one place further to the right."""
        tir, one = self._tir, self.word(1)
        out[at] = tir.shift_right(high, one)
        lower = tir.Select(high == self.zero, tir.shift_right(low, one), self.zero)
        out[at + 1] = tir.Select(high == one, self.top, lower)

    def go_on(self, key: AnyValue, out: AnyValue) -> None:
        """Make the statements of the words of the path, with the single bit among them."""
        for place in range(4):
            out[place] = key[place]
        for place in (4, 5):
            out[place] = self._either(key[place], key[place + 4])

    def reserve_counter(self, key: AnyValue, state: AnyValue, count: int) -> None:
        """Make the statements of a key whose counter can grow by `count`."""
        tir, script = self._tir, self._script
        full = key[7] >= tir.bitwise_not(self.word(count))
        at_end = tir.all(key[8] == self.zero, key[9] == self.zero)
        for index in range(_KEY_WORDS):
            state[index] = key[index]
        with script.If(tir.all(full, tir.Not(at_end))), script.Then():
            self.go_on(key, state)
            state[6] = self.zero
            state[7] = self.zero
            self.shift_bit(key[8], key[9], state, 8)
        block = self._framework.cell(_WORD, 4)
        words = self._framework.cell(_WORD, 6)
        with script.If(tir.all(full, at_end)), script.Then():
            for index in range(4):
                # Ones and the key: a sum that LLVM can see overflow is undefined as TVM writes it.
                block[index] = key[index] - self.word(1)
            self.run_rounds(key, block, words, added=True)
            for index in range(4):
                state[index] = block[index]
                state[index + 4] = self.zero
            state[8] = self.top
            state[9] = self.zero


def _make_generator(framework: Framework, count: int) -> Callable[..., Sequence[AnyValue]]:
    """Return the key to use next, and `count` words."""
    tir, script = framework.tir, framework.statements
    whole, rest = divmod(count, 4)

    def generate(key: AnyValue, after: AnyValue, values: AnyValue) -> None:
        cipher = _Cipher(framework)
        with script.serial(0, 1):
            state = framework.cell(_WORD, _KEY_WORDS)
            cipher.reserve_counter(key, state, count)
            for place in range(_KEY_WORDS):
                after[place] = state[place]
            after[6] = cipher.zero
            after[7] = state[7] + cipher.word(count if not rest else 4 * whole + 4)
            with script.serial(0, whole + (rest > 0)) as index:
                block = framework.cell(_WORD, 4)
                # In whole blocks all four words grow, the path as well as the counter.
                step = cipher.word(index)
                last = tir.Select(index < whole, step, cipher.word(4 * whole))
                for place in range(4):
                    grown = last if place == 3 else tir.Select(index < whole, step, cipher.zero)
                    block[place] = state[4 + place] + grown
                cipher.run_rounds(state, block, framework.cell(_WORD, 6))
                for place in range(4):
                    with script.If(index * 4 + place < count), script.Then():
                        values[index * 4 + place] = block[place]

    def threefry_generate(key: AnyValue) -> Sequence[AnyValue]:
        shapes = [(_KEY_WORDS,), (count,)]
        return framework.extern("threefry_generate", [key], shapes, [_WORD] * 2, generate)

    return threefry_generate


def _draw_words(ctx: Export, key: Value, count: int) -> tuple[Value, Value]:
    """Write the next key and a vector of words."""
    after, words = ctx.emit_te_tuple(_make_generator(ctx.framework, count), key, outputs=2)
    return after, words


@OPS.exports("random.threefry_generate")
def export_threefry_generate(
    ctx: Export, key: Value, *, out_shape: tuple[int, ...]
) -> Sequence[Value]:
    after, words = _draw_words(ctx, key, math.prod(out_shape))
    return after, ctx.emit("reshape", words, out_shape)


@OPS.exports("random.threefry_split")
def export_threefry_split(ctx: Export, key: Value) -> Sequence[Value]:
    framework = ctx.framework
    tir, script = framework.tir, framework.statements

    def split(key: AnyValue, left: AnyValue, right: AnyValue) -> None:
        cipher = _Cipher(framework)
        with script.serial(0, 1):
            for index in range(8):
                left[index] = key[index]
                right[index] = key[index]
            cipher.go_on(key, right)
            cipher.shift_bit(key[8], key[9], left, 8)
            cipher.shift_bit(key[8], key[9], right, 8)
            at_end = tir.all(key[8] == cipher.zero, key[9] == cipher.zero)
            with script.If(at_end), script.Then():
                block = framework.cell(_WORD, 4)
                for index in range(4):
                    block[index] = key[4 + index]
                cipher.run_rounds(key, block, framework.cell(_WORD, 6))
                for out in (left, right):
                    for index in range(4):
                        out[index] = block[index]
                        out[index + 4] = cipher.zero
                    out[8] = tir.shift_right(cipher.top, cipher.word(1))
                    out[9] = cipher.zero
                right[4] = cipher.top

    def threefry_split(key: AnyValue) -> Sequence[AnyValue]:
        shapes = [(_KEY_WORDS,)] * 2
        return framework.extern("threefry_split", [key], shapes, [_WORD] * 2, split)

    return ctx.emit_te_tuple(threefry_split, key, outputs=2)


def _unit(ctx: Export, key: Value, shape: Sequence[int], dtype: str) -> tuple[Value, Value]:
    """Write the next key and numbers from 0 up to but not including 1, by their bits."""
    tir, te = ctx.framework.tir, ctx.framework.te
    after, words = _draw_words(ctx, key, math.prod(shape))

    def unit(words: AnyValue) -> AnyValue:
        def at(place: AnyValue) -> AnyValue:
            if dtype == "float64":
                fraction = tir.shift_right(words[place], tir.const(12, _WORD))
                bits = tir.bitwise_or(fraction, tir.const(0x3FF << 52, _WORD))
            else:
                narrow = tir.Cast("uint32", words[place])
                fraction = tir.shift_right(narrow, tir.const(9, "uint32"))
                bits = tir.bitwise_or(fraction, tir.const(0x7F << 23, "uint32"))
            return tir.reinterpret(dtype, bits) - tir.const(1, dtype)

        return te.compute(words.shape, at, name="unit")

    return after, ctx.emit("reshape", ctx.emit_te(unit, words), shape)


def _typed(x: Value, shape: Sequence[int], dtype: str) -> Value:
    """Return a value with the type that it needs to be an operand of a Relay expression."""
    return Value(x.expr, TensorType(shape, dtype))


@OPS.exports("random.uniform")
def export_uniform(
    ctx: Export,
    key: Value,
    low: Value,
    high: Value,
    *,
    out_shape: tuple[int, ...],
    out_dtype: np.dtype[AnyValue],
) -> Sequence[Value]:
    dtype = dtype_name(out_dtype)
    after, unit = _unit(ctx, key, out_shape, dtype)

    def spread(x: Expr, low: Expr, high: Expr) -> Expr:
        return relay.add(relay.multiply(x, relay.subtract(high, low)), low)

    return after, ctx.spell(spread, _typed(unit, out_shape, dtype), low, high)


@OPS.exports("random.normal")
def export_normal(
    ctx: Export,
    key: Value,
    mean: Value,
    scale: Value,
    *,
    out_shape: tuple[int, ...],
    out_dtype: np.dtype[AnyValue],
) -> Sequence[Value]:
    dtype = dtype_name(out_dtype)
    whole = (2, *out_shape)
    after, unit = _unit(ctx, key, whole, dtype)

    def drawn(x: Expr, mean: Expr, scale: Expr) -> Expr:
        first, second = (relay.take(x, relay.const(place, "int64"), axis=0) for place in (0, 1))
        logarithm = relay.log(relay.subtract(relay.const(1, dtype), first))
        radius = relay.sqrt(relay.multiply(relay.const(-2, dtype), logarithm))
        wave = relay.sin(relay.multiply(relay.const(2 * math.pi, dtype), second))
        return relay.add(relay.multiply(relay.multiply(radius, wave), scale), mean)

    return after, ctx.spell(drawn, _typed(unit, whole, dtype), mean, scale)


@OPS.exports("random.multinomial")
def export_multinomial(
    ctx: Export, key: Value, probs: Value, *, num_samples: int
) -> Sequence[Value]:
    """Each number falls where the running sum of the shares first exceeds it."""
    shape = ctx.type(probs).concrete_shape
    if shape is None:
        raise Unsupported("draws of a number that is not fixed")
    drawn = (*shape[:-1], num_samples)
    if not math.prod(drawn):
        return _draw_words(ctx, key, 1)[0], ctx.const(allocation.zeros(drawn), "int32")
    after, unit = _unit(ctx, key, drawn, "float32")

    def choose(x: Expr, weights: Expr) -> Expr:
        kept = relay.maximum(relay.cast(weights, "float32"), relay.const(0.0, "float32"))
        shares = relay.divide(kept, relay.sum(kept, axis=-1, keepdims=True))
        reach = relay.expand_dims(relay.cumsum(shares, axis=-1), axis=-1)
        above = relay.subtract(reach, relay.expand_dims(x, axis=-2))
        positive = relay.greater(above, relay.const(0.0, "float32"))
        return relay.argmin(relay.where(positive, above, relay.const(1.0, "float32")), axis=-2)

    return after, ctx.spell(choose, _typed(unit, drawn, "float32"), probs)


@OPS.imports("relax.multinomial_from_uniform")
def import_multinomial_from_uniform(
    ctx: Import, prob: Expr, uniform_sample: Expr, sample_indices: Expr, *, dtype: str | None
) -> Expr:
    """A number between 0 and 1 chooses the first event whose running sum exceeds it."""
    sums = relay.cumsum(prob, axis=1, dtype=ctx.dtype(prob))
    rows = relay.take(sums, relay.squeeze(sample_indices, axis=[1]), axis=0)
    passed = relay.less_equal(rows, uniform_sample)
    return relay.sum(relay.cast(passed, dtype or "int64"), axis=1, keepdims=True)
