"""Extension calls in strict text: Composite functions whose body is the decomposition.

A function attribute keeps the call's own attributes, so that a reader can
make the call again; it does so only if the body says the same, because
otherwise the body is what counts. The body of a loop is such an attribute too,
as text, unless it holds arrays: then what is read stays the recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue, Final

from serde.errors import RelayError
from serde.relay.ir import IRModule, TupleType, compare, infer_function, post_order, rewrite
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var, is_absent
from serde.relay.ir.registry import OpDef, get, op_names
from serde.relay.text.names import decode_pairs, encode_pairs

__all__ = ["ABSENT_KEY", "ATTRS_KEY", "as_function", "raise_composites"]

ATTRS_KEY: Final = "serde.attrs"
"""Function attribute: the extension call's attributes, in text."""

ABSENT_KEY: Final = "serde.absent"
"""Function attribute: positions of the operands that the call leaves out."""

ReadAttributes = Callable[[str], Mapping[str, AnyValue]]


def as_function(
    node: Call, spell: Callable[[AnyValue], str | None]
) -> tuple[Function, tuple[Expr, ...]]:
    """Return the Composite function of an extension call, and the arguments it is called with.

    Args:
        node: The call.
        spell: Returns an attribute as text; None where it has no text of its own.

    Raises:
        RelayError: The operator has no decomposition.
    """
    definition = node.op
    if not isinstance(definition, OpDef) or definition.decompose is None:
        raise RelayError(f"{node!r} has no body in plain Relay, so TVM's text cannot hold it")
    absent = _absent(definition, node)
    present = [index for index in range(len(node.args)) if index not in absent]
    params = {index: Var(f"p{index}", node.args[index].type) for index in present}
    body = _decomposition(definition, node.attrs, params)
    attrs: dict[str, AnyValue] = {"Composite": definition.name}
    texts = {name: spell(value) for name, value in node.attrs.items()}
    if None not in texts.values():
        attrs[ATTRS_KEY] = encode_pairs({k: v for k, v in texts.items() if v is not None})
        if absent:
            attrs[ABSENT_KEY] = " ".join(map(str, absent))
    function = _infer_untyped(Function(params.values(), body, None, attrs=attrs))
    return function, tuple(node.args[index] for index in present)


def _absent(definition: OpDef, node: Call) -> list[int]:
    return [
        index
        for index, (operand, argument) in enumerate(
            zip(definition.operands, node.args, strict=True)
        )
        if operand.optional and is_absent(argument)
    ]


def _decomposition(
    definition: OpDef, attrs: Mapping[str, AnyValue], params: Mapping[int, Var]
) -> Expr:
    operands: list[AnyValue] = []
    for index, operand in enumerate(definition.operands):
        param = params.get(index)
        if param is not None and operand.variadic and isinstance(param.type, TupleType):
            operands.append([TupleGetItem(param, i) for i in range(len(param.type.fields))])
        else:
            operands.append(param)
    if definition.decompose is None:
        raise RelayError(f"{definition.name} has no body in plain Relay")
    body = definition.decompose(*operands, **attrs)
    return getattr(body, "tuple_value", body) if not isinstance(body, Expr) else body


def _infer_untyped(function: Function) -> Function:
    if any(param.type is None for param in function.params):
        return function
    if all(node.type is not None for node in post_order(function)):
        return function
    return infer_function(function)


def raise_composites(mod: IRModule, read: ReadAttributes) -> IRModule:
    """Return `mod` with extension calls where Composite functions hold their decomposition.

    Args:
        mod: A module with types.
        read: Gives attributes from their text.
    """
    known = {name for name in op_names() if name.startswith("serde.")}

    def replace(_old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Function):
            return new
        if new.op.attrs.get("Composite") not in known or ATTRS_KEY not in new.op.attrs:
            return new
        return _raise_call(new, new.op, read) or new

    functions = {
        variable: _rewrite(function, replace) for variable, function in mod.functions.items()
    }
    if all(functions[variable] is mod.functions[variable] for variable in functions):
        return mod
    return mod.with_functions(functions)


def _rewrite(function: Function, replace: Callable[[Expr, Expr], Expr]) -> Function:
    if not any(isinstance(n, Function) and ATTRS_KEY in n.attrs for n in post_order(function)):
        return function
    new = rewrite(function, replace)
    return new if isinstance(new, Function) else function


def _raise_call(node: Call, function: Function, read: ReadAttributes) -> Call | None:
    """Return the extension call that `function` spells out, or None if it does not."""
    definition = get(str(function.attrs["Composite"]))
    if not isinstance(definition, OpDef) or definition.decompose is None:
        return None
    try:
        pairs = decode_pairs(str(function.attrs[ATTRS_KEY])) if function.attrs[ATTRS_KEY] else {}
        values = {name: read(f"v={text}")["v"] for name, text in pairs.items()}
        attrs = definition.bind(values)
        absent = {int(item) for item in str(function.attrs.get(ABSENT_KEY, "")).split()}
        present = [i for i in range(len(definition.operands)) if i not in absent]
        if len(present) != len(function.params) or len(present) != len(node.args):
            return None
        params = {
            index: Var(param.name_hint, param.type)
            for index, param in zip(present, function.params, strict=True)
        }
        body = _decomposition(definition, attrs, params)
        expected = _infer_untyped(
            Function(
                params.values(), body, None, type_params=function.type_params, attrs=function.attrs
            )
        )
    except (RelayError, ValueError, ArithmeticError):
        return None
    if not compare.equal_in_six_digits(expected, function):
        return None
    arguments = dict(zip(present, node.args, strict=True))
    operands = [arguments.get(index, Tuple(())) for index in range(len(definition.operands))]
    call = Call(definition, operands, attrs, span=node.span)
    call.type = node.type
    return call
