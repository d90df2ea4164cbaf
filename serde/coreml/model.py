"""Core ML models as serde holds them: Apple's message, and the weights beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from serde.core import Weight, budget, dataclass, field
from serde.coreml.blobs import BlobLayout
from serde.errors import FormatError

__all__ = [
    "KINDS", "PIPELINES", "SUPPRESSION", "CoremlModel", "blob_values", "by_name", "kind_of",
    "layers", "members", "operations", "walk_blocks",
]  # fmt: skip

KINDS = ("mlProgram", "neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")
"""Kinds of model that compute tensors with a network."""

PIPELINES = ("pipeline", "pipelineClassifier", "pipelineRegressor")
"""Kinds of model that are several ones, one after the other."""

SUPPRESSION = "nonMaximumSuppression"
"""The kind of model that a detector's pipeline ends in."""


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
        """Which of :data:`KINDS` or :data:`PIPELINES` it is."""
        return kind_of(self.spec, self.source)

    @property
    def is_pipeline(self) -> bool:
        """Whether it is several models, one after the other."""
        return self.spec.WhichOneof("Type") in PIPELINES

    @property
    def pipeline(self) -> Any:
        """The message with the models of a pipeline."""
        return _pipeline(self.spec)

    @property
    def network(self) -> Any:
        """The network of a model that is no ML Program."""
        return getattr(self.spec, self.kind)


def _pipeline(spec: Any) -> Any:
    kind = spec.WhichOneof("Type")
    return spec.pipeline if kind == "pipeline" else getattr(spec, kind).pipeline


def kind_of(spec: Any, source: str | None) -> str:
    """Return the kind of a model.

    Raises:
        FormatError: It is none that computes tensors with a network, and has no part that does.
    """
    kind = spec.WhichOneof("Type")
    if kind in KINDS:
        return str(kind)
    if kind is None:
        raise FormatError("expected a Core ML model, found none of its kinds", path=source)
    parts = ""
    if kind in PIPELINES:
        found = [str(each.WhichOneof("Type")) for each in _models(spec, source)]
        if any(each in KINDS for each in found):
            return str(kind)
        parts = f" of {', '.join(found)}"
    raise FormatError(
        f"expected an ML Program or a NeuralNetwork, found a model of kind {kind}{parts}",
        path=source,
    )


def _models(spec: Any, source: str | None) -> list[Any]:
    """Return the models of a pipeline; for those that are pipelines, the models of these."""
    found: list[Any] = []
    pending = [(spec, 0)]
    while pending:
        each, depth = pending.pop()
        if each.WhichOneof("Type") not in PIPELINES:
            found.append(each)
            continue
        budget().check("depth", depth + 1, "pipelines in each other")
        pending += [(inner, depth + 1) for inner in reversed(_pipeline(each).models)]
    return found


def members(model: CoremlModel) -> list[CoremlModel]:
    """Return the models of a pipeline, which share its weights."""
    kind = model.kind
    prefix = f"{kind}.models" if kind == "pipeline" else f"{kind}.pipeline.models"
    found = []
    for index, spec in enumerate(model.pipeline.models):
        begin = f"{prefix}[{index}]."
        arrays = {
            where.removeprefix(begin): weight
            for where, weight in model.arrays.items()
            if where.startswith(begin)
        }
        found.append(CoremlModel(spec, model.blobs, arrays, None, model.source, model.files))
    return found


def walk_blocks(block: Any) -> Iterator[Any]:
    """Yield a block of an ML Program and all blocks inside it."""
    pending = [block]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(inner for op in found.operations for inner in op.blocks)


def by_name(entries: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the entries of a protobuf map, whose own order differs from one parse to the next."""
    return sorted(entries.items(), key=itemgetter(0))


def operations(spec: Any) -> Iterator[Any]:
    """Yield every operation of an ML Program, in whichever function and block.

    Of a pipeline those of all its programs.
    """
    for each in _models(spec, None):
        for _, function in by_name(each.mlProgram.functions):
            for _, block in by_name(function.block_specializations):
                for inner in walk_blocks(block):
                    yield from inner.operations


def blob_values(spec: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the operations of an ML Program with each of their values that lies in a file."""
    for op in operations(spec):
        values = [value for _, value in by_name(op.attributes)]
        values += [
            binding.value
            for _, argument in by_name(op.inputs)
            for binding in argument.arguments
            if binding.WhichOneof("binding") == "value"
        ]
        yield from ((op, each) for each in values if each.WhichOneof("value") == "blobFileValue")


def layers(spec: Any) -> Iterator[Any]:
    """Yield the layers of a NeuralNetwork, or of all those of a pipeline."""
    for each in _models(spec, None):
        kind = each.WhichOneof("Type")
        if kind in KINDS and kind != "mlProgram":
            yield from getattr(each, kind).layers
