"""Relay, the functional graph IR of TVM up to 0.19, in Python and NumPy.

The pivot between formats. Operators are attributes of this package, as ``relay.add`` or
``relay.nn.conv2d``, called as TVM's builders are. What is asked for is loaded then.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _AnyValue

from serde.core.lazy import lazy_names
from serde.relay.homes import ABOVE_NODES, ELSEWHERE, HOMES
from serde.relay.ir.hooks import provide as _provide

_provide(ABOVE_NODES)

_BACKEND = ("load_json", "load_param_dict", "save_json", "save_param_dict", "to_onnx")
LATER = {"frontend": "serde.compat.frontend", **dict.fromkeys(_BACKEND, "serde.compat.backend")}


def _builders() -> _AnyValue:
    """Return a module; a package that loads parts of itself can deadlock between threads."""
    return _importlib.import_module("serde.relay.ir.builders")


def _find(name: str) -> _AnyValue:
    if name in LATER:
        module = _importlib.import_module(LATER[name])
        return getattr(module, name, module)
    if name in ELSEWHERE:
        raise AttributeError(f"relay.{name} is not in serde: {ELSEWHERE[name]}")
    return _builders().lookup_builder(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *LATER, *_builders().builder_names()})


__getattr__, _names, __all__ = lazy_names(__name__, HOMES, _find)
