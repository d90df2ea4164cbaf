"""The Fourier transform of real and complex data against NumPy's, whole and decomposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel

from serde.errors import TypeInferenceError


def _parts(signal: np.ndarray) -> np.ndarray:
    return np.stack([signal.real, signal.imag], -1)


@pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("length", [None, 4, 9])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_complex_data(axis: int, length: int | None, inverse: bool, run_one: Any) -> None:
    x = np.random.default_rng(31).normal(size=(6, 5, 7, 2))
    signal = x[..., 0] + 1j * x[..., 1]
    transform = np.fft.ifft if inverse else np.fft.fft
    expected = _parts(transform(signal, length, axis=axis + 1 if axis < 0 else axis))
    found = run_one("serde.dft", x, axis=axis, dft_length=length, inverse=inverse, onesided=False)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
@pytest.mark.parametrize("length", [None, 4, 9])
def test_one_side_of_real_data(length: int | None, run_one: Any) -> None:
    x = np.random.default_rng(32).normal(size=(3, 7, 1)).astype(np.float32)
    expected = _parts(np.fft.rfft(x[..., 0].astype(np.float64), length, axis=1))
    found = run_one("serde.dft", x, axis=1, dft_length=length, inverse=False, onesided=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "attrs", "message"),
    [
        ((2, 3), {}, "real or complex numbers"),
        ((2, 3, 2), {"axis": -1}, "the parts of a number"),
        ((2, 3, 2), {"onesided": True}, "one side alone"),
        ((2, 3, 1), {"onesided": True, "inverse": True}, "one side alone"),
        ((2, 3, 1), {"dft_length": 0}, "a positive number"),
    ],
)
def test_refusals(shape: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer("serde.dft", shape, **attrs)
