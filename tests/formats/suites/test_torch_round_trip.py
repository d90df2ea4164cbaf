"""Operators that go out as modules and come back by ``torch.export``, against the kernels."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
import pytest
from support.gaps import case, unknown_gaps
from support.samples import build, uses_sequences
from support.torch_tensors import to_tensor

import serde
from serde.core.report import Report
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import Sample, all_ops
from serde.relay.ir.types import TupleType
from serde.torch.exporter import from_relay
from serde.torch.options import TorchExportOptions
from serde.torch.written import to_module

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.wide

TOLERANCE = {"float16": 4e-3, "float32": 1e-4, "float64": 1e-10}

DEPENDENT = re.compile(r"data-dependent|Could not guard|Could not extract")
"""What ``torch.export`` says of Python that asks for numbers computed in tensors."""


def samples() -> list[Any]:
    """The first sample of each operator that has operands and draws nothing."""
    return [
        case("torch-again", name, name, definition.samples[0])
        for name, definition in all_ops().items()
        if definition.samples[0].operands and not name.startswith(("serde.random", "random."))
    ]


def test_gaps_name_cases() -> None:
    assert unknown_gaps("torch-again", {each.id for each in samples()}) == []


@pytest.mark.parametrize(("name", "given"), samples())
def test_operator_goes_out_and_back(name: str, given: Sample) -> None:
    """What ``torch.export`` refuses, and what has no variable, is skipped."""
    built = build(all_ops()[name], given)
    if not built.variables or uses_sequences(built.function):
        pytest.skip("no tensors go in or out")
    results = len(built.call.type.fields) if isinstance(built.call.type, TupleType) else 1
    inputs = tuple(each.name_hint for each in built.variables)
    meta = ModelMeta(inputs, tuple(f"out{i}" for i in range(results)))
    try:
        model = RelayModel(IRModule({"main": built.function}), {}, meta)
        module = to_module(from_relay(model, TorchExportOptions(), Report()))
    except UnsupportedModelError as error:
        pytest.skip(" ".join(str(error).split()))
    logging.disable(logging.CRITICAL)
    try:
        program = torch.export.export(module, tuple(map(to_tensor, built.arrays)))
    except Exception as error:
        if DEPENDENT.search(str(error)) is None:
            raise
        pytest.skip("asks for numbers that are computed in tensors")
    finally:
        logging.disable(logging.NOTSET)
    again = serde.to_relay(program)
    names = again.meta.inputs
    found = RelayEngine(again).run(dict(zip(names, built.arrays, strict=True)))
    for expected, actual in zip(built.run(), found, strict=True):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        tolerance = TOLERANCE.get(expected.dtype.name, 0)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
