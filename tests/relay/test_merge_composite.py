"""Composite functions of what matches the patterns of a target, against modules written out."""

from __future__ import annotations

from typing import Any

import pytest
from support.regions import check, check_same_results, program

import serde.relay as relay
from serde.relay.dataflow_pattern import (
    DFPattern,
    is_constant,
    is_op,
    is_tuple,
    is_tuple_get_item,
    wildcard,
)
from serde.relay.op.contrib.register import get_pattern_table, register_pattern_table
from serde.relay.transform import MergeComposite


def _chain(*names: str) -> DFPattern:
    pattern: DFPattern = wildcard()
    for name in names:
        pattern = is_op(name)(pattern)
    return pattern


def _sum_of(name: str) -> DFPattern:
    return is_op(name)(is_op("add")(wildcard(), wildcard()))


def _square() -> DFPattern:
    x, y = wildcard(), wildcard()
    return (x + y) * (x - y)


PATTERNS: dict[str, DFPattern] = {
    "exp": is_op("exp")(wildcard()),
    "exp_log": _chain("exp", "log"),
    "log_tanh": _chain("log", "tanh"),
    "exp_log_tanh": _chain("exp", "log", "tanh"),
    "sum_relu": _sum_of("nn.relu"),
    "square": _square(),
    "scaled": is_op("multiply")(wildcard(), is_constant()),
    "maybe_relu": _sum_of("exp").optional(lambda x: is_op("nn.relu")(x)),
    "pair": is_op("concatenate")(is_tuple((is_op("exp")(wildcard()), wildcard()))),
    "first": is_op("exp")(is_tuple_get_item(is_op("split")(wildcard()), 0)),
}

