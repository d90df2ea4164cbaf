"""MXNet's linear algebra, legacy and NumPy's, against MXNet itself."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, run_under, same
from support.runtime import newest_runtime_opset, run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import RelayError, UnsupportedModelError
from serde.relay.run.interpreter import run

DTYPES = ("float32", "float64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
"""Factors and solutions lose some digits to the condition of the matrices, 30 at most here."""

BATCHES = [(), (2,), (2, 3)]


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def regular(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Square matrices with singular values between a half and four, in no order."""
    left, _, right = np.linalg.svd(numbers(*shape, dtype="float64"))
    values = np.linspace(0.5, 4, shape[-1])
    return ((left * values) @ right).astype(dtype)


def positive(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Positive definite matrices of singular values between a half and four."""
    left, _, _ = np.linalg.svd(numbers(*shape, dtype="float64"))
    values = np.linspace(0.5, 4, shape[-1])
    return ((left * values) @ np.swapaxes(left, -1, -2)).astype(dtype)


def triangular(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Matrices with a dominant diagonal, filled on both sides of it."""
    return numbers(*shape, dtype=dtype) * np.array(0.5, dtype) + 2 * np.eye(shape[-1], dtype=dtype)


def var(mx: Any, name: str = "x") -> Any:
    return mx.sym.var(name).as_np_ndarray()


def flat(mx: Any, found: Any) -> Any:
    """All outputs, in NumPy's world if they are."""
    if not isinstance(found, (list, tuple)):
        return found
    whole = mx.sym.Group(found)
    return whole.as_np_ndarray() if isinstance(found[0], mx.sym.np._Symbol) else whole


@pytest.mark.wide
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_gemm2(mx: Any, transpose_b: bool, transpose_a: bool, batch: Any, dtype: str) -> None:
    a = numbers(*batch, *((3, 2) if transpose_a else (2, 3)), dtype=dtype)
    b = numbers(*batch, *((4, 3) if transpose_b else (3, 4)), dtype=dtype)
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b, "alpha": 1.5}
    agree(mx.sym.linalg.gemm2(mx.sym.var("a"), mx.sym.var("b"), **flags), {"a": a, "b": b})


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -3, -2])
def test_gemm2_along_another_axis(mx: Any, axis: int, transpose_a: bool) -> None:
    a, b = [5, 6, 3], [5, 6, 4]
    rows = axis % 4
    a.insert(rows, 2)
    b.insert(rows, 3)
    if transpose_a:
        a[rows], a[-1] = a[-1], a[rows]
    symbol = mx.sym.linalg.gemm2(
        mx.sym.var("a"), mx.sym.var("b"), axis=axis, transpose_a=transpose_a
    )
    agree(symbol, {"a": numbers(*a), "b": numbers(*b)})


@pytest.mark.wide
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [-2, 0])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (2.0, 0.5), (-1.0, 0.0)])
def test_gemm(mx: Any, alpha: float, beta: float, axis: int, dtype: str) -> None:
    shapes = {-2: [(5, 2, 3), (5, 3, 4), (5, 2, 4)], 0: [(2, 5, 3), (3, 5, 4), (2, 5, 4)]}[axis]
    names = [mx.sym.var(name) for name in "abc"]
    symbol = mx.sym.linalg.gemm(*names, alpha=alpha, beta=beta, axis=axis)
    inputs = [numbers(*shape, dtype=dtype) for shape in shapes]
    agree(symbol, dict(zip("abc", inputs, strict=True)))


