"""Regions as functions of the module, against modules written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.random_control import ProgramMaker
from support.regions import check, check_same_results, program, results, supported

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.ir.verify import verify
from serde.relay.op.contrib.register import get_region_optimizer, register_region_optimizer
from serde.relay.run.interpreter import run
from serde.relay.transform import (
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    PartitionGraph,
    Sequential,
)

A0 = "tvmgen_default_a_main_0"

ANNOTATED: dict[str, tuple[str, str]] = {
    "one operator": (
        "def @main(%x: T) { %0 = nn.relu(b[a](%x)); e[a](%0) }",
        f"""def @main(%x: T) -> T {{ @{A0}(%x) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ nn.relu(%p) }}""",
    ),
    "nothing annotated": ("def @main(%x: T) { nn.relu(%x) }", "def @main(%x: T) { nn.relu(%x) }"),
    "nothing for a target": (
        "def @main(%x: T) { %0 = nn.relu(b[default](%x)); e[default](%0) }",
        "def @main(%x: T) { nn.relu(%x) }",
    ),
    "several operators": (
        "def @main(%x: T, %y: T) { %0 = add(b[a](%x), b[a](%y)); %1 = exp(%0); e[a](%1) }",
        f"""def @main(%x: T, %y: T) -> T {{ @{A0}(%x, %y) }}
           def @{A0}(%p: T, %q: T, region[a, {A0}]) -> T {{ %0 = add(%p, %q); exp(%0) }}""",
    ),
    "one value that enters twice is one parameter": (
        "def @main(%x: T) { %0 = add(b[a](%x), b[a](%x)); e[a](%0) }",
        f"""def @main(%x: T) -> T {{ @{A0}(%x) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ add(%p, %p) }}""",
    ),
    "a computed value that enters twice": (
        """def @main(%x: T) {
             %0 = exp(%x); %1 = add(b[a](%0), b[a](%x)); %2 = add(%1, b[a](%0)); e[a](%2) }""",
        f"""def @main(%x: T) -> T {{ %0 = exp(%x); @{A0}(%0, %x) }}
           def @{A0}(%p: T, %q: T, region[a, {A0}]) -> T {{ %1 = add(%p, %q); add(%1, %p) }}""",
    ),
    "two regions": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(%1); %3 = exp(b[a](%2)); e[a](%3) }""",
        f"""def @main(%x: T) -> T {{ %0 = @{A0}(%x); %1 = log(%0); @tvmgen_default_a_main_1(%1) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ exp(%p) }}
           def @tvmgen_default_a_main_1(%p: T, region[a, tvmgen_default_a_main_1]) -> T {{
             exp(%p) }}""",
    ),
    "numbers follow the beginnings": (
        """def @main(%x: T, %y: T) {
             %0 = add(b[a](%x), b[a](%y)); %1 = e[a](%0); %2 = log(%1);
             %3 = exp(b[a](%2)); e[a](%3) }""",
        f"""def @main(%x: T, %y: T) -> T {{
             %0 = @{A0}(%x, %y); %1 = log(%0); @tvmgen_default_a_main_2(%1) }}
           def @{A0}(%p: T, %q: T, region[a, {A0}]) -> T {{ add(%p, %q) }}
           def @tvmgen_default_a_main_2(%p: T, region[a, tvmgen_default_a_main_2]) -> T {{
             exp(%p) }}""",
    ),
    "two targets": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[c](%1)); e[c](%2) }""",
        f"""def @main(%x: T) -> T {{ %0 = @{A0}(%x); @tvmgen_default_c_main_1(%0) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ exp(%p) }}
           def @tvmgen_default_c_main_1(%p: T, region[c, tvmgen_default_c_main_1]) -> T {{
             log(%p) }}""",
    ),
    "two outputs": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = log(%0); %2 = e[a](%1); %3 = tanh(%2);
             %4 = e[a](%0); add(%3, %4) }""",
        f"""def @main(%x: T) -> T {{
             %0 = @{A0}(%x); %1 = %0.0; %2 = tanh(%1); %3 = %0.1; add(%2, %3) }}
           def @{A0}(%p: T, region[a, {A0}]) -> (T, T) {{
             %4 = exp(%p); %5 = log(%4); (%5, %4) }}""",
    ),
    "outputs in the order in which they are met": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = log(%0); %2 = e[a](%0); %3 = e[a](%1); add(%2, %3) }""",
        f"""def @main(%x: T) -> T {{ %0 = @{A0}(%x); %1 = %0.0; %2 = %0.1; add(%1, %2) }}
           def @{A0}(%p: T, region[a, {A0}]) -> (T, T) {{
             %4 = exp(%p); %5 = log(%4); (%4, %5) }}""",
    ),
    "one output with several ends": (
        "def @main(%x: T) { %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0); add(%1, %2) }",
        f"""def @main(%x: T) -> T {{ %0 = @{A0}(%x); add(%0, %0) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ exp(%p) }}""",
    ),
    "a tuple leaves field by field": (
        "def @main(%x: T) { %0 = exp(b[a](%x)); %1 = log(%0); %2 = (%0, %1); e[a](%2) }",
        f"""def @main(%x: T) -> (T, T) {{ %0 = @{A0}(%x); (%0.0, %0.1) }}
           def @{A0}(%p: T, region[a, {A0}]) -> (T, T) {{
             %4 = exp(%p); %5 = log(%4); (%4, %5) }}""",
    ),
    "a tuple and one more": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = log(%0); %2 = (%0, %1); %3 = e[a](%2); %4 = tanh(%1);
             %5 = e[a](%4); %6 = concatenate(%3); (%6, %5) }""",
        f"""def @main(%x: T) {{
             %0 = @{A0}(%x); %1 = (%0.0, %0.1); %2 = concatenate(%1); (%2, %0.2) }}
           def @{A0}(%p: T, region[a, {A0}]) -> (T, T, T) {{
             %4 = exp(%p); %5 = log(%4); %6 = tanh(%5); (%4, %5, %6) }}""",
    ),
    "a result that is no tuple node stays a tuple": (
        """def @main(%x: T) {
             %0 = split(b[a](%x), indices_or_sections=[1]); %1 = e[a](%0); %1.0 }""",
        f"""def @main(%x: T) {{ %0 = @{A0}(%x); %0.0 }}
           def @{A0}(%p: T, region[a, {A0}]) {{ split(%p, indices_or_sections=[1]) }}""",
    ),
    "a constant becomes part of the region": (
        "def @main(%x: T) { %0 = add(b[a](%x), b[a](2f)); e[a](%0) }",
        f"""def @main(%x: T) -> T {{ @{A0}(%x) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ add(%p, 2f) }}""",
    ),
    "a tuple of constants": (
        """def @main(%x: T) {
             %0 = (1f, 2f); %1 = b[a](%0); %2 = %1.1; %3 = add(b[a](%x), %2); e[a](%3) }""",
        f"""def @main(%x: T) -> T {{ @{A0}(%x) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{
             %0 = (1f, 2f); %1 = %0.1; add(%p, %1) }}""",
    ),
    "what only passes through": (
        "def @main(%x: T) { %0 = b[a](%x); e[a](%0) }",
        f"""def @main(%x: T) -> T {{ @{A0}(%x) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ %p }}""",
    ),
    "a beginning without end": (
        "def @main(%x: T) { %0 = exp(%x); b[a](%0) }",
        "def @main(%x: T) { exp(%x) }",
    ),
    "characters of a name": (
        "def @main(%x: T) { %0 = exp(b[my-chip++](%x)); e[my-chip++](%0) }",
        """def @main(%x: T) -> T { @tvmgen_default_my_chip___main_0(%x) }
           def @tvmgen_default_my_chip___main_0(%p: T,
               region[my-chip++, tvmgen_default_my_chip___main_0]) -> T { exp(%p) }""",
    ),
    "functions of the module": (
        """def @g(%p: T) -> T { %8 = exp(b[a](%p)); e[a](%8) }
           def @main(%x: T) -> T { %0 = log(b[a](%x)); %1 = e[a](%0); @g(%1) }""",
        f"""def @g(%p: T) -> T {{ @tvmgen_default_a_g_0(%p) }}
           def @tvmgen_default_a_g_0(%p: T, region[a, tvmgen_default_a_g_0]) -> T {{ exp(%p) }}
           def @main(%x: T) -> T {{ %0 = @{A0}(%x); @g(%0) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ log(%p) }}""",
    ),
    "a composite function": (
        """def @main(%x: T) {
             %0 = fn (%p: T, Composite="a.exp") -> T { exp(%p) }; %1 = %0(b[a](%x)); e[a](%1) }""",
        f"""def @main(%x: T) -> T {{ @{A0}(%x) }}
           def @{A0}(%q: T, region[a, {A0}]) -> T {{
             %0 = fn (%p: T, Composite="a.exp") -> T {{ exp(%p) }}; %0(%q) }}""",
    ),
    "inside a function": (
        """def @main(%x: T) {
             let %f = fn (%p: T) -> T { %8 = exp(b[a](%p)); e[a](%8) }; %f(%x) }""",
        f"""def @main(%x: T) {{ let %f = fn (%p: T) -> T {{ @{A0}(%p) }}; %f(%x) }}
           def @{A0}(%q: T, region[a, {A0}]) -> T {{ exp(%q) }}""",
    ),
    "inside a branch": (
        """def @main(%c: bool, %x: T) {
             if (%c) { %8 = exp(b[a](%x)); e[a](%8) } else { %x } }""",
        f"""def @main(%c: bool, %x: T) {{ if (%c) {{ @{A0}(%x) }} else {{ %x }} }}
           def @{A0}(%q: T, region[a, {A0}]) -> T {{ exp(%q) }}""",
    ),
    "the value of a let": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); let %v: T = e[a](%0); add(%v, %v) }""",
        f"""def @main(%x: T) {{ let %v: T = @{A0}(%x); add(%v, %v) }}
           def @{A0}(%q: T, region[a, {A0}]) -> T {{ exp(%q) }}""",
    ),
    "what is made of nothing": (
        """def @main() {
             %0 = zeros(shape=[2, 3], dtype=F); %1 = exp(b[a](%0)); e[a](%1) }""",
        f"""def @main() {{ %0 = zeros(shape=[2, 3], dtype=F); @{A0}(%0) }}
           def @{A0}(%q: T, region[a, {A0}]) -> T {{ exp(%q) }}""",
    ),
    "a conditional as a whole": (
        """def @main(%c: bool, %x: T) {
             %0 = b[a](%c); %1 = b[a](%x); %2 = exp(%1); %3 = log(%1);
             %4 = if (%0) { %2 } else { %3 }; e[a](%4) }""",
        f"""def @main(%c: bool, %x: T) {{ @{A0}(%c, %x) }}
           def @{A0}(%c: bool, %x: T, region[a, {A0}]) -> T {{
             %2 = exp(%x); %3 = log(%x); if (%c) {{ %2 }} else {{ %3 }} }}""",
    ),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", ANNOTATED)
def test_functions_of_regions(case: str) -> None:
    before, after = ANNOTATED[case]
    check(PartitionGraph()(program(before)), after)


@pytest.mark.thin(2)
@pytest.mark.parametrize("bind", [True, False])
@pytest.mark.parametrize("case", ANNOTATED)
def test_functions_of_regions_change_no_result(case: str, bind: bool) -> None:
    mod = program(ANNOTATED[case][0])
    check_same_results(mod, PartitionGraph(bind_constants=bind)(mod))


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", ANNOTATED)
def test_what_is_partitioned_stays_legal_text(case: str) -> None:
    mod = PartitionGraph()(program(ANNOTATED[case][0]))
    read = InferType()(relay.fromtext(mod.astext(strict=True)))
    assert sorted(v.name_hint for v in read.functions) == sorted(v.name_hint for v in mod.functions)
    check_same_results(mod, read)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("default", "tvmgen_default"),
        ("net", "tvmgen_net"),
        ("", "tvmgen"),
        ("my.net", "tvmgen_my_net"),
        ("net 2", "tvmgen_net_2"),
    ],
)
def test_names_begin_with_the_name_of_the_module(name: str, prefix: str) -> None:
    mod = PartitionGraph(name)(program(ANNOTATED["one operator"][0]))
    assert [v.name_hint for v in mod.functions] == ["main", f"{prefix}_a_main_0"]
    assert mod[f"{prefix}_a_main_0"].attrs["global_symbol"] == f"{prefix}_a_main_0"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def @main(%x: T, %y: T) { %0 = add(b[a](%x), b[a](%y)); e[a](%0) }", ["i0", "i1"]),
        ("def @main(%x: T, %y: T) { %0 = add(b[a](1f), b[a](%y)); e[a](%0) }", ["i1"]),
        ("def @main(%x: T) { %0 = add(b[a](%x), b[a](%x)); e[a](%0) }", ["i0"]),
    ],
)
def test_parameters_have_the_number_of_their_beginning(text: str, names: list[str]) -> None:
    found = PartitionGraph()(program(text))[A0]
    assert [param.name_hint for param in found.params] == [f"a_0_{name}" for name in names]


def test_constants_that_are_not_bound_are_arguments() -> None:
    text, _after = ANNOTATED["a constant becomes part of the region"]
    check(
        PartitionGraph(bind_constants=False)(program(text)),
        f"""def @main(%x: T) -> T {{ @{A0}(%x, 2f) }}
           def @{A0}(%p: T, %q: float32, region[a, {A0}]) -> T {{ add(%p, %q) }}""",
    )


def test_functions_for_external_compilers_are_named_again() -> None:
    mod = program(
        """def @chip_1(%p: T, Compiler="chip", global_symbol="chip_1", Primitive=1) -> T { exp(%p) }
           def @main(%x: T) -> T { %0 = @chip_1(%x); %1 = log(b[a](%0)); e[a](%1) }"""
    )
    check(
        PartitionGraph()(mod),
        f"""def @tvmgen_default_chip_1(%p: T, Compiler="chip",
               global_symbol="tvmgen_default_chip_1", Primitive=1) -> T {{ exp(%p) }}
           def @main(%x: T) -> T {{ %0 = @tvmgen_default_chip_1(%x); @{A0}(%0) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ log(%p) }}""",
    )


@pytest.mark.wide
@pytest.mark.parametrize("seed", [5, 28, 104])
def test_bodies_of_loops_call_functions_by_their_new_names(seed: int) -> None:
    """In these random programs, a loop calls a function that an external compiler runs."""
    maker = ProgramMaker(seed)
    mod, arrays = InferType()(maker.module()), maker.inputs()
    found = PartitionGraph()(mod)
    verify(found)
    assert "tvmgen_default_global0" in [v.name_hint for v in found.functions]
    np.testing.assert_array_equal(
        run(found["main"], arrays, mod=found), run(mod["main"], arrays, mod=mod)
    )


def test_a_name_that_is_taken_gets_a_number() -> None:
    mod = program(
        """def @a_main_0(%p: T) -> T { exp(%p) }
           def @main(%x: T) -> T { %0 = @a_main_0(%x); %1 = log(b[a](%0)); e[a](%1) }"""
    )
    found = PartitionGraph()(mod)
    assert [v.name_hint for v in found.functions] == ["a_main_0", "main", f"{A0}_1"]


def test_names_that_are_mangled_alike_get_numbers() -> None:
    mod = program(
        """def @f/g(%p: T) -> T { %0 = exp(b[a](%p)); e[a](%0) }
           def @f_g(%q: T) -> T { %1 = tanh(b[a](%q)); e[a](%1) }
           def @main(%x: T) -> T { %2 = @f/g(%x); @f_g(%2) }"""
    )
    found = PartitionGraph()(mod)
    added = [v.name_hint for v in found.functions if v.name_hint not in ("f/g", "f_g", "main")]
    assert added == ["tvmgen_default_a_f_g_0", "tvmgen_default_a_f_g_0_1"]
    verify(found)


def test_a_target_optimises_its_regions() -> None:
    @register_region_optimizer("tuned")
    def fold(mod: relay.IRModule) -> relay.IRModule:
        assert [v.name_hint for v in mod.functions] == ["main"]
        x = mod["main"].params[0]
        return relay.IRModule.from_expr(relay.Function([x], relay.tanh(x)))

    assert get_region_optimizer("tuned") is fold
    assert get_region_optimizer("a") is None
    mod = program("def @main(%x: T) { %0 = exp(b[tuned](%x)); e[tuned](%0) }")
    check(
        PartitionGraph()(mod),
        """def @main(%x: T) -> T { @tvmgen_default_tuned_main_0(%x) }
           def @tvmgen_default_tuned_main_0(%p: T, region[tuned, tvmgen_default_tuned_main_0])
               -> T { tanh(%p) }""",
    )


REFUSED = {
    "an end without a beginning": (
        "def @main(%x: T) { %0 = exp(%x); e[a](%0) }",
        "an end of a region of a has no beginning",
    ),
    "an end of another target": (
        "def @main(%x: T) { %0 = exp(b[a](%x)); e[c](%0) }",
        "a region of a ends as one of c",
    ),
    "an argument from outside": (
        "def @main(%x: T) { %0 = add(b[a](%x), %x); e[a](%0) }",
        "one argument is inside a region of a, another is not",
    ),
    "a constant from outside": (
        "def @main(%x: T) { %0 = add(1f, b[a](%x)); e[a](%0) }",
        "one argument is inside a region of a, another is not",
    ),
    "arguments of two targets": (
        "def @main(%x: T) { %0 = add(b[a](%x), b[c](%x)); e[a](%0) }",
        "regions of a and c meet in one node",
    ),
    "a region that needs itself": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(%1); %3 = add(%0, b[a](%2)); e[a](%3) }""",
        "depends on itself",
    ),
    "regions that need each other": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[c](%1)); %3 = e[c](%2);
             %4 = add(%0, b[a](%3)); %5 = e[a](%4); %6 = tanh(%5); add(%6, %3) }""",
        "depends on itself",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    text, message = REFUSED[case]
    mod = program(text)
    with pytest.raises(RelayError, match=message):
        PartitionGraph()(mod)


PIPELINES: dict[str, tuple[str, str]] = {
    "one region over all": (
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = add(%0, %x); nn.relu(%1) }",
        f"""def @main(%x: T) -> T {{ @{A0}(%x) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{
             %0 = nn.relu(%p); %1 = add(%0, %p); nn.relu(%1) }}""",
    ),
    "three uses outside of one output": (
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = exp(%0); %2 = log(%0); (%1, %2, %0) }",
        f"""def @main(%x: T) {{ %0 = @{A0}(%x); %1 = exp(%0); %2 = log(%0); (%1, %2, %0) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ nn.relu(%p) }}""",
    ),
    "a value used inside and outside": (
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = nn.relu(%0); %2 = exp(%0); subtract(%1, %2) }",
        f"""def @main(%x: T) {{
             %0 = @{A0}(%x); %1 = %0.0; %2 = %0.1; %3 = exp(%2); subtract(%1, %3) }}
           def @{A0}(%p: T, region[a, {A0}]) -> (T, T) {{
             %4 = nn.relu(%p); %5 = nn.relu(%4); (%5, %4) }}""",
    ),
    "what must wait stays apart": (
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = exp(%0); add(%0, %1) }",
        f"""def @main(%x: T) {{ %0 = @{A0}(%x); %1 = exp(%0); @tvmgen_default_a_main_1(%0, %1) }}
           def @{A0}(%p: T, region[a, {A0}]) -> T {{ nn.relu(%p) }}
           def @tvmgen_default_a_main_1(%p: T, %q: T, region[a, tvmgen_default_a_main_1]) -> T {{
             add(%p, %q) }}""",
    ),
    "nothing that is supported": (
        "def @main(%x: T) { %0 = exp(%x); log(%0) }",
        "def @main(%x: T) { %0 = exp(%x); log(%0) }",
    ),
}


@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize("case", PIPELINES)
def test_the_passes_together(case: str, everything: bool) -> None:
    before, after = PIPELINES[case]
    with supported(a=["nn.relu", "add"]):
        passes = [AnnotateTarget("a", everything), MergeCompilerRegions(), PartitionGraph()]
        found = Sequential(passes)(program(before))
    check(found, after)
    check_same_results(program(before), found)


@pytest.mark.wide
def test_a_module_of_many_regions() -> None:
    count = 300
    x = relay.var("x", shape=(2, 3))
    body: Any = x
    for _ in range(count):
        body = relay.exp(relay.nn.relu(body))
        body = relay.negative(body)
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    with supported(a=["nn.relu"]):
        found = PartitionGraph()(MergeCompilerRegions()(AnnotateTarget("a")(mod)))
    assert len(found.functions) == count + 1
    np.testing.assert_array_equal(
        run(found["main"], [np.ones((2, 3), "float32")], mod=found),
        run(mod["main"], [np.ones((2, 3), "float32")]),
    )


def test_results_are_drawn_from_the_same_numbers() -> None:
    mod = program("def @main(%x: T) { %x }")
    np.testing.assert_array_equal(results(mod)[0], results(mod)[0])
    assert (results(mod, 1)[0] != results(mod, 2)[0]).any()
