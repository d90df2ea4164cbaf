"""The standard fragments: their parameters, types of elements and defaults.

Source: appendix of the NNEF 1.0 specification, https://registry.khronos.org/NNEF/.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any as AnyValue, Final

from serde.core.records import dataclass

__all__ = ["FRAGMENTS", "QUANTIZERS", "REQUIRED", "Fragment", "Operand"]


class _Required:
    """Stands for the default of a parameter that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a fragment takes or gives.

    Attributes:
        name: Its name.
        element: Type of its elements: scalar, integer, logical; ``?`` for the one that the
            invocation has; ``any``.
        is_list: Whether it is a list of tensors.
        default: The literal that stands for it where it is left out.
    """

    name: str
    element: str
    is_list: bool = False
    default: AnyValue = REQUIRED


@dataclass(frozen=True, slots=True)
class Fragment:
    """The signature of a fragment.

    Attributes:
        inputs: The tensors that it takes, in order.
        attributes: Defaults of its other parameters, in order.
        outputs: What it gives.
    """

    inputs: tuple[Operand, ...]
    attributes: Mapping[str, AnyValue]
    outputs: tuple[Operand, ...]


# Tensors | other parameters | results. Elements are scalars where no type follows a colon.
_WINDOW: Final = "border='constant' padding=[] stride=[] dilation=[]"
_TEXT: Final = f"""
external: | shape | output:?
variable: | shape label | output:?
constant: | shape value | output:?
update: variable:? value:? | | result:?
reshape: input:? | shape axis_start=0 axis_count=-1 | output:?
transpose: input:? | axes | output:?
concat: values:?[] | axis | value:?
split: value:? | axis ratios | values:?[]
slice: input:? | axes begin end stride=[] | output:?
squeeze unsqueeze: input:? | axes | output:?
stack: values:?[] | axis | value:?
unstack: value:? | axis | values:?[]
tile: input:? | repeats | output:?
pad: input | padding border='constant' value=0.0 | output
gather: input:? indices:integer | axis=0 | output:?
cast: input:any | | output:?
add sub mul div pow min max: x y | | z
exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh abs sign rcp neg: x | | y
floor ceil round sqr sqrt rsqr rsqrt log2 relu sigmoid softplus gelu silu: x | | y
copy: x:? | | y:?
lt gt le ge eq ne: x y | | z:logical
and or: x:logical y:logical | | z:logical
not: x:logical | | y:logical
select: condition:logical true_value:? false_value:? | | output:?
clamp: x a b | | y
matmul: A B | transposeA=False transposeB=False | C
conv: input filter bias=0.0 | {_WINDOW} groups=1 | output
deconv: input filter bias=0.0 | {_WINDOW} output_shape=[] groups=1 | output
separable_conv: input plane_filter point_filter bias=0.0 | {_WINDOW} groups=1 | output
separable_deconv: input plane_filter point_filter bias=0.0 | {_WINDOW} output_shape=[] groups=1 | output
linear: input filter bias=0.0 | | output
box: input | size {_WINDOW} normalize=False | output
debox: input | size {_WINDOW} output_shape=[] normalize=False | output
argmax_pool: input | size {_WINDOW} | index:integer
sample: input index:integer | size {_WINDOW} | output
desample: input index:integer | size {_WINDOW} output_shape=[] | output
max_pool avg_pool rms_pool: input | size {_WINDOW} | output
max_pool_with_index: input | size {_WINDOW} | output index:integer
max_unpool: input index:integer | size {_WINDOW} output_shape=[] | output
avg_unpool: input | size {_WINDOW} output_shape=[] | output
nearest_downsample area_downsample nearest_upsample: input | factor | output
multilinear_upsample: input | factor method='symmetric' border='replicate' | output
sum_reduce: input | axes normalize=False | output
max_reduce min_reduce mean_reduce: input | axes | output
argmax_reduce argmin_reduce: input | axes | output:integer
any_reduce all_reduce: input:logical | axes | output:logical
moments: input | axes | mean variance
softabs: x | epsilon | y
softmax: x | axes=[1] | y
elu: x | alpha=1.0 | y
selu: x | alpha=1.67326319 lambda=1.05070102 | y
prelu: x alpha | | y
leaky_relu: x | alpha | y
local_response_normalization: input | size alpha=1.0 beta=0.5 bias=1.0 | output
local_mean_normalization: input | size | output
local_variance_normalization local_contrast_normalization: input | size bias=0.0 epsilon=0.0 | output
l1_normalization l2_normalization: input | axes bias=0.0 epsilon=0.0 | output
batch_normalization: input mean variance offset scale | epsilon | output
avg_roi_pool max_roi_pool: input rois batch_index:integer | output_size | output
roi_resample: input rois batch_index:integer | output_size method='symmetric' | output
avg_roi_align max_roi_align: input rois batch_index:integer | output_size sampling_rate resize_method='symmetric' | output
linear_quantize: x min max | bits | y
logarithmic_quantize: x max | bits | y
min_max_linear_quantize: x min max | bits signed symmetric | y
zero_point_linear_quantize: x zero_point:integer scale | bits signed symmetric | y
copy_n: x:? | times | y:?[]
add_n: x[] | | y
"""  # noqa: E501


def _read_table(text: str) -> dict[str, Fragment]:
    found: dict[str, Fragment] = {}
    for line in text.strip().splitlines():
        names, signature = line.split(":", 1)
        inputs, attributes, outputs = signature.split("|")
        fragment = Fragment(
            tuple(map(_read_operand, inputs.split())),
            dict(map(_read_attribute, attributes.split())),
            tuple(map(_read_operand, outputs.split())),
        )
        found.update(dict.fromkeys(names.split(), fragment))
    return found


def _read_operand(text: str) -> Operand:
    text, _, default = text.partition("=")
    name, _, element = text.removesuffix("[]").partition(":")
    value = ast.literal_eval(default) if default else REQUIRED
    return Operand(name, element or "scalar", text.endswith("[]"), value)


def _read_attribute(text: str) -> tuple[str, AnyValue]:
    name, _, default = text.partition("=")
    return name, ast.literal_eval(default) if default else REQUIRED


FRAGMENTS: Final[Mapping[str, Fragment]] = _read_table(_TEXT)
"""Signatures by name: the 119 of the standard and the two that Khronos' parser has besides."""

QUANTIZERS: Final = frozenset(name for name in FRAGMENTS if name.endswith("_quantize"))
"""Those that graph.quant may name."""
