"""Builders that pick the form of an operator by what they are given, as TVM's do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.registry import OpDef

IMAGE = relay.var("x", shape=(1, 2, 4, 6))
VOLUME = relay.var("x", shape=(1, 1, 2, 3, 2))
Build = Callable[[relay.Expr, relay.Expr], relay.Expr]

CASES: dict[str, tuple[relay.Expr, Build, np.ndarray]] = {
    "expand_dims": (IMAGE, lambda x, n: relay.expand_dims(x, n, 2), np.array(-1)),
    "squeeze": (IMAGE, relay.squeeze, np.array([0])),
    "nn.pad": (
        IMAGE,
        lambda x, n: relay.nn.pad(x, n, 1.5),
        np.array([[0, 0], [1, 0], [0, 2], [3, 1]]),
    ),
    "image.resize2d": (IMAGE, relay.image.resize2d, np.array([3, 9])),
    "nn.upsampling": (
        IMAGE,
        lambda x, n: relay.nn.upsampling(x, n, 2.0, method="bilinear"),
        np.array(1.5, np.float32),
    ),
    "nn.upsampling3d": (
        VOLUME,
        lambda x, n: relay.nn.upsampling3d(x, 2, n, 1),
        np.array(3, np.float32),
    ),
}


def _name(node: relay.Expr) -> str:
    assert isinstance(node, relay.Call)
    assert isinstance(node.op, OpDef)
    return node.op.name


@pytest.mark.parametrize("name", CASES)
def test_a_constant_makes_an_attribute_and_a_computed_value_an_operand(name: str) -> None:
    data, build, value = CASES[name]
    computed = relay.var("n", shape=value.shape, dtype=value.dtype)
    static, dynamic = build(data, relay.const(value)), build(data, computed)
    assert _name(static) == name
    assert _name(dynamic) == f"dyn.{name}"
    x = np.random.default_rng(0).normal(size=data.type.shape).astype("float32")
    executor = relay.create_executor("debug")
    left = executor.evaluate(relay.Function([data], static))(x)
    right = executor.evaluate(relay.Function([data, computed], dynamic))(x, value)
    np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("builder", "first"),
    [
        (relay.nn.space_to_batch_nd, ["data", "block_shape", "paddings"]),
        (relay.nn.batch_to_space_nd, ["data", "block_shape", "crops"]),
        (relay.fixed_point_multiply_per_axis, ["x", "y", "lshift", "rshift", "is_lshift_required"]),
        (relay.serde.qlinear_conv2d, ["data", "weight", "bias", "data_scale"]),
    ],
)
def test_parameters_that_must_be_given_stand_where_tvm_has_them(
    builder: Any, first: list[str]
) -> None:
    parameters = list(inspect.signature(builder).parameters.values())
    assert [each.name for each in parameters[: len(first)]] == first
    assert all(each.default is inspect.Parameter.empty for each in parameters[: len(first)])
