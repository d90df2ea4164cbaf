"""Texts that do not parse: where they fail, and that they always fail in an orderly way."""

from __future__ import annotations

import contextlib
import json
import time
import tracemalloc

import numpy as np
import pytest
from support.programs import call_texts, programs

import serde.relay as relay
from serde.errors import ParseError, RelayError, SerdeError, TypeInferenceError
from serde.relay.text.parser import parse_expr

HEADER = '#[version = "0.0.5"]\n'
FN = "fn (%x: Tensor[(2), float32]) "


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected #"),
        ("def @main() { 1 }", "1:1", "expected #"),
        ('#[version = "0.0.4"]\n', "1:1", "expected text of version 0.0.5, found 0.0.4"),
        (f"{HEADER}def main() {{ 1 }}", "2:5", "expected a function's name"),
        (f"{HEADER}def @main() {{ 1 }}\ndef @main() {{ 2 }}", "3:5", "@main is defined twice"),
        (f"{HEADER}def @main() {{ @other() }}", "2:15", "@other is not defined"),
        (f"{HEADER}type A {{ Nil, }}\ntype A {{ }}", "3:6", "the type A is defined twice"),
        (f"{HEADER}type A {{ One }}\ntype B {{ One }}", "3:10", "two constructors are called One"),
        (f"{HEADER}type A[T, T] {{ One(T) }}", "2:11", "two type parameters are called T"),
        (f"{HEADER}type A {{ One(B) }}", "2:14", "the type B is not defined"),
        (f"{HEADER}type A {{ One(int32) Two }}", "2:21", "expected ,"),
        (f"{HEADER}type %x {{ }}", "2:6", "expected the name of a type"),
        (f"{HEADER}extern type T {{ One }}", "2:13", "an extern type has no constructors"),
        (f"{HEADER}extern def @main() {{ 1 }}", "2:8", "expected type"),
        (f"{HEADER}def @main[A, A](%x: A) {{ %x }}", "2:14", "two type parameters are called A"),
        (f"{HEADER}def @main[%A](%x: A) {{ %x }}", "2:11", "expected a type parameter"),
        (f"{HEADER}def @main(%x: A) {{ %x }}", "2:15", "the type A is not defined"),
        (f"{HEADER}def @main(%x: A[int32]) {{ %x }}", "2:15", "the type A is not defined"),
        (f"{HEADER}def @f[A](%x: A) {{ %x }}\ndef @g(%x: A) {{ %x }}", "3:12", "type A is not"),
        (f"{HEADER}def @main() {{ 1 }} }}", "2:19", "expected def"),
        (f"{HEADER}def @main() {{ 1 ", "2:17", "expected }, found the end of the text"),
    ],
)
def test_module_errors(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as raised:
        relay.fromtext(text, name="a.relay")
    assert str(raised.value).startswith(f"a.relay:{place}: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("nn.nothing(%x)", "no Relay operator is called nn.nothing"),
        ("exp", "the operator exp is not called"),
        ("nothing", "no Relay operator is called nothing"),
        ("exp(%y)", "%y is not defined here"),
        ("exp(%0)", "%0 is not defined here"),
        ("%0 = exp(%0); %0", "%0 is not defined here"),
        ("exp(%x, %x)", "exp: expected 1 operands, found 2"),
        ("add(%x)", "add: expected 2 operands, found 1"),
        ("sum(%x, axes=[1])", "sum: unknown attribute axes"),
        ("sum(%x, axis=[1f])", "sum: attribute axis: expected"),
        ("sum(%x, axis=[0], axis=[0])", "the attribute axis is given twice"),
        ("sum(%x, axis=)", "expected an attribute's value"),
        ("%x(%x, axis=1)", "takes no attributes"),
        ("(%x, %x).2", "field 2 of a tuple with 2 fields"),
        ("(%x, %x).0.1", "expected the number of a field"),
        ("(%x, %x).x", "expected the number of a field"),
        ("1.5", "a float needs a suffix"),
        ("1 + 2 +", "expected an expression"),
        ("300i8", "there is no literal of int8"),
        ("70000i16", "does not fit int16"),
        ("9223372036854775808", "does not fit int64"),
        ("1f128", "there is no float128"),
        ("1e39f", "does not fit float32"),
        ("70000f16", "does not fit float16"),
        ("1e400f64", "beyond the range"),
        ("1x", "1x is not a number"),
        ("-%x", "expected a number"),
        ("match (%x) { Cons(%y) => %x }", "no constructor is called Cons"),
        ("match? (%x) { _ -> %x }", "expected =, found ->"),
        ("match (%x) { _ => %x _ => %x }", "expected ,"),
        ("match (%x) { (%y => %x }", "expected ,"),
        ("match (%x) { 1 => %x }", "expected (, found 1"),
        ("match %x + 1 { _ => %x }", "expected {, found +"),
        ("ref(%x, %x)", "expected ), found ,"),
        ("ref_read()", "expected an expression, found )"),
        ("ref_write(%x)", "expected ,, found )"),
        ("ref", "expected (, found }"),
        ("meta[relay.Constant][0]", "the metadata section has no meta[relay.Constant][0]"),
        ("let %y = %x", "expected ;"),
        ("let y = %x; %x", "expected a variable such as %x"),
        ("let %y: List[int32] = %x; %y", "the type List is not defined"),
        ("let %y: Tensor[(-1), int32] = %x; %y", "a dimension cannot be -1"),
        ("let %y: Tensor[(1.5f), int32] = %x; %y", "is no dimension"),
        ("let %y: Tensor[(floordiv(N, 0)), int32] = %x; %y", "divided by zero"),
        ("let %y: Tensor[(2), int3] = %x; %y", "int3 is no type"),
        ("let %y: Tensor[(2), object] = %x; %y", "object is no type"),
        ("let %y: ref int32 = %x; %y", "expected =, found int32"),
        ("if (True) { 1 }", "expected else"),
        ('"text"', "expected an expression"),
        ("/* open", "a comment does not end"),
        ('sum(%x, axis="open)', "a string does not end"),
        ("$", "unexpected character '$'"),
        ("", "expected an expression, found }"),
        ("cumsum(%x, meta[relay.attrs.TriluAttrs][0])", "the metadata section has no"),
    ],
)
def test_expression_errors(body: str, message: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_expr(f"{FN}{{ {body} }}")
    assert message in str(raised.value)
    assert raised.value.line == 1


def test_type_errors_have_a_place() -> None:
    text = f"{HEADER}def @main(%x: Tensor[(2), float32]) {{\n  %0 = exp(%x);\n  add(%0, 1)\n}}\n"
    with pytest.raises(TypeInferenceError, match=r"^b\.relay:4:3: add: "):
        relay.fromtext(text, name="b.relay")


def test_scopes_close() -> None:
    with pytest.raises(ParseError, match="%y is not defined here"):
        parse_expr("fn (%x: bool) { if (%x) { let %y = 1; %y } else { %y } }")


# Hostile texts: each must be refused, and soon.

DEEP = 1_000_000


@pytest.mark.parametrize(
    "body",
    [
        "(" * DEEP,
        "{" * DEEP,
        "exp(" * DEEP,
        "if (" * DEEP,
        "fn () {" * DEEP,
        "let %a = fn () {" * DEEP,
        "9" * DEEP,
        f"1e{'9' * 300}i64",
        f"exp(%x, a={'[' * DEEP}",
        f"exp(%x, a={'(' * DEEP}",
        f"exp(%x, a={'-' * (DEEP // 10)}",
        f"exp(%x, a={'floordiv(' * DEEP}",
        f"exp(%x, a={'N*' * DEEP}N)",
        f"exp(%x, a={'+'.join(f'n{i}' for i in range(20_000))})",
        f"let %y: {'(' * DEEP}",
        f"let %y: {'fn () -> ' * DEEP}",
        f"let %y: Tensor[({'1, ' * DEEP}), int32] = %x; %y",
        f"let %y: Tensor[({'floordiv(' * DEEP}",
        "/*" * DEEP,
        '"' + "\\" * DEEP,
        f"meta[relay.Constant][{'9' * DEEP}]",
        "%x." + "9" * DEEP,
    ],
    ids=range(22),
)
def test_hostile_expressions(body: str) -> None:
    start = time.process_time()
    with pytest.raises(RelayError):
        parse_expr(f"{FN}{{ {body} }}")
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("split(%x, indices_or_sections=2147483648, axis=0)", "more than the 50000 of a tuple"),
        ("expand_dims(%x, axis=0, num_newaxis=1000000000)", "num_newaxis"),
        ('arange(0f, nanf, 1f, dtype="float32")', "from 0.0 to nan"),
        ('cast(%x, dtype="(i4,i4")', "attribute dtype"),
        ('cast(%x, dtype="V99999999")', "attribute dtype"),
    ],
)
def test_counts_that_are_none(body: str, message: str) -> None:
    with pytest.raises(RelayError, match=message):
        relay.fromtext(f"{HEADER}def @main(%x: Tensor[(2147483648), float32]) {{ {body} }}")


