"""Calls of Relax's operators: by name, with every attribute that changes the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support.relax_imports import CallCase
from tvm import relax

__all__ = ["CALLS"]

CALLS: list[CallCase] = []

_RANDOM = np.random.default_rng(0)
_OP: Any = relax.op
_NN: Any = relax.op.nn
_IMAGE: Any = relax.op.image
_VISION: Any = relax.op.vision


def _floats(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _ints(most: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    return _RANDOM.integers(0, most, shape).astype(dtype)


def _add(name: str, build: Callable[..., Any], *arrays: Any) -> None:
    CALLS.append((name, build, [np.asarray(each) for each in arrays]))


_X = _floats(2, 3, 4)
_SPECIAL = np.array(
    [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.25, 0.0, 1.0, np.nan, np.inf, -np.inf, 3.7], np.float32
)
_SIGNED = (_ints(14, 3, 4, dtype="int32") - 7).astype(np.int32)
_POSITIVE = (_ints(4, 3, 4, dtype="int32") + 1).astype(np.int32)
_TRUTH = _ints(2, 3, 4).astype(bool)


def _elementwise() -> None:
    paired = (
        "add subtract multiply divide floor_divide floor_mod mod power maximum minimum equal "
        "not_equal less less_equal greater greater_equal log_add_exp atan2"
    )
    for name in paired.split():
        first = np.abs(_floats(3, 4)) if name == "power" else _floats(3, 4)
        _add(f"{name}-float", getattr(_OP, name), first, _floats(4))
        if name not in ("power", "log_add_exp", "atan2"):
            _add(f"{name}-int", getattr(_OP, name), _SIGNED, _POSITIVE)
    for name in ("logical_and", "logical_or", "logical_xor"):
        _add(name, getattr(_OP, name), _TRUTH, _TRUTH[::-1])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
        _add(name, getattr(_OP, name), _SIGNED, _POSITIVE)
    single = (
        "abs acos acosh asin asinh atan atanh ceil cos cosh exp floor log negative round rsqrt "
        "sigmoid sin sinh square sqrt tan tanh trunc erf isfinite isinf isnan"
    )
    for name in single.split():
        _add(name, getattr(_OP, name), _SPECIAL)
    for name in ("abs", "sign", "round", "bitwise_not"):
        _add(f"{name}-int", getattr(_OP, name), _SIGNED)
    _add("logical_not", _OP.logical_not, _TRUTH)
    _add("clip", lambda x: _OP.clip(x, -0.5, 0.5), _X)
    _add("clip-int", lambda x: _OP.clip(x, -2, 3), _SIGNED)
    _add("clip-crossed", lambda x: _OP.clip(x, 2, 1), _X)
    _add("clip-int-crossed", lambda x: _OP.clip(x, 2, 1), _SIGNED)
    _add("where", _OP.where, _TRUTH, _floats(3, 4), _floats(3, 4))
    for dtype in ("float16", "int8", "int64", "uint8", "bool"):
        _add(f"astype-{dtype}", lambda x, d=dtype: _OP.astype(x, d), np.float32([0, 1.5, 2.7, 90]))
    _add("number", lambda x: _OP.add(x, relax.prim_value(2.0, "float32")), _X)


def _activations() -> None:
    for name in ("relu", "gelu", "gelu_tanh", "silu", "selu"):
        _add(f"nn.{name}", getattr(_NN, name), _X)
    _add("nn.leakyrelu", lambda x: _NN.leakyrelu(x, 0.2), _X)
    _add("nn.prelu", lambda x, a: _NN.prelu(x, a, 1), _X, _floats(3))
    _add("nn.prelu-one", lambda x, a: _NN.prelu(x, a, 1), _X, _floats(1))
    _add("nn.softplus", _NN.softplus, _X * 20)
    _add("nn.softplus-beta", lambda x: _NN.softplus(x, 2.0, 3.0), _X * 3)
    _add("nn.softmax", lambda x: _NN.softmax(x, 1), _X)
    _add("nn.log_softmax", lambda x: _NN.log_softmax(x, -1), _X)
    _add("nn.dropout", lambda x: _NN.dropout(x, 0.3), _X)


def _reductions() -> None:
    for name in ("max", "min", "mean", "prod", "sum", "variance", "std"):
        _add(name, getattr(_OP, name), _X)
        _add(f"{name}-axes", lambda x, n=name: getattr(_OP, n)(x, [0, -1], True), _X)
    for name in ("argmax", "argmin"):
        _add(name, getattr(_OP, name), _X)
        _add(f"{name}-axis", lambda x, n=name: getattr(_OP, n)(x, -1, True), _X)
    for name in ("cumsum", "cumprod"):
        _add(name, getattr(_OP, name), _X)
        _add(f"{name}-axis", lambda x, n=name: getattr(_OP, n)(x, 1, "float64"), _X)
        _add(f"{name}-exclusive", lambda x, n=name: getattr(_OP, n)(x, axis=-1, exclusive=True), _X)
    _add("median", lambda x: _OP.median(x, None, False), _X)
    _add("median-axis", lambda x: _OP.median(x, [1], False), _X)
    _add("median-keepdims", lambda x: _OP.median(x, [2], True), _X)
    _add("collapse_sum_to", lambda x: _OP.collapse_sum_to(x, (3, 1)), _X)
    _add("collapse_sum_like", _OP.collapse_sum_like, _X, _floats(1, 4))
    _add("nn.cross_entropy_with_logits", _NN.cross_entropy_with_logits, _X[0], _X[1])
    for reduction in ("mean", "sum", "none"):
        _add(
            f"nn.nll_loss-{reduction}",
            lambda p, t, w, r=reduction: _NN.nll_loss(p, t, w, reduction=r, ignore_index=1),
            _floats(3, 4), _ints(4, 3), _floats(4),
        )  # fmt: skip
    _add("nn.nll_loss-plain", _NN.nll_loss, _floats(3, 4, 2), _ints(4, 3, 2))


def _products() -> None:
    _add("matmul", _OP.matmul, _floats(2, 3, 4), _floats(4, 5))
    _add("matmul-vector", _OP.matmul, _floats(4), _floats(2, 4, 5))
    _add("matmul-dot", _OP.matmul, _floats(4), _floats(4))
    halves = _floats(3, 4).astype(np.float16), _floats(4, 3).astype(np.float16)
    _add("matmul-wide", lambda a, b: _OP.matmul(a, b, "float32"), *halves)
    _add("einsum", lambda a, b: _OP.einsum([a, b], "ij,jk->ik"), _floats(3, 4), _floats(4, 5))
    _add("outer", _OP.outer, _floats(3), _floats(4))
    queries, keys, values = _floats(2, 5, 2, 4), _floats(2, 7, 2, 4), _floats(2, 7, 2, 3)
    _add("nn.attention", _NN.attention, queries, keys, values)
    for mask in ("TopLeft", "BottomRight"):
        _add(
            f"nn.attention-{mask}",
            lambda q, k, v, m=mask: _NN.attention(q, k, v, causal_mask=m, scale=0.3),
            queries, keys, values,
        )  # fmt: skip
    _add("nn.attention_bias", _NN.attention, queries, keys, values, _floats(2, 2, 5, 7))


def _layers() -> None:
    image, kernel = _floats(1, 4, 9, 9), _floats(6, 4, 3, 3)
    _add(
        "nn.conv2d",
        lambda x, w: _NN.conv2d(x, w, strides=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2)),
        image, kernel,
    )  # fmt: skip
    _add("nn.conv2d-groups", lambda x, w: _NN.conv2d(x, w, groups=2), image, _floats(6, 2, 3, 3))
    _add(
        "nn.conv2d-nhwc",
        lambda x, w: _NN.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"),
        _floats(1, 9, 9, 4), _floats(3, 3, 4, 6),
    )  # fmt: skip
    short = {"strides": 2, "padding": 1}
    _add("nn.conv1d", lambda x, w: _NN.conv1d(x, w, **short), _floats(1, 4, 9), _floats(6, 4, 3))
    _add(
        "nn.conv3d", lambda x, w: _NN.conv3d(x, w, **short),
        _floats(1, 4, 5, 5, 5), _floats(6, 4, 3, 3, 3),
    )  # fmt: skip
    for ndim in (1, 2, 3):
        _add(
            f"nn.conv{ndim}d_transpose",
            lambda x, w, n=ndim: getattr(_NN, f"conv{n}d_transpose")(
                x, w, strides=2, padding=1, output_padding=1, groups=2
            ),
            _floats(1, 4, *(4,) * ndim), _floats(4, 3, *(3,) * ndim),
        )  # fmt: skip
        x = _floats(1, 2, *(7, 6, 5)[:ndim])
        for kind in ("max", "avg"):
            name = f"{kind}_pool{ndim}d"
            _add(f"nn.{name}", lambda x, n=name: getattr(_NN, n)(x, 2), x)
            _add(f"nn.{name}-pad", lambda x, n=name: getattr(_NN, n)(x, 3, **short), x)
        name = f"avg_pool{ndim}d"
        options = {**short, "count_include_pad": True}
        _add(f"nn.{name}-count", lambda x, n=name, o=options: getattr(_NN, n)(x, 3, **o), x)
        name = f"adaptive_avg_pool{ndim}d"
        _add(f"nn.{name}", lambda x, n=name: getattr(_NN, n)(x, 2), x)
    ceil = {**short, "ceil_mode": True}
    _add("nn.max_pool2d-ceil", lambda x: _NN.max_pool2d(x, 2, **ceil), image)
    _add("nn.avg_pool2d-ceil", lambda x: _NN.avg_pool2d(x, 2, **ceil), image)
    whole = {**ceil, "count_include_pad": True}
    _add("nn.avg_pool2d-beyond", lambda x: _NN.avg_pool2d(x, 3, **whole), _floats(1, 2, 6, 6))
    _add("nn.max_pool2d-nhwc", lambda x: _NN.max_pool2d(x, 2, layout="NHWC"), image)


def _norms() -> None:
    four = _floats(3), _floats(3), _floats(3), np.abs(_floats(3))
    for training in (False, True):
        _add(
            f"nn.batch_norm-{training}",
            lambda x, *p, t=training: _NN.batch_norm(x, *p, axis=1, training=t),
            _floats(2, 3, 4), *four,
        )  # fmt: skip
    for axes in ([-1], [1], [-2, -1], [0, 2]):
        shape = [_X.shape[axis] for axis in axes]
        _add(
            f"nn.layer_norm-{axes}",
            lambda x, g, b, a=axes: _NN.layer_norm(x, g, b, axes=a),
            _X, _floats(*shape), _floats(*shape),
        )  # fmt: skip
    _add("nn.rms_norm", lambda x, g: _NN.rms_norm(x, g, axes=[1, 2]), _X, _floats(3, 4))
    pair = _floats(4), _floats(4)
    for axes in ([2, 3], [2]):
        _add(
            f"nn.group_norm-{axes}",
            lambda x, g, b, a=axes: _NN.group_norm(x, g, b, 2, 1, a), _floats(2, 4, 3, 3), *pair,
        )  # fmt: skip
        _add(
            f"nn.instance_norm-{axes}",
            lambda x, g, b, a=axes: _NN.instance_norm(x, g, b, 1, a), _floats(2, 4, 3, 3), *pair,
        )  # fmt: skip


def _arrangement() -> None:
    _add("reshape", lambda x: _OP.reshape(x, (-1, 4)), _X)
    _add("broadcast_to", lambda x: _OP.broadcast_to(x, (5, 2, 3, 4)), _X)
    _add("flatten", _OP.flatten, _X)
    _add("permute_dims", lambda x: _OP.permute_dims(x, [0, -1, 1]), _X)
    _add("permute_dims-all", _OP.permute_dims, _X)
    _add("expand_dims", lambda x: _OP.expand_dims(x, [0, -1, 2]), _X)
    _add("squeeze", _OP.squeeze, _floats(1, 3, 1))
    _add("squeeze-axis", lambda x: _OP.squeeze(x, [-1]), _floats(1, 3, 1))
    _add("concat", lambda x, y: _OP.concat([x, y], 1), _X, _floats(2, 1, 4))
    _add("stack", lambda x, y: _OP.stack([x, y], -1), _X, _X + 1)
    for sections in (2, 1, [1, 3]):
        _add(f"split-{sections}", lambda x, s=sections: _OP.split(x, s, 2), _X)
    _add("split-uneven", lambda x: _OP.split(x, 4, 0), _floats(7))
    _add("tile", lambda x: _OP.tile(x, (2, 1, 1, 2)), _X)
    _add("repeat", lambda x: _OP.repeat(x, 2, 1), _X)
    _add("repeat-flat", lambda x: _OP.repeat(x, 2), _X)
    _add("flip", lambda x: _OP.flip(x, -1), _X)
    _add("reverse_sequence", _OP.reverse_sequence, _X, np.array([2, 3]))
    for mode in ("constant", "reflect", "replicate", "circular"):
        widths = (0, 0, 1, 2, 2, 1)
        _add(f"nn.pad-{mode}", lambda x, m=mode, w=widths: _NN.pad(x, w, m, 1.5), _X)
    _add("memory.view", lambda x: _OP.memory.view(x, (4, 6)), _X)
    _add("memory.view-dtype", lambda x: _OP.memory.view(x, None, "int32"), _X)
    _add("layout_transform", lambda x: _OP.layout_transform(x, lambda a, b, c: (c, a, b)), _X)
    _add(
        "layout_transform-split",
        lambda x: _OP.layout_transform(x, lambda a, b, c: (c // 2, a, b, c % 2)),
        _X,
    )
    _add(
        "layout_transform-pad",
        lambda x: _OP.layout_transform(x, lambda a, b: (b // 4, a, b % 4), pad_value=2.0),
        _floats(3, 6),
    )
    _add("size", _OP.size, _X)
    _add("shape_to_tensor", lambda x: _OP.shape_to_tensor(_OP.shape_of(x)), _X)


def _creation() -> None:
    half = relax.const(2.5, "float32")
    _add("full", lambda x: _OP.full((2, 3), half, "int32"), _X)
    _add("zeros", lambda x: _OP.zeros((2, 3), "int8"), _X)
    _add("ones", lambda x: _OP.ones((2,), "float16"), _X)
    _add("full_like", lambda x: _OP.full_like(x, half, "int32"), _X)
    _add("zeros_like", _OP.zeros_like, _X)
    _add("ones_like", lambda x: _OP.ones_like(x, "int32"), _X)
    _add("arange", lambda x: _OP.arange(1, 10, 2), _X)
    _add("arange-float", lambda x: _OP.arange(0.0, 1.0, 0.3), _X)
    _add("eye", lambda x: _OP.eye(3, 4, 1), _X)
    for periodic in (True, False):
        window = 7, periodic, 0.54, 0.46, "float32"
        _add(f"hamming_window-{periodic}", lambda x, w=window: _OP.hamming_window(*w), _X)
    _add("tril", lambda x: _OP.tril(x, 1), _X)
    _add("triu", lambda x: _OP.triu(x, -1), _X)
    on, off = relax.prim_value(2.0, "float32"), relax.prim_value(-1.0, "float32")
    _add("one_hot", lambda i: _OP.one_hot(i, on, off, 5, 0), _ints(5, 2, 3))
    _add("meshgrid", lambda a, b: _OP.meshgrid([a, b]), _floats(2), _floats(3))


def _lookups() -> None:
    for mode in ("clip", "wrap", "nan"):
        places = np.array([[0, 5], [2, -1]], np.int32)
        _add(f"take-{mode}", lambda x, i, m=mode: _OP.take(x, i, 1, m), _X, places)
    _add("take-flat", lambda x, i: _OP.take(x, i, None), _floats(7), _ints(7, 2, 2))
    _add("take-number", lambda x: _OP.take(x, relax.prim_value(1), 1), _X)
    far = [2, 2**31]
    _add("strided_slice", lambda x: _OP.strided_slice(x, [1, 2], [0, -3], far, [1, 2]), _X)
    _add("strided_slice-back", lambda x: _OP.strided_slice(x, [-1], [3], [-5], [-1]), _X)
    bounds = np.array([0, 1, 1]), np.array([2, 3, 4]), np.array([1, 1, 2])
    _add("dynamic_strided_slice", _OP.dynamic_strided_slice, _X, *bounds)
    _add("gather_elements", lambda x, i: _OP.gather_elements(x, i, 1), _X, _ints(3, 2, 5, 4))
    _add("gather_nd", _OP.gather_nd, _X, _ints(2, 5, 6, 2))
    _add("gather_nd-batch", lambda x, i: _OP.gather_nd(x, i, 1), _X, _ints(3, 2, 5, 1))
    _add(
        "index_tensor", lambda x, a, b: _OP.index_tensor(x, [a, b]), _X, _ints(2, 2, 1), _ints(3, 3)
    )
    for accumulate in (False, True):
        _add(
            f"index_put-{accumulate}",
            lambda x, a, b, v, c=accumulate: _OP.index_put(x, (a, b), v, c),
            _floats(3, 4), np.array([[0], [2]]), np.array([1, 3]), _floats(2, 2),
        )  # fmt: skip
    for reduction in ("update", "add", "mul", "mean", "min", "max"):
        places = np.array([[0, 2], [1, -1], [3, 0]])
        _add(
            f"scatter_elements-{reduction}",
            lambda x, i, u, r=reduction: _OP.scatter_elements(x, i, u, 1, r),
            _floats(3, 4), places, _floats(3, 2),
        )  # fmt: skip
    for reduction in ("update", "add", "max"):
        _add(
            f"scatter_nd-{reduction}", lambda x, i, u, r=reduction: _OP.scatter_nd(x, i, u, r),
            _floats(3, 4), np.array([[0], [2]]), _floats(2, 4),
        )  # fmt: skip
    _add(
        "slice_scatter",
        lambda x, s: _OP.slice_scatter(x, s, 1, 5, 2, 0),
        _X[0].T.copy(),
        _floats(2, 3),
    )
    for descending in (False, True):
        _add(f"sort-{descending}", lambda x, d=descending: _OP.sort(x, 1, d), _X)
        _add(f"argsort-{descending}", lambda x, d=descending: _OP.argsort(x, -1, d, "int64"), _X)
    for kind in ("both", "values", "indices"):
        _add(f"topk-{kind}", lambda x, k=kind: _OP.topk(x, 2, 1, k, False, "int64"), _X)
    _add("nonzero", _OP.nonzero, np.array([[0, 1, 2], [3, 0, 0]], np.float32))
    numbers = np.array([3, 1, 3, 2])
    _add("unique", _OP.unique, numbers)
    _add("unique-all", lambda x: _OP.unique(x, True, True, True, True), numbers)
    edges = np.array([1.0, 2.0, 3.0], np.float32)
    for right in (False, True):
        _add(
            f"bucketize-{right}", lambda x, b, r=right: _OP.bucketize(x, b, r, r),
            np.array([[0.5, 1.0], [2.0, 3.5]], np.float32), edges,
        )  # fmt: skip


def _images() -> None:
    for method in ("nearest_neighbor", "linear", "cubic"):
        for mode in ("half_pixel", "align_corners", "asymmetric"):
            options = {"method": method, "coordinate_transformation_mode": mode}
            _add(
                f"image.resize2d-{method}-{mode}",
                lambda x, o=options: _IMAGE.resize2d(x, (5, 7), **o), _floats(1, 2, 3, 4),
            )  # fmt: skip
    _add("image.resize3d", lambda x: _IMAGE.resize3d(x, (3, 5, 7)), _floats(1, 2, 2, 3, 4))
    for method in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            options = {
                "method": method,
                "padding_mode": padding,
                "align_corners": padding == "zeros",
            }
            _add(
                f"image.grid_sample-{method}-{padding}",
                lambda x, g, o=options: _IMAGE.grid_sample(x, g, **o),
                _floats(1, 2, 4, 5), _floats(1, 2, 3, 3),
            )  # fmt: skip
    for align in (False, True):
        _add(
            f"image.affine_grid-{align}",
            lambda x, a=align: _IMAGE.affine_grid(x, (3, 4), a),
            _floats(2, 2, 3),
        )
    image, regions = _floats(1, 2, 8, 8), np.float32([[0, 1, 1, 5, 5], [0, 0, 2, 6, 7]])
    _add("vision.roi_pool", lambda x, r: _VISION.roi_pool(x, r, 3, 0.9), image, regions)
    for aligned in (False, True):
        for samples in (-1, 2):
            _add(
                f"vision.roi_align-{aligned}-{samples}",
                lambda x, r, a=aligned, s=samples: _VISION.roi_align(x, r, 3, 0.7, s, a),
                image, regions,
            )  # fmt: skip
    rows = [_ints(3, 1, 6, 1), _RANDOM.random((1, 6, 1)), np.sort(_RANDOM.random((1, 6, 4)) * 10)]
    boxes = np.concatenate(rows, -1).astype(np.float32)
    _add("vision.get_valid_counts", lambda x: _VISION.get_valid_counts(x, 0.3), boxes)
    for given in (True, False):
        _add(
            f"vision.non_max_suppression-{given}",
            lambda x, c, i, g=given: _VISION.non_max_suppression(
                x, c, i, iou_threshold=0.1, return_indices=g, invalid_to_bottom=not g
            ),
            boxes, np.int32([5]), np.arange(6, dtype=np.int32)[None],
        )  # fmt: skip
    limits = relax.const(2, "int64"), relax.const(0.3, "float32"), relax.const(0.1, "float32")
    for kind in ("onnx", "tensorflow"):
        _add(
            f"vision.all_class_non_max_suppression-{kind}",
            lambda b, s, k=kind: _VISION.all_class_non_max_suppression(b, s, *limits, k),
            np.sort(_floats(1, 6, 4)), _RANDOM.random((1, 2, 6)).astype(np.float32),
        )  # fmt: skip
    _add(
        "vision.multibox_transform_loc", _VISION.multibox_transform_loc,
        _floats(1, 3, 4), _floats(1, 16), np.sort(_floats(1, 4, 4)),
    )  # fmt: skip


def _quantized() -> None:
    scale, zero = np.float32([0.1, 0.2, 0.05]), np.int8([1, -2, 3])
    _add(
        "quantize",
        lambda x, s, z: _OP.quantize(x, s, z, axis=1, out_dtype="int8"),
        _X * 10,
        scale,
        zero,
    )
    _add(
        "quantize-scalar",
        lambda x, s, z: _OP.quantize(x, s, z, out_dtype="uint8"),
        _X * 10,
        np.float32(0.1),
        np.uint8(3),
    )
    _add(
        "quantize-number",
        lambda x, s, z: _OP.quantize(x, s, z, axis=0, out_dtype="int8"),
        np.float32(3.3),
        np.float32(0.5),
        np.int8(1),
    )
    _add(
        "quantize-float8",
        lambda x, s, z: _OP.quantize(x, s, z, out_dtype="float8_e5m2"),
        _X * 10,
        np.float32(0.1),
        np.int8(3),
    )
    for values in (_X, _X.astype(np.float16)):
        _add(f"dequantize-{values.dtype}", _OP.dequantize, values, np.float32(0.5), np.int8(2))
    codes = _ints(200, 2, 3, 4, dtype="int8")
    _add("dequantize", lambda x, s, z: _OP.dequantize(x, s, z, axis=1), codes, scale, zero)
    _add(
        "dequantize-half",
        lambda x, s, z: _OP.dequantize(x, s, z, axis=1, out_dtype="float16"),
        codes,
        scale,
        zero,
    )


for _group in (
    _elementwise, _activations, _reductions, _products, _layers, _norms, _arrangement, _creation,
    _lookups, _images, _quantized,
):  # fmt: skip
    _group()
