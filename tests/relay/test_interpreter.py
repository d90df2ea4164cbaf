"""The interpreter against NumPy written out here."""

import gc
import json
import weakref
from pathlib import Path

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.run.interpreter import evaluate, run
from serde.relay.transform import InferType

INT = relay.TensorType((), "int32")
MATRIX = relay.TensorType((2, 3))


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype("float32")


def test_calls_constants_and_tuples() -> None:
    x = relay.var("x", MATRIX)
    doubled = relay.multiply(x, relay.const(2.0))
    function = relay.Function([x], relay.Tuple([doubled, relay.Tuple([x, relay.const(5)])]))
    data = _values(2, 3)
    first, (second, third) = run(function, [data])
    np.testing.assert_array_equal(first, data * np.float32(2))
    np.testing.assert_array_equal(second, data)
    assert third == 5
    assert third.dtype == np.int32


def test_result_of_a_scalar_is_an_array() -> None:
    x = relay.var("x", relay.TensorType(()))
    result = run(relay.Function([x], relay.exp(x)), [np.float32(1)])
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float32


def test_fields_of_an_operator_with_several_results() -> None:
    x = relay.var("x", MATRIX)
    parts = relay.split(x, 3, axis=1)
    data = _values(2, 3)
    result = run(relay.Function([x], relay.subtract(parts[0], parts[2])), [data])
    np.testing.assert_array_equal(result, data[:, :1] - data[:, 2:])


def test_only_the_chosen_branch_runs() -> None:
    flag, x = relay.var("flag", relay.TensorType((), "bool")), relay.var("x", MATRIX)
    wrong = relay.reshape(relay.var("unbound", MATRIX), newshape=(2, 3))
    choice = relay.If(flag, relay.negative(x), wrong)
    data = _values(2, 3)
    np.testing.assert_array_equal(run(relay.Function([flag, x], choice), [True, data]), -data)
    with pytest.raises(RelayError, match="unbound"):
        run(relay.Function([flag, x], choice), [False, data])


def test_a_node_shared_by_branches_and_outside_is_one_value() -> None:
    flag, x = relay.var("flag", relay.TensorType((), "bool")), relay.var("x", MATRIX)
    shared = relay.exp(x)
    choice = relay.If(flag, relay.negative(shared), relay.add(shared, shared))
    function = relay.Function([flag, x], relay.add(choice, shared))
    data = _values(2, 3)
    np.testing.assert_allclose(run(function, [True, data]), 0 * data, atol=0)
    np.testing.assert_allclose(run(function, [False, data]), 3 * np.exp(data), rtol=1e-6)


def test_a_closure_keeps_what_it_captured() -> None:
    x, k, j = (relay.var(name, MATRIX) for name in "xkj")
    add_x = relay.Var("add_x")
    inner = relay.Function([j], relay.multiply(relay.add(j, x), relay.const(2.0)))
    outer = relay.Let(add_x, inner, relay.Call(add_x, [relay.Call(add_x, [relay.exp(x)])]))
    data = _values(2, 3)
    two = np.float32(2)
    want = ((np.exp(data) + data) * two + data) * two
    np.testing.assert_allclose(run(relay.Function([x], outer), [data]), want, rtol=1e-6)
    directly = relay.Call(relay.Function([k], relay.subtract(k, x)), [relay.negative(x)])
    np.testing.assert_array_equal(run(relay.Function([x], directly), [data]), -data - data)


def _counting_loop(limit: int) -> relay.Function:
    x, i, acc = relay.var("x", MATRIX), relay.var("i", INT), relay.var("acc", MATRIX)
    loop = relay.Var("while_loop")
    step = relay.Call(loop, [relay.add(i, relay.const(1)), relay.add(acc, x)])
    body = relay.If(relay.less(i, relay.const(limit)), step, relay.Tuple([i, acc]))
    function = relay.Function([i, acc], body, relay.TupleType([INT, MATRIX]))
    return relay.Function([x], relay.Let(loop, function, relay.Call(loop, [relay.const(1), x])))


