"""The small changes of serde whose notice by the tests benchmarks/mutants.py counts."""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["AREAS", "ROOT", "Mutant", "chosen"]

ROOT = Path(__file__).resolve().parents[1]

AREAS = {
    "serde/relay/op": 20,
    "serde/relay/transform": 15,
    "serde/relay/text": 8,
    "serde/onnx": 18,
    "serde/mxnet": 16,
    "serde/coreml": 16,
    "serde/walk": 4,
    "serde/io": 3,
}
"""Folders and how many of 100 mutants are made there."""

OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
"""The operator that takes the place of another."""

SYMMETRIC = {
    "add", "equal", "isinstance", "logical_and", "logical_or", "max", "maximum", "min", "minimum",
    "multiply", "not_equal", "zip", "getattr", "setattr", "print", "replace", "sorted", "range",
}  # fmt: skip
"""Functions whose arguments are not exchanged."""


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        path: The file, relative to the repository.
        function: Where it is.
        kind: What is changed.
        lines: First and last line of the statement.
        body: First and last line of the function.
        source: The changed file.
        difference: The changed lines.
    """

    path: str
    function: str
    kind: str
    lines: tuple[int, int]
    body: tuple[int, int]
    source: str = field(repr=False)
    difference: str


def changes(function: ast.FunctionDef) -> Iterator[tuple[str, ast.stmt, ast.AST, str]]:
    """Yield each change of a function: its kind, the statement, the node and the new text."""
    arguments = function.args
    for default in [*arguments.defaults, *arguments.kw_defaults]:
        if default is not None:
            yield from ((*each[:1], function, *each[1:]) for each in _of_expression(default))
    for statement in _statements(function.body):
        yield from _of_statement(statement)
        for expression in ast.iter_child_nodes(statement):
            if isinstance(expression, ast.expr) and not isinstance(statement, ast.Raise):
                for kind, node, text in _of_expression(expression):
                    yield kind, statement, node, text


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            yield from _statements(part.body)


def _of_statement(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt, ast.AST, str]]:
    called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    if called or isinstance(statement, (ast.AugAssign, ast.Raise, ast.Continue)):
        yield "statement removed", statement, statement, "pass"
    if isinstance(statement, (ast.If, ast.While)):
        yield "condition negated", statement, statement.test, f"(not ({_text(statement.test)}))"
    if isinstance(statement, ast.If) and not statement.orelse:
        yield "condition dropped", statement, statement.test, "True"


def _of_expression(expression: ast.expr) -> Iterator[tuple[str, ast.AST, str]]:
    for node in _nodes(expression):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OTHER:
            operator = OTHER[type(node.ops[0])]()
            yield "comparison", node, _text(ast.Compare(node.left, [operator], node.comparators))
        elif isinstance(node, ast.BinOp) and type(node.op) in OTHER:
            yield (
                "arithmetic",
                node,
                _text(ast.BinOp(node.left, OTHER[type(node.op)](), node.right)),
            )
        elif isinstance(node, ast.BoolOp):
            yield "and, or", node, _text(ast.BoolOp(OTHER[type(node.op)](), node.values))
            yield "operand dropped", node, _text(node.values[0])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield "not dropped", node, _text(node.operand)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield "constant", node, str(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            if abs(node.value) <= 64:
                yield "constant", node, str(node.value + 1)
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield "constant", node, repr(node.value * 2 + 1)
        elif isinstance(node, ast.Call) and len(node.args) > 1 and not _is_symmetric(node):
            first, second, *rest = node.args
            if isinstance(first, ast.Name) and isinstance(second, ast.Name):
                swapped = ast.Call(node.func, [second, first, *rest], node.keywords)
                yield "arguments exchanged", node, _text(swapped)


def _is_symmetric(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", None))
    return name in SYMMETRIC


def _nodes(expression: ast.AST) -> Iterator[ast.AST]:
    """All nodes of an expression but those of texts."""
    if not isinstance(expression, ast.JoinedStr):
        yield expression
        for child in ast.iter_child_nodes(expression):
            yield from _nodes(child)


def _text(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node))
    return text if isinstance(node, (ast.Name, ast.Constant, ast.Call)) else f"({text})"


def functions_of(path: Path) -> list[tuple[Path, ast.FunctionDef]]:
    """Return the functions of a file in which something can be changed."""
    return [
        (path, node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("__")
        and next(changes(node), None)
    ]


def _mutant(
    path: Path, function: ast.FunctionDef, kind: str, statement: ast.stmt, node: Any, text: str
) -> Mutant:
    source = path.read_text()
    lines = source.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    # The number of lines stays, so that tests are found by the lines of the original.
    filler = "\n" * (node.end_lineno - node.lineno)
    if filler and kind != "statement removed":
        text = f"({text}{filler})"
        filler = ""
    content = source.encode()
    changed = (content[:start] + (text + filler).encode() + content[end:]).decode()
    compile(changed, str(path), "exec")
    name = str(path.relative_to(ROOT))
    difference = difflib.unified_diff(
        source.splitlines(), changed.splitlines(), name, name, lineterm="", n=0
    )
    body = (function.body[0].lineno, function.end_lineno or function.lineno)
    if statement is function:
        spot = body
    elif isinstance(statement, (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.Match)):
        spot = (node.lineno, node.end_lineno)
    else:
        spot = (statement.lineno, statement.end_lineno or statement.lineno)
    return Mutant(
        name, function.name, kind, spot, body, changed,
        "\n".join(each for each in list(difference)[3:] if each.strip("+ ")),
    )  # fmt: skip


def chosen(seed: int, count: int) -> list[Mutant]:
    """Choose mutants: by area, then function, then kind, each at random."""
    generator = random.Random(seed)
    found: list[Mutant] = []
    for area, share in AREAS.items():
        paths = sorted((ROOT / area).rglob("*.py"))
        functions = [each for path in paths for each in functions_of(path)]
        for path, function in generator.sample(functions, round(share * count / 100)):
            possible = list(changes(function))
            kind = generator.choice(sorted({each[0] for each in possible}))
            change = generator.choice([each for each in possible if each[0] == kind])
            found.append(_mutant(path, function, *change))
    return found
