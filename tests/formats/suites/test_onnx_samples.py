"""Every sample of every operator that ONNX can say: our kernel against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support.gaps import case, unknown_gaps
from support.runtime import OLD_RUNTIME, newest_runtime_opset, skip_saturated_sums
from support.samples import build, each_array
from support.tiers import versions_of_exporters

from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.onnx.exporter import from_relay
from serde.onnx.ops import TABLE
from serde.onnx.versions import NEWEST
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import Sample, all_ops
from serde.relay.ir.types import TupleType
from serde.relay.transform import Decompose

OPSETS = {"11": 11, "13": 13, "17": 17, "21": 21, "newest": newest_runtime_opset()}

DRAWN = (
    "serde.bernoulli",
    "serde.multinomial",
    "serde.random_gamma",
    "serde.random_normal",
    "serde.random_poisson",
    "serde.random_uniform",
)
"""Operators of which the range is told only; tests/relay/test_random*.py look at their values."""

TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}

OLD_FAULTS = {
    "reinterpret": "ONNX Runtime 1.23 has no version that reads bits",
    "serde.attention": "ONNX Runtime 1.23 masks its first Attention wrongly",
    "serde.layer_norm": "ONNX Runtime 1.23 gives statistics of float16 in another dtype",
    "serde.lp_normalization": "ONNX Runtime 1.23 has no LpNormalization of version 22",
}
"""What the runtime of Python 3.10 lacks or computes wrongly."""


def exportable(name: str, opset: int) -> bool:
    """Whether an operator has an exporter, or decomposes into some that have."""
    made = TABLE.expansion(name) or all_ops()[name].decompose
    return TABLE.exporter(name, opset) is not None or made is not None


def samples() -> list[Any]:
    """One parameter set for each operator, sample and target version.

    First is one sample of each operator, at the newest version and those at which another exporter
    writes the operator.
    """
    found = []
    for name, definition in all_ops().items():
        first = versions_of_exporters(TABLE, name, list(OPSETS.values()))
        found += [
            case(
                "onnx-sample", f"{name}-{index}-{label}", name, given, opset,
                wide=index > 0 or opset not in first,
            )
            for index, given in enumerate(definition.samples)
            for label, opset in OPSETS.items()
            if exportable(name, opset)
        ]  # fmt: skip
    return found


@pytest.mark.wide
def test_gaps_name_cases() -> None:
    assert unknown_gaps("onnx-sample", {each.id for each in samples()}) == []


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("name", "given", "opset"), samples())
def test_runtime_agrees_with_kernel(name: str, given: Sample, opset: int) -> None:
    if OLD_RUNTIME and name in OLD_FAULTS:
        pytest.skip(OLD_FAULTS[name])
    if name.startswith("serde.qlinear") or name.endswith("_integer"):
        skip_saturated_sums()
    built = build(all_ops()[name], given)
    function = built.function
    results = len(built.call.type.fields) if isinstance(built.call.type, TupleType) else 1
    outputs = tuple(f"out{i}" for i in range(results))
    inputs = tuple(variable.name_hint for variable in built.variables)
    model = RelayModel(IRModule({"main": function}), {}, ModelMeta(inputs, outputs))
    proto = from_relay(model, opset, True, Report()).complete()
    onnx.checker.check_model(proto, full_check=True)
    feeds = dict(zip(inputs, built.arrays, strict=True))
    found = run(proto, feeds, outputs)
    for expected, actual in pairs(built.run(), found):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        if name in DRAWN:
            continue
        tolerance = TOLERANCE.get(expected.dtype.name, 0)
        if expected.dtype.type.__module__ == "ml_dtypes":
            expected, actual = expected.astype(np.float32), actual.astype(np.float32)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def pairs(expected: Sequence[Any], found: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return the arrays of two results side by side, those of sequences one by one."""
    return [
        pair
        for one, other in zip(expected, found, strict=True)
        for pair in zip(each_array(one), each_array(other), strict=True)
    ]


def run(
    proto: onnx.ModelProto, feeds: dict[str, np.ndarray], outputs: tuple[str, ...]
) -> list[np.ndarray]:
    """Run a model in ONNX Runtime, or where that has no kernel in ONNX's reference.

    So are tensors of types that NumPy lacks, which the runtime neither takes nor gives back.
    """
    runtime = pytest.importorskip("onnxruntime")
    ends = [*proto.graph.input, *proto.graph.output]
    kinds = [each.type.tensor_type.elem_type for each in ends if each.type.HasField("tensor_type")]
    if any(map(_is_extended, kinds)):
        return ReferenceEvaluator(proto).run(list(outputs), feeds)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = runtime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except runtime.capi.onnxruntime_pybind11_state.NotImplemented:
        return ReferenceEvaluator(proto).run(list(outputs), feeds)
    return session.run(list(outputs), feeds)


def _is_extended(kind: int) -> bool:
    return onnx.helper.tensor_dtype_to_np_dtype(kind).type.__module__ == "ml_dtypes"


def test_legalize_leaves_what_is_written() -> None:
    kept = Decompose(supported=lambda node: True)
    built = build(all_ops()["nn.relu"], all_ops()["nn.relu"].samples[0])
    mod = IRModule({"main": built.function})
    assert kept.run(mod) == (mod, False)


def test_what_has_no_exporter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TABLE, "_exports", {})
    built = build(all_ops()["adv_index"], all_ops()["adv_index"].samples[0])
    inputs = tuple(variable.name_hint for variable in built.variables)
    model = RelayModel(IRModule({"main": built.function}), {}, ModelMeta(inputs, ("out",)))
    with pytest.raises(UnsupportedModelError, match="no exporter"):
        from_relay(model, NEWEST, False, Report())


@pytest.mark.parametrize("index", range(len(all_ops()["serde.swiglu"].samples)))
def test_swiglu_of_28_agrees_in_the_reference(index: int) -> None:
    definition = all_ops()["serde.swiglu"]
    built = build(definition, definition.samples[index])
    inputs = tuple(variable.name_hint for variable in built.variables)
    model = RelayModel(IRModule({"main": built.function}), {}, ModelMeta(inputs, ("out",)))
    proto = from_relay(model, 28, True, Report()).complete()
    assert [node.op_type for node in proto.graph.node] == ["SwiGLU"]
    feeds = dict(zip(inputs, built.arrays, strict=True))
    (found,) = ReferenceEvaluator(proto).run(["out"], feeds)
    (expected,) = built.run()
    tolerance = TOLERANCE[expected.dtype.name]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
