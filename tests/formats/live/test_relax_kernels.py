"""Loops of serde's own for what reduces, and its exponentials, beside what TVM writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.errors import OptionError
from serde.relax import compiling, pipeline
from serde.relax.kernels import write_kernel
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

tvm = pytest.importorskip("tvm")

N = symbol("N")
CONVOLUTIONS = {
    "edge": ((1, 5, 13, 19), (7, 5, 3, 3), {"padding": (1, 1, 1, 1)}),
    "strides": ((1, 6, 30, 33), (12, 6, 5, 3), {"strides": (2, 3), "padding": (2, 1, 0, 3)}),
    "point": ((2, 24, 7, 7), (31, 24, 1, 1), {}),
    "wide": ((1, 8, 40, 56), (16, 8, 3, 3), {"padding": (1, 1, 1, 1)}),
    "depthwise": ((1, 9, 14, 14), (9, 1, 3, 3), {"groups": 9, "padding": (1, 1, 1, 1)}),
    "groups": ((1, 8, 9, 9), (12, 2, 3, 3), {"groups": 4, "dilation": (2, 2)}),
    "one": ((1, 40, 1, 1), (9, 40, 1, 1), {}),
    "batch": ((N, 4, 10, 11), (6, 4, 3, 3), {}),
    "free": ((1, 4, N, symbol("W")), (6, 4, 3, 3), {"padding": (1, 1, 1, 1)}),
}
PRODUCTS = {"row": ((1, 77), (50, 77)), "rows": ((N, 130), (33, 130)), "short": ((5, 3), (40, 3))}
BATCHES = {
    "scores": ((3, 17, 24), (3, 21, 24), True),
    "mix": ((3, 17, 21), (3, 21, 24), False),
    "lengths": ((2, N, 16), (2, N, 16), True),
}
INTEGERS = ("integers", (9, 40), (21, 40))


def scaled(norm: Callable[..., Expr], axis: int) -> Callable[[Var], Expr]:
    """Return a norm with a factor and an offset for each place along an axis."""

    def apply(x: Var) -> Expr:
        rng, shape = np.random.default_rng(8), x.type_annotation.shape
        factors = (relay.const(rng.normal(size=shape[axis]).astype("float32")) for _ in range(2))
        return norm(x, *factors)

    return apply


POOL = {"pool_size": (3, 3), "padding": (1, 1)}
REDUCTIONS: dict[str, tuple[tuple[object, ...], str, Callable[[Var], Expr]]] = {
    "softmax": ((3, 5, 129), "float32", relay.nn.softmax),
    "softmax of channels": ((2, 7, 33), "float32", partial(relay.nn.softmax, axis=1)),
    "softmax of one row": ((1, 300), "float64", relay.nn.softmax),
    "softmax of lengths": ((N, 21), "float32", relay.nn.softmax),
    "softmax of a length": ((4, N), "float16", relay.nn.softmax),
    "softmax turned": ((4, 6, 40), "float32", lambda x: relay.transpose(relay.nn.softmax(x))),
    "log_softmax": ((6, 77), "float32", relay.nn.log_softmax),
    "layer_norm": ((3, 4, 77), "float32", scaled(relay.nn.layer_norm, -1)),
    "instance_norm": ((2, 3, 9, 7), "float32", scaled(relay.nn.instance_norm, 1)),
    "mean": ((2, 5, 7, 7), "float32", partial(relay.mean, axis=[2, 3])),
    "mean of all": ((3, 35), "float64", relay.mean),
    "sum of columns": ((9, 100), "float16", partial(relay.sum, axis=[0])),
    "sum of integers": ((2, 3, 4, 5, 37), "int32", partial(relay.sum, axis=[1, 4])),
    "product": ((7, 19), "float32", partial(relay.prod, axis=[1], keepdims=True)),
    "least": ((5, 50), "int32", lambda x: x - relay.min(x, axis=[1], keepdims=True)),
    "largest": ((50,), "float32", partial(relay.max, axis=[0])),
    "argmax": ((5, 50), "float32", partial(relay.argmax, axis=[1])),
    "max_pool": ((1, 3, 20, 41), "float32", partial(relay.nn.max_pool2d, strides=(2, 2), **POOL)),
    "avg_pool": ((2, 3, 9, 40), "float32", partial(relay.nn.avg_pool2d, **POOL)),
    "activations": ((6, 300), "float32", lambda x: relay.sigmoid(x) * relay.tanh(x) + relay.erf(x)),
}


def model() -> RelayModel:
    """Return a model of all of them."""
    inputs: dict[str, Var] = {}
    weights: dict[str, ArrayWeight] = {}
    results: dict[str, Expr] = {}
    rng = np.random.default_rng(2)

    def take(name: str, shape: tuple[object, ...], dtype: str = "float32") -> Var:
        inputs[name] = relay.var(name, TensorType(shape, dtype))
        return inputs[name]

    def weight(name: str, shape: tuple[int, ...]) -> Var:
        weights[name] = ArrayWeight(rng.normal(size=shape).astype(np.float32))
        return relay.var(name, shape=shape)

    held: list[Var] = []
    for name, (data, kernel, options) in CONVOLUTIONS.items():
        held += weight(f"{name}/w", kernel), weight(f"{name}/b", kernel[:1])
        made = relay.nn.conv2d(take(name, data), held[-2], **options)
        results[name] = relay.nn.relu(relay.nn.bias_add(made, held[-1]))
    for name, (data, kernel) in PRODUCTS.items():
        held.append(weight(f"{name}/w", kernel))
        results[name] = relay.tanh(relay.nn.dense(take(name, data), held[-1]))
    for name, (one, two, transposed) in BATCHES.items():
        other = take(f"{name}/other", two)
        made = relay.nn.batch_matmul(
            take(name, one), other, transpose_b=transposed, transpose_a=False
        )
        results[name] = relay.transpose(made, axes=(1, 0, 2)) if name == "mix" else made
    name, one, two = INTEGERS
    other = take(f"{name}/other", two, "int8")
    results[name] = relay.nn.dense(take(name, one, "int8"), other, out_dtype="int32")
    for name, (shape, dtype, reduce) in REDUCTIONS.items():
        results[name] = reduce(take(name, shape, dtype))
    squared = take("squares", (4, 37, 6))
    results["squares"] = relay.sum(relay.multiply(squared, squared), axis=[1])
    main = Function([*inputs.values(), *held], relay.Tuple([*results.values()]))
    meta = ModelMeta(inputs=tuple(inputs), outputs=tuple(results))
    return RelayModel(IRModule({"main": main}), weights, meta)


CASES = (*CONVOLUTIONS, *PRODUCTS, *BATCHES, INTEGERS[0], *REDUCTIONS, "squares")


@pytest.fixture(scope="module")
def left() -> list[Any]:
    """The blocks of functions of which none are written, and what TVM refuses."""
    return []


@pytest.fixture(scope="module")
def runs(left: list[Any]) -> list[dict[str, np.ndarray]]:
    """What serde's loops give and TVM's, for lengths of 3 and of 20."""

    def note(exprs: Any, function: Any, blocks: Any, bits: int) -> Any:
        written = write_kernel(exprs, function, blocks, bits)
        if written is None:
            left.append([each.name_hint for each in blocks])
        return written

    source, rng, found = model(), np.random.default_rng(5), list[dict[str, np.ndarray]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "write_kernel", note)
        patch.setattr(compiling._LOG, "info", lambda *told: left.append(told))
        patch.setattr(compiling, "can_start", lambda: False)
        nets = [serde.compile(source)]
    nets.append(serde.compile(source, pipeline="default", target="llvm"))
    for length in (3, 20):
        shapes = {x.name: x.shape or () for x in nets[0].interface.inputs}
        fed = {
            name: rng.normal(size=[each if isinstance(each, int) else length for each in shape])
            for name, shape in shapes.items()
        }
        dtypes = {each.name: each.dtype for each in nets[0].interface.inputs}
        typed = {
            name: (20 * each if "int" in dtypes[name] else each).astype(dtypes[name])
            for name, each in fed.items()
        }
        found += [dict(zip(CASES, net.run(typed), strict=True)) for net in nets]
    return found


@pytest.mark.parametrize("case", CASES)
def test_loops_give_what_tvm_gives(runs: list[dict[str, np.ndarray]], case: str) -> None:
    for ours, theirs in zip(runs[::2], runs[1::2], strict=True):
        near = 2e-3 if ours[case].dtype == np.float16 else 2e-5
        np.testing.assert_allclose(ours[case], theirs[case], rtol=near, atol=near)


def test_all_of_them_are_written(runs: list[dict[str, np.ndarray]], left: list[Any]) -> None:
    assert left == [["argmax_red_temp", "T_maximum"]]


def test_exponentials_of_every_size() -> None:
    x = relay.var("x", shape=(4008,))
    body = relay.Tuple([relay.exp(x), relay.sigmoid(x), relay.tanh(x)])
    module = IRModule({"main": Function([x], body)})
    net = serde.compile(RelayModel(module, {}, ModelMeta(inputs=("x",), outputs=tuple("est"))))
    odd = [np.nan, np.inf, -np.inf, 0.0, 88.8, -103.9, 1e-30, -1e-30]
    values = np.concatenate([odd, np.linspace(-110, 95, 4000)]).astype(np.float32)
    wide = values.astype(np.float64)
    expected = np.exp(wide), 1 / (1 + np.exp(-wide)), np.tanh(wide)
    for found, wanted in zip(net.run(values), expected, strict=True):
        with np.errstate(over="ignore"):
            narrow = wanted.astype(np.float32)
        np.testing.assert_allclose(found, narrow, rtol=6e-7, atol=1e-38)


def test_a_pipeline_is_a_name_a_pass_or_a_function() -> None:
    seen = []

    def note(module: object) -> object:
        seen.append(module)
        return module

    for each in ("zero", tvm.relax.transform.LegalizeOps(), note):
        serde.compile(small(), pipeline=each)
    assert len(seen) == 1
    with pytest.raises(OptionError, match=r"pipeline: .*nosuch"):
        serde.compile(small(), pipeline="nosuch")
    with pytest.raises(OptionError, match="pipeline: expected a module, found int"):
        serde.compile(small(), pipeline=lambda _: 3)
    with pytest.raises(OptionError, match="pipeline: expected a name"):
        serde.compile(small(), pipeline=3)
    with pytest.raises(OptionError, match="trials: need a folder"):
        serde.compile(small(), trials=3)


def small() -> RelayModel:
    """Return a rectifier."""
    x = relay.var("x", shape=(2, 3))
    module = IRModule({"main": Function([x], relay.nn.relu(x))})
    return RelayModel(module, {}, ModelMeta(inputs=("x",), outputs=("y",)))


def test_what_is_saved_runs_on_the_whole_family(tmp_path: Path) -> None:
    net = serde.compile(small(), freeze_vars=True)
    assert serde.Runnable.load(net.save(tmp_path / "any.so")).target == "llvm"
    named = serde.compile(small(), target=net.target)
    assert serde.Runnable.load(named.save(tmp_path / "own.so")).target == net.target
