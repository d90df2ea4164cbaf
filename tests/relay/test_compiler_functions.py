"""Functions for external compilers outside of their callers, as extern ones, and inside again."""

from __future__ import annotations

import pytest
from support.regions import check, check_same_results, program

from serde.errors import RelayError
from serde.relay.transform import (
    InlineCompilerFunctionsBoundTo,
    MarkCompilerFunctionsAsExtern,
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
)

LITERAL = """def @main(%x: T) {
  %0 = fn (%p: T, region[a, f_0]) -> T {
    %8 = fn (%q: T, Composite="a.exp") -> T { exp(%q) }; %8(%p) };
  %1 = %0(%x); %2 = fn (%p: T, region[c, g_0]) -> T { log(%p) }; %2(%1) }"""
LET = """def @main(%x: T) {
  let %f = fn (%p: T, region[a, f_0]) -> T { exp(%p) }; %1 = %f(%x); %f(%1) }"""
OUTSIDE = """def @main(%x: T) -> T { %1 = @f_0(%x); @g_0(%1) }
  def @f_0(%p: T, region[a, f_0]) -> T {
    %8 = fn (%q: T, Composite="a.exp") -> T { exp(%q) }; %8(%p) }
  def @g_0(%p: T, region[c, g_0]) -> T { log(%p) }"""

OUTLINED = {
    "all": (LITERAL, "", OUTSIDE),
    "one compiler": (
        LITERAL,
        "a",
        """def @main(%x: T) -> T {
             %1 = @f_0(%x); %2 = fn (%p: T, region[c, g_0]) -> T { log(%p) }; %2(%1) }
           def @f_0(%p: T, region[a, f_0]) -> T {
             %8 = fn (%q: T, Composite="a.exp") -> T { exp(%q) }; %8(%p) }""",
    ),
    "a compiler of none": (LITERAL, "z", LITERAL),
    "bound by a let": (
        LET,
        "",
        """def @main(%x: T) -> T { %1 = @f_0(%x); @f_0(%1) }
           def @f_0(%p: T, region[a, f_0]) -> T { exp(%p) }""",
    ),
    "two of one name": (
        """def @main(%x: T) {
             %0 = fn (%p: T, region[a, f_0]) -> T { exp(%p) }; %1 = %0(%x);
             %2 = fn (%p: T, region[a, f_0]) -> T { exp(%p) }; %2(%1) }""",
        "",
        """def @main(%x: T) -> T { %1 = @f_0(%x); @f_0(%1) }
           def @f_0(%p: T, region[a, f_0]) -> T { exp(%p) }""",
    ),
    "nothing": ("def @main(%x: T) { exp(%x) }", "", "def @main(%x: T) { exp(%x) }"),
}


@pytest.mark.parametrize("case", OUTLINED)
def test_outlined_functions(case: str) -> None:
    before, compiler, after = OUTLINED[case]
    found = OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler)(program(before))
    check(found, after)
    check_same_results(program(before), found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'def @main(%x: T) { %0 = fn (%p: T, Compiler="a") -> T { exp(%p) }; %0(%x) }',
            "no global_symbol",
        ),
        (
            """def @main(%x: T) {
                 %0 = fn (%p: T, region[a, f_0]) -> T { add(%p, %x) }; %0(%x) }""",
            "from around it",
        ),
    ],
)
def test_functions_that_cannot_be_outlined(text: str, message: str) -> None:
    with pytest.raises(RelayError, match=message):
        OutlineCompilerFunctionsWithExistingGlobalSymbols()(program(text))


@pytest.mark.parametrize(("compiler", "marked"), [("", "fg"), ("a", "f"), ("c", "g"), ("z", "")])
def test_extern_functions(compiler: str, marked: str) -> None:
    found = MarkCompilerFunctionsAsExtern(compiler)(program(OUTSIDE))
    wanted = OUTSIDE
    for name, target in (("f", "a"), ("g", "c")):
        if name in marked:
            wanted = wanted.replace(f"region[{target}, {name}_0]", "Extern=1")
    check(found, wanted)


@pytest.mark.parametrize(
    ("names", "after"),
    [
        ([], OUTSIDE),
        (
            ["f_0"],
            """def @main(%x: T) -> T { %1 = exp(%x); @g_0(%1) }
               def @g_0(%p: T, region[c, g_0]) -> T { log(%p) }""",
        ),
        (["f_0", "g_0"], "def @main(%x: T) -> T { %1 = exp(%x); log(%1) }"),
    ],
)
def test_functions_inside_again(names: list[str], after: str) -> None:
    mod = program(OUTSIDE)
    found = InlineCompilerFunctionsBoundTo([mod.get_global_var(name) for name in names])(mod)
    check(found, after)
    check_same_results(mod, found)


def test_only_functions_for_compilers_are_put_inside() -> None:
    mod = program("def @main(%x: T) -> T { @f(%x) } def @f(%p: T) -> T { exp(%p) }")
    with pytest.raises(RelayError, match="@f has no Compiler"):
        InlineCompilerFunctionsBoundTo([mod.get_global_var("f")])(mod)
