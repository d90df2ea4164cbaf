"""Moves trained models between formats, through Relay."""

from __future__ import annotations

import importlib as _importlib
import os as _os
from typing import Any as _Any

from serde._moved import install as _install
from serde._version import __version__

_HOMES = {
    "batch": "serde.fleet.batching.api",
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
    "serving": "serde.fleet.serving",
    "register_runner": "serde.target.runners",
    "target": "serde.target",
    "to_relay": "serde.api",
    "view": "serde.viewing.viewer",
    "HybridExecutor": "serde.target.hybrid",
    "Runnable": "serde.relax.runnable",
    "FormatError": "serde.errors",
    "MissingDependency": "serde.errors",
    "OptionError": "serde.errors",
    "Report": "serde.core.report",
    "SerdeError": "serde.errors",
    "UnsupportedModelError": "serde.errors",
}

__all__ = [*_HOMES, "__version__"]

_install()

if _os.path.exists(f"{_os.path.dirname(__file__)}/de.py"):
    from serde.core.installation import warn_of_pyserde as _warn_of_pyserde

    _warn_of_pyserde()


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'serde' has no attribute {name!r}")
    home = _importlib.import_module(_HOMES[name])
    return home if _HOMES[name].endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
