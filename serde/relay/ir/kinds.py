"""Kinds of types: what a type stands for, and where each kind may stand."""

from __future__ import annotations

from serde.errors import TypeInferenceError
from serde.relay.ir.adt import TypeData
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
)

__all__ = ["check_kind"]


def check_kind(t: Type | TypeConstraint | TypeData, mod: IRModule | None = None) -> TypeKind:
    """Return the kind of a type whose parts are of the kinds that they must be.

    Args:
        t: A type, a constraint, or the definition of an algebraic data type.
        mod: Where the data types are defined that it names.

    Raises:
        TypeInferenceError: A part is of another kind, or a data type takes another number of types.
    """
    if isinstance(t, (TypeVar, GlobalTypeVar, IncompleteType)):
        return t.kind
    if isinstance(t, TypeRelation):
        _require_types(t.args, "an argument of a relation", mod)
        return TypeKind.Constraint
    if isinstance(t, TypeData):
        return _check_definition(t, mod)
    if isinstance(t, TypeCall):
        _check_call(t, mod)
    elif isinstance(t, TupleType):
        _require_types(t.fields, "a field of a tuple", mod)
    elif isinstance(t, RefType):
        _require_types((t.value,), "the content of a reference", mod)
    elif isinstance(t, FuncType):
        _require_types(t.arg_types, "a parameter of a function", mod)
        _require_types((t.ret_type,), "the result of a function", mod)
        for constraint in t.type_constraints:
            _require(constraint, TypeKind.Constraint, "a constraint of a function", mod)
    return TypeKind.Type


def _require(
    t: Type | TypeConstraint | TypeData, kind: TypeKind, what: str, mod: IRModule | None
) -> None:
    found = check_kind(t, mod)
    if found != kind:
        raise TypeInferenceError(f"{what}, {t!r}: expected the kind {kind.name}, not {found.name}")


def _require_types(types: tuple[Type, ...], what: str, mod: IRModule | None) -> None:
    for each in types:
        _require(each, TypeKind.Type, what, mod)


def _check_call(t: TypeCall, mod: IRModule | None) -> None:
    if not isinstance(t.func, GlobalTypeVar):
        raise TypeInferenceError(f"{t!r}: {t.func!r} is no algebraic data type")
    _require(t.func, TypeKind.AdtHandle, "what takes types", mod)
    _require_types(t.args, "a type that a data type takes", mod)
    data = None if mod is None else mod.type_definitions.get(t.func)
    if data is None:
        raise TypeInferenceError(f"the type {t.func.name_hint} is not defined")
    if len(data.type_vars) != len(t.args):
        raise TypeInferenceError(f"{t!r}: expected {len(data.type_vars)} types")


def _check_definition(data: TypeData, mod: IRModule | None) -> TypeKind:
    _require(data.header, TypeKind.AdtHandle, "the name of a data type", mod)
    _require_types(data.type_vars, "a type parameter of a data type", mod)
    for constructor in data.constructors:
        if constructor.belong_to != data.header:
            owner = constructor.belong_to.name_hint
            raise TypeInferenceError(f"{constructor!r} belongs to {owner}, not to {data!r}")
        _require_types(constructor.inputs, "a field of a data type", mod)
    return TypeKind.TypeData
