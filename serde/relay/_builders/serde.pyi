"""Builders below ``relay.serde``; generated from the declarations."""

from collections.abc import Sequence
from typing import Literal

from serde.relay._builders._types import DType
from serde.relay.ir.dims import Any, DimLike, SymDim
from serde.relay.ir.expr import Expr, Function, TupleWrapper

def affine_grid(
    theta: Expr,
    shape: Expr | None = None,
    *,
    size: int | Sequence[int] | None = None,
    align_corners: bool = False,
) -> Expr:
    """The grid (n, *size, ndim) that maps images by matrices; ends are -1 and 1."""

def attention(
    query: Expr,
    key: Expr,
    value: Expr,
    mask: Expr | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    softcap: float | None = None,
) -> Expr:
    """``y = softmax(scale * query @ key.T + mask) @ value`` (Vaswani, 2017)."""

def bernoulli(probs: Expr, dtype: DType | None = None, seed: float | None = None) -> Expr:
    """One as often as `probs` says, else zero; seeds as of ``serde.random_uniform``."""

def box_nms(
    data: Expr,
    iou_threshold: float = 0.5,
    score_threshold: float = 0.0,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: Literal["corner", "center"] = "corner",
    out_format: Literal["corner", "center"] = "corner",
) -> Expr:
    """The rows of the boxes that stay, the best of each image first, -1 behind them."""

def causal_conv1d(
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    state: Expr | None = None,
    *,
    activate: bool = False,
) -> TupleWrapper:
    """``y[t] = bias + sum over j of weight[j] * x[t - k + 1 + j]``; what is before is `state`."""

def celu(data: Expr, alpha: float = 1.0) -> Expr:
    """``y = max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``."""

def cholesky(data: Expr) -> Expr:
    """The lower triangular L of each positive definite matrix A = L L^T."""

def col2im(
    data: Expr,
    image_shape: DimLike | Sequence[DimLike],
    block_shape: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = (0,),
    dilation: int | Sequence[int] | None = None,
) -> Expr:
    """Images in which blocks lie next to or over each other; what lies over each other is added."""

def compress(data: Expr, condition: Expr, axis: int | None = None) -> Expr:
    """The entries of `axis`, or of the flat tensor, that `condition` marks."""

def conv_integer(
    data: Expr,
    weight: Expr,
    data_zero_point: Expr | None = None,
    weight_zero_point: Expr | None = None,
    *,
    strides: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    groups: int = 1,
) -> Expr:
    """``y = conv(data - data_zero_point, weight - weight_zero_point)`` in int32, as in ONNX."""

def ctc_loss(
    data: Expr,
    label: Expr,
    data_lengths: Expr | None = None,
    label_lengths: Expr | None = None,
    *,
    blank: Literal["first", "last"] = "first",
) -> Expr:
    """The negative log likelihood of labels in order, blanks and repetitions left out."""

def cumprod(data: Expr, axis: int, exclusive: bool = False, reverse: bool = False) -> Expr:
    """``y[i] = prod(x[j] for j <= i)`` along `axis`, with `reverse` for j >= i."""

def cumsum(data: Expr, axis: int, exclusive: bool = False, reverse: bool = False) -> Expr:
    """``y[i] = sum(x[j] for j <= i)`` along `axis`, with `reverse` for j >= i."""

def deform_conv2d(
    data: Expr,
    weight: Expr,
    offset: Expr,
    bias: Expr | None = None,
    mask: Expr | None = None,
    *,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0, 0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    offset_groups: int = 1,
) -> Expr:
    """``y[o, i] = sum_ck w[o, c, k] * mask[k, i] * x[c, p + offset[k, i]] + bias[o]``."""

def deformable_psroi_pool(
    data: Expr,
    rois: Expr,
    trans: Expr | None = None,
    *,
    output_dim: int,
    pooled_size: int,
    group_size: int,
    part_size: int,
    sample_per_part: int = 1,
    spatial_scale: float = 1.0,
    trans_std: float = 0.0,
) -> Expr:
    """The mean of the bilinear samples in each bin of each region, the bins being moved."""

def dequantize_blocks(data: Expr, scale: Expr, offset: Expr | None = None) -> Expr:
    """``y = scale * (data - offset)`` in the dtype of `scale`; each serves a block."""

def dequantize_linear(
    data: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    out_dtype: DType | None = None,
) -> Expr:
    """``y = (x - zero_point) * scale`` in `out_dtype` or else the dtype of `scale`."""

