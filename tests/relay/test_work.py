"""What it costs to evaluate a call is told by its types, before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest
from support.properties import built_samples

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import all_ops
from serde.relay.ir.traits import Work
from serde.relay.run.cost import STEP_WORK, work

COUNTED = [name for name, definition in all_ops().items() if definition.has(Work)]


def var(*shape: int) -> Expr:
    return relay.var("x", shape=shape)


def as_call(value: object) -> Call:
    expr = value if isinstance(value, Call) else value.astuple()  # type: ignore[attr-defined]
    assert isinstance(expr, Call)
    return expr


@pytest.mark.wide
@pytest.mark.parametrize("name", COUNTED)
def test_work_is_told_for_every_sample(name: str) -> None:
    for built in built_samples(all_ops()[name]):
        assert work(built.call) > STEP_WORK


PRODUCTS = {
    "dense": (relay.nn.dense(var(3, 50), var(7, 50)), 3 * 50 * 7),
    "matmul": (relay.nn.matmul(var(3, 50), var(50, 7)), 3 * 50 * 7),
    "einsum": (relay.einsum([var(2, 3, 50), var(2, 50, 7)], "bij,bjk->bik"), 2 * 3 * 50 * 7),
    "outer": (relay.einsum([var(50), var(60), var(70)], "i,j,k->"), 50 * 60 * 70),
    "conv2d": (
        relay.nn.conv2d(var(1, 8, 9, 9), var(6, 4, 3, 3), groups=2, channels=6, kernel_size=(3, 3)),
        6 * 7 * 7 * 4 * 9,
    ),
    "conv2d_transpose": (
        relay.nn.conv2d_transpose(
            var(1, 8, 9, 9), var(8, 6, 3, 3), channels=6, kernel_size=(3, 3), strides=(2, 2)
        ),
        8 * 9 * 9 * 6 * 9,
    ),
    "max_pool2d": (relay.nn.max_pool2d(var(1, 8, 9, 9), pool_size=(5, 5)), 8 * 5 * 5 * 25),
}


@pytest.mark.parametrize(("call", "products"), PRODUCTS.values(), ids=PRODUCTS)
def test_products_are_counted(call: object, products: int) -> None:
    assert products <= work(as_call(call)) - STEP_WORK <= 3 * products


def test_a_window_over_much_padding_is_counted_with_it() -> None:
    call = relay.nn.max_pool2d(
        var(1, 1, 8, 8), pool_size=(8, 8), strides=(2**15, 2**15), padding=(2**14,) * 4
    )
    assert work(as_call(call)) > 2**28


def test_regions_wait_as_values_tell_their_size() -> None:
    rois = np.zeros((1, 5), np.float32)
    call = relay.vision.roi_align(
        var(1, 1, 8, 8), relay.const(rois), (2, 2), spatial_scale=1.0, sample_ratio=-1
    )
    assert work(as_call(call)) > 2**60
