"""DeadCodeElimination: which lets go, and which values move, in text."""

from __future__ import annotations

import pytest
from support.pass_texts import check, check_bodies, parse

import serde.relay as relay
from serde.relay.ir.expr import Let
from serde.relay.transform import DeadCodeElimination, InferType

X = "%x: float32, %y: float32"
REFERENCES = "def @main(%x: float32) -> float32 {{\nlet %r = ref(%x);\n{0}\n}}\n"

DROPPED = {
    "one": ("let %a = exp(%x);\n%y", "%y"),
    "a chain": ("let %a = exp(%x);\nlet %b = exp(%a);\nlet %c = exp(%b);\n%y", "%y"),
    "some": (
        "let %a = exp(%x);\nlet %b = exp(%a);\nlet %c = exp(%a);\nadd(%c, %a)",
        "let %a = exp(%x);\nlet %c = exp(%a);\nadd(%c, %a)",
    ),
    "an alias": ("let %a = %x;\nlet %b = %y;\n%b", "let %b = %y;\n%b"),
    "an operand": ("add({ let %a = 1f; %x }, %y)", "add(%x, %y)"),
    "a value": ("let %a = { let %b = exp(%x); %y };\nadd(%a, %a)", "let %a = %y;\nadd(%a, %a)"),
    "in a branch": (
        "if (less(%x, %y)) { let %a = exp(%x); %y } else { let %b = exp(%y); add(%b, %b) }",
        "if (less(%x, %y)) { %y } else { let %b = exp(%y); add(%b, %b) }",
    ),
    "a function": ("let %f = fn (%z: float32) { exp(%z) };\n%x", "%x"),
    "inside a function": (
        "let %f = fn (%z: float32) { let %a = exp(%z); %z };\nadd(%f(%x), %f(%y))",
        "let %f = fn (%z: float32) { %z };\nadd(%f(%x), %f(%y))",
    ),
    "recursion": (
        "let %f = fn (%z: float32) -> float32 {"
        " if (less(%z, 1f)) { %z } else { %f(subtract(%z, 1f)) } };\n%x",
        "%x",
    ),
    "tuples stay": (
        "let %a = exp(%x);\n%0 = (%x, %y);\n%1 = %0.0;\nexp(%1)",
        "%0 = (%x, %y);\n%1 = %0.0;\nexp(%1)",
    ),
    "a choice": ("let %a = if (less(%x, %y)) { %x } else { %y };\n%y", "%y"),
    "a tuple": ("let %a = (exp(%x), %y);\n%y", "%y"),
}


@pytest.mark.parametrize("name", DROPPED)
def test_what_nothing_needs_goes(name: str) -> None:
    check_bodies(DeadCodeElimination(), X, *DROPPED[name])


INLINED = {
    "used once": ("let %a = exp(%x);\nadd(%a, %y)", "add(exp(%x), %y)"),
    "a chain": ("let %a = exp(%x);\nlet %b = tanh(%a);\nsqrt(%b)", "sqrt(tanh(exp(%x)))"),
    "used twice": ("let %a = exp(%x);\nadd(%a, %a)", "let %a = exp(%x);\nadd(%a, %a)"),
    "twice through another": (
        "let %a = exp(%x);\nlet %b = add(%a, 1f);\nadd(%b, %b)",
        "let %b = add(exp(%x), 1f);\nadd(%b, %b)",
    ),
    "for what is dead": ("let %a = exp(%x);\nlet %b = tanh(%a);\nsqrt(%a)", "sqrt(exp(%x))"),
    "into a branch": (
        "let %a = exp(%x);\nif (less(%x, %y)) { add(%a, 1f) } else { %y }",
        "if (less(%x, %y)) { add(exp(%x), 1f) } else { %y }",
    ),
    "once in each branch": (
        "let %a = exp(%x);\nif (less(%x, %y)) { %a } else { add(%a, 1f) }",
        "let %a = exp(%x);\nif (less(%x, %y)) { %a } else { add(%a, 1f) }",
    ),
    "not into a function": (
        "let %a = exp(%x);\nlet %f = fn (%z: float32) { add(%a, %z) };\nadd(%f(%x), %f(%y))",
        "let %a = exp(%x);\nlet %f = fn (%z: float32) { add(%a, %z) };\nadd(%f(%x), %f(%y))",
    ),
    "inside a function": (
        "let %f = fn (%z: float32) { let %b = add(%z, %z); add(%x, %b) };\nadd(%f(%x), %f(%y))",
        "let %f = fn (%z: float32) { add(%x, add(%z, %z)) };\nadd(%f(%x), %f(%y))",
    ),
    "a function called once": (
        "let %f = fn (%z: float32) { exp(%z) };\n%f(%x)",
        "%0 = fn (%z: float32) { exp(%z) };\n%0(%x)",
    ),
}


