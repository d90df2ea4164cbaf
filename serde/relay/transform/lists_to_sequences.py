"""Lists of tensors, as TVM's Prelude defines them, as sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Final

from serde.core.records import dataclass
from serde.errors import TypeInferenceError, VerifyError
from serde.relay.ir import IRModule, RefCreate, RefRead, RefWrite, all_nodes, carried, infer_module
from serde.relay.ir.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
)
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, If, Let, TupleGetItem, Var, const
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.types import (
    GlobalTypeVar,
    SequenceType,
    TensorType,
    Type,
    TypeCall,
    TypeVar,
    map_type,
    walk_type,
)
from serde.relay.ir.visit import children, post_order, rebuild
from serde.relay.transform.base import Pass
from serde.relay.transform.remove_dead_code import RemoveUnusedFunctions

__all__ = ["ListsToSequences"]

_LIST: Final = "List"
_STANDARD: Final = frozenset({"concat", "hd", "length", "nth", "tl", "update"})
"""Functions of the Prelude that sequences have operators for."""


class _UndecidedError(Exception):
    """A program does with lists what sequences cannot do."""


@cache
def _prelude() -> IRModule:
    mod = IRModule()
    mod.import_from_std("prelude.rly")
    return mod


class ListsToSequences(Pass):
    """Replace the lists of tensors of a program by sequences, and matches on them by choices.

    ``Nil`` and ``Cons`` build sequences; ``hd``, ``tl``, ``nth``, ``length``, ``update`` of the
    Prelude read and write them, and so does ``concat`` where one side is written out. A match asks
    for their length. The pass takes the whole program that ``main`` reaches, or leaves it as it
    is: where lists hold something else than tensors, or go through other functions of the
    Prelude, which take functions as values.
    """

    name: ClassVar[str] = "ListsToSequences"

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Convert all functions, then type them."""
        data = mod.type_definitions.get(GlobalTypeVar(_LIST))
        standard = _prelude()
        if data != standard.type_definitions[GlobalTypeVar(_LIST)] or "main" not in mod:
            return mod, False
        reached = RemoveUnusedFunctions().run(mod)[0]
        try:
            typed = reached if reached.checked else infer_module(reached)[0]
            return _convert(typed), True
        except (_UndecidedError, TypeInferenceError, VerifyError):
            return mod, False


def _convert(mod: IRModule) -> IRModule:
    known = {variable for variable in mod.functions if _is_standard(mod, variable)}
    names = {each: GlobalVar(each.name_hint) for each in _reach(mod, known)}
    functions = {
        fresh: _Converter(known, names).function(mod.functions[variable])
        for variable, fresh in names.items()
    }
    result = infer_module(IRModule(functions, attrs=mod.attrs))[0]
    for node in all_nodes(*result.functions.values()):
        if any(isinstance(each, (TypeCall, TypeVar)) for each in walk_type(node.type)):
            raise _UndecidedError
    return result


def _is_standard(mod: IRModule, variable: GlobalVar) -> bool:
    """Whether a function is that of the Prelude that has its name."""
    name = variable.name_hint
    return name in _STANDARD and structural_equal(mod.functions[variable], _prelude()[name])


def _reach(mod: IRModule, known: set[GlobalVar]) -> list[GlobalVar]:
    """Return the functions that ``main`` needs, itself included, beside those of the Prelude."""
    reached = [mod.get_global_var("main")]
    for variable in reached:  # grows while it is walked
        for node in all_nodes(mod.functions[variable]):
            used = node.op if isinstance(node, Call) else node
            if isinstance(used, GlobalVar) and used not in known and used not in reached:
                reached.append(used)
    return reached


@dataclass(frozen=True, slots=True)
class _Ask:
    """What a pattern asks of a list: its length, and what it binds.

    Attributes:
        count: Number of elements that it has at least.
        exact: Whether it has no others.
        elements: Variables by the positions that they are of.
        rest: The variable of what follows, or None.
    """

    count: int
    exact: bool
    elements: tuple[tuple[int, Var], ...]
    rest: Var | None


