"""What ML Programs do not say of layers, images, loops and quantised operators, by sample."""

from __future__ import annotations

_DILATED = "MIL's convolutions with gaps in their windows want a constant weight"
_TRANSPOSED = "MIL's transposed convolutions want a constant weight before iOS17"
_NARROW = "programs before iOS17 convert no integers of 8 and 16 bits"
_CONSENT = "rescaling integers takes 64 bits, which MIL has not: on floats, with consent"
_AXES = "Core ML has tensors of five axes at most"
_FLOAT8 = "MIL has no floats of 8 bits"
_INT4 = "MIL has integers of 4 bits as constants alone"
_NO_ELEMENTS = "ML Programs have no tensors without elements"
_OPEN_STACK = "a stack in a loop of MIL has a most length from the first"

_WHOLE = "what is kept whole for a function of the user's is written by that alone"

_ALWAYS = {
    "serde.foreign-0": _WHOLE,
    "serde.foreign-1": _WHOLE,
    "dyn.image.resize2d-1": "MIL has no resizing to computed lengths by these places",
    "dyn.nn.upsampling-1": "MIL scales by constants",
    "dyn.nn.upsampling3d-1": "MIL scales by constants",
    **dict.fromkeys(
        (
            "nn.conv1d-1", "nn.conv2d-0", "nn.conv2d_backward_weight-1",
            "nn.conv2d_backward_weight-2", "nn.conv3d-1", "serde.conv_integer-3",
        ),
        _DILATED,
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
    "qnn.quantize-3": "float32, in which MIL quantises, does not hold all of int32",
    **dict.fromkeys(
        (
            "serde.deformable_psroi_pool-0", "serde.deformable_psroi_pool-1", "serde.psroi_pool-0",
            "serde.psroi_pool-1",
        ),
        _AXES,
    ),
    "serde.dequantize_linear-5": _FLOAT8,
    "serde.dequantize_linear-6": _INT4,
    "serde.loop-1": _OPEN_STACK,
    "serde.loop-3": _NO_ELEMENTS,
    "serde.loop-5": "ML Programs have no sequences of tensors",
    "serde.non_max_suppression-3": _NO_ELEMENTS,
    "serde.qlinear_conv2d-1": _DILATED,
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
}  # fmt: skip

_BEFORE_17 = {
    **dict.fromkeys(
        (
            "nn.conv1d_transpose-0", "nn.conv1d_transpose-1", "nn.conv2d_transpose-0",
            "nn.conv2d_transpose-1", "nn.conv2d_transpose-2", "nn.conv2d_transpose-3",
            "nn.conv3d_transpose-0", "nn.conv3d_transpose-1",
        ),
        _TRANSPOSED,
    ),
    **dict.fromkeys(
        (
            "cast-0", "clip-1", "image.resize1d-2", "nn.conv2d-6", "nn.max_pool2d-2",
            "power-2", "qnn.abs-0", "qnn.abs-1",
            "qnn.dequantize-0", "qnn.dequantize-1", "qnn.dequantize-2", "qnn.dequantize-5",
            "qnn.erf-0", "qnn.erf-1", "qnn.exp-0", "qnn.exp-1", "qnn.hardswish-0",
            "qnn.hardswish-1", "qnn.log-0", "qnn.log-1", "qnn.quantize-0", "qnn.quantize-1",
            "qnn.quantize-2", "qnn.quantize-4", "qnn.quantize-5", "qnn.rsqrt-0", "qnn.rsqrt-1",
            "qnn.sigmoid-0", "qnn.sigmoid-1", "qnn.sqrt-0", "qnn.sqrt-1", "qnn.tanh-0",
            "qnn.tanh-1", "serde.conv_integer-0", "serde.conv_integer-1", "serde.conv_integer-2",
            "serde.conv_integer-4", "serde.dequantize_linear-0", "serde.dequantize_linear-1",
            "serde.dequantize_blocks-0", "serde.dequantize_blocks-1", "serde.dequantize_blocks-2",
            "serde.dequantize_linear-2", "serde.dequantize_linear-3", "serde.dequantize_sparse-0",
            "serde.dequantize_sparse-1",
            "serde.dynamic_quantize_linear-0", "serde.dynamic_quantize_linear-1",
            "serde.dynamic_quantize_linear-2", "serde.dynamic_quantize_linear-3",
            "serde.lut_to_dense-0", "serde.lut_to_dense-1", "serde.lut_to_dense-2",
            "serde.lut_to_dense-3", "serde.lut_to_sparse-0", "serde.lut_to_sparse-1",
            "serde.matmul_integer-0", "serde.matmul_integer-1", "serde.matmul_integer-2",
            "serde.matmul_integer-3", "serde.matmul_integer-4", "serde.qlinear_conv2d-0",
            "serde.qlinear_matmul-0", "serde.qlinear_matmul-1", "serde.quantize_linear-0",
            "serde.quantize_linear-1", "serde.quantize_linear-2", "serde.quantize_linear-3",
            "serde.quantize_linear-4", "serde.quantize_linear-8", "serde.sparse_to_dense-1",
            "serde.unique-5",
        ),
        _NARROW,
    ),
}  # fmt: skip

COREML_LAYER_GAPS: dict[tuple[str, str], str] = {
    **{
        ("coreml-sample", f"{sample}-{target}"): reason
        for sample, reason in _ALWAYS.items()
        for target in ("iOS15", "iOS18")
    },
    **{("coreml-sample", f"{sample}-iOS15"): reason for sample, reason in _BEFORE_17.items()},
    ("coreml-weights", "nn.conv2d-6-iOS15"): _NARROW,
}
