"""One small MXNet graph for each thing that converters from MXNet are known to get wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

IMAGE = (2, 4, 9, 11)


@dataclass(frozen=True)
class Toy:
    """A graph and how to run it.

    Attributes:
        name: What it shows.
        build: Makes the symbol from ``mxnet.sym`` and the variable ``data``.
        shapes: Shape of each input.
        dtypes: Dtype of inputs that are not float32.
        high: Integers are drawn from 0 up to this, exclusive.
        mkldnn: Whether MXNet with MKL-DNN, too, does what its documentation says.
        tolerance: Bound of the largest difference, in deviations of the output.
    """

    name: str
    build: Callable[[Any, Any], Any]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: {"data": IMAGE})
    dtypes: Mapping[str, str] = field(default_factory=dict)
    high: int = 10
    mkldnn: bool = True
    tolerance: float = 1e-5

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Random values for all inputs."""
        rng = np.random.default_rng(seed)
        return {
            name: rng.integers(0, self.high, shape).astype(self.dtypes[name])
            if name in self.dtypes
            else rng.standard_normal(shape).astype(np.float32)
            for name, shape in self.shapes.items()
        }


def toy(name: str, build: Callable[[Any, Any], Any], *shape: int, **options: Any) -> Toy:
    """A graph whose only input is ``data``, an image if no shape is given."""
    return Toy(name, build, {"data": shape or IMAGE}, **options)


def conv_bn(**attrs: Any) -> Callable[[Any, Any], Any]:
    return lambda s, x: s.BatchNorm(
        s.Convolution(x, num_filter=6, kernel=(3, 3), name="conv"), name="bn", **attrs
    )


def arcface_head(s: Any, x: Any) -> Any:
    x = s.LeakyReLU(s.Convolution(x, num_filter=6, kernel=(3, 3)), act_type="prelu")
    x = s.Dropout(s.BatchNorm(x, fix_gamma=False, eps=2e-5), p=0.4)
    x = s.FullyConnected(x, num_hidden=16, name="pre_fc1")
    return s.BatchNorm(x, fix_gamma=True, eps=2e-5, name="fc1")


NORMALISATION = [
    toy("conv_bn_fix_gamma", conv_bn(fix_gamma=True)),
    toy("conv_bn_default", conv_bn()),
    toy("conv_bn_gamma", conv_bn(fix_gamma=False, eps=2e-5)),
    toy("conv_bn_global_stats", conv_bn(fix_gamma=False, use_global_stats=True)),
    toy("bn_last_axis", lambda s, x: s.BatchNorm(x, axis=-1, fix_gamma=False)),
    toy("bn_last_axis_fix_gamma", lambda s, x: s.BatchNorm(x, axis=-1), 2, 5, 7),
    toy("bn_axis_2", lambda s, x: s.BatchNorm(x, axis=2, fix_gamma=False)),
    toy("bn_rank_2", lambda s, x: s.BatchNorm(x, fix_gamma=False), 3, 8),
    toy("bn_without_conv", lambda s, x: s.BatchNorm(s.relu(x), fix_gamma=False)),
    toy("arcface_head", arcface_head),
    toy("instance_norm", lambda s, x: s.InstanceNorm(x, eps=1e-3)),
    toy("layer_norm", lambda s, x: s.LayerNorm(x), 2, 5, 16),
    toy("layer_norm_axis_1", lambda s, x: s.LayerNorm(x, axis=1, eps=1e-3), 2, 5, 16),
    toy("group_norm", lambda s, x: s.GroupNorm(x, num_groups=2)),
    toy("lrn", lambda s, x: s.LRN(x, nsize=3, alpha=0.1, beta=0.6, knorm=1.5)),
    *[
        toy(f"l2_{mode}", lambda s, x, mode=mode: s.L2Normalization(x, mode=mode, eps=1e-3))
        for mode in ("instance", "channel", "spatial")
    ],
]

LEAKY = {
    "leaky": {"slope": 0.1},
    "elu": {"slope": 0.7},
    "rrelu": {"lower_bound": 0.1, "upper_bound": 0.3},
    "selu": {},
    "gelu": {},
    "prelu": {},
}

RANKS = {2: (3, 8), 3: (2, 5, 7), 4: IMAGE, 5: (2, 3, 4, 5, 6)}

