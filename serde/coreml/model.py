"""Core ML models as serde holds them: Apple's message, and the weights beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from serde.coreml.blobs import BlobLayout
from serde.errors import FormatError
from serde.weights import Weight

__all__ = ["CoremlModel", "kind_of", "operations", "walk_blocks"]

KINDS = ("mlProgram", "neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")
"""Kinds of model that compute tensors with a network."""


@dataclass(slots=True)
class CoremlModel:
    """A Core ML model whose bulk is still where it came from.

    Attributes:
        spec: Apple's ``Model`` without the values of `arrays`.
        blobs: Constants of an ML Program by file and position of the record, as the program
            names them.
        arrays: Large values of a NeuralNetwork, one axis, by the path of their
            ``WeightParams``, such as ``neuralNetwork.layers[3].convolution.weights``.
        layout: Constants of an ML Program that was made here, to be written.
        source: Where it is from, for messages; None if it was made here.
        files: The files it was read from.
    """

    spec: Any
    blobs: dict[tuple[str, int], Weight] = field(default_factory=dict)
    arrays: dict[str, Weight] = field(default_factory=dict)
    layout: BlobLayout | None = None
    source: str | None = None
    files: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Which of :data:`KINDS` it is."""
        return kind_of(self.spec, self.source)

    @property
    def network(self) -> Any:
        """The network of a model that is no ML Program."""
        return getattr(self.spec, self.kind)


def kind_of(spec: Any, source: str | None) -> str:
    """Return the kind of a model.

    Raises:
        FormatError: It is none that computes tensors with a network.
    """
    kind = spec.WhichOneof("Type")
    if kind in KINDS:
        return kind
    if kind is None:
        raise FormatError("expected a Core ML model, found none of its kinds", path=source)
    members = ""
    if kind in ("pipeline", "pipelineClassifier", "pipelineRegressor"):
        pipeline = spec.pipeline if kind == "pipeline" else getattr(spec, kind).pipeline
        found = [str(each.WhichOneof("Type")) for each in pipeline.models]
        members = f" of {', '.join(found)}"
    raise FormatError(
        f"expected an ML Program or a NeuralNetwork, found a model of kind {kind}{members}",
        path=source,
    )


def walk_blocks(block: Any) -> Iterator[Any]:
    """Yield a block of an ML Program and all blocks inside it."""
    pending = [block]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(inner for op in found.operations for inner in op.blocks)


def operations(spec: Any) -> Iterator[Any]:
    """Yield every operation of an ML Program, in whichever function and block."""
    for function in spec.mlProgram.functions.values():
        for block in function.block_specializations.values():
            for inner in walk_blocks(block):
                yield from inner.operations