@pytest.mark.parametrize("axis", [-1, 5])
def test_rows_along_no_axis_are_refused(mx: Any, axis: int) -> None:
    symbol = mx.sym.linalg.gemm2(mx.sym.var("a"), mx.sym.var("b"), axis=axis)
    with pytest.raises(UnsupportedModelError, match="no axis of rows"):
        serde.to_relay(symbol, input_shapes={"a": (2, 3), "b": (3, 2)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("transpose", [False, True])
def test_syrk(mx: Any, transpose: bool, batch: Any, dtype: str) -> None:
    symbol = mx.sym.linalg.syrk(mx.sym.var("a"), transpose=transpose, alpha=0.5)
    agree(symbol, {"a": numbers(*batch, 3, 4, dtype=dtype)})


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("rightside", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("name", ["trmm", "trsm"])
def test_triangles(
    mx: Any, name: str, transpose: bool, rightside: bool, lower: bool, batch: Any
) -> None:
    attrs = {"transpose": transpose, "rightside": rightside, "lower": lower, "alpha": 1.5}
    symbol = getattr(mx.sym.linalg, name)(mx.sym.var("a"), mx.sym.var("b"), **attrs)
    b = numbers(*batch, *((2, 4) if rightside else (4, 2)))
    agree(symbol, {"a": triangular(*batch, 4, 4), "b": b}, tolerance=TOLERANCE["float32"])


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", ["potrf", "potri"])
def test_factors_of_positive_matrices(
    mx: Any, name: str, batch: Any, size: int, dtype: str
) -> None:
    data = positive(*batch, size, size, dtype=dtype)
    if name == "potri":
        data = np.linalg.cholesky(data)
    symbol = getattr(mx.sym.linalg, name)(mx.sym.var("a"))
    agree(symbol, {"a": data}, tolerance=TOLERANCE[dtype], returns=True)


def test_cholesky_reads_the_lower_triangle(mx: Any) -> None:
    data = np.array([[4, 100], [2, 5]], np.float32)
    agree(mx.sym.np.linalg.cholesky(var(mx)), {"x": data}, numpy=True)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 4), (3, 3), (2, 5), (2, 4, 6), (2, 2, 3, 3)])
def test_lq(mx: Any, shape: tuple[int, ...], dtype: str) -> None:
    symbol = flat(mx, mx.sym.linalg.gelqf(mx.sym.var("a")))
    agree(symbol, {"a": numbers(*shape, dtype=dtype)}, tolerance=TOLERANCE[dtype], returns=True)


@pytest.mark.parametrize(
    "rows", [[[3, 4, 0], [1, 2, 3]], [[0, 0, 0], [1, 2, 3]], [[-1, 0, 0], [0, -1, 0]]]
)
def test_signs_of_lq(mx: Any, rows: list[list[float]]) -> None:
    """A row with nothing behind its diagonal keeps its sign, any other changes it."""
    symbol = flat(mx, mx.sym.linalg.gelqf(mx.sym.var("a")))
    agree(symbol, {"a": np.array(rows, np.float32)})


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", ["inverse", "det", "slogdet"])
def test_elimination(mx: Any, name: str, batch: Any, size: int, dtype: str) -> None:
    symbol = flat(mx, getattr(mx.sym.linalg, name)(mx.sym.var("a")))
    data = regular(*batch, size, size, dtype=dtype)
    # The determinant of 12 rows is about 300.
    agree(symbol, {"a": data}, tolerance=TOLERANCE[dtype], returns=True)


@pytest.mark.wide
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", ["cholesky", "inv", "det", "slogdet"])
def test_elimination_in_numpy(mx: Any, name: str, batch: Any, size: int) -> None:
    symbol = flat(mx, getattr(mx.sym.np.linalg, name)(var(mx)))
    data = positive(*batch, size, size)
    agree(symbol, {"x": data}, numpy=True, tolerance=TOLERANCE["float32"])


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
@pytest.mark.parametrize("name", ["cholesky", "inv"])
def test_factors_of_nothing(mx: Any, name: str, shape: tuple[int, ...]) -> None:
    symbol = getattr(mx.sym.np.linalg, name)(var(mx))
    agree(symbol, {"x": np.zeros(shape, np.float32)}, numpy=True)


@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_determinants_of_nothing(mx: Any, name: str) -> None:
    """Of matrices without rows MXNet leaves results as the memory was."""
    symbol = flat(mx, getattr(mx.sym.np.linalg, name)(var(mx)))
    agree(symbol, {"x": np.zeros((0, 3, 3), np.float32)}, numpy=True)


