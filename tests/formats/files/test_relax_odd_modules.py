"""Live modules whose attributes and expressions are not as TVM's importers write them."""

from __future__ import annotations

import random
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from support.relax_imports import build, read_and_run
from support.relax_odd import BOUND, GLOBALS, KINDS, PLACES, TYPES, odd_module, typed_module
from tvm import relax

import serde
from serde.bridge.formats import get_bridge
from serde.errors import ConverterBug, FormatError, SerdeError, UnsupportedModelError
from serde.relay.ir.verify import verify


def _sum(**attributes: Any) -> Any:
    """Return a module of two parameters."""
    ones = np.ones((2, 3), np.float32)
    module = build(relax.op.add, [ones, ones])
    module["main"] = module["main"].with_attrs(
        {name.replace("__", "."): value for name, value in attributes.items()}
    )
    return module


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"num_input": "abc"}, "num_input: expected a number, found abc"),
        ({"num_input": 1.5}, "num_input: expected a number"),
        ({"num_input": [1]}, "num_input: expected a number"),
        ({"num_input": 1, "params": 3}, "params: expected arrays, found 3"),
        ({"num_input": 1, "params": "abc"}, "params: expected arrays, found abc"),
        ({"serde__inputs": 3}, "serde.inputs: expected texts, found 3"),
        ({"serde__inputs": "ab"}, "serde.inputs: expected texts, found ab"),
        ({"serde__weights": [1, 2]}, "serde.weights: expected texts"),
        ({"serde__outputs": 3}, "serde.outputs: expected texts, found 3"),
    ],
)
def test_an_attribute_of_another_kind_is_refused(attributes: Any, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        serde.to_relay(_sum(**attributes))


def test_values_kept_beside_a_function_of_inputs_only_are_constants_of_it() -> None:
    """TVM's importer of TFLite writes such modules."""
    kept = tvm.runtime.tensor(np.zeros((7,), np.float32))
    ones = np.ones((2, 3), np.float32)
    (found,) = read_and_run(_sum(num_input=2, params=[kept]), [ones, ones])
    np.testing.assert_array_equal(found, ones * 2)


def test_expressions_nested_too_deeply_are_refused() -> None:
    type_ = relax.TensorType((2,), "float32")
    variable = relax.Var("x", type_)
    body = variable
    for _ in range(600):
        body = relax.op.nn.relu(body)
    function = relax.Function([variable], relax.SeqExpr([], body), type_)
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    with pytest.raises(FormatError, match="nested more than"):
        serde.to_relay(module)


@pytest.mark.parametrize("bounds", [(-np.inf, 2), (-1000, 2), (-300.5, 2.7)])
def test_a_bound_behind_all_integers_is_none(bounds: tuple[float, float]) -> None:
    x = np.array([-128, 0, 2, 127], np.int8)
    module = build(lambda x: relax.op.clip(x, *bounds), [x])
    (found,) = read_and_run(module, [x])
    np.testing.assert_array_equal(found, np.minimum(x, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: relax.op.clip(x, 300, 400),
        lambda x: relax.op.clip(x, float("nan"), 4),
        lambda x: relax.op.nn.pad(x, [1, 1], pad_value=300),
        lambda x: relax.op.nn.pad(x, [1, 1], pad_value=float("-inf")),
    ],
)
def test_a_number_that_a_dtype_does_not_have_is_refused(call: Any) -> None:
    with pytest.raises(UnsupportedModelError):
        serde.to_relay(build(call, [np.zeros(4, np.int8)]))


def test_places_of_few_bits_reach_into_a_long_axis() -> None:
    """As TVM computes it, the length being no number of the indices' dtype."""
    x, places = np.arange(300, dtype=np.float32), np.array([1, 255], np.uint8)
    module = build(lambda x, i: relax.op.take(x, i, axis=0, mode="nan"), [x, places])
    (found,) = read_and_run(module, [x, places])
    np.testing.assert_array_equal(found, [1, 255])


def _refusal(module: tvm.IRModule) -> str:
    """Return why a module is not read; nothing if it is, and is sound."""
    try:
        verify(serde.to_relay(module).mod)
    except ConverterBug:
        raise
    except SerdeError as error:
        return str(error)
    return ""


ODD = random.Random(29).sample(list(product(KINDS, PLACES, BOUND)), 3000)


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("kind", "place", "bound"),
    [
        pytest.param(*each, marks=[] if index < 200 else pytest.mark.wide)
        for index, each in enumerate(ODD)
    ],
)
def test_any_expression_in_any_place_is_read_or_refused(kind: str, place: str, bound: str) -> None:
    try:
        module = odd_module(kind, place, bound)
    except IndexError:
        pytest.skip("TVM does not build it")
    told = _refusal(module)
    assert not told or re.match(r"relax -> relay: \d+ of \d+ nodes cannot be converted\n", told)


@pytest.mark.parametrize("given", TYPES)
@pytest.mark.parametrize("result", ["tensor", "any", "tuple", "shape"])
def test_any_types_of_main_are_read_or_refused(given: str, result: str) -> None:
    module = typed_module(given, result)
    _refusal(module)
    bridge = get_bridge("relax")
    model = bridge.load(module, None, bridge.import_options())
    names = {"tuple": ["x_0", "x_1"], "empty": []}.get(given, ["x"])
    assert [each.name for each in bridge.summary(model).inputs or ()] == names


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("packed", "my.packed .*a packed function, which only TVM can run: my.packed"),
        ("packed text", "my.packed .*a packed function, which only TVM can run: my.packed"),
        ("destination", "relax.call_dps_packed .* a packed function, .*: my.packed"),
        ("pure", "relax.call_pure_packed .* a packed function, .*: my.packed"),
        ("tir", "relax.call_tir .* tir, a function of TIR: 2 arguments .* for 0 parameters"),
    ],
)
def test_a_function_that_only_tvm_runs_is_named(kind: str, told: str) -> None:
    with pytest.raises(UnsupportedModelError, match=told):
        serde.to_relay(odd_module(kind, "result", "bound"))


@pytest.mark.parametrize("kind", ["local function", "global function"])
def test_a_function_bound_to_a_variable_is_called(kind: str) -> None:
    """As in what TVM partitions, where composite functions are local."""
    module = odd_module(kind, "callee", "bound")
    x = np.array([[-1, 0, 1], [2, -2, 3]], np.float32)
    (found,) = read_and_run(module, [x, x, np.array(True)])
    np.testing.assert_array_equal(found, np.maximum(x, 0))
    assert len(serde.to_relay(module).meta.inputs) == len(GLOBALS) - 1


@pytest.mark.parametrize("declared", ["tensor", "any", "tuple"])
def test_a_body_counts_where_main_declares_something_else(declared: str) -> None:
    """As when TVM runs it."""
    module = odd_module("tuple", "result", "plain")
    main = module["main"]
    module["main"] = relax.Function(main.params, main.body, TYPES[declared], True, main.attrs)
    model = serde.to_relay(module)
    assert model.meta.outputs == ("output0", "output1")
    x, y = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
    found = read_and_run(module, [x, y, np.array(True)])
    np.testing.assert_array_equal(found, [x, y])
