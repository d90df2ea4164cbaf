"""What lowering to ML Programs and to NeuralNetworks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from serde.coreml.interface.description import Feature
from serde.coreml.value import Value, stored_dtype
from serde.relay import transform
from serde.relay.ir.expr import Call
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import post_order
from serde.report import Issue, Report
from serde.walk.table import ConverterTable

__all__ = ["as_floats", "ask", "features", "lowered", "with_layers"]

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
"""Operators whose results may be larger, or finer, than their operands."""

_BOUNDED = frozenset(["divide", "floor_divide", "floor_mod", "mod", "right_shift"])
"""Those of them that make no integers larger than they take."""


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
        if op in _BOUNDED:
            dtypes = set(filter(is_float, dtypes))
        for dtype, consent in consents.items():
            if dtype in dtypes:
                issue = Issue(op, name or op, f"{dtype} has no counterpart", f"allow {consent!r}")
                (report.allowed if consent in allow else report.issues).append(issue)
    report.raise_if_refused()


def with_layers(
    model: RelayModel,
    supported: Callable[[Call], bool],
    keep: frozenset[str] = frozenset(),
) -> RelayModel:
    """Return the model with layers where it spells them out, if the target has them.

    Args:
        model: The model.
        supported: Whether a call is written as it is.
        keep: Operators and nodes that stay as they are, in a layer that is not among them.
    """
    raised = transform.RaiseLayers(supported, frozenset(model.params), keep)
    mod, changed = raised.run(model.mod)
    return model.evolve(mod=mod) if changed else model


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
    return transform.fold_weights(model.evolve(mod=passes(model.mod)), report=report, share=False)


def features(names: Sequence[str], values: Sequence[Value], version: int) -> list[Feature]:
    """Return what is to be declared of inputs or outputs."""
    found = []
    for name, value in zip(names, values, strict=True):
        dtype = stored_dtype(value.type.dtype, version)
        found.append(Feature(name, value.name, TensorType(value.type.shape, dtype)))
    return found
