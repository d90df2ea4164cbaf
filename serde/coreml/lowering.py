"""What lowering to ML Programs and to NeuralNetworks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from serde._version import __version__
from serde.converters import ConverterTable
from serde.coreml.builder import Value, stored_dtype
from serde.coreml.interface import ARRAY_DTYPES
from serde.coreml.versions import Target
from serde.relay import transform
from serde.relay.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.model import RelayModel
from serde.relay.module import IRModule
from serde.relay.registry import OpDef, call
from serde.relay.types import TensorType, TupleType, Type
from serde.relay.visit import post_order, rewrite
from serde.report import Issue, Report

__all__ = ["as_floats", "ask", "declare", "lowered", "note_source", "with_numbers"]

SOURCE = "com.github.serde.source"
NAMES = "com.github.serde.names"
"""Keys of the user's metadata: what was converted, and the names that had to be changed."""

AS_FLOATS = "quantised-as-floats"
"""Name of the step that computes quantised operators on floats."""

_WIDE = frozenset(
    f"qnn.{name}"
    for name in (
        "add", "avg_pool2d", "batch_matmul", "concatenate", "conv2d", "conv2d_transpose", "dense",
        "leaky_relu", "mul", "requantize", "softmax", "subtract",
    )
)  # fmt: skip
"""Quantised operators that rescale integers by products of 64 bits."""

_ARITHMETIC = frozenset([
    "abs", "add", "cumprod", "cumsum", "divide", "floor_divide", "floor_mod", "left_shift", "mod",
    "multiply", "negative", "power", "prod", "right_shift", "subtract", "sum",
])  # fmt: skip
"""Operators whose results may be larger than their operands."""

_CODES = {dtype: code for code, dtype in ARRAY_DTYPES.items()}
_UNBOUNDED = -1


def as_floats(model: RelayModel, allow: frozenset[str], report: Report) -> RelayModel:
    """Return the model with quantised operators as floats between linear operators.

    That is where one needs integers of 64 bits, which MIL has not; others are spelled out.
    """
    nodes = post_order(model.main.body)
    if not any(
        isinstance(n, Call) and isinstance(n.op, OpDef) and n.op.name in _WIDE for n in nodes
    ):
        return model
    mod, changed = transform.QuantizedAsFloat().run(model.mod)
    if not changed:
        return model
    what = "quantised operators are computed on floats and round halves to even"
    issue = Issue("qnn", "main", what, f"allow {AS_FLOATS!r}")
    (report.allowed if AS_FLOATS in allow else report.issues).append(issue)
    report.raise_if_refused()
    return model.evolve(mod=mod)


def with_numbers(model: RelayModel, target: Target) -> RelayModel:
    """Return the model with ends that a Core ML model can declare.

    Truth values and narrow integers become int32 there and, before iOS16, float16 becomes
    float32.
    """
    held = dict.fromkeys(("bool", "int8", "int16", "uint8", "uint16"), "int32")
    held |= {"float16": "float32"} if target.number < 16 else {}
    main = model.main
    memo: dict[Expr, Expr] = {}
    params = list(main.params)
    for index, param in enumerate(params):
        type_ = param.type
        if param.name_hint in model.params or not isinstance(type_, TensorType):
            continue
        if type_.dtype in held:
            outer = Var(param.name_hint, TensorType(type_.shape, held[type_.dtype]), param.span)
            memo[param] = call("cast", outer, dtype=type_.dtype)
            params[index] = outer
    body = rewrite(main.body, lambda _node, new: new, memo) if memo else main.body
    if isinstance(body.type, TupleType) and not isinstance(body, Tuple):
        body = Tuple([TupleGetItem(body, index) for index in range(len(body.type.fields))])
    fields = list(body.fields) if isinstance(body, Tuple) else [body]
    ends = [
        call("cast", each, dtype=held[each.type.dtype])
        if isinstance(each.type, TensorType) and each.type.dtype in held
        else each
        for each in fields
    ]
    if ends == fields and not memo:
        return model
    result = Tuple(ends) if isinstance(body, Tuple) else ends[0]
    return model.evolve(mod=IRModule({"main": Function(params, result)}))


def ask(
    model: RelayModel, consents: Mapping[str, str], allow: frozenset[str], report: Report
) -> None:
    """Record where dtypes are held in narrower ones, such as integers of 64 bits in 32.

    Positions and lengths, which operators make and take, always fit.

    Args:
        model: The model.
        consents: Names of the steps by dtype.
        allow: Steps that are allowed.
        report: Gets what is and what is not.
    """
    main = model.main
    places: list[tuple[str, str, Type | None]] = [
        ("input", param.name_hint, param.type)
        for param in main.params
        if param.name_hint not in model.params
    ]
    places += [
        (node.op.name, node.span.source_name if node.span else "", node.type)
        for node in post_order(main.body)
        if isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name in _ARITHMETIC
    ]
    places.append(("output", ", ".join(model.meta.outputs), main.body.type))
    for op, name, type_ in places:
        fields = type_.fields if isinstance(type_, TupleType) else (type_,)
        dtypes = {each.dtype for each in fields if isinstance(each, TensorType)}
        for dtype, consent in consents.items():
            if dtype in dtypes:
                issue = Issue(op, name or op, f"{dtype} has no counterpart", f"allow {consent!r}")
                (report.allowed if consent in allow else report.issues).append(issue)
    report.raise_if_refused()


def lowered(
    model: RelayModel, table: ConverterTable, supported: Callable[[Call], bool], report: Report
) -> RelayModel:
    """Return the model in operators that a target has, as `supported` tells of calls."""
    passes = transform.Sequential(
        [
            transform.Inline(opaque=True),
            transform.ToGraphNormalForm(),
            transform.RaiseRecursion(),
            transform.DynamicToStatic(),
            transform.channels_first(),
            transform.Legalize(supported, table.expansion),
            transform.SimplifyExpr(),
            transform.FoldConstant(),
        ]
    )
    return transform.fold_weights(model.evolve(mod=passes(model.mod)), report=report)


def note_source(spec: AnyValue, model: RelayModel, names: Mapping[str, str]) -> None:
    """Write what was converted into the metadata, and the old names of what has a new one."""
    metadata = spec.description.metadata
    metadata.shortDescription = model.meta.description
    metadata.userDefined[SOURCE] = f"serde {__version__}, {model.meta.source_format}"
    if names:
        changed = (f"{new}={old}" for new, old in sorted(names.items()))
        metadata.userDefined[NAMES] = ";".join(changed)


def declare(feature: AnyValue, value: Value, version: int, *, flexible: bool = True) -> None:
    """Declare an input or output: its dtype and, of an input, which lengths are flexible."""
    array = feature.type.multiArrayType
    array.dataType = _CODES[stored_dtype(value.type.dtype, version)]
    dims = value.type.shape
    if all(isinstance(dim, int) for dim in dims):
        array.shape.extend(dims)
        return
    if not flexible:
        return
    array.shape.extend(dim if isinstance(dim, int) else 1 for dim in dims)
    for dim in dims:
        bounds = array.shapeRange.sizeRanges.add()
        bounds.lowerBound = dim if isinstance(dim, int) else 1
        bounds.upperBound = dim if isinstance(dim, int) else _UNBOUNDED
