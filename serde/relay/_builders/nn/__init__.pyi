"""Builders below ``relay.nn``; generated from the declarations."""

from collections.abc import Sequence
from typing import Any as AnyValue, Literal

from serde.relay._builders._types import DType
from serde.relay._builders.nn import internal as internal
from serde.relay.ir.dims import Any, DimLike, SymDim
from serde.relay.ir.expr import Expr, TupleWrapper

def adaptive_avg_pool1d(
    data: Expr, output_size: int | Sequence[int] = (), layout: str = "NCW", out_layout: str = ""
) -> Expr:
    """``y[i] = reduce(x[floor(i * length / n) : ceil((i + 1) * length / n)])`` along each axis."""

def adaptive_avg_pool2d(
    data: Expr, output_size: int | Sequence[int] = (), layout: str = "NCHW", out_layout: str = ""
) -> Expr:
    """``y[i] = reduce(x[floor(i * length / n) : ceil((i + 1) * length / n)])`` along each axis."""

def adaptive_avg_pool3d(
    data: Expr, output_size: int | Sequence[int] = (), layout: str = "NCDHW", out_layout: str = ""
) -> Expr:
    """``y[i] = reduce(x[floor(i * length / n) : ceil((i + 1) * length / n)])`` along each axis."""

def adaptive_max_pool1d(
    data: Expr, output_size: int | Sequence[int] = (), layout: str = "NCW", out_layout: str = ""
) -> Expr:
    """``y[i] = reduce(x[floor(i * length / n) : ceil((i + 1) * length / n)])`` along each axis."""

def adaptive_max_pool2d(
    data: Expr, output_size: int | Sequence[int] = (), layout: str = "NCHW", out_layout: str = ""
) -> Expr:
    """``y[i] = reduce(x[floor(i * length / n) : ceil((i + 1) * length / n)])`` along each axis."""

def adaptive_max_pool3d(
    data: Expr, output_size: int | Sequence[int] = (), layout: str = "NCDHW", out_layout: str = ""
) -> Expr:
    """``y[i] = reduce(x[floor(i * length / n) : ceil((i + 1) * length / n)])`` along each axis."""

