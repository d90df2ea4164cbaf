"""Quantised operators: which of them take another form whatever the target."""

from __future__ import annotations

import pytest

import serde.relay as relay
from serde.relay.ir.expr import Call
from serde.relay.ir.visit import post_order
from serde.relay.tvm.passes.qnn import Legalize


def _names(mod: relay.IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call)]


@pytest.mark.parametrize("name", ["conv2d", "dense"])
def test_what_depends_on_the_target_stays(name: str) -> None:
    shapes = {"conv2d": ((1, 2, 5, 5), (3, 2, 3, 3)), "dense": ((4, 6), (3, 6))}[name]
    x, w = (relay.var("xw"[k], shape=each, dtype="int8") for k, each in enumerate(shapes))
    parameters = (relay.const(1), relay.const(1), relay.const(1.0), relay.const(1.0))
    attrs = {"kernel_size": (3, 3), "channels": 3} if name == "conv2d" else {"units": 3}
    mod = relay.IRModule.from_expr(getattr(relay.qnn.op, name)(x, w, *parameters, **attrs))
    assert Legalize()(mod) is mod


@pytest.mark.parametrize(
    ("dtype", "low", "high", "goes"),
    [
        ("int8", -128, 127, True),
        ("int8", -128, 126, False),
        ("int8", 0, 127, False),
        ("uint8", 0, 255, True),
        ("int16", -128, 127, False),
        ("int32", -(2**31), 2**31 - 1, True),
    ],
)
def test_clips_to_the_range_of_requantised_numbers_go(
    dtype: str, low: int, high: int, goes: bool
) -> None:
    x = relay.var("x", shape=(2, 3), dtype="int32")
    parameters = (relay.const(0.5), relay.const(0), relay.const(1.0), relay.const(1))
    level = relay.qnn.op.requantize(x, *parameters, out_dtype=dtype)
    mod = relay.IRModule.from_expr(relay.clip(level, low, high))
    found = relay.transform.Legalize()(mod)
    assert _names(found) == (["qnn.requantize"] if goes else ["qnn.requantize", "clip"])
    alone = relay.IRModule.from_expr(relay.clip(x, low, high))
    relay.assert_structural_equal(relay.transform.Legalize()(alone), alone)