PIVOTS = np.array([[[0, 2, 1], [1, 0, 0], [3, 0, 1]], [[1e-9, 1, 0], [1, 1, 0], [0, 0, 2]]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["inverse", "det", "slogdet"])
def test_elimination_with_pivots(mx: Any, name: str, dtype: str) -> None:
    symbol = flat(mx, getattr(mx.sym.linalg, name)(mx.sym.var("a")))
    agree(symbol, {"a": PIVOTS.astype(dtype)})


@pytest.mark.parametrize("data", [np.ones((2, 2)), np.zeros((3, 3))], ids=["ones", "zeros"])
@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_determinants_without_an_inverse(mx: Any, name: str, data: np.ndarray) -> None:
    symbol = flat(mx, getattr(mx.sym.linalg, name)(mx.sym.var("a")))
    agree(symbol, {"a": data.astype(np.float32)})


@pytest.mark.parametrize(("size", "seed"), [(30, 0), (30, 1), (60, 2)])
def test_inverses_are_as_exact_as_lapack(mx: Any, size: int, seed: int) -> None:
    """Of matrices with a condition of thousands, against the inverse in float64.

    How products round depends on the processor, LAPACK's as well: a part of what the condition
    makes of one rounding is allowed, too.
    """
    data = numbers(size, size, seed=seed)
    exact = np.linalg.inv(data.astype(np.float64))
    symbol = mx.sym.linalg.inverse(mx.sym.var("a"))
    (theirs,) = run_under(symbol, {"a": data}, numpy=False)
    model = serde.to_relay(symbol, input_shapes={"a": data.shape})
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    ((ours,)) = run_onnx(proto.SerializeToString(), {"a": data})[1]
    floor = np.finfo(np.float32).eps * np.linalg.cond(data) / 32 * np.abs(exact).max()
    assert np.abs(ours - exact).max() <= 4 * max(np.abs(theirs - exact).max(), floor)


@pytest.mark.parametrize("batch", BATCHES)
def test_sumlogdiag(mx: Any, batch: Any) -> None:
    symbol = mx.sym.linalg.sumlogdiag(mx.sym.var("a"))
    agree(symbol, {"a": np.abs(numbers(*batch, 4, 4)) + np.float32(0.1)})


@pytest.mark.thin(2)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("batch", BATCHES)
def test_triangles_taken_and_made(mx: Any, batch: Any, offset: int, lower: bool) -> None:
    attrs = {"offset": offset, "lower": lower}
    taken = mx.sym.linalg.extracttrian(mx.sym.var("a"), **attrs)
    agree(taken, {"a": numbers(*batch, 4, 4)})
    made = mx.sym.linalg.maketrian(mx.sym.var("a"), **attrs)
    agree(made, {"a": numbers(*batch, 6)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [-3, -1, 0, 1, 3])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", ["extractdiag", "makediag"])
def test_diagonals(mx: Any, name: str, batch: Any, offset: int, dtype: str) -> None:
    symbol = getattr(mx.sym.linalg, name)(mx.sym.var("a"), offset=offset)
    data = numbers(*batch, *((4, 4) if name == "extractdiag" else (4,)), dtype=dtype)
    agree(symbol, {"a": data})


@pytest.mark.parametrize(
    ("name", "attrs", "shape", "reason"),
    [
        ("extractdiag", {"offset": 4}, (4, 4), "offset=4 is outside"),
        ("extracttrian", {"offset": -4}, (4, 4), "offset=-4 is outside"),
        ("extractdiag", {}, (3, 4), "square"),
        ("maketrian", {}, (5,), "no triangle has 5"),
    ],
)
def test_diagonals_that_are_none(
    mx: Any, name: str, attrs: dict[str, int], shape: tuple[int, ...], reason: str
) -> None:
    symbol = getattr(mx.sym.linalg, name)(mx.sym.var("a"), **attrs)
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(symbol, input_shapes={"a": shape})


@pytest.mark.parametrize("rows", [(3,), (2, 3), (2, 1, 4)])
def test_khatri_rao(mx: Any, rows: tuple[int, ...]) -> None:
    names = [f"x{i}" for i in range(len(rows))]
    symbol = mx.sym.khatri_rao(*[mx.sym.var(name) for name in names])
    inputs = [numbers(length, 3, seed=i) for i, length in enumerate(rows)]
    agree(symbol, dict(zip(names, inputs, strict=True)))


@pytest.mark.wide
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((2, 3, 3), (2, 3)),
        ((2, 3, 3), (2, 3, 4)),
        ((3, 3, 3), (3, 3)),
        ((1, 1), (1,)),
        ((0, 0), (0,)),
    ],
)
@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("float64", "float64"), ("float32", "float64"),
               ("int32", "int32"), ("float32", "int64"), ("uint8", "int8")],
)  # fmt: skip
def test_solve(mx: Any, dtypes: tuple[str, str], left: Any, right: Any) -> None:
    a = np.zeros(left) if 0 in left else regular(*left) * 10
    b = numbers(*right) * 10
    if "uint8" in dtypes:
        a, b = np.abs(a), np.abs(b)
    if any("int" in dtype for dtype in dtypes) and 0 not in left:
        a = np.rint(a) + 20 * np.eye(left[-1])
    symbol = mx.sym.np.linalg.solve(var(mx, "a"), var(mx, "b"))
    bound = TOLERANCE["float32"] if set(dtypes) == {"float32"} else TOLERANCE["float64"]
    inputs = {"a": a.astype(dtypes[0]), "b": b.astype(dtypes[1])}
    agree(symbol, inputs, numpy=True, tolerance=bound)


