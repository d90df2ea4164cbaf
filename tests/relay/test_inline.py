"""Inline: which global functions go into their callers, in text."""

from __future__ import annotations

import pytest
from support.pass_texts import check, parse, tensor

from serde.errors import RelayError
from serde.relay import Call, Expr, Function, If, IRModule, assert_structural_equal, const, var
from serde.relay.transform import Inline

T = tensor(3, 5)
MAIN = "def @main(%a: {0}, %b: {0}) {{ {1} }}\n"


def _function(name: str, body: str, *attrs: str) -> str:
    marks = "".join(f", {attr}" for attr in attrs)
    return f"def @{name}(%x: {T}, %y: {T}{marks}) {{ {body} }}\n"


def _main(body: str) -> str:
    return MAIN.format(T, body)


IN = "Inline=1"


@pytest.mark.parametrize(
    ("body", "inlined"),
    [
        ("add(%x, %y)", "add(%a, %b)"),
        ("%x", "%a"),
        ("multiply(%y, %x)", "multiply(%b, %a)"),
        ("exp(subtract(%x, %y))", "exp(subtract(%a, %b))"),
        ("let %v = add(%x, %y);\nmultiply(%v, %v)", "let %v = add(%a, %b);\nmultiply(%v, %v)"),
        ("if (True) { %x } else { %y }", "if (True) { %a } else { %b }"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "tanh({})", "add({}, %a)", "({}, %b)"])
def test_a_leaf_with_the_attribute_is_inlined(body: str, inlined: str, around: str) -> None:
    if "let" in body or "if" in body:
        inlined = f"{{ {inlined} }}"
    before = _function("f", body, IN) + _main(around.format("@f(%a, %b)"))
    check(Inline(), before, _main(around.format(inlined)))


@pytest.mark.parametrize("attrs", [(), ("Inline=0",), ('Composite="own"',), ("Primitive=1",)])
def test_without_the_attribute_nothing_is_inlined(attrs: tuple[str, ...]) -> None:
    text = _function("f", "add(%x, %y)", *attrs) + _main("@f(%a, %b)")
    check(Inline(), text, text)


def test_callees_are_inlined_before_callers() -> None:
    before = (
        _function("f", "add(%x, %y)", IN)
        + _function("g", "multiply(@f(%x, %y), %y)", IN)
        + _main("tanh(@g(%b, %a))")
    )
    check(Inline(), before, _main("tanh(multiply(add(%b, %a), %a))"))


def test_a_leaf_goes_into_one_that_stays() -> None:
    f = _function("f", "exp(%x)", IN)
    g = "multiply({}, %y)"
    before = f + _function("g", g.format("@f(%x, %y)")) + _main("@g(%a, %b)")
    check(Inline(), before, _function("g", g.format("exp(%x)")) + _main("@g(%a, %b)"))


def test_each_caller_gets_its_own_body() -> None:
    before = _function("f", "let %v = add(%x, %y);\n%v", IN) + _main("(@f(%a, %b), @f(%b, %a))")
    after = "({ let %v = add(%a, %b); %v }, { let %v = add(%b, %a); %v })"
    check(Inline(), before, _main(after))


def test_several_callers_are_served() -> None:
    f = _function("f", "subtract(%x, %y)", IN)
    before = f + _function("g", "@f(%y, %x)") + _main("add(@f(%a, %b), @g(%a, %b))")
    after = _function("g", "subtract(%y, %x)") + _main("add(subtract(%a, %b), @g(%a, %b))")
    check(Inline(), before, after)


@pytest.mark.parametrize("compiler", ["one", "another"])
@pytest.mark.parametrize("around", ["{}", "tanh({})"])
def test_for_another_compiler_the_function_stands_where_its_name_stood(
    compiler: str, around: str
) -> None:
    mark = f'Compiler="{compiler}"'
    before = _function("f", "add(%x, %y)", IN, mark) + _main(around.format("@f(%a, %b)"))
    literal = f"fn (%x: {T}, %y: {T}, {IN}, {mark}) {{ add(%x, %y) }}"
    after = _main(f"%0 = {literal};\n{around.format('%0(%a, %b)')}")
    check(Inline(), before, after)


def test_for_the_default_compiler_the_body_stands() -> None:
    before = _function("f", "add(%x, %y)", IN, 'Compiler="default"') + _main("@f(%a, %b)")
    check(Inline(), before, _main("add(%a, %b)"))


RECURSIVE = (
    "def @down(%i: int32, Inline=1) -> int32 {{ if (less(%i, 1)) {{ {0} }} else "
    "{{ add(@down(subtract(%i, 1)), %i) }} }}\n"
    "def @main(%n: int32) -> int32 {{ @down(%n) }}\n"
)


def test_one_that_calls_itself_stays() -> None:
    text = RECURSIVE.format("%i")
    check(Inline(), text, text, numbers=False)


def test_one_that_calls_itself_takes_others_in() -> None:
    same = "def @same(%j: int32, Inline=1) { %j }\n"
    check(Inline(), same + RECURSIVE.format("@same(%i)"), RECURSIVE.format("%i"), numbers=False)


def test_what_no_one_calls_stays() -> None:
    text = _function("f", "add(%x, %y)", IN) + _main("%a")
    check(Inline(), text, text)


def test_a_value_becomes_the_function() -> None:
    one = "def @one(%x: float32, Inline=1) { exp(%x) }\n"
    two = "def @two(%x: float32, Inline=1) { sqrt(%x) }\n"
    head = "def @main(%c: bool, %a: float32) { "
    before = one + two + head + "%0 = if (%c) { @one } else { @two };\n%0(%a) }\n"
    functions = [f"fn (%x: float32, Inline=1) {{ {op}(%x) }}" for op in ("exp", "sqrt")]
    after = head + f"%0 = if (%c) {{ {functions[0]} }} else {{ {functions[1]} }};\n%0(%a) }}\n"
    check(Inline(), before, after)


def test_one_that_cannot_be_inlined_is_told() -> None:
    text = _function("f", "add(%x, %y)") + _function("g", "@f(%x, %y)", IN) + _main("@g(%a, %b)")
    with pytest.raises(RelayError, match="g has the attribute Inline"):
        Inline()(parse(text))


def test_many_leaves_in_a_row() -> None:
    count = 300
    functions = ["def @f0(%x: float32, Inline=1) { exp(%x) }\n"]
    for index in range(1, count):
        body = f"@f{index - 1}(%x)"
        functions.append(f"def @f{index}(%x: float32, Inline=1) {{ {body} }}\n")
    main = "def @main(%a: float32) {{ {} }}\n"
    before = "".join(functions) + main.format(f"@f{count - 1}(%a)")
    check(Inline(), before, main.format("exp(%a)"))


@pytest.mark.parametrize("compiler", [{}, {"Compiler": "own"}])
def test_functions_that_are_values_leave_the_caller_as_untyped_as_it_was(
    compiler: dict[str, str],
) -> None:
    def module(named: bool) -> IRModule:
        mod = IRModule({})
        branches: list[Expr] = []
        for name, value in (("f", 1), ("g", 2)):
            branch: Expr = Function([], const(value)).with_attr({"Inline": 1, **compiler})
            if named:
                mod[name] = branch
                branch = mod.get_global_var(name)
            branches.append(branch)
        condition = var("p", "bool")
        mod["main"] = Function([condition], Call(If(condition, branches[0], branches[1]), []))
        return mod

    assert_structural_equal(Inline()(module(named=True)), module(named=False), map_free_vars=True)
