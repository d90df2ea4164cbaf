"""The operators of MXNet 1.9.1, less their second names, which are in :mod:`serde.mxnet.aliases`.

From its registry (``MXListAllOpNames``). Those of gradients, all that have ``backward`` in their
name and ``_grad_add``, are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from serde.mxnet.aliases import canonical_name

if TYPE_CHECKING:
    from serde.mxnet.model import Graph

__all__ = ["BESIDE", "DYNAMIC", "FORWARD", "OPTIMIZERS", "VERSION", "is_dynamic"]

VERSION: Final = "1.9.1"

FORWARD: Final = frozenset({
    "Activation", "BatchNorm", "BatchNorm_v1", "BilinearSampler", "BlockGrad", "CTCLoss", "Cast",
    "Concat", "Convolution", "Convolution_v1", "Correlation", "Crop", "Custom", "Deconvolution",
    "Dropout", "Embedding", "Flatten", "FullyConnected", "GridGenerator", "GroupNorm",
    "IdentityAttachKLSparseReg", "InstanceNorm", "L2Normalization", "LRN", "LayerNorm",
    "LeakyReLU", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput",
    "MakeLoss", "Pad", "Pooling", "Pooling_v1", "RNN", "ROIPooling", "Reshape", "SVMOutput",
    "SequenceLast", "SequenceMask", "SequenceReverse", "SliceChannel", "SoftmaxActivation",
    "SoftmaxOutput", "SpatialTransformer", "SwapAxis", "UpSampling", "_CachedOp",
    "_CachedOpThreadSafe", "_CrossDeviceCopy", "_CustomFunction", "_NDArray", "_Native",
    "_NoGradient", "_arange", "_cond", "_contrib_AdaptiveAvgPooling2D",
    "_contrib_BatchNormWithReLU", "_contrib_BilinearResize2D", "_contrib_DeformableConvolution",
    "_contrib_DeformablePSROIPooling", "_contrib_ModulatedDeformableConvolution",
    "_contrib_MultiBoxDetection", "_contrib_MultiBoxPrior", "_contrib_MultiBoxTarget",
    "_contrib_MultiProposal", "_contrib_PSROIPooling", "_contrib_Proposal", "_contrib_ROIAlign",
    "_contrib_RROIAlign", "_contrib_SparseEmbedding", "_contrib_SyncBatchNorm",
    "_contrib_allclose", "_contrib_arange_like", "_contrib_bipartite_matching",
    "_contrib_boolean_mask", "_contrib_box_decode", "_contrib_box_encode", "_contrib_box_iou",
    "_contrib_box_nms", "_contrib_calibrate_entropy", "_contrib_count_sketch",
    "_contrib_dequantize", "_contrib_dgl_adjacency",
    "_contrib_dgl_csr_neighbor_non_uniform_sample", "_contrib_dgl_csr_neighbor_uniform_sample",
    "_contrib_dgl_graph_compact", "_contrib_dgl_subgraph", "_contrib_div_sqrt_dim",
    "_contrib_edge_id", "_contrib_fft", "_contrib_getnnz", "_contrib_gradientmultiplier",
    "_contrib_hawkesll", "_contrib_ifft", "_contrib_index_array", "_contrib_index_copy",
    "_contrib_interleaved_matmul_encdec_qk", "_contrib_interleaved_matmul_encdec_valatt",
    "_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt",
    "_contrib_quadratic", "_contrib_quantize", "_contrib_quantize_asym", "_contrib_quantize_v2",
    "_contrib_quantized_act", "_contrib_quantized_batch_norm", "_contrib_quantized_concat",
    "_contrib_quantized_conv", "_contrib_quantized_elemwise_add",
    "_contrib_quantized_elemwise_mul", "_contrib_quantized_embedding",
    "_contrib_quantized_flatten", "_contrib_quantized_fully_connected",
    "_contrib_quantized_pooling", "_contrib_quantized_rnn", "_contrib_requantize",
    "_contrib_round_ste", "_contrib_sign_ste", "_copy", "_copyto", "_cvcopyMakeBorder",
    "_cvimdecode", "_cvimread", "_cvimresize", "_div_scalar", "_equal", "_equal_scalar", "_eye",
    "_foreach", "_full", "_greater", "_greater_equal", "_greater_equal_scalar", "_greater_scalar",
    "_histogram", "_hypot", "_hypot_scalar", "_identity_with_attr_like_rhs",
    "_image_adjust_lighting", "_image_crop", "_image_flip_left_right", "_image_flip_top_bottom",
    "_image_normalize", "_image_random_brightness", "_image_random_color_jitter",
    "_image_random_contrast", "_image_random_flip_left_right", "_image_random_flip_top_bottom",
    "_image_random_hue", "_image_random_lighting", "_image_random_saturation", "_image_resize",
    "_image_to_tensor", "_imdecode", "_lesser", "_lesser_equal", "_lesser_equal_scalar",
    "_lesser_scalar", "_linalg_det", "_linalg_extractdiag", "_linalg_extracttrian",
    "_linalg_gelqf", "_linalg_gemm", "_linalg_gemm2", "_linalg_inverse", "_linalg_makediag",
    "_linalg_maketrian", "_linalg_potrf", "_linalg_potri", "_linalg_slogdet",
    "_linalg_sumlogdiag", "_linalg_syevd", "_linalg_syrk", "_linalg_trmm", "_linalg_trsm",
    "_linspace", "_logical_and", "_logical_and_scalar", "_logical_or", "_logical_or_scalar",
    "_logical_xor", "_logical_xor_scalar", "_maximum", "_maximum_scalar", "_minimum",
    "_minimum_scalar", "_minus_scalar", "_mod", "_mod_scalar", "_mul_scalar", "_not_equal",
    "_not_equal_scalar", "_np_all", "_np_any", "_np_atleast_1d", "_np_atleast_2d",
    "_np_atleast_3d", "_np_copy", "_np_cumsum", "_np_diag", "_np_diagflat", "_np_diagonal",
    "_np_dot", "_np_max", "_np_min", "_np_moveaxis", "_np_prod", "_np_reshape", "_np_roll",
    "_np_squeeze", "_np_sum", "_np_trace", "_np_transpose", "_npi_absolute", "_npi_add",
    "_npi_add_scalar", "_npi_arange", "_npi_arccos", "_npi_arccosh", "_npi_arcsin",
    "_npi_arcsinh", "_npi_arctan", "_npi_arctan2", "_npi_arctan2_scalar", "_npi_arctanh",
    "_npi_argmax", "_npi_argmin", "_npi_around", "_npi_average", "_npi_bernoulli",
    "_npi_bincount", "_npi_bitwise_and", "_npi_bitwise_and_scalar", "_npi_bitwise_not",
    "_npi_bitwise_or", "_npi_bitwise_or_scalar", "_npi_bitwise_xor", "_npi_bitwise_xor_scalar",
    "_npi_blackman", "_npi_boolean_mask_assign_scalar", "_npi_boolean_mask_assign_tensor",
    "_npi_broadcast_to", "_npi_cbrt", "_npi_ceil", "_npi_choice", "_npi_cholesky",
    "_npi_column_stack", "_npi_concatenate", "_npi_copysign", "_npi_copysign_scalar", "_npi_cos",
    "_npi_cosh", "_npi_degrees", "_npi_delete", "_npi_diag_indices_from", "_npi_diff",
    "_npi_dsplit", "_npi_dstack", "_npi_ediff1d", "_npi_eig", "_npi_eigh", "_npi_eigvals",
    "_npi_eigvalsh", "_npi_einsum", "_npi_equal", "_npi_equal_scalar", "_npi_exp", "_npi_expm1",
    "_npi_exponential", "_npi_eye", "_npi_fix", "_npi_flip", "_npi_floor", "_npi_full_like",
    "_npi_gamma", "_npi_greater", "_npi_greater_equal", "_npi_greater_equal_scalar",
    "_npi_greater_scalar", "_npi_gumbel", "_npi_hamming", "_npi_hanning", "_npi_hsplit",
    "_npi_hstack", "_npi_hypot", "_npi_identity", "_npi_indices", "_npi_insert_scalar",
    "_npi_insert_slice", "_npi_insert_tensor", "_npi_isfinite", "_npi_isinf", "_npi_isnan",
    "_npi_isneginf", "_npi_isposinf", "_npi_lcm", "_npi_lcm_scalar", "_npi_ldexp",
    "_npi_ldexp_scalar", "_npi_less", "_npi_less_equal", "_npi_less_equal_scalar",
    "_npi_less_scalar", "_npi_log", "_npi_log10", "_npi_log1p", "_npi_log2", "_npi_logical_not",
    "_npi_logistic", "_npi_logspace", "_npi_matmul", "_npi_mean", "_npi_mod", "_npi_mod_scalar",
    "_npi_multinomial", "_npi_multiply", "_npi_multiply_scalar", "_npi_nan_to_num",
    "_npi_negative", "_npi_norm", "_npi_normal", "_npi_normal_n", "_npi_not_equal",
    "_npi_not_equal_scalar", "_npi_ones", "_npi_pad", "_npi_pareto", "_npi_percentile",
    "_npi_pinv", "_npi_pinv_scalar_rcond", "_npi_polyval", "_npi_power", "_npi_power_scalar",
    "_npi_powerd", "_npi_radians", "_npi_rarctan2_scalar", "_npi_rayleigh",
    "_npi_rcopysign_scalar", "_npi_reciprocal", "_npi_rint", "_npi_rldexp_scalar",
    "_npi_rmod_scalar", "_npi_rot90", "_npi_rpower_scalar", "_npi_rsubtract_scalar",
    "_npi_rtrue_divide_scalar", "_npi_share_memory", "_npi_sign", "_npi_sin", "_npi_sinh",
    "_npi_solve", "_npi_sqrt", "_npi_square", "_npi_stack", "_npi_std", "_npi_subtract",
    "_npi_subtract_scalar", "_npi_svd", "_npi_tan", "_npi_tanh", "_npi_tensordot",
    "_npi_tensordot_int_axes", "_npi_tensorinv", "_npi_tensorsolve", "_npi_tril",
    "_npi_true_divide", "_npi_true_divide_scalar", "_npi_trunc", "_npi_uniform", "_npi_uniform_n",
    "_npi_unique", "_npi_var", "_npi_vstack", "_npi_weibull", "_npi_where", "_npi_where_lscalar",
    "_npi_where_rscalar", "_npi_where_scalar2", "_npi_zeros", "_npx_constraint_check",
    "_npx_nonzero", "_npx_relu", "_npx_reshape", "_npx_sigmoid", "_onehot_encode", "_ones",
    "_plus_scalar", "_power", "_power_scalar", "_random_exponential", "_random_exponential_like",
    "_random_gamma", "_random_gamma_like", "_random_generalized_negative_binomial",
    "_random_generalized_negative_binomial_like", "_random_negative_binomial",
    "_random_negative_binomial_like", "_random_normal", "_random_normal_like",
    "_random_pdf_dirichlet", "_random_pdf_exponential", "_random_pdf_gamma",
    "_random_pdf_generalized_negative_binomial", "_random_pdf_negative_binomial",
    "_random_pdf_normal", "_random_pdf_poisson", "_random_pdf_uniform", "_random_poisson",
    "_random_poisson_like", "_random_randint", "_random_uniform", "_random_uniform_like",
    "_ravel_multi_index", "_rdiv_scalar", "_rminus_scalar", "_rmod_scalar", "_rnn_param_concat",
    "_rpower_scalar", "_sample_exponential", "_sample_gamma",
    "_sample_generalized_negative_binomial", "_sample_multinomial", "_sample_negative_binomial",
    "_sample_normal", "_sample_poisson", "_sample_uniform", "_sample_unique_zipfian",
    "_scatter_elemwise_div", "_scatter_minus_scalar", "_scatter_plus_scalar", "_scatter_set_nd",
    "_set_value", "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected", "_sg_mkldnn_selfatt_qk",
    "_sg_mkldnn_selfatt_valatt", "_shuffle", "_slice_assign", "_slice_assign_scalar",
    "_sparse_retain", "_split_v2", "_square_sum", "_unravel_index", "_while_loop", "_zeros",
    "_zeros_without_dtype", "abs", "add_n", "amp_cast", "amp_multicast", "arccos", "arccosh",
    "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmax_channel", "argmin", "argsort",
    "batch_dot", "batch_take", "broadcast_add", "broadcast_axis", "broadcast_div",
    "broadcast_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_hypot",
    "broadcast_lesser", "broadcast_lesser_equal", "broadcast_like", "broadcast_logical_and",
    "broadcast_logical_or", "broadcast_logical_xor", "broadcast_maximum", "broadcast_minimum",
    "broadcast_mod", "broadcast_mul", "broadcast_not_equal", "broadcast_power", "broadcast_sub",
    "broadcast_to", "cast_storage", "cbrt", "ceil", "clip", "col2im", "cos", "cosh", "degrees",
    "depth_to_space", "diag", "dot", "elemwise_add", "elemwise_div", "elemwise_mul",
    "elemwise_sub", "erf", "erfinv", "exp", "expand_dims", "expm1", "fill_element_0index", "fix",
    "floor", "gamma", "gammaln", "gather_nd", "hard_sigmoid", "im2col", "khatri_rao", "log",
    "log10", "log1p", "log2", "log_softmax", "logical_not", "make_loss", "max", "mean", "min",
    "moments", "nanprod", "nansum", "negative", "norm", "one_hot", "ones_like", "pick", "prod",
    "radians", "rcbrt", "reciprocal", "relu", "repeat", "reshape_like", "reverse", "rint",
    "round", "rsqrt", "scatter_nd", "shape_array", "sigmoid", "sign", "sin", "sinh", "size_array",
    "slice", "slice_axis", "slice_like", "smooth_l1", "softmax", "softmax_cross_entropy",
    "softmin", "softsign", "sort", "space_to_depth", "sqrt", "square", "squeeze", "stack", "sum",
    "take", "tan", "tanh", "tile", "topk", "transpose", "trunc", "where", "zeros_like",
})  # fmt: skip
"""Operators of which a net may consist."""

OPTIMIZERS: Final = frozenset({
    "_adamw_update", "_contrib_group_adagrad_update", "_mp_adamw_update", "_multi_adamw_update",
    "_multi_lamb_update", "_multi_mp_adamw_update", "_multi_mp_lamb_update",
    "_sparse_adagrad_update", "adam_update", "all_finite", "ftml_update", "ftrl_update",
    "lamb_update_phase1", "lamb_update_phase2", "mp_lamb_update_phase1", "mp_lamb_update_phase2",
    "mp_nag_mom_update", "mp_sgd_mom_update", "mp_sgd_update", "multi_all_finite", "multi_lars",
    "multi_mp_sgd_mom_update", "multi_mp_sgd_update", "multi_sgd_mom_update", "multi_sgd_update",
    "multi_sum_sq", "nag_mom_update", "preloaded_multi_mp_sgd_mom_update",
    "preloaded_multi_mp_sgd_update", "preloaded_multi_sgd_mom_update",
    "preloaded_multi_sgd_update", "reset_arrays", "rmsprop_update", "rmspropalex_update",
    "sgd_mom_update", "sgd_update", "signsgd_update", "signum_update",
})  # fmt: skip
"""Operators that a step of training consists of, behind the gradients."""

DYNAMIC: Final = frozenset({
    "_cond", "_contrib_boolean_mask", "_npi_bincount", "_npi_delete", "_npi_unique", "_npx_nonzero",
    "_while_loop",
})  # fmt: skip
"""Operators whose results have shapes that MXNet knows no sooner than it has computed them.

Its executors (``bind``, ``Module``) fail at sums and products that follow them, and with NumPy's
shapes take what follows to be empty; ``CachedOp``, which runs Gluon's blocks, computes all.
"""

BESIDE: Final = frozenset({
    "_contrib_sldwin_atten_context", "_contrib_sldwin_atten_mask_like",
    "_contrib_sldwin_atten_score", "_grad_add",
})  # fmt: skip
"""Operators that nets have besides: sliding windows of attention, which came with MXNet 2.0, and
the sum that gradients are added by."""


def is_dynamic(graph: Graph) -> bool:
    """Whether MXNet knows some shape of a graph no sooner than it has computed it."""
    return any(canonical_name(node.op) in DYNAMIC for node in graph.nodes)
