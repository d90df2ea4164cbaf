"""Weights of 16 bits: computed as they are, or as a net of float32 that they are loaded into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from serde.core.weights import Array, Weight, numpy_dtype
from serde.mxnet.aliases import canonical_name
from serde.mxnet.model import DTYPES, Graph, MxnetModel
from serde.mxnet.upgrades import AUXILIARY

__all__ = ["NARROW", "precision_note", "with_precision"]

NARROW = frozenset({"float16", "bfloat16"})
"""Floats of 16 bits."""

_CASTS = frozenset({"amp_cast", "amp_multicast"})

_LOOKUPS = frozenset({"Cast", "Embedding", "one_hot", "take"})

_FLOAT32 = "float32"


class WidenedWeight(Weight):
    """A weight of fewer bits as float32, which holds each of its values."""

    def __init__(self, weight: Weight) -> None:
        self.shape = weight.shape
        self.dtype = _FLOAT32
        self.sparse = weight.sparse
        self._weight = weight

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0."""
        return self._weight.rows(start, stop).astype(numpy_dtype(_FLOAT32))


def with_precision(
    model: MxnetModel, widen: bool | None, input_dtypes: Mapping[str, str]
) -> MxnetModel:
    """Return a model with the weights that it is computed with.

    Weights of 16 bits become float32 where that is asked for. Where nothing is, they do as they
    do in MXNet: ``set_params`` copies them into a net of float32, which is one whose inputs are
    float32, or whose weights are of both kinds. A graph that has casts of its own, as automatic
    mixed precision leaves it, is computed as it is.

    Args:
        model: The model as its files hold it.
        widen: Whether to widen; None to go by the model.
        input_dtypes: dtypes of inputs that the caller names.
    """
    narrow = [name for name, weight in model.arg.items() if weight.dtype in NARROW]
    narrow += [name for name, weight in model.aux.items() if weight.dtype in NARROW]
    if not narrow:
        return model
    if widen is None:
        wide = _FLOAT32 in _input_dtypes(model, input_dtypes) or _has_both_precisions(model)
        widen = wide and not _casts(model.graph)
    if not widen:
        return replace(model, precision="16 bits")
    return replace(
        model, arg=_widen(model.arg), aux=_widen(model.aux), precision="widened to float32"
    )


def precision_note(model: MxnetModel) -> str:
    """Return what to say of how the weights of a model are computed."""
    if model.precision == "16 bits":
        return "weights of 16 bits are computed as they are; --widen-weights makes them float32"
    return "weights of 16 bits are computed as float32; --no-widen-weights leaves them as they are"


def _widen(weights: Mapping[str, Weight]) -> dict[str, Weight]:
    return {
        name: WidenedWeight(weight) if weight.dtype in NARROW else weight
        for name, weight in weights.items()
    }


def _input_dtypes(model: MxnetModel, given: Mapping[str, str]) -> Iterable[str]:
    """Return the dtypes that inputs are said to have, by the caller or in the graph.

    Inputs that are only converted or looked up say nothing of what weights are computed in.
    """
    nodes = model.graph.nodes
    computed = {
        nodes[entry.node].name
        for node in nodes
        if canonical_name(node.op) not in _LOOKUPS
        for entry in node.inputs
    }
    free = computed & set(model.inputs)
    noted = {
        node.name: node.hidden["__dtype__"]
        for node in model.graph.variables
        if node.name in free and "__dtype__" in node.hidden
    }
    declared = {
        name: DTYPES[int(code)]
        for name, code in noted.items()
        if code.isascii() and code.isdigit() and len(code) < 4 and int(code) < len(DTYPES)
    }
    counted = {name: dtype for name, dtype in given.items() if name in free or not name}
    return {**declared, **counted}.values()


def _has_both_precisions(model: MxnetModel) -> bool:
    """Whether there are weights of both kinds, those of normalisations aside, which stay wide."""
    nodes = model.graph.nodes
    kept = {
        nodes[entry.node].name
        for node in nodes
        if canonical_name(node.op) in AUXILIARY
        for entry in node.inputs
    }
    return any(
        weight.dtype in (_FLOAT32, "float64")
        for name, weight in model.arg.items()
        if name not in kept
    )


def _casts(graph: Graph) -> bool:
    """Whether a graph itself says what is computed in 16 bits."""
    return any(
        node.op in _CASTS
        or (canonical_name(node.op) == "Cast" and node.attrs.get("dtype") in NARROW)
        for node in graph.nodes
    )
