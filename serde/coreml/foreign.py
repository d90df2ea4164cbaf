"""Custom layers of Core ML, whose code is in an app, and operators of MIL that are not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

import numpy as np

from serde.coreml.interface.interface import declared_dims
from serde.coreml.mlprogram.constants import element_of
from serde.errors import Unsupported
from serde.relay.ir import ARGUMENTS, Any, Empty, Expr, Foreign, Input, TensorType, as_dim

if TYPE_CHECKING:
    from serde.coreml.value import Builder, Value

__all__ = [
    "CUSTOM", "CUSTOM_LAYER", "ORDER", "bind_inputs", "custom_name", "input_order",
    "is_binding", "layer_node", "layer_parameters", "mil_node", "mil_types", "parameter_names",
    "write_foreign",
]  # fmt: skip

_IS_MIL: Final = "$mil"
"""Attribute that tells that an operator is one of MIL."""

ORDER: Final = "$order"
"""Attribute with the names of inputs in the order in which a custom layer lists them."""

_DESCRIPTION: Final = "$description"
"""Attribute with what a custom layer is, for people."""


def write_foreign(
    builder: Builder, source: str, node: Foreign, operands: Sequence[Value | None]
) -> AnyValue:
    """Write a custom layer, or an operator of MIL as it was.

    Raises:
        Unsupported: A layer cannot have such parameters, or the target has no such operators.
    """
    if any(each is None for each in operands):
        raise Unsupported(f"{node.full_name} leaves out an input, which layers do not")
    own = node.framework == "coreml"
    pairs: Sequence[tuple[str, AnyValue]] = [
        (f"x{index}", Input(index)) for index in range(len(operands))
    ]
    if own:
        pairs = node.attributes.get(ARGUMENTS, pairs)
    inputs = {key: _placed(held, operands) for key, held in pairs}
    attributes = {key: _literal(key, each) for key, each in node.plain_attributes.items()}
    if own and node.attributes.get(_IS_MIL):
        found = builder.add_unknown(node.name, {**inputs, **attributes}, node.results, source)
    else:
        order = node.attributes.get(ORDER, tuple(inputs)) if own else tuple(inputs)
        description = str(node.attributes.get(_DESCRIPTION, "")) if own else ""
        found = builder.add_custom(
            node.name, inputs, attributes, node.results, source, list(order), description
        )
    return found if len(found) > 1 else found[0]


def _placed(held: AnyValue, given: Sequence[AnyValue]) -> AnyValue:
    if isinstance(held, tuple):
        return [_placed(each, given) for each in held]
    return given[held.index] if isinstance(held, Input) else held


def _literal(name: str, value: AnyValue) -> AnyValue:
    if isinstance(value, (tuple, list)) and value and not isinstance(value, Empty):
        if all(isinstance(each, (bool, int, float)) for each in value):
            return np.array(value, None if isinstance(value[0], bool) else _dtype(value))
        if all(isinstance(each, str) for each in value):
            return list(value)
    if not isinstance(value, (bool, int, float, str)):
        raise Unsupported(f"no parameter of a layer can be {name}={value!r:.100}")
    return value


def _dtype(values: Sequence[AnyValue]) -> str:
    return "float32" if any(isinstance(each, float) for each in values) else "int32"


CUSTOM: Final = "custom"
"""Kind of the layers of users' own classes."""

CUSTOM_LAYER: Final = "custom_layer"
"""Operator of MIL that is one."""

_BINDINGS: Final = frozenset(("class_name", "description", "input_order", "parameters", "weights"))


def custom_name(op: AnyValue) -> str:
    """Return the class of an operation of MIL that is a custom layer; "" for any other."""
    return _text(op, "class_name") if op.type == CUSTOM_LAYER else ""


def _text(op: AnyValue, name: str) -> str:
    if name not in op.attributes:
        return ""
    found = list(op.attributes[name].immediateValue.tensor.strings.values)
    return str(found[0]) if found else ""


def _texts(op: AnyValue, name: str) -> list[str]:
    if name not in op.attributes:
        return []
    values = op.attributes[name].immediateValue.list.values
    return [str(x.immediateValue.tensor.strings.values[0]) for x in values]


def input_order(op: AnyValue) -> list[str]:
    """Return the names of inputs in the order in which a custom layer lists them."""
    return _texts(op, "input_order")


def parameter_names(op: AnyValue) -> list[str]:
    """Return the names of inputs of a custom layer that are no tensors."""
    return _texts(op, "parameters")


def is_binding(op: AnyValue, name: str) -> bool:
    """Whether an attribute of an operation tells of the custom layer that it is."""
    return name == "name" or (op.type == CUSTOM_LAYER and name in _BINDINGS)


def mil_types(op: AnyValue) -> list[TensorType | None]:
    """Return the types that an operation declares of its outputs."""
    found: list[TensorType | None] = []
    for each in op.outputs:
        if each.type.WhichOneof("type") != "tensorType":
            return [None for _ in op.outputs]
        type_ = each.type.tensorType
        try:
            dtype = element_of(type_.dataType).dtype
        except Unsupported:
            return [None for _ in op.outputs]
        dims = [as_dim(dim) for dim in declared_dims(type_, each.name)]
        found.append(TensorType(dims, dtype))
    return found


