"""Models made by hand of what the libraries write rarely, or never."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fuzz.case import Case
from fuzz.odd import coreml, mxnet, onnx, relax, relay, torch

__all__ = ["ODD"]

ODD: Final[Mapping[str, Callable[[], Iterator[Case]]]] = {
    "coreml": coreml.make_cases,
    "mxnet": mxnet.make_cases,
    "onnx": onnx.make_cases,
    "relax": relax.make_cases,
    "relay": relay.make_cases,
    "torch": torch.make_cases,
}
"""What makes them, by format."""
