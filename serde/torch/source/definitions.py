"""PyTorch's modules and functions that are no operators themselves, told in terms of these.

This text is read as a written module is, and never run. Modules of one, two or three axes have
``Nd`` in their names, and ``rank`` first. A function of ``torch`` begins with ``torch_``; others
are those of ``torch.nn.functional``. Parameters that do not bear on predictions are named only
where arguments stand behind them.
"""

# fmt: off
# mypy: ignore-errors
# ruff: noqa: E701, I001, N812, RUF005

import torch
import torch.nn.functional as F
from torch import nn

class Sequential(nn.Module): pass
class ModuleList(nn.Module): pass
class Applied(nn.Module): pass

class Identity(nn.Module):
    def forward(self, input): return input

class Dropout(Identity):
    def __init__(self, p=0.5, inplace=False): super().__init__()
class DropoutNd(Identity):
    def __init__(self, rank, p=0.5, inplace=False): super().__init__()
class AlphaDropout(Dropout): pass

class Flatten(nn.Module):
    def __init__(self, start_dim=1, end_dim=-1): self.axes = (start_dim, end_dim)
    def forward(self, input): return input.flatten(*self.axes)

class Unflatten(nn.Module):
    def __init__(self, dim, unflattened_size): self.dim, self.sizes = dim, unflattened_size
    def forward(self, input): return input.unflatten(self.dim, self.sizes)

class _Pad(nn.Module):
    def __init__(self, rank, padding, mode, value):
        self.padding, self.rest = _several(padding, 2 * rank), (mode, value)
    def forward(self, input): return F.pad(input, self.padding, *self.rest)

class ZeroPadNd(_Pad):
    def __init__(self, rank, padding): super().__init__(rank, padding, "constant", 0.0)
class ConstantPadNd(_Pad):
    def __init__(self, rank, padding, value): super().__init__(rank, padding, "constant", value)
class ReflectionPadNd(_Pad):
    def __init__(self, rank, padding): super().__init__(rank, padding, "reflect", None)
class ReplicationPadNd(_Pad):
    def __init__(self, rank, padding): super().__init__(rank, padding, "replicate", None)

class MaxPoolNd(nn.Module):
    def __init__(self, rank, kernel_size, stride=(), padding=0, dilation=1, return_indices=False,
                 ceil_mode=False):
        self.name, self.both = f"max_pool{rank}d", return_indices
        self.rest = (kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)
    def forward(self, input):
        return getattr(F, self.name)(input, *self.rest, return_indices=self.both)

# Layers with weights.

def _several(value, rank): return value if isinstance(value, tuple) else (value,) * rank

def _parameter(shape, dtype, exists=True):
    return nn.Parameter(torch.empty(shape, dtype=dtype)) if exists else None

class ConvNd(nn.Module):
    def __init__(self, rank, in_channels, out_channels, kernel_size, stride=1, padding=0,
                 dilation=1, groups=1, bias=True, dtype=torch.float32):
        shape = (out_channels, in_channels // groups, *_several(kernel_size, rank))
        self.weight = _parameter(shape, dtype)
        self.bias = _parameter((out_channels,), dtype, bias)
        self.name, self.rest = f"conv{rank}d", (stride, padding, dilation, groups)
    def forward(self, input):
        return getattr(F, self.name)(input, self.weight, self.bias, *self.rest)

class ConvTransposeNd(nn.Module):
    def __init__(self, rank, in_channels, out_channels, kernel_size, stride=1, padding=0,
                 output_padding=0, groups=1, bias=True, dilation=1, dtype=torch.float32):
        shape = (in_channels, out_channels // groups, *_several(kernel_size, rank))
        self.weight = _parameter(shape, dtype)
        self.bias = _parameter((out_channels,), dtype, bias)
        self.name = f"conv_transpose{rank}d"
        self.rest = (stride, padding, output_padding, groups, dilation)
    def forward(self, input):
        return getattr(F, self.name)(input, self.weight, self.bias, *self.rest)

class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True, dtype=torch.float32):
        self.weight = _parameter((out_features, in_features), dtype)
        self.bias = _parameter((out_features,), dtype, bias)
    def forward(self, input): return F.linear(input, self.weight, self.bias)

class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, dtype=torch.float32):
        self.weight = _parameter((num_embeddings, embedding_dim), dtype)
    def forward(self, input): return F.embedding(input, self.weight)

