"""Fourier transforms of PyTorch and the complex tensors between them, judged by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.onnx_suite import interpret

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# PyTorch warns of itself when it exports and traces.
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

Function = Callable[[Any], Any]
X = np.random.default_rng(8).normal(size=(2, 6, 2)).astype(np.float32)

CASES: dict[str, Function] = {
    "real": lambda x: torch.view_as_real(torch.fft.fft(x)),
    "padded": lambda x: torch.view_as_real(torch.fft.fft(x, n=8, dim=1, norm="ortho")),
    "cut": lambda x: torch.view_as_real(
        torch.fft.fft(torch.view_as_complex(x), n=4, norm="forward")
    ),
    "inverse": lambda x: torch.view_as_real(torch.fft.ifft(torch.view_as_complex(x), dim=0)),
    "inverse_forward": lambda x: torch.fft.ifft(torch.view_as_complex(x), norm="forward").real,
    "inverse_ortho": lambda x: torch.fft.ifft(torch.view_as_complex(x), norm="ortho").imag,
    "of_parts": lambda x: torch.fft.ifft(torch.complex(x, x[:1] * 2)).imag,
    "onesided": lambda x: torch.view_as_real(torch.fft.rfft(x, dim=1)),
    "both": lambda x: torch.fft.fft(torch.view_as_complex(x)).real + x.sum(-1),
    "constant": lambda x: (
        x + torch.view_as_real(torch.fft.fft(torch.view_as_complex(torch.ones(6, 2).cumsum(0))))
    ),
    "integers": lambda x: torch.fft.fft(x.to(torch.int32)).real,
}

REFUSED: dict[str, tuple[Function, str]] = {
    "given": (lambda x: torch.fft.fft(x), "is complex"),
    "multiplied": (
        lambda x: torch.view_as_real(torch.fft.fft(x) * torch.fft.fft(x)),
        "no importer for complex tensors",
    ),
    "measured": (lambda x: torch.fft.rfft(x).abs(), "no importer for complex tensors"),
    "chosen": (
        lambda x: torch.view_as_real(
            torch.cond(x.sum() > 0, torch.fft.fft, torch.fft.ifft, (torch.view_as_complex(x),))
        ),
        "no importer for complex tensors",
    ),
}


def program(function: Function) -> Any:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    return torch.export.export(Model(), (torch.from_numpy(X),))


@pytest.mark.parametrize("name", CASES)
def test_transform(name: str) -> None:
    expected = CASES[name](torch.from_numpy(X)).numpy()
    model = serde.to_relay(program(CASES[name]))
    (found,) = interpret(model, {model.inputs()[0].name_hint: X})
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_other_complex_tensors_are_refused(name: str) -> None:
    function, reason = REFUSED[name]
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(program(function))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: relay.dft(x, x, inverse=True)[1],
        lambda x: relay.serde.dft(x, axis=1, dft_length=4, inverse=True),
        lambda x: relay.serde.dft(relay.expand_dims(x, 3), axis=1, onesided=True),
    ],
)
def test_what_is_written_is_read_again(build: Callable[[Any], Any], tmp_path: Path) -> None:
    x = relay.var("x", shape=X.shape)
    module = relay.IRModule.from_expr(relay.Function([x], build(x)))
    path = serde.from_relay(module, format="torch", path=tmp_path / "m.pt2")
    expected = torch.export.load(path).module()(torch.from_numpy(X)).numpy()
    (found,) = interpret(serde.to_relay(path), {"x": X})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
