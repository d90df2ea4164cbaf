"""Where converters of ONNX stand: the categories of Relay's operators, importer beside exporter."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import serde.onnx.ops
from serde.onnx.ops.table import OPS
from serde.relay.ir.registry import all_ops
from serde.walk.converter import innermost

ROOT = Path(serde.onnx.ops.__file__).parent
MODULES = {
    f"serde.onnx.ops.{path.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}": path
    for path in sorted(ROOT.rglob("*.py"))
    if path.name != "__init__.py"
}

FOLDED = {"rotary": "attention", "embedding": "attention", "linear_attention": "attention"}
"""Single files of relay/op that are a group of a category elsewhere."""


def category(module: str, package: str) -> str:
    name = module.removeprefix(f"{package}.").partition(".")[0]
    return FOLDED.get(name, name)


@pytest.mark.wide
@pytest.mark.parametrize("name", sorted(OPS.exported()))
def test_exporter_is_in_the_category_of_the_declaration(name: str) -> None:
    declared = category(all_ops()[name].kernel.__module__, "serde.relay.op")
    found = {
        category(innermost(each.function).__module__, "serde.onnx.ops")
        for version in range(1, 40)
        if (each := OPS.exporter(name, version)) is not None
    }
    assert found == {declared}


@cache
def importers() -> dict[str, set[str]]:
    """For each operator of ONNX the modules that import it."""
    found: dict[str, set[str]] = {}
    for name, version in OPS.imported():
        converter = OPS.importer(name, version)
        assert converter is not None
        found.setdefault(name, set()).add(innermost(converter.function).__module__)
    return found


@cache
def emitted() -> dict[str, set[str]]:
    """For each operator the modules that name it outside of what they import."""
    found: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        text = re.sub(r"OPS\.imports\([^)]*\)", "", path.read_text())
        for name in re.findall(r'"([A-Z][A-Za-z0-9]+)"', text):
            found.setdefault(name, set()).add(module)
    return found


HELPED = {"ConstantOfShape", "Identity"}
"""Operators that a helper writes for converters of every category."""


@pytest.mark.parametrize("name", sorted(set(importers()) - HELPED))
def test_importer_is_beside_an_exporter_that_writes_the_operator(name: str) -> None:
    writers = emitted().get(name, set())
    readers = importers()[name]
    assert len(readers) == 1
    assert not writers or readers <= writers


def test_modules_do_not_import_each_other_in_circles() -> None:
    below = {
        module: set(re.findall(r"^from (serde\.onnx\.ops\.[\w.]+) import", path.read_text(), re.M))
        for module, path in MODULES.items()
    }
    while leaves := {module for module, needs in below.items() if not needs & set(below)}:
        for module in leaves:
            del below[module]
    assert not below
