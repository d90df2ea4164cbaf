"""Annotation of what targets can run, against modules written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.regions import check, check_same_results, program, supported

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.ir.attrs import register_op_attr, reset_op_attr
from serde.relay.ir.compare import assert_structural_equal
from serde.relay.ir.registry import all_ops, get
from serde.relay.ir.schema import TensorSpec
from serde.relay.transform import AnnotateTarget, PartitionGraph

BOTH = pytest.mark.parametrize("everything", [True, False])
TARGETS: dict[str, Any] = {"a": ["nn.relu", "add"], "b": ["tanh", "add"]}

SAME_EITHER_WAY = {
    "one operator": (
        ["a"],
        "def @main(%x: T) { nn.relu(%x) }",
        "def @main(%x: T) { %0 = nn.relu(b[a](%x)); e[a](%0) }",
    ),
    "an operator of no target": (
        ["a"],
        "def @main(%x: T) { exp(%x) }",
        "def @main(%x: T) { %0 = exp(b[default](%x)); e[default](%0) }",
    ),
    "two in a row": (
        ["a"],
        "def @main(%x: T) { %0 = nn.relu(%x); add(%0, %x) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %2 = b[a](%1); %3 = b[a](%x);
             %4 = add(%2, %3); e[a](%4) }""",
    ),
    "each use has an end of its own": (
        ["a"],
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = exp(%0); %2 = log(%0); subtract(%1, %2) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x));
             %1 = e[a](%0); %2 = exp(b[default](%1)); %3 = e[default](%2);
             %4 = e[a](%0); %5 = log(b[default](%4)); %6 = e[default](%5);
             %7 = subtract(b[default](%3), b[default](%6)); e[default](%7) }""",
    ),
    "one value twice": (
        ["a"],
        "def @main(%x: T) { %0 = nn.relu(%x); add(%0, %0) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0);
             %3 = add(b[a](%1), b[a](%2)); e[a](%3) }""",
    ),
    "the first target that can": (
        ["b", "a"],
        "def @main(%x: T) { %0 = tanh(%x); %1 = nn.relu(%0); add(%1, %x) }",
        """def @main(%x: T) {
             %0 = tanh(b[b](%x)); %1 = e[b](%0); %2 = nn.relu(b[a](%1)); %3 = e[a](%2);
             %4 = add(b[b](%3), b[b](%x)); e[b](%4) }""",
    ),
    "the other order of targets": (
        ["a", "b"],
        "def @main(%x: T) { %0 = tanh(%x); add(%0, %x) }",
        """def @main(%x: T) {
             %0 = tanh(b[b](%x)); %1 = e[b](%0);
             %2 = add(b[a](%1), b[a](%x)); e[a](%2) }""",
    ),
    "a target that nothing is registered for": (
        ["nobody"],
        "def @main(%x: T) { nn.relu(%x) }",
        "def @main(%x: T) { %0 = nn.relu(b[default](%x)); e[default](%0) }",
    ),
    "a constant": (
        ["a"],
        "def @main(%x: T) { add(%x, 1f) }",
        "def @main(%x: T) { %0 = add(b[a](%x), b[a](1f)); e[a](%0) }",
    ),
    "what is made of nothing has no end": (
        ["a"],
        "def @main(%x: T) { %0 = zeros(shape=[2, 3], dtype=F); add(%x, %0) }",
        """def @main(%x: T) {
             %0 = zeros(shape=[2, 3], dtype=F); %1 = add(b[a](%x), b[a](%0)); e[a](%1) }""",
    ),
    "only what is made of nothing": (
        ["a"],
        "def @main() { zeros(shape=[2, 3], dtype=F) }",
        "def @main() { zeros(shape=[2, 3], dtype=F) }",
    ),
    "a variable alone": (["a"], "def @main(%x: T) { %x }", "def @main(%x: T) { %x }"),
    "an empty tuple": (["a"], "def @main() { () }", "def @main() { () }"),
    "a composite function": (
        ["a"],
        """def @main(%x: T, %y: T) {
             %0 = fn (%p: T, %q: T, Composite="a.sum") -> T { %9 = exp(%p); log(%9) };
             %0(%x, %y) }""",
        """def @main(%x: T, %y: T) {
             %0 = fn (%p: T, %q: T, Composite="a.sum") -> T { %9 = exp(%p); log(%9) };
             %1 = %0(b[a](%x), b[a](%y)); e[a](%1) }""",
    ),
    "a composite function of another target": (
        ["a"],
        """def @main(%x: T) {
             %0 = fn (%p: T, Composite="c.relu") -> T { nn.relu(%p) }; %0(%x) }""",
        """def @main(%x: T) {
             %0 = fn (%p: T, Composite="c.relu") -> T { nn.relu(%p) };
             %1 = %0(b[default](%x)); e[default](%1) }""",
    ),
    "a composite function whose name has no target": (
        ["a"],
        """def @main(%x: T) { %0 = fn (%p: T, Composite="a") -> T { nn.relu(%p) }; %0(%x) }""",
        """def @main(%x: T) {
             %0 = fn (%p: T, Composite="a") -> T { nn.relu(%p) };
             %1 = %0(b[default](%x)); e[default](%1) }""",
    ),
    "a composite function before an operator": (
        ["a"],
        """def @main(%x: T) {
             %0 = fn (%p: T, Composite="a.exp") -> T { exp(%p) }; %1 = %0(%x); nn.relu(%1) }""",
        """def @main(%x: T) {
             %0 = fn (%p: T, Composite="a.exp") -> T { exp(%p) };
             %1 = %0(b[a](%x)); %2 = e[a](%1); %3 = nn.relu(b[a](%2)); e[a](%3) }""",
    ),
    "a function that is called": (
        ["a"],
        "def @main(%x: T) { %0 = fn (%p: T) { nn.relu(%p) }; %0(%x) }",
        """def @main(%x: T) {
             %0 = fn (%p: T) { %8 = nn.relu(b[a](%p)); e[a](%8) };
             %1 = %0(b[default](%x)); e[default](%1) }""",
    ),
    "a function of the module": (
        ["a"],
        "def @g(%p: T) -> T { nn.relu(%p) } def @main(%x: T) -> T { @g(%x) }",
        """def @g(%p: T) -> T { %8 = nn.relu(b[a](%p)); e[a](%8) }
           def @main(%x: T) -> T { %1 = @g(b[default](%x)); e[default](%1) }""",
    ),
    "a function for an external compiler": (
        ["a"],
        """def @g(%p: T, Compiler="z") -> T { nn.relu(%p) } def @main(%x: T) -> T { @g(%x) }""",
        """def @g(%p: T, Compiler="z") -> T { nn.relu(%p) }
           def @main(%x: T) -> T { %1 = @g(b[default](%x)); e[default](%1) }""",
    ),
    "branches": (
        ["a"],
        """def @main(%c: bool, %x: T) {
             %0 = if (%c) { nn.relu(%x) } else { exp(%x) }; nn.relu(%0) }""",
        """def @main(%c: bool, %x: T) {
             %0 = if (%c) { %5 = nn.relu(b[a](%x)); e[a](%5) }
                  else { %6 = exp(b[default](%x)); e[default](%6) };
             %1 = nn.relu(b[a](%0)); e[a](%1) }""",
    ),
    "a condition": (
        ["a"],
        """def @main(%p: float32, %x: T) {
             %0 = less(%p, 1f); if (%0) { %x } else { nn.relu(%x) } }""",
        """def @main(%p: float32, %x: T) {
             %0 = less(b[default](%p), b[default](1f)); %1 = e[default](%0);
             if (%1) { %x } else { %5 = nn.relu(b[a](%x)); e[a](%5) } }""",
    ),
    "a branch made of nothing": (
        ["a"],
        """def @main(%c: bool, %x: T) {
             if (%c) { zeros(shape=[2, 3], dtype=F) } else { nn.relu(%x) } }""",
        """def @main(%c: bool, %x: T) {
             if (%c) { zeros(shape=[2, 3], dtype=F) }
             else { %5 = nn.relu(b[a](%x)); e[a](%5) } }""",
    ),
    "what an earlier run did": (
        ["a"],
        "def @main(%x: T) { %0 = exp(b[c](%x)); %1 = e[c](%0); nn.relu(%1) }",
        """def @main(%x: T) {
             %0 = exp(b[c](%x)); %1 = e[c](%0); %2 = nn.relu(b[a](%1)); e[a](%2) }""",
    ),
    "what an earlier run left to nobody": (
        ["a"],
        "def @main(%x: T) { %0 = nn.relu(b[default](%x)); e[default](%0) }",
        "def @main(%x: T) { %0 = nn.relu(b[a](%x)); e[a](%0) }",
    ),
}


