"""Algebraic data, matches and references in files of Relay, and what other formats make of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support.tvm_layout import JsonGraph

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.types import SequenceType
from serde.relay.ir.visit import post_order
from serde.relay.run.values import ConstructorValue
from serde.relay.transform import ListsToSequences

HEADER = '#[version = "0.0.5"]\n'
T = "Tensor[(2), float32]"
L = f"List[{T}]"
X = np.array([1.0, 2.0], "float32")


@cache
def prelude() -> relay.IRModule:
    mod = relay.IRModule()
    mod.import_from_std("prelude.rly")
    return mod


def program(text: str) -> relay.IRModule:
    mod = prelude()
    return relay.fromtext(HEADER + text, "program", mod)


def plain(value: Any) -> Any:
    if isinstance(value, ConstructorValue):
        items = []
        while value.fields:
            items.append(plain(value.fields[0]))
            value = value.fields[1]
        return items
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return np.asarray(value).tolist()


def run(mod: relay.IRModule, *inputs: Any) -> Any:
    return plain(relay.create_executor(mod=mod).evaluate()(*inputs))


GROW = (
    f"def @loop(%i: int32, %xs: {L}, %x: {T}) -> {L} {{ if (%i < 3) {{"
    ' @loop(%i + 1, @concat(%xs, Cons(%x * cast(%i, dtype="float32"), Nil)), %x)'
    " } else { %xs } }\n"
)
PUSH = (
    f"def @push(%i: int32, %xs: {L}, %x: {T}) -> {L} {{ if (%i < 4) {{"
    " @push(%i + 1, Cons(%x, %xs), exp(%x)) } else { %xs } }\n"
)
SUM = (
    f"def @sum_of(%xs: {L}, %a: {T}) -> {T} {{ match (%xs) {{"
    " Cons(%x, %r) => @sum_of(%r, %a + %x), Nil => %a } }\n"
)
MAIN = f"def @main(%x: {T}, %c: bool) "
TWO = "Cons(%x, Cons(exp(%x), Nil))"
CHOICE = f"let %l = if (%c) {{ {TWO} }} else {{ Nil }}; "
E = np.exp(X)
CASES = {
    "list": (f"{MAIN}{{ {TWO} }}", lambda c: [X, E]),
    "head": (f"{MAIN}{{ @hd({TWO}) }}", lambda c: X),
    "tail": (f"{MAIN}{{ @tl({TWO}) }}", lambda c: [E]),
    "second": (f"{MAIN}{{ @hd(@tl({TWO})) }}", lambda c: E),
    "nth": (f"{MAIN}{{ @nth({TWO}, 1) }}", lambda c: E),
    "length": (f"{MAIN}{{ {CHOICE} @length(%l) }}", lambda c: 2 if c else 0),
    "update": (f"{MAIN}{{ @update({TWO}, 0, negative(%x)) }}", lambda c: [-X, E]),
    "concat end": (f"{MAIN}{{ {CHOICE} @concat(%l, Cons(%x, Nil)) }}",
                   lambda c: [X, E, X] if c else [X]),
    "concat start": (f"{MAIN}{{ {CHOICE} @concat(Cons(negative(%x), Cons(%x, Nil)), %l) }}",
                     lambda c: [-X, X, X, E] if c else [-X, X]),
    "concat empty": (f"{MAIN}{{ {CHOICE} @concat(%l, Nil) }}", lambda c: [X, E] if c else []),
    "match exact": (f"{MAIN}{{ {CHOICE} match (%l) {{ Cons(%a, Cons(%b, Nil)) => %a + %b,"
                    " Cons(%a, _) => %a, Nil => %x * 3f } }", lambda c: X + E if c else X * 3),
    "match rest": (f"{MAIN}{{ {CHOICE} match (%l) {{ Cons(_, %r) => %r, Nil => Cons(%x, Nil) }} }}",
                   lambda c: [E] if c else [X]),
    "match wildcard": (f"{MAIN}{{ {CHOICE} match (%l) {{ Nil => negative(%x), %o => @hd(%o) }} }}",
                       lambda c: X if c else -X),
    "match partial": (f"{MAIN}{{ match? ({TWO}) {{ Cons(_, Cons(%b, _)) => %b }} }}", lambda c: E),
    "match two": (f"{MAIN}{{ {CHOICE} match ((%l, {TWO})) {{ (Nil, Cons(%a, _)) => %a,"
                  " (_, _) => %x * 5f } }", lambda c: X * 5 if c else X),
    "grow": (f"{GROW}{MAIN}{{ @nth(@loop(0, Nil, %x), 2) }}", lambda c: X * 2),
    "grow all": (f"{GROW}{MAIN}{{ @loop(0, {TWO}, %x) }}", lambda c: [X, E, X * 0, X, X * 2]),
    "push": (f"{PUSH}{MAIN}{{ @length(@push(0, Nil, %x)) }}", lambda c: 4),
    "fold": (f"{SUM}{MAIN}{{ {CHOICE} @sum_of(%l, %x) }}", lambda c: X + X + E if c else X),
    "pair": (f"{MAIN}{{ ({TWO}, @length({TWO})) }}", lambda c: [[X, E], 2]),
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_lists_become_sequences(case: str, flag: bool) -> None:
    text, expected = CASES[case]
    mod = program(text)
    wanted = plain(expected(flag))
    np.testing.assert_allclose(flat(run(mod, X, np.array(flag))), flat(wanted), rtol=1e-6)
    converted = ListsToSequences()(mod)
    relay.verify(converted)
    assert not converted.type_definitions
    for function in converted.functions.values():
        assert not any(isinstance(node, relay.Match) for node in post_order(function))
    found = run(converted, X, np.array(flag))
    assert shape_of(found) == shape_of(wanted)
    np.testing.assert_allclose(flat(found), flat(wanted), rtol=1e-6)


def flat(value: Any) -> list[float]:
    return [n for item in value for n in flat(item)] if isinstance(value, list) else [value]


def shape_of(value: Any) -> Any:
    return [shape_of(item) for item in value] if isinstance(value, list) else None


@pytest.mark.thin(2)
@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("case", sorted(CASES))
def test_onnx_has_the_sequences(case: str, flag: bool) -> None:
    text, expected = CASES[case]
    proto = relay.to_onnx(program(text), {}, "net", opset_version=17)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    given = {"x": X, "c": np.array(flag)}
    known = {item.name for item in session.get_inputs()}
    found = session.run(None, {name: value for name, value in given.items() if name in known})
    wanted = plain(expected(flag))
    result = plain(found[0] if len(found) == 1 else found)
    assert shape_of(result) == shape_of(wanted)
    np.testing.assert_allclose(flat(result), flat(wanted), rtol=1e-5)


UNDECIDED = {
    "map": f"{MAIN}{{ @map(fn (%y: {T}) -> {T} {{ exp(%y) }}, {TWO}) }}",
    "pairs": f"{MAIN}{{ Cons((%x, %c), Nil) }}",
    "nested": f"{MAIN}{{ Cons(Cons(%x, Nil), Nil) }}",
    "option": f"{MAIN}{{ Some({TWO}) }}",
    "concat": f"{MAIN}{{ {CHOICE} @concat(%l, %l) }}",
    "reference": f"{MAIN}{{ ref_read(ref({TWO})) }}",
    "function": f"{MAIN}{{ let %f = @hd; %f({TWO}) }}",
}


@pytest.mark.wide
@pytest.mark.parametrize("case", UNDECIDED)
def test_what_sequences_cannot_do_stays(case: str) -> None:
    mod = program(UNDECIDED[case])
    assert ListsToSequences().run(mod) == (mod, False)
    relay.verify(mod)


def test_another_type_called_list_stays() -> None:
    mod = relay.fromtext(
        f"{HEADER}type List[A] {{ Nil, Cons(A, List[A]), }}\n{MAIN}{{ Cons(%x, Nil) }}"
    )
    assert ListsToSequences().run(mod) == (mod, False)
    other = program(f"{MAIN}{{ %x }}")
    assert ListsToSequences().run(relay.IRModule(other.functions))[1] is False


def test_another_function_called_length_is_called() -> None:
    text = (
        f"{HEADER}type List[A] {{ Cons(A, List[A]), Nil, }}\n"
        f"def @length(%l: {L}) -> int32 {{ match (%l) {{ Cons(_, _) => 7, Nil => 8 }} }}\n"
        f"{MAIN}{{ @length({TWO}) }}"
    )
    converted = ListsToSequences()(relay.fromtext(text))
    assert run(converted, X, np.array(True)) == 7
    assert isinstance(converted["length"].params[0].type, SequenceType)


@pytest.mark.parametrize("target", ["onnx", "mxnet", "nnef"])
@pytest.mark.parametrize(
    ("text", "what", "reason"),
    [
        (f"{MAIN}{{ Some(%x) }}", "Constructor", "values of algebraic data types"),
        (f"{MAIN}{{ match (Some(%x)) {{ Some(%y) => %y, None => %x }} }}", "Match", "a match has"),
        (f"{MAIN}{{ ref_read(ref(%x)) }}", "RefRead", "references have no counterpart"),
        (f"{MAIN}{{ ref_read(ref(%x)) }}", "RefCreate", "references have no counterpart"),
        (
            f"{MAIN}{{ let %r = ref(%x); let %u = ref_write(%r, %x + %x); ref_read(%r) }}",
            "RefWrite",
            "references have no counterpart",
        ),
        (UNDECIDED["map"], "Constructor", "values of algebraic data types"),
    ],
)
def test_formats_refuse_by_name(target: str, text: str, what: str, reason: str) -> None:
    model = serde.to_relay(program(text), format="relay")
    with pytest.raises(UnsupportedModelError) as raised:
        serde.from_relay(model, format=target)
    lines = str(raised.value).splitlines()
    assert any(what in line and reason in line for line in lines[1:])


@pytest.mark.wide
@pytest.mark.parametrize("case", [*CASES, *UNDECIDED])
@pytest.mark.parametrize("strict", [False, True])
def test_relay_keeps_data_types(tmp_path: Path, case: str, strict: bool) -> None:
    text = CASES[case][0] if case in CASES else UNDECIDED[case]
    source = tmp_path / "a.relay"
    source.write_text(program(text).astext())
    serde.convert(source, tmp_path / "b.relay", strict=strict)
    mod = relay.fromtext((tmp_path / "b.relay").read_text())
    relay.verify(mod)
    if case not in ("option",):
        first = relay.create_executor(mod=relay.fromtext(source.read_text())).evaluate()
        again = relay.create_executor(mod=mod).evaluate()
        assert plain(first(X, np.array(True))) == plain(again(X, np.array(True)))


# TVM's JSON.


def list_graph() -> dict[str, Any]:
    """A module that counts the elements of a list of two, as TVM saves it."""
    graph = JsonGraph()
    header = graph.object("GlobalTypeVar", name_hint=graph.text("List"), kind=5, span=0)
    a = graph.object("TypeVar", name_hint=graph.text("A"), kind=0, span=0)

    def list_of(type_: int) -> int:
        return graph.object("TypeCall", func=header, args=graph.array(type_), span=0)

    def constructor(name: str, *inputs: int) -> int:
        return graph.expr(
            "relay.Constructor", name_hint=graph.text(name), inputs=graph.array(*inputs),
            belong_to=header, tag=1,
        )  # fmt: skip

    cons, nil = constructor("Cons", a, list_of(a)), constructor("Nil")
    data = graph.object(
        "relay.TypeData", header=header, type_vars=graph.array(a),
        constructors=graph.array(cons, nil), span=0,
    )  # fmt: skip

    def pattern(what: int, *parts: int) -> int:
        return graph.object(
            "relay.PatternConstructor", constructor=what, patterns=graph.array(*parts), span=0
        )

    b = graph.object("TypeVar", name_hint=graph.text("B"), kind=0, span=0)
    items = graph.var("items", list_of(b))
    others = graph.var("others", graph.object("IncompleteType", kind=0, span=0))
    length = graph.expr("GlobalVar", name_hint=graph.text("length"))
    one, zero = (graph.constant(np.array(value, "int32")) for value in (1, 0))
    count = graph.call(graph.op("add"), one, graph.call(length, others))
    bound = graph.object("relay.PatternVar", var=others, span=0)
    wild = graph.object("relay.PatternWildcard", span=0)
    clauses = [
        graph.object("relay.Clause", lhs=pattern(cons, wild, bound), rhs=count, span=0),
        graph.object("relay.Clause", lhs=pattern(nil), rhs=zero, span=0),
    ]
    body = graph.expr("relay.Match", data=items, clauses=graph.array(*clauses), complete=1)
    function = graph.expr(
        "relay.Function", params=graph.array(items), body=body, attrs=0,
        ret_type=graph.tensor_type(dtype="int32"), type_params=graph.array(b),
    )  # fmt: skip
    x = graph.var("x", graph.tensor_type(2))
    whole = graph.call(cons, x, graph.call(cons, x, graph.call(nil)))
    held = graph.expr("relay.RefCreate", value=graph.call(length, whole))
    main = graph.function([x], graph.expr("relay.RefRead", ref=held))
    name = graph.expr("GlobalVar", name_hint=graph.text("main"))
    functions = graph.add("Map", data=[name, main, length, function])
    types = graph.add("Map", data=[header, data])
    root = graph.object("IRModule", functions=functions, type_definitions=types, attrs=0)
    return graph.whole(root)


def test_json_of_a_module_with_data_types() -> None:
    found = serde.to_relay(json.dumps(list_graph()), format="relay")
    expected = relay.fromtext(
        HEADER + "type List[A] { Cons(A, List[A]), Nil, }\n"
        "def @length[A](%items: List[A]) -> int32 {"
        " match (%items) { Cons(_, %others) => 1 + @length(%others), Nil => 0 } }\n"
        f"def @main(%x: {T}) {{ ref_read(ref(@length(Cons(%x, Cons(%x, Nil))))) }}"
    )
    relay.assert_structural_equal(found.mod["length"], expected["length"])
    assert found.mod.type_definitions == expected.type_definitions
    assert repr(found.mod["main"].body.type) == "int32"
    assert run(found.mod, X) == 2


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("relay.Clause", {"lhs": "rhs"}, "lhs: expected a Pattern"),
        ("relay.Match", {"clauses": "data"}, "relay.Match: clauses: expected a "),
        ("relay.PatternVar", {"var": "0"}, "relay.PatternVar: var: expected a Var"),
        ("relay.PatternConstructor", {"constructor": "0"}, "constructor: expected a Constructor"),
        ("relay.Constructor", {"belong_to": "0"}, "belong_to: expected a GlobalTypeVar"),
        ("relay.TypeData", {"header": "0"}, "header: expected a GlobalTypeVar"),
        ("relay.TypeData", {"constructors": "type_vars"}, "constructors: expected a "),
        ("TypeVar", {"kind": "x"}, "expected an integer"),
        ("TypeVar", {"kind": "3"}, "expected a kind of type"),
        ("TypeCall", {"func": "0"}, "expected a type"),
    ],
)
def test_malformed_json_of_data_types(key: str, change: dict[str, str], message: str) -> None:
    graph = list_graph()
    for node in graph["nodes"]:
        if node["type_key"] == key:
            for name, value in change.items():
                node["attrs"][name] = node["attrs"].get(value, value)
    with pytest.raises(serde.FormatError, match=message):
        serde.to_relay(json.dumps(graph), format="relay")