ACTIVATION = [
    *[
        toy(f"prelu_rank_{rank}", lambda s, x: s.LeakyReLU(x, act_type="prelu"), *shape)
        for rank, shape in RANKS.items()
    ],
    toy(
        "prelu_one_slope", lambda s, x: s.LeakyReLU(x, s.var("slope", shape=(1,)), act_type="prelu")
    ),
    *[
        toy(
            f"leaky_{kind}",
            # The second output of rrelu, a mask, is not filled at inference.
            lambda s, x, k=kind, a=attrs: s.LeakyReLU(x, act_type=k, **a)[0],
        )
        for kind, attrs in LEAKY.items()
    ],
    toy("leaky_default", lambda s, x: s.LeakyReLU(x)),
    *[
        toy(f"activation_{kind}", lambda s, x, kind=kind: s.Activation(x, act_type=kind))
        for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")
    ],
    toy("softmax_activation_default", lambda s, x: s.SoftmaxActivation(x), 3, 8),
    toy("softmax_activation_instance", lambda s, x: s.SoftmaxActivation(x, mode="instance")),
    toy("softmax_activation_channel", lambda s, x: s.SoftmaxActivation(x, mode="channel")),
    toy("softmax_axis_temperature", lambda s, x: s.softmax(x, axis=1, temperature=2.0)),
    toy("log_softmax", lambda s, x: s.log_softmax(x, axis=2)),
]


def checkpoint(**attrs: Any) -> Callable[[Any, Any], Any]:
    """A convolution and SoftmaxOutput with a label that MXNet names."""
    return lambda s, x: s.SoftmaxOutput(
        s.Convolution(x, num_filter=5, kernel=(3, 3)), name="softmax", **attrs
    )


def dense_with(head: str, **attrs: Any) -> Callable[[Any, Any], Any]:
    return lambda s, x: getattr(s, head)(
        s.FullyConnected(x, num_hidden=6, name="fc"), name="out", **attrs
    )


def label_as_input(s: Any, x: Any) -> Any:
    """A label that does more than train: it stays an input."""
    label = s.var("label")
    return s.Group([s.SoftmaxOutput(x, label, name="out"), label * 2])


LOSS_HEADS = [
    toy("checkpoint", dense_with("SoftmaxOutput"), 3, 8),
    toy("checkpoint_multi_output", checkpoint(multi_output=True, use_ignore=True)),
    toy("checkpoint_preserve_shape", checkpoint(preserve_shape=True)),
    # One softmax over all that a sample has: the exponentials of two runtimes differ so far.
    toy("checkpoint_rank_4", checkpoint(), mkldnn=False, tolerance=3e-5),
    toy(
        "checkpoint_named_label",
        lambda s, x: s.SoftmaxOutput(s.FullyConnected(x, num_hidden=5), s.var("target"), name="o"),
        3,
        8,
    ),
    toy("linear_regression", dense_with("LinearRegressionOutput", grad_scale=2.0)),
    toy("logistic_regression", dense_with("LogisticRegressionOutput")),
    toy("mae_regression", dense_with("MAERegressionOutput")),
    toy("svm", dense_with("SVMOutput", margin=0.5, use_linear=True)),
    toy("make_loss", lambda s, x: s.MakeLoss(s.square(x), grad_scale=3.0, name="loss")),
    toy("make_loss_snake_case", lambda s, x: s.make_loss(s.square(x))),
    toy("block_grad", lambda s, x: s.BlockGrad(s.tanh(x), name="stop")),
    Toy("label_as_input", label_as_input, {"data": (3, 8), "label": (3,)}),
]

DENSE = [
    toy("dense_rank_4", lambda s, x: s.FullyConnected(x, num_hidden=5)),
    toy("dense_rank_2", lambda s, x: s.FullyConnected(x, num_hidden=5, no_bias=True), 3, 8),
    *[
        toy(
            f"dense_no_flatten_rank_{rank}",
            lambda s, x: s.FullyConnected(x, num_hidden=5, flatten=False),
            *shape,
        )
        for rank, shape in RANKS.items()
        if rank < 5
    ],
    toy(
        "dense_no_flatten_no_bias",
        lambda s, x: s.FullyConnected(x, num_hidden=5, flatten=False, no_bias=True),
        2,
        3,
        8,
    ),
    *[
        Toy(
            f"embedding_{dtype}",
            lambda s, x: s.Embedding(x, input_dim=10, output_dim=6),
            {"data": (3, 5)},
            {"data": dtype},
        )
        for dtype in ("float32", "int32")
    ],
]


def deconvolution(**attrs: Any) -> Callable[[Any, Any], Any]:
    return lambda s, x: s.Deconvolution(x, num_filter=6, **attrs)


