"""Faults while modules of Relax are written: whose they are, and what TVM's own passes lose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_samples import each_sample, judge

from serde.core.weights import ArrayWeight
from serde.errors import FormatError, Unsupported
from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import load
from serde.relax.ops import TABLE
from serde.relay.ir.types import TensorType


def _context() -> tuple[ExportContext, Value]:
    context = ExportContext(TABLE, load())
    variable = context.framework.relax.Var("x", context.framework.TensorType((2, 3), "float32"))
    return context, Value(variable, TensorType((2, 3), "float32"))


def _no_attribute(x: Any) -> Any:
    return x.missing


def _no_axis(x: Any) -> Any:
    return load().te.compute([2], lambda place: x(place, x.shape[5]))


def _too_few_places(x: Any) -> Any:
    return load().te.compute([2], lambda place: x(place))


@pytest.mark.parametrize(
    ("function", "kind"),
    [(_no_attribute, AttributeError), (_no_axis, IndexError), (_too_few_places, ValueError)],
)
def test_a_fault_of_what_computes_a_tensor_is_no_refusal(function: Any, kind: type) -> None:
    context, x = _context()
    with pytest.raises(kind):
        context.emit_te(function, x)


def test_a_wrong_argument_is_no_refusal() -> None:
    context, x = _context()
    with pytest.raises(TypeError, match="unexpected keyword"):
        context.emit("nn.relu", x, missing=1)


@pytest.mark.parametrize("op", ["nn.conv2d", "matmul"])
def test_what_tvm_says_is_a_refusal(op: str) -> None:
    context, x = _context()
    with pytest.raises(Unsupported, match="TVM refuses it"):
        context.emit(op, x, x)


def test_a_weight_that_cannot_be_read_is_no_refusal() -> None:
    class Torn(ArrayWeight):
        def rows(self, first: int, last: int) -> np.ndarray:
            raise FormatError("the file ends early")

    context, _ = _context()
    with pytest.raises(FormatError, match="ends early"):
        context.share_weight(Torn(np.zeros((2, 3), np.float32)))


@pytest.mark.wide
@pytest.mark.parametrize("name", ["serde.gru-1", "serde.lstm-1", "serde.rnn-2"])
def test_recurrent_layers_of_symbolic_lengths_compile(name: str) -> None:
    samples = {key: (op, given) for key, op, given in each_sample()}
    judge(*samples[name], symbolic=True)