@pytest.mark.wide
@pytest.mark.parametrize("end", ["//\n" * 20_000, '"' + "\\\\" * 20_000, "1e" * 20_000])
def test_long_tokens_take_no_place_a_character(end: str) -> None:
    text = f"{HEADER}def @main() {{ 1 }}\n{end}"
    tracemalloc.start()
    try:
        with contextlib.suppress(ParseError):
            relay.fromtext(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(text)


@pytest.mark.parametrize(
    ("number", "value"), [("1e-05f", 1e-5), ("1.5E+3f", 1500.0), ("2e3f", 2000.0), ("7", 7)]
)
def test_numbers_are_one_token(number: str, value: float) -> None:
    found = parse_expr(f"fn () {{ {number} }}").body
    assert isinstance(found, relay.Constant)
    assert float(found.data) == pytest.approx(value)


def test_endless_recursion_is_not_run() -> None:
    text = f"{HEADER}def @main(%x: Tensor[(2), float32]) {{\n  @main(%x)\n}}\n"
    with pytest.raises(RelayError):
        relay.fromtext(text)


def module_with(metadata: str) -> str:
    return f"{HEADER}def @main() {{\n  meta[relay.Constant][0]\n}}\n\n#[metadata]\n{metadata}"


def graph(*nodes: object, arrays: tuple[str, ...] = ()) -> str:
    first = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
        {"type_key": "Array", "data": [3]},
    ]
    return json.dumps({"root": 1, "nodes": [*first, *nodes], "b64ndarrays": list(arrays)})


