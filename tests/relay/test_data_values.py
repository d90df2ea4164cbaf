"""Evaluation of algebraic data, matches, references and closures; expected values by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.run.values import ConstructorValue, RefValue

HEADER = '#[version = "0.0.5"]\n'


@cache
def library(*files: str) -> relay.IRModule:
    mod = relay.IRModule()
    for name in ("prelude.rly", *files):
        mod.import_from_std(name)
    return mod


def program(text: str, *files: str) -> relay.IRModule:
    mod = library(*files)
    return relay.fromtext(HEADER + text, "program", mod)


def plain(value: Any) -> Any:
    """A value as Python has it: lists of the Prelude are lists, other data name and fields."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, RefValue):
        return {"ref": plain(value.value)}
    if isinstance(value, ConstructorValue):
        name = value.constructor.name_hint
        if name in ("Cons", "Nil"):
            items = []
            while value.fields:
                items.append(plain(value.fields[0]))
                value = value.fields[1]
            return items
        return (name, *map(plain, value.fields))
    return value.numpy().tolist()


def value_of(text: str, *files: str) -> Any:
    mod = program(f"def @main() {{ {text} }}", *files)
    return plain(relay.create_executor(mod=mod).evaluate()())


L123 = "Cons(1, Cons(2, Cons(3, Nil)))"
VALUES = [
    (L123, [1, 2, 3]),
    ("Nil", []),
    ("Some(Cons(True, Nil))", ("Some", [True])),
    (f"@hd({L123})", 1),
    (f"@tl({L123})", [2, 3]),
    *[(f"@nth({L123}, {i})", i + 1) for i in range(3)],
    (f"@length({L123})", 3),
    ("@length(Nil)", 0),
    *[(f"@update({L123}, {i}, 9)", [9 if i == j else j + 1 for j in range(3)]) for i in range(3)],
    (f"@map(fn (%x: int32) {{ %x * %x }}, {L123})", [1, 4, 9]),
    (f"@map(fn (%x: int32) {{ (%x, less(%x, 2)) }}, {L123})", [(1, True), (2, False), (3, False)]),
    (f"@foldl(fn (%a: int32, %x: int32) {{ %a * 10 + %x }}, 0, {L123})", 123),
    (f"@foldr(fn (%x: int32, %a: int32) {{ %a * 10 + %x }}, 0, {L123})", 321),
    (f"@foldr1(fn (%x: int32, %a: int32) {{ %a * 10 - %x }}, {L123})", (3 * 10 - 2) * 10 - 1),
    (f"@foldl(fn (%a: int32, %x: int32) {{ %a - %x }}, 0, {L123})", -6),
    (f"@foldr(fn (%x: int32, %a: int32) {{ %x - %a }}, 0, {L123})", 2),
    (f"@concat({L123}, {L123})", [1, 2, 3, 1, 2, 3]),
    (f"@concat(Nil, {L123})", [1, 2, 3]),
    (f"@concat({L123}, Nil)", [1, 2, 3]),
    (f"@filter(fn (%x: int32) {{ not_equal(%x, 2) }}, {L123})", [1, 3]),
    (f"@filter(fn (%x: int32) {{ less(%x, 0) }}, {L123})", []),
    (f"@zip({L123}, Cons(True, Cons(False, Nil)))", [(1, True), (2, False)]),
    (f"@zip(Nil, {L123})", []),
    (f"@rev({L123})", [3, 2, 1]),
    (f"@sum({L123})", 6),
    (f"@map_accumr(fn (%a: int32, %x: int32) {{ (%a + %x, %a) }}, 0, {L123})", (6, [5, 3, 0])),
    (f"@map_accuml(fn (%a: int32, %x: int32) {{ (%a + %x, %a) }}, 0, {L123})", (6, [3, 1, 0])),
    (
        "@unfoldr(fn (%n: int32) { if (%n == 0) { None } else { Some((%n - 1, %n)) } }, 4)",
        [4, 3, 2, 1],
    ),
    (
        "@unfoldl(fn (%n: int32) { if (%n == 0) { None } else { Some((%n - 1, %n)) } }, 4)",
        [1, 2, 3, 4],
    ),
    ("@size(Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Cons(Rose(4, Nil), Nil)), Nil))))", 4),
    (
        "@tmap(fn (%x: int32) { %x + 1 }, Rose(1, Cons(Rose(2, Nil), Nil)))",
        ("Rose", 2, [("Rose", 3, [])]),
    ),
    ("@compose(fn (%x: int32) { %x * 2 }, fn (%x: int32) { %x + 1 })(5)", 12),
    ("@flip(fn (%a: int32, %b: int32) { %a - %b })(1, 10)", 9),
    ("@iterate(fn (%x: int32) { %x * 2 }, 5)(1)", 32),
    ("@iterate(fn (%x: int32) { %x * 2 }, 0)(7)", 7),
    ("@id(3)", 3),
    ("match (2) { %x => %x + 1 }", 3),
    ("match ((1, (2, 3))) { (%a, (_, %b)) => %a + %b }", 4),
    (f"match ({L123}) {{ _ => 7, Nil => 8 }}", 7),
    (f"match ({L123}) {{ Cons(%a, Cons(%b, %r)) => (%b, %r), _ => (0, Nil) }}", (2, [3])),
    (f"match (@tl({L123})) {{ Cons(_, Cons(_, Cons(_, _))) => 3, Cons(_, Cons(_, Nil)) => 2,"
     " Cons(_, Nil) => 1, Nil => 0 }", 2),
    ("match (Some(Some(4))) { Some(None) => 1, Some(Some(%x)) => %x, None => 2 }", 4),
    ("match? (Cons(1, Nil)) { Cons(%x, Nil) => %x }", 1),
    ("let %x = 1; match (Cons(2, Nil)) { Cons(%x, _) => %x, Nil => %x }", 2),
    ("let %f = match (Some(3)) { Some(%n) => fn (%x: int32) { %x + %n },"
     " None => fn (%x: int32) { %x } }; %f(10)", 13),
    ("ref_read(ref(5))", 5),
    ("let %r = ref(1); ref_write(%r, 2); ref_read(%r)", 2),
    ("let %r = ref(1); let %a = ref_read(%r); ref_write(%r, 2); (%a, ref_read(%r))", (1, 2)),
    ("let %r = ref(1); let %s = %r; ref_write(%s, 4); ref_read(%r)", 4),
    ("let %r = ref(1); let %s = ref(%r); ref_write(ref_read(%s), 5); ref_read(%r)", 5),
    ("let %r = ref(0); let %f = fn () { ref_write(%r, ref_read(%r) + 1) };"
     " %f(); %f(); %f(); ref_read(%r)", 3),
    ("let %r = ref(Nil); ref_write(%r, Cons(1, ref_read(%r)));"
     " ref_write(%r, Cons(2, ref_read(%r))); ref_read(%r)", [2, 1]),
    ("ref_write(ref(1), 2)", ()),
    ("ref(3)", {"ref": 3}),
    ("let %r = ref(1); if (True) { ref_read(%r) } else { ref_write(%r, 2); 0 }", 1),
]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_value(text: str, expected: Any) -> None:
    assert value_of(text) == expected