DECONVOLUTION = [
    toy("deconv", deconvolution(kernel=(3, 3))),
    toy("deconv_bias", deconvolution(kernel=(3, 2), stride=(2, 3), no_bias=False)),
    toy("deconv_adj", deconvolution(kernel=(3, 3), stride=(2, 3), pad=(1, 1), adj=(1, 2))),
    toy(
        "deconv_target",
        deconvolution(kernel=(4, 4), stride=(2, 2), target_shape=(18, 22)),
        mkldnn=False,
    ),
    toy(
        "deconv_odd_target",
        deconvolution(kernel=(4, 3), stride=(2, 2), target_shape=(17, 22)),
        mkldnn=False,
    ),
    toy("deconv_groups", deconvolution(kernel=(3, 3), stride=(2, 2), num_group=2)),
    toy("deconv_dilate", deconvolution(kernel=(3, 3), dilate=(2, 2))),
    toy("deconv_1d", deconvolution(kernel=(3,), stride=(2,)), 2, 4, 9),
    toy(
        "conv_all",
        lambda s, x: s.Convolution(
            x,
            num_filter=6,
            kernel=(3, 2),
            stride=(2, 1),
            pad=(2, 1),
            dilate=(1, 2),
            num_group=2,
            layout="NCHW",
        ),
    ),
    toy("conv_1d", lambda s, x: s.Convolution(x, num_filter=6, kernel=(3,), pad=(1,)), 2, 4, 9),
    toy("conv_3d", lambda s, x: s.Convolution(x, num_filter=6, kernel=(2, 3, 1)), 1, 2, 4, 5, 6),
]


def pool(**attrs: Any) -> Callable[[Any, Any], Any]:
    return lambda s, x: s.Pooling(x, name="pool", **attrs)


KINDS: dict[str, dict[str, Any]] = {
    "max": {"pool_type": "max"},
    "avg": {"pool_type": "avg"},
    "avg_include": {"pool_type": "avg", "count_include_pad": True},
    "avg_exclude": {"pool_type": "avg", "count_include_pad": False},
    "sum": {"pool_type": "sum"},
    "lp1": {"pool_type": "lp", "p_value": 1},
    "lp2": {"pool_type": "lp", "p_value": 2},
    "lp3": {"pool_type": "lp", "p_value": 3},
}
"""Only 2-D lp pooling is in MXNet for p=3."""

SIZES = {1: (2, 3, 12), 2: (2, 3, 12, 9), 3: (1, 2, 6, 7, 8)}

# kernel, stride and pad of each axis: with the full convention the first has windows that end
# past the padding, the second none that do, the third no padding.
WINDOWS = {"past": (3, 2, 1), "even": (2, 1, 1), "bare": (3, 2, 0)}


def _pool(kind: str, convention: str, window: str, ndim: int) -> Toy:
    kernel, stride, pad = ((each,) * ndim for each in WINDOWS[window])
    attrs = KINDS[kind] | {"kernel": kernel, "stride": stride, "pad": pad}
    return toy(
        f"pool_{kind}_{convention}_{window}_{ndim}d",
        pool(pooling_convention=convention, **attrs),
        *SIZES[ndim],
    )


POOLING = [
    *[
        _pool(kind, convention, window, 2)
        for kind, convention, window in product(KINDS, ("valid", "full"), WINDOWS)
    ],
    *[
        _pool(kind, convention, "past", ndim)
        for kind, convention, ndim in product(list(KINDS)[:5], ("valid", "full"), (1, 3))
    ],
    *[
        toy(
            f"pool_global_{kind}_{ndim}d",
            pool(global_pool=True, kernel=(1,) * ndim, **KINDS[kind]),
            *SIZES[ndim],
        )
        for kind, ndim in product(("max", "avg", "sum", "lp2"), SIZES)
    ],
    toy("pool_global_no_kernel", pool(global_pool=True, pool_type="avg")),
    toy("pool_uneven", pool(kernel=(2, 3), stride=(1, 2), pad=(0, 1), pool_type="max")),
    toy("pool_defaults", pool(kernel=(2, 2))),
    *[
        toy(f"adaptive_{name}", lambda s, x, a=attrs: s.contrib.AdaptiveAvgPooling2D(x, **a))
        for name, attrs in {
            "default": {},
            "1": {"output_size": 1},
            "4x4": {"output_size": 4},
            "3x5": {"output_size": (3, 5)},
            "12x22": {"output_size": (12, 22)},
        }.items()
    ],
    toy(
        "adaptive_even", lambda s, x: s.contrib.AdaptiveAvgPooling2D(x, output_size=4), 2, 3, 8, 12
    ),
]


