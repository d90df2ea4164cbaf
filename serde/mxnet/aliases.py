"""Second names of MXNet's operators.

From the registry of MXNet 1.9.1 (``MXListAllOpNames`` and the operator each name resolves to).
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

__all__ = ["ALIASES", "canonical_name"]

_PREFIXED: Final = {
    "_sparse_": (
        "Embedding FullyConnected LinearRegressionOutput LogisticRegressionOutput "
        "MAERegressionOutput _contrib_round_ste _contrib_sign_ste abs adam_update add_n arccos "
        "arccosh arcsin arcsinh arctan arctanh broadcast_add broadcast_div broadcast_mul "
        "broadcast_sub cast_storage cbrt ceil clip cos cosh degrees dot elemwise_add "
        "elemwise_div elemwise_mul elemwise_sub exp expm1 fix floor ftrl_update gamma gammaln "
        "log log10 log1p log2 make_loss mean negative norm radians relu rint round rsqrt "
        "sgd_mom_update sgd_update sigmoid sign sin sinh slice sqrt square sum tan tanh trunc "
        "where zeros_like"
    ),
    "_npx_": (
        "_image_adjust_lighting _image_crop _image_flip_left_right _image_flip_top_bottom "
        "_image_normalize _image_random_brightness _image_random_color_jitter "
        "_image_random_contrast _image_random_flip_left_right _image_random_flip_top_bottom "
        "_image_random_hue _image_random_lighting _image_random_saturation _image_resize "
        "_image_to_tensor batch_dot erf erfinv gamma gammaln gather_nd log_softmax one_hot pick "
        "reshape_like shape_array slice smooth_l1 softmax topk"
    ),
    "_npi_": "Custom argsort clip expand_dims gather_nd slice sort take tile",
    "_npi": (
        "_copyto _cvimdecode _cvimread _cvimresize _full _histogram _hypot_scalar _linspace "
        "_maximum_scalar _minimum_scalar _random_randint _rnn_param_concat _scatter_set_nd "
        "_shuffle _slice_assign _slice_assign_scalar"
    ),
}
"""Operators that have a second name with such a prefix."""

_BARE: Final = (
    "linalg_det linalg_extractdiag linalg_extracttrian linalg_gelqf linalg_gemm linalg_gemm2 "
    "linalg_inverse linalg_makediag linalg_maketrian linalg_potrf linalg_potri linalg_slogdet "
    "linalg_sumlogdiag linalg_syrk linalg_trmm linalg_trsm random_exponential random_gamma "
    "random_generalized_negative_binomial random_negative_binomial random_normal "
    "random_pdf_dirichlet random_pdf_exponential random_pdf_gamma "
    "random_pdf_generalized_negative_binomial random_pdf_negative_binomial random_pdf_normal "
    "random_pdf_poisson random_pdf_uniform random_poisson random_randint random_uniform "
    "ravel_multi_index sample_exponential sample_gamma sample_generalized_negative_binomial "
    "sample_multinomial sample_negative_binomial sample_normal sample_poisson sample_uniform "
    "shuffle unravel_index"
)
"""Second names of operators that begin with an underscore."""

_IN_CAPITALS: Final = (
    "_DivScalar _Equal _EqualScalar _Greater _GreaterEqualScalar _GreaterScalar _Greater_Equal "
    "_Hypot _HypotScalar _Lesser _LesserEqualScalar _LesserScalar _Lesser_Equal "
    "_LogicalAndScalar _LogicalOrScalar _LogicalXorScalar _Logical_And _Logical_Or _Logical_Xor "
    "_Maximum _MaximumScalar _Minimum _MinimumScalar _MinusScalar _Mod _ModScalar _MulScalar "
    "_NotEqualScalar _Not_Equal _PlusScalar _Power _PowerScalar _RDivScalar _RMinusScalar "
    "_RModScalar _RPowerScalar"
)
"""Second names that have capitals where the operator has underscores."""

_OTHERS: Final = {
    "_contrib_arange_like": "_npx_arange_like",
    "_contrib_boolean_mask": "_npi_boolean_mask",
    "_contrib_box_nms": "_contrib_box_non_maximum_suppression",
    "_contrib_MultiBoxDetection": "_npx_multibox_detection",
    "_contrib_MultiBoxPrior": "_npx_multibox_prior",
    "_contrib_MultiBoxTarget": "_npx_multibox_target",
    "_copy": "identity",
    "_linalg_det": "_npi_det",
    "_linalg_inverse": "_npi_inv",
    "_linalg_slogdet": "_npi_slogdet",
    "_np_any": "_np_sometrue",
    "_np_cumsum": "cumsum",
    "_np_max": "_np_amax",
    "_np_min": "_np_amin",
    "_np_prod": "_np_product",
    "_npi_absolute": "_npi_abs",
    "_npx_nonzero": "_npi_nonzero",
    "_npx_reshape": "_npi_reshape",
    "_random_normal": "normal",
    "_random_uniform": "uniform",
    "_slice_assign": "_crop_assign",
    "_slice_assign_scalar": "_crop_assign_scalar",
    "_split_v2": "_npi_split",
    "Activation": "_npx_activation",
    "add_n": "ElementWiseSum _sparse_ElementWiseSum",
    "BatchNorm": "_npx_batch_norm",
    "BlockGrad": "_sparse_stop_gradient stop_gradient",
    "broadcast_add": "_sparse_broadcast_plus broadcast_plus",
    "broadcast_axis": "broadcast_axes",
    "broadcast_maximum": "_npi_maximum",
    "broadcast_minimum": "_npi_minimum",
    "broadcast_sub": "_sparse_broadcast_minus broadcast_minus",
    "Cast": "_npi_cast _npx_cast cast",
    "Concat": "_sparse_concat concat",
    "Convolution": "_npx_convolution",
    "CTCLoss": "_contrib_CTCLoss _contrib_ctc_loss ctc_loss",
    "Deconvolution": "_npx_deconvolution",
    "Dropout": "_npx_dropout",
    "elemwise_add": "_Plus _add _plus",
    "elemwise_div": "_Div _div",
    "elemwise_mul": "_Mul _mul",
    "elemwise_sub": "_Minus _minus _sub",
    "Embedding": "_npx_embedding",
    "Flatten": "_npx_batch_flatten flatten",
    "FullyConnected": "_npx_fully_connected",
    "LayerNorm": "_npx_layer_norm",
    "LeakyReLU": "_npx_leaky_relu",
    "max": "max_axis",
    "min": "min_axis",
    "Pad": "pad",
    "pick": "choose_element_0index",
    "Pooling": "_npx_pooling",
    "repeat": "_np_repeat",
    "Reshape": "reshape",
    "reverse": "flip",
    "RNN": "_npx_rnn",
    "ROIPooling": "_npx_roi_pooling",
    "SequenceMask": "_npx_sequence_mask",
    "slice": "crop",
    "SliceChannel": "split",
    "SoftmaxOutput": "Softmax",
    "sum": "sum_axis",
    "SwapAxis": "_npi_swapaxes swapaxes",
}
"""Other second names by the operator."""


def _in_underscores(name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()


ALIASES: Final = MappingProxyType(
    {
        **{prefix + op: op for prefix, ops in _PREFIXED.items() for op in ops.split()},
        **{name: f"_{name}" for name in _BARE.split()},
        **{name: _in_underscores(name) for name in _IN_CAPITALS.split()},
        **{name: op for op, names in _OTHERS.items() for name in names.split()},
    }
)
"""Operator that each second name stands for."""


def canonical_name(op: str) -> str:
    """Return the operator that `op` names."""
    return ALIASES.get(op, op)
