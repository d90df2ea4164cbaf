"""Engines that are functions, models for them, and what a check says of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import serde.relay as relay
from serde.checking.verdict import compare
from serde.core.report import OutputVerdict, Report
from serde.core.weights import ArrayWeight
from serde.engine.base import Engine
from serde.relay.ir.expr import Expr, Var

Array = np.ndarray
Run = Callable[[Mapping[str, Array]], list[Array]]

SHIFT = np.float32(1e4)
"""Added and subtracted again, it leaves roundings of 5e-4."""


class Numbers(Engine):
    """An engine that is a function."""

    inputs: Mapping[str, str] = {}

    def __init__(self, function: Run, outputs: tuple[str, ...] = ("out",)) -> None:
        self.name = "numbers"
        self.outputs = outputs
        self._function = function

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return what the function gives."""
        return self._function(inputs)


def model_of(body: Expr, *params: Var, outputs: tuple[str, ...] = ("out",), **weights: Any) -> Any:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, body)))
    held = {name: ArrayWeight(value) for name, value in weights.items()}
    return relay.RelayModel(mod, held, relay.ModelMeta(outputs=outputs))


def judged(model: Any, source: Run, target: Run, **options: Any) -> Report:
    report = Report()
    outputs = model.meta.outputs
    compare(Numbers(source, outputs), Numbers(target, outputs), model, report=report, **options)
    return report


def verdict_of(model: Any, source: Run, target: Run, **options: Any) -> OutputVerdict:
    (verdict,) = judged(model, source, target, **options).verdicts
    return verdict


def shifted_model(length: int = 200) -> Any:
    x = relay.var("x", shape=(length,))
    shift = relay.const(SHIFT)
    return model_of(relay.subtract(relay.add(x, shift), shift), x)


def shifted(inputs: Mapping[str, Array]) -> list[Array]:
    return [(inputs["x"] + SHIFT) - SHIFT]
