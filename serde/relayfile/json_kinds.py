"""The kinds of nodes in TVM's JSON whose fields are those of our classes, for both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue, Final

from serde.core.records import dataclass
from serde.relay.ir import GlobalTypeVar, IncompleteType, RefType, Type, TypeCall, TypeVar, adt
from serde.relay.ir.expr import Expr, GlobalVar, If, Let, Op, Tuple, TupleGetItem, Var
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import FuncType, TupleType

__all__ = ["KINDS", "TYPE_VARS", "NodeKind", "as_expr", "as_type", "list_of"]

Check = Callable[[AnyValue], AnyValue]


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A kind of node.

    Attributes:
        made: Our class.
        keys: Its type keys: that which is written, and those of older releases.
        fields: Its fields in the order in which our class takes them, and what each has to be:
            ``str`` stands for a name, ``int`` or ``bool`` for a number in place, and None for
            one that our class finds itself.
    """

    made: Callable[..., AnyValue]
    keys: tuple[str, ...]
    fields: Mapping[str, Check | None]


def as_expr(value: AnyValue) -> Expr:
    """Return an expression.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, Expr) or isinstance(value, Op):
        raise ValueError(f"expected an expression, found {value!r}"[:200])
    return value


def as_type(value: AnyValue) -> AnyValue:
    """Return a type.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, Type):
        raise ValueError(f"expected a type, found {value!r}"[:200])
    return value


def list_of(check: Check) -> Check:
    """Return what checks the items of a list, which may be null."""

    def read(value: AnyValue) -> AnyValue:
        if value is not None and not isinstance(value, tuple):
            raise ValueError(f"expected a list, found {value!r}"[:200])
        return tuple(map(check, value or ()))

    return read


def _instance_of(kind: type) -> Check:
    def read(value: AnyValue) -> AnyValue:
        if not isinstance(value, kind):
            raise ValueError(f"expected a {kind.__name__}, found {value!r}"[:200])
        return value

    return read


_VAR: Final = _instance_of(Var)
_HEADER: Final = _instance_of(GlobalTypeVar)
_CONSTRUCTOR: Final = _instance_of(adt.Constructor)
_PATTERN: Final = _instance_of(adt.Pattern)
_TYPES: Final = list_of(as_type)
TYPE_VARS: Final = list_of(_instance_of(TypeVar))
_NAMED_TYPE: Final = {"name_hint": str, "kind": int}

KINDS: Final = (
    NodeKind(GlobalVar, ("GlobalVar", "relay.GlobalVar"), {"name_hint": str}),
    NodeKind(Let, ("relay.Let",), {"var": _VAR, "value": as_expr, "body": as_expr}),
    NodeKind(If, ("relay.If",), {"cond": as_expr, "true_branch": as_expr, "false_branch": as_expr}),
    NodeKind(Tuple, ("relay.Tuple",), {"fields": list_of(as_expr)}),
    NodeKind(TupleGetItem, ("relay.TupleGetItem",), {"tuple_value": as_expr, "index": int}),
    NodeKind(RefCreate, ("relay.RefCreate",), {"value": as_expr}),
    NodeKind(RefRead, ("relay.RefRead",), {"ref": as_expr}),
    NodeKind(RefWrite, ("relay.RefWrite",), {"ref": as_expr, "value": as_expr}),
    NodeKind(
        adt.Match,
        ("relay.Match",),
        {"data": as_expr, "clauses": list_of(_instance_of(adt.Clause)), "complete": bool},
    ),
    NodeKind(adt.Clause, ("relay.Clause",), {"lhs": _PATTERN, "rhs": as_expr}),
    NodeKind(adt.PatternWildcard, ("relay.PatternWildcard",), {}),
    NodeKind(adt.PatternVar, ("relay.PatternVar",), {"var": _VAR}),
    NodeKind(
        adt.PatternConstructor,
        ("relay.PatternConstructor",),
        {"constructor": _CONSTRUCTOR, "patterns": list_of(_PATTERN)},
    ),
    NodeKind(adt.PatternTuple, ("relay.PatternTuple",), {"patterns": list_of(_PATTERN)}),
    NodeKind(
        adt.Constructor,
        ("relay.Constructor",),
        {"name_hint": str, "inputs": _TYPES, "belong_to": _HEADER, "tag": None},
    ),
    NodeKind(
        adt.TypeData,
        ("relay.TypeData", "TypeData"),
        {"header": _HEADER, "type_vars": TYPE_VARS, "constructors": list_of(_CONSTRUCTOR)},
    ),
    NodeKind(TupleType, ("TupleType", "relay.TupleType"), {"fields": _TYPES}),
    NodeKind(
        FuncType,
        ("FuncType", "relay.FuncType"),
        {
            "arg_types": _TYPES,
            "ret_type": as_type,
            "type_params": TYPE_VARS,
            "type_constraints": list_of(_instance_of(type(None))),
        },
    ),
    NodeKind(TypeCall, ("TypeCall", "relay.TypeCall"), {"func": as_type, "args": _TYPES}),
    NodeKind(RefType, ("relay.RefType", "relay.RelayRefType"), {"value": as_type}),
    NodeKind(TypeVar, ("TypeVar", "relay.TypeVar"), _NAMED_TYPE),
    NodeKind(GlobalTypeVar, ("GlobalTypeVar", "relay.GlobalTypeVar"), _NAMED_TYPE),
    NodeKind(IncompleteType, ("IncompleteType", "relay.IncompleteType"), {"kind": int}),
)
