"""What lowering to ML Programs and to NeuralNetworks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from serde.core.lossy import INT64_AS_INT32, QUANTISED_AS_FLOATS, LossyStep
from serde.core.report import Report
from serde.coreml.interface.description import Feature
from serde.coreml.interface.interface import ARRAY_DTYPES
from serde.coreml.value import Value, stored_dtype
from serde.errors import Unsupported, raise_if_refused
from serde.relay import transform
from serde.relay.ir import Call, Expr, RelayModel, is_float, post_order
from serde.relay.ir.leaves import field_dtypes
from serde.relay.ir.registry import OpDef, has_trait, trait_of
from serde.relay.ir.traits import Arithmetic, Rescales
from serde.relay.ir.types import TensorType
from serde.relay.transform.integer_widths import LEAST_LARGE
from serde.walk.lowering import quantized_as_floats

__all__ = ["as_floats", "ask", "features", "with_layers"]


def as_floats(model: RelayModel, allow: frozenset[str], report: Report) -> RelayModel:
    """Return the model with quantised operators as floats between linear operators.

    That is where one needs integers of 64 bits, which MIL has not; others are spelled out.
    """
    nodes = post_order(model.main.body)
    if not any(has_trait(node, Rescales) for node in nodes):
        return model
    return quantized_as_floats(model, QUANTISED_AS_FLOATS, allow, report)


def ask(
    model: RelayModel, consents: Mapping[str, LossyStep], allow: frozenset[str], report: Report
) -> None:
    """Record where dtypes are held in narrower ones, such as integers of 64 bits in 32.

    Positions and lengths, which operators make and take, always fit. Inputs and outputs are what
    the model declares; where it declares integers of 32 bits for those of 64, that is allowed.

    Args:
        model: The model.
        consents: The steps by dtype.
        allow: Steps that are allowed.
        report: Gets what is and what is not.
    """
    main = model.main
    places = [
        ("input", param.name_hint, field_dtypes(param.type))
        for param in main.params
        if param.name_hint not in model.params
    ]
    sizes: dict[Expr, float] = {}
    for node in post_order(main.body):
        sizes[node] = transform.magnitude(node, sizes)
        arithmetic = trait_of(node, Arithmetic)
        if arithmetic is None or not isinstance(node, Call) or not isinstance(node.op, OpDef):
            continue
        dtypes = field_dtypes(node.type)
        if arithmetic.bounded or sizes[node] < LEAST_LARGE:
            dtypes = set(filter(is_float, dtypes))
        places.append((node.op.name, node.span.source_name if node.span else "", dtypes))
    places.append(("output", ", ".join(model.meta.outputs), field_dtypes(main.body.type)))
    for op, name, dtypes in places:
        for dtype, step in consents.items():
            if dtype not in dtypes:
                continue
            declared = step is INT64_AS_INT32 and op in ("input", "output")
            why = f"{dtype} has no counterpart{', and is declared as int32' * declared}"
            allowed = {step.name} if declared else allow
            step.record(report, allowed, op=op, node=name or op, reason=why)
    raise_if_refused(report)


def with_layers(
    model: RelayModel, supported: Callable[[Call], bool], keep: frozenset[str] = frozenset()
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


def features(names: Sequence[str], values: Sequence[Value], version: int) -> list[Feature]:
    """Return what is to be declared of inputs or outputs.

    Raises:
        Unsupported: Arrays of apps have no such dtype.
    """
    found = []
    for name, value in zip(names, values, strict=True):
        dtype = stored_dtype(value.type.dtype, version)
        if dtype not in ARRAY_DTYPES.values():
            raise Unsupported(f"inputs and outputs of Core ML hold no {dtype}")
        found.append(Feature(name, value.name, TensorType(value.type.shape, dtype)))
    return found
