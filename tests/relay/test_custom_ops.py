"""Operators that a program declares as with TVM's ``relay.op.register``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError, UnsupportedModelError
from serde.relay.ir import registry
from serde.relay.transform import InferType

X = relay.var("x", shape=(2, 3))


@pytest.fixture
def declared() -> Iterator[Any]:
    """A function that declares an operator, which is gone behind the test."""
    names = []

    def declare(name: str, *operands: str, **options: Any) -> Any:
        names.append(name)
        made = relay.op.register(name, "Of a test.", **options)
        made.set_num_inputs(len(operands))
        for operand in operands:
            made.add_argument(operand, "Tensor", "An operand.")
        return made

    yield declare
    for name in names:
        del registry._OPS[name]


def test_an_operator_is_typed_run_and_read_again(declared: Any) -> None:
    made = declared("acme.scale", "data", kernel=lambda data, factor: data * factor)
    made.add_type_rel("acme.Scale", lambda types, attrs: types[0] if attrs.factor else None)
    assert relay.op.get("acme.scale") is made
    assert (made.num_inputs, made.description) == (1, "Of a test.")
    body = relay.exp(relay.Call(made, [X], {"factor": 3}))
    mod = InferType()(relay.IRModule.from_expr(body))
    assert "acme.scale(%x, factor=3)" in mod.astext()
    assert relay.structural_equal(InferType()(relay.fromtext(mod.astext())), mod)
    data = np.ones((2, 3), "float32")
    found = relay.create_executor(mod=mod).evaluate()(data).numpy()
    np.testing.assert_allclose(found, np.exp(3 * data), rtol=1e-6)


def test_relations_that_tvm_knows_by_name(declared: Any) -> None:
    made = declared("acme.join", "left", "right")
    with pytest.raises(TypeInferenceError, match="has no type relation"):
        InferType()(relay.IRModule.from_expr(relay.Call(made, [X, X])))
    made.add_type_rel("Broadcast")
    row = relay.var("row", shape=(4, 1, 3))
    mod = InferType()(relay.IRModule.from_expr(relay.Call(made, [X, row])))
    assert mod["main"].body.checked_type == relay.TensorType((4, 2, 3))
    with pytest.raises(RelayError, match="give its function"):
        made.add_type_rel("Conv2D")
    arrays = [np.ones(shape, "float32") for shape in ((2, 3), (4, 1, 3))]
    with pytest.raises(RelayError, match="has no kernel"):
        relay.create_executor(mod=mod).evaluate()(*arrays)


def test_a_name_is_taken_once(declared: Any) -> None:
    declared("acme.once")
    for name in ("acme.once", "nn.relu"):
        with pytest.raises(RelayError, match="declared twice"):
            relay.op.register(name)


def test_a_format_that_lacks_it_refuses_it_by_name(declared: Any) -> None:
    made = declared("acme.step", "data")
    made.add_type_rel("Identity")
    mod = relay.IRModule.from_expr(relay.Call(made, [X]))
    with pytest.raises(UnsupportedModelError, match=r"acme\.step"):
        serde.export_model((mod, {}), format="onnx")
