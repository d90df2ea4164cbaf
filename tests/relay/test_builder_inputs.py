"""Builders called as users call them: NumPy numbers and arrays, tuples, axes from the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.golden import GoldenCall, golden_calls

import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.compare import assert_structural_equal
from serde.relay.ir.expr import Call, Constant, astuple
from serde.relay.ir.types import TensorType

Change = Callable[[Any], Any]


def _scalars(value: Any) -> Any:
    """NumPy's numbers in lists, as shapes of arrays taken apart are."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    return [_scalars(item) for item in value] if isinstance(value, list) else value


def _arrays(value: Any) -> Any:
    """Lists of numbers as arrays, numbers as arrays of rank 0."""
    if isinstance(value, list) and value and np.array(value, dtype=object).dtype == object:
        found = np.array(value) if _is_even(value) else value
        return found if not isinstance(found, np.ndarray) or found.dtype.kind in "if" else value
    return np.int32(value) if type(value) is int else value


def _is_even(value: list[Any]) -> bool:
    lengths = {len(item) if isinstance(item, list) else -1 for item in value}
    return len(lengths) == 1


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


CHANGES: dict[str, Change] = {"scalars": _scalars, "arrays": _arrays, "tuples": _tuples}


def _changed(given: GoldenCall, change: Change) -> GoldenCall:
    inputs = [each if _is_tensor(each) else change(each) for each in given.record["inputs"]]
    attrs = {name: change(value) for name, value in given.record["attrs"].items()}
    return replace(given, record={**given.record, "inputs": inputs, "attrs": attrs})


def _is_tensor(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and isinstance(given[0], str)


@pytest.mark.parametrize("change", sorted(CHANGES))
@pytest.mark.parametrize("given", golden_calls(), ids=lambda given: given.name)
def test_attributes_in_other_clothes(given: GoldenCall, change: str) -> None:
    assert_structural_equal(_changed(given, CHANGES[change]).build(), given.build())


X = relay.var("x", shape=(2, 3, 4))
LINE = relay.var("line", shape=(4,))
SCALAR = relay.const(1.0)
IMAGE = relay.var("image", shape=(1, 3, 8, 8))


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda v: relay.reshape(X, v), [6, -1]),
        (lambda v: relay.tile(X, v), [1, 2, 1]),
        (lambda v: relay.strided_slice(X, v, [2, 3, 4]), [0, 1, 2]),
        (lambda v: relay.strided_slice(X, [0, 0, 0], v), [1, 2, 3]),
        (lambda v: relay.topk(X, v), 2),
        (lambda v: relay.nn.pad(X, v), [[0, 0], [1, 2], [0, 0]]),
        (lambda v: relay.full(SCALAR, v, "float32"), [2, 3]),
        (lambda v: relay.zeros(v, "float32"), [2, 3]),
        (lambda v: relay.ones(v, "float32"), [2, 3]),
        (lambda v: relay.broadcast_to(LINE, v), [2, 4]),
        (lambda v: relay.expand_dims(X, v), 1),
        (lambda v: relay.squeeze(relay.expand_dims(X, 0), v), [0]),
        (lambda v: relay.image.resize2d(IMAGE, v), [4, 5]),
    ],
)
def test_a_constant_where_tvm_takes_one(build: Callable[[Any], Any], value: Any) -> None:
    """It is as if its values had been given."""
    found, wanted = (astuple(build(each)) for each in (relay.const(value), value))
    assert isinstance(found, Call)
    assert found.type == wanted.type
    assert found.op is wanted.op


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda: relay.transpose(X, [-3, -1, -2]), (2, 4, 3)),
        (lambda: relay.sum(X, axis=np.array([0, -1]), keepdims=True), (1, 3, 1)),
        (lambda: relay.concatenate([X, X], np.int64(-2)), (2, 6, 4)),
        (lambda: relay.stack((X, X), np.int64(-1)), (2, 3, 4, 2)),
        (lambda: relay.expand_dims(X, np.int64(-1), np.int32(2)), (2, 3, 4, 1, 1)),
        (lambda: relay.reshape(X, np.int64(-1)), (24,)),
        (lambda: relay.reshape(X, (np.int64(0), np.int64(-3))), (2, 12)),
        (lambda: relay.nn.max_pool2d(IMAGE, 2, 2, padding=np.int64(1)), (1, 3, 5, 5)),
        (lambda: relay.nn.conv2d(IMAGE, relay.var("k"), channels=4, kernel_size=np.array([3, 3])),
         (1, 4, 6, 6)),
        (lambda: relay.zeros((relay.Any(), 3), "float32"), ("?", 3)),
    ],
)  # fmt: skip
def test_shapes_of_calls_with_numpy_numbers(build: Callable[[], Any], shape: Any) -> None:
    call = build()
    function = relay.IRModule.from_expr(call)
    found = relay.transform.InferType()(function)["main"].body.type
    assert [str(dim) for dim in found.shape] == [str(dim) for dim in shape]


