"""PyTorch's modules and functions that are no operators themselves, told in terms of these.

This text is read as a written module is, and never run. A function of ``torch`` begins with
``torch_``; all others are those of ``torch.nn.functional``.
"""

# ruff: noqa: A002, D, N
# mypy: ignore-errors

import torch
import torch.nn.functional as F
from torch import nn


class Sequential(nn.Module):
    pass


class ModuleList(nn.Module):
    pass


class Identity(nn.Module):
    def forward(self, input):
        return input


class Dropout(Identity):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()


class Flatten(nn.Module):
    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start, self.end = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start, self.end)


# Layers with weights.


def _several(value, rank):
    return value if isinstance(value, tuple) else (value,) * rank


def _parameter(shape, dtype, exists=True):
    return nn.Parameter(torch.empty(shape, dtype=dtype)) if exists else None


class _Conv(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
        bias=True, padding_mode="zeros", dtype=torch.float32,
    ):
        super().__init__()
        kernel = _several(kernel_size, self.rank)
        self.weight = _parameter((out_channels, in_channels // groups, *kernel), dtype)
        self.bias = _parameter((out_channels,), dtype, bias)
        self.rest = (stride, padding, dilation, groups)
        if padding_mode != "zeros":
            raise ValueError("padding_mode")


class Conv1d(_Conv):
    rank = 1

    def forward(self, input):
        return F.conv1d(input, self.weight, self.bias, *self.rest)


class Conv2d(_Conv):
    rank = 2

    def forward(self, input):
        return F.conv2d(input, self.weight, self.bias, *self.rest)


class Conv3d(_Conv):
    rank = 3

    def forward(self, input):
        return F.conv3d(input, self.weight, self.bias, *self.rest)


class _ConvTranspose(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
        groups=1, bias=True, dilation=1, padding_mode="zeros", dtype=torch.float32,
    ):
        super().__init__()
        kernel = _several(kernel_size, self.rank)
        self.weight = _parameter((in_channels, out_channels // groups, *kernel), dtype)
        self.bias = _parameter((out_channels,), dtype, bias)
        self.rest = (stride, padding, output_padding, groups, dilation)
        if padding_mode != "zeros":
            raise ValueError("padding_mode")


class ConvTranspose1d(_ConvTranspose):
    rank = 1

    def forward(self, input):
        return F.conv_transpose1d(input, self.weight, self.bias, *self.rest)


class ConvTranspose2d(_ConvTranspose):
    rank = 2

    def forward(self, input):
        return F.conv_transpose2d(input, self.weight, self.bias, *self.rest)


class ConvTranspose3d(_ConvTranspose):
    rank = 3

    def forward(self, input):
        return F.conv_transpose3d(input, self.weight, self.bias, *self.rest)


class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True, dtype=torch.float32):
        super().__init__()
        self.weight = _parameter((out_features, in_features), dtype)
        self.bias = _parameter((out_features,), dtype, bias)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)


class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, dtype=torch.float32):
        super().__init__()
        self.weight = _parameter((num_embeddings, embedding_dim), dtype)

    def forward(self, input):
        return F.embedding(input, self.weight)


class PReLU(nn.Module):
    def __init__(self, num_parameters=1, init=0.25, dtype=torch.float32):
        super().__init__()
        self.weight = _parameter((num_parameters,), dtype)

    def forward(self, input):
        return F.prelu(input, self.weight)


class LayerNorm(nn.Module):
    def __init__(
        self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, dtype=torch.float32
    ):
        super().__init__()
        self.shape = _several(normalized_shape, 1)
        self.eps = eps
        self.weight = _parameter(self.shape, dtype, elementwise_affine)
        self.bias = _parameter(self.shape, dtype, elementwise_affine and bias)

    def forward(self, input):
        return F.layer_norm(input, self.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, dtype=torch.float32):
        super().__init__()
        self.shape = _several(normalized_shape, 1)
        self.eps = eps
        self.weight = _parameter(self.shape, dtype, elementwise_affine)

    def forward(self, input):
        return F.rms_norm(input, self.shape, self.weight, self.eps)


class GroupNorm(nn.Module):
    def __init__(self, num_groups, num_channels, eps=1e-05, affine=True, dtype=torch.float32):
        super().__init__()
        self.groups, self.eps = num_groups, eps
        self.weight = _parameter((num_channels,), dtype, affine)
        self.bias = _parameter((num_channels,), dtype, affine)

    def forward(self, input):
        return F.group_norm(input, self.groups, self.weight, self.bias, self.eps)


class _Norm(nn.Module):
    def __init__(
        self, num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True,
        dtype=torch.float32,
    ):
        super().__init__()
        self.eps = eps
        self.weight = _parameter((num_features,), dtype, affine)
        self.bias = _parameter((num_features,), dtype, affine)
        self.running_mean, self.running_var = None, None
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.zeros((), dtype=torch.int64))


