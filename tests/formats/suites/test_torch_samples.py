"""Every sample of every operator that PyTorch can say: our kernel against a written module."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.gaps import case, unknown_gaps
from support.samples import BuiltSample, Naming, Symbols, build, each_array
from support.torch_tensors import UNNAMED, from_tensor, to_tensor

from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.errors import TypeInferenceError, UnsupportedModelError
from serde.relay.ir.dims import Any as AnyDim
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import Sample, all_ops
from serde.relay.ir.types import TupleType
from serde.torch.exporter import from_relay
from serde.torch.ops import TABLE
from serde.torch.options import TorchExportOptions
from serde.torch.written import to_module

torch = pytest.importorskip("torch")

DRAWN = (
    "serde.bernoulli",
    "serde.multinomial",
    "serde.random_gamma",
    "serde.random_normal",
    "serde.random_poisson",
    "serde.random_uniform",
)
"""Operators of which the range is told, and the values are the executor's."""

TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}


def samples(suite: str) -> list[Any]:
    """One parameter set for each sample of each operator."""
    return [
        case(suite, f"{name}-{index}", name, given, wide=index > 0)
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
    ]


@pytest.mark.parametrize("suite", ["torch-open", "torch-sample"])
def test_gaps_name_cases(suite: str) -> None:
    assert unknown_gaps(suite, {each.id for each in samples(suite)}) == []


def test_every_operator_is_written_or_made_of_others() -> None:
    written = TABLE.exported()
    missing = [
        name
        for name, definition in all_ops().items()
        if name not in written and definition.decompose is None and TABLE.expansion(name) is None
    ]
    assert missing == []


@pytest.mark.parametrize(("name", "given"), samples("torch-sample"))
def test_written_module_agrees_with_kernel(name: str, given: Sample) -> None:
    built = build(all_ops()[name], given)
    _judge(name, built, write(built), built.arrays)


@pytest.mark.parametrize(("name", "given"), samples("torch-sample"))
def test_weights_agree_with_kernel(name: str, given: Sample) -> None:
    """All operands but the first are weights, which layers may hold."""
    built = build(all_ops()[name], given)
    weights = {
        variable.name_hint: ArrayWeight(np.array(array, order="C"))
        for variable, array in zip(built.variables[1:], built.arrays[1:], strict=True)
        if isinstance(array, np.ndarray)
    }
    pairs = zip(built.variables, built.arrays, strict=True)
    feeds = [array for variable, array in pairs if variable.name_hint not in weights]
    _judge(name, built, write(built, weights), feeds)


@pytest.mark.parametrize(("name", "given"), samples("torch-sample"))
def test_script_takes_written_module(name: str, given: Sample) -> None:
    built = build(all_ops()[name], given)
    with pytest.warns((DeprecationWarning, FutureWarning), match="torch.jit"):
        module = torch.jit.script(write(built))
    _judge(name, built, module, built.arrays)


def _unknown(_variable: int, _axis: int, _length: int) -> AnyDim:
    return AnyDim()


@pytest.mark.wide
@pytest.mark.parametrize("lengths", [Symbols(shared=False), _unknown], ids=["symbols", "unknown"])
@pytest.mark.parametrize(("name", "given"), samples("torch-open"))
def test_open_lengths_agree_with_kernel(name: str, given: Sample, lengths: Naming) -> None:
    """All lengths are symbols, or unknown; what needs fixed ones is skipped with the reason."""
    try:
        built = build(all_ops()[name], given, lengths)
        module = write(built)
    except (TypeInferenceError, UnsupportedModelError) as error:
        pytest.skip(" ".join(str(error).split()))
    _judge(name, built, module, built.arrays)


def write(built: BuiltSample, weights: dict[str, ArrayWeight] | None = None) -> Any:
    """Return a sample as a module, some of whose variables are weights."""
    weights = weights or {}
    results = len(built.call.type.fields) if isinstance(built.call.type, TupleType) else 1
    names = (variable.name_hint for variable in built.variables)
    inputs = tuple(name for name in names if name not in weights)
    outputs = tuple(f"out{i}" for i in range(results))
    meta = ModelMeta(inputs, outputs)
    model = RelayModel(IRModule({"main": built.function}), weights, meta)
    return to_module(from_relay(model, TorchExportOptions(), Report()))


def _judge(name: str, built: BuiltSample, module: Any, feeds: Any) -> None:
    with torch.no_grad():
        found = module(*map(to_tensor, feeds))
    results = found if isinstance(found, tuple) else (found,)
    for expected, actual in zip(built.run(), map(from_tensor, results), strict=True):
        for one, other in zip(each_array(expected), each_array(actual), strict=True):
            assert other.dtype == one.dtype
            assert other.shape == one.shape
            if name not in DRAWN:
                _compare(one, other)


def _compare(expected: np.ndarray, actual: np.ndarray) -> None:
    tolerance = TOLERANCE.get(expected.dtype.name, 0)
    if expected.dtype.name in UNNAMED:
        expected, actual = expected.astype(np.float32), actual.astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
