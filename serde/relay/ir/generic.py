"""Types of calls of functions: symbolic lengths and type parameters by the arguments."""

from __future__ import annotations

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim, SymDim
from serde.relay.ir.expr import Call, Op
from serde.relay.ir.types import (
    FuncType,
    TensorType,
    Type,
    TypeVar,
    accepts,
    bind_type_vars,
    join_types,
    substitute_type,
    type_parts,
)
from serde.relay.ir.unify import Term, Unifier, Unknown, close, instantiate, settle

__all__ = ["find_type_args", "infer_function_call", "type_args"]


def infer_function_call(node: Call) -> Type | None:
    """Return the type of a call of a function, or None while an argument has none.

    What the arguments of a polymorphic function do not tell, the type does that the call is
    noted to have; without one it is None then, too.

    Raises:
        TypeInferenceError: What is called is no function, or the arguments do not fit it.
    """
    callee = node.op.type
    if callee is None or any(argument.type is None for argument in node.args):
        return None
    if not isinstance(callee, FuncType):
        raise TypeInferenceError(f"{node.op!r} is called but is {callee!r}")
    if len(callee.arg_types) != len(node.args):
        raise TypeInferenceError(
            f"{node.op!r}: expected {len(callee.arg_types)} arguments, found {len(node.args)}"
        )
    lengths: dict[str, Dim] = {}
    for index, (expected, argument) in enumerate(zip(callee.arg_types, node.args, strict=True)):
        given = argument.type
        if given is None:
            return None
        if not callee.type_params and not accepts(expected, given):
            raise _mismatch(node, index, expected, given)
        if isinstance(expected, TensorType) and isinstance(given, TensorType):
            for wanted, found in zip(expected.shape, given.shape, strict=True):
                if isinstance(wanted, SymDim) and wanted.name is not None:
                    lengths[wanted.name] = found
    result: Type = callee.ret_type
    if callee.type_params:
        params = find_type_args(node, callee)
        if params is None:
            return None
        result = bind_type_vars(result, params)
    return substitute_type(result, lengths) if lengths else result


def _mismatch(node: Call, index: int, expected: object, given: object) -> TypeInferenceError:
    text = f"argument {index}: expected {expected!r}, found {given!r}"
    return TypeInferenceError(f"{node.op!r}: {text}")


def find_type_args(node: Call, callee: FuncType) -> dict[TypeVar, Type] | None:
    """Return what the type parameters of a callee stand for; None where one is not known."""
    terms: dict[TypeVar, Term] = {param: Unknown() for param in callee.type_params}
    given = node.given_type_args or ()
    terms.update(zip(callee.type_params, (instantiate(each, {}) for each in given), strict=False))
    unifier = Unifier(lambda _: None)
    for index, (param, argument) in enumerate(zip(callee.arg_types, node.args, strict=True)):
        found = argument.type
        if found is None:
            return None
        if not unifier.unify(instantiate(param, terms), instantiate(found, {})):
            raise _mismatch(node, index, param, found)
    if any(isinstance(settle(term), Unknown) for term in terms.values()):
        if node.type is None:
            return None
        result = instantiate(callee.ret_type, terms)
        if not unifier.unify(result, instantiate(node.type, {})):
            return None
    known = {param: close(term) for param, term in terms.items()}
    for param, argument in zip(callee.arg_types, node.args, strict=True):
        if argument.type is not None:
            _widen(param, argument.type, known)
    return known


def _widen(declared: Type, given: Type, known: dict[TypeVar, Type]) -> None:
    """Let type parameters stand for what they are in an argument, too: lengths become anonymous."""
    pending = [(declared, given)]
    while pending:
        left, right = pending.pop()
        if isinstance(left, TypeVar) and left in known:
            known[left] = join_types(known[left], right) or known[left]
        elif type(left) is type(right):
            pending.extend(zip(type_parts(left), type_parts(right), strict=False))


def type_args(node: Call) -> tuple[Type, ...]:
    """Return what type parameters stand for in a typed call; the operands' types of an operator.

    There are none while a type is not known.
    """
    callee = node.op.type
    if isinstance(node.op, Op):
        types = [argument.type for argument in node.args]
        known = [type_ for type_ in types if type_ is not None]
        return tuple(known) if len(known) == len(types) else ()
    if not isinstance(callee, FuncType) or not callee.type_params:
        return ()
    found = find_type_args(node, callee)
    return () if found is None else tuple(found[param] for param in callee.type_params)
