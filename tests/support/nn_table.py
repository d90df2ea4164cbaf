"""The table of layers of NeuralNetworks in NumPy, and the values of their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray
F32 = np.float32
LAYERS: dict[str, Callable[[Sequence[Array], Any], Any]] = {}


def layer(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what layers do."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        LAYERS.update(dict.fromkeys(names, function))
        return function

    return register


def weights(message: Any, shape: Sequence[int]) -> Array:
    """Return the values of a ``WeightParams``; scales go along the first axis."""
    if message.floatValue:
        found = np.array(message.floatValue, F32)
    elif message.float16Value:
        found = np.frombuffer(message.float16Value, np.float16).astype(F32)
    else:
        found = np.frombuffer(message.rawValue, np.uint8).astype(F32)
        linear = message.quantization.linearQuantization
        rows = found.reshape(len(linear.scale), -1) if len(linear.scale) > 1 else found
        scale, bias = np.array(linear.scale, F32), np.array(linear.bias, F32)
        if len(scale) > 1:
            scale, bias = scale[:, None], bias[:, None]
        found = rows * scale + bias
    return found.reshape(shape)
