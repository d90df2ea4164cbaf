"""Structural equality is an equivalence, and the hash goes with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.compare import first_difference
from serde.relay.ir.expr import Call, Constant, Function, GlobalVar, Let, TupleGetItem, Var
from serde.relay.ir.registry import get
from serde.relay.text.parser import parse_expr
from serde.relay.transform import InferType

T = "Tensor[(2, 3), float32]"

# Rows of texts: those of one row are equal, those of different rows are not.
CLASSES = [
    ["fn (%x) { %x }", "fn (%y) { %y }"],
    [
        "fn (%x: int32) { %x }",
        "fn (%other: int32) { %other }",
        "fn (%x: int32) -> int32 { %x }",  # What a typed body yields is known, said or not.
    ],
    ["fn (%x: int64) { %x }"],
    [f"fn (%x: {T}) -> {T} {{ exp(%x) }}"],
    ["fn (%x: int32, %y: int32) { %x }", "fn (%a: int32, %b: int32) { %a }"],
    ["fn (%x: int32, %y: int32) { %y }"],
    [f"fn (%x: {T}) {{ exp(%x) }}", f"fn (%x: {T}) {{ %0 = exp(%x); %0 }}"],
    [f"fn (%x: {T}) {{ log(%x) }}"],
    [f"fn (%x: {T}) {{ exp(exp(%x)) }}"],
    [f"fn (%x: {T}) {{ %0 = exp(%x); add(%0, %0) }}"],
    [f"fn (%x: {T}) {{ add(exp(%x), exp(%x)) }}"],
    [f"fn (%x: {T}) {{ sum(%x, axis=[0]) }}"],
    [f"fn (%x: {T}) {{ sum(%x, axis=[1]) }}"],
    [f"fn (%x: {T}) {{ sum(%x, axis=[0, 1]) }}"],
    [f"fn (%x: {T}) {{ (%x, %x) }}"],
    [f"fn (%x: {T}) {{ (%x,) }}"],
    [f"fn (%x: {T}) {{ ((%x,), %x) }}"],
    [f"fn (%x: {T}) {{ (%x, %x).0 }}", f"fn (%x: {T}) {{ %0 = (%x, %x); %0.0 }}"],
    [f"fn (%x: {T}) {{ (%x, %x).1 }}"],
    ["fn (%x: float32) { add(%x, 1f) }", "fn (%x: float32) { %x + 1f }"],
    ["fn (%x: float32) { add(%x, 2f) }"],
    ["fn (%x: float32) { add(1f, %x) }"],
    ["fn (%x: float32) { let %y = exp(%x); %y }", "fn (%x: float32) { let %z: _ = exp(%x); %z }"],
    ["fn (%x: float32) { let %y: float32 = exp(%x); %y }"],
    ["fn (%x: bool) { if (%x) { 1 } else { 2 } }"],
    ["fn (%x: bool) { if (%x) { 2 } else { 1 } }"],
    ["fn (%x: int32, Primitive=1) { %x }"],
    ["fn (%x: int32, Primitive=2) { %x }"],
    ['fn (%x: int32, Composite="a", Primitive=1) { %x }',
     'fn (%x: int32, Primitive=1, Composite="a") { %x }'],
    ["fn (%x: Tensor[(N), float32]) { %x }"],
    ["fn (%x: Tensor[(M), float32]) { %x }"],
    ["fn (%x: Tensor[(?), float32]) { %x }"],
    ["fn (%x: (int32, int32)) { %x.0 }"],
    ["fn () { () }", "fn () { %0 = (); %0 }"],
    ["1", "1i"],
    ["1i64"],
    ["1f"],
    ["True"],
]  # fmt: skip
TEXTS = [(row, text) for row, texts in enumerate(CLASSES) for text in texts]


@pytest.mark.thin(2)
@pytest.mark.thin(4)
@pytest.mark.parametrize(("row", "text"), TEXTS)
def test_equal_to_those_of_its_row_alone(row: int, text: str) -> None:
    found = {
        other_row
        for other_row, other in TEXTS
        if relay.structural_equal(parse_expr(text), parse_expr(other))
        and relay.structural_equal(parse_expr(other), parse_expr(text))
    }
    assert found == {row}
    one_way = [
        other for _, other in TEXTS if relay.structural_equal(*map(parse_expr, (text, other)))
    ]
    assert one_way == CLASSES[row]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("row", "text"), TEXTS)
def test_hash_of_a_row(row: int, text: str) -> None:
    value = relay.structural_hash(parse_expr(text))
    same = [other for _, other in TEXTS if relay.structural_hash(parse_expr(other)) == value]
    assert same == CLASSES[row]


@pytest.mark.parametrize(("row", "text"), TEXTS)
def test_hash_of_a_module(row: int, text: str) -> None:
    mods = [relay.IRModule.from_expr(parse_expr(each)) for each in (text, CLASSES[row][-1])]
    assert relay.structural_hash(mods[0]) == relay.structural_hash(mods[1])
    named = relay.IRModule({**mods[0].functions, GlobalVar("f"): mods[0]["main"]})
    assert relay.structural_hash(named) != relay.structural_hash(mods[0])
    noted = relay.IRModule(mods[0].functions, attrs={"a": 1})
    assert relay.structural_hash(noted) != relay.structural_hash(mods[0])


def test_untyped_int32_and_int64_are_three() -> None:
    untyped, narrow, wide = (Function([Var("x", t)], relay.const(1)) for t in (
        None, relay.TensorType((), "int32"), relay.TensorType((), "int64")))  # fmt: skip
    for one, other in product((untyped, narrow, wide), repeat=2):
        assert relay.structural_equal(one, other) == (one is other)
    assert first_difference(untyped, narrow) == "params[0].type: no type and int32"


def test_inference_makes_a_function_another() -> None:
    before = relay.IRModule({"main": parse_expr("fn (%x: float32) { let %y = exp(%x); %y }")})
    again = relay.IRModule({"main": parse_expr("fn (%x: float32) { let %y = exp(%x); %y }")})
    number = relay.structural_hash(before)
    typed = InferType()(again)
    assert not relay.structural_equal(before, typed)
    assert relay.structural_hash(typed) != number
    assert relay.structural_equal(InferType()(before), typed)
    assert relay.structural_hash(InferType()(before)) == relay.structural_hash(typed)


def _free(build: Callable[..., Any], shape: tuple[int, ...] = (2,)) -> Any:
    return build(relay.var("x", shape=shape), relay.var("y", shape=shape))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (lambda x, y: relay.exp(x), lambda x, y: relay.exp(y), True),
        (lambda x, y: relay.add(x, y), lambda x, y: relay.add(y, x), True),
        (lambda x, y: relay.add(x, y), lambda x, y: relay.add(x, x), False),
        (lambda x, y: relay.add(x, x), lambda x, y: relay.add(y, y), True),
        (lambda x, y: x, lambda x, y: y, True),
        (lambda x, y: Function([x], relay.add(x, y)), lambda x, y: Function([y], relay.add(y, x)),
         True),
        (lambda x, y: Function([x], relay.add(x, y)), lambda x, y: Function([y], relay.add(x, y)),
         False),
    ],
)  # fmt: skip
def test_free_variables(left: Callable[..., Any], right: Callable[..., Any], same: bool) -> None:
    one, other = _free(left), _free(right)
    assert relay.structural_equal(one, other, map_free_vars=True) is same
    hashes = [relay.structural_hash(each, map_free_vars=True) for each in (one, other)]
    assert (hashes[0] == hashes[1]) is same
    assert not relay.structural_equal(one, other)
    assert relay.structural_hash(one) != relay.structural_hash(other)
    assert relay.structural_hash(one) == relay.structural_hash(one)
    assert hashes[0] != relay.structural_hash(_free(left, (3,)), map_free_vars=True)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (relay.TensorType((2,)), relay.TensorType((2,)), True),
        (relay.TensorType((2,)), relay.TensorType((2,), "int32"), False),
        (relay.TensorType((2,)), relay.TensorType(("N",)), False),
        (relay.TensorType(("N",)), relay.TensorType((relay.symbol("N"),)), True),
        (relay.TensorType((relay.Any(),)), relay.TensorType((relay.Any(),)), True),
        (relay.TupleType([]), relay.TensorType(()), False),
        (relay.TupleType([relay.TensorType(())]), relay.TensorType(()), False),
    ],
)
def test_types(left: Any, right: Any, same: bool) -> None:
    assert relay.structural_equal(left, right) is same
    assert (relay.structural_hash(left) == relay.structural_hash(right)) is same


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1, True), (1, True, False), (1, 1.0, False), (0.0, -0.0, False), ("1", 1, False),
        ((1, 2), [1, 2], True), ((1, (2,)), ((1,), 2), False), ("ab", ("a", "b"), False),
        (float("nan"), float("nan"), True), (None, 0, False), ((), None, False),
        (np.dtype("float32"), np.dtype("float32"), True),
        (np.dtype("float32"), np.dtype("float64"), False),
        (np.dtype("float32"), "float32", False),
        (np.arange(3), np.arange(3), True), (np.arange(3), np.arange(3.0), False),
        (np.zeros((2, 3)), np.zeros((3, 2)), False),
    ],
)  # fmt: skip
def test_attributes(left: Any, right: Any, same: bool) -> None:
    one, other = (Function([], relay.const(1), None, attrs={"a": value}) for value in (left, right))
    assert relay.structural_equal(one, other) is same
    assert relay.structural_equal(other, one) is same
    assert (relay.structural_hash(one) == relay.structural_hash(other)) is same


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), True),
        (np.float32([1, 2]), np.float32([2, 1]), False),
        (np.float32([1, 2]), np.float32([[1, 2]]), False),
        (np.float32([np.nan]), np.float32([np.nan]), True),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.int32(1), np.uint32(1), False),
    ],
)
def test_constants(left: Any, right: Any, same: bool) -> None:
    assert relay.structural_equal(Constant(left), Constant(right)) is same
    hashes = {relay.structural_hash(Constant(each)) for each in (left, right)}
    assert (len(hashes) == 1) is same


def test_sharing_of_constants_and_projections_does_not_count() -> None:
    one = relay.const(1.0)
    pair = relay.var("p", relay.TupleType([relay.TupleType([relay.TensorType(())])]))
    shared = TupleGetItem(TupleGetItem(pair, 0), 0)
    left = relay.Tuple([one, one, shared, shared])
    apart = [TupleGetItem(TupleGetItem(pair, 0), 0) for _ in range(2)]
    right = relay.Tuple([relay.const(1.0), relay.const(1.0), *apart])
    assert relay.structural_equal(left, right)
    assert relay.structural_hash(left) == relay.structural_hash(right)


def test_bodies_of_loops_count() -> None:
    def function(name: str) -> Function:
        i, s = relay.var("i", shape=(), dtype="int64"), relay.var("s", shape=(2,))
        body = Function([i, s], relay.Tuple([relay.const(True), Call(get(name), [s])]))
        return Function([], relay.const(1), None, attrs={"body": body})

    numbers = [relay.structural_hash(function(name)) for name in ("exp", "exp", "log")]
    assert numbers[0] == numbers[1] != numbers[2]


def test_recursive_let() -> None:
    def recursion(swap: bool) -> Function:
        x, f, i = relay.var("x", shape=()), Var("f"), relay.var("i", shape=())
        body = Function([i], f(x if swap else i), relay.TensorType(()))
        return Function([x], Let(f, body, f(x)))

    numbers = [relay.structural_hash(recursion(swap)) for swap in (False, False, True)]
    assert numbers[0] == numbers[1] != numbers[2]


@pytest.mark.wide
def test_hash_is_the_same_in_another_process() -> None:
    text = f"fn (%x: {T}) {{ let %y = sum(add(%x, 1f), axis=[0]); (%y, %x) }}"
    code = (
        "import serde.relay as relay; from serde.relay.text.parser import parse_expr; "
        f"print(relay.structural_hash(parse_expr({text!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == relay.structural_hash(parse_expr(text))


@pytest.mark.slow
def test_long_and_shared_graphs_are_hashed_in_linear_time() -> None:
    x = relay.var("x", shape=(2,))
    value: Any = x
    for _ in range(50_000):
        value = TupleGetItem(relay.Tuple([relay.add(value, value), value]), 0)
    nested: Any = relay.var("t")
    fields = []
    for _ in range(20_000):
        nested = TupleGetItem(nested, 0)
        fields.append(nested)
    assert relay.structural_hash(Function([x], value)) == relay.structural_hash(
        Function([x], value)
    )
    assert relay.structural_hash(relay.Tuple(fields)) != relay.structural_hash(
        relay.Tuple(fields[1:])
    )
