"""The NNEF 1.0 specification as one NumPy function a fragment, evaluated over an `nnef.Graph`.

A judge of what the bridge computes, and written apart from it: primitives by their definitions,
compounds by the bodies that the specification gives them, scalars in float64. Where the
specification is silent the function says so and follows what two other judges agree on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue, Final

import numpy as np
from support import nnef_tensors as tensors, nnef_windows as windows
from support.nnef_tensors import Array, elementwise

__all__ = ["REFERENCE", "evaluate", "run"]

DTYPES: Final = {"scalar": np.float64, "integer": np.int64, "logical": np.bool_}


def _pow(x: Array, y: Array) -> Array:
    return np.power(x, y)


def _select(condition: Array, true_value: Array, false_value: Array) -> Array:
    return np.where(condition, true_value, false_value)


def _sign(x: Array) -> Array:
    return np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))


UNARY: Final[dict[str, Callable[[Array], Array]]] = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "abs": np.abs,
    "sign": _sign,
    "rcp": lambda x: 1.0 / x,
    "neg": lambda x: -x,
    "copy": lambda x: x,
    "not": np.logical_not,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": tensors.half_away,
    "sqr": lambda x: x**2.0,
    "sqrt": lambda x: x**0.5,
    "rsqr": lambda x: x**-2.0,
    "rsqrt": lambda x: x**-0.5,
    "log2": lambda x: np.log(x) / np.log(2.0),
    "relu": lambda x: np.where(x > 0.0, x, 0.0),
    "sigmoid": tensors.sigmoid,
    "softplus": lambda x: np.log(np.exp(x) + 1.0),
    "gelu": tensors.gelu,
    "silu": lambda x: x * tensors.sigmoid(x),
}

BROADCAST: Final[dict[str, Callable[..., Array]]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": _pow,
    "lt": lambda x, y: x < y,
    "gt": lambda x, y: x > y,
    "le": lambda x, y: x <= y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": np.logical_and,
    "or": np.logical_or,
    "min": lambda x, y: np.where(x < y, x, y),
    "max": lambda x, y: np.where(x > y, x, y),
    "clamp": lambda x, a, b: np.maximum(np.minimum(x, b), a),
    "select": _select,
}

OTHER: Final[dict[str, Callable[..., AnyValue]]] = {
    "reshape": tensors.reshape,
    "transpose": tensors.transpose,
    "concat": lambda values, *, axis: np.concatenate(values, axis),
    "split": tensors.split,
    "slice": tensors.slice_,
    "squeeze": tensors.squeeze,
    "unsqueeze": tensors.unsqueeze,
    "stack": lambda values, *, axis: np.stack(values, axis),
    "unstack": tensors.unstack,
    "tile": lambda input, *, repeats: np.tile(input, repeats),
    "pad": windows.pad,
    "gather": tensors.gather,
    "update": lambda variable, value: value,
    "copy_n": lambda x, *, times: [x] * times,
    "add_n": lambda x: sum(x[1:], x[0]),
    "matmul": tensors.matmul,
    "linear": tensors.linear,
    "conv": windows.conv,
    "deconv": windows.deconv,
    "separable_conv": tensors.separable_conv,
    "separable_deconv": tensors.separable_deconv,
    "box": windows.box,
    "debox": windows.debox,
    "argmax_pool": windows.argmax_pool,
    "sample": windows.sample,
    "desample": windows.desample,
    "max_unpool": windows.desample,
    "avg_unpool": windows.avg_unpool,
    "max_pool": windows.max_pool,
    "max_pool_with_index": windows.max_pool_with_index,
    "avg_pool": lambda input, **given: windows.box(input, normalize=True, **given),
    "rms_pool": tensors.rms_pool,
    "nearest_downsample": windows.nearest_downsample,
    "area_downsample": windows.area_downsample,
    "nearest_upsample": windows.nearest_upsample,
    "multilinear_upsample": windows.multilinear_upsample,
    "sum_reduce": tensors.sum_reduce,
    "mean_reduce": tensors.mean_reduce,
    "max_reduce": tensors.reduce_by(np.max),
    "min_reduce": tensors.reduce_by(np.min),
    "any_reduce": tensors.reduce_by(np.any),
    "all_reduce": tensors.reduce_by(np.all),
    "argmax_reduce": tensors.arg_reduce(np.argmax),
    "argmin_reduce": tensors.arg_reduce(np.argmin),
    "moments": tensors.moments,
    "softabs": lambda x, *, epsilon: np.sqrt(x**2 + epsilon),
    "softmax": tensors.softmax,
    "elu": tensors.elu,
    "selu": tensors.selu,
    "prelu": tensors.prelu,
    "leaky_relu": lambda x, *, alpha: np.where(x < 0.0, alpha * x, x),
    "local_response_normalization": tensors.local_response_normalization,
    "local_mean_normalization": tensors.local_mean_normalization,
    "local_variance_normalization": tensors.local_variance_normalization,
    "local_contrast_normalization": tensors.local_contrast_normalization,
    "l1_normalization": tensors.l1_normalization,
    "l2_normalization": tensors.l2_normalization,
    "batch_normalization": tensors.batch_normalization,
    "avg_roi_pool": windows.avg_roi_pool,
    "max_roi_pool": windows.max_roi_pool,
    "roi_resample": windows.roi_resample,
    "avg_roi_align": windows.avg_roi_align,
    "max_roi_align": windows.max_roi_align,
    "linear_quantize": tensors.linear_quantize,
    "min_max_linear_quantize": tensors.min_max_linear_quantize,
    "zero_point_linear_quantize": tensors.zero_point_linear_quantize,
    "logarithmic_quantize": tensors.logarithmic_quantize,
}

REFERENCE: Final = {**UNARY, **{name: elementwise(f) for name, f in BROADCAST.items()}, **OTHER}
"""A function by fragment: all but external, variable, constant and cast."""

DECLARED: Final = frozenset(("external", "variable", "constant", "cast"))


def run(graph: AnyValue, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a graph, by name."""
    values = evaluate(graph, inputs)
    return {name: values[name] for name in graph.outputs}


