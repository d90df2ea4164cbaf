"""Constants of Relay that converters make: which call of `relay.const` may leave the dtype out.

`relay.const` makes 32 bits of 64 where it is not told otherwise, as TVM's does. What comes as an
array has its dtype for a reason: it goes into `relay.Constant`, or the dtype is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import serde

PACKAGE = Path(serde.__file__).parent
FOLDERS = sorted({path.parent for path in PACKAGE.rglob("*.py")})
NARROW = frozenset(
    {"bool", "bool_", "float16", "float32", "int8", "int16", "int32", "uint8", "uint16", "uint32"}
)
BUILDERS = {"relay/op/shape/pad.py"}
"""Modules whose builders take a number of the user's, as TVM's do."""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of `relay.const`, or of `const`, that name no dtype."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            continue
        name = ast.unparse(node.func)
        if name in ("const", "relay.const"):
            yield node


def is_narrow(value: ast.expr) -> bool:
    """Whether a value is a Python number, or says that it has no 64 bits."""
    if isinstance(value, (ast.UnaryOp, ast.List, ast.Tuple)):
        parts = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value.operand]
        return all(map(is_narrow, parts))
    if isinstance(value, ast.Subscript):
        return is_narrow(value.value)
    if isinstance(value, ast.Call):
        words = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
        words |= {each.attr for each in ast.walk(value) if isinstance(each, ast.Attribute)}
        return bool(words & NARROW)
    return isinstance(value, (ast.Constant, ast.Compare))


def wide_constants(path: Path) -> list[str]:
    """Calls of a module that make constants of 64 bits without saying so."""
    if path.relative_to(PACKAGE).as_posix() in BUILDERS:
        return []
    return [
        f"{path}: line {call.lineno}: {ast.unparse(call)}: say the dtype, or relay.Constant(array)"
        for call in calls(ast.parse(path.read_text(encoding="utf-8")))
        if not is_narrow(call.args[0])
    ]


@pytest.mark.wide
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_constants_of_64_bits_are_meant(folder: Path) -> None:
    assert [each for path in folder.glob("*.py") for each in wide_constants(path)] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("relay.const(1.0)", True),
        ("relay.const(-1)", True),
        ("const([0, 1])", True),
        ("relay.const(np.int32(length))", True),
        ("relay.const(np.arange(n, dtype=np.float32)[None])", True),
        ("relay.const(np.arange(n) == axis)", True),
        ("relay.const(np.int64(1))", False),
        ("relay.const(np.arange(n))", False),
        ("relay.const(places)", False),
    ],
)
def test_the_rule_itself(source: str, expected: bool) -> None:
    (call,) = calls(ast.parse(source))
    assert is_narrow(call.args[0]) is expected
