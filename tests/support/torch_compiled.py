"""Programs of TorchScript made of modules, and what they and their conversions give."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from serde.engine.interpreter import RelayEngine
from serde.relay.ir.model import RelayModel

__all__ = ["X", "compare", "flat", "interpret", "script", "trace"]

X = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.25, -3.0], [0.1, 0.2, 0.3], [2.0, -1.0, -1.0]])
"""An input whose rows differ in sign."""


def script(module: nn.Module) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(module.eval())


def trace(module: nn.Module, *inputs: Any) -> Any:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return torch.jit.trace(module.eval(), inputs, strict=False)


def flat(value: Any) -> list[np.ndarray]:
    """What a program of PyTorch gives, as serde names its outputs."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in flat(item)]
    return [value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)]


def interpret(model: RelayModel, *inputs: Any) -> list[np.ndarray]:
    given = zip(model.meta.inputs, flat(list(inputs)), strict=True)
    return RelayEngine(model).run(dict(given))


def compare(found: Sequence[np.ndarray], wanted: Any) -> None:
    expected = flat(wanted)
    assert [each.shape for each in found] == [each.shape for each in expected]
    assert [each.dtype for each in found] == [each.dtype for each in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
