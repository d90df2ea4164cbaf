"""Quantised operators in plain Relay and for every target: the numbers that come out."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.golden import evaluate
from support.samples import build

import serde.relay as relay
from serde.errors import RelayError, Unsupported
from serde.relay.ir.attrs import get_op_attr
from serde.relay.ir.expr import Call, Constant, Expr, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.registry import OpDef, Sample, all_ops
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order, rewrite
from serde.relay.op.qnn.rescale import current_requantize_config, requantize_config
from serde.relay.transform import InferType
from serde.relay.tvm.passes.qnn import CanonicalizeOps, Legalize
from serde.relay.tvm.passes.qnn.canonicalizations import (
    create_integer_lookup_op,
    create_integer_lookup_table,
    run_const_expr,
)

LOWERED = "FTVMQnnCanonicalize"


def _samples(key: str) -> list[Any]:
    return [
        pytest.param(definition, given, id=f"{name}-{index}")
        for name, definition in all_ops().items()
        if name.startswith("qnn.") and get_op_attr(name, key) is not None
        for index, given in enumerate(definition.samples)
    ]


def _bound(definition: OpDef, given: Sample) -> tuple[relay.Function, list[np.ndarray], Any]:
    """Return a sample as a function of its tensors, with scales and zero points as constants."""
    built = build(definition, given)
    scales = {
        variable: Constant(array)
        for variable, array in zip(built.variables, built.arrays, strict=True)
        if array.dtype.name in ("float32", "int32") and array.ndim < 2
    }
    scales.pop(built.call.args[0], None)
    rest = [variable for variable in built.variables if variable not in scales]
    body = rewrite(built.call, lambda _old, new: new, dict(scales))
    function = infer_function(relay.Function(rest, body))
    arrays = dict(zip(built.variables, built.arrays, strict=True))
    return function, [arrays[variable] for variable in rest], built.run()[0]


def _names(mod: relay.IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call)]


def _evaluate(mod: relay.IRModule, args: list[np.ndarray]) -> np.ndarray:
    (found,) = evaluate(mod["main"], args)
    return found


@pytest.mark.parametrize(("definition", "given"), _samples(LOWERED))
def test_the_plain_form_gives_the_bits_of_the_operator(definition: OpDef, given: Sample) -> None:
    function, args, expected = _bound(definition, given)
    mod = CanonicalizeOps()(relay.IRModule.from_expr(function))
    verify(mod)
    assert not [name for name in _names(mod) if name.startswith("qnn.")]
    found = _evaluate(mod, args)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("definition", "given"), _samples("FTVMQnnLegalize"))
def test_the_form_for_every_target_gives_the_bits_of_the_operator(
    definition: OpDef, given: Sample
) -> None:
    function, args, expected = _bound(definition, given)
    mod = Legalize()(relay.IRModule.from_expr(function))
    verify(mod)
    np.testing.assert_array_equal(_evaluate(mod, args), expected)
    np.testing.assert_array_equal(_evaluate(CanonicalizeOps()(mod), args), expected)


def _round(value: Fraction, rounding: str) -> int:
    if rounding == "UPWARD":
        return math.floor(value + Fraction(1, 2))
    return int(math.copysign(math.floor(abs(value) + Fraction(1, 2)), value))


SCALES = [(0.5, 1.0), (0.75, 1.0), (1.0, 0.5), (3.0, 4.0), (0.25, 0.25)]


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("compute_dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("scales", SCALES)
def test_requantisation_rounds(
    scales: tuple[float, float], rounding: str, compute_dtype: str, axis: int | None
) -> None:
    """Ratios are exact in any arithmetic, so that rational numbers tell what comes out."""
    data = np.arange(-61, 63).reshape(31, 4).astype("int32")
    length = data.shape[axis or 0]
    factors = [1] if axis is None else [1 << index % 3 for index in range(length)]
    source = np.float32(scales[0]) * np.array(factors, np.float32)
    x = relay.var("x", shape=data.shape, dtype="int32")
    node = relay.qnn.op.requantize(
        x,
        relay.const(source[0] if axis is None else source),
        relay.const(2),
        relay.const(np.float32(scales[1])),
        relay.const(-3),
        axis=-1 if axis is None else axis,
        rounding=rounding,
        compute_dtype=compute_dtype,
        out_dtype="int8",
    )
    mod = CanonicalizeOps()(relay.IRModule.from_expr(node))
    found = _evaluate(mod, [data])
    for place in np.ndindex(data.shape):
        factor = factors[0 if axis is None else place[axis]]
        real = (int(data[place]) - 2) * Fraction(scales[0]) * factor / Fraction(scales[1])
        # In floating point, the zero point is added before the result is rounded.
        level = _round(real, rounding) - 3 if compute_dtype == "int64" else None
        wanted = _round(real - 3, rounding) if level is None else level
        assert found[place] == min(max(wanted, -128), 127)


@pytest.mark.parametrize(
    ("rounding", "compute_dtype"), list(product(["UPWARD", "TONEAREST"], ["int64", "float32"]))
)
def test_configurations_tell_what_the_operator_does_not(rounding: str, compute_dtype: str) -> None:
    x = relay.var("x", shape=(4,), dtype="int32")
    parameters = (relay.const(0.5), relay.const(0), relay.const(1.0), relay.const(0))
    node = relay.qnn.op.requantize(x, *parameters, out_dtype="int8")
    with requantize_config(rounding=rounding, compute_dtype=compute_dtype):
        mod = CanonicalizeOps()(relay.IRModule.from_expr(node))
    assert current_requantize_config().rounding == "UPWARD"
    found = _evaluate(mod, [np.array([-3, -1, 1, 3], "int32")])
    assert found.tolist() == ([-1, 0, 1, 2] if rounding == "UPWARD" else [-2, -1, 1, 2])
    assert any("float" in str(t) for t in mod.astext().split("\n")) == (compute_dtype != "int64")


@pytest.mark.parametrize("kind", ["debug", "graph"])
@pytest.mark.parametrize("compute_dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
def test_configurations_hold_from_where_an_executor_is_built(
    rounding: str, compute_dtype: str, kind: str
) -> None:
    """As in TVM, `evaluate` builds the program, wherever it is called afterwards."""
    x = relay.var("x", shape=(32,), dtype="int32")
    parameters = (relay.const(0.75), relay.const(2), relay.const(1.0), relay.const(-3))
    mod = relay.IRModule.from_expr(relay.qnn.op.requantize(x, *parameters, out_dtype="int8"))
    executor = relay.create_executor(kind, mod=mod)
    with relay.qnn.op.requantize_config(rounding=rounding, compute_dtype=compute_dtype):
        run = executor.evaluate()
    data = np.arange(-16, 16, dtype="int32")
    shift = -3 if compute_dtype != "int64" else 0
    real = [Fraction(int(each) - 2) * Fraction(3, 4) + shift for each in data]
    assert run(data).numpy().tolist() == [_round(each, rounding) - 3 - shift for each in real]
    usual = executor.evaluate()(data).numpy().tolist()
    assert usual == [_round(each - shift, "UPWARD") - 3 for each in real]


@pytest.mark.parametrize("wrong", [{"rounding": "DOWN"}, {"compute_dtype": "int8"}])
def test_configurations_are_checked(wrong: dict[str, str]) -> None:
    with pytest.raises(RelayError, match="expected"):
        requantize_config(**wrong)


GRID = list(
    product(
        [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NHWC", "HWOI"), ("NHWC", "OHWI")],
        [(0, 0), (7, 0), (0, -3), (7, -3), (7, [1, -2, 3, 0])],
        [{"strides": (2, 1)}, {"padding": (1, 0, 2, 1)}, {"dilation": (2, 2)}],
    )
)


@pytest.mark.thin(2)
@pytest.mark.parametrize(("layouts", "zeros", "attrs"), GRID)
def test_convolutions_in_all_layouts(
    layouts: tuple[str, str], zeros: tuple[int, Any], attrs: dict[str, Any]
) -> None:
    """What comes out is the convolution of differences in int64, taken apart here."""
    _check_convolution(layouts, zeros, attrs, groups=1)


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize(("layouts", "zeros", "attrs"), GRID[::4])
def test_convolutions_in_groups(
    layouts: tuple[str, str], zeros: tuple[int, Any], attrs: dict[str, Any], groups: int
) -> None:
    _check_convolution(layouts, zeros, attrs, groups)


def _check_convolution(
    layouts: tuple[str, str], zeros: tuple[int, Any], attrs: dict[str, Any], groups: int
) -> None:
    rng = np.random.default_rng(3)
    lengths = {"N": 2, "C": 4, "H": 7, "W": 6}
    filters = {"O": 4, "I": 4 // groups, "H": 3, "W": 2}
    if layouts[1] == "HWOI" and groups == 4:
        filters = {"O": 4, "I": 1, "H": 3, "W": 2}
    data = rng.integers(-128, 128, [lengths[c] for c in layouts[0]]).astype("int8")
    weight = rng.integers(-128, 128, [filters[c] for c in layouts[1]]).astype("int8")
    x = relay.var("x", shape=data.shape, dtype="int8")
    w = relay.var("w", shape=weight.shape, dtype="int8")
    window = {"channels": 4, "kernel_size": (3, 2), "groups": groups, **attrs}
    window |= {"data_layout": layouts[0], "kernel_layout": layouts[1]}
    parameters = (relay.const(zeros[0]), relay.const(zeros[1]), relay.const(1.0), relay.const(1.0))
    node = relay.qnn.op.conv2d(x, w, *parameters, **window)
    mod = CanonicalizeOps()(relay.IRModule.from_expr(node))
    verify(mod)
    shape = [4 if c == "O" else 1 for c in layouts[1]]
    w_zero = np.asarray(zeros[1])
    w_zero = w_zero.reshape(shape) if w_zero.ndim else w_zero
    plain = relay.nn.conv2d(
        relay.var("x", shape=data.shape, dtype="int64"),
        relay.var("w", shape=weight.shape, dtype="int64"),
        **window,
    )
    wide = relay.IRModule.from_expr(plain)
    expected = _evaluate(wide, [data.astype("int64") - zeros[0], weight.astype("int64") - w_zero])
    np.testing.assert_array_equal(_evaluate(mod, [data, weight]), expected)


FUNCTIONS = {
    "identity": lambda x: x,
    "tanh": np.tanh,
    "exp": np.exp,
    "root": lambda x: np.sqrt(np.abs(x)),
}


@pytest.mark.parametrize("out_dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("in_dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tables(name: str, in_dtype: str, out_dtype: str) -> None:
    """Each entry is the function of what its bits stand for, rounded away from zero."""
    function = FUNCTIONS[name]
    values = np.arange(256, dtype="uint8").view(in_dtype)
    parameters = (relay.const(0.0625), relay.const(5), relay.const(0.25), relay.const(-3))
    table = create_integer_lookup_table(
        function, *parameters, in_dtype=in_dtype, out_dtype=out_dtype
    )
    info = np.iinfo(out_dtype)
    real = function((values.astype("float32") - 5) * np.float32(0.0625)) / np.float32(0.25)
    away = np.trunc(real.astype("float32") + np.copysign(np.float32(0.5), real)) - 3
    np.testing.assert_array_equal(table, np.clip(away, info.min, info.max).astype(out_dtype))
    node = create_integer_lookup_op(
        relay.const(values.reshape(2, 2, 64)), function, *parameters, in_dtype=in_dtype,
        out_dtype=out_dtype,
    )  # fmt: skip
    np.testing.assert_array_equal(run_const_expr(node), table.reshape(2, 2, 64))


@pytest.mark.parametrize("wrong", ["float32", "float16"])
def test_tables_are_of_integers(wrong: str) -> None:
    parameters = (relay.const(1.0), relay.const(0), relay.const(1.0), relay.const(0))
    with pytest.raises(ValueError, match="expected integer types"):
        create_integer_lookup_table(np.tanh, *parameters, in_dtype=wrong)


def test_tables_need_constants() -> None:
    scale = relay.var("s", shape=(), dtype="float32")
    with pytest.raises(Unsupported, match="must be constant numbers"):
        create_integer_lookup_table(
            np.tanh, scale, relay.const(0), relay.const(1.0), relay.const(0)
        )


@pytest.mark.parametrize("op", ["qnn.conv2d_transpose", "qnn.simulated_quantize"])
def test_what_has_no_plain_form_stays(op: str) -> None:
    assert get_op_attr(op, LOWERED) is None


@pytest.mark.parametrize("name", ["requantize", "mul"])
def test_scales_that_are_computed(name: str) -> None:
    x, scale = relay.var("x", shape=(2, 3), dtype="int8"), relay.var("s", shape=())
    zero, one = relay.const(0), relay.const(1.0)
    if name == "mul":
        node = relay.qnn.op.mul(x, x, scale, zero, scale, zero, one, zero)
    else:
        node = relay.qnn.op.requantize(relay.cast(x, "int32"), scale, zero, one, zero)
    before = relay.IRModule.from_expr(relay.Function([x, scale], node))
    mod = CanonicalizeOps()(before)
    assert not [each for each in _names(mod) if each.startswith("qnn.")]
    args = [np.array([[-100, -3, 0], [1, 50, 127]], "int8"), np.float32(0.3)]
    np.testing.assert_array_equal(_evaluate(mod, args), _evaluate(InferType()(before), args))


DYNAMIC: dict[str, tuple[Any, ...]] = {
    "dense": ((4, 6), (5, 6), 5, {}),
    "conv2d": ((1, 2, 6, 6), (5, 2, 3, 3), 5, {"padding": (1, 2, 0, 1)}),
    "depthwise": ((1, 4, 6, 6), (4, 1, 3, 3), 4, {"groups": 4}),
    "pointwise": ((1, 4, 6, 6), (5, 4, 1, 1), 5, {"strides": (2, 3)}),
    "dilated": ((1, 2, 7, 7), (5, 2, 3, 3), 5, {"dilation": (2, 1)}),
    "batch_matmul": ((2, 3, 4), (2, 5, 4), None, {}),
}
KINDS = [(name, vector) for name in DYNAMIC for vector in (False, True)]


def _quantised_product(name: str, operands: list[Var]) -> Expr:
    _, weight_shape, channels, attrs = DYNAMIC[name]
    one = relay.const(1.0)
    if name == "batch_matmul":
        return relay.qnn.op.batch_matmul(*operands, one, one)
    if name == "dense":
        return relay.qnn.op.dense(*operands, one, one, units=channels)
    return relay.qnn.op.conv2d(*operands, one, one, weight_shape[2:], channels, **attrs)


def _plain_product(name: str, x: Var, w: Var) -> Expr:
    if name in ("dense", "batch_matmul"):
        return getattr(relay.nn, name)(x, w)
    return relay.nn.conv2d(x, w, **DYNAMIC[name][3])


@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize(("name", "vector"), KINDS[:-1])
def test_zero_points_that_are_computed(name: str, vector: bool, dtypes: tuple[str, str]) -> None:
    """Zero points arrive as arguments; the weight may have one for each channel."""
    data_shape, weight_shape, channels, _ = DYNAMIC[name]
    rng = np.random.default_rng(11)
    shapes = (data_shape, weight_shape, (), (channels,) if vector else ())
    kinds = (*dtypes, "int32", "int32")
    variables = [
        relay.var(letter, shape=shape, dtype=dtype)
        for letter, shape, dtype in zip("xwab", shapes, kinds, strict=True)
    ]
    args = [
        rng.integers(0, 100, shape).astype(dtype)
        for shape, dtype in zip(shapes, kinds, strict=True)
    ]
    before = relay.IRModule.from_expr(
        relay.Function(variables, _quantised_product(name, variables))
    )
    mod = CanonicalizeOps()(before)
    verify(mod)
    assert not [each for each in _names(mod) if each.startswith("qnn.")]
    zero = args[3].reshape(-1, *[1] * (len(weight_shape) - 1)) if vector else args[3]
    plain = [relay.var("x", shape=data_shape, dtype="int64")]
    plain.append(relay.var("w", shape=weight_shape, dtype="int64"))
    wide = _plain_product(name, *plain)
    differences = [args[0].astype("int64") - args[2], args[1].astype("int64") - zero]
    expected = _evaluate(relay.IRModule.from_expr(relay.Function(plain, wide)), differences)
    np.testing.assert_array_equal(_evaluate(mod, args), expected)