def dequantize_sparse(mask: Expr, values: Expr, scale: Expr, offset: Expr | None = None) -> Expr:
    """What :func:`dequantize_blocks` gives at the places that a mask marks."""

def det(data: Expr) -> Expr:
    """The determinant of each square matrix that the last two axes hold."""

def dft(
    data: Expr,
    axis: int = 1,
    dft_length: int | None = None,
    inverse: bool = False,
    onesided: bool = False,
) -> Expr:
    """The discrete Fourier transform along `axis`, cut or padded with zeros to `dft_length`."""

def dynamic_quantize_linear(data: Expr) -> TupleWrapper:
    """``y = saturate(rint(x / scale) + zero_point)`` as uint8; scale; zero point."""

def eig(data: Expr) -> TupleWrapper:
    """Eigenvalues of each matrix, and its eigenvectors of length 1 as columns."""

def eigh(data: Expr, triangle: Literal["lower", "upper"] = "lower") -> TupleWrapper:
    """Eigenvalues of each symmetric matrix in ascending order, and its eigenvectors as columns."""

def elu(data: Expr, alpha: float = 1.0) -> Expr:
    """``y = x if x > 0 else alpha * (exp(x) - 1)``."""

def embedding_bag(
    weight: Expr,
    indices: Expr,
    offsets: Expr | None = None,
    sample_weights: Expr | None = None,
    *,
    mode: Literal["sum", "mean", "max"] = "mean",
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Expr:
    """Sums, means or maxima of the rows of a table that the indices of each bag name."""

def erfinv(data: Expr) -> Expr:
    """``x = erf(y)``; NaN beyond -1 and 1."""

def expm1(data: Expr) -> Expr:
    """``y = exp(x) - 1``."""

def eye_like(data: Expr, k: int = 0, dtype: DType | None = None) -> Expr:
    """A matrix of the shape of `data` with ones on its diagonal `k` to the right, else zeros."""

def foreign(
    inputs: Expr | TupleWrapper | Sequence[Expr],
    framework: str,
    name: str,
    result_types: Sequence[Sequence[DimLike | Sequence[DimLike] | str]],
    domain: str = "",
    version: int = 0,
    attributes: str = "{}",
    absent: int | Sequence[int] = (),
    body: Function | None = None,
) -> Expr:
    """What an operator gives that Relay does not know, computed by the framework it comes from."""

def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0) -> Expr:
    """The slices at the indices, each of which lies along the last axis of `indices`."""

def gelu(data: Expr, approximate: Literal["none", "tanh"] = "none") -> Expr:
    """``y = 0.5 * x * (1 + erf(x / sqrt(2)))`` (Hendrycks and Gimpel, 2016)."""

def grid_sample(
    data: Expr,
    grid: Expr,
    method: Literal["linear", "nearest", "cubic"] = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = False,
) -> Expr:
    """`data` read at the places of `grid`, whose last axis has x, y (and z) between -1 and 1."""

def gru(
    data: Expr,
    input_weight: Expr,
    recurrent_weight: Expr,
    bias: Expr | None = None,
    sequence_lens: Expr | None = None,
    initial_h: Expr | None = None,
    *,
    hidden_size: int,
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
    activations: Literal[
        "sigmoid",
        "tanh",
        "relu",
        "affine",
        "leaky_relu",
        "thresholded_relu",
        "scaled_tanh",
        "hard_sigmoid",
        "elu",
        "softsign",
        "softplus",
    ]
    | Sequence[
        Literal[
            "sigmoid",
            "tanh",
            "relu",
            "affine",
            "leaky_relu",
            "thresholded_relu",
            "scaled_tanh",
            "hard_sigmoid",
            "elu",
            "softsign",
            "softplus",
        ]
    ] = (),
    activation_alpha: float | Sequence[float] = (),
    activation_beta: float | Sequence[float] = (),
    clip: float | None = None,
    layout: Literal["TNC", "NTC"] = "TNC",
    linear_before_reset: bool = False,
) -> TupleWrapper:
    """One layer of gated recurrent units."""

def hard_sigmoid(data: Expr, alpha: float = 0.2, beta: float = 0.5) -> Expr:
    """``y = min(max(alpha * x + beta, 0), 1)``."""

def hard_swish(data: Expr) -> Expr:
    """``y = x * min(max(x + 3, 0), 6) / 6``."""

