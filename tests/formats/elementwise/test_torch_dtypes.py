"""Elementwise operators and reductions of every dtype, at its ends and where numbers are none."""

from __future__ import annotations

import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.torch_tensors import from_tensor, to_tensor

from serde.core.report import Report
from serde.errors import TypeInferenceError, UnsupportedModelError
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import all_ops, call
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import apply_kernel
from serde.torch.exporter import from_relay
from serde.torch.options import TorchExportOptions
from serde.torch.written import to_module

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.wide

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip

TOLERANCE = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 3e-5, "float64": 1e-10}

DIVISIONS = ("divide", "floor_divide", "trunc_divide", "mod", "trunc_mod", "floor_mod")

FREE = ("float16", "float32", "float64", "bfloat16")

ENDS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5]

_IN = ("serde.relay.op.elementwise.binary", "serde.relay.op.elementwise.unary")
ELEMENTWISE = [
    name
    for name, definition in all_ops().items()
    if definition.kernel.__module__ in _IN and name not in ("clip", "where")
]
REDUCTIONS = [
    name
    for name, definition in all_ops().items()
    if definition.kernel.__module__ in ("serde.relay.op.reduce.plain", "serde.relay.op.reduce.norm")
    and name != "variance"
]


def draw(name: str, dtype: str, shape: tuple[int, ...], *, ends: bool = True) -> np.ndarray:
    """Return numbers of a dtype: from all of its range, or with what is no number."""
    generator = np.random.default_rng(zlib.crc32(f"{name}{dtype}".encode()))
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype not in FREE:
        info = np.iinfo(dtype)
        if ends:
            return generator.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return generator.integers(max(info.min, -5), 6, shape).astype(dtype)
    numbers = generator.standard_normal(shape) * 3
    if ends:
        numbers.reshape(-1)[:6] = ENDS[: numbers.size]
    return numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str, dtype: str) -> None:
    """Divisors are not zero, shifts are inside a byte, and powers are small."""
    arrays = [draw(name, dtype, (3, 4))]
    if len(all_ops()[name].operands) > 1:
        arrays.append(draw(f"{name} ", dtype, (4,)))
    if name in DIVISIONS and dtype not in FREE:
        arrays[1] = np.where(arrays[1] == 0, 1, arrays[1]).astype(dtype)
    if name in ("left_shift", "right_shift", "power") and dtype not in FREE:
        small = np.abs(draw(name, "int32", (4,), ends=False)).astype(dtype)
        arrays = [draw(name, dtype, (3, 4), ends=name != "power"), small]
    check(name, arrays, {})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attributes", [{"axis": 1}, {"axis": (0, 2), "keepdims": True}, {}])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, attributes: dict[str, Any], dtype: str) -> None:
    check(name, [draw(name, dtype, (3, 4, 2))], attributes)


def check(name: str, arrays: list[np.ndarray], attributes: dict[str, Any]) -> None:
    """Compare a module of one operator with the kernel; what is refused is skipped."""
    variables = [
        Var(f"x{i}", TensorType(each.shape, each.dtype.name)) for i, each in enumerate(arrays)
    ]
    inputs = tuple(each.name_hint for each in variables)
    try:
        made = call(name, *variables, **attributes)
        model = RelayModel(
            IRModule({"main": Function(variables, made)}), {}, ModelMeta(inputs, ("out",))
        )
        module = to_module(from_relay(model, TorchExportOptions(), Report()))
    except (TypeInferenceError, UnsupportedModelError) as error:
        pytest.skip(" ".join(str(error).split()))
    with np.errstate(all="ignore"):
        expected = np.asarray(apply_kernel(all_ops()[name], arrays, made.attrs))
    found = from_tensor(module(*map(to_tensor, arrays)))
    assert found.dtype == expected.dtype
    tolerance = TOLERANCE.get(expected.dtype.name, 0)
    if expected.dtype.name == "bfloat16":
        expected, found = expected.astype(np.float32), found.astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
