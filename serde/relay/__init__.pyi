"""Relay, the functional graph IR of TVM up to 0.19, in Python and NumPy.

The pivot between formats. Operators are attributes of this package, as ``relay.add`` or
``relay.nn.conv2d``, called as TVM's builders are. What is asked for is loaded then.
"""

from collections.abc import Iterable, Sequence
from typing import Any as AnyValue, Literal, overload

from serde.compat import frontend as frontend
from serde.compat.backend import (
    load_json as load_json,
    load_param_dict as load_param_dict,
    save_json as save_json,
    save_param_dict as save_param_dict,
    to_onnx as to_onnx,
)
from serde.relay import (
    adt as adt,
    analysis as analysis,
    build_module as build_module,
    dataflow_pattern as dataflow_pattern,
    expr as expr,
    expr_functor as expr_functor,
    function as function,
    op as op,
    prelude as prelude,
    scope_builder as scope_builder,
    testing as testing,
    transform as transform,
    ty as ty,
)
from serde.relay._builders import (
    annotation as annotation,
    dyn as dyn,
    image as image,
    nn as nn,
    qnn as qnn,
    random as random,
    serde as serde,
    vision as vision,
)
from serde.relay._builders._types import DType
from serde.relay.build_module import optimize as optimize
from serde.relay.ir import loops as loops
from serde.relay.ir.adt import (
    Clause as Clause,
    Constructor as Constructor,
    Match as Match,
    Pattern as Pattern,
    PatternConstructor as PatternConstructor,
    PatternTuple as PatternTuple,
    PatternVar as PatternVar,
    PatternWildcard as PatternWildcard,
    TypeData as TypeData,
)
from serde.relay.ir.affine_type import (
    TensorAffineType as TensorAffineType,
    TupleAffineType as TupleAffineType,
)
from serde.relay.ir.compare import (
    assert_structural_equal as assert_structural_equal,
    structural_equal as structural_equal,
)
from serde.relay.ir.copies import bind as bind
from serde.relay.ir.device import Device
from serde.relay.ir.dims import Any as Any, DimLike, symbol as symbol
from serde.relay.ir.expr import (
    Call as Call,
    Constant as Constant,
    Expr as Expr,
    Function as Function,
    GlobalVar as GlobalVar,
    If as If,
    Let as Let,
    Op as Op,
    RelayExpr as RelayExpr,
    Tuple as Tuple,
    TupleGetItem as TupleGetItem,
    TupleWrapper as TupleWrapper,
    Var as Var,
    const as const,
    var as var,
)
from serde.relay.ir.functor import (
    ExprFunctor as ExprFunctor,
    ExprMutator as ExprMutator,
    ExprVisitor as ExprVisitor,
    MixedModeMutator as MixedModeMutator,
)
from serde.relay.ir.hashing import structural_hash as structural_hash
from serde.relay.ir.model import ModelMeta as ModelMeta, RelayModel as RelayModel
from serde.relay.ir.module import IRModule as IRModule
from serde.relay.ir.refs import RefCreate as RefCreate, RefRead as RefRead, RefWrite as RefWrite
from serde.relay.ir.span import (
    SequentialSpan as SequentialSpan,
    SourceName as SourceName,
    Span as Span,
)
from serde.relay.ir.type_functor import (
    TypeFunctor as TypeFunctor,
    TypeMutator as TypeMutator,
    TypeVisitor as TypeVisitor,
)
from serde.relay.ir.types import (
    FuncType as FuncType,
    GlobalTypeVar as GlobalTypeVar,
    IncompleteType as IncompleteType,
    Kind as Kind,
    RefType as RefType,
    RelayRefType as RelayRefType,
    SequenceType as SequenceType,
    TensorType as TensorType,
    TupleType as TupleType,
    Type as Type,
    TypeCall as TypeCall,
    TypeConstraint as TypeConstraint,
    TypeKind as TypeKind,
    TypeRelation as TypeRelation,
    TypeVar as TypeVar,
)
from serde.relay.ir.verify import verify as verify
from serde.relay.run.executor import create_executor as create_executor
from serde.relay.scope_builder import ScopeBuilder as ScopeBuilder
from serde.relay.text.parser import fromtext as fromtext, parse as parse, parse_expr as parse_expr
from serde.relay.tvm.prelude import Prelude as Prelude
from serde.relay.ty import scalar_type as scalar_type

