"""What was done to inputs and outputs outside of a model, as a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from serde.core.texts import near_names
from serde.errors import OptionError
from serde.relay.ir import Array, Expr, RelayModel, TensorType, Tuple, Var, as_dtype, call, const
from serde.relay.ir.bodies import substitute
from serde.relay.ir.expr import tensor_type
from serde.relay.transform.cutting import results_of
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.result_flattening import flatten_results

__all__ = ["insert_cast", "named_results", "normalize_input", "with_ends"]

_LAYOUTS: Final = {3: ("CHW", "HWC"), 4: ("NCHW", "NHWC")}
"""Axes of images by their number, of which 1, 3 or 4 channels tell."""


def insert_cast(model: RelayModel, name: str, dtype: str) -> RelayModel:
    """Return the model with another dtype of an input or output, and a cast beside it.

    Raises:
        OptionError: The name is unknown, of both, of a state or of no tensor; no such dtype is.
    """
    if name not in model.meta.outputs:
        return normalize_input(model, name, dtype=dtype)
    if name in model.meta.inputs or name in model.meta.states:
        raise OptionError(f"insert_cast: {name!r} is an input and an output, or becomes a state")
    results = [
        (each, as_dtype(value, dtype) if each == name else value)
        for each, value in named_results(model)
    ]
    return with_ends(model, model.main.params, results)


def normalize_input(
    model: RelayModel,
    name: str,
    *,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    scale: float = 1.0,
    layout: str | None = None,
    model_layout: str | None = None,
    dtype: str | None = None,
    channels: str | None = None,
) -> RelayModel:
    """Return the model with ``(x * scale - mean) / std`` of an image before its first operator.

    It is not folded into weights, which padding would make another computation; for an input of
    float16 it is computed in float32.

    Args:
        model: The model, with inferred types.
        name: The input.
        mean: One number, or one for each channel in the model's order.
        std: Likewise.
        scale: What pixels are multiplied by first.
        layout: Axes of the new input, such as HWC, where there is one image without N; the model's
            if left out.
        model_layout: Axes of the model's input; told by 1, 3 or 4 channels if left out.
        dtype: dtype of the new input; the model's if left out.
        channels: BGR if the new input has its channels in the reverse of the model's order.

    Raises:
        OptionError: The name is unknown, or numbers, axes or dtypes do not fit.
    """
    param = next((each for each in model.inputs() if each.name_hint == name), None)
    if param is None:
        near = near_names(name, {*model.meta.inputs, *model.meta.outputs} - {name})
        raise OptionError(f"{name!r} is none of the inputs {', '.join(model.meta.inputs)}.{near}")
    type_ = param.type
    if not isinstance(type_, TensorType) or name in model.meta.states.values():
        raise OptionError(f"{name!r}: expected a tensor that is no state, found {type_!r}")
    numbers = [np.array(each, "float64").reshape(-1) for each in (scale, mean, std)]
    usual = [
        each for each in _LAYOUTS.get(type_.rank, ()) if type_.shape[each.index("C")] in (1, 3, 4)
    ]
    axes = model_layout or (usual[0] if len(usual) == 1 else "")
    outer = layout or axes
    sizes = dict(zip(axes, type_.shape, strict=False))
    fits = all(len(each) in (1, sizes.get("C")) for each in numbers) and (numbers[2] != 0).all()
    if axes or layout or channels:
        fits &= len(axes) == type_.rank and channels in (None, "BGR")
        fits &= {*outer} | {"N"} == {*axes} | {"N"} and len(outer) <= len(axes)
        fits &= "N" in outer or sizes.get("N", 1) == 1
    computes = any((each != plain).any() for each, plain in zip(numbers, (1, 0, 1), strict=True))
    fits &= type_.dtype.startswith("float") or not computes
    if not fits or not np.isfinite(np.concatenate(numbers)).all():
        told = f"layout {layout}, channels {channels}, scale {scale}, mean {mean}, std {std}"
        found = f"{type_!r} in {axes}" if axes else f"{type_!r}, whose model_layout is not told"
        raise OptionError(f"{name!r}: {told} do not fit {found}")
    shape = [sizes[each] for each in outer] if outer else type_.shape
    try:
        new = Var(name, TensorType(shape, dtype or type_.dtype), param.span)
    except TypeError:
        raise OptionError(f"{name!r}: expected a dtype such as uint8, found {dtype!r}") from None
    wide = "float32" if type_.dtype == "float16" and computes else type_.dtype
    x = _normalize(as_dtype(new, wide), axes, outer, channels is not None, numbers)
    gone = [f"{name}.{fact}" for fact in ("color_space", "scale", "bias", "range")]
    extra = {key: text for key, text in model.meta.extra.items() if key not in gone}
    params = [new if each is param else each for each in model.main.params]
    model = model.evolve(meta=replace(model.meta, extra=extra))
    return with_ends(model, params, named_results(model), {param: as_dtype(x, type_.dtype)})


def _normalize(x: Expr, axes: str, outer: str, swap: bool, numbers: Sequence[Array]) -> Expr:
    """Return ``(x * scale - mean) / std`` in the axes of the model."""
    if len(outer) < len(axes):
        x, outer = call("expand_dims", x, axis=0), f"N{outer}"
    if outer != axes:
        x = call("transpose", x, axes=tuple(map(outer.index, axes)))
    x = call("reverse", x, axis=axes.index("C")) if swap else x
    along = [-1 if each == "C" else 1 for each in axes]
    for operator, each in zip(("multiply", "subtract", "divide"), numbers, strict=True):
        if (each != (operator != "subtract")).any():
            value = each.reshape(along) if len(each) > 1 else each[0]
            x = call(operator, x, const(value, tensor_type(x).dtype))
    return x


def named_results(model: RelayModel) -> list[tuple[str, Expr]]:
    """Return the tensors that a model gives, each with its name, of which some may be equal."""
    flat = flatten_results(model)
    return [*zip(flat.meta.outputs, results_of(flat), strict=True)]


def with_ends(
    model: RelayModel,
    params: Sequence[Var],
    results: Sequence[tuple[str, Expr]],
    values: Mapping[Var, Expr] = {},
) -> RelayModel:
    """Return a model with other parameters and results, and values in the place of variables."""
    body = Tuple([value for _, value in results]) if len(results) != 1 else results[0][1]
    body = substitute(body, values)
    main = model.main.evolve(params=params, body=body, ret_type=None)
    functions = {v: main if f is model.main else f for v, f in model.mod.functions.items()}
    mod = InferType()(model.mod.with_functions(functions, checked=False))
    inputs = tuple(each.name_hint for each in params if each.name_hint not in model.params)
    meta = replace(model.meta, inputs=inputs, outputs=tuple(name for name, _ in results))
    return model.evolve(mod=mod, meta=meta)
