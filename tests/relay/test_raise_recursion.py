"""Functions that call themselves last, before and after they are raised to loops."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from support.programs import build_program, programs
from support.samples import build, each_array, uses_sequences

import serde.relay as relay
from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report
from serde.errors import TypeInferenceError
from serde.relay import transform
from serde.relay.ir.bodies import all_nodes, carried
from serde.relay.ir.compare import first_difference
from serde.relay.ir.expr import Call, Function, Let, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import OpDef, Sample, get
from serde.relay.run.interpreter import run

HEADER = '#[version = "0.0.5"]\n'


def raised(mod: relay.IRModule) -> relay.IRModule:
    """Return `mod` with its recursion raised; the text of what comes out reads back."""
    relay.verify(mod)
    found, changed = transform.RaiseRecursion().run(mod)
    assert changed
    relay.verify(found)
    assert transform.RaiseRecursion().run(found) == (found, False)
    held = any(map(uses_sequences, found.functions.values()))
    for strict in (False,) if held else (False, True):
        text = found.astext(strict=strict)
        assert first_difference(relay.fromtext(text), found) is None
    return found


def loops(mod: relay.IRModule) -> list[Call]:
    nodes = all_nodes(*mod.functions.values())
    return [node for node in nodes if isinstance(node, Call) and carried(node)]


def recursive(mod: relay.IRModule) -> bool:
    nodes = list(all_nodes(*mod.functions.values()))
    return any(isinstance(node, Let) and isinstance(node.value, Function) for node in nodes)


def evaluate(mod: relay.IRModule, *arrays: Any) -> Any:
    return run(mod["main"], [a if isinstance(a, list) else np.asarray(a) for a in arrays], mod=mod)


def both(text: str, *arrays: Any) -> tuple[relay.IRModule, list[np.ndarray]]:
    """Return a module raised, and its results, which are those of the recursion."""
    mod = relay.fromtext(HEADER + text)
    found = raised(mod)
    before, after = evaluate(mod, *arrays), evaluate(found, *arrays)
    before, after = (each if isinstance(each, tuple) else (each,) for each in (before, after))
    for left, right in zip(before, after, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    return found, list(after)


def folded(a: np.ndarray, count: int) -> np.ndarray:
    """Return what the loop of the example leaves."""
    for _ in range(count):
        b = a * 2 + a
        a = a + b if b.sum() > 0 else a - b
    return a


def step(i: Any, a: Any) -> tuple[Any, Any]:
    b = relay.add(relay.multiply(a, relay.const(2.0)), a)
    positive = relay.greater(relay.sum(b), relay.const(0.0))
    return relay.add(i, relay.const(1)), relay.If(positive, relay.add(a, b), relay.subtract(a, b))


def example() -> relay.IRModule:
    """Return ``for i in range(10): b = a*2 + a; a = a + b if b.sum() > 0 else a - b``."""
    x, i = relay.var("x", shape=(3,)), relay.var("i", shape=(), dtype="int32")
    a = relay.var("a", shape=(3,))
    loop = relay.loops.while_loop(lambda i, a: relay.less(i, relay.const(10)), [i, a], step)
    body = relay.TupleGetItem(loop(relay.const(0), x), 1)
    return transform.InferType()(relay.IRModule({"main": Function([x], body)}))


@pytest.mark.parametrize("given", [[1, -2, 0.5], [0, 0, 0], [3, 1, -1]])
def test_example_with_an_if_inside(given: list[float]) -> None:
    mod = example()
    found = raised(mod)
    assert not recursive(found)
    (loop,) = loops(found)
    limit = loop.args[0]
    assert isinstance(limit, relay.Constant)
    assert limit.data == 10
    a = np.float32(given)
    np.testing.assert_array_equal(evaluate(mod, a), folded(a, 10))
    np.testing.assert_array_equal(evaluate(found, a), folded(a, 10))


def test_preparation_raises() -> None:
    model = RelayModel(example(), {}, ModelMeta(("x",), ("y",)))
    found = prepare(model, PrepareOptions(), report=Report())
    relay.verify(found.mod)
    assert not recursive(found.mod)
    a = np.float32([1, -2, 0.5])
    np.testing.assert_array_equal(evaluate(found.mod, a), folded(a, 10))


def test_recorded_program_of_tvm() -> None:
    mod = relay.fromtext(programs()["let_recursion"]["typed"])
    assert first_difference(mod, transform.InferType()(build_program("let_recursion"))) is None
    found = raised(mod)
    (loop,) = loops(found)
    assert found["main"].body is loop
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    count, total = evaluate(found, a)
    assert (count, count.dtype) == (10, np.int32)
    np.testing.assert_array_equal(total, 10 * a)


@pytest.mark.parametrize("name", sorted(set(programs()) - {"same_names", "let_recursion"}))
def test_other_recorded_programs_stay(name: str) -> None:
    mod = transform.InferType()(build_program(name))
    assert transform.RaiseRecursion().run(mod) == (mod, False)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param(name, given, id=f"{name}-{index}")
        for name in ("serde.loop", "serde.scan")
        for index, given in enumerate(get(name).samples)
    ],
)
def test_decompositions_come_back(name: str, given: Sample) -> None:
    definition = get(name)
    built = build(definition, given)
    mod = transform.InferType()(relay.IRModule({"main": built.function}))
    plain = transform.Decompose(frozenset())(mod)
    assert recursive(plain)
    assert not loops(plain)
    found = raised(plain)
    assert not recursive(found)
    assert [each.op for each in loops(found)] == [definition]
    expected = evaluate(mod, *built.arrays)
    for each in (plain, found):
        pairs = zip(evaluate(each, *built.arrays), expected, strict=True)
        nested = (zip(each_array(a), each_array(b), strict=True) for a, b in pairs)
        for left, right in chain.from_iterable(nested):
            assert (left.dtype, left.shape) == (right.dtype, right.shape)
            np.testing.assert_array_equal(left, right)


def test_scan_comes_back_as_it_was() -> None:
    definition = get("serde.scan")
    mod = transform.InferType()(
        relay.IRModule({"main": build(definition, definition.samples[2]).function})
    )
    plain = transform.Decompose(frozenset())(mod)
    (scan,) = loops(raised(plain))
    (expected,) = loops(mod)
    assert dict(scan.attrs, body=None, out_axes=None) == dict(
        expected.attrs, body=None, axes=(0, 1), out_axes=None
    )
    assert first_difference(scan.attrs["body"], expected.attrs["body"]) is None


@pytest.mark.parametrize("length", [4, "n"])
def test_walk_along_a_tensor_of_any_length(length: int | str) -> None:
    text = f"""
