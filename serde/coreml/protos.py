"""Apple's protobuf messages, taken from coremltools without importing all of it.

``import coremltools`` loads its converters, and PyTorch where that is installed; the
messages alone load in a twentieth of a second. They are Apple's generated modules, which
register themselves under the same names whoever loads them, so that messages made here and
messages of a coremltools that is imported later are of the same classes.

Which of Apple's messages hold the weights of a NeuralNetwork. Its weights lie in the model's own
message, in ``WeightParams`` deep within the layers. The messages on the way to them are found from
the descriptors. An ML Program holds small values only, its weights are in a file of their own.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import types
from typing import Any

from serde.core.optional import require
from serde.io.wire import MessageLayout

__all__ = ["DATA_FIELDS", "layout", "message_class", "proto_module"]

_PACKAGE = "_serde_coremltools_proto"


@functools.cache
def proto_module(name: str) -> Any:
    """Return a module of messages.

    Args:
        name: One of Apple's files, such as ``"Model"`` or ``"MIL"``.

    Raises:
        MissingDependency: coremltools is not installed.
    """
    found = importlib.util.find_spec("coremltools") if "coremltools" not in sys.modules else None
    if found is None or not found.submodule_search_locations:
        require("coremltools")
        return importlib.import_module(f"coremltools.proto.{name}_pb2")
    if _PACKAGE not in sys.modules:
        package = types.ModuleType(_PACKAGE)
        roots = found.submodule_search_locations
        package.__path__ = [os.path.join(root, "proto") for root in roots]
        sys.modules[_PACKAGE] = package
    return importlib.import_module(f"{_PACKAGE}.{name}_pb2")


def message_class(name: str) -> Any:
    """Return the class of a message, by its name in its file: ``"Model.Model"``.

    Raises:
        MissingDependency: coremltools is not installed.
    """
    file, _, message = name.partition(".")
    return getattr(proto_module(file), message)


DATA_FIELDS = {1: "floatValue", 2: "float16Value", 30: "rawValue", 31: "int8RawValue"}
"""Fields of ``WeightParams`` whose bytes are the values as they lie in memory."""

_NETWORKS = (
    "neuralNetwork",
    "neuralNetworkClassifier",
    "neuralNetworkRegressor",
    "pipeline",
    "pipelineClassifier",
    "pipelineRegressor",
)


@functools.cache
def layout() -> MessageLayout:
    """Return the messages that lead from a model to the weights of NeuralNetworks."""
    model = message_class("Model.Model").DESCRIPTOR
    weights = message_class("NeuralNetwork.WeightParams").DESCRIPTOR
    known: dict[str, Any] = {}
    above: dict[str, set[str]] = {}
    pending = [model]
    while pending:
        descriptor = pending.pop()
        if descriptor.full_name in known:
            continue
        known[descriptor.full_name] = descriptor
        for child in _messages(descriptor, model):
            above.setdefault(child.message_type.full_name, set()).add(descriptor.full_name)
            pending.append(child.message_type)
    leading = {weights.full_name}
    names = [weights.full_name]
    while names:
        for name in above.get(names.pop(), set()) - leading:
            leading.add(name)
            names.append(name)
    children = {
        name: {
            child.number: (child.name, child.message_type.full_name, child.is_repeated)
            for child in _messages(known[name], model)
            if child.message_type.full_name in leading
        }
        for name in sorted(leading)
    }
    return MessageLayout(model.full_name, children, {weights.full_name: DATA_FIELDS})


def _messages(descriptor: Any, model: Any) -> list[Any]:
    """Return the fields that hold messages; of a whole model those that hold networks."""
    fields = [child for child in descriptor.fields if child.message_type is not None]
    if descriptor is model:
        return [child for child in fields if child.name in _NETWORKS]
    return fields