RESIZES: dict[str, dict[str, Any]] = {
    "size_up": {"height": 20, "width": 17},
    "size_down": {"height": 5, "width": 6},
    "size_scale": {"scale_height": 2.0, "scale_width": 1.5},
    "odd_scale": {"mode": "odd_scale", "scale_height": 2.0, "scale_width": 2.0},
    "to_even_down": {"mode": "to_even_down"},
    "to_even_up": {"mode": "to_even_up"},
    "to_odd_down": {"mode": "to_odd_down"},
    "to_odd_up": {"mode": "to_odd_up"},
}

RESAMPLING = [
    *[
        toy(
            f"resize_{name}_{'corners' if corners else 'pixels'}",
            lambda s, x, a=attrs, c=corners: s.contrib.BilinearResize2D(x, align_corners=c, **a),
            2,
            3,
            9,
            12,
        )
        for (name, attrs), corners in product(RESIZES.items(), (True, False))
    ],
    *[
        Toy(
            f"resize_like_{'corners' if corners else 'pixels'}",
            lambda s, x, c=corners: s.contrib.BilinearResize2D(
                x, s.var("like"), mode="like", align_corners=c
            ),
            {"data": IMAGE, "like": (2, 1, 14, 5)},
        )
        for corners in (True, False)
    ],
    toy("resize_default_corners", lambda s, x: s.contrib.BilinearResize2D(x, height=18, width=7)),
    toy("upsample_nearest", lambda s, x: s.UpSampling(x, scale=3, sample_type="nearest")),
    *[
        Toy(
            f"upsample_nearest_{mode}",
            lambda s, x, mode=mode: s.UpSampling(
                x, s.var("small"), scale=2, sample_type="nearest", multi_input_mode=mode, num_args=2
            ),
            {"data": (2, 4, 8, 12), "small": (2, 4, 4, 6)},
        )
        for mode in ("concat", "sum")
    ],
    *[
        toy(
            f"upsample_bilinear_{scale}",
            lambda s, x, n=scale: s.UpSampling(
                x, scale=n, sample_type="bilinear", num_filter=4, num_args=2, name="up"
            ),
        )
        for scale in (2, 3)
    ],
    toy("crop_centre", lambda s, x: s.Crop(x, h_w=(5, 6), center_crop=True, num_args=1)),
    toy("crop_offset", lambda s, x: s.Crop(x, offset=(2, 3), h_w=(5, 6), num_args=1)),
    *[
        Toy(
            f"crop_like{name}",
            lambda s, x, a=attrs: s.Crop(x, s.var("like"), num_args=2, **a),
            {"data": IMAGE, "like": (2, 1, 6, 8)},
        )
        for name, attrs in {
            "": {},
            "_offset": {"offset": (1, 2)},
            "_centre": {"center_crop": True},
        }.items()
    ],
]

CODES = {
    "keep_infer": (0, -1),
    "rest": (0, -2),
    "merge": (0, -3, 0),
    "split": (-4, 1, 2, -2),
    "split_infer": (0, -4, -1, 2, 0, 0),
    "flat": (-1,),
    "explicit": (2, 2, 2, 99),
}

INDEXING = [
    *[
        toy(f"reshape_{name}", lambda s, x, c=codes: s.Reshape(s.tanh(x), shape=c))
        for name, codes in CODES.items()
    ],
    toy("reshape_reverse", lambda s, x: s.Reshape(x, shape=(-1, 0, 0), reverse=True)),
    toy("reshape_reverse_keep", lambda s, x: s.Reshape(x, shape=(-1, 0), reverse=True), 10, 5, 4),
    toy("slice", lambda s, x: s.slice(x, begin=(0, 1, 2), end=(2, 3, -1))),
    toy("slice_none", lambda s, x: s.slice(x, begin=(None, 1, None), end=(None, None, 5))),
    toy(
        "slice_step",
        lambda s, x: s.slice(x, begin=(0, None, None, 1), end=(None,) * 4, step=(1, -1, -2, 3)),
    ),
    toy("slice_axis", lambda s, x: s.slice_axis(x, axis=-1, begin=-7, end=None)),
    toy("slice_axis_end", lambda s, x: s.slice_axis(x, axis=1, begin=1, end=-1)),
    toy("slice_channel", lambda s, x: s.SliceChannel(x, num_outputs=2, name="part")),
    toy(
        "slice_channel_squeeze",
        lambda s, x: s.SliceChannel(x, num_outputs=9, axis=2, squeeze_axis=True, name="part"),
    ),
    toy("slice_channel_one", lambda s, x: s.SliceChannel(x, num_outputs=1, name="part")),
    toy("slice_channel_one_of", lambda s, x: s.SliceChannel(x, num_outputs=2, name="part")[1] * 2),
    toy("flatten", lambda s, x: s.Flatten(x)),
    toy("transpose", lambda s, x: s.transpose(x, axes=(0, 2, 3, 1))),
    toy("swap_axes", lambda s, x: s.SwapAxis(x, dim1=1, dim2=3)),
    toy("pad_edge", lambda s, x: s.Pad(x, mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 3, 1))),
    toy(
        "pad_constant",
        lambda s, x: s.Pad(
            x, mode="constant", constant_value=1.5, pad_width=(0, 0, 0, 0, 1, 2, 3, 1)
        ),
    ),
    toy("pad_reflect", lambda s, x: s.Pad(x, mode="reflect", pad_width=(0, 0, 0, 0, 1, 2, 3, 1))),
    toy("repeat_tile", lambda s, x: s.tile(s.repeat(x, repeats=2, axis=1), reps=(1, 1, 2, 1))),
    toy("mean_all", lambda s, x: s.mean(x, axis=(2, 3))),
    toy("clip", lambda s, x: s.clip(x, -0.5, 0.7)),
]


