"""Converters make arrays of sizes that a model tells through the one module that counts them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import serde

PACKAGE = Path(serde.__file__).parent
CONVERTERS = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if "relay" not in path.relative_to(PACKAGE).parts
    and ("ops" in path.parts or "expansion" in path.parts)
)
SIZED: dict[str, tuple[int | str, ...]] = {
    "arange": (0, 1, 2, "start", "stop", "step"),
    "bincount": (0, 1, "minlength"),
    "broadcast_to": (1, "shape"),
    "empty": (0, "shape"),
    "eye": (0, 1, "N", "M"),
    "full": (0, "shape"),
    "identity": (0, "n"),
    "indices": (0, "dimensions"),
    "kron": (0, 1),
    "linspace": (2, "num"),
    "ndindex": (0, 1, 2, 3),
    "ones": (0, "shape"),
    "outer": (0, 1),
    "pad": (1, "pad_width"),
    "repeat": (1, "repeats"),
    "resize": (1, "new_shape"),
    "tile": (1, "reps"),
    "tri": (0, 1, "N", "M"),
    "tril_indices": (0, 2, "n", "m"),
    "triu_indices": (0, 2, "n", "m"),
    "zeros": (0, "shape"),
}
"""Functions of NumPy whose results are as large as their arguments say, and which arguments."""

Names = Mapping[str, Sequence[ast.expr | None]]
"""What each name of a function is assigned, None where that is no expression of its own."""


def sized_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield calls of NumPy that make an array of a size that no text and no list bounds."""
    for part in tree.body:
        members = part.body if isinstance(part, ast.ClassDef) else [part]
        for member in members:
            yield from _find_sized_calls(member, assigned(member))


def _find_sized_calls(within: ast.AST, names: Names) -> Iterator[ast.Call]:
    for node in ast.walk(within):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        if not isinstance(of, ast.Name) or of.id != "np" or node.func.attr not in SIZED:
            continue
        wanted = SIZED[node.func.attr]
        given = [each for place, each in enumerate(node.args) if place in wanted]
        given += [each.value for each in node.keywords if each.arg in wanted]
        if (
            any(isinstance(each, ast.Starred) for each in node.args)
            or not given
            or not all(is_bounded(each, names) for each in given)
        ):
            yield node


def assigned(within: ast.AST) -> Names:
    """Return what each name in a part of a module is assigned."""
    found: dict[str, list[ast.expr | None]] = {}
    alone = dict(pair for node in ast.walk(within) for pair in _assignments(node))
    for node in ast.walk(within):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, []).append(alone.get(node))
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(None)
    return found


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment, each with what it alone is assigned."""
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if not isinstance(target, ast.Tuple):
            yield target, node.value
        elif isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts):
            yield from zip(target.elts, node.value.elts, strict=True)


def is_bounded(node: ast.expr, names: Names) -> bool:
    """Whether a size is written in the source, or at most the sum of lengths that are held."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Attribute):
        return node.attr in ("rank", "ndim")
    if isinstance(node, ast.Name):
        # A name that is read to assign itself grows.
        rest = {name: value for name, value in names.items() if name != node.id}
        known = names.get(node.id, ())
        bounded = [each is not None and is_bounded(each, rest) for each in known]
        return node.id in ("rank", "ndim") or (bool(bounded) and all(bounded))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "len":
            return True
        return node.func.id in ("max", "min", "sum") and all(
            is_bounded(each, names) for each in node.args
        )
    if isinstance(node, ast.GeneratorExp):
        return is_bounded(node.elt, names)
    if isinstance(node, (ast.Tuple, ast.List)):
        return sum(not isinstance(each, ast.Constant) for each in node.elts) < 2 and all(
            is_bounded(each, names) for each in node.elts
        )
    if isinstance(node, ast.BinOp):
        sides = is_bounded(node.left, names) and is_bounded(node.right, names)
        literals = sum(isinstance(each, ast.Constant) for each in (node.left, node.right))
        adds = isinstance(node.op, (ast.Add, ast.Sub, ast.FloorDiv))
        return sides and (adds or literals == 2 or (literals and isinstance(node.op, ast.Mult)))
    return isinstance(node, ast.UnaryOp) and is_bounded(node.operand, names)


@pytest.mark.wide
@pytest.mark.parametrize("path", CONVERTERS, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_converters_make_arrays_by_the_budget(path: Path) -> None:
    found = [ast.unparse(node) for node in sized_calls(ast.parse(path.read_text("utf-8")))]
    assert not found


@pytest.mark.parametrize(
    "call",
    [
        "np.zeros(n)",
        "np.full((2, n), 1)",
        "np.full(shape=n, fill_value=1)",
        "np.arange(0, n)",
        "np.linspace(0, 1, num=n)",
        "np.tile(x, (2, n))",
        "np.zeros(*shape)",
        "np.zeros((len(x), len(y)))",
        "np.zeros(len(x) * len(y))",
        "np.zeros(2 ** len(x))",
        "np.zeros(grown)",
        "np.outer(x, y)",
    ],
)
def test_a_size_that_nothing_bounds_is_found(call: str) -> None:
    source = f"def convert(n, x, y, shape):\n    grown = len(x)\n    grown += n\n    return {call}"
    assert [ast.unparse(each) for each in sized_calls(ast.parse(source))] == [call]


@pytest.mark.parametrize(
    "call",
    [
        "np.zeros((2, 3))",
        "np.zeros(())",
        "np.arange(4)",
        "np.arange(rank - 1)",
        "np.zeros((count, 4))",
        "np.zeros(count + sum(len(each) - 1 for each in y))",
        "np.tile(np.arange(count), (2, 1))",
        "own.ones(n)",
    ],
)
def test_a_size_that_is_bounded_is_left(call: str) -> None:
    source = f"def convert(n, x, y):\n    count, more = len(x), n\n    return {call}"
    assert not list(sized_calls(ast.parse(source)))