class PReLU(nn.Module):
    def __init__(self, num_parameters=1, init=0.25, dtype=torch.float32):
        self.weight = _parameter((num_parameters,), dtype)
    def forward(self, input): return F.prelu(input, self.weight)

class LayerNorm(nn.Module):
    def __init__(self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True,
                 dtype=torch.float32):
        self.shape, self.eps = _several(normalized_shape, 1), eps
        self.weight = _parameter(self.shape, dtype, elementwise_affine)
        self.bias = _parameter(self.shape, dtype, elementwise_affine and bias)
    def forward(self, input):
        return F.layer_norm(input, self.shape, self.weight, self.bias, self.eps)

class RMSNorm(nn.Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, dtype=torch.float32):
        self.shape, self.eps = _several(normalized_shape, 1), eps
        self.weight = _parameter(self.shape, dtype, elementwise_affine)
    def forward(self, input): return F.rms_norm(input, self.shape, self.weight, self.eps)

class GroupNorm(nn.Module):
    def __init__(self, num_groups, num_channels, eps=1e-05, affine=True, dtype=torch.float32):
        self.groups, self.eps = num_groups, eps
        self.weight = _parameter((num_channels,), dtype, affine)
        self.bias = _parameter((num_channels,), dtype, affine)
    def forward(self, input):
        return F.group_norm(input, self.groups, self.weight, self.bias, self.eps)

class _Norm(nn.Module):
    def __init__(self, num_features, eps, affine, tracks, dtype):
        self.eps = eps
        self.weight = _parameter((num_features,), dtype, affine)
        self.bias = _parameter((num_features,), dtype, affine)
        self.running_mean, self.running_var = None, None
        if tracks:
            self.register_buffer("running_mean", torch.zeros(num_features, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.zeros((), dtype=torch.int64))
    def held(self):
        own = self.running_mean is None
        return (self.running_mean, self.running_var, self.weight, self.bias, own, 0.1, self.eps)

class BatchNormNd(_Norm):
    def __init__(self, rank, num_features, eps=1e-05, momentum=0.1, affine=True,
                 track_running_stats=True, dtype=torch.float32):
        super().__init__(num_features, eps, affine, track_running_stats, dtype)
    def forward(self, input): return F.batch_norm(input, *self.held())

class InstanceNormNd(_Norm):
    def __init__(self, rank, num_features, eps=1e-05, momentum=0.1, affine=False,
                 track_running_stats=False, dtype=torch.float32):
        super().__init__(num_features, eps, affine, track_running_stats, dtype)
    def forward(self, input): return F.instance_norm(input, *self.held())

# Recurrent layers.

class _Recurrent(nn.Module):
    def __init__(self, gates, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, proj_size=0, dtype=torch.float32):
        directions, rows = 2 if bidirectional else 1, gates * hidden_size
        out = proj_size if proj_size > 0 else hidden_size
        self.weights, self.axis = [], 0 if batch_first else 1
        self.sizes = (num_layers * directions, out, hidden_size)
        self.rest = (bias, num_layers, 0.0, False, bidirectional, batch_first)
        for layer in range(num_layers):
            width = input_size if layer == 0 else out * directions
            for direction in range(directions):
                suffix = f"l{layer}" if direction == 0 else f"l{layer}_reverse"
                self.hold(f"weight_ih_{suffix}", _parameter((rows, width), dtype))
                self.hold(f"weight_hh_{suffix}", _parameter((rows, out), dtype))
                if bias:
                    self.hold(f"bias_ih_{suffix}", _parameter((rows,), dtype))
                    self.hold(f"bias_hh_{suffix}", _parameter((rows,), dtype))
                if proj_size > 0:
                    self.hold(f"weight_hr_{suffix}", _parameter((proj_size, hidden_size), dtype))
    def hold(self, name, parameter):
        self.register_parameter(name, parameter)
        self.weights = self.weights + [parameter]
    def zeros(self, input, width):
        return torch.zeros((self.sizes[0], input.size(self.axis), width), dtype=input.dtype)
    def single(self, name, input, hx):
        state = self.zeros(input, self.sizes[1]) if hx is None else hx
        x, h = getattr(torch.ops.aten, name)(input, state, self.weights, *self.rest)
        return x, h

class LSTM(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, proj_size=0, dtype=torch.float32):
        super().__init__(4, input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, dtype)
    def forward(self, input, hx=None):
        if hx is None:
            hx = (self.zeros(input, self.sizes[1]), self.zeros(input, self.sizes[2]))
        x, h, c = torch.ops.aten.lstm(input, hx, self.weights, *self.rest)
        return x, (h, c)

class GRU(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, dtype=torch.float32):
        super().__init__(3, input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0, dtype)
    def forward(self, input, hx=None): return self.single("gru", input, hx)

class RNN(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
                 batch_first=False, dropout=0.0, bidirectional=False, dtype=torch.float32):
        super().__init__(1, input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0, dtype)
        self.name = f"rnn_{nonlinearity}"
    def forward(self, input, hx=None): return self.single(self.name, input, hx)

# Functions of torch.nn.functional.

def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
               momentum=0.1, eps=1e-05):
    rest = (running_mean, running_var, training, momentum, eps, False)
    return torch.ops.aten.batch_norm(input, weight, bias, *rest)