@pytest.mark.parametrize(
    ("shape", "ind"), [((2, 2, 2, 2), 2), ((6, 2, 3), 1), ((1, 2, 3, 6), 3), ((3, 3), 1)]
)
def test_tensorinv(mx: Any, shape: tuple[int, ...], ind: int) -> None:
    size = int(np.prod(shape[:ind]))
    symbol = mx.sym.np.linalg.tensorinv(var(mx), ind)
    data = regular(size, size).reshape(shape)
    agree(symbol, {"x": data}, numpy=True, tolerance=TOLERANCE["float32"])


@pytest.mark.parametrize(
    ("left", "right", "axes"),
    [
        ((2, 3, 6), (2, 3), None),
        ((6, 2, 3), (2, 3), (0,)),
        ((2, 6, 3), (6,), (0, 2)),
        ((6, 2, 3), (2, 3), (-3,)),
        ((2, 2, 2, 2), (2, 2), (1, 0)),
        ((1, 1), (1,), None),
        ((), (), None),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_tensorsolve(mx: Any, dtype: str, left: Any, right: Any, axes: Any) -> None:
    size = int(np.prod(right))
    # Any order of the axes makes an invertible matrix of these.
    data = np.rint(numbers(*left) * 4) + np.rint(np.arange(size * size).reshape(left) % (size + 1))
    symbol = mx.sym.np.linalg.tensorsolve(var(mx, "a"), var(mx, "b"), axes=axes)
    inputs = {"a": np.asarray(data, dtype), "b": np.asarray(numbers(*right), dtype)}
    bound = 1e-4 if dtype == "float32" else 1e-10
    agree(symbol, inputs, numpy=True, tolerance=bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_syevd(mx: Any, batch: Any, dtype: str) -> None:
    symbol = flat(mx, mx.sym.linalg.syevd(mx.sym.var("a")))
    data = positive(*batch, 4, 4, dtype=dtype)
    agree(symbol, {"a": data}, tolerance=TOLERANCE[dtype], not_in_onnx=r"serde\.eigh")


@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_symmetric_eigenvalues(mx: Any, name: str, batch: Any, uplo: str, dtype: str) -> None:
    symbol = flat(mx, getattr(mx.sym.np.linalg, name)(var(mx), uplo))
    data = (numbers(*batch, 4, 4) * 5).astype(dtype)
    bound = {"float32": 5e-5}.get(dtype, 1e-11)
    agree(symbol, {"x": data}, numpy=True, tolerance=bound, not_in_onnx=r"serde\.eigh")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_real_eigenvalues(mx: Any, name: str, batch: Any, dtype: str) -> None:
    symbol = flat(mx, getattr(mx.sym.np.linalg, name)(var(mx)))
    data = (np.tril(numbers(*batch, 3, 3)) + np.diag([1, 4, 9])).astype(dtype)
    agree(symbol, {"x": data}, numpy=True, tolerance=TOLERANCE[dtype], not_in_onnx=r"serde\.eig")


def test_eigenvalues_that_are_not_real_fail(mx: Any) -> None:
    """As they do in MXNet."""
    symbol = mx.sym.np.linalg.eigvals(var(mx))
    model = serde.to_relay(symbol, input_shapes={"x": (2, 2)})
    with pytest.raises(RelayError, match="not real"):
        run(model.main, [np.array([[0, -1], [1, 0]], np.float32)], mod=model.mod)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 3, 5)])
