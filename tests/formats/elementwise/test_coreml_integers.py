"""Integers as inputs and outputs of ML Programs: in which dtype, and what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_models import tools
from support.coreml_written import model, var
from support.mil_executor import execute

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError

IDS = np.array([[3, 1, 0, 2, 0]], np.int64)
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)


def declared(path: Path) -> list[str]:
    """The dtypes of inputs and outputs, as coremltools reads them."""
    native = tools().models.MLModel(str(path), skip_model_load=True).get_spec().description
    names = tools().proto.FeatureTypes_pb2.ArrayFeatureType.ArrayDataType.Name
    return [names(each.type.multiArrayType.dataType) for each in (*native.input, *native.output)]


def one(value: int, dtype: str = "int64") -> Any:
    return relay.const(value, dtype)


def counted(x: Any) -> Any:
    """Numbers of tokens that are no padding, as RoBERTa has them."""
    mask = relay.cast(relay.not_equal(x, one(0)), "int64")
    return relay.add(relay.multiply(relay.cumsum(mask, axis=1), mask), one(7))


def numbers(x: np.ndarray) -> np.ndarray:
    mask = (x != 0).astype(np.int64)
    return np.cumsum(mask, 1) * mask + 7


FIT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "as they are": (lambda x: x, lambda x: x),
    "moved": (lambda x: relay.transpose(x), lambda x: x.T),
    "counted": (counted, numbers),
    "places": (
        lambda x: relay.cast(relay.argmax(relay.cast(x, "float32"), axis=1), "int64"),
        lambda x: x.argmax(1),
    ),
}


@pytest.mark.parametrize("case", FIT)
def test_integers_of_64_bits_are_declared_as_32(case: str, tmp_path: Path) -> None:
    build, compute = FIT[case]
    x, report = var("x", 1, 5, dtype="int64"), Report()
    body = build(x) if case != "as they are" else relay.reshape(x, (5, 1))
    path = serde.from_relay(
        model(body, x), format="coreml", path=tmp_path / "m.mlpackage", report=report
    )
    assert declared(path) == ["INT32", "INT32"]
    (found,) = execute(path, {"x": IDS.astype(np.int32)})
    np.testing.assert_array_equal(found.reshape(-1), compute(IDS).reshape(-1))
    assert [(each.op, each.node) for each in report.allowed] == [("input", "x"), ("output", "out")]
    assert {each.reason for each in report.allowed} == {
        "int64 has no counterpart, and is declared as int32"
    }


@pytest.mark.parametrize(
    "build",
    [
        lambda x: relay.multiply(x, x),
        lambda x: relay.multiply(relay.cast(relay.greater(x, one(1)), "int64"), one(2**31)),
        lambda x: relay.sum(x, axis=1),
    ],
    ids=["product", "large constant", "sum"],
)
def test_arithmetic_that_may_not_fit_is_asked_for(build: Callable[[Any], Any]) -> None:
    x = var("x", 1, 5, dtype="int64")
    with pytest.raises(UnsupportedModelError, match=r"int64 has no counterpart|int32") as caught:
        serde.from_relay(model(build(x), x), format="coreml")
    assert {each.op for each in caught.value.report.issues}.isdisjoint({"input", "output"})


@pytest.mark.parametrize(
    ("target", "dtype"), [("iOS17", "INT32"), ("iOS18", "INT32"), ("iOS26", "INT8")]
)
def test_int8_inputs_and_outputs(target: str, dtype: str, tmp_path: Path) -> None:
    x = var("x", 2, 3, dtype="int8")
    scaled = relay.multiply(relay.cast(x, "float32"), relay.const(np.float32(2)))
    both = relay.Tuple([relay.transpose(x), scaled])
    source = model(both, x)
    source = source.evolve(meta=replace(source.meta, outputs=("out", "scaled")))
    path = serde.from_relay(
        source, format="coreml", path=tmp_path / "m.mlpackage", minimum_deployment_target=target
    )
    assert declared(path) == [dtype, dtype, "FLOAT32"]
    given = np.array([[-7, 0, 5], [100, -128, 127]], np.int8)
    found = execute(path, {"x": given if dtype == "INT8" else given.astype(np.int32)})
    np.testing.assert_array_equal(found[0], given.T)
    np.testing.assert_array_equal(found[1], given.astype(np.float32) * 2)
    back = serde.to_relay(path)
    assert back.main.params[0].type == relay.TensorType((2, 3), dtype.lower())
