"""What a compiled library says of itself: its inputs, its results, its weights, its device."""

from __future__ import annotations

import json
from typing import Any as AnyValue, Final

import numpy as np

from serde.bridge.summary import TensorSummary
from serde.core import asdict, dataclass, parse_json
from serde.errors import FormatError
from serde.io.pairs import UNMARKED
from serde.relax.framework import Framework, load
from serde.relax.live import summary_of_tensor
from serde.relax.model import RelaxModel

__all__ = ["FUNCTION", "Interface", "interface_of", "with_interface"]

FUNCTION: Final = "serde_interface"
"""The function of a library that gives its interface, as bytes of a text in JSON."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What a library takes and gives.

    Attributes:
        target: What it is compiled for, as TVM says it.
        inputs: The inputs in order; a dynamic length is a text.
        outputs: The results in order.
        weights: What ``main`` takes behind the inputs, in order; empty where they are constants.
        several: Whether ``main`` gives a tuple.
        mark: Of the pair that it is with the weights beside it, see :mod:`serde.io.pairs`.
    """

    target: str
    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    weights: tuple[TensorSummary, ...] = ()
    several: bool = False
    mark: int = UNMARKED

    @property
    def device(self) -> str:
        """TVM's name of the device that runs it."""
        kind = str(load().target(self.target).kind.name)
        return "cpu" if kind in ("llvm", "c") else kind

    def as_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Interface:
        """Return what :meth:`as_text` wrote.

        Raises:
            FormatError: The text is something else.
        """
        try:
            found = parse_json(text)
            inputs, outputs, weights = (
                tuple(_tensor(each) for each in found[key])
                for key in ("inputs", "outputs", "weights")
            )
            mark = int(found.get("mark", UNMARKED))
            return cls(found["target"], inputs, outputs, weights, found["several"], mark)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"expected the interface of a library, found {text!r:.80}") from error


def _tensor(found: dict[str, AnyValue]) -> TensorSummary:
    shape = found["shape"]
    return TensorSummary(found["name"], None if shape is None else tuple(shape), found["dtype"])


def interface_of(model: RelaxModel, target: str, *, freeze_vars: bool) -> Interface:
    """Return what a model compiled for a target takes and gives.

    Args:
        model: The model.
        target: As TVM says it.
        freeze_vars: Whether its weights become constants.
    """
    framework = load()
    function = framework.type_of(model.module["main"])
    count = len(model.inputs)
    several = isinstance(function.ret, framework.TupleType)
    results = list(function.ret.fields) if several else [function.ret]
    weights = [
        TensorSummary(model.names.get(name, name), weight.shape, weight.dtype)
        for name, weight in model.weights.items()
    ]
    return Interface(
        target,
        tuple(map(summary_of_tensor, model.inputs, function.params[:count])),
        tuple(map(summary_of_tensor, model.outputs, results)),
        () if freeze_vars else tuple(weights),
        several,
    )


def with_interface(framework: Framework, module: AnyValue, text: str) -> AnyValue:
    """Return a module with a function more, which gives a text as bytes."""
    relax = framework.relax
    data = framework.tvm.runtime.tensor(np.frombuffer(text.encode(), np.uint8).copy())
    told = relax.const(data, "uint8")
    body = relax.SeqExpr([], told)
    function = relax.Function([], body, framework.type_of(told))
    made = framework.tvm.IRModule(module.functions)
    made[FUNCTION] = function.with_attr("global_symbol", FUNCTION)
    return made
