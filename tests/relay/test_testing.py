"""What tests of passes need."""

from __future__ import annotations

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.testing import TempOpAttr, rand, run_infer_type, run_opt_pass


def test_a_pass_runs_on_a_function_and_on_an_expression() -> None:
    x = relay.var("x", shape=(2,))
    one = relay.const(1.0) + relay.const(1.0)
    folded = run_opt_pass(relay.add(x, one), relay.transform.FoldConstant())
    assert relay.structural_equal(folded, relay.add(x, relay.const(2.0)), map_free_vars=True)
    function = run_opt_pass(relay.Function([x], x), relay.transform.FoldConstant())
    assert isinstance(function, relay.Function)
    with pytest.raises(TypeError, match="expected a pass"):
        run_opt_pass(x, lambda mod: mod)  # type: ignore[arg-type]


def test_the_prelude_is_there_on_demand() -> None:
    seen = []

    @relay.transform.module_pass(opt_level=0)
    def look(mod: relay.IRModule, ctx: object) -> relay.IRModule:
        seen.append({each.name_hint for each in mod.type_definitions})
        return mod

    run_opt_pass(relay.const(1.0), look)
    run_opt_pass(relay.const(1.0), look, import_prelude=True)
    assert seen[0] == set()
    assert "List" in seen[1]


def test_types_are_inferred() -> None:
    f = relay.var("f")
    x = relay.var("x", shape=(2,))
    found = run_infer_type(relay.Let(f, relay.Function([x], relay.exp(x)), f(x)))
    assert found.checked_type == relay.TensorType((2,), "float32")


def test_random_numbers_have_shape_and_dtype() -> None:
    values = rand("float16", 3, 2)
    assert (values.shape, values.dtype.name) == ((3, 2), "float16")
    assert 0 <= values.numpy().min() < values.numpy().max() < 1 + np.finfo(np.float16).eps


def test_an_attribute_of_an_operator_holds_for_a_while() -> None:
    op = relay.op.get("exp")
    with TempOpAttr("exp", "target.somewhere", 3):
        assert op.get_attr("target.somewhere") == 3
    assert op.get_attr("target.somewhere") is None
