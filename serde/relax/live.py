"""Modules as users get them, and what they say about themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any as AnyValue, Final

import numpy as np

from serde.bridge.summary import ModelSummary, TensorNames, TensorSummary
from serde.core.weights import Array, Weight, dtype_name, empty_aligned, numpy_dtype, read_aligned
from serde.relax.framework import Framework, load
from serde.relax.model import RelaxModel
from serde.relax.reflection import name_of, result_leaves

__all__ = [
    "copied_array", "from_results", "names_of", "operators_of", "share", "shared_array",
    "summary_of", "summary_of_tensor", "to_argument", "to_live", "to_tensor",
]  # fmt: skip

_ALIGNMENT: Final = 64
"""Of memory that TVM shares, in bytes."""

_PLAIN: Final = frozenset(
    (
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
        *("bool", "float16", "float32", "float64"),
    )
)
"""Elements that NumPy's DLPack has."""


def to_live(model: RelaxModel) -> AnyValue:
    """Return the module with its weights in the attribute ``params`` of ``main``, as TVM has it.

    ``tvm.relax.frontend.detach_params`` takes them out again.
    """
    framework = load()
    if not model.weights:
        return model.module
    module = framework.tvm.IRModule(model.module.functions)
    tensors = [to_tensor(framework, each) for each in model.weights.values()]
    module["main"] = module["main"].with_attr("params", tensors)
    return module


def to_tensor(framework: Framework, weight: Weight) -> AnyValue:
    """Return a weight as a tensor of TVM, read piece by piece into memory that TVM shares."""
    return share(framework, read_aligned(weight))


def share(framework: Framework, data: Array) -> AnyValue:
    """Return an array as a tensor of TVM, which shares its memory where TVM allows that."""
    data = np.asarray(data, order="C")
    if not data.size:
        return framework.tvm.runtime.tensor(data)
    name = dtype_name(data.dtype)
    if data.ctypes.data % _ALIGNMENT or not data.flags.writeable:
        held = empty_aligned(data.shape, name)
        held[...] = data
        data = held
    if name in _PLAIN:
        return framework.tvm.runtime.from_dlpack(data)
    # NumPy has no DLPack of the elements of ml_dtypes: these are seen as integers on the way.
    numbers = framework.tvm.runtime.from_dlpack(data.view(f"u{data.dtype.itemsize}"))
    return numbers._create_view(data.shape, name)


def copied_array(tensor: AnyValue) -> Array:
    """Return the values of a tensor of TVM, in memory of their own."""
    shared = shared_array(tensor)
    found: Array = tensor.numpy() if shared is None else shared.copy()
    return found


def shared_array(tensor: AnyValue) -> Array | None:
    """Return the memory of a tensor of TVM as an array, None where NumPy cannot see it."""
    name = str(tensor.dtype)
    try:
        if name in _PLAIN:
            return np.from_dlpack(tensor)
        dtype = numpy_dtype(name)
        numbers = tensor._create_view(tuple(tensor.shape), f"uint{8 * dtype.itemsize}")
        return np.from_dlpack(numbers).view(dtype)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None  # On another device, or with elements that share bytes.


def to_argument(framework: Framework, data: Array, type_: AnyValue) -> AnyValue:
    """Return an array as what a function takes: a tensor, a number or a shape."""
    if isinstance(type_, framework.PrimType):
        return data.item()
    if isinstance(type_, framework.ShapeType):
        return framework.tvm.runtime.ShapeTuple(data.tolist())
    return share(framework, data)


def from_results(framework: Framework, found: AnyValue, function: AnyValue) -> list[Array]:
    """Return what a function has given as arrays, those of tuples one after the other."""
    pending, arrays, types = [found], list[Array](), result_leaves(framework, function)
    while pending:
        each = pending.pop()
        if hasattr(each, "numpy"):
            arrays.append(each.numpy())
        elif isinstance(each, (bool, int, float, framework.tvm.runtime.ShapeTuple)):
            dtype = getattr(types[len(arrays)], "dtype", "int64")
            arrays.append(np.asarray(each, numpy_dtype(str(dtype))))
        else:
            pending += list(each)[::-1]
    return arrays


def _bindings(framework: Framework, expr: AnyValue) -> Iterator[AnyValue]:
    relax = framework.relax
    pending = [expr]
    while pending:
        each = pending.pop()
        if isinstance(each, relax.SeqExpr):
            pending.extend(b for block in reversed(each.blocks) for b in reversed(block.bindings))
        elif isinstance(each, relax.If):
            pending += [each.false_branch, each.true_branch]
        elif isinstance(each, (relax.VarBinding, relax.MatchCast)):
            yield each
            if isinstance(each.value, relax.If):
                pending.append(each.value)


def operators_of(model: RelaxModel) -> list[str]:
    """Return the operator of every call, that of a function by its name."""
    framework = load()
    kinds, functions = framework.relax, model.module.functions.values()
    bodies = [each.body for each in functions if isinstance(each, kinds.Function)]
    values = (each.value for body in bodies for each in _bindings(framework, body))
    return [name_of(each.op) for each in values if isinstance(each, kinds.Call)]


def names_of(model: RelaxModel) -> TensorNames:
    """Return the names of inputs, outputs, weights and variables."""
    framework = load()
    body = model.module["main"].body
    return TensorNames(
        inputs=model.inputs,
        outputs=model.outputs,
        weights=tuple(model.names.get(name, name) for name in model.weights),
        nodes=tuple(name_of(each.var) for each in _bindings(framework, body)),
    )


def summary_of(model: RelaxModel) -> ModelSummary:
    """Return the inputs and the weights."""
    framework = load()
    params = model.module["main"].params[: len(model.inputs)]
    types = [framework.type_of(each) for each in params]
    return ModelSummary(
        version=framework.version,
        inputs=tuple(map(summary_of_tensor, model.inputs, types)),
        parameters=sum(each.size for each in model.weights.values()),
        parameter_bytes=sum(each.nbytes for each in model.weights.values()),
    )


def summary_of_tensor(name: str, type_: AnyValue) -> TensorSummary:
    """Return what a type of Relax says, a number as a scalar, a shape as a vector."""
    framework = load()
    if isinstance(type_, framework.PrimType):
        return TensorSummary(name, (), str(type_.dtype))
    if isinstance(type_, framework.ShapeType):
        return TensorSummary(name, (type_.ndim if type_.ndim >= 0 else "?",), "int64")
    if not isinstance(type_, framework.TensorType):
        return TensorSummary(name)
    dtype = str(type_.dtype) if type_.dtype else None
    lengths = framework.lengths(type_)
    if lengths is None:
        return TensorSummary(name, ("?",) * type_.ndim if type_.ndim >= 0 else None, dtype)
    known = [getattr(each, "value", each) for each in lengths]
    # A text of TVM's own ends the process when it is copied.
    shape = tuple(each if isinstance(each, int) else str.__str__(str(each)) for each in known)
    return TensorSummary(name, shape, dtype)
