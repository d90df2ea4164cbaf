"""Inputs and outputs of Core ML models: what they declare, and what is known about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from serde.bridge import ImportOptions, TensorSummary
from serde.coreml.model import CoremlModel
from serde.errors import FormatError, OptionError
from serde.relay.dims import DimLike
from serde.relay.model import ModelMeta

__all__ = [
    "ARRAY_DTYPES",
    "declared_dims",
    "feature_summary",
    "input_names",
    "program_meta",
    "read_shapes",
]

ARRAY_DTYPES = {
    65552: "float16",
    65568: "float32",
    65600: "float64",
    131104: "int32",
    131080: "int8",
}
"""dtypes by ``ArrayDataType`` of FeatureTypes.proto."""


def input_names(inputs: Iterable[Any], source: str | None) -> list[str]:
    """Return the names of what a model takes.

    Raises:
        FormatError: Two have one name, or one has none.
    """
    names = [each.name for each in inputs]
    if len(set(names)) < len(names) or "" in names:
        raise FormatError("two inputs have one name, or one has none", path=source)
    return names


def read_shapes(
    names: Sequence[str], options: ImportOptions
) -> tuple[Mapping[str, Sequence[DimLike]], Mapping[str, str]]:
    """Return the shapes and dtypes given by name, one without a name for the only input.

    Raises:
        OptionError: There is no such input.
    """
    shapes, dtypes = dict(options.input_shapes), dict(options.input_dtypes)
    listed = ", ".join(names)
    if ("" in shapes or "" in dtypes) and len(names) != 1:
        raise OptionError(f"a shape or dtype without a name, but the inputs are {listed}")
    if "" in shapes:
        shapes[names[0]] = shapes.pop("")
    if "" in dtypes:
        dtypes[names[0]] = dtypes.pop("")
    unknown = sorted({*shapes, *dtypes} - set(names))
    if unknown:
        raise OptionError(f"no input is called {unknown[0]}; inputs: {listed}")
    return shapes, dtypes


def declared_dims(type_: Any, name: str) -> list[DimLike]:
    """Return the dimensions of a tensor type; one that is flexible is called after its axis."""
    return [
        int(dim.constant.size) if dim.WhichOneof("dimension") == "constant" else f"{name}_{axis}"
        for axis, dim in enumerate(type_.dimensions)
    ]


def program_meta(
    model: CoremlModel, function: str, inputs: Sequence[str], outputs: Sequence[str]
) -> ModelMeta:
    """Return what a model says about itself."""
    metadata = model.spec.description.metadata
    extra = {
        "author": metadata.author,
        "license": metadata.license,
        "version": metadata.versionString,
    }
    extra |= dict(sorted(metadata.userDefined.items()))
    return ModelMeta(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        source_format="coreml",
        source_version=f"specification {model.spec.specificationVersion}",
        description=metadata.shortDescription,
        extra={name: text for name, text in extra.items() if text},
    )


def feature_summary(feature: Any) -> TensorSummary:
    """Return what a model declares of an input or output."""
    kind = feature.type.WhichOneof("Type")
    if kind != "multiArrayType":
        return TensorSummary(feature.name)
    array = feature.type.multiArrayType
    dtype = ARRAY_DTYPES.get(array.dataType)
    if array.WhichOneof("ShapeFlexibility") == "shapeRange":
        dims: list[int | str] = [
            int(size.lowerBound) if size.lowerBound == size.upperBound else f"{feature.name}_{axis}"
            for axis, size in enumerate(array.shapeRange.sizeRanges)
        ]
        return TensorSummary(feature.name, tuple(dims), dtype)
    return TensorSummary(feature.name, tuple(map(int, array.shape)) or None, dtype)
