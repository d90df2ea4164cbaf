"""Passes over programs with algebraic data, matches, references and polymorphic functions."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay import transform
from serde.relay.run.values import ConstructorValue

HEADER = '#[version = "0.0.5"]\n'
L123 = "Cons(1, Cons(2, Cons(3, Nil)))"
PROGRAMS = {
    "build": (f"def @main() {{ {L123} }}", [1, 2, 3]),
    "length": (f"def @main() {{ @length({L123}) }}", 3),
    "map": (f"def @main() {{ @map(fn (%x: int32) {{ %x * %x }}, {L123}) }}", [1, 4, 9]),
    "fold": (f"def @main() {{ @foldl(fn (%a: int32, %x: int32) {{ %a * 10 + %x }}, 0, {L123}) }}",
             123),
    "concat": (f"def @main() {{ @concat({L123}, @rev({L123})) }}", [1, 2, 3, 3, 2, 1]),
    "zip": (f"def @main() {{ @zip({L123}, Cons(True, Nil)) }}", [[1, True]]),
    "tree": ("def @main() { @size(Rose(1, Cons(Rose(2, Nil), Nil))) }", 2),
    "option": ("def @pick[A](%o: Option[A], %d: A) -> A {"
               " match (%o) { Some(%x) => %x, None => %d } }\n"
               "def @main() { (@pick(Some(3), 4), @pick(None, 5)) }", [3, 5]),
    "nested": (f"def @main() {{ match (@tl({L123})) {{ Cons(%a, Cons(%b, %r)) =>"
               " (%a + %b, @length(%r)), Cons(%a, Nil) => (%a, 1), Nil => (0, 0) } }", [5, 0]),
    "closure": (f"def @main() {{ let %n = 10; @map(fn (%x: int32) {{ %x + %n }}, {L123}) }}",
                [11, 12, 13]),
    "curried": ("def @main() { @compose(fn (%x: int32) { %x * 2 }, fn (%x: int32) { %x + 1 })(5) }",
                12),
    "shared": ("def @main() { let %x = 2 * 3; match (Cons(%x, Nil)) { Cons(%y, _) => %y + %x,"
               " Nil => %x } }", 12),
    "unused": (f"def @main() {{ let %l = {L123}; let %m = @rev(%l); @hd(%l) }}", 1),
    "twice": ("def @main() { (@id(1), @id(True), @id(Cons(2, Nil))) }", [1, True, [2]]),
}  # fmt: skip
PASSES = {
    "ToGraphNormalForm": transform.ToGraphNormalForm(),
    "EliminateCommonSubexpr": transform.EliminateCommonSubexpr(),
    "DeadCodeElimination": transform.DeadCodeElimination(),
    "RemoveUnusedFunctions": transform.RemoveUnusedFunctions(),
    "FoldConstant": transform.FoldConstant(),
    "SimplifyExpr": transform.SimplifyExpr(),
    "SimplifyInference": transform.SimplifyInference(),
    "CanonicalizeOps": transform.CanonicalizeOps(),
    "InlineCalls": transform.InlineCalls(),
    "RemoveDeadCode": transform.RemoveDeadCode(),
    "MergeEqualNodes": transform.MergeEqualNodes(),
    "EvaluateConstants": transform.EvaluateConstants(),
    "RemoveIdentities": transform.RemoveIdentities(),
    "RaiseRecursion": transform.RaiseRecursion(),
    "SequencesToTuples": transform.SequencesToTuples(),
    "FoldShape": transform.FoldShape(),
    "CountLoops": transform.CountLoops(),
    "InferType": transform.InferType(),
}


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, ConstructorValue):
        items = []
        while value.fields:
            items.append(plain(value.fields[0]))
            value = value.fields[1]
        return items
    return value.numpy().tolist()


@cache
def prelude() -> relay.IRModule:
    mod = relay.IRModule()
    mod.import_from_std("prelude.rly")
    return mod


@cache
def program(text: str) -> relay.IRModule:
    """A program with what it needs of the Prelude; passes leave it as it is."""
    whole = relay.fromtext(HEADER + text, "program", prelude())
    return transform.RemoveUnusedFunctions()(whole)


@pytest.mark.sparse(3)
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("case", PROGRAMS)
def test_passes_keep_the_meaning(case: str, name: str) -> None:
    text, expected = PROGRAMS[case]
    mod = program(text)
    before = mod.astext()
    found = PASSES[name](mod)
    assert mod.astext() == before
    typed = transform.InferType()(found)
    relay.verify(typed)
    assert typed["main"].body.type == mod["main"].body.type
    assert plain(relay.create_executor(mod=typed).evaluate()()) == expected
    assert relay.structural_equal(relay.fromtext(typed.astext()), typed)


STATEFUL = {
    "write": ("let %r = ref(1); ref_write(%r, 2); ref_read(%r)", 2),
    "closure": ("let %r = ref(1); let %f = fn () { ref_write(%r, ref_read(%r) * 3) };"
                " %f(); %f(); ref_read(%r)", 9),
    "order": ("let %r = ref(1); let %a = ref_read(%r); ref_write(%r, 5);"
              " let %b = ref_read(%r); %a * 10 + %b", 15),
    "passed": ("let %r = ref(1); @bump(%r); @bump(%r); ref_read(%r)", 3),
    "given back": ("let %r = ref(1); let %w = fn () { ref_write(%r, 2) }; let %g = @id(%w);"
                   " let %u = %g(); ref_read(%r)", 2),
    "held": ("let %r = ref(1); let %q = ref((let %u = ref_write(%r, 2); 3)); ref_read(%r)", 2),
    "out of a tuple": ("let %r = ref(1); let %t = (fn () { ref_write(%r, 2) }, 5);"
                       " let %u = %t.0(); ref_read(%r)", 2),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["DeadCodeElimination", "RemoveDeadCode", "MergeEqualNodes",
     "EvaluateConstants", "EliminateCommonSubexpr", "FoldConstant", "InferType"],
)  # fmt: skip
@pytest.mark.parametrize("case", STATEFUL)
def test_passes_keep_what_is_written(case: str, name: str) -> None:
    text, expected = STATEFUL[case]
    bump = "def @bump(%r: ref(int32)) { ref_write(%r, ref_read(%r) + 1) }\n"
    found = PASSES[name](program(f"{bump}def @main() {{ {text} }}"))
    typed = transform.InferType()(found)
    relay.verify(typed)
    assert plain(relay.create_executor(mod=typed).evaluate()()) == expected


@pytest.mark.parametrize("case", STATEFUL)
def test_a_graph_does_not_tell_when_references_are_written(case: str) -> None:
    bump = "def @bump(%r: ref(int32)) { ref_write(%r, ref_read(%r) + 1) }\n"
    with pytest.raises(Unsupported, match="references are read and written in an order"):
        transform.ToGraphNormalForm()(program(f"{bump}def @main() {{ {STATEFUL[case][0]} }}"))