class _BatchNorm(_Norm):
    def forward(self, input):
        own = self.running_mean is None
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, own, 0.1, self.eps
        )


class BatchNorm1d(_BatchNorm):
    pass


class BatchNorm2d(_BatchNorm):
    pass


class BatchNorm3d(_BatchNorm):
    pass


class _InstanceNorm(_Norm):
    def __init__(
        self, num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False,
        dtype=torch.float32,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, input):
        own = self.running_mean is None
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, own, 0.1, self.eps
        )


class InstanceNorm1d(_InstanceNorm):
    pass


class InstanceNorm2d(_InstanceNorm):
    pass


class InstanceNorm3d(_InstanceNorm):
    pass


# Recurrent layers.


class _Recurrent(nn.Module):
    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, proj_size=0, nonlinearity="tanh", dtype=torch.float32,
    ):
        super().__init__()
        self.layers, self.biased, self.batch_first = num_layers, bias, batch_first
        self.bidirectional, self.nonlinearity = bidirectional, nonlinearity
        self.hidden = hidden_size
        self.out = proj_size if proj_size > 0 else hidden_size
        self.directions = 2 if bidirectional else 1
        rows = self.gates * hidden_size
        self.weights = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else self.out * self.directions
            for direction in range(self.directions):
                suffix = f"l{layer}" if direction == 0 else f"l{layer}_reverse"
                self._hold(f"weight_ih_{suffix}", _parameter((rows, width), dtype))
                self._hold(f"weight_hh_{suffix}", _parameter((rows, self.out), dtype))
                if bias:
                    self._hold(f"bias_ih_{suffix}", _parameter((rows,), dtype))
                    self._hold(f"bias_hh_{suffix}", _parameter((rows,), dtype))
                if proj_size > 0:
                    self._hold(
                        f"weight_hr_{suffix}", _parameter((proj_size, hidden_size), dtype)
                    )

    def _hold(self, name, parameter):
        self.register_parameter(name, parameter)
        self.weights = self.weights + [parameter]

    def _zeros(self, input, width):
        batch = input.size(0 if self.batch_first else 1)
        return torch.zeros((self.layers * self.directions, batch, width), dtype=input.dtype)

    def _rest(self):
        own = (self.weights, self.biased, self.layers, 0.0, False, self.bidirectional)
        return own + (self.batch_first,)


class LSTM(_Recurrent):
    gates = 4

    def forward(self, input, hx=None):
        if hx is None:
            hx = (self._zeros(input, self.out), self._zeros(input, self.hidden))
        x, h, c = torch.ops.aten.lstm(input, hx, *self._rest())
        return x, (h, c)


class GRU(_Recurrent):
    gates = 3

    def forward(self, input, hx=None):
        if hx is None:
            hx = self._zeros(input, self.out)
        x, h = torch.ops.aten.gru(input, hx, *self._rest())
        return x, h


class RNN(_Recurrent):
    gates = 1

    def forward(self, input, hx=None):
        if hx is None:
            hx = self._zeros(input, self.out)
        if self.nonlinearity == "tanh":
            x, h = torch.ops.aten.rnn_tanh(input, hx, *self._rest())
        else:
            x, h = torch.ops.aten.rnn_relu(input, hx, *self._rest())
        return x, h


# Activations and pooling as layers.


class _Activation(nn.Module):
    def __init__(self, inplace=False):
        super().__init__()


class ReLU(_Activation):
    def forward(self, input):
        return F.relu(input)


class ReLU6(_Activation):
    def forward(self, input):
        return F.relu6(input)


class SiLU(_Activation):
    def forward(self, input):
        return F.silu(input)


class Mish(_Activation):
    def forward(self, input):
        return F.mish(input)


class SELU(_Activation):
    def forward(self, input):
        return F.selu(input)


class Hardswish(_Activation):
    def forward(self, input):
        return F.hardswish(input)


class Hardsigmoid(_Activation):
    def forward(self, input):
        return F.hardsigmoid(input)


