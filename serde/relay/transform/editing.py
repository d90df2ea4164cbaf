"""Edits of whole models: functions that give another model, which computes something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from serde.core.texts import near_names
from serde.errors import OptionError, Unsupported
from serde.relay.ir import Array, IRModule, RelayModel, TensorType, UniqueNames, as_dtype
from serde.relay.ir.bodies import substitute
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var, const, tensor_type
from serde.relay.ir.registry import call, called_name, set_type
from serde.relay.ir.types import accepts
from serde.relay.ir.visit import post_order, rewrite
from serde.relay.lowering.lengths import sliced
from serde.relay.text.parser import parse_expr
from serde.relay.transform.compose import Compose, Match, Pattern
from serde.relay.transform.cutting import find_values, results_of
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.inline_calls import InlineCalls, ToGraphNormalForm
from serde.relay.transform.input_types import with_input_types
from serde.relay.transform.remove_dead_code import RemoveUnusedFunctions
from serde.relay.transform.renaming import all_names, rename
from serde.relay.transform.result_flattening import flatten_results

__all__ = [
    "insert_cast", "merge_models", "normalize_input", "replace_pattern", "suppress_boxes",
]  # fmt: skip

_LAYOUTS: Final = {3: ("CHW", "HWC"), 4: ("NCHW", "NHWC")}
"""Axes of images by their number, of which 1, 3 or 4 channels tell."""
_OUTPUTS: Final = ("num_detections", "detection_boxes", "detection_scores", "detection_classes")
_TOLD_BY_WEIGHTS: Final = ("channels", "kernel_size", "units")
"""Attributes that a pattern may leave out, as an operand tells them."""


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
        for each, value in _named_results(model)
    ]
    return _with_ends(model, model.main.params, results)


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
    usual = [x for x in _LAYOUTS.get(type_.rank, ()) if type_.shape[x.index("C")] in (1, 3, 4)]
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
    return _with_ends(model, params, _named_results(model), {param: as_dtype(x, type_.dtype)})


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


def suppress_boxes(
    model: RelayModel,
    boxes: str,
    scores: str | None = None,
    *,
    max: int = 100,
    iou: float = 0.5,
    score: float = 0.25,
    layout: Literal["NBC", "NCB"] = "NBC",
    format: Literal["corners", "center"] = "corners",
) -> RelayModel:
    """Return the detector with the best boxes of each class in the place of all of them.

    A box goes that overlaps more than `iou` with a better one of its class, or does not score
    more than `score`, as of ONNX's NonMaxSuppression. Of what stays of all classes, the best are
    outputs behind the model's others, as TensorRT's EfficientNMS names them, with zeros behind
    the last: ``num_detections`` (N, 1), int32; ``detection_boxes`` (N, max, 4), two corners each;
    ``detection_scores`` (N, max), and ``detection_classes`` (N, max), int32.

    Args:
        model: The model, with inferred types.
        boxes: Output, value or node with boxes: (N, B, 4) or (N, 4, B).
        scores: Likewise the scores; behind each box's four numbers if left out.
        max: How many boxes an image has at most.
        iou: Overlap, from 0 to 1.
        score: Least score; those below the least normal float32 count as 0.
        layout: Axes of scores: images, boxes and classes.
        format: Boxes are two opposite corners, or center, width and height.

    Raises:
        OptionError: A name is unknown or taken, or a number or type does not fit.
        TypeInferenceError: Boxes and scores are no such tensors.
    """
    words = layout in ("NBC", "NCB") and format in ("corners", "center")
    if not words or max != int(max) or not 0 <= iou <= 1 or not np.isfinite(score):
        told = f"max {max}, iou {iou}, score {score}, layout {layout}, format {format}"
        raise OptionError(f"nms: {told}: expected a count, an overlap, a score, NBC, corners")
    names = [boxes] if scores is None else [boxes, scores]
    model, found = find_values(model, "nms", names)
    if any(tensor_type(each).rank != 3 for each in found):
        raise OptionError(f"nms: expected three axes, found {[each.type for each in found]}")
    marks = as_dtype(found[-1], "float32")
    marks = call("transpose", marks, axes=(0, 2, 1)) if layout == "NCB" else marks
    corners = as_dtype(found[0], "float32") if scores is not None else sliced(marks, 2, 0, 4)
    if tensor_type(corners).shape[-1] != 4:
        corners = call("transpose", corners, axes=(0, 2, 1))
    if format == "center":
        center, half = sliced(corners, 2, 0, 2), sliced(corners, 2, 2, 4)
        half = call("multiply", half, const(0.5, "float32"))
        ends = [call("subtract", center, half), call("add", center, half)]
        corners = call("concatenate", ends, axis=2)
    least = np.nextafter(np.float32(score), np.float32(np.inf))
    suppressed = call(
        "vision.regular_non_max_suppression",
        corners,
        marks if scores is not None else sliced(marks, 2, 4),
        max_detections_per_class=int(max),
        max_detections=int(max),
        num_classes=tensor_type(marks).shape[-1] - (0 if scores is not None else 4),
        iou_threshold=iou,
        score_threshold=float(least if score < 0 else np.maximum(least, np.finfo("float32").tiny)),
    )
    best, kinds, points, count = (TupleGetItem(suppressed, index) for index in range(4))
    number = call("expand_dims", as_dtype(count, "int32"), axis=1)
    made = zip(_OUTPUTS, (number, best, points, as_dtype(kinds, "int32")), strict=True)
    kept = [(name, x) for name, x in _named_results(model) if name not in names and x not in found]
    taken = {*model.meta.inputs, *(name for name, _ in kept)} & {*_OUTPUTS}
    if taken:
        raise OptionError(f"nms: {taken.pop()} is the name of an input or output already")
    states = {name: state for name, state in model.meta.states.items() if name in dict(kept)}
    meta = replace(model.meta, labels=(), states=states)
    return _with_ends(model.evolve(meta=meta), model.main.params, [*kept, *made])


def merge_models(
    model: RelayModel, other: RelayModel, inputs: Mapping[str, str] | None = None
) -> RelayModel:
    """Return one model of two: what the first gives is given to inputs of the second.

    Outputs that the second reads are none of the result; other inputs and outputs stay, those of
    the first in front. Names of the second that the first has, too, get ``second_`` in front.
    Dimensions of one name are one; what is told of the whole is what the first tells.

    Args:
        model: The first, with inferred types.
        other: The second, likewise.
        inputs: By inputs of the second, the outputs, values or nodes of the first that they are;
            those of equal names if left out.

    Raises:
        OptionError: A name is unknown, nothing is read, or a type does not fit.
        Unsupported: The second has functions that call themselves, or data types of its own.
    """
    outputs, known = model.meta.outputs, other.meta.inputs
    names = {name: name for name in known if name in outputs} if inputs is None else inputs
    if not names or not {*names} <= {*known}:
        listed = f"outputs {', '.join(outputs)}; inputs of the second {', '.join(known)}"
        raise OptionError(f"merge: no {', '.join({*names} - {*known}) or 'equal names'} ({listed})")
    model, values = find_values(model, "merge", [*names.values()])
    fed = dict(zip(names, values, strict=True))
    types = {name: tensor_type(value) for name, value in fed.items()}
    mod = RemoveUnusedFunctions()(ToGraphNormalForm()(InlineCalls()(other.mod)))
    if len(mod.functions) > 1 or mod.type_definitions:
        raise Unsupported("the second model has functions that call themselves, or data types")
    shapes = {name: type_.shape for name, type_ in types.items()}
    dtypes = {name: type_.dtype for name, type_ in types.items()}
    other = other.evolve(mod=with_input_types(mod, {*other.params}, shapes, dtypes))
    kept = [(name, value) for name, value in _named_results(model) if name not in names.values()]
    gone = {*names.values()} - {each.name_hint for each in model.main.params}
    taken, own = (set[str]().union(*all_names(each)) for each in (model, other))
    free = UniqueNames(taken | own)
    same = sorted((own & taken) - gone - fed.keys())
    other = rename(other, names={name: free.reserve(f"second_{name}", "_") for name in same})
    memo = {each: fed[each.name_hint] for each in other.inputs() if each.name_hint in fed}
    meta = replace(
        model.meta,
        labels=other.meta.labels or model.meta.labels,
        extra={**other.meta.extra, **model.meta.extra},
        states={**other.meta.states, **model.meta.states},
    )
    params = [*model.main.params, *(each for each in other.main.params if each not in memo)]
    model = model.evolve(meta=meta, params={**model.params, **other.params})
    return _with_ends(model, params, [*kept, *_named_results(other)], memo)


def replace_pattern(
    model: RelayModel, pattern: Function | str, replacement: Function | str
) -> RelayModel:
    """Return the model with one function's body wherever it has another's.

    A call matches one of the same operator and attributes, those left out at their defaults;
    operands of commutative operators in either order; a parameter anything, twice the same; a
    constant an equal one. What lies inside of a match must be used nowhere else.

    Args:
        model: The model, with inferred types.
        pattern: Relay's text, such as ``fn (%x) { nn.relu(%x) }``, or a function.
        replacement: Likewise, of parameters that the pattern has.

    Raises:
        OptionError: They are no such functions, nothing matches, or a type would be another.
        ParseError: A text does not parse.
    """
    given = (pattern, replacement)
    source, wanted = (parse_expr(each) if isinstance(each, str) else each for each in given)
    if not isinstance(source, Function) or not isinstance(wanted, Function):
        raise OptionError("replace: expected functions such as fn (%x) { nn.relu(%x) }")
    mods = map(ToGraphNormalForm(), map(IRModule.from_expr, (source, wanted)))
    source, wanted = (each["main"] for each in mods)
    known = {each.name_hint for each in post_order(source.body) if isinstance(each, Var)}
    unknown = {each.name_hint for each in wanted.params} - known
    if unknown or not isinstance(source.body, Call):
        what = f"has %{', %'.join(unknown)}" if unknown else "ends in a call"
        raise OptionError(f"replace: expected a pattern that {what}")
    mod = replace_calls(model.mod, source.body, lambda match: _build(wanted, match))
    if mod is not None:
        return model.evolve(mod=mod)
    parts = [each for each in post_order(source.body) if isinstance(each, Call)]
    lacking = next(x for x in parts if not replace_calls(model.mod, x, lambda _match: None))
    told = "with these operands, used nowhere else, and attributes"
    raise OptionError(f"replace: nothing is {called_name(lacking)} {told}")


def replace_calls(
    mod: IRModule, template: Call, build: Callable[[Match], Expr | None], free: Sequence[str] = ()
) -> IRModule | None:
    """Return a module with other expressions for matches; None where there are none.

    Attributes whose names are `free` may have any value.
    """
    found: list[Match] = []

    def check(match: Match) -> Expr | None:
        same = all(
            value == node.attrs[name] or (value is None and name in _TOLD_BY_WEIGHTS)
            for key, node in match.nodes.items()
            if isinstance(key, Call) and isinstance(node, Call)
            for name, value in key.attrs.items()
            if name not in free
        )
        found.extend([match] * same)
        return build(match) if same else None

    mod = Compose((Pattern("replace", template, check),))(mod)
    return mod if found else None


def _build(wanted: Function, match: Match) -> Expr:
    """Return what stands in the place of a match, under the name of its last node."""

    def infer(_node: Expr, new: Expr) -> Expr:
        return set_type(new) if isinstance(new, Call) and new.type is None else new

    memo: dict[Expr, Expr] = {param: match.bound[param.name_hint] for param in wanted.params}
    result = rewrite(wanted.body, infer, memo)
    if not accepts(match.root.checked_type, result.checked_type):
        raise OptionError(f"replace: expected {match.root.type!r}, found {result.type!r}")
    if isinstance(result, Call) and result.span is None:
        result.span = match.root.span
    return result


def _named_results(model: RelayModel) -> list[tuple[str, Expr]]:
    """Return the tensors that a model gives, each with its name, of which some may be equal."""
    flat = flatten_results(model)
    return [*zip(flat.meta.outputs, results_of(flat), strict=True)]


def _with_ends(
    model: RelayModel,
    params: Sequence[Var],
    results: Sequence[tuple[str, Expr]],
    values: Mapping[Var, Expr] = {},
) -> RelayModel:
    """Return a model with other parameters and results, and values in the place of variables."""
    body = Tuple([value for _, value in results]) if len(results) != 1 else results[0][1]
    body = substitute(body, values)
    main = model.main.evolve(params=params, body=body, ret_type=None)
    mod = InferType()(model.mod.with_main(main, checked=False))
    inputs = tuple(each.name_hint for each in params if each.name_hint not in model.params)
    meta = replace(model.meta, inputs=inputs, outputs=tuple(name for name, _ in results))
    return model.evolve(mod=mod, meta=meta)
