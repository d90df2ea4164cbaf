"""Operators in their usual layout, convolutions on floats, and transposed ones cut behind."""

from typing import Any

import numpy as np
import pytest
from support.samples import build

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import OpDef, Sample, all_ops, call
from serde.relay.ir.traits import Layout
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.lowering.conv import convolution_on_floats, cut_behind, is_on_floats
from serde.relay.lowering.layout import usual_layout
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose


def _is_usual(node: Call) -> bool:
    return usual_layout(node) is None


def _layouts(function: relay.Function) -> list[str]:
    calls = [node for node in post_order(function) if isinstance(node, Call)]
    return [value for node in calls for key, value in node.attrs.items() if key.endswith("layout")]


def _samples() -> list[Any]:
    return [
        pytest.param(definition, given, id=f"{name}-{index}")
        for name, definition in all_ops().items()
        if definition.trait(Layout) is not None
        for index, given in enumerate(definition.samples)
    ]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("definition", "given"), _samples())
def test_samples_keep_their_numbers(definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    plain = Decompose(_is_usual).transform(built.function)
    calls = [node for node in post_order(plain) if isinstance(node, Call)]
    assert all(map(_is_usual, calls))
    (wanted,), found = built.run(), run(plain, built.arrays)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-2 if found.itemsize == 2 else 1e-5, atol=1e-6)


def _variables(*shapes: Any, dtypes: Any = None) -> list[relay.Var]:
    names = dtypes or ["float32"] * len(shapes)
    return [
        relay.var(f"x{i}", TensorType(shape, dtype))
        for i, (shape, dtype) in enumerate(zip(shapes, names, strict=True))
    ]


def _assert_same(body: Expr, made: Expr, *shapes: Any, dtypes: Any = None) -> None:
    generator = np.random.default_rng(7)
    names = dtypes or ["float32"] * len(shapes)
    arrays = [generator.integers(-9, 9, s).astype(d) for s, d in zip(shapes, names, strict=True)]
    params = [node for node in post_order(body) if isinstance(node, relay.Var)]
    params.sort(key=lambda each: each.name_hint)
    wanted, found = (run(relay.Function(params, each), arrays) for each in (body, made))
    np.testing.assert_array_equal(found, wanted)


GROUPED = {"data_layout": "NHWC", "kernel_layout": "GOIHW", "groups": 2}
MULTIPLIED = {"data_layout": "NHWC", "kernel_layout": "HWOI", "groups": 4}
"""Two filters of each of four channels."""


@pytest.mark.parametrize(
    ("data", "weight", "attrs"),
    [
        ((2, 2, 5, 6, 4), (6, 8, 3, 3), {"data_layout": "NCHW4c"}),
        ((2, 8, 5, 6), (2, 2, 3, 3, 4, 4), {"kernel_layout": "OIHW4i4o", "out_layout": "NCHW2c"}),
        ((2, 5, 6, 6), (2, 4, 3, 3, 3), GROUPED),
        ((2, 5, 6, 4), (3, 3, 4, 2), MULTIPLIED),
        ((2, 4, 5, 6), (3, 4, 3, 3), {"out_layout": "NHWC"}),
    ],
)  # fmt: skip
def test_convolutions_are_plain(data: Any, weight: Any, attrs: dict[str, Any]) -> None:
    x, w = _variables(data, weight)
    body = call("nn.conv2d", x, w, **attrs)
    made = Decompose(_is_usual).transform(relay.Function([x, w], body)).body
    _assert_same(body, made, data, weight)
    assert {"OIHW", "NCHW"} <= set(_layouts(relay.Function([x, w], made)))


def test_symbols_stay() -> None:
    x, w = _variables((symbol("n"), 5, 6, 4), (3, 3, 4, 2))
    body = call("nn.conv2d", x, w, **MULTIPLIED)
    made = Decompose(_is_usual).transform(relay.Function([x, w], body)).body
    assert repr(made.type) == repr(body.type)


@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("uint8", "int8"), ("int16", "int16")])
def test_integers_are_summed_in_floats_that_hold_them(dtypes: Any) -> None:
    shapes = (2, 4, 5, 6), (3, 4, 3, 3)
    x, w = _variables(*shapes, dtypes=dtypes)
    body = call("nn.conv2d", x, w, out_dtype="int32")
    made = convolution_on_floats("float64")(x, w, **body.attrs)
    _assert_same(body, made, *shapes, dtypes=dtypes)
    assert not is_on_floats(body)


def test_sums_that_a_float_may_not_hold_are_refused() -> None:
    x, w = _variables((1, 4, 5, 6), (3, 4, 3, 3), dtypes=("int16", "int16"))
    attrs = call("nn.conv2d", x, w, out_dtype="int32").attrs
    with pytest.raises(Unsupported, match="int16 with int16, summed in float32"):
        convolution_on_floats("float32")(x, w, **attrs)


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 0, 2, 1), (0, 2, 1, 1)])
@pytest.mark.parametrize("longer", [(0, 0), (1, 0), (3, 4)])
def test_output_padding_is_cut_less_or_added(alike: bool, padding: Any, longer: Any) -> None:
    shapes = (2, 4, 5, 4), (4, 3, 3, 3)
    x, w = _variables(*shapes)
    attrs = {"strides": (2, 2), "padding": padding, "output_padding": longer}
    body = call("nn.conv2d_transpose", x, w, **attrs)
    made = cut_behind(x, w, alike=alike, **body.attrs)
    _assert_same(body, made, *shapes)
