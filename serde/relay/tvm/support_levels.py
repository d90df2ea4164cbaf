"""The level that TVM 0.18 gives an operator; the lower, the more nets use it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

__all__ = ["support_level"]

_LEVELS: Final = {
    10: "nn.contrib_* dyn.one_hot",
    11: "einsum qnn.*",
    1: "acos* add asin* atan* concatenate cos* divide erf exp expand_dims fast_* floor_divide "
    "floor_mod invert_permutation log log10 log2 mod multiply nn.batch_norm nn.bias_add nn.dense "
    "nn.dropout nn.fast_softmax nn.group_norm nn.instance_norm nn.internal.* nn.layer_norm "
    "nn.log_softmax nn.matmul nn.relu nn.softmax nn.sparse_* rsqrt sigmoid sin sinh sqrt subtract "
    "tan* trunc_*",
    2: "dyn.nn.* image.dilation2d nn.avg_pool* nn.batch_flatten nn.conv* nn.correlation "
    "nn.global_*2d nn.l2_normalize nn.lrn nn.max_pool* nn.mirror_pad nn.pad nn.upsampling*",
    4: "all any argmax argmin bitwise_* broadcast_to collapse_sum_to dyn.broadcast_to "
    "dyn.strided_slice equal greater* left_shift less* logical_* max* mean min* not_equal "
    "ones_like power prod right_shift strided_* sum variance where zeros_like",
    5: "dyn.image.* image.* layout_transform nn.*_to_* nn.deformable_conv2d vision.*",
    6: "argsort dyn.topk searchsorted sort topk",
    3: "abs adv_index arange cast* ceil clip copy cum* dft dyn.* floor full* gather* is* meshgrid "
    "negative nn.fifo_buffer nn.leaky_relu nn.prelu ones reinterpret repeat reshape* reverse* "
    "round scatter_* sign sparse_* split squeeze stack stft take tile transpose trilu trunc "
    "unique unravel_index zeros",
}
"""Patterns of names by their level; the first that fits counts."""


def support_level(name: str) -> int:
    """Return the level of an operator: 10, which is TVM's own default, where it states none."""
    pairs = ((level, each) for level, names in _LEVELS.items() for each in names.split())
    return next((level for level, pattern in pairs if fnmatchcase(name, pattern)), 10)
