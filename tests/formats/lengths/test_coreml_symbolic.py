"""Relay of flexible lengths as ML Programs: one program judged at several lengths."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.coreml_networks import check_network, network
from support.mil_executor import execute
from support.mil_values import check_types

import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.coreml.exporter import from_relay
from serde.coreml.model import operations
from serde.coreml.options import CoremlExportOptions
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run

N, M = symbol("n"), symbol("m")


def constant(*shape: int) -> Expr:
    rng = np.random.default_rng(zlib.crc32(str(shape).encode()))
    return relay.const(rng.uniform(-1, 1, shape).astype(np.float32))


def ints(*values: Any) -> Expr:
    return relay.const(np.array(values, np.int32))


def heads(x: Expr) -> Expr:
    """Split heads and merge them again, as attention does."""
    apart = relay.transpose(relay.reshape(x, [N, M, 2, 6]), axes=[0, 2, 1, 3])
    back = relay.transpose(apart, axes=[0, 2, 1, 3])
    return relay.reshape(back, [N, M, 12])


def windows(x: Expr) -> Expr:
    """Cut an image into windows: a transpose of six axes."""
    apart = relay.reshape(x, [N, 2, 2, 3, 2, 1])
    moved = relay.transpose(apart, axes=[0, 1, 3, 2, 4, 5])
    return relay.reshape(moved, [N * 6, 4, 1])


def last_half(x: Expr) -> Expr:
    """Cut from a place that a length tells to the greatest int64, as PyTorch's exporter writes."""
    length = relay.take(relay.shape_of(x, dtype="int64"), relay.const([1], "int64"))
    half = relay.floor_divide(length, relay.const(2, "int64"))
    end, one = relay.const([2**63 - 1], "int64"), relay.const([1], "int64")
    return call("dyn.strided_slice", x, half, end, one, axes=(1,))


def causal(x: Expr) -> Expr:
    """Mask what comes later: places are compared."""
    return relay.trilu(x, 1, upper=True)