@pytest.mark.slow
def test_a_let_bound_recursion_of_100000_turns() -> None:
    mod = InferType()(relay.IRModule.from_expr(_counting_loop(100_000)))
    count, total = relay.create_executor("vm", mod=mod).evaluate()(np.ones((2, 3), "float32"))
    assert count == 100_000
    np.testing.assert_array_equal(total.numpy(), np.full((2, 3), 100_000, "float32"))


@pytest.mark.slow
def test_a_global_recursion_of_100000_calls_that_wait_for_each_other() -> None:
    total = relay.GlobalVar("total", relay.FuncType([INT], INT))
    k, n = relay.var("k", INT), relay.var("n", INT)
    rest = relay.add(relay.const(1), total(relay.subtract(k, relay.const(1))))
    body = relay.If(relay.equal(k, relay.const(0)), relay.const(0), rest)
    mod = relay.IRModule(
        {
            total: relay.Function([k], body, INT),
            relay.GlobalVar("main"): relay.Function([n], total(n)),
        }
    )
    assert relay.create_executor(mod=InferType()(mod)).evaluate()(np.int32(100_000)) == 100_000


@pytest.mark.slow
def test_a_chain_of_100000_calls_and_lets() -> None:
    x = relay.var("x", relay.TensorType((), "int32"))
    one, result = relay.const(1), x
    for _ in range(100_000):
        result = relay.add(result, one)
    assert run(relay.Function([x], result), [np.int32(3)]) == 100_003
    variables = [relay.var(f"v{i}", INT) for i in range(100_000)]
    body: relay.Expr = variables[-1]
    for index in range(99_999, 0, -1):
        body = relay.Let(variables[index], relay.add(variables[index - 1], one), body)
    body = relay.Let(variables[0], x, body)
    assert run(relay.Function([x], body), [np.int32(3)]) == 100_002


def test_a_value_is_dropped_after_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[int] = []
    seen: list[weakref.ref[np.ndarray]] = []
    definition = relay.exp(relay.var("x", MATRIX)).op

    def kernel(data: np.ndarray) -> np.ndarray:
        result = np.tanh(data)
        gc.collect()
        alive.append(sum(each() is not None for each in seen))
        seen.append(weakref.ref(result))
        return result

    monkeypatch.setattr(definition, "kernel", kernel)
    x = relay.var("x", MATRIX)
    result = x
    for _ in range(10):
        result = relay.exp(result)
    gc.freeze()  # What other tests have left need not be looked through ten times.
    try:
        run(relay.Function([x], result), [_values(2, 3)])
    finally:
        gc.unfreeze()
    assert max(alive) == 1


def test_an_absent_operand_reaches_the_kernel_as_none() -> None:
    from serde.relay.ir.registry import Array, OpDef
    from serde.relay.run.interpreter import apply_kernel

    def either(data: Array, other: Array | None) -> Array:
        return data if other is None else other

    either.__annotations__ = {"data": Array, "other": Array | None, "return": Array}
    definition = OpDef("test.either", either, lambda data, other: data, [])
    assert apply_kernel(definition, [np.float32(3), ()], {}) == 3
    assert apply_kernel(definition, [np.float32(3), np.float32(4)], {}) == 4


def test_a_symbol_takes_one_length_everywhere() -> None:
    x = relay.var("x", relay.TensorType(("N", 3)))
    y = relay.var("y", relay.TensorType(("N", 3)))
    function = relay.Function([x, y], relay.add(x, y))
    np.testing.assert_array_equal(run(function, [_values(4, 3), _values(4, 3)]), 2 * _values(4, 3))
    with pytest.raises(RelayError, match=r"argument y: expected N = 4 as before, found 1"):
        run(function, [_values(4, 3), _values(1, 3)])


def test_a_compound_dimension_is_checked_and_solved() -> None:
    from serde.relay.run.binding import bind_dims

    n = relay.symbol("N")
    x = relay.var("x", relay.TensorType((2 * n + 1,)))
    assert bind_dims([x], [_values(7)]) == {"N": 3}
    with pytest.raises(RelayError, match="no length makes"):
        bind_dims([x], [_values(8)])
    y = relay.var("y", relay.TensorType(("N",)))
    with pytest.raises(RelayError, match=r"expected a length of 2\*N \+ 1 = 5, found 7"):
        bind_dims([x, y], [_values(7), _values(2)])


