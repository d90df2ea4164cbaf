"""Attention: kernel and decomposition against ONNX Runtime, PyTorch and NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.runtime import newest_runtime_opset, open_session, skip_wrong_attention

import serde.relay as relay
from serde.core.report import Report
from serde.errors import TypeInferenceError
from serde.onnx.exporter import from_relay
from serde.relay.ir.dims import Any as AnyDim, Dim, symbol
from serde.relay.ir.expr import Call, Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import Compose, Decompose, InferType, extension_patterns

BATCH, HEADS, QUERIES, KEYS, WIDTH, VALUES = 6, 4, 5, 7, 8, 3
LEGAL = Decompose(frozenset())
TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}
DROPPED = np.random.default_rng(4).integers(0, 2, (QUERIES, KEYS)).astype(bool)
DROPPED[2] = False


def _operands(groups: int = HEADS, mask: Any = None, keys: int = KEYS) -> list[np.ndarray]:
    draw = np.random.default_rng(7 + groups).normal
    arrays = [
        draw(size=(BATCH, HEADS, QUERIES, WIDTH)),
        draw(size=(BATCH, groups, keys, WIDTH)),
        draw(size=(BATCH, groups, keys, VALUES)),
    ]
    arrays = [array.astype("float32") for array in arrays]
    return arrays if mask is None else [*arrays, mask]


def _function(arrays: list[np.ndarray], name_dim: Any = None, **attrs: Any) -> Function:
    shapes: list[tuple[Dim, ...]] = [a.shape for a in arrays]
    if name_dim is not None:
        shapes = [tuple(name_dim(length) for length in shape) for shape in shapes]
    variables = [
        Var(f"x{index}", TensorType(shape, array.dtype))
        for index, (shape, array) in enumerate(zip(shapes, arrays, strict=True))
    ]
    return Function(variables, call("serde.attention", *variables, **attrs))


def _runtime(function: Function, arrays: list[np.ndarray], opset: int) -> np.ndarray:
    skip_wrong_attention(opset)
    names = tuple(variable.name_hint for variable in function.params)
    model = RelayModel(IRModule({"main": function}), {}, ModelMeta(names, ("y",)))
    proto = from_relay(model, opset, True, Report()).complete()
    kept = any(node.op_type == "Attention" for node in proto.graph.node)
    assert kept == (opset >= 23 and any(_is_attention(n) for n in post_order(function)))
    session = open_session(proto.SerializeToString())
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


def _is_attention(node: Any) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "") == "serde.attention"


def _expected(
    arrays: list[np.ndarray], scale: float | None, causal: bool, softcap: float | None
) -> np.ndarray:
    """One head, one query at a time."""
    query, key, value, mask = (*(a.astype(np.float64) for a in arrays[:3]), *arrays[3:], None)[:4]
    result = np.zeros((BATCH, HEADS, QUERIES, VALUES))
    each = HEADS // key.shape[1]
    keys = key.shape[2]
    bias = np.zeros((BATCH, HEADS, QUERIES, keys))
    if mask is not None:
        bias = bias + (np.where(mask, 0, -np.inf) if mask.dtype == bool else mask)
    for n, h, i in np.ndindex(BATCH, HEADS, QUERIES):
        scores = key[n, h // each] @ query[n, h, i]
        scores = scores * (1 / math.sqrt(WIDTH) if scale is None else scale)
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        scores = scores + bias[n, h, i]
        if causal:
            scores[i + 1 :] = -np.inf
        if np.isneginf(scores).all():
            continue
        weights = np.exp(scores - scores.max())
        result[n, h, i] = weights / weights.sum() @ value[n, h // each]
    return result


BIAS = np.random.default_rng(3).normal(size=(HEADS, QUERIES, KEYS)).astype("float32")
BARRED = np.where(DROPPED, np.float32(0.25), np.float32(-np.inf))
MODES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "scale": ({}, {"scale": 0.5}),
    "causal": ({}, {"is_causal": True}),
    "causal-fewer-keys": ({"keys": 3}, {"is_causal": True}),
    "grouped": ({"groups": 2}, {}),
    "one-key-head": ({"groups": 1}, {"is_causal": True, "scale": 0.25}),
    "mask": ({"mask": DROPPED}, {}),
    "mask-causal": ({"mask": DROPPED}, {"is_causal": True}),
    "mask-one-row": ({"mask": DROPPED[:1]}, {}),
    "mask-batch": ({"mask": np.broadcast_to(DROPPED, (BATCH, 1, QUERIES, KEYS))}, {}),
    "bias": ({"mask": BIAS}, {}),
    "bias-grouped-causal": ({"mask": BIAS, "groups": 2}, {"is_causal": True}),
    "barred": ({"mask": BARRED}, {}),
    "softcap": ({"groups": 2}, {"softcap": 1.5}),
    "softcap-mask": ({"mask": DROPPED}, {"softcap": 0.5, "is_causal": True}),
    "softcap-bias": ({"mask": BIAS}, {"softcap": 0.5}),
}


@pytest.mark.parametrize("mode", list(MODES))
def test_kernel_and_decomposition(mode: str) -> None:
    form, attrs = MODES[mode]
    arrays = _operands(**form)
    function = _function(arrays, **attrs)
    wanted = _expected(
        arrays, attrs.get("scale"), attrs.get("is_causal", False), attrs.get("softcap")
    )
    np.testing.assert_allclose(run(function, arrays), wanted, **TOLERANCE)
    np.testing.assert_allclose(run(LEGAL.transform(function), arrays), wanted, **TOLERANCE)


@pytest.mark.parametrize("opset", [11, 13, 17, 21, 22, 23, newest_runtime_opset()])
@pytest.mark.parametrize("mode", list(MODES))
def test_onnx_runtime(mode: str, opset: int) -> None:
    form, attrs = MODES[mode]
    arrays = _operands(**form)
    function = _function(arrays, **attrs)
    found = _runtime(function, arrays, opset)
    np.testing.assert_allclose(found, run(function, arrays), **TOLERANCE)


@pytest.mark.parametrize("mode", [mode for mode in MODES if "softcap" not in mode])
def test_pytorch(mode: str) -> None:
    torch = pytest.importorskip("torch")
    form, attrs = MODES[mode]
    arrays = _operands(**form)
    causal = attrs.get("is_causal", False)
    mask = form.get("mask")
    if causal and mask is not None:
        before = np.tri(QUERIES, KEYS, dtype=bool)
        mask = mask & before if mask.dtype == bool else np.where(before, mask, -np.inf)
    found = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(array) for array in arrays[:3]),
        attn_mask=None if mask is None else torch.from_numpy(np.array(mask)),
        is_causal=causal and mask is None,
        scale=attrs.get("scale"),
        enable_gqa=form.get("groups", HEADS) != HEADS,
    )
    np.testing.assert_allclose(run(_function(arrays, **attrs), arrays), found.numpy(), **TOLERANCE)


def _named(length: int) -> Dim:
    names = {BATCH: "n", QUERIES: "q", KEYS: "k"}
    return symbol(names[length]) if length in names else length


def _unknown(length: int) -> Dim:
    return AnyDim() if length in (BATCH, QUERIES, KEYS) else length


@pytest.mark.parametrize("name_dim", [_named, _unknown], ids=["named", "unknown"])
@pytest.mark.parametrize("mode", ["plain", "causal", "mask-causal", "bias", "softcap-bias"])
def test_symbolic_lengths(mode: str, name_dim: Any) -> None:
    form, attrs = MODES[mode]
    arrays = _operands(**form)
    function = _function(arrays, name_dim, **attrs)
    wanted = run(_function(arrays, **attrs), arrays)
    plain = InferType()(IRModule({"main": LEGAL.transform(function)}))
    verify(plain)
    np.testing.assert_allclose(run(plain["main"], arrays), wanted, **TOLERANCE)
    if name_dim is _named:
        for opset in (17, 23):
            np.testing.assert_allclose(_runtime(function, arrays, opset), wanted, **TOLERANCE)


@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
@pytest.mark.parametrize("mode", list(MODES))
def test_text(mode: str, strict: bool) -> None:
    form, attrs = MODES[mode]
    mod = InferType()(IRModule.from_expr(_function(_operands(**form), _named, **attrs)))
    relay.assert_structural_equal(relay.fromtext(mod.astext(strict=strict)), mod)


def test_a_chain_without_a_mask_is_raised() -> None:
    x = [relay.var(f"x{i}", shape=(2, 3, 4, 5)) for i in range(3)]
    whole = Function(x, call("serde.attention", *x, scale=0.5))
    raised = Compose(extension_patterns()).transform(LEGAL.transform(whole))
    assert _is_attention(raised.body)
    relay.assert_structural_equal(raised, whole)


def _refused() -> list[Any]:
    q, k = (2, 4, 5, 8), (2, 2, 7, 8)
    return [
        pytest.param([q, (2, 3, 7, 8), (2, 3, 7, 8)], {}, "4 heads of the query", id="heads"),
        pytest.param([q, (2, 4, 7, 6), (2, 4, 7, 6)], {}, "do not fit", id="width"),
        pytest.param([q, k, (2, 2, 6, 8)], {}, "do not fit", id="keys"),
        pytest.param([q[1:], k, k], {}, "rank 4", id="rank"),
        pytest.param([q, k, k, (3, 7)], {}, "do not broadcast", id="mask"),
        pytest.param([q, k, k, (1, 2, 4, 5, 7)], {}, "does not broadcast", id="mask-rank"),
        pytest.param([(2, 4, 1, 8), k, k, (5, 7)], {}, "does not broadcast", id="mask-grows"),
        pytest.param([q, (2, 4, 0, 8), (2, 4, 0, 8)], {}, "no keys", id="none"),
        pytest.param([q, k, k], {"softcap": 0.0}, "is not positive", id="softcap"),
    ]


@pytest.mark.parametrize(("shapes", "attrs", "message"), _refused())
def test_what_does_not_fit_is_refused(
    shapes: list[tuple[int, ...]], attrs: dict[str, Any], message: str
) -> None:
    operands = [relay.var("x", shape=shape) for shape in shapes]
    with pytest.raises(TypeInferenceError, match=message):
        call("serde.attention", *operands, **attrs)


def test_a_mask_of_another_dtype_is_refused() -> None:
    operands = [relay.var("x", shape=(2, 4, 5, 8)) for _ in range(3)]
    with pytest.raises(TypeInferenceError, match="expected a mask of bool or float32"):
        call("serde.attention", *operands, relay.var("m", shape=(5, 5), dtype="int32"))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_precisions(dtype: str) -> None:
    arrays = _operands(groups=2, mask=BIAS)
    wanted = run(_function(arrays, is_causal=True), arrays)
    cast = [array.astype(dtype) for array in arrays]
    tolerance = 5e-3 if dtype == "float16" else 1e-5
    for each in (_function(cast, is_causal=True), LEGAL.transform(_function(cast, is_causal=True))):
        found = run(each, cast)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