def evaluate(graph: AnyValue, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return all tensors of a graph, by name.

    Args:
        graph: What `nnef.load_graph` returns, with the data of its variables.
        inputs: Values of the externals.
    """
    values: dict[str, Array] = {}
    for operation in graph.operations:
        results = _invoke(graph, operation, values, inputs)
        names = list(operation.outputs.values())
        for name, result in zip(names, results, strict=True):
            for each, array in _pairs(name, result):
                values[each] = _quantize(graph.tensors[each], operation.name, array)
    return values


def _pairs(name: AnyValue, result: AnyValue) -> list[tuple[str, Array]]:
    return list(zip(name, result, strict=True)) if isinstance(name, list) else [(name, result)]


def _invoke(
    graph: AnyValue, operation: AnyValue, values: Mapping[str, Array], inputs: Mapping[str, Array]
) -> list[AnyValue]:
    """Return what an operation assigns, one item for each of its results."""
    name, given = operation.name, dict(operation.attribs)
    if name == "external":
        return [_widen(inputs[operation.outputs["output"]])]
    if name == "variable":
        return [_widen(graph.tensors[operation.outputs["output"]].data)]
    if name == "constant":
        return [_constant(given, operation.dtype)]
    operands = {key: _operand(each, values) for key, each in operation.inputs.items()}
    if name == "cast":
        return [_cast(operands["input"], operation.dtype)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        result = REFERENCE[name](*operands.values(), **given)
    return list(result) if len(operation.outputs) > 1 else [result]


def _operand(given: AnyValue, values: Mapping[str, Array]) -> AnyValue:
    if isinstance(given, list):
        return [_operand(each, values) for each in given]
    return values[given] if isinstance(given, str) else np.asarray(given)


def _widen(x: Array) -> Array:
    kind = np.asarray(x).dtype.kind
    return np.asarray(x).astype({"b": np.bool_, "f": np.float64}.get(kind, np.int64))


def _constant(given: Mapping[str, AnyValue], dtype: str) -> Array:
    values = np.asarray(given["value"], DTYPES[dtype]).reshape(-1)
    shape = tuple(given["shape"])
    return np.full(shape, values[0]) if values.size == 1 else values.reshape(shape)


def _cast(x: Array, dtype: str) -> Array:
    """Convert as C does: towards zero, and all but zero is true."""
    return x.astype(DTYPES[dtype])


def _quantize(tensor: AnyValue, op: str, value: Array) -> Array:
    """Return a tensor with the values that graph.quant lets it have."""
    given = dict(tensor.quantization or {})
    if not given or not given.get("op-name"):
        return value
    if op == "variable" and value.dtype.kind in "iu":
        return tensors.stored_values(value, given)
    f = REFERENCE[given.pop("op-name")]
    names = {"min", "max", "zero_point", "scale"}
    operands = {key: np.asarray(each) for key, each in given.items() if key in names}
    others = {key: each for key, each in given.items() if key not in names}
    return f(value, **operands, **others)