@pytest.mark.parametrize("name", INLINED)
def test_what_is_used_once_moves_if_asked(name: str) -> None:
    before, after = INLINED[name]
    check_bodies(DeadCodeElimination(inline_once=True), X, before, after)
    if name not in ("for what is dead",):
        check_bodies(DeadCodeElimination(), X, before, before)


EFFECTS = {
    "a read": "let %v = ref_read(%r);\n%x",
    "a write": "let %v = ref_write(%r, %x);\nlet %w = ref_read(%r);\nadd(%w, %w)",
    "a write in a branch": (
        "let %v = if (less(%x, 1f)) { ref_write(%r, %x) } else { () };\nref_read(%r)"
    ),
    "in a function": (
        "let %f = fn (%z: float32) { let %v = ref_write(%r, %z); ref_read(%r) };\n"
        "let %v = %f(%x);\n%x"
    ),
    "in a tuple": "let %v = (ref_write(%r, %x), %x);\nref_read(%r)",
}


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("inline_once", [False, True])
def test_effects_stay_where_they_are(name: str, inline_once: bool) -> None:
    text = REFERENCES.format(EFFECTS[name])
    if name == "a write in a branch":
        text = text.replace("else { () }", "else { ref_write(%r, 1f) }")
    if inline_once and name == "in a function":
        literal = "fn (%z: float32) { let %v = ref_write(%r, %z); ref_read(%r) }"
        check(DeadCodeElimination(True), text, REFERENCES.format(
            f"%0 = {literal};\nlet %v = %0(%x);\n%x"
        ))  # fmt: skip
        return
    if inline_once and name == "a read":
        check(DeadCodeElimination(True), text, text.replace("let %r = ref(%x);\n", "")
              .replace("ref_read(%r)", "ref_read(ref(%x))"))  # fmt: skip
        return
    check(DeadCodeElimination(inline_once), text, text)


@pytest.mark.parametrize("name", ["a read", "in a function", "in a tuple"])
def test_effects_go_if_told_so(name: str) -> None:
    text = REFERENCES.format(EFFECTS[name])
    after = {
        "a read": "def @main(%x: float32) -> float32 { %x }\n",
        "in a function": "def @main(%x: float32) -> float32 { %x }\n",
        "in a tuple": REFERENCES.format("ref_read(%r)"),
    }[name]
    check(DeadCodeElimination(ignore_impurity=True), text, after)


def test_a_reference_that_nothing_reads_goes() -> None:
    check(
        DeadCodeElimination(), REFERENCES.format("%x"), "def @main(%x: float32) -> float32 { %x }"
    )


@pytest.mark.parametrize("pure", [True, False])
def test_global_functions_are_judged_by_their_bodies(pure: bool) -> None:
    inside = "exp(%z)" if pure else "let %v = ref_write(%q, %z);\nref_read(%q)"
    head = f"def @f(%z: float32, %q: ref(float32)) -> float32 {{\n{inside}\n}}\n"
    before = head + REFERENCES.format("let %a = @f(%x, %r);\n%x")
    after = head + "def @main(%x: float32) -> float32 { %x }\n" if pure else before
    check(DeadCodeElimination(), before, after)


def test_a_function_that_comes_as_an_argument_may_do_anything() -> None:
    text = (
        "def @apply(%f: fn (float32) -> float32, %z: float32) -> float32 {\n"
        "let %a = %f(%z);\n%z\n}\n"
        "def @main(%x: float32) -> float32 { @apply(fn (%y: float32) { exp(%y) }, %x) }\n"
    )
    check(DeadCodeElimination(), text, text)


def test_dropout_stays() -> None:
    body = "let %a = nn.dropout(%x);\n%y"
    check_bodies(DeadCodeElimination(), X, body, body, numbers=False)


def test_clauses_are_cleaned() -> None:
    head = "type Maybe[A] { Just(A), None_, }\ndef @main(%m: Maybe[float32]) -> float32 {\n"
    text = head + "match (%m) { Just(%a) => { BODY }, None_ => { 0f } }\n}\n"
    bodies = ("let %b = exp(%a); %a", "%a")
    before, after = (parse(text.replace("BODY", body)) for body in bodies)
    relay.assert_structural_equal(DeadCodeElimination()(before), after)


@pytest.mark.wide
@pytest.mark.parametrize("inline_once", [False, True])
def test_long_chains_of_lets(inline_once: bool) -> None:
    x = relay.var("x", shape=())
    variables = [relay.Var(f"v{index}") for index in range(20_000)]
    values = [x, *variables[:-1]]
    body = variables[-1]
    for variable, value in zip(reversed(variables), reversed(values), strict=True):
        body = Let(variable, relay.exp(value), body)
    mod = InferType()(relay.IRModule.from_expr(body))
    after, changed = DeadCodeElimination(inline_once).run(mod)
    assert changed == inline_once
    assert isinstance(after["main"].body, Let) != inline_once