CASES: dict[str, tuple[tuple[Any, ...], Callable[[Expr], Expr]]] = {
    "heads": ((N, M, 12), heads),
    "windows": ((N, 4, 6, 1), windows),
    "causal": ((N, M, M), causal),
    "flatten": ((N, 3, 4), relay.nn.batch_flatten),
    "merge": ((N, M, 4), lambda x: relay.reshape(x, [N * M, 4])),
    "dense": ((N, 4), lambda x: relay.nn.dense(x, constant(5, 4))),
    "dense_of_stacks": ((N, M, 3, 4), lambda x: relay.nn.dense(x, constant(5, 4))),
    "scores": ((N, M, 4), lambda x: relay.nn.batch_matmul(x, x)),
    "stacks": ((N, 2, M, 4), lambda x: call("serde.matmul", x, constant(4, 3))),
    "mean": ((N, M, 4), lambda x: relay.mean(x, axis=[1])),
    "argmax": ((N, M), lambda x: relay.argmax(x, axis=1)),
    "argmax_of_all": ((N, M), lambda x: relay.argmax(x)),
    "concatenate": ((N, 4), lambda x: relay.concatenate((x, x), axis=0)),
    "slice": ((N, M, 4), lambda x: relay.strided_slice(x, [0, 1], [2**31 - 1, 2**31 - 1])),
    "slice_computed": ((N, M, 4), last_half),
    "slice_last": ((N, M), lambda x: relay.strided_slice(x, [-1], [2**31 - 1], axes=[1])),
    "slice_back": ((N, M), lambda x: relay.strided_slice(x, [-1], [-(2**31)], [-1], axes=[1])),
    "split": ((N, M, 6), lambda x: relay.split(x, 3, axis=2)[1]),
    "broadcast": ((N, 1, 4), lambda x: relay.broadcast_to(x, [N, 3, 4])),
    "broadcast_to_symbol": ((N, M), lambda x: relay.add(x, relay.broadcast_to(constant(1), [M]))),
    "zeros_like": ((N, M), relay.zeros_like),
    "pad": ((N, 3, M), lambda x: relay.nn.pad(x, ((0, 0), (1, 0), (2, 1)), 0.5)),
    "take": ((N, M), lambda x: relay.take(x, ints(-1, 5, 0), axis=1)),
    "take_wrapped": ((N, M), lambda x: relay.take(x, ints([-1, 5]), axis=1, mode="wrap")),
    "take_signed": ((N, M), lambda x: call("serde.take", x, ints(-1, 0), axis=1)),
    "topk": ((N, M), lambda x: relay.topk(x, 1, 1, "values")),
    "sort": ((N, M), lambda x: relay.sort(x, axis=1)),
    "cumsum": ((N, M), lambda x: relay.cumsum(x, axis=1)),
    "repeat": ((N, M), lambda x: relay.repeat(x, 2, axis=1)),
    "tile": ((N, M), lambda x: relay.tile(x, [1, 3])),
    "expand": ((N, M), lambda x: relay.expand_dims(x, axis=1, num_newaxis=2)),
    "squeeze": ((N, 1, M), lambda x: relay.squeeze(x, axis=[1])),
    "size": ((N, M), lambda x: relay.cast(relay.ndarray_size(x), "float32")),
    "shape": ((N, M), lambda x: relay.shape_of(x)),
    "variance": ((N, 4), lambda x: relay.variance(x, axis=[1])),
    "einsum": ((N, M, 4), lambda x: relay.einsum([x, x], "nij,nkj->nik")),
    "depth_to_space": ((N, 8, M, 3), lambda x: relay.nn.depth_to_space(x, 2)),
    "gather": ((N, 3), lambda x: relay.gather(x, 1, relay.cast(relay.zeros_like(x), "int32"))),
    "where": ((N, M), lambda x: relay.where(relay.greater(x, constant()), x, constant())),
    "mask": ((M, N), lambda x: relay.sequence_mask(x, relay.cast(relay.max(x, axis=[0]), "int32"))),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("target", ["iOS15", "iOS18"])
@pytest.mark.parametrize("name", CASES)
def test_program_of_flexible_lengths(name: str, target: str) -> None:
    shape, build = CASES[name]
    x = Var("x", TensorType(shape, "float32"))
    main = infer_function(Function([x], build(x)))
    model = RelayModel(IRModule({"main": main}), {}, ModelMeta(("x",), ("y",)))
    options = CoremlExportOptions(minimum_deployment_target=target, compute_precision="float32")
    native = from_relay(model, options, Report())
    check_types(native)
    for n, m in ((1, 3), (3, 4)):
        lengths = [n if dim == N else m if dim == M else dim for dim in shape]
        given = np.random.default_rng(n).uniform(-2, 2, lengths).astype(np.float32)
        (found,) = execute(native, {"x": given})
        wanted = run(main, [given], mod=model.mod)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


NEWER = ("cumsum", "sort")
"""Cases that layers know from iOS14 on."""


@pytest.mark.thin(2)
@pytest.mark.parametrize("target", ["iOS13", "iOS14"])
@pytest.mark.parametrize("name", CASES)
def test_network_of_flexible_lengths(name: str, target: str) -> None:
    shape, build = CASES[name]
    x = Var("x", TensorType(shape, "float32"))
    main = infer_function(Function([x], build(x)))
    model = RelayModel(IRModule({"main": main}), {}, ModelMeta(("x",), ("y",)))
    if target == "iOS13" and name in NEWER:
        with pytest.raises(UnsupportedModelError, match="use minimum_deployment_target=iOS14"):
            network(model, target)
        return
    native = network(model, target)
    for n, m in ((1, 3), (3, 4)):
        lengths = [n if dim == N else m if dim == M else dim for dim in shape]
        given = np.random.default_rng(n).uniform(-2, 2, lengths).astype(np.float32)
        check_network(native, {"x": given}, [run(main, [given], mod=model.mod)])


def test_a_weight_in_another_shape_costs_no_operation() -> None:
    x = Var("x", TensorType((N, 3, 4), "float32"))
    bias = Var("bias", TensorType((3,), "float32"))
    main = infer_function(Function([x, bias], relay.nn.bias_add(x, bias, axis=1)))
    data = np.arange(3, dtype=np.float32)
    weights = {"bias": ArrayWeight(data)}
    model = RelayModel(IRModule({"main": main}), weights, ModelMeta(("x",), ("y",)))
    options = CoremlExportOptions(compute_precision="float32")
    native = from_relay(model, options, Report())
    assert [op.type for op in operations(native.spec) if op.type != "const"] == ["add"]
    given = np.ones((2, 3, 4), np.float32)
    (found,) = execute(native, {"x": given})
    np.testing.assert_array_equal(found, given + data[:, None])


def test_quotients_and_rests_of_positions_need_no_consent() -> None:
    """They are no larger than the positions, which fit."""
    x = Var("x", TensorType((2, 6), "float32"))
    places = relay.argsort(x, axis=1, dtype="int64")
    width = relay.Constant(np.array(3, np.int64))
    rows = relay.cast(relay.floor_divide(places, width), "int32")
    columns = relay.cast(relay.floor_mod(places, width), "int32")
    main = infer_function(Function([x], relay.Tuple([rows, columns])))
    model = RelayModel(IRModule({"main": main}), {}, ModelMeta(("x",), ("rows", "columns")))
    native = from_relay(model, CoremlExportOptions(compute_precision="float32"), Report())
    given = np.random.default_rng(0).permutation(12).reshape(2, 6).astype(np.float32)
    order = np.argsort(given, axis=1)
    for found, wanted in zip(execute(native, {"x": given}), (order // 3, order % 3), strict=True):
        np.testing.assert_array_equal(found, wanted)
