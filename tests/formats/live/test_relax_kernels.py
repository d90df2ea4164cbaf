"""Loops of serde's own for sums of products, beside those that TVM writes."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.errors import OptionError
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
    squared = take("squares", (4, 37, 6))
    results["squares"] = relay.sum(relay.multiply(squared, squared), axis=[1])
    main = Function([*inputs.values(), *held], relay.Tuple([*results.values()]))
    meta = ModelMeta(inputs=tuple(inputs), outputs=tuple(results))
    return RelayModel(IRModule({"main": main}), weights, meta)


CASES = (*CONVOLUTIONS, *PRODUCTS, *BATCHES, INTEGERS[0], "squares")


@pytest.fixture(scope="module")
def runs() -> list[dict[str, np.ndarray]]:
    """What serde's loops give and TVM's, for lengths of 3 and of 20."""
    source, rng, found = model(), np.random.default_rng(5), []
    nets = [serde.compile(source), serde.compile(source, pipeline="default", target="llvm")]
    for length in (3, 20):
        shapes = {x.name: x.shape or () for x in nets[0].interface.inputs}
        fed = {
            name: rng.normal(size=[each if isinstance(each, int) else length for each in shape])
            for name, shape in shapes.items()
        }
        small = [name for name in fed if name.startswith(INTEGERS[0])]
        typed = {
            name: (20 * each).astype(np.int8) if name in small else each.astype(np.float32)
            for name, each in fed.items()
        }
        found += [dict(zip(CASES, net.run(typed), strict=True)) for net in nets]
    return found


@pytest.mark.parametrize("case", CASES)
def test_loops_give_what_tvm_gives(runs: list[dict[str, np.ndarray]], case: str) -> None:
    for ours, theirs in zip(runs[::2], runs[1::2], strict=True):
        np.testing.assert_allclose(ours[case], theirs[case], rtol=2e-5, atol=2e-5)


def test_all_of_them_are_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "serde.relax"):
        serde.compile(model())
    assert not [each for each in caplog.messages if "left as TVM has it" in each]


def test_a_pipeline_is_a_name_a_pass_or_a_function() -> None:
    seen = []

    def note(module: object) -> object:
        seen.append(module)
        return module

    for pipeline in ("zero", tvm.relax.transform.LegalizeOps(), note):
        serde.compile(small(), pipeline=pipeline)
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
