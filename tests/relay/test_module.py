"""Modules that are written, and that take up others."""

from __future__ import annotations

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError
from serde.relay import transform


def unary(name: str) -> relay.Function:
    x = relay.var("x", shape=(2,))
    return relay.Function([x], getattr(relay, name)(x))


def run(mod: relay.IRModule) -> list[float]:
    return relay.create_executor(mod=mod).evaluate()(np.array([1, 2], np.float32)).numpy().tolist()


def test_functions_are_set_by_name_and_by_variable():
    mod = relay.IRModule()
    double = relay.GlobalVar("double")
    x = relay.var("x", shape=(2,))
    mod[double] = relay.Function([x], relay.add(x, x))
    mod["main"] = relay.Function([x], double(x))
    assert run(mod) == [2.0, 4.0]
    mod["double"] = unary("negative")
    assert mod.get_global_var("double") is double
    assert run(mod) == [-1.0, -2.0]
    assert [v.name_hint for v in mod.get_global_vars()] == ["double", "main"]


def test_an_expression_becomes_the_body_of_a_function():
    mod = relay.IRModule()
    mod["main"] = relay.const([1.0, 2.0])
    assert mod["main"].params == ()
    mod["again"] = mod.get_global_var("main")
    assert mod["again"] is mod["main"]


def test_another_variable_of_the_same_name_is_refused():
    mod = relay.IRModule({"f": unary("exp")})
    with pytest.raises(RelayError, match="two functions are called f"):
        mod[relay.GlobalVar("f")] = unary("exp")


def test_what_is_not_there_is_told():
    mod = relay.IRModule({"f": unary("exp"), "g": unary("exp")})
    with pytest.raises(RelayError, match=r"no function is called h \(there are: f, g\)"):
        mod["h"]
    with pytest.raises(RelayError, match="@f names no function of the module"):
        mod[relay.GlobalVar("f")]
    assert "f" in mod
    assert mod.get_global_var("g") in mod
    assert relay.GlobalVar("g") not in mod


def test_what_changes_is_no_longer_known_to_be_typed():
    mod = relay.transform.InferType()(relay.IRModule({"main": unary("exp")}))
    assert mod.checked
    mod["other"] = unary("tanh")
    assert not mod.checked


def test_update_takes_all_functions_and_calls_those_of_the_same_name():
    x = relay.var("x", shape=(2,))
    mine = relay.IRModule({"step": unary("negative")})
    mine["main"] = relay.Function([x], mine.get_global_var("step")(x))
    step = relay.GlobalVar("step")
    other = relay.IRModule({step: unary("exp")})
    other["twice"] = relay.Function([x], step(step(x)))
    mine.update(other)
    kept = mine.get_global_var("step")
    assert kept is not step
    assert mine["twice"].body.op is kept
    assert mine["twice"].body.args[0].op is kept
    assert mine["main"].body.op is kept
    np.testing.assert_allclose(run(mine), np.exp([1, 2]), rtol=1e-6)


def test_update_takes_a_mapping():
    mod = relay.IRModule({"main": unary("exp")})
    mod.update({"f": unary("tanh")})
    assert {v.name_hint for v in mod.functions} == {"f", "main"}


def test_a_copy_is_written_by_itself():
    mod = relay.IRModule({"main": unary("exp")}, attrs={"a": 1})
    copy = mod.shallow_copy().with_attr("b", 2)
    copy["f"] = unary("tanh")
    assert "f" not in mod
    assert (copy.get_attr("a"), copy.get_attr("b"), mod.get_attr("b")) == (1, 2, None)


def test_a_function_with_a_symbol_keeps_its_name():
    function = unary("exp").with_attr("global_symbol", "part_0")
    assert "part_0" in relay.IRModule.from_expr(function)
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    assert relay.IRModule.from_expr(y - x)["main"].params == (y, x)


def test_an_expression_beside_a_function_called_main_gets_another_name():
    # As in TVM, whose Module_FromExpr takes a fresh name for a function without a symbol.
    main, taken = relay.GlobalVar("main"), relay.GlobalVar("main_1")
    x = relay.var("x", shape=(2,))
    expr = relay.Function([x], main(relay.abs(x)))
    mod = relay.IRModule.from_expr(expr, {main: unary("negative")})
    assert sorted(each.name_hint for each in mod.functions) == ["main", "main_1"]
    assert mod["main_1"] is expr
    assert run(mod) == [-1.0, -2.0]
    found = relay.create_executor(mod=transform.InferType()(mod)).evaluate(mod["main_1"])
    assert found(np.array([1, -2], np.float32)).numpy().tolist() == [-1.0, -2.0]
    again = relay.IRModule.from_expr(expr, {main: unary("negative"), taken: unary("exp")})
    assert sorted(each.name_hint for each in again.functions) == ["main", "main_1", "main_2"]


def test_a_function_with_a_symbol_replaces_that_of_its_name():
    # TVM's GlobalVarSupply gives the variable that there is.
    named = unary("negative").with_attr("global_symbol", "main")
    main = relay.GlobalVar("main")
    mod = relay.IRModule.from_expr(named, {main: unary("exp")})
    assert mod.get_global_vars() == [main]
    assert run(mod) == [-1.0, -2.0]


def test_a_function_that_is_nowhere_is_named():
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.GlobalVar("nowhere")(x)))
    with pytest.raises(TypeInferenceError, match=r"@nowhere names no function.*there are: @main"):
        transform.InferType()(mod)
    with pytest.raises(TypeInferenceError, match="@nowhere names no function"):
        serde.export_model(mod, format="onnx")
    mod["other"] = unary("negative")
    mod["main"] = relay.Function([x], relay.GlobalVar("other")(x))
    with pytest.raises(TypeInferenceError, match="take the variable that mod"):
        transform.InferType()(mod)


@pytest.mark.parametrize("name", ["InferType", "FoldConstant", "Sequential"])
@pytest.mark.parametrize("given", [relay.const(1.0), unary("exp"), None], ids=repr)
def test_passes_take_modules(name, given):
    with pytest.raises(TypeError, match=r"expected a module, found .*IRModule.from_expr"):
        getattr(transform, name)()(given)
