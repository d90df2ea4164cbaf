"""Random quantised nets: fake quantisation becomes integers, and all their forms agree in bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.verify import verify
from serde.relay.transform import FakeQuantizationToInteger, InferType
from serde.relay.tvm.passes.qnn import CanonicalizeOps, Legalize

SEEDS = [
    pytest.param(seed, marks=[] if seed < 80 else [pytest.mark.wide], id=str(seed))
    for seed in range(400)
]


class _Net:
    """Builds a net of real operators between dequantisation and quantisation."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = str(self.rng.choice(["int8", "uint8"]))
        shape = (1, *(int(self.rng.integers(*pair)) for pair in ((1, 5), (4, 8), (4, 8))))
        self.variables: list[Var] = []
        self.node = self._real(self._variable(shape, self.dtype))
        for _ in range(int(self.rng.integers(1, 6))):
            self._grow()

    def _variable(self, shape: tuple[int, ...], dtype: str) -> Var:
        name = f"v{len(self.variables)}"
        self.variables.append(relay.var(name, shape=shape, dtype=dtype))
        return self.variables[-1]

    def _scale(self, most: float = 0.6) -> Expr:
        return relay.const(np.float32(self.rng.uniform(0.01, most)))

    def _zero(self) -> Expr:
        return relay.const(int(self.rng.integers(-10, 10)))

    def _real(self, x: Expr) -> Expr:
        return relay.qnn.op.dequantize(x, self._scale(), self._zero())

    def _weight(self, shape: tuple[int, ...]) -> Expr:
        """A weight with one scale and zero point, or with one for each output."""
        weight = self._variable(shape, "int8")
        scale, zero = self._scale(0.1), self._zero()
        if self.rng.integers(2):
            scale = relay.const(self.rng.uniform(0.01, 0.1, shape[0]).astype("float32"))
            zero = relay.const(np.zeros(shape[0], "int32"))
        return relay.qnn.op.dequantize(weight, scale, zero, axis=0)

    def _grow(self) -> None:
        shape = self.node.type.concrete_shape
        choices = ["relu", "clip", "rows", "transpose", "two", "constant", "function", "again"]
        choices += ["twice"]
        if len(shape) == 4 and min(shape[2:]) > 1:
            choices += ["max_pool", "avg_pool", "conv", "conv"]
        if len(shape) == 2:
            choices += ["dense", "dense"]
        self.node = getattr(self, f"_{self.rng.choice(choices)}")(self.node, shape)

    def _relu(self, x: Expr, _shape: Any) -> Expr:
        return relay.nn.relu(x)

    def _clip(self, x: Expr, _shape: Any) -> Expr:
        return relay.clip(x, -1.5, 2.0)

    def _rows(self, x: Expr, shape: Any) -> Expr:
        return relay.reshape(x, (-1, shape[-1]))

    def _transpose(self, x: Expr, _shape: Any) -> Expr:
        return relay.transpose(x)

    def _two(self, x: Expr, shape: Any) -> Expr:
        name = self.rng.choice(["add", "subtract", "multiply", "maximum", "minimum"])
        return getattr(relay, name)(x, self._real(self._variable(shape, self.dtype)))

    def _constant(self, x: Expr, _shape: Any) -> Expr:
        name = self.rng.choice(["add", "multiply", "maximum"])
        return getattr(relay, name)(x, relay.const(np.float32(self.rng.uniform(-1, 1))))

    def _function(self, x: Expr, _shape: Any) -> Expr:
        return getattr(relay, self.rng.choice(["sigmoid", "tanh", "abs"]))(x)

    def _again(self, x: Expr, _shape: Any) -> Expr:
        parameters = (relay.const(0.1), relay.const(2))
        levels = relay.qnn.op.quantize(x, *parameters, out_dtype=self.dtype)
        return relay.qnn.op.dequantize(levels, *parameters)

    def _twice(self, x: Expr, _shape: Any) -> Expr:
        return relay.concatenate([x, relay.nn.relu(x)], axis=0)

    def _max_pool(self, x: Expr, _shape: Any) -> Expr:
        return relay.nn.max_pool2d(x, (2, 2))

    def _avg_pool(self, x: Expr, _shape: Any) -> Expr:
        return relay.nn.avg_pool2d(x, (2, 2))

    def _conv(self, x: Expr, shape: Any) -> Expr:
        padding = (int(self.rng.integers(2)),) * 2
        weight = self._weight((3, shape[1], 2, 2))
        return relay.nn.conv2d(x, weight, kernel_size=(2, 2), channels=3, padding=padding)

    def _dense(self, x: Expr, shape: Any) -> Expr:
        return relay.nn.dense(x, self._weight((5, shape[1])), units=5)

    def module(self) -> relay.IRModule:
        dtype = str(self.rng.choice(["int8", "uint8"]))
        end = relay.qnn.op.quantize(self.node, self._scale(), self._zero(), out_dtype=dtype)
        return InferType()(relay.IRModule.from_expr(relay.Function(self.variables, end)))

    def arguments(self) -> list[np.ndarray]:
        shapes = [each.type.concrete_shape for each in self.variables]
        levels = [self.rng.integers(0, 256, shape).astype("uint8") for shape in shapes]
        return [a.view(b.type.dtype) for a, b in zip(levels, self.variables, strict=True)]


def _run(mod: relay.IRModule, args: list[np.ndarray]) -> np.ndarray:
    return relay.create_executor("vm", mod=mod).evaluate()(*args).numpy()


@pytest.mark.thin(2)
@pytest.mark.sparse(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_all_forms_of_a_net_agree(seed: int) -> None:
    net = _Net(seed)
    mod, args = net.module(), net.arguments()
    integers = FakeQuantizationToInteger()(mod)
    verify(integers)
    expected = _run(integers, args)
    for form in (integers, Legalize()(integers)):
        plain = CanonicalizeOps()(form)
        verify(plain)
        assert "qnn." not in plain.astext()
        np.testing.assert_array_equal(_run(plain, args), expected)


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_nets_of_one_layer_are_as_the_real_ones(seed: int) -> None:
    """One layer rounds once more than real numbers do: by its product, or its operands."""
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(4, 6), dtype="int8")
    w = relay.var("w", shape=(5, 6), dtype="int8")
    scales = rng.uniform(0.01, 0.1, 5).astype("float32")
    real = relay.qnn.op.dequantize(x, relay.const(0.05), relay.const(int(rng.integers(-9, 9))))
    weight = relay.qnn.op.dequantize(
        w, relay.const(scales), relay.const(np.zeros(5, "int32")), axis=0
    )
    total = relay.nn.dense(real, weight, units=5)
    end = relay.qnn.op.quantize(total, relay.const(0.7), relay.const(3))
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x, w], end)))
    found = FakeQuantizationToInteger(hard_fail=True)(mod)
    args = [rng.integers(-128, 128, shape).astype("int8") for shape in ((4, 6), (5, 6))]
    wide = _run(mod, args).astype(int)
    assert np.abs(_run(found, args).astype(int) - wide).max() <= 1
