"""Models to test a bridge with: a small one with weights, and samples of operators."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import ArrayWeight, Weight
from serde.errors import OptionError
from serde.relay.ir import IRModule, ModelMeta, RelayModel, SequenceType, TensorType, TupleType
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from serde.relay.ir.registry import SequenceSpec, TensorSpec, all_ops
from serde.relay.transform.infer_type import InferType

__all__ = ["sample_ids", "sample_model", "small_model"]


def small_model(*, factor: float = 1.0) -> RelayModel:
    """Return ``tanh(data * scale + shift)`` and ``data * scale + shift``, two of them weights.

    Args:
        factor: What the weight ``scale`` is multiplied with.
    """
    data = relay.var("data", shape=(2, 3))
    scale, shift = relay.var("scale", shape=(3,)), relay.var("shift", shape=(3,))
    shifted = relay.add(relay.multiply(data, scale), shift)
    function = Function([data, scale, shift], Tuple([relay.tanh(shifted), shifted]))
    weights: dict[str, Weight] = {
        "scale": ArrayWeight(np.array([0.5, -1.5, 2.0], "float32") * np.float32(factor)),
        "shift": ArrayWeight(np.array([0.1, 0.2, -0.3], "float32")),
    }
    meta = ModelMeta(inputs=("data",), outputs=("out", "shifted"))
    return RelayModel(InferType()(IRModule.from_expr(function)), weights, meta)


def sample_ids(operator: str) -> list[str]:
    """Return a name for each sample that the declaration of a Relay operator has.

    Raises:
        OptionError: There is no such operator.
    """
    known = all_ops()
    if operator not in known:
        raise OptionError(f"there is no operator {operator} in Relay")
    return [f"{operator}-{number}" for number in range(len(known[operator].samples))]


def sample_model(name: str) -> RelayModel:
    """Return a model of one call: a sample of an operator.

    Args:
        name: One of :func:`sample_ids`.
    """
    operator, _, number = name.rpartition("-")
    definition = all_ops()[operator]
    given = definition.samples[int(number)]
    variables: list[Var] = []

    def operand(value: AnyValue) -> Expr:
        if value is None:
            return Tuple(())
        if isinstance(value, list):
            return Tuple([operand(item) for item in value])
        if not isinstance(value, (SequenceSpec, TensorSpec)):
            return Constant(value)
        first = value.items[0] if isinstance(value, SequenceSpec) else value
        type_: TensorType | SequenceType = TensorType(first.shape, first.dtype)
        if isinstance(value, SequenceSpec):
            type_ = SequenceType(TensorType([relay.Any()] * len(first.shape), first.dtype))
        variables.append(Var(f"x{len(variables)}", type_))
        return variables[-1]

    absent = len(definition.operands) - len(given.operands)
    operands = [operand(value) for value in (*given.operands, *[None] * absent)]
    function = Function(variables, Call(definition, operands, definition.bind(given.attrs)))
    mod = InferType()(IRModule.from_expr(function))
    result = mod["main"].body.type
    count = len(result.fields) if isinstance(result, TupleType) else 1
    inputs = tuple(each.name_hint for each in variables)
    return RelayModel(mod, {}, ModelMeta(inputs, tuple(f"y{i}" for i in range(count))))
