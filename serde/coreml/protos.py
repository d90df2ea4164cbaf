"""Apple's protobuf messages, taken from coremltools without importing all of it.

``import coremltools`` loads its converters, and PyTorch where that is installed; the
messages alone load in a twentieth of a second. They are Apple's generated modules, which
register themselves under the same names whoever loads them, so that messages made here and
messages of a coremltools that is imported later are of the same classes.
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

__all__ = ["message_class", "proto_module"]

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