def @main(%x: Tensor[({length}, 3), float32], %w: Tensor[(3), float32]) {{
  let %f = fn(%i: int64, %s: Tensor[(3), float32], %rows: Tensor[(?, 3), float32])
      -> (Tensor[(3), float32], Tensor[(?, 3), float32]) {{
    if (less(%i, take(shape_of(%x, dtype="int64"), 0i64, axis=0))) {{
      let %t = add(%s, multiply(take(%x, %i, axis=0), %w));
      %f(add(%i, 1i64), %t, concatenate((%rows, expand_dims(%t, axis=0))))
    }} else {{ (%s, %rows) }}
  }};
  %f(0i64, %w, zeros(shape=[0, 3], dtype="float32"))
}}
"""
    x, w = np.arange(12, dtype=np.float32).reshape(4, 3), np.float32([1, 2, 3])
    found, (last, rows) = both(text, x, w)
    assert [each.op for each in loops(found)] == [get("serde.scan")]
    np.testing.assert_array_equal(rows, w + np.cumsum(x * w, axis=0))
    np.testing.assert_array_equal(last, rows[-1])


@pytest.mark.parametrize(
    "body",
    [
        "add(%s, take(%x, add(%i, 1i64), axis=0))",
        'add(%s, multiply(take(%x, %i, axis=0), cast(%i, dtype="float32")))',
        "add(%s, take(%y, %i, axis=0))",
    ],
    ids=["other places", "number used", "other length"],
)
def test_other_walks_stay_loops(body: str) -> None:
    text = f"""
