"""Inputs of a module with more exact types than it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.errors import OptionError, RelayError, TypeInferenceError
from serde.relay.ir import Attrs, Call, Dim, Expr, Function, IRModule, SymDim, Var, substitute
from serde.relay.ir.types import TensorType, Type, accepts, substitute_type
from serde.relay.ir.visit import post_order, rewrite
from serde.relay.transform.infer_type import InferType

__all__ = ["resolve_attribute", "with_input_types"]


def with_input_types(
    mod: IRModule,
    weights: set[str],
    shapes: Mapping[str, Sequence[AnyValue]],
    dtypes: Mapping[str, str],
) -> IRModule:
    """Return `mod` with the inputs of ``main`` as given, and its types inferred anew.

    A dimension that replaces a symbol does so wherever the symbol occurs.

    Args:
        mod: The module, typed.
        weights: Names of the parameters that are no inputs.
        shapes: Shapes by input.
        dtypes: dtypes by input.

    Raises:
        OptionError: There is no such input, or it or an operator cannot have that type.
    """
    main = mod["main"]
    inputs = {p.name_hint: p for p in main.params if p.name_hint not in weights}
    unknown = sorted({*shapes, *dtypes} - set(inputs))
    if unknown:
        known = ", ".join(inputs) or "none"
        raise OptionError(f"there is no input {', '.join(unknown)} (there are: {known})")
    wanted = {
        name: _resolve_type(inputs[name], shapes.get(name), dtypes.get(name))
        for name in dict.fromkeys([*shapes, *dtypes])
    }
    values = _symbol_values(inputs, wanted)
    try:
        return InferType()(mod.with_main(_retype(main, wanted, values), checked=False))
    except TypeInferenceError as error:
        given = ", ".join(f"{name} {type_!r}" for name, type_ in wanted.items())
        raise OptionError(f"the model does not take {given}: {error}") from None


def _resolve_type(param: Var, shape: Sequence[AnyValue] | None, dtype: str | None) -> TensorType:
    """Return the type of an input with a shape and dtype of the caller."""
    declared = param.type
    if not isinstance(declared, TensorType):
        raise OptionError(f"input {param.name_hint} is {declared!r} and takes no shape")
    try:
        found = TensorType(declared.shape if shape is None else shape, dtype or declared.dtype)
    except (RelayError, TypeError) as error:
        raise OptionError(f"input {param.name_hint}: {error}") from None
    if not accepts(declared, found):
        raise OptionError(f"input {param.name_hint}: expected {declared!r}, found {found!r}")
    return found


def _symbol_values(inputs: Mapping[str, Var], wanted: Mapping[str, TensorType]) -> dict[str, Dim]:
    values: dict[str, Dim] = {}
    for name, type_ in wanted.items():
        declared = inputs[name].type
        shape = declared.shape if isinstance(declared, TensorType) else ()
        for dim, new in zip(shape, type_.shape, strict=True):
            if not isinstance(dim, SymDim) or dim.name is None:
                continue
            if values.setdefault(dim.name, new) != new:
                raise OptionError(f"input {name}: {dim} cannot be {values[dim.name]} and {new}")
    return values


def _retype(
    main: Function, wanted: Mapping[str, TensorType], values: Mapping[str, Dim]
) -> Function:
    """Return `main` with new variables where a type changes; what depends on them is rebuilt."""
    memo: dict[Expr, Expr] = {}
    params = set(main.params)
    for node in post_order(main):
        if not isinstance(node, Var):
            continue
        type_: Type | None = wanted.get(node.name_hint) if node in params else None
        if type_ is None and node.type_annotation is not None:
            type_ = substitute_type(node.type_annotation, values)
        memo[node] = Var(node.name_hint, type_, node.span)

    def replace(_old: Expr, new: Expr) -> Expr:
        if isinstance(new, Call) and any(_mentions(value) for value in new.attrs.values()):
            attrs = {name: resolve_attribute(value, values) for name, value in new.attrs.items()}
            return Call(new.op, new.args, Attrs(attrs), span=new.span)
        if isinstance(new, Function):
            return new.evolve(ret_type=None)
        return new

    result = rewrite(main, replace, memo)
    return result if isinstance(result, Function) else main


def _mentions(value: AnyValue) -> bool:
    return any(map(_mentions, value)) if isinstance(value, tuple) else isinstance(value, SymDim)


def resolve_attribute(value: AnyValue, values: Mapping[str, Dim]) -> AnyValue:
    """Return an attribute, nested tuples included, with dimensions for the symbols in it."""
    if isinstance(value, tuple):
        return tuple(resolve_attribute(item, values) for item in value)
    return substitute(value, values) if isinstance(value, SymDim) else value
