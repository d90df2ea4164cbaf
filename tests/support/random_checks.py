"""What must hold for a random graph, and the smallest part of one for which it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from support.random_graphs import Item
from support.runtime import open_session

from serde.api import from_relay
from serde.relay import Function, Var
from serde.relay.ir.expr import Expr, GlobalVar
from serde.relay.ir.model import RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import children, free_vars, post_order, rebuild
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType

Array = np.ndarray
Problem = Callable[[RelayModel, dict[str, Array]], str | None]
"""Says what is wrong with a model on some inputs, or None."""


def interpret(model: RelayModel, feeds: dict[str, Array]) -> tuple[Array, ...]:
    """Return the results of a model by the interpreter."""
    weights = {name: weight.array() for name, weight in model.params.items()}
    values = {**weights, **feeds}
    arguments = [values[param.name_hint] for param in model.main.params]
    result = run(model.main, arguments, mod=model.mod)
    return result if isinstance(result, tuple) else (result,)


def run_exported(proto: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Return the outputs by ONNX Runtime; by ONNX's reference where that has no kernel."""
    import onnxruntime

    missing = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
    names = [each.name for each in proto.graph.input]
    # An input without a name, which ONNX takes for an absent one, is given a name.
    given = {name: feeds[name if name in feeds else ""] for name in names}
    try:
        session = open_session(proto.SerializeToString(), fuse=not has_double(proto))
    except missing:
        return list(ReferenceEvaluator(proto).run(None, given))
    return list(session.run(None, given))


def has_double(proto: onnx.ModelProto) -> bool:
    """Whether a model computes in float64.

    Where ONNX Runtime joins a factor with the matrix product behind it, it keeps the factor as
    float32 (its MatMulScaleFusion); such models run without fusions.
    """
    graph = proto.graph
    kinds = {each.type.tensor_type.elem_type for each in (*graph.input, *graph.output)}
    kinds |= {each.data_type for each in graph.initializer}
    casts = {a.i for node in graph.node if node.op_type == "Cast" for a in node.attribute}
    return onnx.TensorProto.DOUBLE in kinds | casts


def export(model: RelayModel, opset: int) -> onnx.ModelProto:
    """Return a model as ONNX, with all passes before it."""
    return from_relay(model, format="onnx", opset=opset)


def difference(
    found: Sequence[Array], expected: Sequence[Array], tolerances: Sequence[Array]
) -> str | None:
    """Return how far results are apart, or None where they are within their tolerances."""
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for index, (a, b, tolerance) in enumerate(zip(found, expected, tolerances, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {index}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
        if not np.all(apart <= tolerance):
            return f"result {index}: {a} is not {b}, off by {np.max(apart)}"
    return None


def unlike(found: Sequence[Array], outputs: Sequence[Item]) -> str | None:
    """Return how far results are from what a graph must give, or None where they are not."""
    kinds = [(each.dtype, each.shape) for each in found]
    wanted = [(output.value.dtype, output.value.shape) for output in outputs]
    if kinds != wanted:
        return f"results are {kinds}, expected {wanted}"
    return difference(
        [each.astype(output.runs[0].dtype) for each, output in zip(found, outputs, strict=True)],
        [output.runs[0] for output in outputs],
        [output.tolerance for output in outputs],
    )


def smallest(model: RelayModel, feeds: dict[str, Array], problem: Problem) -> str:
    """Return the text of the smallest part of a model that still has a problem.

    The first node in order of evaluation with the problem is made the only result; its
    operands are made inputs, as many as can be without the problem going away.
    """
    params = set(model.main.params)
    for node in post_order(model.main.body):
        is_closed = set(free_vars(node)) <= params if not isinstance(node, Var) else False
        if not isinstance(node.type, TensorType) or not is_closed or not children(node):
            continue
        part = _with_body(model, node)
        found = problem(part, feeds)
        if found is not None:
            return _cut(model, node, feeds, problem) + f"\n{found}"
    return model.mod.astext()


def _with_body(model: RelayModel, body: Expr, params: Sequence[Var] | None = None) -> RelayModel:
    given = model.main.params if params is None else params
    main = Function(given, body)
    functions: dict[GlobalVar | str, Function] = {**model.mod.functions}
    entry = next(v for v in model.mod.functions if v.name_hint == "main")
    functions[entry] = main
    mod = InferType()(IRModule(functions))
    inputs = tuple(p.name_hint for p in given if p.name_hint not in model.params)
    weights = {p.name_hint: model.params[p.name_hint] for p in given if p.name_hint in model.params}
    meta = replace(model.meta, inputs=inputs, outputs=("y0",))
    return replace(model, mod=mod, params=weights, meta=meta)


def _cut(model: RelayModel, node: Expr, feeds: dict[str, Array], problem: Problem) -> str:
    """Return the text of one node on inputs that hold the values of its operands."""
    operands = children(node)
    fresh: list[Expr] = []
    params, given = [], {}
    for index, operand in enumerate(operands):
        if not isinstance(operand.type, TensorType) or not children(operand):
            fresh.append(operand)
            continue
        (value,) = interpret(_with_body(model, operand), feeds)
        variable = Var(f"operand{index}", TensorType(value.shape, value.dtype))
        params.append(variable)
        given[variable.name_hint] = value
        fresh.append(variable)
    single = rebuild(node, fresh)
    used = [v for v in free_vars(single) if v not in params]
    part = _with_body(model, single, [*used, *params])
    values = {name: {**feeds, **given}[name] for name in part.meta.inputs}
    if problem(part, values) is None:
        return _with_body(model, node).mod.astext()
    return f"{part.mod.astext()}\n{values}"
