"""What a model is run with: a graph, and names of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from serde.errors import OptionError, Unsupported
from serde.relay.ir import Any, TensorType, UniqueNames
from serde.tflite.model import Signature, Tensor, TfliteModel

__all__ = ["NO_NUMBERS", "Interface", "chosen_interface", "declared_type"]

NO_NUMBERS: Final = frozenset(("resource", "variant", "string"))
"""Types of tensors that are no numbers."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A graph, and what its inputs and outputs are called.

    Attributes:
        subgraph: Its number.
        inputs: Numbers of tensors by name, in the order of the graph.
        outputs: Likewise.
        key: The signature that says so.
    """

    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    key: str | None = None


def chosen_interface(model: TfliteModel, key: str | None) -> Interface:
    """Return the graph that a signature runs; without one the first, by the only signature for it.

    Raises:
        OptionError: There is no such signature.
    """
    known = {each.key: each for each in model.signatures}
    if key is not None and key not in known:
        found = ", ".join(map(repr, known)) or "none"
        raise OptionError(f"signature: there is no {key!r}; there are {found}")
    own = [each for each in model.signatures if each.subgraph == 0]
    signature = known[key] if key is not None else (own[0] if len(own) == 1 else None)
    graph = model.subgraphs[0 if signature is None else signature.subgraph]
    if signature is not None and _covers(model, signature):
        inputs = _in_order(signature.inputs, graph.inputs)
        outputs = _in_order(signature.outputs, graph.outputs)
        return Interface(signature.subgraph, inputs, outputs, signature.key)
    names = UniqueNames()
    inputs = {names.reserve(graph.tensors[i].name or "input"): i for i in graph.inputs}
    outputs = {names.reserve(graph.tensors[i].name or "output"): i for i in graph.outputs}
    return Interface(0 if signature is None else signature.subgraph, inputs, outputs)


def _in_order(named: Mapping[str, int], order: Sequence[int]) -> dict[str, int]:
    """Return names and tensors in the order in which tensors stand first in a row."""
    places = {index: place for place, index in reversed(list(enumerate(order)))}
    return dict(sorted(named.items(), key=lambda each: places[each[1]]))


def _covers(model: TfliteModel, signature: Signature) -> bool:
    graph = model.subgraphs[signature.subgraph]
    named = sorted(signature.inputs.values()), sorted(set(signature.outputs.values()))
    return named == (sorted(graph.inputs), sorted(set(graph.outputs)))


def declared_type(tensor: Tensor) -> TensorType:
    """Return the type of a tensor, with anonymous lengths where they are open.

    Raises:
        Unsupported: It is no tensor of numbers.
    """
    if tensor.dtype in NO_NUMBERS:
        raise Unsupported(f"a tensor of the type {tensor.dtype}")
    return TensorType([Any() if each < 0 else each for each in tensor.shape], tensor.dtype)
