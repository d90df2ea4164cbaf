"""Fast functions: which become what, what the kernels make of them, and that export knows them."""

import math

import numpy as np
import pytest
from support.runtime import run_onnx

import serde.relay as relay
from serde.core.report import Report
from serde.onnx.exporter import from_relay
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import FastMath, InferType

VALUES = np.linspace(-4, 4, 2001).astype("float32").reshape(3, -1)
EXACT = {
    "exp": np.vectorize(math.exp),
    "tanh": np.vectorize(math.tanh),
    "erf": np.vectorize(math.erf),
}


def _softmax(wide: np.ndarray) -> np.ndarray:
    weights = np.vectorize(math.exp)(wide)
    return weights / weights.sum(-1, keepdims=True)


def _fast(name: str) -> relay.IRModule:
    x = relay.var("x", shape=VALUES.shape)
    body = relay.nn.softmax(x) if name == "softmax" else getattr(relay, name)(x)
    after, changed = FastMath().run(InferType()(relay.IRModule.from_expr(body)))
    verify(after)
    assert changed
    return after


def _names(root: Expr) -> list[str]:
    calls = [n.op for n in post_order(root) if isinstance(n, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


@pytest.mark.parametrize("name", [*EXACT, "softmax"])
def test_a_function_becomes_fast_and_stays_as_exact(name: str) -> None:
    mod = _fast(name)
    assert _names(mod["main"]) == ["nn.fast_softmax" if name == "softmax" else f"fast_{name}"]
    want = EXACT.get(name, _softmax)(VALUES.astype("float64"))
    np.testing.assert_allclose(run(mod["main"], [VALUES]), want, rtol=3e-7)
    assert FastMath().run(mod) == (mod, False)


@pytest.mark.parametrize("name", [*EXACT, "softmax"])
def test_fast_functions_export(name: str) -> None:
    model = RelayModel(_fast(name), {}, ModelMeta(("x",), ("y",)))
    proto = from_relay(model, 13, False, Report()).complete()
    _, (found,) = run_onnx(proto.SerializeToString(), {"x": VALUES})
    want = EXACT.get(name, _softmax)(VALUES.astype("float64"))
    np.testing.assert_allclose(found, want, rtol=2e-6, atol=2e-7)
