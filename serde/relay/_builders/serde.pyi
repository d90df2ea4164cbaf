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
    """Values summed with the softmax of the products of queries and keys (Vaswani, 2017)."""

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

def celu(data: Expr, alpha: float = 1.0) -> Expr:
    """Elements above zero as they are, others `alpha` times (e to their `alpha`-th part, less 1)."""

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
    """Cross-correlation of (data - zero) and (weight - zero) in int32, as in ONNX."""

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
    """Product of all up to each along `axis`, or with `reverse` of all from each on."""

def cumsum(data: Expr, axis: int, exclusive: bool = False, reverse: bool = False) -> Expr:
    """Sum of all up to each along `axis`, or with `reverse` of all from each on."""

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
    """Convolution whose taps are moved by `offset` and weighed by `mask` (Zhu et al., 2018)."""

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
    """`data` less `offset`, times `scale`, in the dtype of `scale`; each serves a block."""

def dequantize_linear(
    data: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    out_dtype: DType | None = None,
) -> Expr:
    """`data` less the zero point, times `scale`, in `out_dtype` or else the dtype of `scale`."""

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
    """`data` quantised to uint8 by its own range, which zero is part of; scale; zero point."""

def eig(data: Expr) -> TupleWrapper:
    """Eigenvalues of each matrix, and its eigenvectors of length 1 as columns."""

def eigh(data: Expr, triangle: Literal["lower", "upper"] = "lower") -> TupleWrapper:
    """Eigenvalues of each symmetric matrix in ascending order, and its eigenvectors as columns."""

def elu(data: Expr, alpha: float = 1.0) -> Expr:
    """Elements above zero as they are, the others `alpha` times (e to the element, minus 1)."""

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
    """Inverse of the error function; no number beyond -1 and 1."""

def expm1(data: Expr) -> Expr:
    """Exponential of each element, less one."""

def eye_like(data: Expr, k: int = 0, dtype: DType | None = None) -> Expr:
    """A matrix of the shape of `data` with ones on its diagonal `k` to the right, else zeros."""

def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0) -> Expr:
    """The slices at the indices, each of which lies along the last axis of `indices`."""

def gelu(data: Expr, approximate: Literal["none", "tanh"] = "none") -> Expr:
    """Each element times the chance that a standard normal variable is below it."""

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
    """`alpha` times each element plus `beta`, kept between 0 and 1."""

def hard_swish(data: Expr) -> Expr:
    """Each element times a sixth of itself plus 3, that sum kept between 0 and 6."""

def hardmax(data: Expr, axis: int = -1) -> Expr:
    """One at the first greatest element along `axis`, zero elsewhere."""

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
    """`data` standardised over the axes from `axis` on, scaled and shifted; then mean and spread."""

def lgamma(data: Expr) -> Expr:
    """Logarithm of the magnitude of the gamma function; infinite at its poles."""

def log1p(data: Expr) -> Expr:
    """Logarithm of one plus each element."""

def log_sigmoid(data: Expr) -> Expr:
    """Logarithm of the logistic function, without overflow."""

def logsumexp(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """Logarithm of the sum of exponentials over axes, without overflow."""

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
    """`data` divided by its norm along `axis`: the sum of magnitudes, or the root of squares."""

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
    """The `p`-norm of each window: the root of the sum of powers of magnitudes."""

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
    """The matrix product of (a - zero) and (b - zero) in int32, as in ONNX."""

def max_pool_with_places(
    data: Expr,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    column_major: bool = False,
) -> TupleWrapper:
    """The greatest element of each window, and its number among all, batch and channels included."""

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
    """`data` less its mean over `axes`, divided by its standard deviation over them plus 1e-9."""

def mish(data: Expr) -> Expr:
    """Each element times the hyperbolic tangent of its softplus."""

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
    """A convolution whose integer sums are rescaled once, halves to even."""

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
    """A product of matrices whose integer sums are rescaled once, halves to even."""

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
    """`data` over `scale`, rounded half to even, plus the zero point, cut to the range."""

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
    """Sum of magnitudes over axes."""

def reduce_l2(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """Root of the sum of squares over axes."""

def reduce_log_sum(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """Logarithm of the sum over axes."""

def reduce_sum_square(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """Sum of squares over axes."""

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
    """`data` divided by its root mean square over the axes from `axis` on, then scaled."""

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
    """One plain recurrent layer: the state is a function of the input and of the state before."""

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
    """The mean of bilinear samples in each bin of each region, which is turned (Ma et al., 2018)."""

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
    """Pairs of features turned by the angles of their position (Su, 2021)."""

def round_even(data: Expr) -> Expr:
    """The nearest integer to each element, of two the even one (IEEE 754's default)."""

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
    """`gamma` times ``serde.elu``; by default the self-normalising constants (Klambauer, 2017)."""

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
    """Elements beyond `lambd` on either side moved towards zero by `bias`, zero for the others."""

def silu(data: Expr) -> Expr:
    """Each element times its logistic function."""

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
    """The negative log likelihood of each label under a softmax of axis 1, and that softmax's log."""

def softplus(data: Expr) -> Expr:
    """Logarithm of one plus the exponential, without overflow."""

def softsign(data: Expr) -> Expr:
    """Each element divided by one plus its magnitude."""

def solve(a: Expr, b: Expr) -> Expr:
    """The x of a x = b, whose columns are systems of their own."""

def sparse_to_dense(values: Expr, mask: Expr) -> Expr:
    """`values` in order at the places that a mask marks, zeros elsewhere."""

def svd(data: Expr) -> TupleWrapper:
    """U, s and V^T of each matrix U diag(s) V^T, with the singular values s in descending order."""

def swiglu(gate: Expr, value: Expr, alpha: float = 1.0) -> Expr:
    """`value` times `gate` times the logistic function of `alpha` times `gate` (Shazeer, 2020)."""

def swish(data: Expr, alpha: float = 1.0) -> Expr:
    """Each element times the logistic function of `alpha` times it."""

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
    """Gamma function; no number at the negative integers, infinite at zero."""

def thresholded_relu(data: Expr, alpha: float = 1.0) -> Expr:
    """Elements above `alpha` as they are, zero for the others."""

def triangular_solve(a: Expr, b: Expr, lower: bool = True, transpose: bool = False) -> Expr:
    """The x of T x = b, or of T^T x = b, where T is a triangle of each matrix of `a`."""

def unique(data: Expr, axis: int | None = None, sorted: bool = True) -> TupleWrapper:
    """Distinct entries of `axis`, or of the flat tensor; then where they are first, and more."""
