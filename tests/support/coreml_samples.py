"""Samples of operators as models that Core ML can hold."""

from __future__ import annotations

from support.samples import BuiltSample

import serde.relay as relay
from serde.coreml.mlprogram.ops import TABLE
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import all_ops
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import rewrite

DRAWN = ("serde.bernoulli", "serde.multinomial", "serde.random_normal", "serde.random_uniform")
"""Operators of which the range is told, and the values are the executor's."""


def is_covered(name: str) -> bool:
    """Whether MIL says an operator, or what it is made of; a dynamic one may turn out static."""
    made = TABLE.expansion(name) or all_ops()[name].decompose
    return TABLE.exporter(name, 26) is not None or made is not None or name.startswith("dyn.")


def model_of(built: BuiltSample) -> RelayModel:
    """The sample as a model; inputs without axes, which Core ML has not, get one."""
    results = len(built.call.type.fields) if hasattr(built.call.type, "fields") else 1
    outputs = tuple(f"out{i}" for i in range(results))
    memo: dict[Expr, Expr] = {}
    params = []
    for variable in built.variables:
        if isinstance(variable.type, TensorType) and not variable.type.shape:
            params.append(Var(variable.name_hint, TensorType((1,), variable.type.dtype)))
            memo[variable] = relay.reshape(params[-1], ())
        else:
            params.append(variable)
    body = rewrite(built.call, lambda _node, new: new, memo) if memo else built.call
    main = infer_function(Function(params, body))
    meta = ModelMeta(tuple(each.name_hint for each in params), outputs)
    return RelayModel(IRModule({"main": main}), {}, meta)