def constant(**fields: str) -> dict[str, object]:
    return {"type_key": "relay.Constant", "attrs": fields}


GOOD = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAAEA="
"""Two float32 numbers, 1 and 2, as TVM wrote them."""


def test_metadata_is_read() -> None:
    text = module_with(graph(constant(data="0"), arrays=(GOOD,)))
    np.testing.assert_array_equal(relay.fromtext(text)["main"].body.data, [1, 2])


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * DEEP, "nested too deeply"),
        ("[]", "have no nodes"),
        ('{"root": 7, "nodes": []}', "no node 7"),
        ('{"root": 0, "nodes": [5]}', "no object"),
        (graph(), "no node 3"),
        (graph(constant()), "expected an integer"),
        (graph(constant(data="0")), "have no array 0"),
        (graph(constant(data="-1"), arrays=(GOOD,)), "have no array -1"),
        (graph(constant(data="0"), arrays=("!!",)), ""),
        (graph(constant(data="0"), arrays=(GOOD[:-8],)), "takes 8 bytes"),
        (graph(constant(data="0"), arrays=(GOOD[:44],)), "does not fit"),
        (graph(constant(data="0"), arrays=("AAAA",)), "has no header"),
        (graph(constant(data="0"), arrays=(f"AAAA{GOOD[4:]}",)), "expected an array container"),
        (graph({"type_key": "tir.Var", "attrs": {}}), "tir.Var, which has no counterpart"),
        (graph({"type_key": "IntImm", "attrs": {"value": "9" * 99}}), "expected an integer"),
        (graph({"type_key": "Array", "data": [3]}), "nested too deeply"),
        (graph({"type_key": "Array", "data": [99]}), "no node 99"),
        (
            graph(*[{"type_key": "Array", "data": [i, i]} for i in range(4, 33)], {"type_key": ""}),
            "unfolds to more than",
        ),
        (graph({"type_key": "relay.attrs.Conv9DAttrs", "attrs": {}}), "expected an expression"),
    ],
)
def test_malformed_metadata(metadata: str, message: str) -> None:
    with pytest.raises(ParseError) as raised:
        relay.fromtext(module_with(metadata))
    assert message in str(raised.value)