def @main(%x: Tensor[(4, 3), float32], %y: Tensor[(5, 3), float32]) {{
  let %f = fn(%i: int64, %s: Tensor[(3), float32]) -> Tensor[(3), float32] {{
    if (less(%i, 4i64)) {{ %f(add(%i, 1i64), {body}) }} else {{ %s }}
  }};
  %f(0i64, zeros(shape=[3], dtype="float32"))
}}
"""
    x, y = np.ones((4, 3), np.float32), np.ones((5, 3), np.float32)
    found, _ = both(text, x, y)
    assert [each.op for each in loops(found)] == [get("serde.loop")]


def test_loop_comes_back_as_it_was() -> None:
    definition = get("serde.loop")
    assert isinstance(definition, OpDef)
    for each in (definition.samples[0], definition.samples[3]):
        mod = transform.InferType()(relay.IRModule({"main": build(definition, each).function}))
        plain = transform.Decompose(frozenset())(mod)
        assert first_difference(raised(plain), mod) is None


def test_global_function_with_branches_swapped_and_lets() -> None:
    text = """
def @main(%x: Tensor[(n, 3), float32]) { @again(0, %x, %x) }
def @again(%i: int32, %x: Tensor[(n, 3), float32], %y: Tensor[(n, 3), float32])
    -> Tensor[(n, 3), float32] {
  let %s = sum(%x);
  let %d = multiply(%x, 2f);
  if (greater_equal(%i, 5)) { add(%d, %y) } else {
    let %k = add(%i, 1);
    if (greater(%s, 3f)) { @again(%k, subtract(%x, %y), %y) } else { @again(%k, %d, %y) }
  }
}
"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found, (value,) = both(text, x)
    expected = x
    for _ in range(5):
        expected = expected - x if expected.sum() > 3 else expected * 2
    np.testing.assert_array_equal(value, expected * 2 + x)
    inlined = transform.InlineCalls()(found)
    assert [v.name_hint for v in transform.RemoveDeadCode()(inlined).functions] == ["main"]


def test_rows_in_front_of_what_was_there() -> None:
    text = """
def @main(%x: Tensor[(n, 3), float32], %m: int64) {
  let %f = fn(%i: int64, %s: Tensor[(n, 3), float32], %rows: Tensor[(?, n, 3), float32])
      -> (Tensor[(n, 3), float32], Tensor[(?, n, 3), float32]) {
    if (less_equal(%i, %m)) {
      let %t = add(%s, %x);
      %f(add(%i, 1i64), %t, concatenate((expand_dims(%t, axis=0), %rows)))
    } else { (%s, %rows) }
  };
  %f(1i64, %x, expand_dims(%x, axis=0))
}
"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found, (last, rows) = both(text, x, np.int64(3))
    np.testing.assert_array_equal(last, 4 * x)
    np.testing.assert_array_equal(rows, np.stack([4 * x, 3 * x, 2 * x, x]))
    (loop,) = loops(found)
    assert isinstance(loop.args[0], Var)


def test_condition_without_a_counter() -> None:
    text = """
def @main(%x: float32, %low: float32) {
  let %f = fn(%a: float32, %n: int32) -> (float32, int32) {
    if (greater(%a, %low)) { %f(divide(%a, 2f), add(%n, 1)) } else { (%a, %n) }
  };
  %f(%x, 0)
}
"""
    _, (last, count) = both(text, np.float32(100), np.float32(3))
    assert (last, count) == (1.5625, 6)
    _, (last, count) = both(text, np.float32(1), np.float32(3))
    assert (last, count) == (1, 0)


def test_counter_and_condition() -> None:
    text = """
def @main(%x: float32, %most: int32) {
  let %f = fn(%i: int32, %a: float32) -> float32 {
    if (logical_and(greater(%a, 1f), less(%i, %most))) { %f(add(1, %i), divide(%a, 2f)) }
    else { %a }
  };
  %f(2, %x)
}
"""
    found, (last,) = both(text, np.float32(100), np.int32(5))
    assert last == 12.5
    assert both(text, np.float32(100), np.int32(50))[1] == [0.78125]
    (loop,) = loops(found)
    assert len(loop.args[2].fields) == 1


def test_counter_that_stops_where_its_type_ends() -> None:
    text = """
def @main(%x: int32) {
  let %f = fn(%i: int32, %a: int32) -> (int32, int32) {
    if (less(%i, %x)) { %f(add(%i, 1), add(%a, 2)) } else { (%i, %a) }
  };
  %f(2147483640, 0)
}
"""
    _, values = both(text, np.int32(2147483647))
    assert values == [2147483647, 14]
    assert both(text, np.int32(-2147483648))[1] == [2147483640, 0]


def test_two_calls_of_one_function() -> None:
    text = """
