"""A number that is the same for whatever :func:`~serde.relay.ir.compare.structural_equal` equates.

It depends on what is compared alone, not on the process, except for free variables, which are
equal to themselves only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.garbage_collection import pause_garbage_collection
from serde.relay.ir.adt import Constructor, Match, Pattern, PatternConstructor, PatternVar, TypeData
from serde.relay.ir.compare import Comparable, result_type
from serde.relay.ir.dims import Any, SymDim
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    astuple,
)
from serde.relay.ir.module import IRModule
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import FuncType, TensorType, Type, TypeVar, map_type
from serde.relay.ir.visit import children

__all__ = ["structural_hash"]

_BYTES: Final = 8
_FREE_TYPE: Final = TypeVar("free")
_SPELLED: Final = (bool, int, float, str, bytes, np.generic, SymDim, Any)
"""Kinds of values that are equal just where their texts are."""


@pause_garbage_collection()
def structural_hash(value: Comparable, map_free_vars: bool = False) -> int:
    """Return a number of 64 bits that structurally equal modules, expressions or types share.

    Args:
        value: A module, an expression or a type.
        map_free_vars: Whether free variables may stand for each other, as in
            :func:`~serde.relay.ir.compare.structural_equal`.
    """
    hasher, value = _Hasher(map_free_vars), astuple(value)
    if isinstance(value, IRModule):
        hasher.module(value)
    elif isinstance(value, Expr):
        hasher.run(value)
    elif isinstance(value, TypeData):
        hasher.definition(value)
    else:
        hasher.put("type", hasher.type_text(value))
    return hasher.number()


class _Hasher:
    """Reduces what a walk meets to a digest; a node that was met before is its number."""

    def __init__(self, map_free_vars: bool) -> None:
        self._map_free_vars = map_free_vars
        self._digest = hashlib.blake2b(digest_size=_BYTES)
        self._numbers: dict[Expr, int] = {}
        self._variables: dict[Var, str] = {}
        self._type_vars: dict[TypeVar, Type] = {}
        self._constants: dict[Constant, str] = {}
        self._paths: dict[TupleGetItem, tuple[str, Expr]] = {}

    def number(self) -> int:
        """Return what everything put so far amounts to."""
        return int.from_bytes(self._digest.digest(), "little")

    def put(self, *words: str) -> None:
        """Add words; where one ends counts."""
        text = "".join(f"{len(word)}:{word}" for word in words)
        self._digest.update(text.encode("utf-8", "surrogatepass"))

    def module(self, mod: IRModule) -> None:
        """Add all functions, in order of their names."""
        self.put("module")
        functions = {variable.name_hint: function for variable, function in mod.functions.items()}
        for expr in self._put_mapping(mod.attrs):
            self.run(expr)
        definitions = mod.type_definitions.values()
        for data in sorted(definitions, key=lambda data: data.header.name_hint):
            self.definition(data)
        for name in sorted(functions):
            self.put("def", name)
            self.run(functions[name])

    def definition(self, data: TypeData) -> None:
        """Add the definition of an algebraic data type."""
        self.put("type", data.header.name_hint, str(len(data.type_vars)))
        for constructor in data.constructors:
            self.put(constructor.name_hint, self.type_text(constructor.type))

    def type_text(self, type_: Type | None) -> str:
        """Return a text that equal types share; type variables are numbered as they are bound."""
        if type_ is None:
            return "untyped"
        if type(type_) is TensorType:
            return repr(type_)
        if isinstance(type_, TypeVar) and type_ not in self._type_vars and not self._map_free_vars:
            return f"free {id(type_)}"
        return repr(map_type(type_, self._number_type_vars))

    def _number_type_vars(self, type_: Type) -> Type:
        if isinstance(type_, TypeVar):
            return self._type_vars.get(type_, _FREE_TYPE)
        if isinstance(type_, FuncType) and type_.type_params:
            names = {each: TypeVar(f"{i}") for i, each in enumerate(type_.type_params)}
            return FuncType(type_.arg_types, type_.ret_type, names.values())
        return type_

    def run(self, root: Expr) -> None:
        """Add an expression and what is below it."""
        pending: list[Expr] = [root]
        while pending:
            below = list(self._put_node(pending.pop()))
            pending.extend(reversed(below))

    def _put_node(self, node: Expr) -> Iterator[Expr]:
        """Add what a node says itself; yield the nodes below it."""
        if isinstance(node, Var):
            self.put(self._variable(node))
        elif isinstance(node, Constant):
            self.put(self._constant(node))
        elif isinstance(node, TupleGetItem):
            path, root = self._path(node)
            self.put("field", path)
            yield root
        elif isinstance(node, (GlobalVar, Op)):
            self.put("name", node.name_hint if isinstance(node, GlobalVar) else node.name)
        elif isinstance(node, Constructor):
            self.put("constructor", node.name_hint, node.belong_to.name_hint)
        elif isinstance(node, Tuple) and not node.fields:
            self.put("empty")
        elif node in self._numbers:
            self.put("again", str(self._numbers[node]))
        else:
            self._numbers[node] = len(self._numbers)
            yield from self._put_inner(node)

    def _put_inner(self, node: Expr) -> Iterator[Expr]:
        """Add a node of which it counts where it is shared."""
        if isinstance(node, Call):
            self.put("call", str(len(node.args)))
            for type_ in () if isinstance(node.op, Op) else node.given_type_args or ():
                self.put("type argument", self.type_text(type_))
            yield node.op
            yield from self._put_mapping(node.attrs)
            yield from node.args
        elif isinstance(node, Tuple):
            self.put("tuple", str(len(node.fields)))
            yield from node.fields
        elif isinstance(node, Function):
            for each in node.type_params:
                self._type_vars[each] = TypeVar(f"bound {len(self._type_vars)}")
            types = str(len(node.type_params)), self.type_text(result_type(node))
            self.put("function", str(len(node.params)), *types)
            for param in node.params:
                self._bind(param)
            yield from self._put_mapping(node.attrs)
            yield node.body
        elif isinstance(node, Let):
            self.put("let")
            self._bind(node.var)
            yield node.value
            yield node.body
        elif isinstance(node, If):
            self.put("if")
            yield from (node.cond, node.true_branch, node.false_branch)
        elif isinstance(node, Match):
            yield from self._put_match(node)
        elif isinstance(node, (RefCreate, RefRead, RefWrite)):
            self.put(type(node).__name__)
            yield from children(node)
        else:
            raise TypeError(f"{node!r} is no node that can be hashed")

    def _put_match(self, node: Match) -> Iterator[Expr]:
        self.put("match", str(len(node.clauses)), str(node.complete))
        yield node.data
        for clause in node.clauses:
            pending: list[Pattern] = [clause.lhs]
            while pending:
                pattern = pending.pop()
                self.put(type(pattern).__name__, str(len(pattern.parts)))
                if isinstance(pattern, PatternVar):
                    self._bind(pattern.var)
                elif isinstance(pattern, PatternConstructor):
                    self.put(pattern.constructor.name_hint)
                pending.extend(pattern.parts)
            yield clause.rhs

    def _bind(self, variable: Var) -> None:
        self._variables[variable] = f"bound {len(self._variables)}"
        self.put(self.type_text(variable.type))

    def _variable(self, variable: Var) -> str:
        known = self._variables.get(variable)
        if known is not None:
            return known
        if not self._map_free_vars:
            return f"free {id(variable)}"
        self._variables[variable] = f"free {len(self._variables)}"
        return f"{self._variables[variable]} of {self.type_text(variable.type)}"

    def _constant(self, node: Constant) -> str:
        if node not in self._constants:
            self._constants[node] = _array_text(node.data)
        return self._constants[node]

    def _path(self, node: TupleGetItem) -> tuple[str, Expr]:
        """Return the fields that lead to a projection, in short, and what they are fields of."""
        chain: list[TupleGetItem] = []
        here: Expr = node
        while isinstance(here, TupleGetItem) and here not in self._paths:
            chain.append(here)
            here = here.tuple_value
        path, root = self._paths[here] if isinstance(here, TupleGetItem) else ("", here)
        for each in reversed(chain):
            path = _short(f"{path}.{each.index}".encode())
            self._paths[each] = (path, root)
        return path, root

    def _put_mapping(self, values: Mapping[str, AnyValue]) -> Iterator[Expr]:
        self.put("attributes", str(len(values)))
        for name in sorted(values):
            self.put(name)
            yield from self._put_value(values[name])

    def _put_value(self, value: AnyValue) -> Iterator[Expr]:
        if isinstance(value, Expr):
            self.put("expression")
            yield value
        elif isinstance(value, (tuple, list)):
            self.put("list", str(len(value)))
            for item in value:
                yield from self._put_value(item)
        elif isinstance(value, np.ndarray):
            self.put(_array_text(value))
        elif isinstance(value, np.dtype):
            self.put("dtype", str(value))
        else:
            # Of other kinds only the kind: whether two are equal is theirs to say.
            text = repr(value) if isinstance(value, _SPELLED) else ""
            self.put(type(value).__qualname__, text)


def _array_text(data: np.ndarray[AnyValue, AnyValue]) -> str:
    return f"array {data.dtype} {data.shape} {_short(data.tobytes())}"


def _short(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_BYTES).hexdigest()
