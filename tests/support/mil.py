"""Single operators of MIL: programs that coremltools makes, and the values it infers itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support.coreml_models import tools
from support.mil_layers import KERNELS

import serde
from serde.relay.interpreter import run
from serde.relay.model import RelayModel

TOLERANCE = {"float16": 2e-3, "float32": 2e-6}


def _types() -> dict[str, Any]:
    tools()
    from coremltools.converters.mil.mil import types

    return {
        "bool": types.bool,
        "float16": types.fp16,
        "float32": types.fp32,
        "int32": types.int32,
    }


def program_of(
    op: str, tensors: Mapping[str, Any], attrs: Mapping[str, Any], target: str = "iOS15"
) -> Any:
    """An ``MLModel`` of one operator, unchanged by coremltools' passes.

    Args:
        op: The operator.
        tensors: An array, or a tuple of arrays, by the name of each input that is not constant.
        attrs: Constant inputs.
        target: Deployment target.
    """
    ct = tools()
    from coremltools.converters.mil import Builder

    arrays = inputs_of(tensors)
    specs = [
        Builder.TensorSpec(shape=array.shape, dtype=_types()[array.dtype.name])
        for array in arrays.values()
    ]

    def build(*given: Any) -> Any:
        named = dict(zip(arrays, given, strict=True))
        operands = {
            name: tuple(named[f"{name}_{i}"] for i in range(len(value)))
            if isinstance(value, tuple)
            else named[name]
            for name, value in tensors.items()
        }
        return getattr(Builder, op)(**operands, **attrs, name="result")

    names = ", ".join(arrays)
    scope: dict[str, Any] = {"build": build}
    exec(f"def program({names}): return build({names})", scope)
    version = getattr(ct.target, target)
    program = Builder.program(input_specs=specs, opset_version=version)(scope["program"])
    return ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=version,
        pass_pipeline=ct.PassPipeline.EMPTY,
        skip_model_load=True,
    )


def inputs_of(tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays by the names that :func:`program_of` gives the inputs."""
    found = {}
    for name, value in tensors.items():
        if isinstance(value, tuple):
            found |= {f"{name}_{i}": each for i, each in enumerate(value)}
        else:
            found[name] = value
    return found


def apple_values(
    op: str, tensors: Mapping[str, Any], attrs: Mapping[str, Any], target: str = "iOS15"
) -> list[np.ndarray]:
    """What coremltools itself infers the operator to give.

    Raises:
        AssertionError: It infers no value of this operator.
    """
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import Function

    with Function({}, opset_version=getattr(ct.target, target)):
        result = getattr(Builder, op)(**tensors, **attrs)
        found = result if isinstance(result, (list, tuple)) else [result]
        values = [each.val for each in found]
    assert all(value is not None for value in values), f"coremltools infers no value of {op}"
    return [np.asarray(value) for value in values]


def check_import(
    op: str,
    tensors: Mapping[str, Any],
    attrs: Mapping[str, Any],
    *,
    target: str = "iOS15",
    expected: list[np.ndarray] | None = None,
    tolerance: float | None = None,
) -> RelayModel:
    """Compare what an operator becomes in Relay with what it is to give.

    A kernel that the tests have of it is compared with results from elsewhere too.

    Args:
        op: The operator.
        tensors: Inputs that are not constant.
        attrs: Constant inputs.
        target: Deployment target.
        expected: Results from elsewhere; what coremltools infers if left out.
        tolerance: Relative and absolute; by the dtype if left out.
    """
    model = serde.to_relay(program_of(op, tensors, attrs, target))
    arrays = inputs_of(tensors)
    # Truth values go in and out of Core ML as numbers.
    given = {
        each.name_hint: arrays[each.name_hint].astype(each.type.dtype) for each in model.inputs()
    }
    given |= {name: weight.array() for name, weight in model.params.items()}
    result = run(model.main, [given[each.name_hint] for each in model.main.params], mod=model.mod)
    found = result if isinstance(result, tuple) else (result,)
    wanted = apple_values(op, tensors, attrs, target) if expected is None else expected
    _compare(found, wanted, tolerance)
    if expected is not None and op in KERNELS:
        made = KERNELS[op](**tensors, **attrs)
        _compare(made if isinstance(made, tuple) else (made,), wanted, tolerance)
    return model


def _compare(
    found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float | None
) -> None:
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == theirs.shape
        bound = TOLERANCE.get(ours.dtype.name, 0.0) if tolerance is None else tolerance
        np.testing.assert_allclose(ours * 1, theirs * 1, rtol=bound, atol=bound)
