"""Every sample of every operator that ML Programs can say: our kernel against the program.

coremltools loads each program, which checks the types of all values, and the executor of the
tests runs it. Every single operation that it runs is compared with what coremltools infers of
it; those of which coremltools infers nothing are compared with PyTorch in
``test_coreml_kernels.py``. The summary of the tests lists the operators of MIL that neither
judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.gaps import case, unknown_gaps
from support.mil_apple import Proof
from support.mil_executor import execute
from support.mil_values import check_types
from support.samples import BuiltSample, build

import serde.relay as relay
from serde.coreml.bridge import CoremlExportOptions
from serde.coreml.lower import from_relay
from serde.coreml.model import operations
from serde.coreml.ops import TABLE
from serde.relay.expr import Expr, Function, Var
from serde.relay.model import ModelMeta, RelayModel
from serde.relay.module import IRModule
from serde.relay.registry import Sample, all_ops
from serde.relay.transform.infer_type import infer_function
from serde.relay.types import TensorType
from serde.relay.visit import rewrite
from serde.report import Report

DRAWN = ("serde.bernoulli", "serde.multinomial", "serde.random_normal", "serde.random_uniform")
"""Operators of which the range is told, and the values are the executor's."""

TOLERANCE = {"float16": 4e-3, "float32": 2e-5}
HELD = dict.fromkeys(("bool", "int8", "int16", "int64", "uint8", "uint16"), "int32")
HELD |= {"float64": "float32"}
"""dtypes of inputs and outputs by those that a Core ML model has for them."""

TARGETS = ("iOS15", "iOS18")
CONSENT = frozenset({"int64-as-int32", "float64-as-float32"})


def samples() -> list[Any]:
    """One parameter set for each target and sample of each operator written or decomposed."""
    return [
        case("coreml-sample", f"{name}-{index}-{target}", name, given, target)
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
        for target in TARGETS
        if _is_covered(name)
    ]


def _is_covered(name: str) -> bool:
    """Whether MIL says an operator, or what it is made of; a dynamic one may turn out static."""
    made = TABLE.expansion(name) or all_ops()[name].decompose
    return TABLE.exporter(name, 26) is not None or made is not None or name.startswith("dyn.")


def test_gaps_name_cases() -> None:
    assert unknown_gaps("coreml-sample", {each.id for each in samples()}) == []


def model_of(built: BuiltSample) -> RelayModel:
    """The sample as a model; inputs without axes, which Core ML has not, get one."""
    results = len(built.call.type.fields) if hasattr(built.call.type, "fields") else 1
    outputs = tuple(f"out{i}" for i in range(results))
    memo: dict[Expr, Expr] = {}
    params = []
    for variable in built.variables:
        if isinstance(variable.type, TensorType) and not variable.type.shape:
            params.append(Var(variable.name_hint, TensorType((1,), variable.type.dtype)))
            memo[variable] = relay.reshape(params[-1], ())
        else:
            params.append(variable)
    body = rewrite(built.call, lambda _node, new: new, memo) if memo else built.call
    main = infer_function(Function(params, body))
    meta = ModelMeta(tuple(each.name_hint for each in params), outputs)
    return RelayModel(IRModule({"main": main}), {}, meta)


def held(array: np.ndarray, target: str) -> np.ndarray:
    """An array in the dtype that a Core ML model has for it at its ends."""
    dtype = HELD.get(array.dtype.name, array.dtype.name)
    if dtype == "float16" and target == "iOS15":
        dtype = "float32"
    return array.astype(dtype)


@pytest.mark.parametrize(("name", "given", "target"), samples())
def test_coreml_agrees_with_kernel(
    name: str,
    given: Sample,
    target: str,
    record_property: Callable[[str, object], None],
) -> None:
    built = build(all_ops()[name], given)
    source = model_of(built)
    options = CoremlExportOptions(
        minimum_deployment_target=target, compute_precision="float32", allow=CONSENT
    )
    model = from_relay(source, options, Report())
    arrays = {
        name: held(np.atleast_1d(array), target)
        for name, array in zip(source.meta.inputs, built.arrays, strict=True)
    }
    check_types(model)
    proof = Proof()
    found = execute(model, arrays, proof)
    made = {op.type for op in operations(model.spec) if op.type != "const"}
    record_property("mil_exported", sorted(made))
    record_property("mil_judged", sorted(proof.agreed))
    assert proof.differing == []
    for expected, actual in zip(built.run(), found, strict=True):
        wanted = held(expected, target)
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        if name in DRAWN:
            continue
        tolerance = TOLERANCE.get(expected.dtype.name, 2e-5 if wanted.dtype.kind == "f" else 0)
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)
