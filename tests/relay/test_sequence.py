"""Sequences: types, text, evaluation, loops and branches, and the way to tuples."""

from __future__ import annotations

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import ParseError, RelayError, TypeInferenceError
from serde.relay.ir.bodies import all_nodes
from serde.relay.ir.dims import Any
from serde.relay.ir.expr import Call, Expr, Function, If, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import call
from serde.relay.ir.types import SequenceType, TensorType, TupleType, accepts, join_types
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, SequencesToTuples

F32 = TensorType((2, 3))
ROWS = SequenceType(TensorType((Any(), 3)))
A, B, C = (np.full((2, 3), value, np.float32) for value in (1, 2, 3))


def at(data: Expr, position: int) -> Expr:
    return call("serde.sequence_at", data, relay.const(position, "int64"))


def insert(data: Expr, value: Expr, position: int | None = None) -> Expr:
    place = None if position is None else relay.const(position, "int64")
    return call("serde.sequence_insert", data, value, place)


def names(function: Function) -> list[str]:
    calls = [node for node in all_nodes(function.body) if isinstance(node, Call)]
    return [node.op.name for node in calls]


def to_tuples(function: Function) -> Function:
    mod = InferType()(relay.IRModule({"main": function}))
    result = SequencesToTuples()(mod)
    relay.verify(result)
    return result["main"]


# The type.


def test_a_sequence_holds_tensors_only() -> None:
    with pytest.raises(TypeInferenceError, match="holds tensors"):
        SequenceType(TupleType([F32]))


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (SequenceType(F32), True),
        (SequenceType(TensorType((2, 4))), False),
        (SequenceType(TensorType((2, 3), "int32")), False),
        (SequenceType(TensorType((2,))), False),
        (F32, False),
        (TupleType([F32]), False),
    ],
)
def test_accepts(given: relay.TensorType, fits: bool) -> None:
    assert accepts(ROWS, given) is fits


def test_join_makes_lengths_that_differ_anonymous() -> None:
    assert join_types(SequenceType(F32), SequenceType(TensorType((5, 3)))) == ROWS
    assert join_types(SequenceType(F32), F32) is None


@pytest.mark.parametrize("text", ["Sequence[Tensor[(?, 3), float32]]", "Sequence[int64]"])
def test_type_round_trips(text: str) -> None:
    source = f'#[version = "0.0.5"]\ndef @main(%x: {text}) {{\n  %x\n}}\n'
    mod = relay.fromtext(source)
    assert isinstance(mod["main"].params[0].type, SequenceType)
    assert relay.fromtext(mod.astext())["main"].params[0].type == mod["main"].params[0].type
    assert text in mod.astext()


def test_text_with_a_sequence_of_tuples_is_refused() -> None:
    with pytest.raises(ParseError, match="2:24: a sequence holds tensors"):
        relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Sequence[(int32,)]) {\n  %x\n}\n')


def test_strict_text_names_what_it_refuses() -> None:
    x = Var("rows", ROWS)
    mod = relay.IRModule({"main": Function([x], at(x, 0))})
    with pytest.raises(RelayError, match=r"%rows: TVM's text cannot hold a sequence"):
        mod.astext(strict=True)


# Evaluation.


def test_values_are_lists() -> None:
    x, y = Var("x", ROWS), Var("y", TensorType((2, 3)))
    given = [A, B]
    found = run(Function([x, y], insert(x, y, -1)), [given, C])
    assert isinstance(found, list)
    expected = [A, B]
    expected.insert(-1, C)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(given) == 2


def test_executor_hands_out_lists() -> None:
    x = Var("x", ROWS)
    mod = relay.IRModule({"main": Function([x], x)})
    found = relay.create_executor(mod=mod).evaluate()([A, B])
    assert [each.numpy().tolist() for each in found] == [A.tolist(), B.tolist()]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (A, "expected a list"),
        ([A, A.astype("int32")], r"x\[1\]: expected"),
        ([A[:, :2]], r"x\[0\]: expected"),
    ],
)
def test_arguments_are_checked(value: object, message: str) -> None:
    x = Var("x", ROWS)
    with pytest.raises(RelayError, match=message):
        run(Function([x], x), [value])


