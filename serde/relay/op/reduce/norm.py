"""Norms, sums of squares and logarithms of sums over axes.

`axis`, `keepdims` and `exclude` are those of Relay's own reductions. Half-precision
sums are accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir import Array, Expr, TensorType, call, sample, tensor, tensor_type
from serde.relay.ir.shapes import reduced_axes, require_float
from serde.relay.op.reduce.plain import accumulator, declare, extreme_type, number_type

Axes = tuple[int, ...]


def _float_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    require_float(data)
    return number_type(data, **attrs)


def _log_sum_exp_type(data: TensorType, **attrs: AnyValue) -> TensorType:
    require_float(data)
    return extreme_type(data, **attrs)


def _of_sum(before: Callable[[Array], Array], after: Callable[[Array], Array]) -> AnyValue:
    """Return a reduction that sums `before` of each element, and takes `after` of the sum."""

    def reduction(data: Array, axis: Axes, keepdims: bool) -> Array:
        wide = accumulator(data.dtype)
        terms = before(data.astype(wide, copy=False))
        total = np.sum(terms, axis=axis, keepdims=keepdims, dtype=wide)
        return np.asarray(after(np.asarray(total))).astype(data.dtype)

    return reduction


def _same(data: Array) -> Array:
    return data


def _log_sum_exp(data: Array, axis: Axes, keepdims: bool) -> Array:
    wide = data.astype(accumulator(data.dtype), copy=False)
    peak = np.max(wide, axis=axis, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, wide.dtype.type(0))
    total = np.log(np.sum(np.exp(wide - peak), axis=axis, keepdims=True)) + peak
    return np.asarray(total if keepdims else total.squeeze(axis)).astype(data.dtype)


def _decompose_sum(data: Expr, *, before: str | None, after: str | None, **attrs: AnyValue) -> Expr:
    """Decompose :func:`_of_sum`; before is an operator's name or "square"."""
    terms = data
    if before == "square":
        terms = call("multiply", data, data)
    elif before is not None:
        terms = call(before, data)
    total = call("sum", terms, **attrs)
    return total if after is None else call(after, total)


def _decompose_log_sum_exp(
    data: Expr, *, axis: Sequence[int] | None, keepdims: bool, exclude: bool
) -> Expr:
    """An infinite peak is not subtracted, for the difference of infinities is no number."""
    axes = reduced_axes(tensor_type(data).rank, axis, exclude)
    greatest = call("max", data, axis=axes, keepdims=True)
    peak = call("where", call("isfinite", greatest), greatest, call("zeros_like", greatest))
    terms = call("exp", call("subtract", data, peak))
    total = call("add", call("log", call("sum", terms, axis=axes, keepdims=True)), peak)
    return total if keepdims or not axes else call("squeeze", total, axis=axes)


_INTEGERS = sample(tensor((4, 3), "int32", low=-9, high=9), axis=0)
_HALVES = sample(tensor((4, 3), "float16"), axis=1)
_DOUBLES = sample(tensor((4, 3), "float64", low=0.5), axis=1)
_POSITIVE = [sample(tensor((4, 3), "float16", low=0.5), axis=1), _DOUBLES]

declare(
    "serde.reduce_l1",
    _of_sum(np.abs, _same),
    "``y = sum(abs(x))`` over axes.",
    infer=number_type,
    decompose=partial(_decompose_sum, before="abs", after=None),
    more=[_INTEGERS, _HALVES, _DOUBLES],
)
declare(
    "serde.reduce_l2",
    _of_sum(np.square, np.sqrt),
    "``y = sqrt(sum(x**2))`` over axes.",
    infer=_float_type,
    decompose=partial(_decompose_sum, before="square", after="sqrt"),
    more=[_HALVES, _DOUBLES],
)
declare(
    "serde.reduce_sum_square",
    _of_sum(np.square, _same),
    "``y = sum(x**2)`` over axes.",
    infer=number_type,
    decompose=partial(_decompose_sum, before="square", after=None),
    more=[_INTEGERS, _HALVES, _DOUBLES],
)
declare(
    "serde.reduce_log_sum",
    _of_sum(_same, np.log),
    "``y = log(sum(x))`` over axes.",
    infer=_float_type,
    decompose=partial(_decompose_sum, before=None, after="log"),
    more=_POSITIVE,
)
declare(
    "serde.logsumexp",
    _log_sum_exp,
    "``y = log(sum(exp(x)))`` over axes, without overflow.",
    infer=_log_sum_exp_type,
    decompose=_decompose_log_sum_exp,
    more=[
        _HALVES,
        sample(tensor((2, 3), low=-200.0, high=200.0), axis=1),
        sample(np.array([[-np.inf, -np.inf], [-np.inf, 1], [np.inf, 1]], np.float32), axis=1),
    ],
)