def @main(%x: float32) {
  let %f = fn(%i: int32, %a: float32) -> float32 {
    if (less(%i, 3)) { %f(add(%i, 1), multiply(%a, %x)) } else { %a }
  };
  let %y = %f(0, %x);
  %f(1, %y)
}
"""
    found, (value,) = both(text, np.float32(2))
    assert value == 2.0**6
    assert len(loops(found)) == 2


def test_recursion_inside_a_recursion() -> None:
    text = """
def @main(%x: float32) {
  let %outer = fn(%i: int32, %a: float32) -> float32 {
    if (less(%i, 3)) {
      let %inner = fn(%j: int32, %b: float32) -> float32 {
        if (less(%j, %i)) { %inner(add(%j, 1), add(%b, %a)) } else { %b }
      };
      %outer(add(%i, 1), %inner(0, 1f))
    } else { %a }
  };
  %outer(0, %x)
}
"""
    found, (value,) = both(text, np.float32(5))
    expected = 5
    for i in range(3):
        expected = 1 + i * expected
    assert value == expected
    assert not recursive(found)
    assert len(loops(found)) == 2


def test_while_loop_needs_types_and_all_values() -> None:
    x = relay.var("x", shape=(2,))
    with pytest.raises(TypeInferenceError, match="needs a type"):
        relay.loops.while_loop(lambda x: x, [Var("x")], lambda x: [x])
    with pytest.raises(TypeInferenceError, match="expected 1 new values, found 2"):
        relay.loops.while_loop(lambda x: x, [x], lambda x: [x, x])


STAYS = {
    "not last": "multiply(%i, %f(subtract(%i, 1)))",
    "twice": "add(%f(subtract(%i, 1)), %f(subtract(%i, 2)))",
    "as an argument": "%f(%f(subtract(%i, 1)))",
    "both ways": "if (less(%i, 4)) { %f(subtract(%i, 2)) } else { 7 }",
}


@pytest.mark.parametrize("name", STAYS)
def test_other_recursion_stays(name: str) -> None:
    text = f"""
def @main(%x: int32) {{
  let %f = fn(%i: int32) -> int32 {{ if (less(%i, 1)) {{ 1 }} else {{ {STAYS[name]} }} }};
  %f(%x)
}}
"""
    mod = relay.fromtext(HEADER + text)
    assert transform.RaiseRecursion().run(mod) == (mod, False)


def test_function_used_as_a_value_stays() -> None:
    text = """
def @main(%x: int32) {
  let %f = fn(%i: int32) -> int32 { if (less(%i, 1)) { %i } else { %f(subtract(%i, 1)) } };
  let %g = fn(%h: fn(int32) -> int32) { %h(%x) };
  %g(%f)
}
"""
    mod = relay.fromtext(HEADER + text)
    assert transform.RaiseRecursion().run(mod) == (mod, False)
    assert evaluate(mod, np.int32(5)) == 0


def test_functions_that_call_each_other_stay() -> None:
    text = """
def @main(%x: int32) { @even(%x) }
def @even(%i: int32) -> bool { if (less(%i, 1)) { True } else { @odd(subtract(%i, 1)) } }
def @odd(%i: int32) -> bool { if (less(%i, 1)) { False } else { @even(subtract(%i, 1)) } }
"""
    mod = relay.fromtext(HEADER + text)
    assert transform.RaiseRecursion().run(mod) == (mod, False)


@pytest.mark.wide
def test_long_bodies_take_no_stack() -> None:
    lines = "".join(f"    let %v{n + 1} = add(%v{n}, 1f);\n" for n in range(3000))
    text = f"""
def @main(%x: float32) {{
  let %f = fn(%i: int32, %v0: float32) -> float32 {{
{lines}    if (less(%i, 2)) {{ %f(add(%i, 1), %v3000) }} else {{ %v0 }}
  }};
  %f(0, %x)
}}
"""
    mod = relay.fromtext(HEADER + text)
    found, changed = transform.RaiseRecursion().run(mod)
    assert changed
    assert evaluate(found, np.float32(1)) == 6001