SEEDS = [
    programs()["let_recursion"]["typed"],
    programs()["meta_two"]["typed"],
    programs()["composite"]["text"],
    programs()["global_call"]["text"],
    call_texts()["cumsum"]["text"],
    call_texts()["reshape_4"]["typed"],
    '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 3), float32], serde.names="x=a.b", '
    'serde.types="x=Tensor[(N, 3), float32]") {\n  exp(%x)\n}\n',
]


@pytest.mark.wide
@pytest.mark.parametrize("text", SEEDS, ids=range(len(SEEDS)))
def test_truncated_texts(text: str) -> None:
    assert _is_read(text)
    ends = range(0, len(text.rstrip()), max(1, len(text) // 150))
    read = [text[:end].rstrip() for end in ends if _is_read(text[:end])]
    # What is read ends behind the header, or a function.
    assert all(each.endswith(('"0.0.5"]', "}")) for each in read), read


@pytest.mark.parametrize("text", SEEDS, ids=range(len(SEEDS)))
def test_edited_texts(text: str) -> None:
    generator = np.random.default_rng(7)
    pieces = [*'()[]{}%@;:,.=-+*/<>"\\0129aefN?\n_#', "let ", "fn ", "if (", "meta[", "%0", "1f"]
    read = 0
    for _ in range(300):
        edited = text
        for _ in range(generator.integers(1, 4)):
            at, length = generator.integers(0, len(edited)), generator.integers(0, 4)
            piece = pieces[generator.integers(0, len(pieces))]
            edited = edited[:at] + piece + edited[at + length :]
        read += _is_read(edited)
    assert 0 < read < 300


def _is_read(text: str) -> bool:
    """Whether a text is read, and then again as it is printed; all else is one refusal."""
    try:
        found = relay.fromtext(text)
    except SerdeError:
        return False
    relay.assert_structural_equal(relay.fromtext(found.astext()), found)
    return True


def test_tuples_that_double_on_every_line_are_refused_at_once() -> None:
    lines = [f"  %{i} = (%{i - 1}, %{i - 1});" for i in range(1, 60)]
    body = "\n".join(["  %0 = (%x, %x);", *lines, "  %59"])
    start = time.perf_counter()
    with pytest.raises(TypeInferenceError, match="unfolds to more than 50000 tensors"):
        relay.fromtext(f"{HEADER}def @main(%x: float32) {{\n{body}\n}}")
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(("levels", "message"), [(100, "expected"), (102, "nested too deeply")])
def test_levels_of_an_attribute(levels: int, message: str) -> None:
    value = "[" * levels + "1" + "]" * levels
    head = '#[version = "0.0.5"]\n'
    text = f"{head}def @main(%x: Tensor[(2), float32]) {{ squeeze(%x, axis={value}) }}"
    with pytest.raises(RelayError, match=message):
        relay.fromtext(text)
