"""Dilated convolutions out of batches of pixels."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import OpDef
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import FlattenAtrousConv, InferType


def _atrous(
    block: tuple[int, int] = (2, 2),
    paddings: object = ((2, 3), (2, 2)),
    crops: object = ((0, 1), (0, 0)),
    **attrs: object,
) -> relay.IRModule:
    x, w = relay.var("x", shape=(1, 9, 8, 3)), relay.var("w", shape=(3, 3, 3, 4))
    y = relay.nn.space_to_batch_nd(x, block, paddings, attrs.pop("pad_value", 0))
    y = relay.nn.conv2d(y, w, data_layout="NHWC", kernel_layout="HWIO", **attrs)
    body = relay.nn.batch_to_space_nd(y, block, crops)
    return InferType()(relay.IRModule.from_expr(relay.Function([x, w], body)))


def _names(root: Expr) -> list[str]:
    calls = [n.op for n in post_order(root) if isinstance(n, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


@pytest.mark.parametrize(
    ("block", "paddings", "crops"),
    [
        ((2, 2), ((2, 3), (2, 2)), ((0, 1), (0, 0))),
        ((2, 2), ((0, 1), (0, 0)), ((0, 1), (0, 0))),
        ((1, 2), ((1, 1), (2, 4)), ((0, 1), (1, 2))),
    ],
)
def test_the_three_calls_become_one(
    block: tuple[int, int], paddings: object, crops: object
) -> None:
    mod = _atrous(block, paddings, crops)
    after, changed = FlattenAtrousConv().run(mod)
    assert changed
    verify(after)
    assert _names(after["main"]) == ["nn.conv2d"]
    rng = np.random.default_rng(1)
    inputs = [
        rng.normal(size=param.checked_type.concrete_shape).astype("float32")
        for param in mod["main"].params
    ]
    want = run(mod["main"], inputs)
    np.testing.assert_allclose(run(after["main"], inputs), want, rtol=1e-5, atol=1e-5)
    assert FlattenAtrousConv().run(after) == (after, False)


@pytest.mark.parametrize(
    "options",
    [
        {"pad_value": 1.0},
        {"padding": (1, 1)},
        {"dilation": (2, 1)},
        {"paddings": ((0, 1), (0, 0)), "crops": ((1, 0), (0, 0))},
    ],
)
def test_what_is_no_dilated_convolution_stays(options: dict[str, object]) -> None:
    mod = _atrous(**options)
    assert FlattenAtrousConv().run(mod) == (mod, False)
