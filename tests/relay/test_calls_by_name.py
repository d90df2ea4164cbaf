"""What builds calls by an operator's name gives operands and attributes that it has.

Type checkers see these of ``relay.nn.conv2d(...)``, but not of ``call("nn.conv2d", ...)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from serde.relay.ir.registry import all_ops

PACKAGE = Path(__file__).parents[2] / "serde"
PARTS = sorted(path for path in PACKAGE.iterdir() if path.suffix in ("", ".py"))


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """The calls of ``call`` and ``registry.call`` whose first argument is a text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first = node.args[0]
        named = isinstance(first, ast.Constant) and isinstance(first.value, str)
        if named and ast.unparse(node.func) in ("call", "registry.call"):
            yield node, first.value


def faults(node: ast.Call, name: str) -> Iterator[str]:
    """What is wrong with a call, as far as its text shows it."""
    definition = all_ops().get(name)
    if definition is None:
        yield f"no operator is called {name}"
        return
    operands = node.args[1:]
    if not any(isinstance(each, ast.Starred) for each in operands):
        if len(operands) > len(definition.operands):
            yield f"{name}: {len(operands)} operands"
        left_out = definition.operands[len(operands) :]
        yield from (f"{name}: {each.name} is missing" for each in left_out if not each.optional)
    given = {each.arg for each in node.keywords}
    yield from (f"{name}: {arg}" for arg in given - {None, "span"} - set(definition.attributes))
    if None not in given:
        for attribute in definition.attributes.values():
            if attribute.required and attribute.name not in given:
                yield f"{name}: {attribute.name} is missing"


@pytest.mark.wide
@pytest.mark.parametrize("part", PARTS, ids=lambda path: path.name)
def test_calls_fit_the_declarations(part: Path) -> None:
    found = [
        f"{path.name}, line {node.lineno}: {text}"
        for path in (part.rglob("*.py") if part.is_dir() else [part])
        for node, name in calls(ast.parse(path.read_text(encoding="utf-8")))
        for text in faults(node, name)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("call('nn.sofmax', x)", ["no operator is called nn.sofmax"]),
        ("call('nn.softmax', x, y)", ["nn.softmax: 2 operands"]),
        ("call('add', x)", ["add: rhs is missing"]),
        ("call('nn.softmax', x, axes=1)", ["nn.softmax: axes"]),
        ("call('reshape', x)", ["reshape: newshape is missing"]),
        ("call('nn.softmax', *xs, **attrs)", []),
        ("registry.call('add', x, y, span=None)", []),
    ],
)
def test_the_faults_themselves(source: str, expected: list[str]) -> None:
    assert [
        text for node, name in calls(ast.parse(source)) for text in faults(node, name)
    ] == expected
