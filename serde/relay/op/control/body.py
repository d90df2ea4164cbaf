"""What the operators that repeat a function have in common: the types of what goes round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import FuncType, SequenceType, TensorType, TupleType, Type, accepts, join_types
from serde.relay.ir.dims import Dim, SymDim
from serde.relay.ir.expr import Call, Constant, Expr, Function, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef, set_type
from serde.relay.ir.types import substitute_type
from serde.relay.ir.visit import children, post_order, rewrite

__all__ = [
    "call_function", "close", "enter", "goes_on", "join", "leave", "results",
    "substitute_results", "tensors", "with_results",
]  # fmt: skip

SCALAR_INT = TensorType((), "int64")
SCALAR_BOOL = TensorType((), "bool")


def enter(body: Function, given: Sequence[tuple[str, Type]]) -> dict[str, Dim]:
    """Check what a body is called with first, and return what its symbols stand for."""
    if not isinstance(body.type, FuncType):
        raise TypeInferenceError("the body has no type; its parameters need theirs")
    if len(body.params) != len(given):
        raise TypeInferenceError(
            f"body: expected {len(given)} parameters, found {len(body.params)}"
        )
    values: dict[str, Dim] = {}
    for wanted, (name, found) in zip(body.type.arg_types, given, strict=True):
        if not isinstance(found, (TensorType, SequenceType)):
            raise TypeInferenceError(f"{name}: expected a tensor, found {found!r}")
        if not accepts(wanted, found):
            raise TypeInferenceError(f"body: {name}: expected {wanted!r}, found {found!r}")
        for dim, length in zip(_lengths(wanted), _lengths(found), strict=True):
            if isinstance(dim, SymDim) and dim.name is not None:
                values.setdefault(dim.name, length)
    return values


def _lengths(type_: Type) -> tuple[Dim, ...]:
    """Return the lengths of a tensor, or of each element of a sequence."""
    if isinstance(type_, SequenceType):
        return type_.element.shape
    return type_.shape if isinstance(type_, TensorType) else ()


def results(body: Function) -> tuple[TensorType | SequenceType, ...]:
    """Return the types of what a body yields, in its own symbols."""
    type_ = body.type.ret_type if isinstance(body.type, FuncType) else None
    if not isinstance(type_, TupleType):
        raise TypeInferenceError(f"body: expected a tuple as its result, found {type_!r}")
    fields = [field for field in type_.fields if isinstance(field, (TensorType, SequenceType))]
    if len(fields) != len(type_.fields):
        raise TypeInferenceError(f"body: expected a tuple of tensors, found {type_!r}")
    return tuple(fields)


def substitute_results(
    types: Sequence[TensorType | SequenceType], values: dict[str, Dim]
) -> list[TensorType | SequenceType]:
    """Return types of a body in the symbols around it."""
    outside = (substitute_type(each, values) for each in types)
    return [each for each in outside if isinstance(each, (TensorType, SequenceType))]


def tensors(what: str, types: Sequence[Type]) -> list[TensorType]:
    """Return types of which all are to be tensors."""
    for type_ in types:
        if not isinstance(type_, TensorType):
            raise TypeInferenceError(f"{what}: expected a tensor, found {type_!r}")
    return [type_ for type_ in types if isinstance(type_, TensorType)]


def leave(param: Type, yielded: Type, index: int) -> None:
    """Check that what a body yields as a state may enter it again."""
    if not accepts(param, yielded):
        raise TypeInferenceError(f"body: state {index}: enters as {param!r}, leaves as {yielded!r}")
    for before, after in zip(_lengths(param), _lengths(yielded), strict=True):
        if isinstance(before, SymDim) and isinstance(after, SymDim) and before != after:
            raise TypeInferenceError(
                f"body: state {index}: a length that changes, from {before} to {after}, "
                "must be anonymous"
            )


def join(first: Type, later: Type) -> TensorType | SequenceType:
    """Return the type of a state that is either; a length they do not share is anonymous."""
    joined = join_types(first, later)
    if not isinstance(joined, (TensorType, SequenceType)):
        raise TypeInferenceError(f"a state enters as {first!r} and leaves as {later!r}")
    return joined


def goes_on(body: Function) -> bool:
    """Whether the first thing that a body yields is the constant True."""
    value = body.body
    while isinstance(value, Let):
        value = value.body
    first = value.fields[0] if isinstance(value, Tuple) and value.fields else None
    data = getattr(first, "data", None)
    return isinstance(data, np.ndarray) and data.size == 1 and bool(data.reshape(()))


def with_results(value: Expr, count: int, build: Callable[[list[Expr]], Expr]) -> Expr:
    """Return what `build` makes of the fields of a tuple, inside the lets around that tuple."""
    lets: list[Let] = []
    while isinstance(value, Let):
        lets.append(value)
        value = value.body
    if isinstance(value, Tuple):
        fields: list[Expr] = list(value.fields)
    else:
        fields = [TupleGetItem(value, index) for index in range(count)]
    result = build(fields)
    for each in reversed(lets):
        result = Let(each.var, each.value, result, each.span)
    return result


def call_function(function: Var, arguments: Sequence[Expr]) -> Call:
    """Return a typed call of a function that a variable holds."""
    return set_type(Call(function, arguments))


def close(params: Sequence[Var], yielded: Sequence[Expr]) -> tuple[Function, tuple[Expr, ...]]:
    """Return a body without free variables that yields a tuple, and what it captures.

    What does not depend on the parameters is captured whole, so that it is computed once; only
    constants are part of the body.

    Args:
        params: Its first parameters; one for each capture follows.
        yielded: What it yields.
    """
    depends: set[Expr] = set(params)
    captured: dict[Expr, Expr] = {}
    result = Tuple(yielded)
    for node in post_order(result):
        if node is result or any(child in depends for child in children(node)):
            depends.add(node)
            for child in _parts(node):
                if child not in depends and not isinstance(child, (Constant, OpDef)):
                    captured.setdefault(child, Var(f"captured{len(captured)}", child.type))
    body = rewrite(result, lambda _node, new: new, dict(captured))
    kept = [each for each in captured.values() if isinstance(each, Var)]
    function = Function([*params, *kept], body)
    function.type = FuncType([each.checked_type for each in function.params], body.checked_type)
    return function, tuple(captured)


def _parts(node: Expr) -> list[Expr]:
    """Return the children of a node, the fields of tuples in their place."""
    found, pending = [], list(reversed(children(node)))
    while pending:
        child = pending.pop()
        if isinstance(child, Tuple):
            pending.extend(reversed(child.fields))
        else:
            found.append(child)
    return found
