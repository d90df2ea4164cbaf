"""Modules by the paths that they had before: imports of those go on with a warning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType

__all__ = ["Alias", "install"]

_MOVED = MappingProxyType(
    {
        "allocation": "core.allocation",
        "batching": "fleet.batching",
        "conversion.places": "conversion.locations",
        "guards": "bridge.guards",
        "limits": "core.limits",
        "lossy": "core.lossy",
        "markup": "core.markup",
        "options": "bridge.options",
        "outcome": "core.outcome",
        "progress": "core.progress",
        "quantization": "checking",
        "quantization.options": "bridge.quantizing",
        "report": "core.report",
        "serving": "fleet.serving",
        "stores": "fleet.stores",
        "summary": "bridge.summary",
        "systems": "core.systems",
        "target.runners": "target.regions",
        "texts": "core.texts",
        "weights": "core.weights",
        "relay.standard": "relay.tvm.standard",
        "relay.testing.programs": "relay.tvm.programs",
        "relay.transform.decorators": "relay.tvm.passes.decorators",
        "relay.transform.instrument": "relay.tvm.passes.instrument",
        "relay.transform.tvm": "relay.tvm.passes",
        **{
            f"relay.{room}.{module}": f"relay.tvm.{room}.{module}"
            for room, modules in (
                ("analysis", "calibration counting extraction forms variables"),
                ("dataflow_pattern", "graph grouping language matching patterns rewriting"),
            )
            for module in modules.split()
        },
    }
)
"""Paths below ``serde``, those before and those of today."""


class Alias(Loader):
    """Gives a module that is there, or that a name tells, so that both paths mean one object."""

    def __init__(self, home: str | ModuleType) -> None:
        self._home = home

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself."""
        home = self._home
        module = importlib.import_module(home) if isinstance(home, str) else home
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is: it has run, and keeps its own name."""
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what stands for a module that has moved, None for any other."""
        if not fullname.startswith("serde."):
            return None
        parts = fullname.split(".")[1:]
        for count in (3, 2, 1):
            home = _MOVED.get(".".join(parts[:count]))
            if home is not None:
                name = ".".join(("serde", home, *parts[count:]))
                warnings.warn(f"{fullname} is {name} now", DeprecationWarning, stacklevel=2)
                return ModuleSpec(fullname, Alias(name))
        return None


def install() -> None:
    """Let modules be found by the paths that they had before."""
    sys.meta_path.insert(0, _Finder())