class _Converter:
    """Converts one function.

    Args:
        known: Functions of the Prelude that sequences have operators for.
        names: The variables of the functions that are converted, by those of the functions.
    """

    def __init__(self, known: set[GlobalVar], names: Mapping[GlobalVar, GlobalVar]) -> None:
        self._known = known
        self._names = names
        self._done: dict[Expr, Expr] = {}

    def function(self, function: Function) -> Function:
        """Return what a function becomes, untyped."""
        for node in post_order(function):
            self._done[node] = self._node(node)
        result = self._done[function]
        assert isinstance(result, Function)
        return result

    def _node(self, node: Expr) -> Expr:
        if isinstance(node, Var):
            return self._variable(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Match):
            return self._match(node)
        if isinstance(node, Function):
            return self._as_function(node)
        if isinstance(node, (RefCreate, RefRead, RefWrite)):
            raise _UndecidedError
        if isinstance(node, Constructor):
            return node
        if isinstance(node, GlobalVar):
            return self._global(node)
        return rebuild(node, [self._done[child] for child in children(node)])

    def _variable(self, node: Var) -> Var:
        type_ = _as_sequences(node.type)
        return node if type_ == node.type else Var(node.name_hint, type_, node.span)

    def _as_function(self, node: Function) -> Function:
        if node.type_params:
            raise _UndecidedError
        params = [self._done[param] for param in node.params]
        variables = [param for param in params if isinstance(param, Var)]
        result = _as_sequences(node.ret_type)
        return Function(variables, self._done[node.body], result, attrs=node.attrs, span=node.span)

    def _global(self, node: GlobalVar) -> GlobalVar:
        if node not in self._names:
            raise _UndecidedError
        return self._names[node]

    def _call(self, node: Call) -> Expr:
        if isinstance(node.op, Constructor):
            return self._construct(node, node.op)
        if isinstance(node.op, GlobalVar) and node.op in self._known:
            return self._standard(node, node.op.name_hint)
        if carried(node) and any(_holds_lists(each.type) for each in all_nodes(*carried(node))):
            raise _UndecidedError
        args = [self._done[arg] for arg in node.args]
        if isinstance(node.op, OpDef):
            return rebuild(node, args)
        callee = self._global(node.op) if isinstance(node.op, GlobalVar) else self._done[node.op]
        return Call(callee, args, node.attrs, span=node.span)

    def _construct(self, node: Call, constructor: Constructor) -> Expr:
        type_ = _as_sequences(node.type)
        if not isinstance(type_, SequenceType):
            raise _UndecidedError
        if not constructor.inputs:
            element = type_.element
            return call("serde.sequence_empty", shape=element.shape, dtype=element.dtype)
        first, others = (self._done[arg] for arg in node.args)
        return _insert(others, first, const(0, "int64"))

    def _standard(self, node: Call, name: str) -> Expr:
        args = [self._done[arg] for arg in node.args]
        start = const(0, "int64")
        if name == "hd":
            return call("serde.sequence_at", args[0], start)
        if name == "tl":
            return call("serde.sequence_erase", args[0], start)
        if name == "nth":
            return call("serde.sequence_at", *args)
        if name == "length":
            return call("cast", call("serde.sequence_length", args[0]), dtype="int32")
        if name == "update":
            without = call("serde.sequence_erase", args[0], args[1])
            return _insert(without, args[2], args[1])
        return self._concat(node)

    def _concat(self, node: Call) -> Expr:
        """Return one list after another, one of which is written out."""
        left, right = node.args
        elements = _written_out(right)
        if elements is not None:
            result = self._done[left]
            for element in elements:
                result = _insert(result, self._done[element], None)
            return result
        elements = _written_out(left)
        if elements is None:
            raise _UndecidedError
        result = self._done[right]
        for element in reversed(elements):
            result = _insert(result, self._done[element], const(0, "int64"))
        return result

    # Matches.

    def _match(self, node: Match) -> Expr:
        data = self._done[node.data]
        result: Expr | None = None
        for clause in reversed(node.clauses):
            body, condition = self._clause(clause, data)
            # The last clause is for all that is left, or for what must not occur.
            result = body if result is None or condition is None else If(condition, body, result)
        if result is None:
            raise _UndecidedError
        return result

    def _clause(self, clause: Clause, data: Expr) -> tuple[Expr, Expr | None]:
        """Return the result of a clause, its variables bound, and when it is the one."""
        body = self._done[clause.rhs]
        conditions: list[Expr] = []
        pending: list[tuple[Pattern, Expr]] = [(clause.lhs, data)]
        while pending:
            pattern, value = pending.pop()
            if isinstance(pattern, PatternTuple):
                fields = [TupleGetItem(value, index) for index in range(len(pattern.parts))]
                pending.extend(zip(pattern.parts, fields, strict=True))
            elif isinstance(pattern, PatternVar):
                body = Let(self._bound(pattern.var), value, body)
            elif isinstance(pattern, PatternConstructor):
                asked = _read_pattern(pattern)
                conditions.append(_length_is(value, asked))
                body = self._bind_elements(asked, value, body)
        condition = None
        for each in reversed(conditions):
            condition = each if condition is None else call("logical_and", each, condition)
        return body, condition

    def _bind_elements(self, asked: _Ask, value: Expr, body: Expr) -> Expr:
        if asked.rest is not None:
            rest = value
            for _ in range(asked.count):
                rest = call("serde.sequence_erase", rest, const(0, "int64"))
            body = Let(self._bound(asked.rest), rest, body)
        for position, variable in asked.elements:
            element = call("serde.sequence_at", value, const(position, "int64"))
            body = Let(self._bound(variable), element, body)
        return body

    def _bound(self, variable: Var) -> Var:
        found = self._done[variable]
        assert isinstance(found, Var)
        return found