@BOTH
@pytest.mark.parametrize("case", SAME_EITHER_WAY)
def test_annotations(case: str, everything: bool) -> None:
    targets, before, after = SAME_EITHER_WAY[case]
    with supported(**TARGETS):
        check(AnnotateTarget(targets, everything)(program(before)), after)


TUPLES = {
    "fields of one target": (
        "def @main(%x: T) { %0 = nn.relu(%x); (%0, %0) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0);
             %3 = (b[a](%1), b[a](%2)); e[a](%3) }""",
        "def @main(%x: T) { %0 = nn.relu(b[a](%x)); (e[a](%0), e[a](%0)) }",
    ),
    "fields of two targets": (
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = exp(%x); (%0, %1) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = exp(b[default](%x)); %2 = e[a](%0); %3 = e[default](%1);
             %4 = (b[default](%2), b[default](%3)); e[default](%4) }""",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = exp(b[default](%x)); (e[a](%0), e[default](%1)) }""",
    ),
    "a field that is a variable": (
        "def @main(%x: T) { %0 = nn.relu(%x); (%0, %x) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %2 = e[a](%0);
             %4 = (b[default](%2), b[default](%x)); e[default](%4) }""",
        "def @main(%x: T) { %0 = nn.relu(b[a](%x)); (e[a](%0), %x) }",
    ),
    "a field of a tuple": (
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = (%0, %0); nn.relu(%1.0) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0);
             %3 = (b[a](%1), b[a](%2)); %4 = e[a](%3); %5 = b[a](%4); %6 = %5.0;
             %7 = e[a](%6); %8 = nn.relu(b[a](%7)); e[a](%8) }""",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = (e[a](%0), e[a](%0));
             %2 = %1.0; %3 = nn.relu(b[a](%2)); e[a](%3) }""",
    ),
    "an operand that is a tuple": (
        "def @main(%x: T) { %0 = nn.relu(%x); %1 = (%0, %x); concatenate(%1) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %2 = (b[default](%1), b[default](%x));
             %3 = e[default](%2); %4 = concatenate(b[default](%3)); e[default](%4) }""",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %2 = (%1, %x);
             %4 = concatenate(b[default](%2)); e[default](%4) }""",
    ),
    "a result that is a tuple": (
        "def @main(%x: T) { %0 = split(%x, indices_or_sections=[1]); %1 = %0.1; nn.relu(%1) }",
        """def @main(%x: T) {
             %0 = split(b[default](%x), indices_or_sections=[1]); %1 = e[default](%0);
             %2 = b[default](%1); %3 = %2.1; %4 = e[default](%3); %5 = nn.relu(b[a](%4)); e[a](%5)
           }""",
        """def @main(%x: T) {
             %0 = split(b[default](%x), indices_or_sections=[1]); %1 = e[default](%0);
             %2 = %1.1; %3 = nn.relu(b[a](%2)); e[a](%3) }""",
    ),
    "a let": (
        "def @main(%x: T) { let %v = nn.relu(%x); nn.relu(%v) }",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %9 = e[a](%0); let %v: T = b[a](%9);
             %1 = nn.relu(b[a](%v)); e[a](%1) }""",
        """def @main(%x: T) {
             %0 = nn.relu(b[a](%x)); %9 = e[a](%0); let %v: T = b[a](%9);
             %1 = nn.relu(b[a](%v)); e[a](%1) }""",
    ),
    "a call of a variable": (
        """def @main(%x: T) {
             let %f = fn (%p: T) -> T { nn.relu(%p) }; %0 = nn.relu(%x); %f(%0) }""",
        """def @main(%x: T) {
             let %f = fn (%p: T) -> T { %8 = nn.relu(b[a](%p)); e[a](%8) };
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %2 = %f(b[default](%1)); e[default](%2) }""",
        """def @main(%x: T) {
             let %f = fn (%p: T) -> T { %8 = nn.relu(b[a](%p)); e[a](%8) };
             %0 = nn.relu(b[a](%x)); %1 = e[a](%0); %f(%1) }""",
    ),
}


@BOTH
@pytest.mark.parametrize("case", TUPLES)
def test_annotations_of_what_is_no_operator(case: str, everything: bool) -> None:
    before, *after = TUPLES[case]
    wanted = after[0] if everything else after[1]
    with supported(**TARGETS):
        check(AnnotateTarget("a", everything)(program(before)), wanted)


def test_a_loop_of_a_let_that_calls_itself() -> None:
    before = """def @main(%x: T) {
      let %loop = fn (%i: int32, %s: T) -> T {
        %0 = less(%i, 10); if (%0) { %1 = add(%s, %x); %loop(%i, %1) } else { %s } };
      %loop(0, %x) }"""
    after = """def @main(%x: T) {
      let %loop = fn (%i: int32, %s: T) -> T {
        %0 = less(b[default](%i), b[default](10)); %4 = e[default](%0);
        if (%4) { %1 = add(b[a](%s), b[a](%x)); %2 = e[a](%1); %loop(%i, %2) } else { %s } };
      %loop(0, %x) }"""
    with supported(**TARGETS):
        check(AnnotateTarget("a", False)(program(before)), after)


@BOTH
@pytest.mark.parametrize("targets", [("a", "b"), ("b", "a")])
def test_runs_for_one_target_each_are_a_run_for_both(
    targets: tuple[str, str], everything: bool
) -> None:
    mod = program(
        """def @main(%x: T) {
             %0 = nn.relu(%x); %1 = tanh(%0); %2 = exp(%1); %3 = nn.relu(%2); (%3, %1, %x) }"""
    )
    with supported(**TARGETS):
        each = AnnotateTarget(targets[1], everything)(AnnotateTarget(targets[0], everything)(mod))
        assert_structural_equal(each, AnnotateTarget(targets, everything)(mod))


@BOTH
def test_a_second_run_changes_nothing(everything: bool) -> None:
    with supported(**TARGETS):
        once = AnnotateTarget("a", everything)(program("def @main(%x: T) { nn.relu(%x) }"))
        assert_structural_equal(AnnotateTarget("a", everything)(once), once)


@BOTH
@pytest.mark.parametrize("case", [*SAME_EITHER_WAY, *TUPLES])
def test_annotations_change_no_result(case: str, everything: bool) -> None:
    text = SAME_EITHER_WAY[case][1] if case in SAME_EITHER_WAY else TUPLES[case][0]
    before = program(text)
    with supported(**TARGETS):
        after = AnnotateTarget(["a", "b"], everything)(before)
    check_same_results(before, after)
    check_same_results(before, PartitionGraph()(after))


@pytest.mark.parametrize(
    ("accepts", "target"),
    [
        (lambda call: call.args[0].checked_type.dtype == "float32", "a"),
        (lambda call: call.args[0].checked_type.dtype == "int8", "default"),
        (lambda call: call.checked_type.concrete_shape == (2, 3), "a"),
        (lambda call: call.op.name == "nn.relu", "a"),
        (lambda call: False, "default"),
        (lambda call: isinstance(call.args[0], relay.Var), "a"),
    ],
)
def test_a_check_sees_the_typed_call_without_annotations(accepts: Any, target: str) -> None:
    with supported(a={"nn.relu": accepts}):
        check(
            AnnotateTarget("a")(program("def @main(%x: T) { nn.relu(%x) }")),
            f"def @main(%x: T) {{ %0 = nn.relu(b[{target}](%x)); e[{target}](%0) }}",
        )


def test_attributes_decide() -> None:
    text = "def @main(%x: T) { %0 = nn.softmax(%x, axis=0); nn.softmax(%0, axis=1) }"
    with supported(a={"nn.softmax": lambda call: call.attrs.axis == 1}):
        check(
            AnnotateTarget("a")(program(text)),
            """def @main(%x: T) {
                 %0 = nn.softmax(b[default](%x), axis=0); %1 = e[default](%0);
                 %2 = nn.softmax(b[a](%1), axis=1); e[a](%2) }""",
        )


def test_an_operand_that_is_absent_stays_absent() -> None:
    x = relay.var("x", shape=(1, 2, 4, 8))
    mod = relay.transform.InferType()(
        relay.IRModule.from_expr(relay.serde.attention(x, x, x, scale=1.0))
    )
    with supported(a=["serde.attention"]):
        after = PartitionGraph()(AnnotateTarget("a")(mod))
    assert [v.name_hint for v in after.get_global_vars()] == ["main", "tvmgen_default_a_main_0"]
    assert len(after["tvmgen_default_a_main_0"].params) == 1
    check_same_results(mod, after)


def test_a_decorator_registers_a_check() -> None:
    @register_op_attr("nn.relu", "target.decorated")
    def accepts(_call: Any) -> bool:
        return True

    try:
        assert get("nn.relu").get_attr("target.decorated") is accepts
        with pytest.raises(RelayError, match="level"):
            register_op_attr("nn.relu", "target.decorated", accepts)
        register_op_attr("nn.relu", "target.decorated", lambda call: False, 11)
        found = AnnotateTarget("decorated")(program("def @main(%x: T) { nn.relu(%x) }"))
        check(found, "def @main(%x: T) { %0 = nn.relu(b[default](%x)); e[default](%0) }")
    finally:
        reset_op_attr("nn.relu", "target.decorated")


@pytest.mark.parametrize("kind", ["begin", "end"])
@pytest.mark.parametrize(
    "type_", ["float32", "Tensor[(4), int8]", "(T, T)", "(Tensor[(1), bool], (T, float32))"]
)
def test_an_annotation_has_the_type_of_what_it_marks(kind: str, type_: str) -> None:
    mod = program(f'def @main(%x: {type_}) {{ annotation.compiler_{kind}(%x, compiler="onnx") }}')
    assert mod["main"].body.checked_type == mod["main"].params[0].checked_type
    assert_structural_equal(relay.fromtext(mod.astext(strict=True)), mod)


@pytest.mark.parametrize("kind", ["compiler_begin", "compiler_end"])
def test_the_builder_of_an_annotation(kind: str) -> None:
    x = relay.var("x", shape=(2, 3))
    node = getattr(relay.annotation, kind)(x, "dnnl")
    assert isinstance(node, relay.Call)
    assert node.op is get(f"annotation.{kind}")
    assert node.args == (x,)
    assert node.attrs.compiler == "dnnl"
    pair = getattr(relay.annotation, kind)(relay.Tuple([x, x]), compiler="dnnl")
    assert isinstance(pair, relay.Call)


@pytest.mark.parametrize("name", ["annotation.compiler_begin", "annotation.compiler_end"])
def test_the_kernel_of_an_annotation_returns_what_it_gets(name: str) -> None:
    definition = all_ops()[name]
    value = np.arange(6.0).reshape(2, 3)
    assert definition.kernel(value, compiler="a") is value
    assert isinstance(definition.samples[0].operands[0], TensorSpec)