def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None,
                  use_input_stats=True, momentum=0.1, eps=1e-05):
    rest = (running_mean, running_var, use_input_stats, momentum, eps, False)
    return torch.ops.aten.instance_norm(input, weight, bias, *rest)

def embedding(input, weight, padding_idx=None): return torch.ops.aten.embedding(weight, input)

def dropout(input, p=0.5, training=True, inplace=False):
    return torch.ops.aten.dropout(input, p, training)

def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):
    rest = (mode, align_corners, recompute_scale_factor, antialias)
    return torch.ops.aten.__interpolate(input, size, scale_factor, *rest)

def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    which = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    around = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    return torch.ops.aten.grid_sampler(input, grid, which, around, align_corners)

def affine_grid(theta, size, align_corners=False):
    return torch.ops.aten.affine_grid_generator(theta, size, align_corners)

def normalize(input, p=2.0, dim=1, eps=1e-12):
    return input / torch.linalg.vector_norm(input, p, dim, True).clamp_min(eps)

def local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0):
    squares = F.pad((input * input).flatten(2).unsqueeze(1), (0, 0, size // 2, (size - 1) // 2))
    means = F.avg_pool2d(squares, (size, 1), 1).squeeze(1).reshape(input.shape)
    return input / (means * alpha + k) ** beta

def softsign(input): return input / (input.abs() + 1)

def tanhshrink(input): return input - input.tanh()

def logsigmoid(input): return torch.ops.aten.log_sigmoid(input)

def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    first = (_several(output_size, 2), _several(kernel_size, 2), _several(dilation, 2))
    return torch.ops.aten.col2im(input, *first, _several(padding, 2), _several(stride, 2))

def _reduction(name): return 0 if name == "none" else 1 if name == "mean" else 2

def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean",
                  label_smoothing=0.0):
    rest = (_reduction(reduction), ignore_index, label_smoothing)
    return torch.ops.aten.cross_entropy_loss(input, target, weight, *rest)

def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    return torch.ops.aten.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)

# Functions of torch.

def torch_unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    if dim is None:
        found = torch.ops.aten._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = torch.ops.aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    if return_inverse:
        return found if return_counts else (found[0], found[1])
    return (found[0], found[2]) if return_counts else found[0]
