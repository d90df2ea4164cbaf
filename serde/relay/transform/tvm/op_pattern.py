"""How the elements of an operator's result depend on its operands: TVM's op patterns."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["PATTERNS", "OpPattern", "pattern_of"]


class OpPattern(IntEnum):
    """Kinds of operators, simple ones first, with the numbers that TVM gives them.

    Attributes:
        ELEMWISE: An element depends on the element at the same place.
        BROADCAST: The same, with operands repeated along axes.
        INJECTIVE: An element is one element of an operand, from another place.
        COMM_REDUCE: Axes are reduced in any order.
        OUT_ELEMWISE_FUSABLE: Something heavy, after which an elementwise operator may follow at
            once, such as a convolution.
        TUPLE: Several values as one.
        OPAQUE: Nothing may be said; it stays alone.
    """

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


_OPERATORS = {
    OpPattern.ELEMWISE: """
        abs acos acosh asin asinh atan atanh bitwise_not cast cast_like ceil clip copy cos cosh
        dyn.full dyn.ones dyn.zeros erf exp fast_erf fast_exp fast_tanh fixed_point_multiply floor
        full full_like isfinite isinf isnan log log10 log2 logical_not negative nn.leaky_relu
        nn.relu ones ones_like reinterpret round rsqrt sigmoid sign sin sinh sqrt tan tanh trilu
        trunc zeros zeros_like
        serde.celu serde.elu serde.eye_like serde.gelu serde.hard_sigmoid serde.hard_swish
        serde.log_sigmoid serde.mish serde.round_even serde.selu serde.shrink serde.silu
        serde.softplus serde.softsign serde.swish serde.thresholded_relu""",
    OpPattern.BROADCAST: """
        add bitwise_and bitwise_or bitwise_xor broadcast_to broadcast_to_like divide
        dyn.broadcast_to equal expand_dims fixed_point_multiply_per_axis floor_divide floor_mod
        greater greater_equal left_shift less less_equal logical_and logical_or logical_xor
        maximum minimum mod multiply nn.bias_add nn.prelu not_equal power repeat right_shift
        subtract tile trunc_divide trunc_mod where""",
    OpPattern.INJECTIVE: """
        adv_index concatenate contrib_reverse_reshape dyn.expand_dims dyn.image.resize2d dyn.nn.pad
        dyn.nn.upsampling dyn.nn.upsampling3d dyn.reshape dyn.squeeze dyn.strided_slice dyn.tile
        einsum gather gather_nd image.affine_grid image.crop_and_resize image.grid_sample
        image.resize1d image.resize2d image.resize3d invert_permutation layout_transform
        matrix_set_diag meshgrid ndarray_size nn.batch_flatten nn.batch_to_space_nd
        nn.depth_to_space nn.dilate nn.mirror_pad nn.pad nn.space_to_batch_nd nn.space_to_depth
        nn.upsampling nn.upsampling3d reshape reshape_like reverse reverse_sequence sequence_mask
        slice_like sparse_reshape split squeeze stack strided_set strided_slice take transpose
        unravel_index vision.yolo_reorg serde.affine_grid serde.gather_nd
        serde.grid_sample serde.resize serde.roll serde.take""",
    OpPattern.COMM_REDUCE: """
        all any argmax argmin collapse_sum_like collapse_sum_to max mean min prod sum variance
        serde.reduce_l1 serde.reduce_l2 serde.reduce_log_sum serde.reduce_sum_square""",
    OpPattern.OUT_ELEMWISE_FUSABLE: """
        dyn.one_hot nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d
        nn.adaptive_max_pool1d nn.adaptive_max_pool2d nn.adaptive_max_pool3d nn.avg_pool1d
        nn.avg_pool2d nn.avg_pool3d nn.batch_matmul nn.batch_norm nn.conv1d nn.conv1d_transpose
        nn.conv2d nn.conv2d_backward_weight nn.conv2d_transpose nn.conv3d nn.conv3d_transpose
        nn.correlation nn.deformable_conv2d nn.dense nn.fast_softmax nn.global_avg_pool2d
        nn.global_max_pool2d nn.log_softmax nn.matmul nn.max_pool1d nn.max_pool2d nn.max_pool3d
        nn.internal.sparse_dense_padded nn.nll_loss nn.softmax nn.sparse_conv2d nn.sparse_dense
        nn.sparse_transpose one_hot
        qnn.avg_pool2d qnn.contrib_dense_pack qnn.conv2d qnn.dense
        vision.roi_align vision.roi_pool serde.deform_conv2d serde.lp_pool serde.matmul
        serde.one_hot serde.roi_align
        serde.max_pool_with_places""",
    OpPattern.OPAQUE: """
        arange argsort argwhere cumprod cumsum dft dyn.sparse_to_dense dyn.topk image.dilation2d
        nn.dropout nn.fifo_buffer nn.group_norm nn.instance_norm nn.l2_normalize nn.layer_norm
        nn.lrn nn.sparse_add qnn.abs qnn.add qnn.batch_matmul qnn.concatenate qnn.conv2d_transpose
        qnn.dequantize qnn.erf qnn.exp qnn.hardswish qnn.leaky_relu qnn.log qnn.mul qnn.quantize
        qnn.requantize qnn.rsqrt qnn.sigmoid qnn.simulated_dequantize qnn.simulated_quantize
        qnn.softmax qnn.sqrt qnn.subtract qnn.tanh random.multinomial random.normal
        random.threefry_generate random.threefry_split random.uniform scatter_elements scatter_nd
        searchsorted shape_of sliding_window sort sparse_fill_empty_rows sparse_to_dense stft topk
        unique vision.all_class_non_max_suppression vision.get_valid_counts vision.multibox_prior
        vision.multibox_transform_loc vision.non_max_suppression vision.proposal
        vision.regular_non_max_suppression""",
}

PATTERNS = {name: kind for kind, names in _OPERATORS.items() for name in names.split()}
"""Patterns by operator: all of Relay's own, and extension operators that are not opaque."""


def pattern_of(name: str) -> OpPattern:
    """Return the pattern of an operator; an extension operator is opaque unless said otherwise."""
    return PATTERNS.get(name, OpPattern.OPAQUE)
