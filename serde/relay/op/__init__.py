"""All operators, each in the file of its category; :mod:`serde.relay.ir.registry` loads them.

As in ``tvm.relay.op``, the builders of ``relay`` are attributes of this package, and of the names
of TVM's modules in it: ``relay.op.nn.conv2d``, ``relay.op.transform.reshape``. ``relay.op._make``
has the same builders.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any as AnyValue


def __getattr__(name: str) -> AnyValue:
    if name == "contrib":
        return importlib.import_module("serde.relay.op.contrib")
    if name == "_make":
        return sys.modules[__name__]
    if not name.startswith("_"):
        found = importlib.import_module("serde.relay.ir.op_paths").find_op_path(name)
        if found is not None:
            return found
        near = importlib.import_module("serde.core.texts").near_names(name, __dir__())
        raise AttributeError(f"relay.op has no {name}.{near}")
    raise AttributeError(f"relay.op has no {name}")


def __dir__() -> list[str]:
    names: list[str] = importlib.import_module("serde.relay.ir.op_paths").names_below_op()
    return names