def _read_pattern(pattern: PatternConstructor) -> _Ask:
    elements: list[tuple[int, Var]] = []
    here: Pattern = pattern
    count = 0
    while isinstance(here, PatternConstructor) and here.parts:
        first, here = here.parts
        if isinstance(first, PatternVar):
            elements.append((count, first.var))
        elif first.parts:
            raise _UndecidedError
        count += 1
    rest = here.var if isinstance(here, PatternVar) else None
    return _Ask(count, isinstance(here, PatternConstructor), tuple(elements), rest)


def _length_is(value: Expr, asked: _Ask) -> Expr:
    compare = "equal" if asked.exact else "greater_equal"
    length = call("serde.sequence_length", value)
    return call(compare, length, const(asked.count, "int64"))


def _insert(data: Expr, value: Expr, position: Expr | None) -> Expr:
    return call("serde.sequence_insert", data, value, position)


def _written_out(node: Expr) -> Sequence[Expr] | None:
    """Return the elements of a list that constructors make; None where something else does."""
    elements: list[Expr] = []
    while isinstance(node, Call) and isinstance(node.op, Constructor):
        if not node.args:
            return elements
        elements.append(node.args[0])
        node = node.args[1]
    return None


def _holds_lists(type_: Type | None) -> bool:
    return any(isinstance(each, TypeCall) for each in walk_type(type_))


def _as_sequences(type_: Type | None) -> Type | None:
    """Return a type with sequences for lists of tensors."""
    if type_ is None or type(type_) is TensorType:
        return type_

    def replace(each: Type) -> Type:
        if not isinstance(each, TypeCall):
            return each
        named = isinstance(each.func, GlobalTypeVar) and each.func.name_hint == _LIST
        element = each.args[0] if named else None
        if not isinstance(element, TensorType):
            raise _UndecidedError
        return SequenceType(element)

    return map_type(type_, replace)