def test_a_symbol_has_one_length_in_all_elements() -> None:
    x = Var("x", SequenceType(TensorType(("n",))))
    function = Function([x], call("serde.sequence_length", x))
    assert run(function, [[np.zeros(4, np.float32)] * 3]) == 3
    with pytest.raises(RelayError, match="expected n = 4"):
        run(function, [[np.zeros(4, np.float32), np.zeros(5, np.float32)]])


@pytest.mark.parametrize("name", ["at", "erase"])
@pytest.mark.parametrize("position", [2, -3])
def test_positions_outside_are_refused(name: str, position: int) -> None:
    x = Var("x", ROWS)
    body = call(f"serde.sequence_{name}", x, relay.const(position, "int64"))
    with pytest.raises(RelayError, match=f"position {position} is outside a sequence of 2"):
        run(Function([x], body), [[A, B]])


def test_what_is_empty_has_no_last() -> None:
    x = Var("x", ROWS)
    with pytest.raises(RelayError, match="no last tensor"):
        run(Function([x], call("serde.sequence_erase", x)), [[]])
    with pytest.raises(RelayError, match="nothing to concatenate"):
        run(Function([x], call("serde.sequence_concat", x, axis=0)), [[]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: call("serde.sequence_insert", x, relay.Constant(np.zeros(3))), "elements like"),
        (lambda x: call("serde.sequence_construct", [x]), "field 0: expected a tensor"),
        (lambda x: call("serde.sequence_construct", []), "at least one"),
        (lambda x: call("concatenate", [x, x]), "field 0: expected a tensor"),
        (lambda x: call("add", x, x), "expected a tensor, found Sequence"),
        (lambda x: call("serde.sequence_at", x, relay.const(0.0)), "operand position"),
        (lambda x: call("serde.sequence_at", at(x, 0), relay.const(0)), "expected a sequence"),
        (lambda x: call("serde.sequence_concat", x, axis=2), "axis"),
        (
            lambda x: call("serde.sequence_split", at(x, 0), relay.const([1, 1]), axis=1),
            "do not make a length of 3",
        ),
    ],
)
def test_types_are_checked(build: object, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        build(Var("x", ROWS))  # type: ignore[operator]


@pytest.mark.parametrize("there", [True, False])
def test_optional(there: bool) -> None:
    c, x = Var("c", TensorType((), "bool")), Var("x", F32)
    full = relay.serde.optional_construct(x)
    value = If(c, full, relay.serde.optional_empty((2, 3)))
    has = relay.serde.optional_has_element(value)
    chosen = If(has, relay.serde.optional_get_element(value), relay.negative(x))
    found = run(Function([c, x], Tuple([has, chosen])), [np.array(there), A])
    assert bool(found[0]) is there
    np.testing.assert_array_equal(found[1], A if there else -A)


# The way to tuples.


def test_positions_that_are_known_make_tuples() -> None:
    x, y, z = (Var(name, F32) for name in "xyz")
    rows = call("serde.sequence_empty", shape=("?", 3))
    rows = insert(insert(insert(rows, x), y, 0), z, -1)
    rows = call("serde.sequence_erase", rows, relay.const(0, "int64"))
    last, count = at(rows, -1), call("serde.sequence_length", rows)
    joined = call("serde.sequence_concat", rows, axis=1)
    stacked = call("serde.sequence_concat", rows, axis=-1, new_axis=True)
    function = Function([x, y, z], Tuple([last, count, joined, stacked]))
    found = to_tuples(function)
    assert names(found) == ["concatenate", "stack"]
    order = [A, B, C]
    results = run(found, order)
    for one, other in zip(results, run(function, order), strict=True):
        np.testing.assert_array_equal(one, other)
    listed = [A]
    listed.insert(0, B)
    listed.insert(-1, C)
    del listed[0]
    np.testing.assert_array_equal(results[0], listed[-1])
    np.testing.assert_array_equal(results[3], np.stack(listed, -1))


@pytest.mark.parametrize(
    ("split", "keepdims", "parts"),
    [
        (None, True, [(1, 3), (1, 3)]),
        (None, False, [(3,), (3,)]),
        (np.array(2, np.int64), True, [(2, 3)]),
        (np.array([0, 2], np.int64), True, [(0, 3), (2, 3)]),
    ],
)
def test_splits_of_fixed_number_are_known(
    split: np.ndarray | None, keepdims: bool, parts: list[tuple[int, ...]]
) -> None:
    x = Var("x", F32)
    given = None if split is None else relay.const(split)
    rows = call("serde.sequence_split", x, given, axis=0, keepdims=keepdims)
    body = Tuple([*(at(rows, index) for index in range(len(parts)))])
    found = to_tuples(Function([x], body))
    assert not any(name.startswith("serde.") for name in names(found))
    assert [each.shape for each in run(found, [A])] == parts


def test_a_choice_between_known_ones_is_known() -> None:
    c, x, y = Var("c", TensorType((), "bool")), Var("x", F32), Var("y", F32)
    rows = If(c, call("serde.sequence_construct", [x, y]), call("serde.sequence_construct", [y, x]))
    found = to_tuples(Function([c, x, y], at(rows, 0)))
    assert names(found) == []
    np.testing.assert_array_equal(run(found, [np.array(False), A, B]), B)


def test_lets_are_looked_through() -> None:
    x = Var("x", F32)
    rows = Var("rows")
    body = relay.Let(rows, call("serde.sequence_construct", [relay.exp(x)]), Call(*_at(rows)))
    found = to_tuples(Function([x], body))
    assert "serde.sequence_at" not in names(found)
    np.testing.assert_allclose(run(found, [A]), np.exp(A))


def _at(data: Expr) -> tuple[object, list[Expr], object]:
    node = at(Var("any", ROWS), 0)
    assert isinstance(node, Call)
    return node.op, [data, node.args[1]], node.attrs


def test_what_is_unknown_stays() -> None:
    x, p = Var("x", ROWS), Var("p", TensorType((), "int64"))
    rows = insert(x, call("serde.sequence_at", x, p))
    function = Function([x, p], at(rows, 0))
    mod = InferType()(relay.IRModule({"main": function}))
    assert SequencesToTuples().run(mod) == (mod, False)


@pytest.mark.wide
def test_a_long_chain_costs_no_square() -> None:
    x = Var("x", F32)
    rows = call("serde.sequence_empty", shape=(2, 3))
    for _ in range(20_000):
        rows = insert(rows, x)
    found = to_tuples(Function([x], call("serde.sequence_length", rows)))
    assert run(found, [A]) == 20_000


def test_loop_carries_a_sequence() -> None:
    rows, x = Var("rows", ROWS), Var("x", F32)
    number, state, row = (Var("i", TensorType((), "int64")), Var("state", ROWS), Var("row", F32))
    scaled = relay.multiply(row, relay.cast(number, dtype="float32"))
    body = Function([number, state, row], Tuple([relay.const(True), insert(state, scaled)]))
    loop = relay.serde.loop(relay.const(3, "int64"), None, [rows], [x], body=body)
    assert loop.tuple_value.type == TupleType([ROWS])
    found = run(Function([rows, x], TupleGetItem(loop.tuple_value, 0)), [[B], A])
    assert [float(each[0, 0]) for each in found] == [2, 0, 1, 2]


def test_recursion_over_a_sequence_becomes_a_loop() -> None:
    i, rows = Var("i", TensorType((), "int32")), Var("rows", ROWS)

    def step(count: Expr, held: Expr) -> list[Expr]:
        first = at(held, 0)
        return [relay.subtract(count, relay.const(1)), insert(held, relay.negative(first), 0)]

    loop = relay.loops.while_loop(lambda c, _: relay.greater(c, relay.const(0)), [i, rows], step)
    function = Function([i, rows], TupleGetItem(Call(loop, [i, rows]), 1))
    mod = InferType()(relay.IRModule({"main": function}))
    raised = relay.transform.RaiseRecursion()(mod)
    assert "serde.loop" in names(raised["main"])
    for each in (mod, raised):
        found = run(each["main"], [np.int32(3), [A]], mod=each)
        assert [float(item[0, 0]) for item in found] == [-1, 1, -1, 1]