class Sigmoid(nn.Module):
    def forward(self, input):
        return torch.sigmoid(input)


class Tanh(nn.Module):
    def forward(self, input):
        return torch.tanh(input)


class GELU(nn.Module):
    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)


class LeakyReLU(nn.Module):
    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.slope = negative_slope

    def forward(self, input):
        return F.leaky_relu(input, self.slope)


class Softmax(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.softmax(input, self.dim)


class _Pool(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        super().__init__()
        self.rest = (kernel_size, stride, padding, dilation, False, ceil_mode)


class MaxPool1d(_Pool):
    def forward(self, input):
        return max_pool1d(input, *self.rest)


class MaxPool2d(_Pool):
    def forward(self, input):
        return max_pool2d(input, *self.rest)


class AvgPool2d(nn.Module):
    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
    ):
        super().__init__()
        self.rest = (kernel_size, stride, padding, ceil_mode, count_include_pad)

    def forward(self, input):
        return F.avg_pool2d(input, *self.rest)


class AdaptiveAvgPool2d(nn.Module):
    def __init__(self, output_size):
        super().__init__()
        self.size = output_size

    def forward(self, input):
        return F.adaptive_avg_pool2d(input, self.size)


# Functions of torch.nn.functional.


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1,
    eps=1e-05,
):
    return torch.ops.aten.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
    momentum=0.1, eps=1e-05,
):
    return torch.ops.aten.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def embedding(input, weight, padding_idx=None):
    return torch.ops.aten.embedding(weight, input)


def dropout(input, p=0.5, training=True, inplace=False):
    if training:
        raise ValueError("training")
    return input


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
):
    rest = (kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)
    if return_indices:
        return torch.ops.aten.max_pool1d_with_indices(input, *rest)
    return torch.ops.aten.max_pool1d(input, *rest)


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
):
    rest = (kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)
    if return_indices:
        return torch.ops.aten.max_pool2d_with_indices(input, *rest)
    return torch.ops.aten.max_pool2d(input, *rest)


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
):
    rest = (kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)
    if return_indices:
        return torch.ops.aten.max_pool3d_with_indices(input, *rest)
    return torch.ops.aten.max_pool3d(input, *rest)


def adaptive_max_pool1d(input, output_size):
    return torch.ops.aten.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool2d(input, output_size):
    return torch.ops.aten.adaptive_max_pool2d(input, output_size)[0]


def adaptive_max_pool3d(input, output_size):
    return torch.ops.aten.adaptive_max_pool3d(input, output_size)[0]


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None,
    recompute_scale_factor=None, antialias=False,
):
    return torch.ops.aten.__interpolate(
        input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    )


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    which = 0 if mode == modes[0] else 1 if mode == modes[1] else 2
    around = 0 if padding_mode == paddings[0] else 1 if padding_mode == paddings[1] else 2
    return torch.ops.aten.grid_sampler(input, grid, which, around, align_corners)


def affine_grid(theta, size, align_corners=False):
    return torch.ops.aten.affine_grid_generator(theta, size, align_corners)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    return input / torch.linalg.vector_norm(input, p, dim, True).clamp_min(eps)


def local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0):
    squares = input.mul(input).flatten(2).unsqueeze(1)
    padded = F.pad(squares, (0, 0, size // 2, (size - 1) // 2))
    summed = F.avg_pool2d(padded, (size, 1), 1).squeeze(1)
    return input / (summed.reshape(input.shape) * alpha + k).pow(beta)


def softsign(input):
    return input / (input.abs() + 1)


def logsigmoid(input):
    return torch.ops.aten.log_sigmoid(input)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return torch.ops.aten.col2im(
        input, _several(output_size, 2), _several(kernel_size, 2), _several(dilation, 2),
        _several(padding, 2), _several(stride, 2),
    )


def _reduction(name):
    return 0 if name == "none" else 1 if name == "mean" else 2


def cross_entropy(
    input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    return torch.ops.aten.cross_entropy_loss(
        input, target, weight, _reduction(reduction), ignore_index, label_smoothing
    )


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    return torch.ops.aten.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)


# Functions of torch.


def torch_unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    if dim is None:
        found = torch.ops.aten._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = torch.ops.aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    if return_inverse and return_counts:
        return found
    if return_inverse:
        return found[0], found[1]
    if return_counts:
        return found[0], found[2]
    return found[0]
