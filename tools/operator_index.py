"""Which module registers which operator, and what formats there are: ``index.json`` beside them.

``python tools/operator_index.py`` (as ``make docs`` does) loads every module, sees what
it registers, and writes that down, so that the registry and the tables of converters load only
the modules that are asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from serde.bridge.formats import FORMATS, facts_of, get_bridge
from serde.relay.ir import registry
from serde.relay.ir.lazy import LazyPackage
from serde.walk.table import ConverterTable

ROOT = Path(__file__).parents[1]
RELAY = "serde.relay.op"
CONVERTERS = (
    "serde.onnx.ops",
    "serde.mxnet.ops",
    "serde.nnef.ops",
    "serde.relax.ops",
    "serde.coreml.mlprogram.ops",
    "serde.coreml.neuralnetwork.ops",
    "serde.tflite.ops",
    "serde.torch.ops",
)
Entry = tuple[str, str, str, str]
"""A module, the table, the kind of converter, the operator."""


def importing() -> str:
    """Name of the module whose body is running, the innermost one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None:
        raise RuntimeError("nothing is being imported")
    return str(frame.f_globals["__name__"])


def build_indices() -> dict[str, dict[str, Any]]:
    """Return the index of every package; no operator may have been loaded before."""
    loaded = [name for name in sys.modules if name.startswith((f"{RELAY}.", *CONVERTERS))]
    if loaded:
        raise RuntimeError(f"loaded before: {', '.join(loaded)}")
    declared, entries = _recorded_declarations(), _recorded_converters()
    LazyPackage(RELAY).load_all()
    # The tables of before may name modules that are gone.
    with mock.patch.object(LazyPackage, "index", {}):
        for package in CONVERTERS:
            LazyPackage(package).load_all()
    return {
        RELAY: _index_declarations(declared),
        **{package: _index_converters(package, entries) for package in CONVERTERS},
        "serde.bridge": {name: facts_of(get_bridge(name)) for name in sorted(FORMATS)},
    }


def _recorded_declarations() -> list[tuple[str, str, str]]:
    """Return a list that gets the module, kind and name of whatever is declared from now on."""
    found: list[tuple[str, str, str]] = []

    def recording(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def record(name: str, **options: Any) -> Any:
            found.append((importing(), kind, name))
            return function(name, **options)

        return record

    registry.relay_op = recording("operators", registry.relay_op)
    registry.builder = recording("builders", registry.builder)
    return found


def _recorded_converters() -> list[Entry]:
    """Likewise, of converters."""
    found: list[Entry] = []

    def recording(kind: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def record(table: ConverterTable, *operators: Any, **options: Any) -> Any:
            names = [getattr(each, "name", each) for each in operators]
            found.extend((importing(), table.format_name, kind, name) for name in names)
            return method(table, *operators, **options)

        return record

    for method in ("imports", "refuses", "exports", "expands"):
        kind = "imports" if method == "refuses" else method
        setattr(ConverterTable, method, recording(kind, getattr(ConverterTable, method)))
    return found


def _index_declarations(declared: list[tuple[str, str, str]]) -> dict[str, Any]:
    index: dict[str, Any] = {}
    for module, kind, name in sorted(set(declared)):
        listed = index.setdefault(_relative(module, RELAY), {})
        if kind == "builders":
            listed.setdefault(kind, []).append(name)
            continue
        definition = registry.get(name)
        operands = " ".join(operand.name for operand in definition.operands)
        text = f"{operands}; {' '.join(definition.attributes)}".rstrip()
        listed.setdefault(kind, {})[name] = text
    return index


def _index_converters(package: str, entries: list[Entry]) -> dict[str, Any]:
    index: dict[str, Any] = {}
    for module, table, kind, name in sorted(set(entries)):
        if module.startswith(f"{package}."):
            kinds = index.setdefault(_relative(module, package), {}).setdefault(table, {})
            kinds[kind] = f"{kinds[kind]} {name}" if kind in kinds else name
    return index


def _relative(module: str, package: str) -> str:
    if not module.startswith(f"{package}."):
        raise RuntimeError(f"{module} registers an operator and is not in {package}")
    return module.removeprefix(f"{package}.")


def index_path(package: str) -> Path:
    """Where the index of a package is."""
    return ROOT.joinpath(*package.split("."), "index.json")


def as_text(index: dict[str, Any]) -> str:
    """The text of an index."""
    return json.dumps(index, indent=1) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print(json.dumps(build_indices()))
    else:
        for package, index in build_indices().items():
            index_path(package).write_text(as_text(index), encoding="utf-8")
