"""Moves trained models between formats, through Relay."""

from __future__ import annotations

import importlib as _importlib
import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from serde._moved import install as _install
from serde._version import __version__

_NAMES = {
    "serde.api": "compile convert export_model from_relay import_model import_to_gluon to_relay",
    "serde.checking.checks": "bisect check",
    "serde.checking.difference": "diff",
    "serde.conversion.routing": "route",
    "serde.core.report": "Report",
    "serde.engine.foreign": "register_kernel",
    "serde.errors": "FormatError MissingDependency OptionError SerdeError UnsupportedModelError",
    "serde.fleet.batching.api": "batch",
    "serde.fleet.serving": "serving",
    "serde.relax.runnable": "Runnable",
    "serde.relay": "relay",
    "serde.target": "target",
    "serde.target.hybrid": "HybridExecutor",
    "serde.target.regions": "register_runner",
    "serde.viewing.viewer": "view",
    "serde.walk.user_converters": "exports imports",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

if _TYPE_CHECKING:  # Types are in the stub; editors look for documentation here.
    # ruff: noqa: F401
    from serde.api import compile, convert, export_model, from_relay, import_model
    from serde.api import import_to_gluon, to_relay  # isort: skip
    from serde.checking.checks import bisect, check
    from serde.checking.difference import diff
    from serde.conversion.routing import route
    from serde.fleet.batching.api import batch
    from serde.viewing.viewer import view

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
