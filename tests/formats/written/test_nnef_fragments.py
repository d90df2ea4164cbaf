"""Fragments of a model's own and expressions, as Khronos' extensions of NNEF have them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any as AnyValue

import numpy as np
import pytest
from support.nnef_files import EXTENSIONS, VERSION, WEIGHT, graph, write_folder
from support.tiers import first_of

import serde
import serde.relay as relay
from serde.core.limits import spending
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError, LimitError, OptionError, UnsupportedModelError
from serde.nnef.text.parser import parse

X = np.array([[-2, -1, 0], [0.5, 1, 2]], np.float32)
RELU = np.maximum(X, 0)


def extended(fragments: str, body: str, outputs: str = "y") -> str:
    """Return a text with fragments of its own."""
    return graph(body, outputs=outputs, head=f"{EXTENSIONS}{fragments}\n")


def invocations(fragments: str, body: str) -> list[tuple[str, Sequence[AnyValue]]]:
    """Return what is left of a text once its fragments are expanded."""
    model = parse(extended(fragments, body), None, "graph.nnef")
    return [
        (each.op, [getattr(operand, "name", operand) for operand in each.operands()])
        for each in model.operations[1:]
    ]


# Fragments | body of the graph | what it computes, spelled out.
VALUES = {
    "three deep": (
        """fragment a(x: tensor<scalar>) -> (y: tensor<scalar>) { y = x + 1.0; }
        fragment b(x: tensor<scalar>) -> (z: tensor<scalar>) { t = a(x); z = relu(t) + t; }
        fragment c(x: tensor<scalar>) -> (y: tensor<scalar>) { t = b(x); y = b(t) + relu(x); }""",
        "y = c(x);",
        lambda x: _b(_b(x)) + np.maximum(x, 0),
    ),
    "defaults": (
        """fragment f(x: tensor<scalar>, n: scalar = 2.0, m: scalar = 0.25)
        -> (y: tensor<scalar>) { y = x + (n - m); }""",
        "a = f(x); y = f(a, m = 1.5);",
        lambda x: x + 1.75 + 0.5,
    ),
    "several results": (
        """fragment f(x: tensor<scalar>) -> (a: tensor<scalar>, b: tensor<scalar>)
        { a = relu(x); b = a + x; }""",
        "p, q = f(x); y = p + q;",
        lambda x: 2 * np.maximum(x, 0) + x,
    ),
    "a list of results": (
        """fragment f(x: tensor<scalar>) -> (y: tensor<scalar>[]) { y = [x + 1.0, relu(x)]; }""",
        "[p, q] = f(x); y = p + q;",
        lambda x: x + 1 + np.maximum(x, 0),
    ),
    "a list with what was given": (
        """fragment f(x: tensor<scalar>) -> (y: tensor<scalar>[]) { y = [x, relu(x)]; }""",
        "[p, q] = f(x); y = q + p;",
        lambda x: x + np.maximum(x, 0),
    ),
    "a list turned round": (
        """fragment f(a: tensor<scalar>, b: tensor<scalar>) -> (y: tensor<scalar>[])
        { y = [b, a + 1.0]; }""",
        "r = relu(x); [p, q] = f(x, r); y = relu(q) + p;",
        lambda x: np.maximum(x + 1, 0) + np.maximum(x, 0),
    ),
    "loops": (
        """fragment f(x: tensor<scalar>, n: scalar[]) -> (y: tensor<scalar>)
        { t = [for i in n yield x + i]; y = t[0] + (t[1] + t[-1]); }""",
        "y = f(x, n = [1.0, 2.0, 4.0]);",
        lambda x: 3 * x + 7,
    ),
    "loops with conditions": (
        """fragment f(x: tensor<scalar>, n: integer[]) -> (y: tensor<scalar>[])
        { y = [for i in n, k in range_of(n) if i > 1 yield x + scalar(10 * k + i)]; }""",
        "[p, q] = f(x, n = [1, 2, 3]); y = p + q;",
        lambda x: 2 * x + 12 + 23,
    ),
    "conditions": (
        """fragment f(x: tensor<scalar>, n: integer) -> (y: tensor<scalar>)
        { y = relu(x) if n == 0 else x + 1.0 if n < 2 && n != 0 else x + 2.0; }""",
        "a = f(x, n = 0); b = f(a, n = 1); y = f(b, n = 7);",
        lambda x: np.maximum(x, 0) + 3,
    ),
    "bounded recursion": (
        """fragment f(x: tensor<scalar>, n: integer) -> (y: tensor<scalar>)
        { y = f(x + scalar(n), n = n - 1) if n > 0 else x; }""",
        "y = f(x, n = 5);",
        lambda x: x + 15,
    ),
    "attributes that are computed": (
        """fragment twice(n: scalar[]) -> (m: scalar[]) { m = [for i in n yield i * 2.0] + n; }
        fragment f(x: tensor<scalar>, n: scalar[]) -> (y: tensor<scalar>)
        { k = twice(n = n); y = x + (k[0] + k[3]); }""",
        "y = f(x, n = [1.0, 3.0]);",
        lambda x: x + 5,
    ),
    "strings": (
        """fragment f(x: tensor<scalar>, n: string = '') -> (y: tensor<scalar>)
        { y = x + scalar(n + '5'); }""",
        "y = f(x, n = '1');",
        lambda x: x + 15,
    ),
    "an alias": (
        "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) { y = x; }",
        "y = f(x);",
        lambda x: x,
    ),
    "signs": ("", "y = -x + 1.0;", lambda x: -x + 1),
    "signs inside": (
        "", "y = relu(-x + 1.0) + (- -x + 1.0);", lambda x: np.maximum(1 - x, 0) + x + 1,
    ),
    "signs of literals": ("", "y = x + (-3.0 + 1.0);", lambda x: x - 2),
    "signs of conditions": ("", "y = x + (-2.0 if false else 4.0);", lambda x: x + 4),
    "signs of what is invoked": (
        "", "y = -relu(x) + [x, x + 1.0][1];", lambda x: x + 1 - np.maximum(x, 0),
    ),
    "signs of words": ("", "y = x + (1.0 if !false && true else 2.0);", lambda x: x + 1),
}  # fmt: skip


def _b(x: AnyValue) -> AnyValue:
    return np.maximum(x + 1, 0) + x + 1


@pytest.mark.parametrize("case", first_of(VALUES, list(VALUES)[::3]))
def test_fragments_are_expanded(case: str, tmp_path: Path) -> None:
    fragments, body, expected = VALUES[case]
    path = tmp_path / "net.nnef"
    path.write_text(extended(fragments, body))
    found = RelayEngine(serde.to_relay(path, format="nnef")).run({"x": X})
    np.testing.assert_allclose(found[0], expected(X), rtol=1e-6)


@pytest.mark.parametrize("element", ["scalar", "integer", "logical"])
def test_generic_fragments(element: str) -> None:
    value = {"scalar": "1.0", "integer": "1", "logical": "true"}[element]
    text = extended(
        "fragment f<?>(x: tensor<?>, n: integer) -> (y: tensor<?>[]) { y = [x] * n; }\n"
        "fragment g<?>(x: tensor<?>) -> (y: tensor<?>) { [a, y] = f(x, n = 2); }",
        f"k = constant<{element}>(shape = [2], value = [{value}]); z = g(k); y = relu(x);",
    )
    model = parse(text, None, "graph.nnef")
    assert [each.dtype for each in model.operations if each.op == "copy"] == [element] * 2


def test_generic_fragments_with_a_type_of_their_own() -> None:
    text = extended(
        "fragment f<? = scalar>(shape: integer[]) -> (y: tensor<?>)"
        " { y = constant<?>(shape = shape, value = [1.0]); }",
        "z = f(shape = [2, 3]); y = x + z;",
    )
    assert parse(text, None, "graph.nnef").operations[1].dtype == "scalar"


def test_signs_leave_standard_fragments_alone() -> None:
    assert invocations("", "y = x ^ -2.0;") == [("pow", ["x", -2.0])]
    assert invocations("", "y = x * -1.0 - x;") == [("mul", ["x", -1.0]), ("sub", ["mul1", "x"])]
    assert invocations("", "y = x - x - x;") == [("sub", ["x", "x"]), ("sub", ["sub1", "x"])]


def test_flat_texts_may_nest_invocations() -> None:
    model = parse(graph("y = relu(relu(x));", head=VERSION), None, "graph.nnef")
    assert [each.op for each in model.operations] == ["external", "relu", "relu"]


# What is no fragment that can be expanded


REFUSED = {
    "direct recursion": (
        "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>)\n{ y = f(relu(x)); }",
        "y = f(x);",
        r"line 4, column 8: fragment f invokes itself",
    ),
    "mutual recursion": (
        "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>)\n{ y = g(x); }\n"
        "fragment g(x: tensor<scalar>) -> (y: tensor<scalar>) { y = f(x); }",
        "y = g(x);",
        r"line 4, column 7: undefined operation 'g'",
    ),
    "recursion without end": (
        "fragment f(x: tensor<scalar>, n: integer) -> (y: tensor<scalar>)\n"
        "{ y = f(x, n = n + 1) if n > 0 else x; }",
        "y = f(x, n = 1);",
        r"line 4, column 8: expressions that do not end",
    ),
    "a list without end": (
        "",
        "y = add_n([x] * 1000000 * 1000000);",
        r"line 7, column 5: expressions that take more than [0-9]+ MiB",
    ),
    "a fragment of the standard": (
        "fragment relu(x: tensor<scalar>) -> (y: tensor<scalar>) { y = x; }",
        "y = relu(x);",
        r"line 3, column 10: operation 'relu' already defined",
    ),
    "shape_of": (
        "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>)\n"
        "{ y = reshape(x, shape = shape_of(x)); }",
        "y = f(x);",
        r"line 4, column 26: the use of operator 'shape_of' is deprecated",
    ),
    "a variable inside": (
        "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>)\n"
        "{ y = x + variable<scalar>(shape = [1], label = 'a'); }",
        "y = f(x);",
        r"operation 'variable' not allowed inside fragments",
    ),
    "an index out of bounds": (
        "fragment f(x: tensor<scalar>, n: scalar[]) -> (y: tensor<scalar>)\n{ y = x + n[3]; }",
        "y = f(x, n = [1.0]);",
        r"line 4, column 11: index \(3\) out of bounds",
    ),
    "a tuple's end": (
        "fragment f(n: (integer, integer)) -> (m: integer) { m = n[7]; }",
        "y = relu(x);",
        # Khronos' parser reads behind the end: it crashes, or finds nothing there.
        r"the parser crashed \(|result 'm' of operation 'f' is not assigned",
    ),
    "a division by zero": ("", "y = x + scalar(1 / 0);", r"line \d+, column \d+: .*crashed \("),
    "an alias as output": ("", "z = relu(x); y = z;", r"output 'y' is no result of an operation"),
    "a sign before a power": ("", "y = -x ^ 2.0;", r"line 7, column 9: a sign before a power"),
    "an error behind signs": (
        "", "y = -x + (-x + (-x + q));", r"line 7, column 26: undeclared identifier 'q'",
    ),
    "formats in strings": (
        "fragment f(x: tensor<scalar>, s: string) -> (y: tensor<scalar>)"
        " { y = x + scalar(integer(s)); }",
        "y = f(x, s = '%s%n');",
        r"line 7, column 18: a text with %",
    ),
    "an unknown extension": (
        "", "y = relu(x);", r"line 2, column 11: could not handle extension 'KHR_other'",
    ),
}  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize("case", REFUSED)
def test_fragments_that_cannot_be_expanded(case: str) -> None:
    fragments, body, message = REFUSED[case]
    text = extended(fragments, body)
    if case == "an unknown extension":
        text = text.replace("KHR_enable_fragment_definitions", "KHR_other")
    with pytest.raises(FormatError, match=message):
        parse(text, None, "graph.nnef")


# Fragments that the caller says


DOUBLE = (
    "fragment double(x: tensor<scalar>, by: scalar = 2.0, at: integer[] = [])"
    " -> (y: tensor<scalar>)"
)


def written(tmp_path: Path, fragments: str, body: str) -> Path:
    return write_folder(tmp_path / "net", extended(fragments, body), {"w": WEIGHT})


def test_a_fragment_without_a_body_is_refused_by_name(tmp_path: Path) -> None:
    folder = written(tmp_path, f"{DOUBLE};", "a = double(x); y = relu(a);")
    with pytest.raises(UnsupportedModelError, match="double") as caught:
        serde.to_relay(folder)
    (issue,) = caught.value.report.issues
    assert (issue.op, issue.node) == ("double", "a")
    assert "custom_convert_map={'double': function}" in str(issue.hint)


@pytest.mark.parametrize("body", [";", " { y = x; }"], ids=["declared", "defined"])
def test_callers_say_what_fragments_are(body: str, tmp_path: Path) -> None:
    given = []

    def double(operands: list[AnyValue], attributes: dict[str, AnyValue]) -> AnyValue:
        given.append(attributes)
        return relay.multiply(operands[0], relay.const(np.float32(attributes["by"])))

    folder = written(tmp_path, DOUBLE + body, "y = double(x, by = 0.1, at = [1, 2]);")
    model = serde.to_relay(folder, custom_convert_map={"double": double})
    assert given == [{"by": 0.1, "at": (1, 2)}]
    np.testing.assert_allclose(RelayEngine(model).run({"x": X})[0], X * np.float32(0.1))


def test_callers_say_what_fragments_of_the_standard_are(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, graph("y = relu(x);"), {})
    model = serde.to_relay(folder, custom_convert_map={"relu": lambda x, _: relay.negative(x[0])})
    np.testing.assert_array_equal(RelayEngine(model).run({"x": X})[0], -X)


def test_functions_for_fragments_give_several_results(tmp_path: Path) -> None:
    head = (
        "fragment parts(x: tensor<scalar>, w: tensor<scalar>)"
        " -> (y: tensor<scalar>[], z: tensor<scalar>);"
    )
    body = "w = variable<scalar>(shape = [2, 3], label = 'w'); [a, b], y = parts(x, w);"
    folder = write_folder(tmp_path, extended(head, body, outputs="a, b, y"), {"w": WEIGHT})
    model = serde.to_relay(
        folder,
        custom_convert_map={"parts": lambda given, _: (given[1], given[0], relay.add(*given))},
    )
    for found, expected in zip(
        RelayEngine(model).run({"x": X}), (WEIGHT, X, X + WEIGHT), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("given", [None, 3, [], lambda: None])
def test_functions_for_fragments_that_give_no_expression(given: AnyValue, tmp_path: Path) -> None:
    folder = written(tmp_path, f"{DOUBLE};", "y = double(x);")
    with pytest.raises(OptionError, match="double: expected 1 expressions"):
        serde.to_relay(folder, custom_convert_map={"double": lambda *_: given})


def test_functions_for_fragments_that_build_no_type(tmp_path: Path) -> None:
    folder = written(tmp_path, f"{DOUBLE};", "y = double(x);")
    wrong = {"double": lambda x, _: relay.reshape(x[0], (7, 7))}
    with pytest.raises(UnsupportedModelError, match="double"):
        serde.to_relay(folder, custom_convert_map=wrong)


def test_gaps_are_not_handed_to_functions(tmp_path: Path) -> None:
    head = f"{DOUBLE};\n{DOUBLE.replace('double', 'other')};"
    folder = written(tmp_path, head, "a = other(x); y = double(a);")
    with pytest.raises(UnsupportedModelError) as caught:
        serde.to_relay(folder, custom_convert_map={"double": lambda x, _: relay.tanh(x[0])})
    assert [each.op for each in caught.value.report.issues] == ["other"]


# The process apart


COMPUTED = extended("", "y = relu(x + 1.0);")


def test_expressions_need_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serde.nnef.text.apart.can_start", lambda: False)
    assert len(parse(graph("y = relu(x);"), None, "graph.nnef").operations) == 2
    with pytest.raises(FormatError, match=r"line 7, column 5: expressions .* no interpreter"):
        parse(COMPUTED, None, "graph.nnef")


def test_expressions_have_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serde.nnef.text.apart._SECONDS", 0.001)
    with pytest.raises(FormatError, match="line 7, column 5: expressions that take more than"):
        parse(COMPUTED, None, "graph.nnef")


@pytest.mark.wide
def test_expressions_have_their_time_of_the_processor() -> None:
    """Each call of the fragment invokes two more, on a condition that only the parser knows."""
    text = extended(
        "fragment f(x: tensor<scalar>, n: integer) -> (y: tensor<scalar>)\n"
        "{ y = f(f(x, n = n - 1), n = n - 1) if n > 0 else x; }",
        "y = f(x, n = 60);",
    )
    wanted = r"line 4, column 8: expressions that take more than 1\.0 s to compute"
    with spending({"constants": 2**32}), pytest.raises(FormatError, match=wanted):
        parse(text, None, "graph.nnef")


def doubling(count: int, body: str) -> str:
    """A text whose last fragment has the body so often as two to the power of `count`."""
    fragments = [f"fragment f0(x: tensor<scalar>) -> (y: tensor<scalar>) {{ y = {body}; }}"]
    for each in range(count):
        head = f"fragment f{each + 1}(x: tensor<scalar>) -> (y: tensor<scalar>)"
        fragments.append(f"{head} {{ y = f{each}(f{each}(x)); }}")
    return extended("\n".join(fragments), f"y = f{count}(x);")


@pytest.mark.parametrize("body", ["relu(x)", "x + x"])
def test_expansions_that_are_too_large_are_found_before(body: str) -> None:
    with pytest.raises(LimitError, match="what fragments and lists expand to would take"):
        parse(doubling(63, body), None, "graph.nnef")


def test_expansions_are_made_as_far_as_the_limit_allows() -> None:
    text = doubling(10, "relu(x)")
    with spending({"nodes": 500}), pytest.raises(LimitError) as caught:
        parse(text, None, "graph.nnef")
    assert caught.value.needed > 500
    with spending({"nodes": caught.value.needed}):
        assert len(parse(text, None, "graph.nnef").operations) == 1025


def test_lists_have_their_number_of_operations() -> None:
    text = extended("", "y = add_n([for i in [1.0] * 1000 yield x + i]);")
    with spending({"nodes": 900}), pytest.raises(LimitError, match="fragments and lists"):
        parse(text, None, "graph.nnef")
    with spending({"nodes": 1000}):
        assert len(parse(text, None, "graph.nnef").operations) == 1002


def test_numbers_do_not_depend_on_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library reads ``0.5`` as 0 where commas stand before fractions."""
    import locale

    import nnef

    monkeypatch.setattr(locale, "localeconv", lambda: {"decimal_point": ","})
    monkeypatch.setattr(nnef, "parse_string", lambda *_, **__: pytest.fail("parsed here"))
    model = parse(graph("y = add(x, 0.5);"), None, "graph.nnef")
    assert model.operations[1].operands()[1] == 0.5


def test_what_is_written_is_no_expansion() -> None:
    """Each sign is an operation, as each invocation is."""
    lines = [f"t{place + 1} = t{place} + 1.0 * x;" for place in range(400)]
    text = extended("", "t0 = relu(x);" + "\n".join(lines) + "y = relu(t400);")
    with spending({"nodes": 10}):
        assert len(parse(text, None, "graph.nnef").operations) == 803


@pytest.mark.slow
def test_many_invocations_of_a_fragment_take_the_time_of_a_flat_text() -> None:
    head = "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) { y = tanh(relu(x)); }"
    body = "".join(f"t{place + 1} = f(t{place});\n" for place in range(50_000))
    model = parse(extended(head, f"t0 = relu(x);{body}y = relu(t50000);"), None, "graph.nnef")
    assert len(model.operations) == 100_003