CASES: dict[str, tuple[list[str], str, str]] = {
    "one operator": (
        ["exp"],
        "def @main(%x: T) { exp(%x) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_", Composite="exp") -> T { exp(%a) };
             %0(%x) }""",
    ),
    "two in a row": (
        ["exp_log"],
        "def @main(%x: T) { %0 = exp(%x); log(%0) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
               %9 = exp(%a); log(%9) };
             %0(%x) }""",
    ),
    "nothing that matches": (
        ["exp_log"],
        "def @main(%x: T) { %0 = log(%x); exp(%0) }",
        "def @main(%x: T) { %0 = log(%x); exp(%0) }",
    ),
    "twice": (
        ["exp_log"],
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); %2 = exp(%1); log(%2) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
               %9 = exp(%a); log(%9) };
             %1 = %0(%x);
             %2 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
               %8 = exp(%a); log(%8) };
             %2(%1) }""",
    ),
    "what is used besides stays": (
        ["exp_log"],
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); (%0, %1) }",
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); (%0, %1) }",
    ),
    "two inputs": (
        ["sum_relu"],
        "def @main(%x: T, %y: T) { %0 = add(%x, %y); nn.relu(%0) }",
        """def @main(%x: T, %y: T) {
             %0 = fn (%a: T, %b: T, PartitionedFromPattern="add_nn.relu_", Composite="sum_relu")
                 -> T { %9 = add(%a, %b); nn.relu(%9) };
             %0(%x, %y) }""",
    ),
    "one input for two wildcards": (
        ["sum_relu"],
        "def @main(%x: T) { %0 = add(%x, %x); nn.relu(%0) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="add_nn.relu_", Composite="sum_relu")
                 -> T { %9 = add(%a, %a); nn.relu(%9) };
             %0(%x) }""",
    ),
    "inputs used twice": (
        ["square"],
        """def @main(%x: T, %y: T) {
             %0 = add(%x, %y); %1 = subtract(%x, %y); multiply(%0, %1) }""",
        """def @main(%x: T, %y: T) {
             %0 = fn (%a: T, %b: T, PartitionedFromPattern="add_subtract_multiply_",
                      Composite="square") -> T {
               %8 = add(%a, %b); %9 = subtract(%a, %b); multiply(%8, %9) };
             %0(%x, %y) }""",
    ),
    "inputs that differ where the pattern has one": (
        ["square"],
        """def @main(%x: T, %y: T) {
             %0 = add(%x, %y); %1 = subtract(%x, %x); multiply(%0, %1) }""",
        """def @main(%x: T, %y: T) {
             %0 = add(%x, %y); %1 = subtract(%x, %x); multiply(%0, %1) }""",
    ),
    "a constant of the pattern stays inside": (
        ["scaled"],
        "def @main(%x: T) { multiply(%x, 2f) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="multiply_", Composite="scaled") -> T {
               multiply(%a, 2f) };
             %0(%x) }""",
    ),
    "a constant for a wildcard is an input": (
        ["sum_relu"],
        "def @main(%x: T) { %0 = add(%x, 2f); nn.relu(%0) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, %b: float32, PartitionedFromPattern="add_nn.relu_",
                      Composite="sum_relu") -> T { %9 = add(%a, %b); nn.relu(%9) };
             %0(%x, 2f) }""",
    ),
    "an option that is there": (
        ["maybe_relu"],
        "def @main(%x: T, %y: T) { %0 = add(%x, %y); %1 = exp(%0); nn.relu(%1) }",
        """def @main(%x: T, %y: T) {
             %0 = fn (%a: T, %b: T, PartitionedFromPattern="add_exp_nn.relu_",
                      Composite="maybe_relu") -> T {
               %8 = add(%a, %b); %9 = exp(%8); nn.relu(%9) };
             %0(%x, %y) }""",
    ),
    "an option that is not there": (
        ["maybe_relu"],
        "def @main(%x: T, %y: T) { %0 = add(%x, %y); exp(%0) }",
        """def @main(%x: T, %y: T) {
             %0 = fn (%a: T, %b: T, PartitionedFromPattern="add_exp_", Composite="maybe_relu")
                 -> T { %8 = add(%a, %b); exp(%8) };
             %0(%x, %y) }""",
    ),
    "a tuple": (
        ["pair"],
        "def @main(%x: T) { %0 = exp(%x); %1 = (%0, %x); concatenate(%1, axis=1) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_Tuple_concatenate_", Composite="pair") {
               %8 = exp(%a); %9 = (%8, %a); concatenate(%9, axis=1) };
             %0(%x) }""",
    ),
    "a field of a tuple": (
        ["first"],
        "def @main(%x: T) { %0 = split(%x, indices_or_sections=[1]); %1 = %0.0; exp(%1) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="split_TupleGetItem0_exp_",
                      Composite="first") {
               %8 = split(%a, indices_or_sections=[1]); %9 = %8.0; exp(%9) };
             %0(%x) }""",
    ),
    "another field of a tuple": (
        ["first"],
        "def @main(%x: T) { %0 = split(%x, indices_or_sections=[1]); %1 = %0.1; exp(%1) }",
        "def @main(%x: T) { %0 = split(%x, indices_or_sections=[1]); %1 = %0.1; exp(%1) }",
    ),
    "the first pattern wins": (
        ["exp_log", "log_tanh"],
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); tanh(%1) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
               %9 = exp(%a); log(%9) };
             %1 = %0(%x); tanh(%1) }""",
    ),
    "the first pattern wins, the other way round": (
        ["log_tanh", "exp_log"],
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); tanh(%1) }",
        """def @main(%x: T) {
             %0 = exp(%x);
             %1 = fn (%a: T, PartitionedFromPattern="log_tanh_", Composite="log_tanh") -> T {
               %9 = log(%a); tanh(%9) };
             %1(%0) }""",
    ),
    "the longer pattern first": (
        ["exp_log_tanh", "exp_log", "log_tanh"],
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); tanh(%1) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_log_tanh_", Composite="exp_log_tanh")
                 -> T { %8 = exp(%a); %9 = log(%8); tanh(%9) };
             %0(%x) }""",
    ),
    "patterns that meet": (
        ["exp_log", "sum_relu"],
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); %2 = add(%1, %x); nn.relu(%2) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
               %9 = exp(%a); log(%9) };
             %1 = %0(%x);
             %2 = fn (%a: T, %b: T, PartitionedFromPattern="add_nn.relu_", Composite="sum_relu")
                 -> T { %8 = add(%a, %b); nn.relu(%8) };
             %2(%1, %x) }""",
    ),
    "nothing is matched inside what was": (
        ["exp_log", "exp"],
        "def @main(%x: T) { %0 = exp(%x); log(%0) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
               %9 = exp(%a); log(%9) };
             %0(%x) }""",
    ),
    "the result of one pattern for another": (
        ["exp_log", "exp"],
        "def @main(%x: T) { %0 = exp(%x); %1 = log(%0); exp(%1) }",
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
               %9 = exp(%a); log(%9) };
             %1 = %0(%x);
             %2 = fn (%a: T, PartitionedFromPattern="exp_", Composite="exp") -> T { exp(%a) };
             %2(%1) }""",
    ),
    "a branch": (
        ["exp_log"],
        """def @main(%c: bool, %x: T) {
             if (%c) { %0 = exp(%x); log(%0) } else { %x } }""",
        """def @main(%c: bool, %x: T) {
             if (%c) {
               %0 = fn (%a: T, PartitionedFromPattern="exp_log_", Composite="exp_log") -> T {
                 %9 = exp(%a); log(%9) };
               %0(%x) } else { %x } }""",
    ),
    "functions of the module": (
        ["exp"],
        "def @g(%p: T) -> T { exp(%p) } def @main(%x: T) -> T { @g(%x) }",
        """def @g(%p: T) -> T {
             %0 = fn (%a: T, PartitionedFromPattern="exp_", Composite="exp") -> T { exp(%a) };
             %0(%p) }
           def @main(%x: T) -> T { @g(%x) }""",
    ),
    "a function for an external compiler": (
        ["exp"],
        """def @g(%p: T, Compiler="z") -> T { exp(%p) } def @main(%x: T) -> T { @g(%x) }""",
        """def @g(%p: T, Compiler="z") -> T { exp(%p) } def @main(%x: T) -> T { @g(%x) }""",
    ),
    "no patterns": ([], "def @main(%x: T) { exp(%x) }", "def @main(%x: T) { exp(%x) }"),
}


def _merge(names: list[str], mod: relay.IRModule) -> relay.IRModule:
    return MergeComposite([(name, PATTERNS[name]) for name in names])(mod)


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", CASES)
def test_composites(case: str) -> None:
    names, before, after = CASES[case]
    check(_merge(names, program(before)), after)


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", CASES)
def test_composites_change_no_result(case: str) -> None:
    names, before, _after = CASES[case]
    check_same_results(program(before), _merge(names, program(before)))


@pytest.mark.parametrize("case", CASES)
def test_a_second_run_finds_nothing(case: str) -> None:
    names, _before, after = CASES[case]
    mod = program(after)
    assert MergeComposite([(name, PATTERNS[name]) for name in names]).run(mod) == (mod, False)


SOFTMAX = "def @main(%x: T) { %0 = nn.softmax(%x, axis=0); exp(%0) }"


@pytest.mark.parametrize(
    ("accepts", "taken"),
    [
        (lambda match: match.args[0].attrs.axis == 0, True),
        (lambda match: match.args[0].attrs.axis == 1, False),
        (lambda match: match.checked_type.concrete_shape == (2, 3), True),
        (lambda match: match.args[0].args[0].checked_type.dtype == "float16", False),
        (lambda match: match.op.name == "exp", True),
        (lambda match: False, False),
    ],
)
def test_a_check_gets_the_typed_match(accepts: Any, taken: bool) -> None:
    pattern = is_op("exp")(is_op("nn.softmax")(wildcard()))
    after = MergeComposite([("soft", pattern, accepts)])(program(SOFTMAX))
    whole = """def @main(%x: T) {
        %0 = fn (%a: T, PartitionedFromPattern="nn.softmax_exp_", Composite="soft") -> T {
          %9 = nn.softmax(%a, axis=0); exp(%9) };
        %0(%x) }"""
    check(after, whole if taken else SOFTMAX)


def test_what_a_check_refuses_is_left_to_later_patterns() -> None:
    table = [("no", PATTERNS["exp_log"], lambda match: False), ("yes", PATTERNS["exp"])]
    check(
        MergeComposite(table)(program("def @main(%x: T) { %0 = exp(%x); log(%0) }")),
        """def @main(%x: T) {
             %0 = fn (%a: T, PartitionedFromPattern="exp_", Composite="yes") -> T { exp(%a) };
             %1 = %0(%x); log(%1) }""",
    )


def test_a_check_sees_types_of_what_earlier_patterns_made() -> None:
    seen = []

    def accepts(match: Any) -> bool:
        seen.append(match.args[0].checked_type)
        return True

    table = [("first", PATTERNS["exp"]), ("second", is_op("log")(wildcard()), accepts)]
    MergeComposite(table)(program("def @main(%x: T) { %0 = exp(%x); log(%0) }"))
    assert seen == [relay.TensorType((2, 3))]


def test_pattern_tables_are_registered_by_name() -> None:
    @register_pattern_table("chip")
    def table() -> list[tuple[Any, ...]]:
        return [("chip.exp_log", PATTERNS["exp_log"])]

    found = get_pattern_table("chip")
    assert found == table()
    assert get_pattern_table("no such chip") is None
    assert register_pattern_table("other", table) is table
    assert get_pattern_table("other") == table()
    after = MergeComposite(found)(program("def @main(%x: T) { %0 = exp(%x); log(%0) }"))
    assert after["main"].body.op.attrs["Composite"] == "chip.exp_log"


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_a_table_is_any_iterable(kind: Any) -> None:
    table = kind([("one", PATTERNS["exp"])])
    after = MergeComposite(table)(program("def @main(%x: T) { exp(%x) }"))
    assert after["main"].body.op.attrs["Composite"] == "one"
