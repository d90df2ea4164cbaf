"""Moves trained models between formats, through Relay."""

from __future__ import annotations

import importlib as _importlib
import os as _os
from typing import Any as _Any

from serde._version import __version__

_HOMES = {
    "batch": "serde.batching.api",
    "bisect": "serde.checking.checks",
    "check": "serde.checking.checks",
    "compile": "serde.api",
    "convert": "serde.api",
    "diff": "serde.checking.difference",
    "export_model": "serde.api",
    "exports": "serde.walk.user_converters",
    "from_relay": "serde.api",
    "import_model": "serde.api",
    "import_to_gluon": "serde.api",
    "imports": "serde.walk.user_converters",
    "register_kernel": "serde.engine.foreign",
    "relay": "serde.relay",
    "serving": "serde.serving",
    "register_runner": "serde.target.runners",
    "target": "serde.target",
    "to_relay": "serde.api",
    "view": "serde.viewing.viewer",
    "HybridExecutor": "serde.target.hybrid",
    "Runnable": "serde.relax.runnable",
    "FormatError": "serde.errors",
    "MissingDependency": "serde.errors",
    "OptionError": "serde.errors",
    "Report": "serde.report",
    "SerdeError": "serde.errors",
    "UnsupportedModelError": "serde.errors",
}

__all__ = [*_HOMES, "__version__"]

if _os.path.exists(f"{_os.path.dirname(__file__)}/de.py"):
    from serde._installation import warn_of_pyserde as _warn_of_pyserde

    _warn_of_pyserde()


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'serde' has no attribute {name!r}")
    home = _importlib.import_module(_HOMES[name])
    return home if _HOMES[name] == f"serde.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