def abs(data: Expr) -> Expr:
    """``y = abs(x)``."""

def acos(data: Expr) -> Expr:
    """``y = acos(x)``, in radians."""

def acosh(data: Expr) -> Expr:
    """``y = acosh(x)``, the inverse of cosh."""

def add(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs + rhs``; of bool, modulo 2."""

def adv_index(inputs: Expr | TupleWrapper | Sequence[Expr]) -> Expr:
    """The first tensor at the indices, which broadcast against each other."""

def all(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = all(x)``: whether all are true, over axes."""

def any(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = any(x)``: whether one is true, over axes."""

def arange(
    start: Expr | float | Sequence[float],
    stop: AnyValue = None,
    step: Expr | float | Sequence[float] | None = None,
    dtype: DType = "float32",
) -> Expr:
    """Return the values from `start` to before `stop`; with one bound, from 0 to before it."""

def argmax(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    select_last_index: bool = False,
) -> Expr:
    """``y = argmax(x)`` over axes, the index as int32; among equals the first, or the last if asked. Of several axes, the row-major one."""

def argmin(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    select_last_index: bool = False,
) -> Expr:
    """``y = argmin(x)`` over axes, the index as int32; among equals the first, or the last if asked. Of several axes, the row-major one."""

def argsort(
    data: Expr, axis: int = -1, is_ascend: bool = True, dtype: DType | None = "int32"
) -> Expr:
    """The indices that put the elements in order along `axis`."""

def argwhere(condition: Expr) -> Expr:
    """The coordinates of the elements that are true or not zero, one a row."""

def asin(data: Expr) -> Expr:
    """``y = asin(x)``, in radians."""

def asinh(data: Expr) -> Expr:
    """``y = asinh(x)``, the inverse of sinh."""

def atan(data: Expr) -> Expr:
    """``y = atan(x)``, in radians."""

def atanh(data: Expr) -> Expr:
    """``y = atanh(x)``, the inverse of tanh."""

def bitwise_and(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs & rhs``: bits set in both."""

def bitwise_not(data: Expr) -> Expr:
    """``y = ~x``."""

def bitwise_or(lhs: Expr, rhs: Expr) -> Expr:
    """Bits set in ``lhs`` or in ``rhs``, or in both."""

def bitwise_xor(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs ^ rhs``: bits set in exactly one."""

def broadcast_to(data: Expr, shape: Expr | DimLike | Sequence[DimLike] | None) -> Expr:
    """Return `data` spread over `shape`: integers, dimensions or an expression."""

def broadcast_to_like(data: Expr, broadcast_type: Expr) -> Expr:
    """`data` spread over the shape of the second operand."""

def cast(data: Expr, dtype: DType) -> Expr:
    """The values in another dtype: to integers towards zero, to bool whether not zero."""

def cast_like(data: Expr, dtype_like: Expr) -> Expr:
    """The values in the dtype of the second operand."""

def ceil(data: Expr) -> Expr:
    """``y = ceil(x)``: the next integer up."""

def clip(data: Expr, a_min: float, a_max: float) -> Expr:
    """``y = min(max(x, a_min), a_max)``."""

def collapse_sum_like(data: Expr, collapse_type: Expr) -> Expr:
    """`data` summed down to the shape of the second operand, from which it would broadcast."""

def collapse_sum_to(data: Expr, shape: Expr | float | Sequence[float]) -> Expr:
    """Return `data` summed down to `shape`: integers or an expression."""

def concatenate(data: Expr | TupleWrapper | Sequence[Expr], axis: int = 0) -> Expr:
    """The tensors one after the other along `axis`."""

def contrib_reverse_reshape(
    data: Expr, newshape: DimLike | Sequence[DimLike], allowzero: bool = False
) -> Expr:
    """As reshape, with the codes matched from the last axis towards the first."""

def copy(data: Expr) -> Expr:
    """``y = x``."""

def cos(data: Expr) -> Expr:
    """``y = cos(x)``, of radians."""

def cosh(data: Expr) -> Expr:
    """``y = (exp(x) + exp(-x)) / 2``."""

def cumprod(
    data: Expr, axis: int | None = None, dtype: DType | None = None, exclusive: bool | None = None
) -> Expr:
    """``y[i] = prod(x[j] for j <= i)`` along `axis`, or of the flat tensor; with `exclusive` for j < i."""

def cumsum(
    data: Expr, axis: int | None = None, dtype: DType | None = None, exclusive: bool | None = None
) -> Expr:
    """``y[i] = sum(x[j] for j <= i)`` along `axis`, or of the flat tensor; with `exclusive` for j < i."""

def device_copy(data: Expr, src_device: AnyValue, dst_device: AnyValue) -> Call:
    """Return `data` as it comes from one device to another, given as to ``on_device``."""

def dft(re_data: Expr, im_data: Expr, inverse: bool = False) -> TupleWrapper:
    """The discrete Fourier transform along the last axis, in its real and imaginary part."""

def divide(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs / rhs``; of integers, rounded towards zero."""

def einsum(data: Expr | Iterable[Expr], equation: str) -> Expr:
    """Build ``einsum`` of a tuple or several expressions."""

def equal(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs == rhs``."""

def erf(data: Expr) -> Expr:
    """``y = erf(x)``, the error function."""

def exp(data: Expr) -> Expr:
    """``y = exp(x)``."""

def expand_dims(data: Expr, axis: Expr | int, num_newaxis: int = 1) -> Expr:
    """Return `data` with axes of length 1 before axis `axis`, an integer or an expression."""

def fast_erf(data: Expr) -> Expr:
    """``y = erf(x)``; a target may approximate it, this kernel does not."""

def fast_exp(data: Expr) -> Expr:
    """``y = exp(x)``; a target may approximate it, this kernel does not."""

def fast_tanh(data: Expr) -> Expr:
    """``y = tanh(x)``; a target may approximate it, this kernel does not."""

def fixed_point_multiply(data: Expr, multiplier: int, shift: int) -> Expr:
    """``y = floor(x * multiplier * 2**(shift - 31) + 0.5)``."""

def fixed_point_multiply_per_axis(
    x: Expr,
    y: Expr,
    lshift: Expr,
    rshift: Expr,
    is_lshift_required: bool,
    is_rshift_required: bool,
    axes: int | Sequence[int],
) -> Expr:
    """As fixed_point_multiply, with a multiplier and shifts for each index of `axes`."""

def floor(data: Expr) -> Expr:
    """``y = floor(x)``: the next integer down."""

def floor_divide(lhs: Expr, rhs: Expr) -> Expr:
    """``y = floor(lhs / rhs)``."""

def floor_mod(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs - floor(lhs / rhs) * rhs``, as % in Python."""

def full(
    fill_value: Expr, shape: Expr | DimLike | Sequence[DimLike] | None = (), dtype: DType = ""
) -> Expr:
    """Return a tensor of one value; `shape` is integers, dimensions or a constant."""

def full_like(data: Expr, fill_value: Expr) -> Expr:
    """One value everywhere, in the shape and dtype of the first operand."""

def gather(data: Expr, axis: int, indices: Expr) -> Expr:
    """Return the entries of `data` that `indices` names along `axis`."""

def gather_nd(
    data: Expr, indices: Expr, batch_dims: int = 0, index_rank: int | None = None
) -> Expr:
    """The slices at the indices, each of which lies along the first axis of `indices`."""

def greater(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs > rhs``."""

def greater_equal(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs >= rhs``."""

def invert_permutation(data: Expr) -> Expr:
    """The permutation that undoes `data`."""

def isfinite(data: Expr) -> Expr:
    """``y = abs(x) < inf``: whether neither infinite nor NaN."""

def isinf(data: Expr) -> Expr:
    """``y = abs(x) == inf``."""

def isnan(data: Expr) -> Expr:
    """``y = x != x``: whether NaN."""

def layout_transform(data: Expr, src_layout: str, dst_layout: str) -> Expr:
    """The axes of `src_layout` in the order and the blocks of `dst_layout`."""

def left_shift(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs << rhs``."""

def less(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs < rhs``."""

def less_equal(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs <= rhs``."""

def log(data: Expr) -> Expr:
    """``y = log(x)``, to base e."""

def log10(data: Expr) -> Expr:
    """``y = log10(x)``."""

def log2(data: Expr) -> Expr:
    """``y = log2(x)``."""

def logical_and(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs and rhs``."""

def logical_not(data: Expr) -> Expr:
    """``y = x == 0``, in the dtype of the operand."""

def logical_or(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs or rhs``."""

def logical_xor(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs xor rhs``, of truth values."""

def logsumexp(data: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Expr:
    """Return ``log(sum(exp(x)))`` over `axis`, without overflow."""

def matrix_set_diag(
    data: Expr, diagonal: Expr, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT"
) -> Expr:
    """Return `data` with diagonals `k` replaced."""

def max(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = max(x)`` over axes."""

def maximum(lhs: Expr, rhs: Expr) -> Expr:
    """``y = max(lhs, rhs)``."""

def mean(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = sum(x) / count(x)`` over axes; of integers, rounded towards zero."""

def mean_std(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> TupleWrapper:
    """Return mean and standard deviation over `axis`."""

def mean_variance(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> TupleWrapper:
    """Return mean and variance over `axis`."""

def meshgrid(
    data: Expr | TupleWrapper | Sequence[Expr], indexing: Literal["ij", "xy"] = "ij"
) -> TupleWrapper:
    """Each tensor spread over the grid that all of them span."""

def min(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = min(x)`` over axes."""

def minimum(lhs: Expr, rhs: Expr) -> Expr:
    """``y = min(lhs, rhs)``."""

def mod(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs - trunc(lhs / rhs) * rhs``, as fmod in C."""

def multiply(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs * rhs``."""

def ndarray_size(data: Expr, dtype: DType | None = "int32") -> Expr:
    """The number of elements."""

def negative(data: Expr) -> Expr:
    """``y = -x``."""

def not_equal(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs != rhs``."""

def on_device(
    body: Expr,
    virtual_device: Device | None = None,
    constrain_result: bool = False,
    constrain_body: bool = True,
) -> Expr:
    """State the device that computes a value, and with `constrain_result` keeps it: ``y = x``."""

def one_hot(
    indices: Expr,
    on_value: Expr | float | Sequence[float],
    off_value: Expr | float | Sequence[float],
    depth: Expr | int,
    axis: int,
    dtype: DType,
) -> Expr:
    """Return codes of `indices`; the two values are numbers or expressions."""

def ones(shape: Expr | DimLike | Sequence[DimLike] | None, dtype: DType) -> Expr:
    """Return ones; `shape` is integers, dimensions or an expression."""

def ones_like(data: Expr) -> Expr:
    """Ones, of the shape and dtype of the operand."""

def power(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs ** rhs``."""

def prod(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = prod(x)`` over axes."""

def reinterpret(data: Expr, dtype: DType) -> Expr:
    """The same bits read as another dtype of the same width."""

def repeat(data: Expr, repeats: int, axis: int | None = None) -> Expr:
    """Each entry of `axis`, or each element of the flat tensor, `repeats` times in a row."""

def reshape(
    data: Expr, newshape: Expr | DimLike | Sequence[DimLike], allowzero: bool = False
) -> Expr:
    """Return `data` in another shape, given as integers, dimensions or an expression."""

def reshape_like(
    data: Expr,
    shape_like: Expr,
    lhs_begin: int = 0,
    lhs_end: int | None = None,
    rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> Expr:
    """`data` with its axes `lhs_begin` to `lhs_end` shaped as axes of the second operand."""

def reverse(data: Expr, axis: int | None = None) -> Expr:
    """The elements in opposite order along `axis`."""

def reverse_reshape(data: Expr, newshape: int | Sequence[int]) -> Expr:
    """Return `data` in another shape, codes matched from the right."""

def reverse_sequence(data: Expr, seq_lengths: Expr, seq_axis: int = 1, batch_axis: int = 0) -> Expr:
    """The first `seq_lengths[b]` entries of `seq_axis` reversed, for each batch index b."""

def right_shift(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs >> rhs``; the sign is kept."""

def round(data: Expr) -> Expr:
    """``y = sign(x) * floor(abs(x) + 0.5)``: halves away from zero."""

def rsqrt(data: Expr) -> Expr:
    """``y = 1 / sqrt(x)``."""

def scatter_elements(
    data: Expr,
    indices: Expr,
    updates: Expr,
    axis: int = 0,
    reduction: Literal["update", "add", "mul", "mean", "min", "max"] = "update",
) -> Expr:
    """`data` with each update at the place that its index names along `axis`."""

def scatter_nd(
    data: Expr,
    indices: Expr,
    updates: Expr,
    mode: Literal["update", "add", "mul", "min", "max"] = "update",
) -> Expr:
    """`data` with each update at its index, which lies along the first axis of `indices`."""

def searchsorted(
    sorted_sequence: Expr, values: Expr, right: bool = False, dtype: DType = "int32"
) -> Expr:
    """Where each value goes in the innermost axis: before its equals, or after them."""

def segment_sum(data: Expr, segment_ids: Expr, num_segments: AnyValue = None) -> Expr:
    """Return the sums of the rows of `data` that have the same number in `segment_ids`."""

def sequence_mask(data: Expr, valid_length: Expr, mask_value: float = 0.0, axis: int = 0) -> Expr:
    """`data` with `mask_value` from step `valid_length[b]` on, for each batch index b."""

def shape_of(data: Expr, dtype: DType | None = "int32") -> Expr:
    """The lengths of the axes."""

def sigmoid(data: Expr) -> Expr:
    """``y = 1 / (1 + exp(-x))``."""

def sign(data: Expr) -> Expr:
    """``y = -1 if x < 0 else 1 if x > 0 else 0``."""

def sin(data: Expr) -> Expr:
    """``y = sin(x)``, of radians."""

def sinh(data: Expr) -> Expr:
    """``y = (exp(x) - exp(-x)) / 2``."""

def slice_like(data: Expr, shape_like: Expr, axes: Sequence[int] | None = ()) -> Expr:
    """Return the leading part of `data`, as long as `shape_like` along `axes`."""

def sliding_window(
    data: Expr, axis: int, window_shape: int | Sequence[int], strides: int | Sequence[int]
) -> Expr:
    """All windows over the axes from `axis` on; their own axes come last."""

def sort(data: Expr, axis: int = -1, is_ascend: bool = True) -> Expr:
    """The elements in order along `axis`; `dtype`, shared with argsort, has no meaning here."""

def sparse_fill_empty_rows(
    sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr
) -> TupleWrapper:
    """The entries in order of their rows, with one more in column 0 of each row that had none."""

def sparse_reshape(sparse_indices: Expr, prev_shape: Expr, new_shape: Expr) -> TupleWrapper:
    """The coordinates of the same elements in another shape, and that shape without its -1."""

def sparse_to_dense(
    sparse_indices: Expr,
    output_shape: Expr | DimLike | Sequence[DimLike],
    sparse_values: Expr,
    default_value: Expr | float | Sequence[float] = 0,
) -> Expr:
    """Return a dense tensor of `output_shape` with the values at the indices."""

def split(data: Expr, indices_or_sections: int | Sequence[int], axis: int = 0) -> TupleWrapper:
    """Build ``split``, whose parts are counted though `data` may have no type yet."""

def sqrt(data: Expr) -> Expr:
    """``y = sqrt(x)``."""

def squeeze(data: Expr, axis: Expr | int | Sequence[int] | None = None) -> Expr:
    """Return `data` without `axis`: integers, an expression, or None for all of length 1."""

def stack(data: Expr | TupleWrapper | Sequence[Expr], axis: int = 0) -> Expr:
    """The tensors as the entries of a new axis."""

def std(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> Expr:
    """Return ``sqrt(variance(x))`` over `axis`."""

def stft(
    data: Expr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Expr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Expr:
    """Build ``stft``; windows are a quarter of `n_fft` apart, as long as it, and of ones."""

def strided_set(
    data: Expr,
    v: Expr,
    begin: Expr | float | Sequence[float],
    end: Expr | float | Sequence[float],
    strides: Expr | float | Sequence[float] | None = None,
) -> Expr:
    """Return `data` with a region replaced; bounds are integers or expressions."""

def strided_slice(
    data: Expr,
    begin: Expr | int | Sequence[int] | None,
    end: Expr | int | Sequence[int] | None,
    strides: Expr | int | Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Expr:
    """Return a region of `data`; bounds are integers or expressions."""

def subtract(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs - rhs``; of bool, modulo 2."""

def sum(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> Expr:
    """``y = sum(x)`` over axes."""

def take(
    data: Expr,
    indices: Expr,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: Literal["clip", "wrap", "fast"] = "clip",
) -> Expr:
    """The entries of `axis`, or of the flat tensor, at `indices`."""

def tan(data: Expr) -> Expr:
    """``y = tan(x)``, of radians."""

def tanh(data: Expr) -> Expr:
    """``y = (exp(x) - exp(-x)) / (exp(x) + exp(-x))``."""

def tile(data: Expr, reps: Expr | int | Sequence[int]) -> Expr:
    """Return `data` repeated as `reps`, integers or an expression, says."""

@overload
def topk(
    data: Expr,
    k: Expr | int | None = 1,
    axis: int = -1,
    ret_type: Literal["both"] = "both",
    is_ascend: bool = False,
    dtype: DType = "int32",
) -> TupleWrapper:
    """Return the `k` (an integer or an expression) greatest elements along `axis`."""

@overload
def topk(
    data: Expr,
    k: Expr | int | None = 1,
    axis: int = -1,
    *,
    ret_type: Literal["values", "indices"],
    is_ascend: bool = False,
    dtype: DType = "int32",
) -> Expr:
    """Return the `k` (an integer or an expression) greatest elements along `axis`."""

@overload
def topk(
    data: Expr,
    k: Expr | int | None = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: DType = "int32",
) -> Expr | TupleWrapper:
    """Return the `k` (an integer or an expression) greatest elements along `axis`."""

def transpose(data: Expr, axes: int | Sequence[int] | None = None) -> Expr:
    """The axes in another order; None reverses them."""

def trilu(data: Expr, k: Expr | float | Sequence[float], upper: bool = True) -> Expr:
    """Return a triangle of `data`; `k` is an integer or an expression."""

def trunc(data: Expr) -> Expr:
    """``y = sign(x) * floor(abs(x))``."""

def trunc_divide(lhs: Expr, rhs: Expr) -> Expr:
    """``y = trunc(lhs / rhs)``."""

def trunc_mod(lhs: Expr, rhs: Expr) -> Expr:
    """``y = lhs - trunc(lhs / rhs) * rhs``, as fmod in C."""

def unique(data: Expr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """Return values, first places, inverse, number and, if asked, counts of a vector."""

def unravel_index(data: Expr, shape: Expr) -> Expr:
    """The coordinates, along a new first axis, of row-major places in a tensor of `shape`."""

def variance(
    data: Expr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Expr | None = None,
) -> Expr:
    """Return the variance over `axis`, about `with_mean` or else about the mean computed here."""

def where(condition: Expr, x: Expr, y: Expr) -> Expr:
    """``x if condition else y``; a number is true if it is not zero."""

def zeros(shape: Expr | DimLike | Sequence[DimLike] | None, dtype: DType) -> Expr:
    """Return zeros; `shape` is integers, dimensions or an expression."""

def zeros_like(data: Expr) -> Expr:
    """Zeros, of the shape and dtype of the operand."""
