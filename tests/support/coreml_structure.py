"""ML Programs as values that are equal if the programs say the same, whatever they call it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from serde.coreml.mlprogram.constants import NonTensor, read_value
from serde.coreml.reader import load


def structure(source: Any) -> dict[str, Any]:
    """Return inputs and outputs with what each output is computed of.

    Args:
        source: An ``MLModel`` or a path.
    """
    model = load(source if hasattr(source, "get_spec") else Path(source))
    (function,) = model.spec.mlProgram.functions.values()
    ((opset, block),) = function.block_specializations.items()
    values: dict[str, Any] = {
        each.name: ("input", index, each.type.SerializeToString(deterministic=True))
        for index, each in enumerate(function.inputs)
    }

    def constant(value: Any) -> Any:
        if value.WhichOneof("value") == "blobFileValue":
            blob = value.blobFileValue
            data: Any = model.blobs[blob.fileName, blob.offset].array()
        else:
            data = read_value(value, None)
        if isinstance(data, NonTensor):
            return data.value
        return (data.dtype.name, data.shape, np.asarray(data, np.float64).round(6).tolist())

    for op in block.operations:
        if op.type == "const":
            values[op.outputs[0].name] = constant(op.attributes["val"])
            continue
        given = {
            name: tuple(
                constant(each.value) if each.WhichOneof("binding") == "value" else values[each.name]
                for each in argument.arguments
            )
            for name, argument in op.inputs.items()
        }
        for index, output in enumerate(op.outputs):
            type_ = output.type.SerializeToString(deterministic=True)
            values[output.name] = (op.type, index, type_, sorted(given.items()))
    description = type(model.spec.description)()
    description.CopyFrom(model.spec.description)
    description.ClearField("metadata")
    return {
        "specification": model.spec.specificationVersion,
        "opset": opset,
        "description": str(description),
        "outputs": [values[name] for name in block.outputs],
    }
