"""Builders that pick the form of an operator by what they are given, as TVM's do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.builders import lookup_builder
from serde.relay.ir.registry import OpDef

IMAGE = relay.var("x", shape=(1, 2, 4, 6))
VOLUME = relay.var("x", shape=(1, 1, 2, 3, 2))
Build = Callable[[relay.Expr, relay.Expr], relay.Expr]

CASES: dict[str, tuple[relay.Expr, Build, np.ndarray]] = {
    "expand_dims": (IMAGE, lambda x, n: relay.expand_dims(x, n, 2), np.array(-1)),
    "squeeze": (IMAGE, relay.squeeze, np.array([0])),
    "nn.pad": (
        IMAGE,
        lambda x, n: relay.nn.pad(x, n, 1.5),
        np.array([[0, 0], [1, 0], [0, 2], [3, 1]]),
    ),
    "image.resize2d": (IMAGE, relay.image.resize2d, np.array([3, 9])),
    "nn.upsampling": (
        IMAGE,
        lambda x, n: relay.nn.upsampling(x, n, 2.0, method="bilinear"),
        np.array(1.5, np.float32),
    ),
    "nn.upsampling3d": (
        VOLUME,
        lambda x, n: relay.nn.upsampling3d(x, 2, n, 1),
        np.array(3, np.float32),
    ),
}


def _name(node: relay.Expr) -> str:
    assert isinstance(node, relay.Call)
    assert isinstance(node.op, OpDef)
    return node.op.name


@pytest.mark.parametrize("name", CASES)
def test_a_constant_makes_an_attribute_and_a_computed_value_an_operand(name: str) -> None:
    data, build, value = CASES[name]
    computed = relay.var("n", shape=value.shape, dtype=value.dtype)
    static, dynamic = build(data, relay.const(value)), build(data, computed)
    assert _name(static) == name
    assert _name(dynamic) == f"dyn.{name}"
    x = np.random.default_rng(0).normal(size=data.type.shape).astype("float32")
    executor = relay.create_executor("debug")
    left = executor.evaluate(relay.Function([data], static))(x)
    right = executor.evaluate(relay.Function([data, computed], dynamic))(x, value)
    np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("builder", "first"),
    [
        (relay.nn.space_to_batch_nd, ["data", "block_shape", "paddings"]),
        (relay.nn.batch_to_space_nd, ["data", "block_shape", "crops"]),
        (relay.fixed_point_multiply_per_axis, ["x", "y", "lshift", "rshift", "is_lshift_required"]),
        (relay.serde.qlinear_conv2d, ["data", "weight", "bias", "data_scale"]),
    ],
)
def test_parameters_that_must_be_given_stand_where_tvm_has_them(
    builder: Any, first: list[str]
) -> None:
    parameters = list(inspect.signature(builder).parameters.values())
    assert [each.name for each in parameters[: len(first)]] == first
    assert all(each.default is inspect.Parameter.empty for each in parameters[: len(first)])


@pytest.mark.parametrize(
    ("path", "required"),
    [
        ("image.crop_and_resize", "data boxes box_indices crop_size layout"),
        (
            "nn.correlation",
            "data1 data2 kernel_size max_displacement stride1 stride2 padding is_multiply layout",
        ),
        ("nn.depth_to_space", "data block_size"),
        ("nn.dilate", "data strides"),
        ("nn.fifo_buffer", "data buffer axis"),
        (
            "qnn.op.avg_pool2d",
            "data input_scale input_zero_point output_scale output_zero_point "
            "pool_size strides padding dilation",
        ),
        (
            "qnn.op.conv2d",
            "data kernel input_zero_point kernel_zero_point input_scale kernel_scale "
            "kernel_size channels",
        ),
        ("random.multinomial", "key probs num_samples"),
        (
            "vision.proposal",
            "cls_prob bbox_pred im_info scales ratios feature_stride threshold "
            "rpn_pre_nms_top_n rpn_post_nms_top_n rpn_min_size iou_loss",
        ),
        ("vision.yolo_reorg", "data stride"),
    ],
)
def test_builders_require_what_those_of_tvm_do(path: str, required: str) -> None:
    parameters = inspect.signature(lookup_builder(path)).parameters.values()
    found = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    assert found == required.split()


def test_an_attribute_without_meaning_is_none_of_the_builder() -> None:
    assert list(inspect.signature(relay.sort).parameters) == ["data", "axis", "is_ascend"]
    with pytest.raises(TypeInferenceError, match="unexpected keyword"):
        relay.sort(IMAGE, dtype="float16")  # type: ignore[call-arg]


def test_what_no_index_names_is_zero() -> None:
    values = relay.const(np.array([5, 6], "int32"))
    dense = relay.sparse_to_dense(relay.const(np.array([0, 2])), (4,), values)
    found = relay.create_executor(mod=relay.IRModule.from_expr(dense)).evaluate()()
    np.testing.assert_array_equal(found.numpy(), [5, 0, 6, 0])