def shared(s: Any, x: Any) -> Any:
    """Two layers with one weight and one bias."""
    weight, bias = s.var("w", shape=(11, 11)), s.var("b", shape=(11,))
    for _ in range(2):
        x = s.tanh(s.FullyConnected(x, weight=weight, bias=bias, num_hidden=11, flatten=False))
    return x


def shared_with_transpose(s: Any, x: Any) -> Any:
    """One weight as a dense layer's and as an operand."""
    weight = s.var("w", shape=(11, 11))
    y = s.FullyConnected(x, weight=weight, no_bias=True, num_hidden=11)
    return s.broadcast_add(s.dot(y, weight), s.sum(weight))


def weight_as_head(s: Any, x: Any) -> Any:
    weight = s.var("w", shape=(1, 5))
    return s.Group([s.broadcast_add(x, weight), weight])


def shared_statistics(s: Any, x: Any) -> Any:
    """Two convolutions with the same weight, normalised apart."""
    weight = s.var("w")
    parts = [
        s.BatchNorm(
            s.Convolution(x, weight=weight, no_bias=True, num_filter=4, kernel=(3, 3)),
            fix_gamma=False,
            name=f"bn{i}",
        )
        for i in range(2)
    ]
    return s.Concat(*parts, dim=1)


def internals(s: Any, x: Any) -> Any:
    conv = s.Convolution(x, num_filter=4, kernel=(3, 3), name="conv")
    relu = s.Activation(s.BatchNorm(conv, name="bn", fix_gamma=False), act_type="relu", name="r")
    dense = s.FullyConnected(relu, num_hidden=3, name="fc")
    inner = s.SoftmaxOutput(dense, name="softmax").get_internals()
    return s.Group([inner[n] for n in ("softmax_output", "conv_output", "r_output", "bn_output")])


OUTPUTS = [
    # MKL-DNN fuses the three layers and overwrites what the other heads show.
    toy("internal_outputs", internals, mkldnn=False),
    Toy(
        "plain_heads",
        lambda s, x: s.Group([s.var("other"), s.tanh(x, name="t"), x]),
        {"other": (2, 3), "data": (2, 5)},
    ),
    toy("only_a_plain_head", lambda s, x: x, 2, 5),
    toy("same_head_twice", lambda s, x: s.Group([s.tanh(x, name="t")] * 2), 2, 5),
    Toy(
        "order_of_heads",
        lambda s, x: s.Group([s.exp(s.tanh(x, name="c"), name="b"), s.relu(s.var("y"), name="a")]),
        {"data": (2, 5), "y": (3, 4)},
    ),
    toy("weight_as_head", weight_as_head, 2, 5),
    toy("shared_parameters", shared),
    toy("shared_with_transpose", shared_with_transpose, 2, 11),
    toy("shared_statistics", shared_statistics),
    toy("preprocessing", lambda s, x: s.Convolution((x - 0.5) * 1.75, num_filter=4, kernel=(3, 3))),
    toy("scalars", lambda s, x: 2.0 / (1.5 + (3 - x) * (3 - x)) - (x / 4) ** 2),
    toy("sum_of_many", lambda s, x: s.ElementWiseSum(x, s.tanh(x), s.relu(x))),
    toy("copy_dropout", lambda s, x: s.Dropout(s.identity(s.tanh(x)), p=0.5, name="last")),
]

TOYS: list[Toy] = [
    *NORMALISATION,
    *ACTIVATION,
    *LOSS_HEADS,
    *DENSE,
    *DECONVOLUTION,
    *POOLING,
    *RESAMPLING,
    *INDEXING,
    *OUTPUTS,
]