# Variables and constants.


def test_a_variable_of_a_dtype_is_a_scalar() -> None:
    assert relay.var("x", "float32").type_annotation == TensorType((), "float32")
    assert relay.var("x", dtype="int32").type_annotation is None
    assert relay.var("x", shape=np.array([2, 3])).type == TensorType((2, 3), "float32")
    assert str(relay.var("x", shape=(relay.Any(), 3)).type) == "Tensor[(?, 3), float32]"
    with pytest.raises(RelayError, match="expected a type, found"):
        relay.var("x", (2, 3))
    with pytest.raises(ValueError, match="a type or a shape"):
        relay.var("x", "float32", shape=(2,))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (1.5, "float32"),
        (True, "bool"),
        ([1, 2], "int32"),
        ([[1.0, 2.0]], "float32"),
        (np.float64(1.5), "float32"),
        (np.int64(7), "int32"),
        (np.array([1.5, 2.5]), "float32"),
        (np.arange(3), "int32"),
        (np.array([1], "int8"), "int8"),
        (np.array([1], "uint64"), "uint64"),
        (np.float16(1), "float16"),
        (np.array([np.inf, np.nan]), "float32"),
        (np.zeros((0, 3)), "float32"),
    ],
)
def test_constants_without_a_dtype_have_32_bits(value: Any, dtype: str) -> None:
    found = relay.const(value)
    assert found.data.dtype == dtype
    np.testing.assert_array_equal(found.data, value)


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16", "bool", np.int8])
def test_constants_have_the_dtype_that_is_given(dtype: Any) -> None:
    assert relay.const(np.array([0, 1]), dtype).data.dtype == np.dtype(dtype)
    assert relay.const(1, dtype).data.dtype == np.dtype(dtype)


@pytest.mark.parametrize("value", [2**31, np.array([1, -(2**31) - 1]), 1e300])
def test_a_constant_that_does_not_fit_is_refused(value: Any) -> None:
    with pytest.raises(RelayError, match="does not fit"):
        relay.const(value)
    assert Constant(np.array(value)).data.dtype.itemsize == 8


@pytest.mark.parametrize(("value", "dtype"), [(300, "int8"), (-1, "uint8"), (2**70, "int64")])
def test_a_number_that_does_not_fit_its_dtype_is_refused(value: int, dtype: str) -> None:
    with pytest.raises(RelayError, match=r"does not fit|too large"):
        relay.const(value, dtype)


@pytest.mark.parametrize(
    "value", [object(), ["a"], 1j, [[1], [2, 3]], 2**70, np.datetime64("2020-01-01")]
)
def test_a_constant_of_other_than_numbers_is_refused(value: Any) -> None:
    with pytest.raises(RelayError, match="a constant needs numbers"):
        relay.const(value)


def test_a_great_number_is_a_float_if_that_is_asked_for() -> None:
    assert relay.const(2**70, "float32").data == np.float32(2.0**70)


def test_a_number_is_no_operand() -> None:
    with pytest.raises(TypeError, match=r"turn numbers into relay\.const"):
        X + 1.0
    with pytest.raises(TypeInferenceError, match="expected an expression"):
        relay.add(X, 1.0)


def test_an_empty_tuple_is_a_field() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: float32) {\n  %0 = ();\n  (%0, %x)\n}\n'
    mod = relay.fromtext(text)
    assert_structural_equal(relay.fromtext(mod.astext()), mod)
    assert len(mod["main"].body.fields[0].fields) == 0
