"""The engine of every format that has none of its own: Relay's interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serde.core.weights import Array
from serde.engine.base import Engine
from serde.engine.fitting import fit_inputs
from serde.relay.ir.model import RelayModel

__all__ = ["RelayEngine", "declared_dtypes"]


class RelayEngine(Engine):
    """The Relay interpreter."""

    def __init__(self, model: RelayModel) -> None:
        self.name = "relay interpreter"
        self.inputs = declared_dtypes(model)
        self.outputs = _output_names(model)
        self._model = model

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Evaluate ``main``."""
        from serde.relay.ir.leaves import leaves
        from serde.relay.run.interpreter import run

        model = self._model
        return leaves(run(model.main, self.arguments(inputs), mod=model.mod))

    def arguments(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the arguments of ``main``: inputs by name or else by place, and the weights."""
        values = fit_inputs(self.name, self.inputs, inputs)
        params = self._model.params
        return [
            values[name] if name in values else params[name].array()
            for name in (param.name_hint for param in self._model.main.params)
        ]

    @property
    def computes_float16(self) -> bool:
        """Whether products of the model, or its weights, are float16."""
        from serde.relay.ir.bodies import all_nodes
        from serde.relay.ir.expr import Call

        if any(weight.dtype == "float16" for weight in self._model.params.values()):
            return True
        nodes = all_nodes(self._model.main.body)
        return any(isinstance(n, Call) and getattr(n.type, "dtype", "") == "float16" for n in nodes)


def declared_dtypes(model: RelayModel) -> dict[str, str]:
    """Return the dtype of each input by name; empty where it is no tensor."""
    return {v.name_hint: getattr(v.type, "dtype", "") for v in model.inputs()}


def _output_names(model: RelayModel) -> Sequence[str]:
    """Return the names of the tensors that ``main`` gives, numbered where the model has none."""
    from serde.relay.ir.leaves import output_names, value_types

    type_ = model.main.body.type
    if model.meta.outputs:
        return output_names(model.meta.outputs, type_)
    return tuple(f"output{i}" for i in range(len(value_types(type_))))
