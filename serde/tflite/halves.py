"""Models in float16 as LiteRT has them: weights of 16 bits, computed on in float32."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any as AnyValue, ClassVar, Final

import numpy as np

import serde.relay as relay
from serde.core import Weight, dataclass, dtype_name, numpy_dtype, replace
from serde.relay.ir import OpDef, RelayModel, TensorType, TupleType, Type, call, carried, infer_call
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, If, Var
from serde.relay.ir.visit import post_order, rewrite
from serde.relay.run.computed import ComputedWeight
from serde.relay.transform.base import FunctionPass
from serde.tflite.model import Operator, Subgraph, Tensor

__all__ = ["computed_wide", "stored_as_halves"]

_HALVES: Final = ("float16", "bfloat16")
_LARGEST: Final = float(np.finfo(np.float16).max)


def computed_wide(model: RelayModel) -> RelayModel | None:
    """Return a model in float16 as one in float32; None of another, or one with inner graphs."""
    nodes = post_order(model.main)
    if not any(_wide(each.type) != each.type for each in nodes):
        return None
    if len(model.mod.functions) > 1 or any(map(_has_inner, nodes)):
        return None
    mod, _changed = _Widen(frozenset(model.params)).run(model.mod)
    return model.evolve(mod=mod)


def _has_inner(node: Expr) -> bool:
    return isinstance(node, If) or (isinstance(node, Call) and bool(carried(node)))


def _wide(type_: Type | None) -> Type | None:
    """Return a type with float32 in place of narrower floats."""
    if isinstance(type_, TensorType) and type_.dtype in _HALVES:
        return TensorType(type_.shape, "float32")
    if isinstance(type_, TupleType):
        return TupleType([_wide(each) or each for each in type_.fields])
    return type_


@dataclass(frozen=True, eq=False)
class _Widen(FunctionPass):
    """The pass; weights keep their type, and are cast."""

    name: ClassVar[str] = "Widen"
    weights: Collection[str]

    def transform(self, function: Function) -> Function:
        """Rewrite bottom-up."""
        memo: dict[Expr, Expr] = {}
        params = list(function.params)
        for index, param in enumerate(params):
            wide = _wide(param.type)
            if wide == param.type:
                continue
            if param.name_hint in self.weights:
                memo[param] = call("cast", param, dtype="float32")
            else:
                memo[param] = params[index] = Var(param.name_hint, wide, param.span)
        body = rewrite(function.body, lambda _node, new: _widened(new), memo)
        return function.evolve(params=params, body=body, ret_type=body.type)


def _widened(node: Expr) -> Expr:
    if isinstance(node, Constant) and dtype_name(node.data.dtype) in _HALVES:
        return Constant(node.data.astype(np.float32), node.span)
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return node
    attrs = {name: _wide_dtype(value) for name, value in node.attrs.items()}
    if all(attrs[name] is value for name, value in node.attrs.items()):
        return node
    found = Call(node.op, node.args, Attrs(attrs), span=node.span)
    found.type = infer_call(found)
    return found


def _wide_dtype(value: AnyValue) -> AnyValue:
    is_half = isinstance(value, np.dtype) and dtype_name(value) in _HALVES
    return numpy_dtype("float32") if is_half else value


def stored_as_halves(graph: Subgraph) -> Subgraph:
    """Return a graph that reads what is made of halves, but for biases, through DEQUANTIZE."""
    tensors = list(graph.tensors)
    first: list[Operator] = []
    for number, tensor in enumerate(graph.tensors):
        values = tensor.values
        if values is None or len(values.shape) < 2 or not _is_of_halves(values):
            continue
        source = Var("x", TensorType(values.shape, "float32"))
        halves = relay.cast(relay.clip(source, -_LARGEST, _LARGEST), "float16")
        stored = ComputedWeight(halves, {source: values})
        tensors[number] = replace(tensor, name=f"{tensor.name}/wide", values=None)
        tensors.append(Tensor(tensor.name, tensor.shape, "float16", values=stored))
        first.append(Operator("DEQUANTIZE", 1, (len(tensors) - 1,), (number,)))
    return replace(graph, tensors=tensors, operators=[*first, *graph.operators])


def _is_of_halves(weight: Weight) -> bool:
    """Whether a weight is one of float32 that is computed of such in fewer bits alone."""
    if not isinstance(weight, ComputedWeight) or weight.dtype != "float32":
        return False
    sources = weight.sources.values()
    return bool(sources) and all(x.dtype in _HALVES or _is_of_halves(x) for x in sources)
