"""Converters make arrays of sizes that a model tells through the one module that counts them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
SIZED = {
    "arange", "empty", "eye", "full", "identity", "indices", "linspace", "ones",
    "repeat", "tile", "tri", "zeros",
}  # fmt: skip
"""Functions of NumPy whose results are as large as their arguments say."""


def sized_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield calls of NumPy that make an array of a size that is no literal."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        if not isinstance(of, ast.Name) or of.id != "np" or node.func.attr not in SIZED:
            continue
        if not (node.args and is_small(node.args[0])):
            yield node


def is_small(node: ast.expr) -> bool:
    """Whether a size is written in the source, by numbers, or one of what is there already."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "len"
    if isinstance(node, (ast.Name, ast.Attribute)):
        return (node.id if isinstance(node, ast.Name) else node.attr) in ("rank", "ndim")
    if isinstance(node, ast.Tuple):
        return all(map(is_small, node.elts))
    if isinstance(node, ast.BinOp):
        return is_small(node.left) and is_small(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_small(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


ALLOWED = {
    "onnx/ops/conv/deformable.py": 1,
    "onnx/ops/image/crop.py": 1,
    "onnx/ops/image/sampling.py": 1,
    "onnx/ops/index/ngrams.py": 1,
    "onnx/ops/index/select.py": 1,
    "onnx/ops/linalg/fourier.py": 8,
    "onnx/ops/linalg/sparse.py": 1,
    "onnx/ops/microsoft/linalg.py": 1,
    "onnx/ops/ml/coupling.py": 4,
    "onnx/ops/ml/ensemble.py": 5,
    "onnx/ops/ml/svm.py": 1,
    "onnx/ops/ml/tree_ensemble.py": 3,
    "onnx/ops/ml/trees.py": 1,
    "onnx/ops/pool/adaptive.py": 2,
    "onnx/ops/pool/geometry.py": 2,
    "onnx/ops/qnn/conv.py": 1,
    "onnx/ops/qnn/linear.py": 1,
    "onnx/ops/shape/broadcast.py": 1,
    "onnx/ops/shape/window.py": 1,
    "onnx/ops/vision/regions.py": 1,
    "torch/ops/pool/adaptive.py": 1,
}
"""The most calls, by module, whose sizes are those of what is there already, or checked before."""


@pytest.mark.wide
@pytest.mark.parametrize("path", CONVERTERS, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_converters_make_arrays_by_the_budget(path: Path) -> None:
    found = [ast.unparse(node) for node in sized_calls(ast.parse(path.read_text("utf-8")))]
    allowed = ALLOWED.get(path.relative_to(PACKAGE).as_posix(), 0)
    assert len(found) <= allowed, found


def test_a_size_that_is_no_literal_is_found() -> None:
    source = [
        "np.zeros(n)",
        "np.zeros((2, 3))",
        "np.arange(4)",
        "np.full((2, n), 1)",
        "own.ones(n)",
    ]
    found = sized_calls(ast.parse("\n".join(source)))
    assert [ast.unparse(each) for each in found] == [source[0], source[3]]
