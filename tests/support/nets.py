"""Face recognition and face detection nets as people built them in MXNet.

The layers and their attributes are those of the widespread InsightFace recipes:
preprocessing in the graph, BatchNorm of both kinds of ``fix_gamma``, PReLU, a fully
connected layer on the feature map itself, and a last BatchNorm called ``fc1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

EPS = 2e-5
PIXEL_MEAN, PIXEL_SCALE = 127.5, 0.0078125


def _input(mx: Any, preprocess: bool) -> Any:
    data = mx.sym.Variable("data")
    return (data - PIXEL_MEAN) * PIXEL_SCALE if preprocess else data


def _norm(mx: Any, x: Any, name: str, *, fix_gamma: bool = False) -> Any:
    return mx.sym.BatchNorm(x, fix_gamma=fix_gamma, eps=EPS, momentum=0.9, name=name)


def _prelu(mx: Any, x: Any, name: str) -> Any:
    return mx.sym.LeakyReLU(x, act_type="prelu", name=name)


def _conv(mx: Any, x: Any, name: str, filters: int, size: int, **attrs: Any) -> Any:
    return mx.sym.Convolution(
        x, num_filter=filters, kernel=(size, size), no_bias=True, name=name, **attrs
    )


def _embedding(mx: Any, x: Any, length: int) -> Any:
    """The head E of ArcFace; FullyConnected keeps its default ``flatten``."""
    x = mx.sym.Dropout(_norm(mx, x, "bn1"), p=0.4)
    x = mx.sym.FullyConnected(x, num_hidden=length, name="pre_fc1")
    return _norm(mx, x, "fc1", fix_gamma=True)


def arcface(
    mx: Any,
    *,
    units: Sequence[int] = (1, 2, 1, 1),
    filters: Sequence[int] = (8, 8, 12, 16, 24),
    embedding: int = 32,
    preprocess: bool = True,
) -> Any:
    """LResNet-E-IR: (N, 3, 112, 112) pixels to an embedding called ``fc1_output``.

    Args:
        mx: The module ``mxnet``.
        units: Residual units a stage; (3, 4, 6, 3) is the 34-layer net.
        filters: Channels of the stem and of each stage; (64, 64, 128, 256, 512) at full size.
        embedding: Length of the result; 512 at full size.
        preprocess: Whether the graph itself subtracts the mean and scales.
    """
    x = _conv(mx, _input(mx, preprocess), "conv0", filters[0], 3, pad=(1, 1))
    x = _prelu(mx, _norm(mx, x, "bn0"), "relu0")
    for stage, (count, channels) in enumerate(zip(units, filters[1:], strict=True), start=1):
        for unit in range(1, count + 1):
            x = _ir_unit(mx, x, f"stage{stage}_unit{unit}", channels, first=unit == 1)
    return _embedding(mx, x, embedding)


def _ir_unit(mx: Any, x: Any, name: str, channels: int, *, first: bool) -> Any:
    stride = (2, 2) if first else (1, 1)
    y = _norm(mx, x, f"{name}_bn1")
    y = _conv(mx, y, f"{name}_conv1", channels, 3, pad=(1, 1))
    y = _prelu(mx, _norm(mx, y, f"{name}_bn2", fix_gamma=True), f"{name}_relu1")
    y = _conv(mx, y, f"{name}_conv2", channels, 3, pad=(1, 1), stride=stride)
    y = _norm(mx, y, f"{name}_bn3")
    if first:
        x = _norm(mx, _conv(mx, x, f"{name}_conv1sc", channels, 1, stride=stride), f"{name}_sc")
    return y + x


def mobilefacenet(mx: Any, *, width: int = 16, embedding: int = 32, preprocess: bool = True) -> Any:
    """MobileFaceNet: (N, 3, 112, 112) pixels to an embedding called ``fc1_output``.

    Args:
        mx: The module ``mxnet``.
        width: Channels of the first stage; 64 at full size.
        embedding: Length of the result; 128 at full size.
        preprocess: Whether the graph itself subtracts the mean and scales.
    """
    x = _layer(mx, _input(mx, preprocess), "conv_1", width, 3, stride=(2, 2), pad=(1, 1))
    x = _layer(mx, x, "conv_2_dw", width, 3, pad=(1, 1), num_group=width)
    stages = [(2 * width, width, 2), (4 * width, 2 * width, 3), (4 * width, 2 * width, 1)]
    for number, (inner, outer, repeats) in enumerate(stages, start=3):
        x = _bottleneck(mx, x, f"dconv_{number}", inner, outer, stride=(2, 2))
        for i in range(repeats):
            x = x + _bottleneck(mx, x, f"res_{number}_{i}", inner, outer, stride=(1, 1))
    x = _layer(mx, x, "conv_6sep", 8 * width, 1)
    x = _conv(mx, x, "conv_6dw7_7", 8 * width, 7, num_group=8 * width)
    return _embedding(mx, _norm(mx, x, "conv_6dw7_7_batchnorm"), embedding)


def _layer(mx: Any, x: Any, name: str, filters: int, size: int, **attrs: Any) -> Any:
    x = _conv(mx, x, f"{name}_conv2d", filters, size, **attrs)
    x = _norm(mx, x, f"{name}_batchnorm", fix_gamma=False)
    return _prelu(mx, x, f"{name}_relu")


def _bottleneck(
    mx: Any, x: Any, name: str, inner: int, outer: int, *, stride: tuple[int, int]
) -> Any:
    x = _layer(mx, x, f"{name}_sep", inner, 1)
    x = _layer(mx, x, f"{name}_dw", inner, 3, stride=stride, pad=(1, 1), num_group=inner)
    x = _conv(mx, x, f"{name}_proj_conv2d", outer, 1)
    return _norm(mx, x, f"{name}_proj_batchnorm", fix_gamma=True)


def retinaface(mx: Any, *, width: int = 8) -> Any:
    """A RetinaFace: nine heads (scores, boxes and landmarks at strides 32, 16 and 8).

    Args:
        mx: The module ``mxnet``.
        width: Channels of the backbone's first layer.
    """
    x = mx.sym.Variable("data")
    features = []
    for depth in range(5):
        x = _conv(mx, x, f"body{depth}", width * 2 ** min(depth, 3), 3, stride=(2, 2), pad=(1, 1))
        x = mx.sym.Activation(_norm(mx, x, f"body{depth}_bn"), act_type="relu")
        features.append(x)
    outputs, above = [], None
    for stride, feature in zip((32, 16, 8), features[:1:-1], strict=True):
        lateral = _fpn_layer(mx, feature, f"rf_c{stride}_lateral", 2 * width, 1)
        if above is not None:
            up = mx.sym.UpSampling(above, scale=2, sample_type="nearest", name=f"up{stride}")
            up = mx.sym.Crop(up, lateral, name=f"crop{stride}")
            lateral = mx.sym.ElementWiseSum(lateral, up, name=f"plus{stride}")
            lateral = _fpn_layer(mx, lateral, f"rf_c{stride}_aggr", 2 * width, 3, pad=(1, 1))
        above = lateral
        outputs += _face_heads(mx, _context(mx, lateral, f"rf_c{stride}", width), stride)
    return mx.sym.Group(outputs)


def _fpn_layer(mx: Any, x: Any, name: str, filters: int, size: int, **attrs: Any) -> Any:
    x = mx.sym.Convolution(x, num_filter=filters, kernel=(size, size), name=name, **attrs)
    return mx.sym.Activation(_norm(mx, x, f"{name}_bn"), act_type="relu", name=f"{name}_relu")


def _context(mx: Any, x: Any, name: str, width: int) -> Any:
    """The context module of SSH: three receptive fields side by side."""
    one = _fpn_layer(mx, x, f"{name}_det_conv1", width, 3, pad=(1, 1))
    two = _fpn_layer(mx, x, f"{name}_det_context_conv1", width, 3, pad=(1, 1))
    three = _fpn_layer(mx, two, f"{name}_det_context_conv3", width, 3, pad=(1, 1))
    return mx.sym.Concat(one, two, three, dim=1, name=f"{name}_det_concat")


def _face_heads(mx: Any, x: Any, stride: int, anchors: int = 2) -> list[Any]:
    def head(name: str, values: int) -> Any:
        return mx.sym.Convolution(
            x, num_filter=values * anchors, kernel=(1, 1), name=f"face_rpn_{name}_stride{stride}"
        )

    scores = mx.sym.Reshape(head("cls_score", 2), shape=(0, 2, -1, 0))
    scores = mx.sym.SoftmaxActivation(scores, mode="channel")
    scores = mx.sym.Reshape(
        scores, shape=(0, 2 * anchors, -1, 0), name=f"face_rpn_cls_prob_reshape_stride{stride}"
    )
    return [scores, head("bbox_pred", 4), head("landmark_pred", 10)]