@pytest.mark.wide
@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_value_after_text(text: str, expected: Any) -> None:
    mod = relay.fromtext(program(f"def @main() {{ {text} }}").astext())
    assert plain(relay.create_executor(mod=mod).evaluate()()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zero", 0),
        ("@nat_double(succ(succ(succ(zero))))", 6),
        ("@nat_add(succ(succ(zero)), succ(zero))", 3),
        ("@nat_iterate(@nat_double, succ(succ(zero)))(succ(zero))", 4),
    ],
)
def test_naturals(text: str, expected: int) -> None:
    found = value_of(text, "nat.rly")
    count = 0
    while len(found) > 1:
        count, found = count + 1, found[1]
    assert (count, found) == (expected, ("zero",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Cons(5, Cons(6, Nil)), succ(zero)", 6), ("Cons(5, Cons(6, Nil)), zero", 5)],
)
def test_natural_positions(text: str, expected: int) -> None:
    assert value_of(f"@nat_nth({text})", "nat.rly") == expected


@pytest.mark.wide
@pytest.mark.parametrize(
    ("left", "right", "product", "total"),
    [
        ("Raw(3)", "Raw(4)", ("Raw", 12), ("Raw", 7)),
        ("Raw(3)", "One(fn () { 1 })", ("Raw", 3), ("Raw", 4)),
        ("One(fn () { 1 })", "Raw(3)", ("Raw", 3), ("Raw", 4)),
        ("Raw(3)", "Zero(fn () { 0 })", None, ("Raw", 3)),
        ("Zero(fn () { 0 })", "Raw(3)", None, ("Raw", 3)),
    ],
)
def test_gradient_cells(left: str, right: str, product: Any, total: Any) -> None:
    times = "fn (%a: int32, %b: int32) { %a * %b }"
    plus = "fn (%a: int32, %b: int32) { %a + %b }"
    value = f"@FromGradCell(@MultiplyGradCell({times}, {left}, {right}))"
    assert value_of(value, "gradient.rly") == (product[1] if product else 0)
    assert value_of(f"@AddGradCell({plus}, {left}, {right})", "gradient.rly") == total


def test_no_clause_matches() -> None:
    for text in ("@hd(Nil)", "@tl(Nil)", "match? (Some(1)) { None => 1 }"):
        with pytest.raises(RelayError, match="no clause matches"):
            value_of(text)


@pytest.mark.slow
def test_long_lists_need_no_stack() -> None:
    mod = program(
        "def @count(%n: int32, %l: List[int32]) -> List[int32] {"
        " if (%n == 0) { %l } else { @count(%n - 1, Cons(%n, %l)) } }\n"
        "def @main(%n: int32) { let %l = @count(%n, Nil);"
        " (@length(%l), @nth(%l, %n - 1), @sum(@rev(%l)), @hd(@rev(@concat(%l, %l)))) }"
    )
    count = 20_000
    found = plain(relay.create_executor(mod=mod).evaluate()(np.int32(count)))
    assert found == (count, count, count * (count + 1) // 2, count)


@pytest.mark.slow
def test_a_list_of_many_elements_is_handed_out() -> None:
    mod = program("def @main() { Nil }")
    _, cons, nil = mod.get_type("List")
    value: relay.Expr = nil()
    for number in range(100_000):
        value = cons(relay.const(number), value)
    found = relay.create_executor(mod=mod).evaluate(value)
    assert plain(found) == list(range(100_000))[::-1]


def test_values_come_in_from_outside() -> None:
    mod = program("def @main(%l: List[float32], %r: ref(float32)) { ref_write(%r, @hd(%l)); %l }")
    _, cons, nil = mod.get_type("List")
    empty = ConstructorValue(nil.tag, [], nil)
    given = ConstructorValue(cons.tag, [np.float32(2), empty], cons)
    place = RefValue(np.float32(0))
    executor = relay.create_executor(mod=mod)
    assert plain(executor.evaluate()(given, place)) == [2.0]
    assert place.value == 2
    identity = executor.evaluate(mod.get_global_var("id"))
    assert plain(identity(given)) == [2.0]
    assert plain(identity(np.float32(3))) == 3.0
    assert plain(identity((np.float32(3), given))) == (3.0, [2.0])
    none = mod.get_constructor("Option", "None")
    with pytest.raises(RelayError, match="expected List"):
        executor.evaluate()(ConstructorValue(none.tag, [], none), place)
    with pytest.raises(RelayError, match="expected 2 fields"):
        executor.evaluate(cons(relay.const(1)))


def test_a_reference_may_hold_itself() -> None:
    mod = relay.fromtext(
        HEADER + "type Loop { End, Again(ref(Loop)), }\n"
        "def @main() { let %r = ref(End); ref_write(%r, Again(%r)); ref_read(%r) }"
    )
    found = relay.create_executor(mod=mod).evaluate()()
    assert found.constructor.name_hint == "Again"
    inner = found.fields[0].value
    assert inner.constructor.name_hint == "Again"
    assert inner.fields[0].value is inner


def test_functions_that_are_computed_can_be_called() -> None:
    mod = program("def @main(%x: int32) { %x }")
    make = relay.Call(
        mod.get_global_var("compose"), [mod.get_global_var("main"), mod.get_global_var("main")]
    )
    call = relay.create_executor(mod=mod).evaluate(make)
    assert call(np.int32(4)).numpy() == 4
