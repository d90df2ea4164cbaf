"""Dtypes that a version of ONNX, or one of its operators, does not have yet."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import serde
import serde.relay as relay
from serde.command.flags import generated_options
from serde.core.report import Report
from serde.errors import OptionError, UnsupportedModelError
from serde.onnx.options import OnnxExportOptions

FIRST = {
    "bfloat16": 13,
    "float8_e4m3fn": 19,
    "float8_e5m2fnuz": 19,
    "int4": 21,
    "uint4": 21,
    "float4_e2m1fn": 23,
    "float8_e8m0fnu": 24,
    "int2": 25,
}
"""The version with which ONNX's changelog lists a dtype first."""


def module(*inputs: relay.Var, body: Any) -> relay.IRModule:
    return relay.IRModule.from_expr(relay.Function(list(inputs), body))


def cast_of(dtype: str) -> relay.IRModule:
    x = relay.var("x", shape=(2, 3), dtype=dtype)
    return module(x, body=relay.cast(x, "float32"))


@pytest.mark.parametrize(("dtype", "first"), FIRST.items())
def test_the_first_version_of_a_dtype_is_named(dtype: str, first: int) -> None:
    hint = f"ONNX has no {dtype} at version {first - 1} (use opset {first} or later)"
    with pytest.raises(UnsupportedModelError) as refusal:
        serde.export_model(cast_of(dtype), {}, format="onnx", opset=first - 1)
    assert hint in str(refusal.value)
    assert serde.export_model(cast_of(dtype), {}, format="onnx", opset=first).graph.node


@pytest.mark.parametrize(("dtype", "first"), FIRST.items())
def test_auto_takes_the_lowest_that_can_say_all(dtype: str, first: int) -> None:
    report = Report()
    proto = serde.export_model(cast_of(dtype), {}, format="onnx", opset="auto", report=report)
    assert proto.opset_import[0].version == report.facts["opset"] == max(first, 17)
    assert not report.issues


def test_auto_keeps_the_default_where_that_will_do() -> None:
    proto = serde.export_model(cast_of("float16"), {}, format="onnx", opset="auto")
    assert proto.opset_import[0].version == 17


def test_auto_tells_what_no_version_can_say() -> None:
    x = relay.var("x", shape=(2, 3), dtype="float8_e4m3fn")
    with pytest.raises(UnsupportedModelError, match=r"Erf takes .*; found float8_e4m3fn"):
        serde.export_model(module(x, body=relay.erf(x)), {}, format="onnx", opset="auto")


def test_another_word_is_refused() -> None:
    with pytest.raises(OptionError, match="opset: expected 'auto' or an integer, found 'newest'"):
        serde.export_model(cast_of("int8"), {}, format="onnx", opset="newest")


def test_the_flag_takes_a_number_or_a_word() -> None:
    (flag,) = (
        each for each in generated_options([("onnx", OnnxExportOptions)]) if each.name == "opset"
    )
    assert [flag.type("13", flag, None), flag.type("auto", flag, None)] == [13, "auto"]
    assert flag.metavar == "INTEGER|auto"


OPERATORS = {
    "nn.conv2d": (lambda x: relay.nn.conv2d(x, x, padding=(1, 1)), "bfloat16", 22),
    "ones_like": (relay.ones_like, "bfloat16", 20),
    "reshape": (lambda x: relay.reshape(x, (-1,)), "float8_e5m2", 19),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_first_version_of_an_operator_with_a_dtype_is_named(name: str) -> None:
    build, dtype, first = OPERATORS[name]
    x = relay.var("x", shape=(2, 2, 3, 3), dtype=dtype)
    mod = module(x, body=build(x))
    reason = rf"at version {first - 1}; found {dtype} \(use opset {first} |{dtype} at version"
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.export_model(mod, {}, format="onnx", opset=first - 1)
    proto = serde.export_model(mod, {}, format="onnx", opset="auto")
    assert proto.opset_import[0].version == first


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint64"])
@pytest.mark.parametrize("length", [4, "N"])
def test_narrow_and_unsigned_indices(length: int | str, dtype: str, opset: int) -> None:
    x = relay.var("x", shape=(length, 3), dtype="float32")
    i = relay.var("i", shape=(2,), dtype=dtype)
    body = relay.Tuple([relay.take(x, i, axis=0), relay.take(x, i, axis=0, mode="wrap")])
    proto = serde.export_model(module(x, i, body=body), {}, format="onnx", opset=opset)
    values, indices = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([3, 7], dtype)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    clipped, wrapped = session.run(None, {"x": values, "i": indices})
    assert clipped.tolist() == values[[3, 3]].tolist()
    assert wrapped.tolist() == values[[3, 3]].tolist()


@pytest.mark.parametrize("opset", [11, 17])
def test_relu_of_unsigned_numbers(opset: int) -> None:
    x = relay.var("x", shape=(3,), dtype="uint16")
    proto = serde.export_model(module(x, body=relay.nn.relu(x)), {}, format="onnx", opset=opset)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    assert session.run(None, {"x": np.array([0, 7, 65535], np.uint16)})[0].tolist() == [0, 7, 65535]


def test_clip_of_four_bits() -> None:
    x = relay.var("x", shape=(3,), dtype="int4")
    mod = module(x, body=relay.cast(relay.clip(x, -3, 100), "int8"))
    proto = serde.export_model(mod, {}, format="onnx", opset="auto")
    given = np.array([-8, 0, 7], np.int8).astype(ml_dtypes.int4)
    assert ReferenceEvaluator(proto).run(None, {"x": given})[0].tolist() == [-3, 0, 7]
