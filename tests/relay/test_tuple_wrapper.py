"""What a builder of several results returns, wherever an expression is taken, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.relay import analysis, dataflow_pattern, transform

DATA = np.arange(24, dtype=np.float32).reshape(4, 6)
LEFT, RIGHT = np.split(DATA, 2, axis=1)
X = relay.var("x", shape=(4, 6))
PAIR = relay.TupleType([relay.TensorType((4, 3))] * 2)


def halves(x: Any = X) -> relay.TupleWrapper:
    found: relay.TupleWrapper = relay.split(x, 2, axis=1)
    return found


def set_main(value: Any) -> relay.IRModule:
    mod = relay.IRModule()
    mod["main"] = value
    return mod


def return_scope() -> Any:
    builder = relay.ScopeBuilder()
    builder.ret(halves())
    return builder.get()


def swap(pair: Any) -> Any:
    return relay.Tuple([relay.TupleGetItem(pair, 1), relay.TupleGetItem(pair, 0)])


def call_swap(call: Callable[[relay.Function, Any], Any]) -> Any:
    pair = relay.var("pair", PAIR)
    return call(relay.Function([pair], swap(pair)), halves())


def let_pair() -> Any:
    pair = relay.var("pair")
    return relay.Let(pair, halves(), swap(pair))


def match_pair() -> Any:
    pair = relay.var("pair")
    return relay.Match(halves(), [relay.Clause(relay.PatternVar(pair), halves())])


def if_pair() -> Any:
    return relay.If(relay.const(True), halves(), halves(relay.negative(X)))


def read_reference() -> Any:
    reference = relay.var("reference")
    write = relay.RefWrite(reference, halves())
    inner = relay.Let(relay.var("none"), write, relay.RefRead(reference))
    return relay.Let(reference, relay.RefCreate(halves(relay.negative(X))), inner)


def bind_halves() -> Any:
    y = relay.var("y", shape=(4, 6))
    return relay.bind(halves(y), {y: X})


PLACES: dict[str, tuple[Callable[[], Any], Any]] = {
    "function": (lambda: relay.Function([X], halves()), (LEFT, RIGHT)),
    "attributes": (lambda: relay.Function([X], halves()).with_attr("A", 1), (LEFT, RIGHT)),
    "expression": (halves, (LEFT, RIGHT)),
    "tuple": (lambda: relay.Tuple([halves(), X]), ((LEFT, RIGHT), DATA)),
    "field": (lambda: relay.TupleGetItem(halves(), 1), RIGHT),
    "if": (if_pair, (LEFT, RIGHT)),
    "let value": (let_pair, (RIGHT, LEFT)),
    "let body": (lambda: relay.Let(relay.var("z"), X, halves()), (LEFT, RIGHT)),
    "match": (match_pair, (LEFT, RIGHT)),
    "reference": (read_reference, (LEFT, RIGHT)),
    "scope": (return_scope, (LEFT, RIGHT)),
    "call": (lambda: call_swap(lambda function, pair: function(pair)), (RIGHT, LEFT)),
    "call node": (lambda: call_swap(lambda f, pair: relay.Call(f, [pair])), (RIGHT, LEFT)),
    "bind": (bind_halves, (LEFT, RIGHT)),
    "rewrite": (lambda: dataflow_pattern.rewrite([], halves()), (LEFT, RIGHT)),
}


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("make_module", [relay.IRModule.from_expr, set_main])
@pytest.mark.parametrize("place", PLACES)
def test_a_node_takes_what_builders_return(place: str, make_module: Callable[..., Any]) -> None:
    build, expected = PLACES[place]
    mod = transform.InferType()(make_module(build()))
    relay.verify(mod)
    assert_same(relay.create_executor("debug", mod=mod).evaluate()(DATA), expected)


def test_functions_over_expressions_take_what_builders_return() -> None:
    seen: list[relay.Expr] = []
    analysis.post_order_visit(halves(), seen.append)
    pair = halves()
    assert X in seen
    assert isinstance(seen[-1], relay.Call)
    assert analysis.free_vars(pair) == analysis.all_vars(pair) == [X]
    assert relay.structural_equal(pair, halves())
    assert relay.structural_equal(pair, pair.astuple())
    assert not relay.structural_equal(pair, halves(relay.negative(X)))
    assert relay.structural_hash(pair) == relay.structural_hash(halves())
    assert pair.astext(show_meta_data=False) == str(pair.astuple())
    relay.assert_structural_equal(pair, halves())


def test_an_executor_evaluates_what_builders_return() -> None:
    found = relay.create_executor("debug").evaluate(halves(relay.const(DATA)))
    assert_same(found, (LEFT, RIGHT))


def test_a_function_with_several_results_is_exported() -> None:
    ort = pytest.importorskip("onnxruntime")
    model = serde.export_model(relay.Function([X], halves()), format="onnx")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for found, expected in zip(session.run(None, {"x": DATA}), (LEFT, RIGHT), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_results_of_rows_that_are_filled_unpack() -> None:
    indices = relay.const(np.array([[0, 1], [0, 3], [2, 0], [3, 1]]), "int64")
    values = relay.const([1, 2, 3, 4], "int64")
    shape, default = relay.const([5, 6], "int64"), relay.const(10, "int64")
    found = relay.sparse_fill_empty_rows(indices, values, shape, default)
    new_indices, new_values, empty = found
    main = relay.Function([], relay.Tuple([found, new_indices, new_values, empty]))
    whole, *parts = relay.create_executor("debug").evaluate(main)()
    assert_same(whole, tuple(each.numpy() for each in parts))
    # The example of TVM's documentation.
    assert parts[0].numpy().tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert parts[1].numpy().tolist() == [1, 2, 10, 3, 4, 10]
    assert parts[2].numpy().tolist() == [False, True, False, False, True]


def test_a_tuple_is_not_cast() -> None:
    with pytest.raises(TypeError, match="a tuple cannot be cast"):
        halves().astype("int32")