def mil_node(
    op: AnyValue,
    inputs: Mapping[str, Sequence[AnyValue]],
    constant: Callable[[Sequence[AnyValue], str], AnyValue],
) -> tuple[Foreign, list[Expr]]:
    """Return what an operation of MIL is, and the tensors that it reads.

    Args:
        op: The operation.
        inputs: What its inputs are: expressions, and what is no tensor.
        constant: Gives the value of an input that is a parameter.

    Raises:
        Unsupported: It has blocks inside.
    """
    if op.blocks:
        raise Unsupported(f"{op.type} has blocks inside, which are not kept")
    name = custom_name(op)
    operands: list[Expr] = []
    places: list[tuple[str, AnyValue]] = []
    attributes: dict[str, AnyValue] = {}
    listed = input_order(op)
    parameters = parameter_names(op)
    order = [key for key in listed if key in inputs]
    for key in [*order, *sorted(inputs.keys() - set(order))]:
        values = inputs[key]
        if key in parameters:
            attributes[key] = constant(values, key)
        elif all(isinstance(each, Expr) for each in values):
            held = tuple(Input(len(operands) + index) for index in range(len(values)))
            operands += values
            places.append((key, held[0] if len(held) == 1 else held))
        else:
            attributes[key] = _plain([getattr(each, "value", each) for each in values])
    attributes[ARGUMENTS] = tuple(places)
    if name:
        attributes[ORDER] = tuple(listed) or Empty("strings")
        attributes[_DESCRIPTION] = _text(op, "description")
    else:
        attributes[_IS_MIL] = True
    known = [each for each in mil_types(op) if each is not None]
    found = Foreign(
        framework="coreml",
        name=name or op.type,
        attributes=attributes,
        results=tuple(known) if len(known) == len(op.outputs) else (),
    )
    return found, operands


def _plain(values: Sequence[AnyValue]) -> AnyValue:
    return values[0] if len(values) == 1 else tuple(values)


def bind_inputs(
    operands: Sequence[str],
    attributes: Mapping[str, AnyValue],
    inputs: Mapping[str, Sequence[AnyValue]],
    order: Sequence[str],
    parameters: Sequence[str],
    *,
    variadic: bool,
) -> tuple[list[Expr | None], dict[str, Sequence[AnyValue]]]:
    """Return the inputs of an operation as a user's function takes them.

    Args:
        operands: The function's tensors; where there may be many, the last stands for them.
        attributes: Its attributes.
        inputs: What the inputs are.
        order: In which order the operation lists them, where it does.
        parameters: Which of them it says are no tensors.
        variadic: Whether there may be many.
    """
    names = [*(each for each in order if each in inputs), *(n for n in inputs if n not in order)]
    is_tensor = {n: all(isinstance(each, Expr) for each in inputs[n]) for n in names}
    plain = {n for n in parameters if n not in operands}
    named = {n: inputs[n] for n in names if n in attributes or n in plain or not is_tensor[n]}
    tensors = [n for n in names if n not in named]
    if variadic or not set(tensors) <= set(operands):
        given: list[Expr | None] = [each for n in tensors for each in inputs[n]]
        return given, named
    slots = {n: inputs[n][0] for n in tensors if inputs[n]}
    found = [slots.get(n) for n in operands]
    while found and found[-1] is None:
        found.pop()
    return found, named


def layer_parameters(parameters: AnyValue) -> dict[str, AnyValue]:
    """Return the parameters of a custom layer of a network."""
    found: dict[str, AnyValue] = {}
    for name in sorted(parameters.parameters):
        value = parameters.parameters[name]
        kind = value.WhichOneof("value")
        found[name] = getattr(value, kind) if kind else None
    return found


def layer_node(
    message: AnyValue, declared: Mapping[str, TensorType], inputs: Sequence[Expr]
) -> Foreign:
    """Return what a custom layer of a network is.

    Args:
        message: The layer.
        declared: Types of outputs of the model, by name.
        inputs: What it reads.

    Raises:
        Unsupported: It has weights of its own.
    """
    parameters = message.custom
    if parameters.weights:
        raise Unsupported(f"the weights of a layer of class {parameters.className} are not kept")
    attributes = layer_parameters(parameters)
    attributes[_DESCRIPTION] = parameters.description
    results: list[TensorType] = []
    for index, name in enumerate(message.output):
        type_ = declared.get(name)
        if type_ is None and index < len(message.outputTensor):
            tensor = message.outputTensor[index]
            if len(tensor.dimValue) == tensor.rank:
                dims = [int(dim) if dim >= 0 else Any() for dim in tensor.dimValue]
                type_ = TensorType(dims, "float32")
        results += [] if type_ is None else [type_]
    return Foreign(
        framework="coreml",
        name=parameters.className,
        attributes=attributes,
        results=tuple(results) if len(results) == len(message.output) else (),
    )
