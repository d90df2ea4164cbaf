"""Every sample of every operator that MXNet can say: our kernel against MXNet 1.9.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.gaps import case, unknown_gaps
from support.samples import build

from serde.compat import import_mxnet
from serde.core.report import Report
from serde.errors import MissingDependency
from serde.mxnet.engine import MxnetEngine, mxnet_program
from serde.mxnet.exporter import from_relay
from serde.mxnet.ops import TABLE
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import Sample, all_ops
from serde.relay.ir.types import TupleType

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


def samples() -> list[Any]:
    """One parameter set for each sample of each operator that is written or decomposed.

    One of each operator is first.
    """
    return [
        case("mxnet-sample", f"{name}-{index}", name, given, wide=index > 0)
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
        if _is_covered(name)
    ]


def _is_covered(name: str) -> bool:
    """Whether MXNet says an operator, or what it is made of; a dynamic one may turn out static."""
    made = TABLE.expansion(name) or all_ops()[name].decompose
    return TABLE.exporter(name, 1) is not None or made is not None or name.startswith("dyn.")


@pytest.mark.wide
def test_gaps_name_cases() -> None:
    assert unknown_gaps("mxnet-sample", {each.id for each in samples()}) == []


@pytest.mark.sparse(2)
@pytest.mark.parametrize(("name", "given"), samples())
def test_mxnet_agrees_with_kernel(name: str, given: Sample) -> None:
    try:
        mxnet = import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))
    built = build(all_ops()[name], given)
    results = len(built.call.type.fields) if isinstance(built.call.type, TupleType) else 1
    outputs = tuple(f"out{i}" for i in range(results))
    inputs = tuple(variable.name_hint for variable in built.variables)
    model = RelayModel(IRModule({"main": built.function}), {}, ModelMeta(inputs, outputs))
    native = from_relay(model, Report())
    found = MxnetEngine(mxnet, mxnet_program(native, model)).run(
        dict(zip(inputs, built.arrays, strict=True))
    )
    for expected, actual in zip(built.run(), found, strict=True):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        if name in DRAWN:
            continue
        tolerance = TOLERANCE.get(expected.dtype.name, 0)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