def test_svd(mx: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Each pair of vectors has the sign that its routine of LAPACK gives it."""
    symbol = flat(mx, mx.sym.np.linalg.svd(var(mx)))
    data = numbers(*shape, dtype=dtype)
    expected = run_under(symbol, {"x": data}, numpy=True)
    model = serde.to_relay(symbol, input_shapes={"x": shape}, input_dtypes={"x": dtype})
    left, values, right = run(model.main, [data], mod=model.mod)
    signs = np.sign((left * expected[0]).sum(-2))
    bound = TOLERANCE[dtype]
    turned = (left * signs[..., None, :], values, right * signs[..., :, None])
    same([each.astype(dtype) for each in turned], expected, bound)
    with pytest.raises(UnsupportedModelError, match=r"serde\.svd"):
        serde.from_relay(model, format="onnx")


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3), (2, 4, 3), (1, 1)])
@pytest.mark.parametrize("rcond", [1e-15, 0.4])
def test_pinv(mx: Any, rcond: float, shape: tuple[int, ...], dtype: str) -> None:
    symbol = mx.sym.np.linalg.pinv(var(mx), rcond)
    data = numbers(*shape, dtype=dtype)
    bound = TOLERANCE[dtype]
    agree(symbol, {"x": data}, numpy=True, tolerance=bound, not_in_onnx=r"serde\.svd")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_pinv_of_nothing(mx: Any, shape: tuple[int, ...]) -> None:
    agree(mx.sym.np.linalg.pinv(var(mx)), {"x": np.zeros(shape, np.float32)}, numpy=True)


@pytest.mark.parametrize("rcond", [0.4, [0.1], [0.1, 0.6]])
def test_pinv_with_a_tensor(mx: Any, rcond: Any) -> None:
    symbol = mx.sym.np.linalg.pinv(var(mx), var(mx, "r"))
    inputs = {"x": numbers(2, 4, 3), "r": np.array(rcond, np.float32)}
    bound = TOLERANCE["float32"]
    agree(symbol, inputs, numpy=True, tolerance=bound, not_in_onnx=r"serde\.svd")


def symbolic(symbol: Any, open_: dict[str, Any], inputs: dict[str, np.ndarray]) -> None:
    """Compare a graph that is converted with symbols for some lengths."""
    shapes = {name: open_.get(name, value.shape) for name, value in inputs.items()}
    model = serde.to_relay(symbol, input_shapes=shapes)
    expected = run_under(symbol, inputs, numpy=True)
    found = run(model.main, list(inputs.values()), mod=model.mod)
    bound = TOLERANCE["float32"]
    same(found if isinstance(found, tuple) else (found,), expected, bound)
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    same(run_onnx(proto.SerializeToString(), inputs)[1], expected, bound)


@pytest.mark.parametrize("shape", [("b", 3, 3), ("b", "n", "n"), (2, "n", "n")], ids=str)
@pytest.mark.parametrize("name", ["cholesky", "inv", "det", "slogdet"])
def test_symbolic_matrices(mx: Any, name: str, shape: tuple[Any, ...]) -> None:
    symbol = flat(mx, getattr(mx.sym.np.linalg, name)(var(mx)))
    symbolic(symbol, {"x": shape}, {"x": positive(2, 3, 3)})


@pytest.mark.parametrize("sizes", [("b", 3, 3), ("b", "n", "n")], ids=str)
def test_symbolic_systems(mx: Any, sizes: tuple[Any, ...]) -> None:
    symbol = mx.sym.np.linalg.solve(var(mx, "a"), var(mx, "b"))
    open_ = {"a": sizes, "b": (*sizes[:2], "m")}
    symbolic(symbol, open_, {"a": regular(2, 3, 3), "b": numbers(2, 3, 4)})


@pytest.mark.parametrize("shape", [("b", 2, 4), ("b", "m", "n")], ids=str)
def test_symbolic_lq(mx: Any, shape: tuple[Any, ...]) -> None:
    symbol = flat(mx, mx.sym.linalg.gelqf(mx.sym.var("x")))
    symbolic(symbol, {"x": shape}, {"x": numbers(3, 2, 4)})


@pytest.mark.parametrize("name", ["extractdiag", "extracttrian", "sumlogdiag", "potrf"])
def test_symbolic_batch(mx: Any, name: str) -> None:
    symbol = getattr(mx.sym.linalg, name)(mx.sym.var("x"))
    symbolic(symbol, {"x": ("b", 4, 4)}, {"x": np.abs(positive(3, 4, 4))})


NAMED = {
    "det": lambda mx, x: mx.sym.linalg.det(x),
    "slogdet": lambda mx, x: mx.sym.linalg.slogdet(x),
    "gelqf": lambda mx, x: mx.sym.linalg.gelqf(x),
    "eigh": lambda mx, x: mx.sym.np.linalg.eigh(x.as_np_ndarray()),
    "norm": lambda mx, x: mx.sym.np.linalg.norm(x.as_np_ndarray()),
    "std": lambda mx, x: mx.sym.np.std(x.as_np_ndarray()),
    "var": lambda mx, x: mx.sym.np.var(x.as_np_ndarray()),
    "mean": lambda mx, x: mx.sym.np.mean(x.as_np_ndarray()),
}


@pytest.mark.parametrize("name", NAMED)
def test_names_of_outputs(mx: Any, name: str) -> None:
    found = NAMED[name](mx, mx.sym.var("x"))
    symbol = flat(mx, list(found) if name in ("slogdet", "gelqf") else found)
    model = serde.to_relay(symbol, input_shapes={"x": (3, 3)})
    assert list(model.meta.outputs) == symbol.list_outputs()
