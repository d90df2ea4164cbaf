"""Writes ``index.json`` beside the modules that register operators.

``python tests/support/operator_index.py`` (as ``make docs`` does) loads every module, sees which
one registers what, and writes that down, so that the registry and the tables of converters load
only the modules that are asked for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from serde.relay.ir import registry

RELAY = "serde.relay.op"


def importing() -> str:
    """Name of the module whose body is running, the innermost one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None:
        raise RuntimeError("nothing is being imported")
    return str(frame.f_globals["__name__"])


class Recording(dict[Any, Any]):
    """A dictionary that notes, for each key, which module entered it."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[Any, str] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        self.sources[key] = importing()
        super().__setitem__(key, value)


def index_relay() -> dict[str, Any]:
    """Return the index of Relay's operators and builders."""
    operators, builders = Recording(), Recording()
    registry._OPS, registry._BUILDERS = operators, builders
    registry._PACKAGE.__dict__["index"] = {}
    registry._PACKAGE.load_all()
    found: dict[str, Any] = {}
    for name, module in sorted(operators.sources.items()):
        definition = operators[name]
        operands = " ".join(operand.name for operand in definition.operands)
        entry = found.setdefault(relative(module, RELAY), {}).setdefault("operators", {})
        entry[name] = f"{operands}; {' '.join(definition.attributes)}".strip()
    for path, module in sorted(builders.sources.items()):
        found.setdefault(relative(module, RELAY), {}).setdefault("builders", []).append(path)
    return dict(sorted(found.items()))


def relative(module: str, package: str) -> str:
    """The name of a module relative to its package."""
    if not module.startswith(f"{package}."):
        raise RuntimeError(f"{module} registers an operator and is not in {package}")
    return module.removeprefix(f"{package}.")


def as_json(index: dict[str, Any]) -> str:
    """The text of an index."""
    return json.dumps(index, indent=1) + "\n"


if __name__ == "__main__":
    Path("serde/relay/op/index.json").write_text(as_json(index_relay()), encoding="utf-8")
