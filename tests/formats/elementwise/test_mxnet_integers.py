"""Integers that float64 cannot hold, in MXNet 1.9.1 against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.mxnet_written import run_built as run
from support.oracle import run_mxnet

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Expr
from serde.relay.ir.module import IRModule

LEFT = np.array([2**62 + 1, -(2**62) - 3, 7, -7, 2**53 + 1, -1], np.int64)
RIGHT = np.array([10, 7, -2, 2, -3, 5], np.int64)
PLACES = np.array([0, 1, 5, 31, 62, 63], np.int64)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("add", np.add),
        ("multiply", np.multiply),
        ("floor_divide", np.floor_divide),
        ("floor_mod", np.mod),
        ("mod", np.fmod),
        ("trunc_mod", np.fmod),
        ("less", np.less),
        ("maximum", np.maximum),
    ],
)
def test_operator_of_two_int64(name: str, wanted: Callable[..., np.ndarray]) -> None:
    with np.errstate(over="ignore"):
        expected = wanted(LEFT, RIGHT)
    np.testing.assert_array_equal(run(getattr(relay, name), LEFT, RIGHT), expected)


DIVISORS = np.array([6, 3, 7, -3, -(2**24) - 1, 5], np.int64)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("number", [2**30 - 1, -(2**29) - 3])
def test_quotient_of_a_constant(number: int, dtype: str) -> None:
    divisor = DIVISORS.astype(dtype)
    found = run(lambda x: relay.divide(relay.const(number, dtype), x), divisor)
    np.testing.assert_array_equal(found, np.trunc(number / divisor.astype(np.float64)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 11, 19])
def test_power_to_a_constant(exponent: int, dtype: str) -> None:
    base = np.array([3, 5, 2, 1, 0], dtype)
    found = run(lambda x: relay.power(x, relay.const(exponent, dtype)), base)
    np.testing.assert_array_equal(found, np.power(base, np.array(exponent, dtype)))


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [("int8", (5, 3)), ("uint8", (3, 5)), ("int32", (3, 19)), ("int64", (-7, 21))],
)
def test_power_of_two_tensors(dtype: str, largest: tuple[int, int]) -> None:
    pairs = [largest, (2, 6), (2, 1), (3, 0), (0, 0), (0, 99), (1, 100), (1, 31)]
    base, exponent = (np.array(each, dtype) for each in zip(*pairs, strict=True))
    wanted = [each**power for each, power in pairs]
    np.testing.assert_array_equal(run(relay.power, base, exponent), wanted)


def test_power_to_a_negative_integer() -> None:
    base = np.array([[2, 1, -1, -3]], np.int64)
    found = run(relay.power, base, np.array([[-1], [-4]], np.int64))
    np.testing.assert_array_equal(found, [[0, 1, -1, 0], [0, 1, 1, 0]])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_shift_up_to_the_width(name: str, dtype: str) -> None:
    bits = 8 * np.dtype(dtype).itemsize
    data = np.array([1, -1, 93, -128, 127, -77], dtype)
    places = (PLACES % bits).astype(dtype)
    np.testing.assert_array_equal(
        run(getattr(relay, name), data, places), getattr(np, name)(data, places)
    )


@pytest.mark.parametrize("value", [2**53 + 1, -(2**62) - 1, 5])
def test_constant_keeps_every_bit(value: int) -> None:
    found = run(lambda x: relay.add(x, relay.const(value, "int64")), np.arange(3))
    np.testing.assert_array_equal(found, np.arange(3) + value)


def test_product_of_bytes_does_not_round() -> None:
    left = np.full((2, 4096), -128, np.int8)
    found = run(lambda a, b: relay.nn.dense(a, b, None, "int32"), left, left)
    np.testing.assert_array_equal(found, np.full((2, 2), 4096 * 16384))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float64"])
def test_batch_of_one_serves_all(dtype: str) -> None:
    generator = np.random.default_rng(4)
    left = generator.integers(-99, 99, (3, 5, 2)).astype(dtype)
    right = generator.integers(-99, 99, (1, 4, 5)).astype(dtype)
    result = "int32" if dtype == "int8" else dtype

    def build(a: Expr, b: Expr) -> Expr:
        return relay.nn.batch_matmul(a, b, result, transpose_a=True, transpose_b=True)

    wide = left.astype(result).transpose(0, 2, 1), right.astype(result).transpose(0, 2, 1)
    np.testing.assert_array_equal(run(build, left, right), np.matmul(*wide))


@pytest.mark.parametrize("ascending", [True, False])
def test_equals_keep_their_order(ascending: bool) -> None:
    keys = np.random.default_rng(3).integers(0, 4, (3, 50)).astype(np.float32)
    found = run(lambda x: relay.argsort(x, axis=1, is_ascend=ascending, dtype="int32"), keys)
    wanted = np.argsort(keys if ascending else -keys, axis=1, kind="stable")
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("mode", ["update", "add", "mul", "min", "max"])
def test_updates_that_meet(mode: str) -> None:
    generator = np.random.default_rng(5)
    data = generator.integers(-5, 5, (4, 2)).astype(np.int64)
    places = generator.integers(0, 4, (1, 23)).astype(np.int64)
    updates = generator.integers(-3, 4, (23, 2)).astype(np.int64)
    found = run(lambda d, p, u: relay.scatter_nd(d, p, u, mode), data, places, updates)
    combine: dict[str, Callable[[Any, Any], Any]] = {
        "update": lambda _, new: new,
        "add": np.add,
        "mul": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
    }
    wanted = data.copy()
    for place, row in zip(places[0], updates, strict=True):
        wanted[place] = combine[mode](wanted[place], row)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["uint16", "int16", "uint32", "uint64"])
def test_constants_of_other_integers_are_wider(dtype: str) -> None:
    """As indices they mean the same; MXNet has no operator on such dtypes."""
    data = relay.var("x", shape=(4, 3))
    body = relay.take(data, relay.Constant(np.array([2, 0, 3], dtype)), axis=0)
    mod = IRModule({"main": relay.Function([data], body)})
    symbol, params = serde.import_model(mod)
    assert {value.dtype for value in params.values()} <= {np.int32, np.int64}
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run_mxnet(symbol, params, {"x": x})[0], x[[2, 0, 3]])


def test_constants_of_other_integers_are_no_outputs() -> None:
    x = relay.var("x", shape=(2,))
    body = relay.Tuple([x, relay.const(np.array([1, 2], "uint16"))])
    with pytest.raises(UnsupportedModelError, match="MXNet computes no uint16"):
        serde.import_model(IRModule({"main": relay.Function([x], body)}))