def hardmax(data: Expr, axis: int = -1) -> Expr:
    """``y[i] = 1 if i == argmax(x) else 0`` along `axis`; of equal elements the first counts."""

def inverse(data: Expr) -> Expr:
    """The inverse of each matrix that the last two axes hold."""

def layer_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-05,
    stash_dtype: DType = "float32",
) -> TupleWrapper:
    """``y = (x - mean) / sqrt(var + epsilon) * gamma + beta``; mean; ``1 / sqrt(var + epsilon)``."""

def lgamma(data: Expr) -> Expr:
    """``y = log(abs(gamma(x)))``; infinite at the poles."""

def linear_attention(
    query: Expr,
    key: Expr,
    value: Expr,
    decay: Expr | None = None,
    beta: Expr | None = None,
    state: Expr | None = None,
    *,
    num_heads: int,
    num_key_heads: int,
    scale: float | None = None,
) -> TupleWrapper:
    """``S = exp(g) * S + b * outer(k, v - (exp(g) * S).T @ k)``, ``y = scale * S.T @ q``."""

def log1p(data: Expr) -> Expr:
    """``y = log(1 + x)``."""

def log_sigmoid(data: Expr) -> Expr:
    """``y = -log(1 + exp(-x))``, without overflow."""

def logsumexp(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = log(sum(exp(x)))`` over axes, without overflow."""

def loop(
    limit: Expr | None,
    going: Expr | None,
    state: Sequence[Expr],
    captures: Sequence[Expr] = (),
    *,
    body: Function,
) -> TupleWrapper:
    """Return a call of ``serde.loop``, whose results index and unpack."""

def lp_normalization(data: Expr, axis: int = -1, p: Literal[1, 2] = 2) -> Expr:
    """``y = x / sum(abs(x) ** p) ** (1 / p)`` along `axis`."""

def lp_pool(
    data: Expr,
    pool_size: int | Sequence[int],
    p: int = 2,
    strides: int | Sequence[int] = (1,),
    dilation: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    layout: str = "NCHW",
    ceil_mode: bool = False,
) -> Expr:
    """``y[i] = sum_k(abs(x[i * stride + k * dilation - padding]) ** p) ** (1 / p)``."""

def lq(data: Expr) -> TupleWrapper:
    """The lower triangular L and the Q with orthonormal rows whose product each matrix is."""

def lstm(
    data: Expr,
    input_weight: Expr,
    recurrent_weight: Expr,
    bias: Expr | None = None,
    sequence_lens: Expr | None = None,
    initial_h: Expr | None = None,
    initial_c: Expr | None = None,
    peephole: Expr | None = None,
    projection: Expr | None = None,
    *,
    hidden_size: int,
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
    activations: Literal[
        "sigmoid",
        "tanh",
        "relu",
        "affine",
        "leaky_relu",
        "thresholded_relu",
        "scaled_tanh",
        "hard_sigmoid",
        "elu",
        "softsign",
        "softplus",
    ]
    | Sequence[
        Literal[
            "sigmoid",
            "tanh",
            "relu",
            "affine",
            "leaky_relu",
            "thresholded_relu",
            "scaled_tanh",
            "hard_sigmoid",
            "elu",
            "softsign",
            "softplus",
        ]
    ] = (),
    activation_alpha: float | Sequence[float] = (),
    activation_beta: float | Sequence[float] = (),
    clip: float | None = None,
    layout: Literal["TNC", "NTC"] = "TNC",
    input_forget: bool = False,
    cell_clip: Sequence[float] | None = None,
) -> TupleWrapper:
    """One layer of long short-term memory."""

def lut_to_dense(indices: Expr, table: Expr, vector_axis: int | None = None) -> Expr:
    """Entries of tables at `indices`, each table for a block of them."""

def lut_to_sparse(mask: Expr, indices: Expr, table: Expr, vector_axis: int | None = None) -> Expr:
    """What :func:`lut_to_dense` gives at the places that a mask marks, whose indices are known."""

def matmul(a: Expr, b: Expr) -> Expr:
    """Products of the matrices that the last two axes are; the axes before them broadcast."""

def matmul_integer(
    a: Expr, b: Expr, a_zero_point: Expr | None = None, b_zero_point: Expr | None = None
) -> Expr:
    """``y = (a - a_zero_point) @ (b - b_zero_point)`` in int32, as in ONNX."""

def max_pool_with_places(
    data: Expr,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    column_major: bool = False,
) -> TupleWrapper:
    """``max(x)`` and ``argmax(x)`` of each window, the index counted in the whole of `data`."""

def max_unpool(
    data: Expr,
    indices: Expr,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = (0,),
    output_shape: DimLike | Sequence[DimLike] | None = None,
) -> Expr:
    """The elements back at their places in what was pooled, zeros elsewhere."""

def mean_variance_normalization(data: Expr, axes: int | Sequence[int] = (0, 2, 3)) -> Expr:
    """``y = (x - mean(x)) / (sqrt(mean(x**2) - mean(x)**2) + 1e-9)`` over `axes`."""

def mish(data: Expr) -> Expr:
    """``y = x * tanh(log(1 + exp(x)))``."""

def multibox_detection(
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    clip: bool = True,
    threshold: float = 0.01,
    variances: float | Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    nms_topk: int = -1,
) -> Expr:
    """Rows (class, score, left, top, right, bottom) in order of their scores, -1 behind them."""

def multibox_target(
    anchor: Expr,
    label: Expr,
    cls_pred: Expr,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    variances: float | Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> TupleWrapper:
    """Offsets of anchors from their objects, where they count, and classes (Liu et al., 2016)."""

def multinomial(
    logits: Expr, sample_size: int = 1, dtype: DType = "int32", seed: float | None = None
) -> Expr:
    """Classes of each row, drawn as often as the softmax of its logits says; seeds as above."""

def non_max_suppression(
    boxes: Expr,
    scores: Expr,
    limit: Expr | None = None,
    overlap: Expr | None = None,
    least: Expr | None = None,
    *,
    center_point_box: bool = False,
) -> Expr:
    """Rows (image, class, box) of the boxes that stay, the best of each class first."""

def nonzero(data: Expr) -> Expr:
    """The coordinates of the elements that are true or not zero, one a column."""

def one_hot(indices: Expr, values: Expr, depth: int, axis: int = -1) -> Expr:
    """The second of `values` at each index along a new axis of `depth`, elsewhere the first."""

def optional_construct(value: Expr) -> Expr:
    """Return an optional tensor that is there: a sequence of one."""

def optional_empty(shape: Sequence[int | SymDim | Any | str], dtype: str = "float32") -> Expr:
    """Return an optional tensor that is absent: a sequence of none."""

def optional_get_element(data: Expr) -> Expr:
    """Return the tensor that an optional holds; running it fails where that is absent."""

def optional_has_element(data: Expr) -> Expr:
    """Return whether an optional tensor is there, a scalar of bool."""

def psroi_pool(
    data: Expr,
    rois: Expr,
    output_dim: int,
    pooled_size: int,
    group_size: int,
    spatial_scale: float = 1.0,
) -> Expr:
    """The mean of the elements in each bin of each region, 0 in an empty one."""

def qlinear_conv2d(
    data: Expr,
    weight: Expr,
    bias: Expr | None,
    data_scale: Expr,
    data_zero: Expr,
    weight_scale: Expr,
    weight_zero: Expr,
    out_scale: Expr,
    out_zero: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    out_dtype: DType = "uint8",
) -> Expr:
    """``y = saturate(rint(sums * data_scale * weight_scale / out_scale) + out_zero)``."""

def qlinear_matmul(
    lhs: Expr,
    rhs: Expr,
    lhs_scale: Expr,
    lhs_zero: Expr,
    rhs_scale: Expr,
    rhs_zero: Expr,
    out_scale: Expr,
    out_zero: Expr,
    out_dtype: DType = "uint8",
) -> Expr:
    """``y = saturate(rint(sums * lhs_scale * rhs_scale / out_scale) + out_zero)``."""

def quantize_linear(
    data: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    out_dtype: DType = "uint8",
    saturate: bool = True,
    precision: DType | None = None,
) -> Expr:
    """``y = saturate(rint(x / scale) + zero_point)``."""

def random_gamma(
    alpha: Expr, shape: int | Sequence[int] | None = None, seed: float | None = None
) -> Expr:
    """Gamma numbers of shape `alpha` and scale 1, of the dtype of `alpha`."""

def random_normal(
    like: Expr | None = None,
    *,
    shape: int | Sequence[int] | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: DType | None = None,
    seed: float | None = None,
) -> Expr:
    """Normally distributed numbers, of `shape` or shaped like a tensor."""

def random_poisson(
    lam: Expr, shape: int | Sequence[int] | None = None, seed: float | None = None
) -> Expr:
    """Poisson numbers of rate `lam`, of its dtype."""

def random_uniform(
    like: Expr | None = None,
    *,
    shape: int | Sequence[int] | None = None,
    low: float = 0.0,
    high: float = 1.0,
    dtype: DType | None = None,
    seed: float | None = None,
) -> Expr:
    """Numbers spread evenly from `low` up to `high`, of `shape` or shaped like a tensor."""

def reduce_l1(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = sum(abs(x))`` over axes."""

def reduce_l2(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = sqrt(sum(x**2))`` over axes."""

def reduce_log_sum(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = log(sum(x))`` over axes."""

def reduce_sum_square(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = sum(x**2)`` over axes."""

def resize(
    data: Expr,
    roi: Expr | None = None,
    scales: Expr | None = None,
    sizes: Expr | None = None,
    *,
    size: DimLike | Sequence[DimLike] | None = None,
    scale: float | Sequence[float] | None = None,
    region: float | Sequence[float] | None = None,
    axes: int | Sequence[int] = (),
    method: Literal["nearest", "linear", "cubic"] = "nearest",
    mode: Literal[
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
    ] = "half_pixel",
    rounding: Literal[
        "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"
    ] = "round_prefer_floor",
    cubic_alpha: float = -0.75,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    antialias: bool = False,
    policy: Literal["stretch", "not_larger", "not_smaller"] = "stretch",
) -> Expr:
    """`data` with `axes`, or all of them, resized to lengths or by factors."""

def rms_norm(data: Expr, gamma: Expr, axis: int = -1, epsilon: float = 1e-05) -> Expr:
    """``y = x / sqrt(mean(x**2) + epsilon) * gamma``, the mean over the axes from `axis` on."""

def rnn(
    data: Expr,
    input_weight: Expr,
    recurrent_weight: Expr,
    bias: Expr | None = None,
    sequence_lens: Expr | None = None,
    initial_h: Expr | None = None,
    *,
    hidden_size: int,
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
    activations: Literal[
        "sigmoid",
        "tanh",
        "relu",
        "affine",
        "leaky_relu",
        "thresholded_relu",
        "scaled_tanh",
        "hard_sigmoid",
        "elu",
        "softsign",
        "softplus",
    ]
    | Sequence[
        Literal[
            "sigmoid",
            "tanh",
            "relu",
            "affine",
            "leaky_relu",
            "thresholded_relu",
            "scaled_tanh",
            "hard_sigmoid",
            "elu",
            "softsign",
            "softplus",
        ]
    ] = (),
    activation_alpha: float | Sequence[float] = (),
    activation_beta: float | Sequence[float] = (),
    clip: float | None = None,
    layout: Literal["TNC", "NTC"] = "TNC",
) -> TupleWrapper:
    """One plain recurrent layer: ``H = f(X @ W.T + H @ R.T + Wb + Rb)``, with f the activation."""

def roi_align(
    data: Expr,
    rois: Expr,
    images: Expr,
    pooled_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sample_ratio: int = 0,
    mode: Literal["avg", "max"] = "avg",
    half_pixel: bool = True,
) -> Expr:
    """The mean of bilinear samples in each bin of each region, as ONNX's RoiAlign has it."""

def roi_align_rotated(
    data: Expr,
    rois: Expr,
    pooled_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sample_ratio: int = -1,
) -> Expr:
    """The mean of bilinear samples in each bin of each region, which is rotated (Ma et al., 2018)."""

def roll(data: Expr, shift: int | Sequence[int], axes: int | Sequence[int]) -> Expr:
    """`data` moved along each axis by its shift; what leaves at one end enters at the other."""

def rotary_embedding(
    data: Expr,
    cos: Expr,
    sin: Expr,
    positions: Expr | None = None,
    *,
    num_heads: int = 0,
    rotary_dim: int = 0,
    interleaved: bool = False,
) -> Expr:
    """``y1 = cos * x1 - sin * x2``, ``y2 = sin * x1 + cos * x2`` for pairs of features (Su, 2021)."""

def round_even(data: Expr) -> Expr:
    """``y = rint(x)``: the nearest integer, of two as near the even one (IEEE 754's default)."""

def scan(
    state: Sequence[Expr],
    scanned: Sequence[Expr],
    captures: Sequence[Expr] = (),
    *,
    body: Function,
    axes: Sequence[int] = (),
    reverse: Sequence[bool] = (),
    out_axes: Sequence[int] = (),
    out_reverse: Sequence[bool] = (),
) -> TupleWrapper:
    """Return a call of ``serde.scan``, whose results index and unpack."""

def scored_proposal(
    cls_prob: Expr,
    bbox_pred: Expr,
    im_info: Expr,
    scales: float | Sequence[float] = (4.0, 8.0, 16.0, 32.0),
    ratios: float | Sequence[float] = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    threshold: float = 0.7,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    rpn_min_size: int = 16,
    iou_loss: bool = False,
) -> TupleWrapper:
    """The boxes of ``vision.proposal`` and the score of each, one a row."""

def selu(data: Expr, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Expr:
    """``y = gamma * (x if x > 0 else alpha * (exp(x) - 1))`` (Klambauer, 2017)."""

def sequence_at(data: Expr, position: Expr) -> Expr:
    """The tensor at `position`."""

def sequence_concat(data: Expr, axis: int, new_axis: bool = False) -> Expr:
    """The tensors one after the other along `axis`, or as the entries of a new axis there."""

def sequence_construct(data: Expr | TupleWrapper | Sequence[Expr]) -> Expr:
    """The tensors in their order."""

def sequence_empty(shape: DimLike | Sequence[DimLike], dtype: DType = "float32") -> Expr:
    """No tensors."""

def sequence_erase(data: Expr, position: Expr | None = None) -> Expr:
    """The sequence without what stands at `position`, without the last if that is absent."""

def sequence_insert(data: Expr, value: Expr, position: Expr | None = None) -> Expr:
    """The sequence with `value` before what stands at `position`, at the end if that is absent."""

def sequence_length(data: Expr) -> Expr:
    """The number of tensors, a scalar of int64."""

def sequence_split(
    data: Expr, split: Expr | None = None, *, axis: int = 0, keepdims: bool = True
) -> Expr:
    """Parts of a tensor along `axis`."""

def shrink(data: Expr, lambd: float = 0.5, bias: float = 0.0) -> Expr:
    """``y = x + bias if x < -lambd else x - bias if x > lambd else 0``."""

def silu(data: Expr) -> Expr:
    """``y = x * sigmoid(x)``."""

def slogdet(data: Expr) -> TupleWrapper:
    """Sign of the determinant of each matrix, and the logarithm of its absolute value."""

def softmax_cross_entropy_loss(
    scores: Expr,
    labels: Expr,
    weights: Expr | None = None,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
    ignore_index: int | None = None,
) -> TupleWrapper:
    """``nll_loss(log_softmax(scores), labels, weights)``, and that log softmax, along axis 1."""

def softplus(data: Expr) -> Expr:
    """``y = log(1 + exp(x))``, without overflow."""

def softsign(data: Expr) -> Expr:
    """``y = x / (1 + abs(x))``."""

def solve(a: Expr, b: Expr) -> Expr:
    """The x of a x = b, whose columns are systems of their own."""

def sparse_to_dense(values: Expr, mask: Expr) -> Expr:
    """`values` in order at the places that a mask marks, zeros elsewhere."""

def svd(data: Expr) -> TupleWrapper:
    """U, s and V^T of each matrix U diag(s) V^T, with the singular values s in descending order."""

def swiglu(gate: Expr, value: Expr, alpha: float = 1.0) -> Expr:
    """``y = gate * sigmoid(alpha * gate) * value`` (Shazeer, 2020)."""

def swish(data: Expr, alpha: float = 1.0) -> Expr:
    """``y = x * sigmoid(alpha * x)``."""

def take(data: Expr, indices: Expr, axis: int = 0) -> Expr:
    """The entries of `axis` at `indices`, negative ones counted from the end."""

def tensor_scatter(
    data: Expr,
    update: Expr,
    write_indices: Expr | None = None,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> Expr:
    """A cache with rows written along `axis`, as keys and values of attention are appended."""

def tgamma(data: Expr) -> Expr:
    """``y = gamma(x)``; NaN at the negative integers, infinite at zero."""

def thresholded_relu(data: Expr, alpha: float = 1.0) -> Expr:
    """``y = x if x > alpha else 0``."""

def triangular_solve(a: Expr, b: Expr, lower: bool = True, transpose: bool = False) -> Expr:
    """The x of T x = b, or of T^T x = b, where T is a triangle of each matrix of `a`."""

def unique(data: Expr, axis: int | None = None, sorted: bool = True) -> TupleWrapper:
    """Distinct entries of `axis`, or of the flat tensor; then where they are first, and more."""