def avg_pool1d(
    data: Expr,
    pool_size: int | Sequence[int] = (1,),
    strides: int | Sequence[int] = (1,),
    dilation: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Expr:
    """Mean over windows: ``y[i] = sum_k x[i * stride + k * dilation - padding] / n``."""

def avg_pool2d(
    data: Expr,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    dilation: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Expr:
    """Mean over windows: ``y[i] = sum_k x[i * stride + k * dilation - padding] / n``."""

def avg_pool3d(
    data: Expr,
    pool_size: int | Sequence[int] = (1, 1, 1),
    strides: int | Sequence[int] = (1, 1, 1),
    dilation: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Expr:
    """Mean over windows: ``y[i] = sum_k x[i * stride + k * dilation - padding] / n``."""

def batch_flatten(data: Expr) -> Expr:
    """All axes but the first as one."""

def batch_matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    out_dtype: DType = "",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Expr:
    """Build ``nn.batch_matmul``; as in TVM, the right side is transposed unless told otherwise."""

def batch_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    moving_mean: Expr,
    moving_var: Expr,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> TupleWrapper:
    """Build ``nn.batch_norm``: the normalised data, the mean and the variance."""

def batch_to_space_nd(
    data: Expr, block_shape: int | Sequence[int], crops: Sequence[Sequence[int]]
) -> Expr:
    """Samples put back as the elements of blocks, then cropped: undoes ``nn.space_to_batch_nd``."""

def bias_add(data: Expr, bias: Expr, axis: int = 1) -> Expr:
    """``y = x + bias[c]``, where c is the index along `axis`."""

def contrib_conv2d_NCHWc(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: DType | None = None,
) -> Expr:
    """As ``nn.conv2d``, of an image in blocks of channels such as ``NCHW8c``."""

def contrib_conv2d_nchwc(
    data: Expr,
    kernel: Expr,
    strides: AnyValue = (1, 1),
    padding: AnyValue = (0, 0),
    dilation: AnyValue = (1, 1),
    groups: int = 1,
    channels: int | SymDim | Any | None = None,
    kernel_size: AnyValue = None,
    data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: DType = "",
) -> Expr:
    """Build a convolution of an image in blocks; padding becomes that of all sides."""

def contrib_dense_pack(
    data: Expr,
    weight: Expr,
    weight_layout: str = "NC",
    units: DimLike | None = None,
    out_dtype: DType | None = None,
) -> Expr:
    """As ``nn.dense``, of a weight kept in blocks such as those of NC16n."""

def contrib_depthwise_conv2d_NCHWc(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: DType | None = None,
) -> Expr:
    """As ``nn.conv2d``, of an image in blocks of channels such as ``NCHW8c``."""

def contrib_depthwise_conv2d_nchwc(
    data: Expr,
    kernel: Expr,
    strides: AnyValue = (1, 1),
    padding: AnyValue = (0, 0),
    dilation: AnyValue = (1, 1),
    groups: int = 1,
    channels: int | SymDim | Any | None = None,
    kernel_size: AnyValue = None,
    data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: DType = "",
) -> Expr:
    """Build a convolution of an image in blocks; padding becomes that of all sides."""

def conv1d(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1,),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    out_dtype: DType | None = None,
) -> Expr:
    """``y[o, i] = sum_ck w[o, c, k] * x[c, i * stride + k * dilation - padding]``."""

def conv1d_transpose(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    dilation: int | Sequence[int] = (1,),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str = "",
    output_padding: int | Sequence[int] = (0,),
    out_dtype: DType | None = None,
) -> Expr:
    """``y[o, i * stride + k * dilation - padding] += w[c, o, k] * x[c, i]`` over c, i and k."""

def conv2d(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: DType | None = None,
) -> Expr:
    """``y[o, i] = sum_ck w[o, c, k] * x[c, i * stride + k * dilation - padding]``."""

def conv2d_backward_weight(
    grad: Expr,
    data: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    grad_layout: str = "NCHW",
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_dtype: DType | None = None,
) -> Expr:
    """``dw[o, c, k] = sum_ni grad[n, o, i] * data[n, c, i * stride + k * dilation - padding]``."""

def conv2d_transpose(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: int | Sequence[int] = (0, 0),
    out_dtype: DType | None = None,
) -> Expr:
    """``y[o, i * stride + k * dilation - padding] += w[c, o, k] * x[c, i]`` over c, i and k."""

def conv3d(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    dilation: int | Sequence[int] = (1, 1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: DType | None = None,
) -> Expr:
    """``y[o, i] = sum_ck w[o, c, k] * x[c, i * stride + k * dilation - padding]``."""

def conv3d_transpose(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    dilation: int | Sequence[int] = (1, 1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "IODHW",
    out_layout: str = "",
    output_padding: int | Sequence[int] = (0, 0, 0),
    out_dtype: DType | None = None,
) -> Expr:
    """``y[o, i * stride + k * dilation - padding] += w[c, o, k] * x[c, i]`` over c, i and k."""

def correlation(
    data1: Expr,
    data2: Expr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: int | Sequence[int],
    is_multiply: bool,
    layout: str,
) -> Expr:
    """``y[d, i] = mean_ck(data1[c, i * stride1 + k] * data2[c, i * stride1 + k + d])``."""

def cross_entropy(x: Expr, y: Expr) -> Expr:
    """``-sum(log(x) * y) / n`` of probabilities and targets, each of the shape ``(n, classes)``."""

def cross_entropy_with_logits(x: Expr, y: Expr) -> Expr:
    """``-sum(x * y) / n`` of log probabilities and targets, each of the shape ``(n, classes)``."""

def deformable_conv2d(
    data: Expr,
    offset: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: DType | None = None,
) -> Expr:
    """``y[o, i] = sum_ck w[o, c, k] * x[c, i * stride + k * dilation - padding + offset[k, i]]``."""

def dense(data: Expr, weight: Expr, units: DimLike | None = None, out_dtype: DType = "") -> Expr:
    """Build ``nn.dense``; without `units` the weight must have a type."""

def depth_to_space(
    data: Expr, block_size: int, layout: str = "NCHW", mode: Literal["DCR", "CRD", ""] = "DCR"
) -> Expr:
    """Channels moved into square blocks of pixels."""

def dilate(data: Expr, strides: int | Sequence[int], dilation_value: float = 0.0) -> Expr:
    """Elements `strides` apart along each axis, with `dilation_value` between them."""

def dropout(data: Expr, rate: float = 0.5) -> Expr:
    """Build ``nn.dropout`` and take the data, leaving the mask."""

def dropout_raw(data: Expr, rate: float = 0.5) -> Expr:
    """Build ``nn.dropout`` itself, which yields the data and the mask."""

def fast_softmax(data: Expr, axis: int = -1) -> Expr:
    """``nn.softmax``; an executor may approximate the exponential, this one does not."""

def fifo_buffer(data: Expr, buffer: Expr, axis: int) -> Expr:
    """`buffer` with `data` behind it, and as much less of its front."""

def global_avg_pool1d(data: Expr, layout: str = "NCW", out_layout: str = "") -> Expr:
    """Build the adaptive pooling of one part of each axis, as TVM has it for this rank."""

def global_avg_pool2d(data: Expr, layout: str = "NCHW", out_layout: str = "") -> Expr:
    """``y = mean(x)`` over height and width, which stay as axes of length 1."""

def global_avg_pool3d(data: Expr, layout: str = "NCDHW", out_layout: str = "") -> Expr:
    """Build the adaptive pooling of one part of each axis, as TVM has it for this rank."""

def global_max_pool1d(data: Expr, layout: str = "NCW", out_layout: str = "") -> Expr:
    """Build the adaptive pooling of one part of each axis, as TVM has it for this rank."""

def global_max_pool2d(data: Expr, layout: str = "NCHW", out_layout: str = "") -> Expr:
    """``y = max(x)`` over height and width, which stay as axes of length 1."""

def global_max_pool3d(data: Expr, layout: str = "NCDHW", out_layout: str = "") -> Expr:
    """Build the adaptive pooling of one part of each axis, as TVM has it for this rank."""

def group_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    num_groups: int = 0,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> Expr:
    """``y = (x - mean(x)) / sqrt(var(x) + epsilon) * gamma + beta``."""

def instance_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> Expr:
    """``y = (x - mean(x)) / sqrt(var(x) + epsilon) * gamma + beta``, for each channel and sample."""

def l2_normalize(data: Expr, eps: float, axis: int | Sequence[int] | None = None) -> Expr:
    """Build ``nn.l2_normalize``, over all axes unless `axis` is given."""

def layer_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axis: int = -1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> Expr:
    """``y = (x - mean(x)) / sqrt(var(x) + epsilon) * gamma + beta`` over one axis."""

def leaky_relu(data: Expr, alpha: float = 0.01) -> Expr:
    """Build ``nn.leaky_relu``; as in TVM, the builder has another default than the operator."""

def log_softmax(data: Expr, axis: int = -1) -> Expr:
    """``y = x - max(x) - log(sum(exp(x - max(x))))`` along `axis`."""

def lrn(
    data: Expr,
    size: int = 5,
    axis: int = 1,
    bias: float = 2.0,
    alpha: float = 1e-05,
    beta: float = 0.75,
) -> Expr:
    """``y = x / (bias + alpha / size * sum(x**2)) ** beta``."""

def matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    units: DimLike | None = None,
    out_dtype: DType = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Expr:
    """Build ``nn.matmul``, or ``nn.dense`` where only the right side is transposed, as TVM does."""

def max_pool1d(
    data: Expr,
    pool_size: int | Sequence[int] = (1,),
    strides: int | Sequence[int] = (1,),
    dilation: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Expr:
    """Maximum over windows: ``y[i] = max_k x[i * stride + k * dilation - padding]``."""

def max_pool2d(
    data: Expr,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    dilation: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Expr:
    """Maximum over windows: ``y[i] = max_k x[i * stride + k * dilation - padding]``."""

def max_pool3d(
    data: Expr,
    pool_size: int | Sequence[int] = (1, 1, 1),
    strides: int | Sequence[int] = (1, 1, 1),
    dilation: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Expr:
    """Maximum over windows: ``y[i] = max_k x[i * stride + k * dilation - padding]``."""

def mirror_pad(
    data: Expr,
    pad_width: Sequence[Sequence[int]],
    mode: Literal["SYMMETRIC", "REFLECT"] = "SYMMETRIC",
) -> Expr:
    """`data` continued by its mirror image, with the edge repeated (SYMMETRIC) or not."""

def nll_loss(
    predictions: Expr,
    targets: Expr,
    weights: Expr,
    reduction: Literal["mean", "sum", "none"] = "mean",
    ignore_index: int = -100,
) -> Expr:
    """``y[n] = -weights[targets[n]] * predictions[n, targets[n]]``; 0 where that is ignored."""

def pad(
    data: Expr,
    pad_width: Expr | Sequence[Sequence[int]],
    pad_value: Expr | float = 0,
    pad_mode: str = "constant",
) -> Expr:
    """Build ``nn.pad``, or ``dyn.nn.pad`` for widths that are computed."""

def prelu(data: Expr, alpha: Expr, axis: int = 1) -> Expr:
    """``y = x if x > 0 else alpha[c] * x``, where c is the index along `axis`."""

def relu(data: Expr) -> Expr:
    """``y = max(x, 0)``."""

def softmax(data: Expr, axis: int = -1) -> Expr:
    """``y = exp(x - max(x)) / sum(exp(x - max(x)))`` along `axis`."""

def space_to_batch_nd(
    data: Expr,
    block_shape: int | Sequence[int],
    paddings: Sequence[Sequence[int]],
    pad_value: float = 0.0,
) -> Expr:
    """The axes after the first padded, then every element of a block made a sample of its own."""

def space_to_depth(data: Expr, block_size: int, layout: str = "NCHW") -> Expr:
    """Build ``nn.space_to_depth``; as in TVM, its mode is left empty."""

def sparse_add(dense_mat: Expr, sparse_mat: AnyValue) -> Expr:
    """Build ``nn.sparse_add``; the matrix is SciPy's, or its data, indices and indptr."""

def sparse_conv2d(
    dense_data: Expr,
    sparse_data: Expr,
    sparse_indices: Expr,
    sparse_indptr: Expr,
    layout: Literal["NHWC", "NCHW"] = "NHWC",
    kernel_size: DimLike | Sequence[DimLike] = (1, 1),
) -> Expr:
    """A convolution that keeps height and width, its weight a sparse matrix of a row a channel."""

def sparse_dense(dense_mat: Expr, sparse_mat: AnyValue, sparse_lhs: bool = False) -> Expr:
    """Build ``nn.sparse_dense``; the matrix is SciPy's, or its data, indices and indptr."""

def sparse_transpose(x: AnyValue) -> TupleWrapper:
    """Build ``nn.sparse_transpose``; the matrix is SciPy's, or its data, indices and indptr."""

def upsampling(
    data: Expr,
    scale_h: Expr | float = 1,
    scale_w: Expr | float = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Expr:
    """Build ``nn.upsampling``, or ``dyn.nn.upsampling`` for scales that are computed."""

def upsampling3d(
    data: Expr,
    scale_d: Expr | float = 1,
    scale_h: Expr | float = 1,
    scale_w: Expr | float = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Expr:
    """Build ``nn.upsampling3d``, or ``dyn.nn.upsampling3d`` for scales that are computed."""
