"""Random shapes, dtypes and attributes for the elementwise, reduce, shape and index operators.

The examples are derived from the name of each test alone, so every run draws the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from support.onnx_export import OPSETS, evaluate, export
from support.samples import Symbols, as_tensor_types, build
from support.strategies import strategy_of

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Any as AnyDim
from serde.relay.ir.registry import OpDef, all_ops
from serde.relay.ir.types import substitute_type
from serde.relay.run.interpreter import run

FAMILIES = ("elementwise", "reduce", "shape", "index")
DRAWN_IN_GRAPHS = "its operands fit each other in ways that the random graphs draw"
BY_SAMPLES = "its operands fit each other in ways that its samples show"
DYNAMIC = "the form by value; its samples show what the static form does not"


def family(definition: OpDef) -> str:
    return definition.kernel.__module__.removeprefix("serde.relay.op.").split(".")[0]


def members() -> list[OpDef]:
    return [op for op in all_ops().values() if family(op) in FAMILIES]


UNDRAWN: dict[str, str] = {
    **dict.fromkeys(
        ["broadcast_to_like", "full", "gather_nd", "nn.pad", "one_hot", "ones", "slice_like",
         "split", "variance", "zeros"], DRAWN_IN_GRAPHS),
    **{op.name: DYNAMIC for op in members() if op.name.startswith("dyn.")},
}  # fmt: skip


SAMPLES_ONLY = [
    "adv_index",
    "arange",
    "argsort",
    "argwhere",
    "cast_like",
    "collapse_sum_like",
    "collapse_sum_to",
    "contrib_reverse_reshape",
    "cumprod",
    "fixed_point_multiply",
    "fixed_point_multiply_per_axis",
    "full_like",
    "invert_permutation",
    "layout_transform",
    "matrix_set_diag",
    "meshgrid",
    "nn.dilate",
    "nn.fifo_buffer",
    "nn.mirror_pad",
    "nn.cross_entropy",
    "nn.cross_entropy_with_logits",
    "nn.nll_loss",
    "reinterpret",
    "reshape_like",
    "reverse_sequence",
    "scatter_elements",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "serde.col2im",
    "serde.compress",
    "serde.cumprod",
    "serde.cumsum",
    "serde.eye_like",
    "serde.gather_nd",
    "serde.nonzero",
    "serde.one_hot",
    "serde.roll",
    "serde.softmax_cross_entropy_loss",
    "serde.take",
    "serde.tensor_scatter",
    "serde.unique",
    "sliding_window",
    "sort",
    "sparse_to_dense",
    "strided_set",
    "topk",
    "trilu",
    "unique",
    "unravel_index",
]
"""Operators of the families that have samples but no strategy."""

DRAWN = [pytest.param(op, id=op.name) for op in members() if strategy_of(op) is not None]


def test_every_operator_is_drawn_or_listed() -> None:
    listed = {**UNDRAWN, **dict.fromkeys(SAMPLES_ONLY, BY_SAMPLES)}
    missing = [op.name for op in members() if strategy_of(op) is None and op.name not in listed]
    needless = [name for name in listed if strategy_of(all_ops()[name]) is not None]
    assert (missing, needless) == ([], [])


@pytest.mark.wide
@pytest.mark.parametrize("examples", [3, pytest.param(12, marks=pytest.mark.wide)])
@pytest.mark.parametrize("definition", DRAWN)
def test_types_are_those_of_the_kernel(definition: OpDef, examples: int) -> None:
    """Inference, inference with a symbol for each length, the interpreter and the text."""

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data())
    def check(data: Any) -> None:
        drawn = data.draw(strategy_of(definition))
        built = build(definition, drawn)
        types, results = as_tensor_types(built.call.type), built.run()
        assert [t.dtype for t in types] == [r.dtype.name for r in results]
        assert [t.concrete_shape for t in types] == [r.shape for r in results]
        found = run(built.function, built.arrays)
        np.testing.assert_array_equal(found, results[0])
        mod = relay.IRModule.from_expr(built.function)
        relay.assert_structural_equal(relay.fromtext(mod.astext()), mod)
        symbols = Symbols(shared=True)
        try:
            symbolic = as_tensor_types(build(definition, drawn, symbols).call.type)
        except TypeInferenceError:  # a length decides: whether an axis may go, or be chosen from
            return
        for type_, result in zip(symbolic, results, strict=True):
            back = substitute_type(type_, symbols.values)
            pairs = zip(back.shape, result.shape, strict=True)
            assert all(isinstance(dim, AnyDim) or dim == length for dim, length in pairs), back

    check()


LEFT_OUT = {
    ("erf", "float64"): "ONNX Runtime computes it to the precision of float32",
    ("fast_erf", "float64"): "ONNX Runtime computes it to the precision of float32",
    ("serde.reduce_sum_square", "uint32"): "ONNX's reference, which runs it, gives uint64",
    **{
        (name, "bool"): "formats do not calculate with booleans"
        for name in ("add", "subtract", "multiply", "divide")
    },
}
TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}


@pytest.mark.sparse(4)
@pytest.mark.thin(4)
@pytest.mark.parametrize("examples", [3, pytest.param(12, marks=pytest.mark.wide)])
@pytest.mark.parametrize("definition", DRAWN)
@pytest.mark.thin(2)
def test_runtime_agrees(definition: OpDef, examples: int) -> None:
    """What ONNX Runtime, or ONNX's reference where that has no kernel, makes of the export."""

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data())
    def check(data: Any) -> None:
        drawn = data.draw(strategy_of(definition))
        opset = data.draw(st.sampled_from(OPSETS))
        built = build(definition, drawn)
        results = built.run()
        assume((definition.name, results[0].dtype.name) not in LEFT_OUT)
        proto = export(built.call, list(built.variables), opset, len(results))
        feeds = {v.name_hint: x for v, x in zip(built.variables, built.arrays, strict=True)}
        for expected, found in zip(results, evaluate(proto, feeds), strict=True):
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            bound = TOLERANCE.get(expected.dtype.name, 0)
            np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)

    check()
