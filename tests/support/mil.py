"""Single operators of MIL: programs that coremltools makes, and the values it infers itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support.coreml_models import tools
from support.mil_apple import TOLERANCE, WRONG, apple_values
from support.mil_executor import execute

import serde
from serde.relay.ir.model import RelayModel
from serde.relay.run.interpreter import run


def _types() -> dict[str, Any]:
    tools()
    from coremltools.converters.mil.mil import types

    return {"bool": types.bool, "float16": types.fp16, "float32": types.fp32, "int32": types.int32}


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


def check_import(
    op: str,
    tensors: Mapping[str, Any],
    attrs: Mapping[str, Any],
    *,
    target: str = "iOS15",
    expected: list[np.ndarray] | None = None,
    tolerance: float | None = None,
) -> RelayModel:
    """Compare what an operator becomes in Relay, and in the executor, with what it is to give.

    Args:
        op: The operator.
        tensors: Inputs that are not constant.
        attrs: Constant inputs.
        target: Deployment target.
        expected: Results from elsewhere; if left out what coremltools infers, or the executor's
            where that infers nothing, or something wrong.
        tolerance: Relative and absolute; by the dtype if left out.
    """
    program = program_of(op, tensors, attrs, target)
    model = serde.to_relay(program)
    arrays = inputs_of(tensors)
    # Truth values go in and out of Core ML as numbers.
    given = {
        each.name_hint: arrays[each.name_hint].astype(each.type.dtype) for each in model.inputs()
    }
    wanted = execute(program, given)
    judged = expected
    if judged is None and op not in WRONG:
        judged = apple_values(op, {**tensors, **attrs}, target)
    if judged is not None:
        _compare(wanted, judged, tolerance)
    given |= {name: weight.array() for name, weight in model.params.items()}
    result = run(model.main, [given[each.name_hint] for each in model.main.params], mod=model.mod)
    _compare(result if isinstance(result, tuple) else (result,), judged or wanted, tolerance)
    return model


def _compare(
    found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float | None
) -> None:
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == theirs.shape
        bound = TOLERANCE.get(ours.dtype.name, 0.0) if tolerance is None else tolerance
        np.testing.assert_allclose(ours * 1, theirs * 1, rtol=bound, atol=bound)
