"""Operators that are written as others, of tensors whose lengths are open, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

import serde.relay as relay
from serde.core.report import Report
from serde.onnx.exporter import from_relay
from serde.relay.ir.dims import Any, Dim, symbol
from serde.relay.ir.expr import Expr
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.transform import InferType

ort = pytest.importorskip("onnxruntime")

OPEN: list[Callable[[str], Dim]] = [symbol, lambda _name: Any()]


def run(inputs: dict[str, np.ndarray], variables: list[relay.Var], body: Expr) -> list[np.ndarray]:
    """Run an expression that was written as ONNX."""
    mod = InferType()(IRModule({"main": relay.Function(variables, body)}))
    fields = getattr(mod["main"].body.type, "fields", [None])
    outputs = tuple(f"y{place}" for place in range(len(fields)))
    model = RelayModel(mod, {}, ModelMeta(tuple(inputs), outputs))
    proto = from_relay(model, 13, True, Report()).complete()
    onnx.checker.check_model(proto, full_check=True)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(list(outputs), inputs)
    return found


@pytest.mark.parametrize("dim", OPEN)
def test_triangles_and_windows(dim: Callable[[str], Dim]) -> None:
    x = relay.var("x", shape=(dim("rows"), dim("columns")))
    data = np.arange(20, dtype=np.float32).reshape(4, 5)
    (found,) = run({"x": data}, [x], relay.trilu(x, 1))
    np.testing.assert_array_equal(found, np.triu(data, 1))
    (found,) = run({"x": data}, [x], relay.sliding_window(x, 0, (2, 3), (1, 2)))
    want = np.lib.stride_tricks.sliding_window_view(data, (2, 3))[::1, ::2]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dim", OPEN)
def test_diagonals(dim: Callable[[str], Dim]) -> None:
    x = relay.var("x", shape=(dim("rows"), dim("columns")))
    lines = relay.var("lines", shape=(3, dim("longest")))
    data, new = np.zeros((4, 3), np.float32), np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    (found,) = run({"x": data, "lines": new}, [x, lines], relay.matrix_set_diag(x, lines, (-1, 1)))
    np.testing.assert_array_equal(found, [[4, 2, 0], [7, 5, 3], [0, 8, 6], [0, 0, 9]])


@pytest.mark.parametrize("dim", OPEN)
def test_grids(dim: Callable[[str], Dim]) -> None:
    x, y = relay.var("x", shape=(dim("n"),)), relay.var("y", shape=(dim("m"),))
    one, other = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    found = run({"x": one, "y": other}, [x, y], relay.meshgrid([x, y], "xy").astuple())
    for got, want in zip(found, np.meshgrid(one, other), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dim", OPEN)
@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (3, 4), (4,), (1,)])
def test_sums_to_other_shapes(dim: Callable[[str], Dim], shape: tuple[int, ...]) -> None:
    x = relay.var("x", shape=(dim("a"), dim("b")))
    like = relay.var("like", shape=[dim(f"c{axis}") for axis in range(len(shape))])
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = {"x": data, "like": np.zeros(shape, np.float32)}
    (found,) = run(given, [x, like], relay.collapse_sum_like(x, like))
    padded = (1,) * (2 - len(shape)) + shape
    axes = tuple(axis for axis in range(2) if padded[axis] == 1)
    np.testing.assert_array_equal(found, data.sum(axes, keepdims=True).reshape(shape))


@pytest.mark.parametrize("dim", OPEN)
def test_shapes_and_layouts(dim: Callable[[str], Dim]) -> None:
    x = relay.var("x", shape=(dim("n"), 12, dim("k")))
    like = relay.var("like", shape=(3, dim("m"), 9))
    data, other = np.arange(48, dtype=np.float32).reshape(2, 12, 2), np.zeros((3, 4, 9), np.float32)
    build = relay.reshape_like(x, like, lhs_begin=1, lhs_end=2, rhs_begin=0, rhs_end=-1)
    (found,) = run({"x": data, "like": other}, [x, like], build)
    np.testing.assert_array_equal(found, data.reshape(2, 3, 4, 2))
    z = relay.var("z", shape=(dim("n"), 6, dim("h"), 2))
    data = np.arange(72, dtype=np.float32).reshape(2, 6, 3, 2)
    (found,) = run({"z": data}, [z], relay.layout_transform(z, "NCHW", "NCHW4c"))
    padded = np.pad(data, ((0, 0), (0, 2), (0, 0), (0, 0)))
    want = padded.reshape(2, 2, 4, 3, 2).transpose(0, 1, 3, 4, 2)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dim", OPEN)
def test_fourier_transforms(dim: Callable[[str], Dim]) -> None:
    real, imaginary = (relay.var(name, shape=(2, dim("n"))) for name in ("re", "im"))
    given = {
        "re": np.random.default_rng(1).standard_normal((2, 6)).astype(np.float32),
        "im": np.random.default_rng(2).standard_normal((2, 6)).astype(np.float32),
    }
    signal = given["re"] + 1j * given["im"]
    for inverse, want in ((False, np.fft.fft(signal)), (True, np.fft.ifft(signal))):
        body = relay.dft(real, imaginary, inverse=inverse).astuple()
        found = run(given, [real, imaginary], body)
        np.testing.assert_allclose(found, [want.real, want.imag], rtol=1e-5, atol=1e-5)
    x, window = relay.var("x", shape=(dim("b"), dim("t"))), relay.var("w", shape=(dim("w"),))
    data, weights = np.arange(20, dtype=np.float32).reshape(2, 10), np.hanning(6).astype(np.float32)
    (found,) = run({"x": data, "w": weights}, [x, window], relay.stft(x, 4, 2, 4, window))
    frames = np.stack([data[:, at : at + 4] * weights[:4] for at in range(0, 7, 2)], -1)
    waves = np.fft.rfft(frames, axis=1)
    want = np.stack([waves.real, waves.imag], -1)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dim", OPEN)
@pytest.mark.parametrize("axis", [0, (0, 1), ()])
def test_variances(dim: Callable[[str], Dim], axis: tuple[int, ...] | int) -> None:
    x = relay.var("x", shape=(dim("a"), dim("b")))
    data = np.random.default_rng(3).standard_normal((4, 5)).astype(np.float32)
    if axis == ():
        (found,) = run({"x": data}, [x], relay.variance(x, axis))
        np.testing.assert_array_equal(found, np.zeros_like(data))
        return
    (found,) = run({"x": data}, [x], relay.variance(x, axis, unbiased=True))
    np.testing.assert_allclose(found, data.var(axis, ddof=1), rtol=1e-5)


@pytest.mark.parametrize("dim", OPEN)
def test_indices(dim: Callable[[str], Dim]) -> None:
    x = relay.var("x", shape=(dim("a"), dim("b"), 2))
    rows = relay.var("rows", shape=(dim("i"), 1), dtype="int64")
    columns = relay.var("columns", shape=(dim("j"),), dtype="int32")
    given = {
        "x": np.arange(60, dtype=np.float32).reshape(5, 6, 2),
        "rows": np.array([[0], [4], [2]], np.int64),
        "columns": np.array([5, 0, 1, 3], np.int32),
    }
    (found,) = run(given, [x, rows, columns], relay.adv_index([x, rows, columns]))
    np.testing.assert_array_equal(found, given["x"][given["rows"], given["columns"]])


@pytest.mark.parametrize("dim", OPEN)
def test_regions(dim: Callable[[str], Dim]) -> None:
    x, v = relay.var("x", shape=(dim("a"), dim("b"))), relay.var("v", shape=(dim("c"), dim("d")))
    ends = relay.var("ends", shape=(2,), dtype="int64")
    data, new = np.zeros((4, 5), np.float32), np.arange(1, 5, dtype=np.float32).reshape(2, 2)
    want = data.copy()
    want[3:0:-2, 1:5:3] = new
    body = relay.strided_set(x, v, [3, 1], [0, 5], [-2, 3])
    (found,) = run({"x": data, "v": new}, [x, v], body)
    np.testing.assert_array_equal(found, want)
    body = relay.strided_set(x, v, [3, 1], ends, [-2, 3])
    (found,) = run({"x": data, "v": new, "ends": np.array([0, 5])}, [x, v, ends], body)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dim", OPEN)
def test_masks_and_marks(dim: Callable[[str], Dim]) -> None:
    x = relay.var("x", shape=(dim("t"), dim("b"), 2))
    lengths = relay.var("lengths", shape=(dim("b"),), dtype="int32")
    given = {"x": np.ones((4, 3, 2), np.float32), "lengths": np.array([2, 4, 1], np.int32)}
    (found,) = run(given, [x, lengths], relay.sequence_mask(x, lengths, -1.0, 0))
    inside = np.arange(4)[:, None] < given["lengths"]
    np.testing.assert_array_equal(found, np.where(inside[:, :, None], given["x"], -1))
    depth = relay.var("depth", shape=(), dtype="int64")
    marks = relay.one_hot(lengths, relay.const(2.0), relay.const(1.0), depth, 0, "float32")
    (found,) = run({"lengths": given["lengths"], "depth": np.array(4)}, [lengths, depth], marks)
    np.testing.assert_array_equal(found, 1 + (np.arange(4)[:, None] == given["lengths"]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
def test_marks_beyond_a_narrow_dtype(dtype: str) -> None:
    x = relay.var("x", shape=(2,), dtype=dtype)
    marks = relay.one_hot(x, relay.const(1.0), relay.const(0.0), 300, -1, "float32")
    given = np.array([3, 120], dtype)
    (found,) = run({"x": given}, [x], marks)
    np.testing.assert_array_equal(found, np.arange(300) == given[:, None].astype(np.int64))
