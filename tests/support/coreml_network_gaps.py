"""What NeuralNetworks do not say, by sample."""

from __future__ import annotations

_AXES = "Core ML has tensors of five axes at most"
_COMPUTED = "layers want the weight of such a convolution constant"
_CONSENT = "rescaling integers takes 64 bits, which float32 has not: on floats, with consent"
_FLOAT8 = "networks have no floats of 8 bits"
_INT4 = "networks have integers of 4 bits as weights alone"
_NO_ELEMENTS = "networks have no tensors without elements"
_OPEN_STACK = "a stack in a loop has a most length from the first"

_WHOLE = "what is kept whole for a function of the user's is written by that alone"

_ALWAYS = {
    "serde.foreign-0": _WHOLE,
    "serde.foreign-1": _WHOLE,
    "dyn.image.resize2d-1": "no layer resizes to computed lengths",
    "dyn.nn.pad-1": "layers continue a tensor by widths that are constant",
    "dyn.nn.upsampling-1": "layers scale by constants",
    "dyn.nn.upsampling3d-1": "layers scale by constants",
    "dyn.strided_slice-1": "layers slice by steps that are constant",
    "image.dilation2d-2": "whole numbers of 32 bits wrap around here, and floats do not",
    "layout_transform-3": _AXES,
    **dict.fromkeys(
        (
            "nn.conv1d-1", "nn.conv1d_transpose-0", "nn.conv1d_transpose-1", "nn.conv2d-0",
            "nn.conv2d_backward_weight-1", "nn.conv2d_backward_weight-2",
            "nn.conv2d_transpose-0", "nn.conv2d_transpose-1", "nn.conv2d_transpose-2",
            "nn.conv2d_transpose-3", "nn.conv3d-0", "nn.conv3d-1", "nn.conv3d_transpose-0",
            "nn.conv3d_transpose-1", "serde.conv_integer-3", "serde.conv_integer-4",
            "serde.qlinear_conv2d-1",
        ),
        _COMPUTED,
    ),
    **dict.fromkeys(
        (
            "qnn.add-0", "qnn.add-1", "qnn.add-2", "qnn.add-3", "qnn.avg_pool2d-0",
            "qnn.avg_pool2d-1", "qnn.concatenate-0", "qnn.concatenate-1",
            "qnn.contrib_dense_pack-0", "qnn.leaky_relu-0", "qnn.leaky_relu-1",
            "qnn.mul-0", "qnn.mul-1", "qnn.mul-2", "qnn.mul-3",
            "qnn.softmax-0", "qnn.softmax-1", "qnn.subtract-0", "qnn.subtract-1",
            "qnn.subtract-2", "qnn.subtract-3",
            "fixed_point_multiply-0", "fixed_point_multiply-1", "fixed_point_multiply_per_axis-0",
            "fixed_point_multiply_per_axis-1", "qnn.batch_matmul-0", "qnn.batch_matmul-1",
            "qnn.conv2d-0", "qnn.conv2d-1", "qnn.conv2d-2", "qnn.conv2d-3", "qnn.conv2d-4",
            "qnn.conv2d_transpose-0", "qnn.conv2d_transpose-1", "qnn.dense-0", "qnn.dense-1",
            "qnn.dense-2", "qnn.dense-3", "qnn.requantize-0", "qnn.requantize-1",
            "qnn.requantize-2", "qnn.requantize-3", "qnn.requantize-4", "qnn.requantize-5",
            "qnn.requantize-6", "qnn.requantize-7",
        ),
        _CONSENT,
    ),
    "qnn.quantize-3": "float32, in which layers quantise, does not hold all of int32",
    "repeat-2": _NO_ELEMENTS,
    "reshape-7": _NO_ELEMENTS,
    "serde.col2im-4": _AXES,
    "serde.deformable_psroi_pool-0": _AXES,
    "serde.deformable_psroi_pool-1": _AXES,
    "serde.dequantize_linear-5": _FLOAT8,
    "serde.dequantize_linear-6": _INT4,
    "serde.loop-1": _OPEN_STACK,
    "serde.loop-3": _NO_ELEMENTS,
    "serde.loop-5": "networks have no sequences of tensors",
    "serde.non_max_suppression-3": _NO_ELEMENTS,
    "serde.psroi_pool-0": _AXES,
    "serde.psroi_pool-1": _AXES,
    "serde.quantize_linear-5": _FLOAT8,
    "serde.quantize_linear-6": _FLOAT8,
    "serde.quantize_linear-7": _INT4,
    "serde.scan-3": _NO_ELEMENTS,
    **dict.fromkeys(
        (
            "vision.all_class_non_max_suppression-0", "vision.all_class_non_max_suppression-1",
            "vision.all_class_non_max_suppression-2",
        ),
        "rows are filled up to as many as there is room for, by a number that is computed",
    ),
    "sliding_window-0": _AXES,
    "strided_slice-7": _NO_ELEMENTS,
}  # fmt: skip

_REPEATS = "tensors are repeated as often as is computed from iOS14 on"
_VOLUMES = "pooling along three axes came with iOS14"
_ORDER = "layers put lengths that are not fixed in order from iOS14 on"

_BEFORE_14 = {
    "dyn.broadcast_to-1": _REPEATS,
    "dyn.tile-1": _REPEATS,
    "dyn.tile-2": _REPEATS,
    "nn.avg_pool3d-0": _VOLUMES,
    "nn.avg_pool3d-1": _VOLUMES,
    "nn.max_pool3d-0": _VOLUMES,
    "nn.max_pool3d-1": _VOLUMES,
    "serde.lp_pool-3": _VOLUMES,
    **{f"serde.unique-{index}": _ORDER for index in range(3, 6)},
}

COREML_NETWORK_GAPS: dict[tuple[str, str], str] = {
    **{
        ("coreml-network", f"{sample}-{target}"): reason
        for sample, reason in _ALWAYS.items()
        for target in ("iOS13", "iOS14")
    },
    **{("coreml-network", f"{sample}-iOS13"): reason for sample, reason in _BEFORE_14.items()},
}
