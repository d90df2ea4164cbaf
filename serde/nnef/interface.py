"""What a graph of NNEF is expected to compute, under the names and in the dtypes that it has."""

from __future__ import annotations

from dataclasses import replace

from serde.core.report import Report
from serde.nnef.importer import to_relay
from serde.nnef.model import NnefModel
from serde.nnef.options import NnefImportOptions
from serde.relay.ir import Expr, RelayModel, TensorType, Var, as_dtype, leaf_types
from serde.walk.interface import Inner, rewrite_interface

__all__ = ["expected_of"]


def expected_of(model: RelayModel, native: NnefModel) -> RelayModel:
    """Return a model as it is to be found once it is written.

    NNEF says nothing of the widths of numbers: inputs and outputs have those with which the graph
    is read.

    Args:
        model: The model.
        native: What was written of it.
    """
    back = to_relay(native, NnefImportOptions(), Report())
    inputs = {
        param.name_hint: (each.name_hint, each.type)
        for param, each in zip(model.inputs(), back.inputs(), strict=True)
    }
    outputs = leaf_types(back.main.body.checked_type)

    def inner(param: Var, type_: TensorType) -> Inner | None:
        name, found = inputs[param.name_hint]
        if name == param.name_hint and found == type_:
            return None
        outside = Var(name, found, param.span)
        return outside, as_dtype(outside, type_.dtype)

    def outer(index: int, x: Expr, _type: TensorType) -> Expr:
        return as_dtype(x, outputs[index].dtype)

    changed = rewrite_interface(model, inner, outer)
    meta = replace(model.meta, inputs=native.inputs, outputs=native.outputs)
    return changed.evolve(meta=meta)