def test_symbols_in_attributes_take_their_lengths() -> None:
    n = relay.symbol("N")
    x = relay.var("x", relay.TensorType(("N", 2, 3)))
    function = relay.Function([x], relay.reshape(x, newshape=(n * 2, 3)))
    assert run(function, [_values(5, 2, 3)]).shape == (10, 3)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.zeros((2, 4), "float32"), r"float32\[2, 4\]"),
        (np.zeros((2, 3), "float64"), r"float64\[2, 3\]"),
        (np.zeros((3,), "float32"), r"float32\[3\]"),
    ],
)
def test_an_argument_of_another_type_is_refused(value: np.ndarray, found: str) -> None:
    x = relay.var("x", MATRIX)
    with pytest.raises(RelayError, match=rf"argument x: expected .*, found {found}"):
        run(relay.Function([x], x), [value])


def test_the_executor_takes_arguments_by_position_by_name_and_beforehand() -> None:
    x, y = relay.var("x", MATRIX), relay.var("y", MATRIX)
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.subtract(x, y)))
    a, b = _values(2, 3), 2 * _values(2, 3)
    call = relay.create_executor("graph", mod=mod).evaluate()
    np.testing.assert_array_equal(call(a, b), a - b)
    np.testing.assert_array_equal(call(b, x=a), a - b)
    with_params = relay.create_executor("vm", mod=mod, params={"y": b}).evaluate()
    np.testing.assert_array_equal(with_params(a).numpy(), a - b)
    with pytest.raises(RelayError, match="missing y"):
        call(a)
    with pytest.raises(RelayError, match="no parameter is called z"):
        call(a, z=b)
    with pytest.raises(RelayError, match="kind"):
        relay.create_executor("llvm")


def test_an_expression_with_values_for_its_variables() -> None:
    x = relay.var("x", MATRIX)
    data = _values(2, 3)
    np.testing.assert_array_equal(evaluate(relay.negative(x), {x: data}), -data)
    result = relay.create_executor().evaluate(relay.add(x, x), {x: data})
    np.testing.assert_array_equal(result.numpy(), data + data)
    assert result.flags.owndata or result.base.flags.owndata


def test_a_kernel_that_refuses_names_operator_and_source() -> None:
    x = relay.var("x", relay.TensorType(("?", 3)))
    node = relay.add(x, relay.var("y", relay.TensorType(("?", 3))))
    node.span = relay.Span("layer_7")
    variables = list(node.args)
    with pytest.raises(RelayError, match=r"add \(layer_7\)"):
        run(relay.Function(variables, node), [_values(2, 3), _values(5, 3)])


def _program(name: str) -> relay.IRModule:
    path = Path(__file__).parents[1] / "golden" / "tvm" / "relay_golden.json"
    return relay.fromtext(json.loads(path.read_text())["programs"][name]["text"])


PROGRAMS = {
    "let_recursion": lambda a: (np.int32(10), 10 * a),
    "closure": lambda a: np.exp(a) + a,
    "global_call": lambda a: 4 * a,
    "composite": lambda a: np.maximum(np.exp(a), 0),
    "primitive": lambda a: np.exp(a) + 1,
    "let_chain": lambda a: np.exp(a) * a,
    "tuple_nested": lambda a: ((a, a), a),
    "tuple_empty": lambda a: (),
    "split_use": lambda a: a.T.reshape(6, 1),
    "dropout_use": lambda a: a + a,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_tvm_printed(name: str) -> None:
    data = _values(2, 3)
    got = relay.create_executor(mod=_program(name)).evaluate()(data)
    _assert_close(got, PROGRAMS[name](data))


def _assert_close(got: object, want: object) -> None:
    if not isinstance(want, tuple):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        return
    assert len(got) == len(want)
    for each, wanted in zip(got, want, strict=True):
        _assert_close(each, wanted)
