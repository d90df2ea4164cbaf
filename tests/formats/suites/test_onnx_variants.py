"""Samples of shaping and indexing in other dtypes and with symbolic shapes, in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_export import run
from support.runtime import newest_runtime_opset
from support.samples import BuiltSample, Symbols, as_tensor_types, build

from serde.errors import TypeInferenceError
from serde.relay.ir.registry import Sample, TensorSpec, all_ops

OPSETS = {"11": 11, "newest": newest_runtime_opset()}
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "uint32", "int64", "float16", "float64"]
NAMES = [
    "adv_index",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "cast_like",
    "collapse_sum_like",
    "collapse_sum_to",
    "cumprod",
    "cumsum",
    "full_like",
    "gather_nd",
    "layout_transform",
    "matrix_set_diag",
    "meshgrid",
    "nn.batch_to_space_nd",
    "nn.dilate",
    "nn.max_pool1d",
    "nn.mirror_pad",
    "nn.pad",
    "nn.space_to_batch_nd",
    "reverse_sequence",
    "scatter_elements",
    "scatter_nd",
    "sign",
    "sliding_window",
    "sort",
    "sparse_fill_empty_rows",
    "sparse_to_dense",
    "strided_set",
    "take",
    "topk",
    "trilu",
    "unique",
    "where",
]
SYMBOLIC = [*NAMES, "arange", "dyn.expand_dims", "dyn.squeeze", "dyn.topk", "invert_permutation",
            "left_shift", "nn.avg_pool2d", "qnn.avg_pool2d", "right_shift", "searchsorted",
            "unravel_index"]  # fmt: skip


def in_dtype(given: Any, dtype: str) -> Any:
    """An operand of a sample with numbers of `dtype` in place of float32."""
    if isinstance(given, list):
        return [in_dtype(each, dtype) for each in given]
    unsigned = dtype.startswith(("u", "b"))
    if isinstance(given, TensorSpec) and given.dtype == "float32":
        low = max(given.low, 0) if unsigned else given.low
        return TensorSpec(given.shape, dtype, low, given.high)
    if isinstance(given, np.ndarray | np.generic) and given.dtype == np.float32:
        return np.asarray(np.abs(given) if unsigned else given).astype(dtype)
    return given


def compare(built: BuiltSample, opset: int, tolerance: float) -> None:
    outputs = len(as_tensor_types(built.call.type))
    found = run(built.call, list(built.variables), list(built.arrays), opset, outputs)
    for each, expected in zip(found, built.run(), strict=True):
        assert (each.dtype, each.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(each, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.thin(2)
@pytest.mark.sparse(4)
@pytest.mark.parametrize("opset", list(OPSETS.values()), ids=list(OPSETS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=[pytest.mark.wide] if number else [])
        for name in NAMES
        for number in range(len(all_ops()[name].samples))
    ],
)
def test_other_dtypes(name: str, number: int, dtype: str, opset: int) -> None:
    given = all_ops()[name].samples[number]
    operands = tuple(in_dtype(each, dtype) for each in given.operands)
    try:
        built = build(all_ops()[name], Sample(operands, given.attrs))
    except TypeInferenceError:
        pytest.skip(f"{name} takes no {dtype}")
    compare(built, opset, {"float16": 2e-3, "float64": 1e-12}.get(dtype, 1e-6))


@pytest.mark.sparse(2)
@pytest.mark.thin(2)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "apart"])
@pytest.mark.parametrize("opset", list(OPSETS.values()), ids=list(OPSETS))
@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name in SYMBOLIC for number in range(len(all_ops()[name].samples))],
)
def test_symbolic_shapes(name: str, number: int, opset: int, shared: bool) -> None:
    try:
        built = build(all_ops()[name], all_ops()[name].samples[number], Symbols(shared=shared))
    except TypeInferenceError:
        pytest.skip(f"{name} needs lengths")
    compare(built, opset, 2e-3 if "float16" in str(built.call.type) else 2e-5)
