"""Every pass on many modules: the numbers stay, the result verifies, and a change is told."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from support.programs import build_program, programs
from support.runtime import run_onnx
from support.samples import as_arrays, build
from support.tiers import first_of

import serde.relay as relay
from serde.core.report import Report
from serde.errors import RelayError, TypeInferenceError
from serde.onnx.exporter import from_relay
from serde.relay.ir.expr import Call, Expr, Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import OpDef, Sample, all_ops
from serde.relay.ir.traits import Elementwise, Layout, Reduction, SameAxes
from serde.relay.ir.types import FuncType, TensorType
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import (
    CanonicalizeOps,
    DeadCodeElimination,
    DynamicToStatic,
    EliminateCommonSubexpr,
    EvaluateConstants,
    FlattenAtrousConv,
    FoldBatchNorm,
    FoldConstant,
    FoldExplicitPadding,
    InferType,
    InlineCalls,
    MergeEqualNodes,
    Pass,
    RemoveDeadCode,
    RemoveIdentities,
    RemoveUnusedFunctions,
    Sequential,
    SimplifyExpr,
    SimplifyExprPostAlterOp,
    SimplifyInference,
    ToGraphNormalForm,
    channels_first,
)
from serde.relay.transform.layout_rules import RULES

PASSES: dict[str, Pass] = {
    each.name: each
    for each in (
        CanonicalizeOps(), RemoveDeadCode(), DynamicToStatic(), MergeEqualNodes(),
        FlattenAtrousConv(),
        EvaluateConstants(), InlineCalls(opaque=True),
        RemoveUnusedFunctions(), RemoveIdentities(), FoldBatchNorm(), ToGraphNormalForm(),
        channels_first(), DeadCodeElimination(True), EliminateCommonSubexpr(), FoldConstant(),
        FoldExplicitPadding(), SimplifyExpr(), SimplifyExprPostAlterOp(), SimplifyInference(),
    )
}  # fmt: skip

TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}
"""Sums may be taken in another order; all else must be the same to the bit."""

WALKS = ("EliminateCommonSubexpr", "FoldConstant", "ToGraphNormalForm")
"""Passes that walk a graph each in another way."""


def _samples() -> list[Any]:
    """Samples of the operators that a pass looks at, by pass."""
    found = []
    for name, definition in all_ops().items():
        wanted = []
        if name in RULES or definition.has(Elementwise, Layout, Reduction, SameAxes):
            wanted.append("TransposeToLayout")
        if name.startswith("dyn."):
            wanted.append("DynamicToStatic")
        if name == "nn.bias_add":
            wanted.append("CanonicalizeOps")
        found += [
            pytest.param(
                PASSES[each],
                definition,
                given,
                id=f"{each}-{name}-{index}",
                marks=[pytest.mark.wide] if index else [],
            )
            for each in wanted
            for index, given in enumerate(definition.samples)
        ]
    return found


def _changed(each: Pass, mod: IRModule) -> IRModule:
    """Return what a pass makes of a module, having checked what it says about it."""
    after, changed = each.run(mod)
    verify(after)
    assert changed == (after is not mod)
    return after


def _assert_agree(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            _assert_agree(ours, theirs)
        return
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.name not in TOLERANCE:
        assert found.tobytes() == wanted.tobytes()
        return
    tolerance = TOLERANCE[wanted.dtype.name]
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("each", "definition", "given"), _samples())
def test_samples_keep_their_numbers(each: Pass, definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    mod = InferType()(IRModule({"main": built.function}))
    after = _changed(each, mod)
    _assert_agree(as_arrays(run(after["main"], built.arrays)), built.run())


VALUES = [
    name
    for name in sorted(set(programs()) - {"same_names"})
    if all(isinstance(param.type, TensorType) for param in build_program(name)["main"].params)
]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("each", PASSES)
def test_programs_of_tvm_keep_their_numbers(each: str, name: str) -> None:
    mod = InferType()(build_program(name))
    after = _changed(PASSES[each], mod)
    rng = np.random.default_rng(len(name))
    inputs = [_random(rng, param) for param in mod["main"].params]
    if isinstance(mod["main"].checked_type.ret_type, FuncType):
        pytest.skip("the result is a function")
    _assert_agree(_values(after, inputs), _values(mod, inputs))


def _values(mod: IRModule, inputs: list[np.ndarray]) -> Any:
    return relay.create_executor("graph", mod=mod).evaluate()(*inputs)


def _random(rng: np.random.Generator, param: Var) -> np.ndarray:
    type_ = param.type
    assert isinstance(type_, TensorType)
    shape = [dim if isinstance(dim, int) else 2 for dim in type_.shape]
    return rng.uniform(0.5, 2, shape).astype(type_.dtype)


def _classifier() -> Function:
    """Channels last, parallel branches, a split, casts, dropout, norms and a softmax."""
    x = relay.var("x", shape=(1, 8, 8, 3))
    weights: list[Var] = []

    def weight(*shape: int) -> Var:
        weights.append(relay.var(f"w{len(weights)}", shape=shape))
        return weights[-1]

    def conv(data: Expr, filters: int) -> Expr:
        kernel = weight(3, 3, int(data.checked_type.shape[-1]), filters)
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return relay.nn.conv2d(data, kernel, padding=(1, 1), **layouts)

    stem = relay.nn.batch_norm(conv(x, 6), *[weight(6) for _ in range(4)], axis=3)[0]
    stem = relay.nn.relu(stem)
    branches = [relay.nn.relu(relay.nn.bias_add(conv(stem, n), weight(n), 3)) for n in (4, 5)]
    left, right = relay.split(relay.concatenate([*branches, stem], axis=3), (6,), axis=3)
    narrow = relay.cast(relay.clip(right, 0.0, 1.0), "float16")
    wide = relay.cast(narrow, "float32")
    pooled = relay.nn.max_pool2d(left, (2, 2), (2, 2), layout="NHWC")
    flat = relay.nn.batch_flatten(relay.nn.dropout(pooled, 0.3))
    heads = [relay.nn.dense(flat, weight(4, 96)) for _ in range(2)]
    scores = relay.nn.softmax(relay.add(relay.tanh(heads[0]), relay.exp(heads[1])))
    extra = relay.mean(relay.multiply(wide, relay.add(wide, relay.const(1.0))), axis=(1, 2, 3))
    return Function([x, *weights], relay.Tuple([scores, extra]))


def _detector(*, branches: bool = False) -> Function:
    """Channels first, shared values, a let and, where asked for, an if."""
    x = relay.var("x", shape=(1, 4, 6, 6))
    w = relay.var("w", shape=(4, 4, 1, 1))
    y = relay.nn.conv2d(x, w)
    up = relay.nn.upsampling(y, 2, 2, layout="NCHW")
    down = relay.nn.avg_pool2d(up, (2, 2), (2, 2))
    v = relay.var("v")
    above = relay.greater(relay.sum(down), relay.const(0.0))
    ends = relay.add(v, down), relay.subtract(v, y)
    chosen = relay.If(above, *ends) if branches else relay.where(above, *ends)
    body = relay.Let(v, relay.sigmoid(relay.add(down, y)), chosen)
    return Function([x, w], body)


NETS = {
    "classifier": _classifier,
    "detector": _detector,
    "branches": lambda: _detector(branches=True),
}


def _net(name: str) -> tuple[IRModule, list[np.ndarray]]:
    mod = InferType()(IRModule({"main": NETS[name]()}))
    rng = np.random.default_rng(7)
    return mod, [_random(rng, param) for param in mod["main"].params]


@pytest.mark.thin(2)
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("each", PASSES)
def test_nets_keep_their_numbers(each: str, net: str) -> None:
    mod, inputs = _net(net)
    after = _changed(PASSES[each], mod)
    found, wanted = (as_arrays(run(m["main"], inputs)) for m in (after, mod))
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("net", ["classifier", "detector"])
@pytest.mark.parametrize("each", PASSES)
def test_nets_export_the_same_numbers(each: str, net: str) -> None:
    mod, inputs = _net(net)
    wanted = as_arrays(run(mod["main"], inputs))
    after = (InlineCalls(opaque=True), ToGraphNormalForm(), RemoveIdentities())
    plain = Sequential([PASSES[each], *after]).run(mod)[0]
    names = tuple(param.name_hint for param in plain["main"].params)
    model = RelayModel(plain, {}, ModelMeta(names, tuple(f"y{i}" for i in range(len(wanted)))))
    proto = from_relay(model, 17, False, Report()).complete()
    _, found = run_onnx(proto.SerializeToString(), dict(zip(names, inputs, strict=True)))
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.wide
@pytest.mark.parametrize("each", first_of(PASSES, WALKS))
def test_a_long_chain_is_walked_without_recursion(each: str) -> None:
    y: Expr = relay.var("x", shape=(2,))
    for _ in range(sys.getrecursionlimit()):
        y = relay.tanh(relay.negative(y))
    after = _changed(PASSES[each], InferType()(IRModule.from_expr(y)))
    calls = [node for node in post_order(after["main"]) if isinstance(node, Call)]
    assert len(calls) == 2 * sys.getrecursionlimit()


def test_functions_that_no_entry_reaches_are_removed() -> None:
    x = relay.var("x", shape=(2,))
    names = [relay.GlobalVar(name) for name in ("main", "used", "other")]
    y, z = (relay.var(name, shape=(2,)) for name in "yz")
    functions = {
        names[0]: Function([x], Call(names[1], [x])),
        names[1]: Function([y], relay.exp(y)),
        names[2]: Function([z], relay.abs(z)),
    }
    mod = InferType()(IRModule(functions))
    after, changed = RemoveUnusedFunctions().run(mod)
    assert changed
    assert [v.name_hint for v in after.functions] == ["main", "used"]
    assert RemoveUnusedFunctions(("main", "other")).run(mod) == (mod, False)
    with pytest.raises(RelayError, match="no function is called"):
        RemoveUnusedFunctions(("absent",))(mod)


def test_a_pass_that_went_is_refused_by_its_name() -> None:
    with pytest.raises(
        AttributeError, match=r"FoldScaleAxis is not.*went with 1\.1: .*tvm-differences"
    ):
        _ = relay.transform.FoldScaleAxis
    assert not hasattr(relay.transform, "FoldScale")


def test_an_error_of_types_says_which_call_it_is_about() -> None:
    expr: Expr = relay.Var("data")
    for index in range(1000):
        expr = relay.exp(expr) if index != 400 else relay.add(expr, relay.const(np.ones(7)))
    mod = relay.IRModule({"helper": Function(relay.analysis.free_vars(expr), expr)})
    x = relay.var("x", shape=(2, 3))
    mod["main"] = Function([x], Call(mod.get_global_var("helper"), [x]))
    with pytest.raises(TypeInferenceError, match=r"broadcast \(call 401 of 1000 in @helper\)"):
        InferType()(mod)


def test_a_module_is_optimised_as_far_as_passes_hold_for_every_target() -> None:
    data = relay.var("data", shape=(1, 3, 8, 8))
    weight = relay.var("weight", shape=(4, 3, 3, 3))
    statistics = [relay.var(name, shape=(4,)) for name in "abcd"]
    normal = relay.nn.batch_norm(relay.nn.conv2d(data, weight), *statistics)[0]
    mod = relay.IRModule.from_expr(relay.nn.relu(normal))
    rng = np.random.default_rng(3)
    params = {each.name_hint: rng.random(each.type.shape, "float32") for each in mod["main"].params}
    image = params.pop("data")
    found, left = relay.optimize(mod, "llvm", params)
    assert (left, len(found["main"].params)) == ({}, 1)
    assert "nn.batch_norm" not in found.astext()
    wanted = run(mod["main"], [image, *params.values()])
    np.testing.assert_allclose(run(found["main"], [image]), wanted, rtol=1e-5)
    with relay.transform.PassContext(opt_level=0, disabled_pass=["SimplifyInference"]):
        assert "nn.batch_norm" in relay.optimize(mod, "llvm", params)[0].astext()
