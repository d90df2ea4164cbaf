"""StableHLO's operators in TFLite files: LiteRT runs some of them, NumPy says what others give."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_models import T, make_model, run_litert

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError

UNARY: dict[str, Callable[..., Any]] = {
    "ABS": np.abs,
    "COSINE": np.cos,
    "EXPONENTIAL": np.exp,
    "FLOOR": np.floor,
    "LOG": np.log,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "NEGATE": np.negative,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "TANH": np.tanh,
}
BINARY: dict[str, Callable[..., Any]] = {
    "ADD": np.add,
    "DIVIDE": np.divide,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MULTIPLY": np.multiply,
    "POWER": np.power,
    "SUBTRACT": np.subtract,
}
RUN = {"ADD", "MAXIMUM", "MINIMUM", "MULTIPLY", "AND"}
"""What LiteRT 2.3 has kernels for."""


def check(path: Path, name: str, data: bytes, feeds: list[np.ndarray], wanted: Any) -> None:
    expected = np.asarray(wanted)
    ran = False
    for optimised in (False, True):
        with suppress(RuntimeError, ValueError):
            (given,) = run_litert(data, feeds, optimised=optimised)
            np.testing.assert_allclose(given, expected, rtol=1e-5)
            ran = True
    assert ran or name not in RUN
    path.write_bytes(data)
    model = serde.to_relay(path)
    (found,) = RelayEngine(model).run(dict(zip(model.meta.inputs, feeds, strict=True)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_arithmetic(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    function = {**UNARY, **BINARY}[name]
    feeds = [rng.uniform(0.1, 2, (2, 3)).astype(np.float32) for _ in range(1 + (name in BINARY))]
    data = make_model(f"STABLEHLO_{name}", [T((2, 3)) for _ in feeds], [T((2, 3))])
    check(tmp_path / "net.tflite", name, data, feeds, function(*feeds))


@pytest.mark.parametrize("name", ["AND", "OR"])
def test_truth(tmp_path: Path, name: str) -> None:
    pair = [np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)]
    data = make_model(f"STABLEHLO_{name}", [T((4,), "bool")] * 2, [T((4,), "bool")])
    wanted = getattr(np, f"logical_{name.lower()}")(*pair)
    check(tmp_path / "net.tflite", name, data, pair, wanted)


def test_shapes(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    path, given = tmp_path / "net.tflite", T((2, 3))
    data = make_model("STABLEHLO_RESHAPE", [given], [T((3, 2))])
    check(path, "RESHAPE", data, [x], x.reshape(3, 2))
    data = make_model("STABLEHLO_CONVERT", [given], [T((2, 3), "int32")])
    check(path, "CONVERT", data, [x], x.astype(np.int32))
    data = make_model(
        "STABLEHLO_CONCATENATE", [given, given], [T((2, 6))], "StablehloConcatenateOptions",
        dimension=1,
    )  # fmt: skip
    check(path, "CONCATENATE", data, [x, x], np.concatenate([x, x], 1))
    mask = x > 2
    data = make_model("STABLEHLO_SELECT", [T((2, 3), "bool"), given, given], [given])
    check(path, "SELECT", data, [mask, x, -x], np.where(mask, x, -x))


def test_random_numbers_are_refused_by_name(tmp_path: Path) -> None:
    data = make_model("RANDOM_UNIFORM", [T((1,), "int32")], [T((1,))])
    (tmp_path / "net.tflite").write_bytes(data)
    with pytest.raises(UnsupportedModelError, match="other numbers in every run"):
        serde.to_relay(tmp_path / "net.tflite")
