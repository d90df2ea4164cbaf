"""Results that nothing in a graph uses, in MXNet 1.9.1 itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mxnet_written import run_written
from support.samples import build

import serde.relay as relay
from serde.relay.ir.expr import TupleGetItem
from serde.relay.ir.registry import all_ops, call
from serde.relay.op.control import samples

ASKED = [
    "image.affine_grid", "image.grid_sample", "serde.deform_conv2d", "serde.hard_sigmoid",
    "serde.scored_proposal", "vision.proposal",
]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("between", [lambda x: x, lambda x: relay.reshape(x, (-1,))])
@pytest.mark.parametrize("like", [relay.zeros_like, relay.ones_like])
@pytest.mark.parametrize("name", ASKED)
def test_shape_of_what_nobody_asks_for(name: str, like: Any, between: Any) -> None:
    definition = all_ops()[name]
    built = build(definition, definition.samples[0])
    first = TupleGetItem(built.call, 0) if len(built.run()) > 1 else built.call
    (found,) = run_written(built.variables, like(between(first)), built.arrays)
    np.testing.assert_array_equal(found, getattr(np, like.__name__)(found))
    assert found.size == built.run()[0].size


@pytest.mark.parametrize("index", [0, 1])
def test_one_result_of_proposals(index: int) -> None:
    definition = all_ops()["serde.scored_proposal"]
    built = build(definition, definition.samples[0])
    (found,) = run_written(built.variables, TupleGetItem(built.call, index), built.arrays)
    (whole,) = run_written(
        built.variables,
        relay.concatenate([TupleGetItem(built.call, 0), TupleGetItem(built.call, 1)], 1),
        built.arrays,
    )
    np.testing.assert_array_equal(found, whole[:, :5] if index == 0 else whole[:, 5:])


@pytest.mark.parametrize(("limit", "going"), [(3, False), (0, None), (0, True)])
def test_stack_of_a_loop_that_never_runs(limit: int, going: bool | None) -> None:
    x = relay.var("x", shape=(2, 3))
    loop = call(
        "serde.loop", relay.const(limit, "int64"), None if going is None else relay.const(going),
        (x,), (relay.const(0.5),), body=samples.countdown(),
    )  # fmt: skip
    (found,) = run_written([x], TupleGetItem(loop, 1), [np.ones((2, 3), np.float32)])
    assert found.shape == (0, 2, 3)
