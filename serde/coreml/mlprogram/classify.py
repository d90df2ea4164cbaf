"""Classifiers: the operation that makes one of an ML Program, and whether its scores add up."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.coreml.interface.description import Classifier
from serde.coreml.mlprogram.builder import ProgramBuilder, set_text
from serde.coreml.value import Value
from serde.relay.ir import Expr, RelayModel, Reshape, Tuple, children, has_trait, is_call

__all__ = ["append_classify", "is_softmax"]

_STRING, _INT64, _FLOAT64 = 2, 24, 12
"""Numbers in ``DataType`` of MIL.proto."""


def append_classify(
    builder: ProgramBuilder, scores: Value, classifier: Classifier, label: str, by_label: str
) -> None:
    """Append what gives the label of the best class, and all scores by label.

    Args:
        builder: The program.
        scores: The scores, float32.
        classifier: The labels.
        label: Name of the output with the label.
        by_label: Name of the output with the scores.
    """
    key = _STRING if classifier.has_text else _INT64
    operation = builder.block.operations.add(type="classify")
    operation.inputs["probabilities"].arguments.add(name=builder.name_of(scores))
    _fill_labels(operation.inputs["classes"].arguments.add().value, classifier, key)
    operation.outputs.add(name=label).type.tensorType.dataType = key
    scored = operation.outputs.add(name=by_label).type.dictionaryType
    scored.keyType.tensorType.dataType = key
    scored.valueType.tensorType.dataType = _FLOAT64
    set_text(operation.attributes["name"], label)


def _fill_labels(value: AnyValue, classifier: Classifier, key: int) -> None:
    """Write the labels as a list."""
    listed = value.type.listType
    listed.type.tensorType.dataType = key
    listed.length.constant.size = len(classifier.labels)
    for label in classifier.labels:
        item = value.immediateValue.list.values.add()
        item.type.tensorType.dataType = key
        tensor = item.immediateValue.tensor
        if isinstance(label, str):
            tensor.strings.values.append(label)
        else:
            tensor.longInts.values.append(label)


def is_softmax(model: RelayModel, output: int) -> bool:
    """Whether an output of a model is a softmax."""
    node: Expr = model.main.body
    if isinstance(node, Tuple):
        node = node.fields[output]
    while is_call(node, "cast") or has_trait(node, Reshape):
        node = children(node)[0]
    return is_call(node, "nn.softmax")
