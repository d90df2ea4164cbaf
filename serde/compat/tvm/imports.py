"""How ``import tvm`` and what lies below find their names in serde."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any as AnyValue, Final

from serde._moved import Alias
from serde.compat.tvm.absent import find_absent

__all__ = ["install"]

_HERE: Final = "serde.compat.tvm"
_OWN: Final = ("error", "ir", "runtime", "target", "testing")
_HOMES: Final = {
    **{name: f"{_HERE}.{name}" for name in _OWN},
    **{"nd": f"{_HERE}.runtime", "parser": "serde.relay.text.parser"},
    **dict.fromkeys(("transform", "ir.transform"), "serde.relay.transform"),
    "relay.backend.interpreter": "serde.relay.run.values",
    **dict.fromkeys(("instrument", "ir.instrument"), "serde.relay.tvm.passes.instrument"),
}
"""Modules below ``tvm``; what lies below one of them is that module."""


class _Finder(MetaPathFinder):
    """Finds modules of TVM 0.18; where a newer TVM is installed, those that it lacks."""

    _whole = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what stands for a module of TVM, None for any other."""
        if not fullname.startswith("tvm."):
            return None
        tvm, here, below = sys.modules["tvm"], sys.modules[_HERE], fullname[4:]
        if tvm is not here and not below.startswith("relay."):
            if PathFinder.find_spec(fullname, path) is not None:
                return None
            if below == "relax.frontend.nnef":
                return ModuleSpec(fullname, Alias("serde.compat.relax_frontend"))
        found = _find(below)
        if found is not None and tvm is not here and not self._whole:
            self._whole = True
            _complete(tvm, here)
        return None if found is None else ModuleSpec(fullname, Alias(found))


def _find(path: str) -> ModuleType | None:
    """Return the module that stands for one below ``tvm``, or None."""
    head, _, below = path.partition(".")
    home = _HOMES.get(path) or _HOMES.get(head)
    if head == "relay" and home is None and not below.startswith("backend"):
        return _find_in_relay(below)
    return find_absent(path) if home is None else importlib.import_module(home)


def _find_in_relay(path: str) -> ModuleType | None:
    """Return a module of Relay, or one that has the builders of a namespace."""
    found: AnyValue = importlib.import_module("serde.relay")
    if path in ("", "base", "param_dict", "parser", "type_functor"):
        return found
    for name in path.split("."):
        found = getattr(found, name, None)
    if found is None or isinstance(found, ModuleType):
        return found
    module = ModuleType(f"tvm.relay.{path}")
    vars(module).update(__getattr__=found.__getattr__, __dir__=found.__dir__, __path__=[])
    vars(module)["__all__"] = dir(found)
    return module


def _complete(tvm: ModuleType, here: ModuleType) -> None:
    """Give the installed TVM the names of 0.18 that it lacks, and leave those that it has."""
    pairs = [(getattr(here, name), importlib.import_module(f"tvm.{name}")) for name in _OWN]
    for ours, theirs in (*pairs, (here, tvm)):
        for name in ours.__all__:
            if not hasattr(theirs, name):
                setattr(theirs, name, getattr(ours, name))


def install() -> None:
    """Let ``import tvm`` find Relay; a TVM that has one itself is left, with a warning."""
    installed = find_spec("tvm")
    for folder in (installed and installed.submodule_search_locations) or ():
        if (Path(folder) / "relay" / "__init__.py").is_file():
            text = f"the TVM in {folder} has a Relay of its own: {_HERE} leaves it as it is"
            warnings.warn(text, stacklevel=3)
            return
    if installed is None:
        sys.modules["tvm"] = sys.modules[_HERE]
    sys.meta_path.insert(0, _Finder())
