"""The backend suite of the onnx package, from ONNX to modules of PyTorch."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.gaps import suite_cases, unknown_gaps
from support.torch_tensors import from_tensor, to_tensor

from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.relay.ir.types import SequenceType
from serde.torch.exporter import from_relay
from serde.torch.options import TorchExportOptions
from serde.torch.written import to_module

torch = pytest.importorskip("torch")
suite = pytest.importorskip("support.onnx_suite")

COUNTED = [each for each in suite.load_cases() if each.left_out is None]

LACKS = re.compile(
    r"PyTorch has no (u?int[24]|float4_e2m1fn)|no importer|antialias|counterpart for these types"
    r"|of uint64|a size or region that is computed"
)
"""Why cases are refused: dtypes, smoothed images whose lengths are computed, unread operators."""


def test_gaps_name_cases() -> None:
    assert unknown_gaps("onnx-torch", {each.name for each in COUNTED}) == []


@pytest.mark.parametrize("case", suite_cases("onnx-torch", COUNTED))
def test_import_and_module(case: Any) -> None:
    """What PyTorch cannot say is skipped with the reason; a refusal for another one fails."""
    try:
        model = suite.imported(case)
    except UnsupportedModelError as error:
        pytest.skip(f"not imported: {' '.join(str(error).split())}")
    try:
        model = prepare(model, PrepareOptions(), report=Report())
        module = to_module(from_relay(model, TorchExportOptions(), Report()))
    except UnsupportedModelError as error:
        if LACKS.search(str(error)) is None:
            raise
        pytest.skip(" ".join(str(error).split()))
    inputs = [each for each in model.main.params if each.name_hint not in model.params]
    for values, expected in case.data():
        given = suite.feeds(case.model(), values)
        arguments = [
            as_list(given[each.name_hint])
            if isinstance(each.type, SequenceType)
            else given[each.name_hint]
            for each in inputs
        ]
        with torch.no_grad():
            found = module(*map(to_tensor, arguments))
        results = found if isinstance(found, tuple) else (found,)
        suite.judge(case, expected, [from_tensor(each) for each in results])


def as_list(value: Any) -> list[Any]:
    """Return a sequence, or an optional tensor as one of at most one."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]
