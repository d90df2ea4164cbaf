"""Builders take what TVM's take: cut borders, slices with bounds left out, computed shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import serde
import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError, UnsupportedModelError

ANY = relay.Any()
N, C, H, W = (relay.symbol(name) for name in "nchw")


def var(shape: Any, dtype: str = "float32", name: str = "x") -> relay.Var:
    return relay.var(name, relay.TensorType(shape, dtype))


def run(expr: Any, *values: Any) -> Any:
    """Value of an expression, its free variables in order of appearance."""
    expr = expr.astuple() if hasattr(expr, "astuple") else expr
    function = relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor().evaluate(function)(*values)


def iota(*shape: int, dtype: str = "float32") -> Any:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


# Negative widths cut.


@pytest.mark.parametrize(
    ("shape", "widths", "kept", "sides"),
    [
        ((4, 5), ((-1, 2), (0, -2)), np.s_[1:, :3], ((0, 2), (0, 0))),
        ((6,), ((-2, -3),), np.s_[2:3], ((0, 0),)),
        ((3, 3), ((1, -1), (-1, 1)), np.s_[:2, 1:], ((1, 0), (0, 1))),
        ((2, 2), ((-2, 0), (0, 0)), np.s_[2:, :], ((0, 0), (0, 0))),
    ],
)
def test_negative_padding_takes_elements_away(
    shape: Any, widths: Any, kept: Any, sides: Any
) -> None:
    x = iota(*shape)
    expected = np.pad(x[kept], sides, constant_values=7)
    call = relay.nn.pad(var(shape), widths, pad_value=7.0)
    assert call.checked_type.concrete_shape == expected.shape
    np.testing.assert_array_equal(run(call, x), expected)
    text = relay.IRModule.from_expr(call).astext()
    assert relay.fromtext(text)["main"].body.attrs == call.attrs


@pytest.mark.parametrize(
    ("widths", "mode"),
    [(((-3, 0),), "constant"), (((-1, -2),), "constant"), (((-1, 0),), "edge"),
     (((0, -1),), "reflect")],
)  # fmt: skip
def test_negative_padding_within_reason(widths: Any, mode: str) -> None:
    with pytest.raises(TypeInferenceError, match=r"negative|cuts more"):
        relay.nn.pad(var((2,)), widths, pad_mode=mode)


@pytest.mark.parametrize("name", ["net.onnx", "net-symbol.json", "net.nnef", "net.mlpackage"])
def test_padding_that_cuts_goes_to_formats(tmp_path: Path, name: str) -> None:
    x = iota(4, 5)
    call = relay.nn.pad(var((4, 5)), ((-1, 2), (0, -2)), 0.5)
    model = relay.RelayModel(relay.IRModule.from_expr(call), {})
    back = serde.to_relay(serde.from_relay(model, path=tmp_path / name))
    weights = {name: weight.array() for name, weight in back.params.items()}
    found = relay.create_executor(mod=back.mod).evaluate()(x, **weights).numpy()
    np.testing.assert_array_equal(found, run(call, x).numpy())


# Slices.


@pytest.mark.parametrize(
    ("begin", "end", "strides", "region"),
    [
        ([1, 1, 0], [4, 4], None, np.s_[1:4, 1:4]),
        ([1, 1], [4, 4, 3], None, np.s_[1:4, 1:4, :3]),
        ([None, None, 1], [None, None, 2], None, np.s_[:, :, 1:2]),
        ([None, -1], [None, None], [2, -1], np.s_[::2, ::-1]),
        ([None], [1], [-1], np.s_[:1:-1]),
        ((1,), (4, -3), None, np.s_[1:4, :-3]),
        ([np.int64(0), 1], np.array([2, 3]), [np.int32(1)], np.s_[0:2, 1:3]),
        ([0], [3], [2], np.s_[0:3:2]),
    ],
)
def test_a_slice_with_bounds_left_out(begin: Any, end: Any, strides: Any, region: Any) -> None:
    x = iota(3, 4, 3)
    call = relay.strided_slice(var((3, 4, 3)), begin, end, strides)
    assert call.checked_type.concrete_shape == x[region].shape
    np.testing.assert_array_equal(run(call, x), x[region])
    assert len(call.attrs["begin"]) == len(call.attrs["end"])


def test_a_slice_of_symbols_keeps_those_that_are_whole() -> None:
    call = relay.strided_slice(var((N, C, 3)), [None, None, 1], [None, None, 2])
    assert call.checked_type == relay.TensorType((N, C, 1))


@pytest.mark.parametrize(
    ("begin", "end", "strides", "region"),
    [
        ([1, 1, 0], [4, 4, 3], [2, 1, 1], np.s_[1:4:2, 1:4, 0:3]),
        ([1, 1], [4, 4, 3], None, np.s_[1:4, 1:4, 0:3]),
        ([1, 1, 0], [4, 4], None, np.s_[1:4, 1:4, 0:]),
        ([0, 0, 0], [4, -5, 4], [1, -1, 2], np.s_[0:4, 0:-5:-1, 0:4:2]),
    ],
)
def test_a_region_set_by_bounds_of_other_numbers(
    begin: Any, end: Any, strides: Any, region: Any
) -> None:
    x = iota(3, 4, 3)
    expected = x.copy()
    expected[region] = -1
    v = np.full(x[region].shape, -1, "float32")
    bounds = [None if each is None else relay.const(each, "int32") for each in (begin, end)]
    steps = None if strides is None else relay.const(strides, "int32")
    call = relay.strided_set(var(x.shape), var(v.shape, name="v"), *bounds, steps)
    np.testing.assert_array_equal(run(call, x, v), expected)


@pytest.mark.parametrize(
    ("like", "axes", "region"),
    [
        ((1, 2), None, np.s_[:1, :2]),
        ((1, 2, 3), None, np.s_[:1, :2, :3]),
        ((2,), (), np.s_[:2]),
        ((1, 2, 3), (-1, -3), np.s_[:1, :, :3]),
        ((1, 2, 3), [1], np.s_[:, :2]),
    ],
)
def test_the_leading_part_as_long_as_another_tensor(like: Any, axes: Any, region: Any) -> None:
    x = iota(3, 4, 5)
    call = relay.slice_like(var((3, 4, 5)), var(like, name="y"), axes)
    np.testing.assert_array_equal(run(call, x, np.zeros(like, "float32")), x[region])


# Windows.


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_offsets_of_a_deformable_convolution_get_their_type(layout: str) -> None:
    channels_first = layout == "NCHW"
    data = var((1, 4, 9, 8) if channels_first else (1, 9, 8, 4))
    offset, weight = relay.var("o"), relay.var("w")
    call = relay.nn.deformable_conv2d(
        data, offset, weight, strides=2, padding=1, kernel_size=3, channels=6,
        deformable_groups=2, data_layout=layout,
        kernel_layout="OIHW" if channels_first else "HWIO",
    )  # fmt: skip
    mod = relay.transform.InferType()(relay.IRModule.from_expr(call))
    args = mod["main"].body.args
    shapes = {
        "NCHW": [(1, 36, 5, 4), (6, 4, 3, 3), (1, 6, 5, 4)],
        "NHWC": [(1, 5, 4, 36), (3, 3, 4, 6), (1, 5, 4, 6)],
    }
    found = [args[1].checked_type, args[2].checked_type, mod["main"].body.checked_type]
    assert [each.concrete_shape for each in found] == shapes[layout]


@pytest.mark.parametrize("extra", [1, (1,), (1, 1), [1, 0]])
def test_output_padding_of_the_form_over_one_axis(extra: Any) -> None:
    call = relay.nn.conv1d_transpose(
        var((1, 3, 8)), var((3, 5, 3), name="w"), strides=2, padding=1, kernel_size=3,
        channels=5, output_padding=extra,
    )  # fmt: skip
    assert call.attrs["output_padding"] == (1,)
    assert call.checked_type.concrete_shape == (1, 5, 16)


@pytest.mark.parametrize("numbers", [2, (2, 2), [2, 2], (2, 2, 1, 1), [2, 2, 9, 9]])
def test_numbers_of_a_morphological_window(numbers: Any) -> None:
    call = relay.image.dilation2d(var((1, 1, 9, 9)), var((1, 3, 3), name="w"), strides=numbers)
    assert call.attrs["strides"] == (2, 2)
    assert call.checked_type.concrete_shape == (1, 1, 4, 4)


def test_tvms_name_of_the_mode_of_onnx() -> None:
    x = iota(1, 8, 1, 1)
    ours = relay.nn.depth_to_space(var(x.shape), 2, mode="CRD")
    theirs = relay.nn.depth_to_space(var(x.shape), 2, "NCHW", "CDR")
    np.testing.assert_array_equal(run(ours, x), run(theirs, x))
    assert run(theirs, x).tolist() == [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]


# Reductions, sums of segments, values that are not given.


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 1, (0, 2), -1, [1]])
def test_means_with_spread_come_as_a_tuple(axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    where = tuple(axis) if isinstance(axis, list) else axis
    for build, spread in ((relay.mean_variance, np.var), (relay.mean_std, np.std)):
        wrapped = build(var(x.shape), axis, keepdims)
        assert len(wrapped) == 2
        first, second = run(wrapped, x)
        np.testing.assert_allclose(first, x.mean(where, keepdims=keepdims), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(second, spread(x, where, keepdims=keepdims), rtol=1e-4)


@pytest.mark.parametrize(
    ("ids", "count", "rows"),
    [
        ([0, 0, 1], None, [[2, 4], [4, 5]]),
        ([0, 2, 2], None, [[0, 1], [0, 0], [6, 8]]),
        ([1, 1, 0], 4, [[4, 5], [2, 4], [0, 0], [0, 0]]),
        ([0, 1, 2], np.int64(3), [[0, 1], [2, 3], [4, 5]]),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_sums_of_segments(ids: Any, count: Any, rows: Any, dynamic: bool) -> None:
    shape = (ANY, ANY) if dynamic else (3, 2)
    x, numbers = var(shape), var(shape[:1], "int64", "ids")
    call = relay.segment_sum(x, numbers, count)
    function = relay.Function([x, numbers], call)
    found = relay.create_executor().evaluate(function)(iota(3, 2), np.array(ids))
    np.testing.assert_array_equal(found, np.array(rows, "float32"))


@pytest.mark.parametrize("fill", [np.int64(9), np.array([9])])
def test_a_number_for_empty_rows_may_be_a_vector_of_one(fill: Any) -> None:
    call = relay.sparse_fill_empty_rows(
        relay.const(np.array([[0, 1], [2, 0]]), "int64"), relay.const([5, 6], "int64"),
        relay.const([3, 2], "int64"), relay.const(fill, "int64"),
    )  # fmt: skip
    indices, values, empty = run(call)
    assert indices.tolist() == [[0, 1], [1, 0], [2, 0]]
    assert values.tolist() == [5, 9, 6]
    assert empty.tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_repetitions_that_are_computed(dtype: str) -> None:
    call = relay.tile(var((2,)), var((2,), dtype, "reps"))
    assert call.checked_type == relay.TensorType((ANY, ANY))
    np.testing.assert_array_equal(
        run(call, iota(2), np.array([2, 3], dtype)), np.tile(iota(2), (2, 3))
    )


def test_places_of_boxes_do_not_matter_where_none_are_wanted() -> None:
    boxes = var((1, 3, 6))
    counts = var((1,), "int32", "n")
    call = relay.vision.non_max_suppression(boxes, counts, boxes, return_indices=False)
    assert call.checked_type == relay.TensorType((1, 3, 6))
    with pytest.raises(TypeInferenceError):
        relay.vision.non_max_suppression(boxes, counts, boxes, return_indices=True)


# Booleans as integers of one bit.

BITS = np.array([False, False, True, True]), np.array([False, True, False, True])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("add", [0, 1, 1, 0]), ("subtract", [0, 1, 1, 0]), ("multiply", [0, 0, 0, 1])],
)
def test_booleans_are_integers_of_one_bit(name: str, expected: list[int]) -> None:
    call = getattr(relay, name)(var((4,), "bool"), var((4,), "bool", "y"))
    assert call.checked_type == relay.TensorType((4,), "bool")
    assert run(call, *BITS).tolist() == [bool(each) for each in expected]


@pytest.mark.parametrize("format_", ["onnx", "mxnet", "coreml", "nnef", "torch"])
def test_formats_do_not_calculate_with_booleans(format_: str) -> None:
    call = relay.add(var((4,), "bool"), var((4,), "bool", "y"))
    model = relay.RelayModel(relay.IRModule.from_expr(call), {})
    with pytest.raises(UnsupportedModelError, match="booleans"):
        serde.export_model(model, format=format_)


@pytest.mark.parametrize("name", ["floor_divide", "mod", "power"])
def test_other_arithmetic_needs_numbers(name: str) -> None:
    with pytest.raises(RelayError, match="bool"):
        getattr(relay, name)(var((4,), "bool"), var((4,), "bool", "y"))


def test_readers_do_not_take_booleans_for_bits() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.BOOL, [2]) for name in "xyz"]
    node = helper.make_node("Add", ["x", "y"], ["z"], name="sum")
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(UnsupportedModelError, match="booleans"):
        serde.to_relay(model)
