"""Inputs and outputs of other types: what was done to them outside becomes part of the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from serde.core.texts import near_names
from serde.core.weights import dtype_name
from serde.errors import OptionError
from serde.relay.ir import Expr, RelayModel, TensorType, Tuple, Var, call, const, tensor_type
from serde.relay.ir.bodies import substitute
from serde.relay.transform.cutting import results_of
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.result_flattening import flatten_results

__all__ = ["Layout", "insert_cast", "normalize_input", "with_ends"]

Layout = Literal["CHW", "HWC", "NCHW", "NHWC"]

_CHANNELS = (1, 3, 4)
"""How many channels an image may have, where that has to tell which axis they are."""


def insert_cast(model: RelayModel, name: str, dtype: str) -> RelayModel:
    """Return the model with another dtype for an input or output, cast next to it.

    Args:
        model: The model, with inferred types.
        name: The input or output.
        dtype: What the input is given in, or the output gives.

    Raises:
        OptionError: The name is unknown, or of an input and an output; it is a state, or no
            tensor; there is no such dtype.
    """
    found = _dtype(dtype)
    model = flatten_results(model)
    if name in model.meta.inputs and name in model.meta.outputs:
        raise OptionError(f"{name!r} is an input and an output")
    if name not in model.meta.outputs:
        param = _input(model, name)
        new = Var(name, TensorType(tensor_type(param).shape, found), param.span)
        return _feed(model, param, new, call("cast", new, dtype=tensor_type(param).dtype))
    if name in model.meta.states:
        raise OptionError(f"{name!r} becomes the state {model.meta.states[name]!r}")
    results = [
        call("cast", value, dtype=found) if each == name else value
        for each, value in zip(model.meta.outputs, results_of(model), strict=True)
    ]
    return with_ends(model, model.main.params, results)


def normalize_input(
    model: RelayModel,
    name: str,
    *,
    mean: Sequence[float] = (0.0,),
    std: Sequence[float] = (1.0,),
    scale: float = 1.0,
    layout: Layout | None = None,
    model_layout: Layout | None = None,
    dtype: str | None = None,
    channels: Literal["BGR"] | None = None,
) -> RelayModel:
    """Return the model with the preprocessing of an image in it: ``(x * scale - mean) / std``.

    It is computed before the first operator, and not folded into weights, where padding would
    make it another. A model whose input is float16 normalises in float32.

    Args:
        model: The model, with inferred types.
        name: The input, of floats.
        mean: One number, or one for each channel in the model's order.
        std: Likewise.
        scale: What pixels are multiplied by first.
        layout: Axes of the new input; the model's if left out. Without N, the batch is of one.
        model_layout: Axes of the model's input; told by its 1, 3 or 4 channels if left out.
        dtype: dtype of the new input, such as uint8; the model's if left out.
        channels: The new input has its channels in the other order than the model takes: BGR
            for RGB, or the reverse.

    Raises:
        OptionError: The name is unknown; the numbers, axes or dtypes do not fit.
    """
    param = _input(model, name)
    type_ = tensor_type(param)
    if not type_.dtype.startswith("float"):
        raise OptionError(f"{name!r}: expected an input of floats, found {type_!r}")
    per_channel = max(len(mean), len(std)) > 1 or channels is not None
    axes = model_layout
    if axes is None and (per_channel or layout is not None):
        axes = _model_layout(name, type_)
    if axes is not None and len(axes) != type_.rank:
        raise OptionError(f"{name!r}: layout {axes} does not fit {type_!r}")
    layout = layout or axes
    new = Var(name, _outer_type(name, type_, axes, layout, dtype), param.span)
    wide = "float32" if type_.dtype == "float16" else type_.dtype
    x: Expr = call("cast", new, dtype=wide)
    if axes is not None and layout is not None and axes != layout:
        if len(layout) < len(axes):
            x, layout = call("expand_dims", x, axis=0), "NCHW" if layout == "CHW" else "NHWC"
        x = call("transpose", x, axes=tuple(layout.index(each) for each in axes))
    if channels is not None and axes is not None:
        x = call("reverse", x, axis=axes.index("C"))
    for operator, numbers, neutral in (
        ("multiply", (scale,), 1.0), ("subtract", mean, 0.0), ("divide", std, 1.0),
    ):  # fmt: skip
        if any(number != neutral for number in numbers):
            x = call(operator, x, _along_channels(name, type_, axes, numbers, wide))
        if not all(map(math.isfinite, numbers)) or (operator == "divide" and 0 in numbers):
            raise OptionError(f"{name!r}: cannot {operator} by {', '.join(map(str, numbers))}")
    return _feed(model, param, new, call("cast", x, dtype=type_.dtype))


def _model_layout(name: str, type_: TensorType) -> Layout:
    """Return the axes of an image by the one that counts channels."""
    layouts: dict[int, tuple[Layout, ...]] = {3: ("CHW", "HWC"), 4: ("NCHW", "NHWC")}
    usual = layouts.get(type_.rank, ())
    found = [each for each in usual if type_.shape[each.index("C")] in _CHANNELS]
    if len(found) != 1:
        told = f"found {type_!r}; model_layout tells it"
        raise OptionError(f"{name!r}: expected an image with 1, 3 or 4 channels, {told}")
    return found[0]


def _outer_type(
    name: str, inner: TensorType, axes: str | None, layout: str | None, dtype: str | None
) -> TensorType:
    """Return the type of an input that becomes `inner`."""
    found = _dtype(dtype or inner.dtype)
    if axes is None or layout is None:
        return TensorType(inner.shape, found)
    sizes = dict(zip(axes, inner.shape, strict=True))
    if not set(layout) <= set(axes) or ("N" not in layout and sizes.get("N", 1) != 1):
        raise OptionError(f"{name!r}: {inner!r} in {axes} cannot be given in {layout}")
    return TensorType([sizes[each] for each in layout], found)


def _along_channels(
    name: str, type_: TensorType, axes: str | None, numbers: Sequence[float], dtype: str
) -> Expr:
    if len(numbers) == 1 or axes is None:
        return const(numbers[0], dtype)
    axis = axes.index("C")
    if type_.shape[axis] != len(numbers):
        told = f"expected a number for each of {type_.shape[axis]} channels"
        raise OptionError(f"{name!r}: {told}, found {len(numbers)}")
    shape = [-1 if each == axis else 1 for each in range(type_.rank)]
    return const(np.asarray(numbers, dtype).reshape(shape), dtype)


def _dtype(name: str) -> str:
    try:
        return dtype_name(name)
    except TypeError:
        raise OptionError(f"expected a dtype such as uint8, found {name!r}") from None


def _input(model: RelayModel, name: str) -> Var:
    """Return an input that is a tensor, and which no call before gives."""
    found = next((each for each in model.inputs() if each.name_hint == name), None)
    if found is None:
        known = [*model.meta.inputs, *model.meta.outputs]
        listed = ", ".join(model.meta.inputs) or "none"
        raise OptionError(f"no input {name!r}; there are: {listed}.{near_names(name, known)}")
    if name in model.meta.states.values() or not isinstance(found.type, TensorType):
        what = "state" if name in model.meta.states.values() else f"{found.type!r}"
        raise OptionError(f"{name!r}: expected an input that is a tensor, found a {what}")
    return found


def _feed(model: RelayModel, param: Var, new: Var, value: Expr) -> RelayModel:
    """Return the model with another input in the place of one, which is computed from it."""
    kept = {
        key: text
        for key, text in model.meta.extra.items()
        if key.rpartition(".")[0] != param.name_hint or key.endswith(".description")
    }
    body = substitute(model.main.body, {param: value})
    params = [new if each is param else each for each in model.main.params]
    return with_ends(model.evolve(meta=replace(model.meta, extra=kept)), params, [body])


def with_ends(
    model: RelayModel, params: Sequence[Var], results: Sequence[Expr], outputs: Sequence[str] = ()
) -> RelayModel:
    """Return a model with other parameters and results of ``main``, its types inferred.

    Args:
        model: The model.
        params: The parameters; those that are no weights are the inputs.
        results: The results; one alone may be a tuple of them.
        outputs: Their names; those of the model if left out.
    """
    body = results[0] if len(results) == 1 else Tuple(results)
    main = model.main.evolve(params=params, body=body, ret_type=None)
    functions = {v: main if f is model.main else f for v, f in model.mod.functions.items()}
    mod = InferType()(model.mod.with_functions(functions, checked=False))
    inputs = tuple(each.name_hint for each in params if each.name_hint not in model.params)
    outputs = tuple(outputs) or model.meta.outputs
    return model.evolve(mod=mod, meta=replace(model.meta, inputs=inputs, outputs=outputs))
