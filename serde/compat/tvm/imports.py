"""How ``import tvm`` and what lies below find their names in serde."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Final

from serde.compat.tvm.absent import find_absent

__all__ = ["install"]

_HERE: Final = "serde.compat.tvm"
_OWN: Final = ("error", "ir", "runtime", "target", "testing")
_HOMES: Final = {
    **{name: f"{_HERE}.{name}" for name in _OWN},
    "nd": f"{_HERE}.runtime",
    "parser": "serde.relay.text.parser",
    "transform": "serde.relay.transform",
    "ir.transform": "serde.relay.transform",
    "instrument": "serde.relay.tvm.passes.instrument",
    "ir.instrument": "serde.relay.tvm.passes.instrument",
    "relax.frontend.nnef": "serde.compat.relax_frontend",
}
"""Modules below ``tvm``; what lies below one of them is that module."""


class _Loader(Loader):
    """Gives a module that is there, which keeps its own name."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    """Finds modules of TVM 0.18; where a newer TVM is installed, those that it lacks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what stands for a module of TVM, None for any other."""
        root, _, below = fullname.partition(".")
        if root != "tvm" or not below:
            return None
        stands_in = sys.modules["tvm"] is sys.modules[_HERE]
        if not stands_in and PathFinder.find_spec(fullname, path) is not None:
            return None
        found = _find(below)
        if found is None or (stands_in and below.startswith("relax.")):
            return None
        if not stands_in:
            _complete(sys.modules["tvm"])
        return ModuleSpec(fullname, _Loader(found))


def _find(path: str) -> ModuleType | None:
    """Return the module that stands for one below ``tvm``, or None."""
    head, _, below = path.partition(".")
    if head == "relay":
        return _find_in_relay(below)
    if head in ("te", "tir"):
        return getattr(importlib.import_module(f"{_HERE}.arithmetic"), head)
    home = _HOMES.get(path) or _HOMES.get(head)
    return find_absent(path) if home is None else importlib.import_module(home)


def _find_in_relay(path: str) -> ModuleType | None:
    """Return a module of Relay, or one that has the builders of a namespace."""
    found = relay = importlib.import_module("serde.relay")
    if path in ("base", "param_dict", "parser", "type_functor"):
        return relay
    for name in filter(None, path.split(".")):
        try:
            found = getattr(found, name)
        except AttributeError:
            return None
    if isinstance(found, ModuleType):
        return found
    module = ModuleType(f"tvm.relay.{path}")
    vars(module).update(__getattr__=found.__getattr__, __all__=dir(found), __path__=[])
    return module


def _complete(tvm: ModuleType) -> None:
    """Give the installed TVM the names of 0.18 that it lacks, and leave those that it has."""
    here = sys.modules[_HERE]
    for ours, theirs in [(here, tvm), *((getattr(here, n), getattr(tvm, n, None)) for n in _OWN)]:
        for name in ours.__all__:
            if theirs is not None and not hasattr(theirs, name):
                setattr(theirs, name, getattr(ours, name))


def install() -> None:
    """Let ``import tvm`` find Relay; a TVM that has one itself is left, with a warning."""
    installed = sys.modules.get("tvm") or importlib.util.find_spec("tvm")
    folders = getattr(installed, "__path__", None) or getattr(
        installed, "submodule_search_locations", []
    )
    own = [folder for folder in folders if (Path(folder) / "relay" / "__init__.py").is_file()]
    if own:
        text = f"the TVM in {own[0]} has a Relay of its own: serde.compat.tvm leaves it as it is"
        warnings.warn(text, stacklevel=3)
        return
    if installed is None:
        sys.modules["tvm"] = sys.modules[_HERE]
    sys.meta_path.insert(0, _Finder())
