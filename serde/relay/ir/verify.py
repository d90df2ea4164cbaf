"""The structural rules of Relay, checked after every bridge and pass.

One walk without recursion. A node that is shared is looked at once; where it
is met again, it is enough that the innermost binder it may depend on is still
open, because binders close in the opposite order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from serde.core.garbage_collection import pause_garbage_collection
from serde.errors import RelayError, TypeInferenceError, VerifyError
from serde.relay.ir.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from serde.relay.ir.bodies import carried
from serde.relay.ir.expr import (
    Attrs,
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
)
from serde.relay.ir.infer import infer_match, infer_reference
from serde.relay.ir.module import IRModule
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.registry import OpDef, infer_call
from serde.relay.ir.types import FuncType, TensorType, TupleType, Type, accepts, is_complete
from serde.relay.ir.visit import children, free_vars

__all__ = ["verify"]

_NODES: Final = frozenset(
    {Call, Constant, Function, GlobalVar, If, Let, Op, OpDef, Tuple, TupleGetItem, Var}
    | {Constructor, Match, RefCreate, RefRead, RefWrite}
)
_PATTERNS: Final = frozenset({PatternConstructor, PatternTuple, PatternVar, PatternWildcard})

Walk = Iterator["Expr | None"]


@pause_garbage_collection()
def verify(value: IRModule | Function, *, types: bool = True) -> None:
    """Refuse a module or function that breaks a structural rule.

    Every variable is bound once and used where its binder is open; global
    functions exist; calls have the operands and all attributes, in canonical
    form; projections are in range; nodes are of Relay's own classes; and in a checked
    module every node has the type that inference gives it.

    Args:
        value: A module or function.
        types: Whether the types of a checked module are looked at.

    Raises:
        VerifyError: The first rule that is broken, and where.
    """
    if isinstance(value, Function):
        _Verifier(None, checked=False).function(value, "function")
        return
    verifier = _Verifier(value, checked=value.checked and types)
    for variable, function in value.functions.items():
        if type(function) is not Function:
            raise VerifyError(f"{variable.name_hint}: expected a function, found {function!r}")
        verifier.function(function, variable.name_hint)


class _Verifier:
    def __init__(self, mod: IRModule | None, *, checked: bool) -> None:
        self._mod = mod
        self._checked = checked
        self._where = ""
        self._open: list[Var] = []
        self._position: dict[Var, int] = {}
        self._bound: set[Var] = set()
        self._depends: dict[Expr, Var | None] = {}
        """Of a finished node: the innermost binder that it may depend on."""
        self._free: dict[Expr, list[Var]] = {}

    def _fail(self, node: Expr, message: str) -> VerifyError:
        source = "" if node.span is None else f" [{node.span.source_name}]"
        error = VerifyError(f"{self._where}: {node!r}{source}: {message}")
        error.node = node
        return error

    def function(self, function: Function, where: str) -> None:
        """Check one function of the module."""
        self._where = where
        stack: list[tuple[Expr, Walk]] = []
        self._enter(function, stack)
        while stack:
            node, walk = stack[-1]
            child = next(walk, None)
            if child is None:
                stack.pop()
                self._leave(node)
            else:
                self._enter(child, stack)

    def _enter(self, node: Expr, stack: list[tuple[Expr, Walk]]) -> None:
        if type(node) not in _NODES:
            raise self._fail(node, "this is no node of Relay")
        if isinstance(node, Var):
            self._use(node)
        elif isinstance(node, Op):
            raise self._fail(node, "an operator is used as a value")
        elif node in self._depends:
            self._meet_again(node)
        else:
            stack.append((node, self._walk(node)))

    def _use(self, variable: Var) -> None:
        if not self._is_open(variable):
            bound = "outside what binds it" if variable in self._bound else "but never bound"
            raise self._fail(variable, f"the variable is used {bound}")

    def _is_open(self, variable: Var) -> bool:
        position = self._position.get(variable, len(self._open))
        return position < len(self._open) and self._open[position] is variable

    def _meet_again(self, node: Expr) -> None:
        innermost = self._depends[node]
        if innermost is None or self._is_open(innermost):
            return
        if node not in self._free:
            self._free[node] = free_vars(node)
        for variable in self._free[node]:
            self._use(variable)

    def _bind(self, variable: Var, binder: Expr) -> None:
        if type(variable) is not Var:
            raise self._fail(binder, f"{variable!r} is bound but is no variable")
        if variable in self._bound:
            raise self._fail(binder, f"{variable!r} is bound twice")
        if self._checked and variable.type is None:
            raise self._fail(variable, "the variable has no type though the module is checked")
        declared = variable.type_annotation
        found = variable.type
        if declared is not None and found is not None and not accepts(declared, found):
            raise self._fail(variable, f"declared {declared!r} but is {found!r}")
        self._bound.add(variable)
        self._position[variable] = len(self._open)
        self._open.append(variable)

    def _walk(self, node: Expr) -> Walk:
        """Yield the children of a node, with binders opened and closed around them."""
        if isinstance(node, Call):
            yield from node.args
            if not isinstance(node.op, Op):
                yield node.op
            yield from (value for value in node.attrs.values() if isinstance(value, Function))
        elif isinstance(node, Tuple):
            yield from node.fields
        elif isinstance(node, TupleGetItem):
            yield node.tuple_value
        elif isinstance(node, If):
            yield node.cond
            yield node.true_branch
            yield node.false_branch
        elif isinstance(node, Function):
            for param in node.params:
                self._bind(param, node)
            yield node.body
            del self._open[len(self._open) - len(node.params) :]
        elif isinstance(node, Let):
            yield from self._walk_let(node)
        elif isinstance(node, Match):
            yield node.data
            for clause in node.clauses:
                yield from self._walk_clause(clause, node)
        elif isinstance(node, (RefCreate, RefRead, RefWrite)):
            yield from children(node)

    def _walk_clause(self, clause: Clause, node: Match) -> Walk:
        pending: list[Pattern] = [clause.lhs]
        while pending:
            pattern = pending.pop()
            if type(pattern) not in _PATTERNS:
                raise self._fail(node, f"{pattern!r} is no pattern")
            if isinstance(pattern, PatternConstructor):
                self._check_constructor(pattern.constructor)
                if len(pattern.parts) != len(pattern.constructor.inputs):
                    raise self._fail(node, f"{pattern!r}: the constructor has other fields")
            pending.extend(pattern.parts)
        for variable in clause.variables:
            self._bind(variable, node)
        yield clause.rhs
        del self._open[len(self._open) - len(clause.variables) :]

    def _check_constructor(self, constructor: Constructor) -> None:
        """Check that the module defines a constructor."""
        if self._mod is None:
            return
        data = self._mod.type_definitions.get(constructor.belong_to)
        if data is None or constructor not in data.constructors:
            raise self._fail(constructor, "the module has no such constructor")

    def _walk_let(self, node: Let) -> Walk:
        recursive = isinstance(node.value, Function)
        if recursive:
            self._bind(node.var, node)
        yield node.value
        if not recursive:
            self._bind(node.var, node)
        yield node.body
        self._open.pop()

    def _leave(self, node: Expr) -> None:
        self._check(node)
        self._depends[node] = self._dependence(node)

    def _dependence(self, node: Expr) -> Var | None:
        """Return the innermost open binder that `node` may depend on."""
        limit = len(self._open)
        deepest = -1
        for child in _operands(node):
            variable = child if isinstance(child, Var) else self._depends.get(child)
            if variable is None:
                continue
            position = self._position[variable]
            if position >= limit or self._open[position] is not variable:
                # Closed by now: what else is used below is not known, so take all that is open.
                position = limit - 1
            deepest = max(deepest, position)
        return self._open[deepest] if deepest >= 0 else None

    def _check(self, node: Expr) -> None:
        if isinstance(node, Call):
            self._check_call(node)
        elif isinstance(node, TupleGetItem):
            self._check_field(node)
        elif isinstance(node, GlobalVar) and not self._is_defined(node):
            raise self._fail(node, "the module has no such function")
        elif isinstance(node, Constructor):
            self._check_constructor(node)
        if self._checked and not isinstance(node, GlobalVar):
            self._check_type(node)

    def _is_defined(self, variable: GlobalVar) -> bool:
        return self._mod is None or variable in self._mod.functions

    def _check_field(self, node: TupleGetItem) -> None:
        value = node.tuple_value
        count: int | None = None
        if isinstance(value, Tuple):
            count = len(value.fields)
        elif isinstance(value.type, TupleType):
            count = len(value.type.fields)
        elif value.type is not None:
            raise self._fail(node, f"a field of {value.type!r}")
        if type(node.index) is not int or node.index < 0:
            raise self._fail(node, f"{node.index!r} is no number of a field")
        if count is not None and node.index >= count:
            raise self._fail(node, f"field {node.index} of a tuple with {count} fields")

    def _check_call(self, node: Call) -> None:
        """Check what is called, and with how many operands."""
        definition = node.op
        if isinstance(definition, OpDef):
            if len(node.args) != len(definition.operands):
                expected = len(definition.operands)
                raise self._fail(node, f"expected {expected} operands, found {len(node.args)}")
            if definition.attributes or node.attrs:
                self._check_attributes(node, definition)
                self._check_bodies(node)
            return
        if isinstance(definition, Op):
            raise self._fail(node, "the operator is not declared")
        if node.attrs:
            raise self._fail(node, "only calls of operators have attributes")
        type_ = definition.type
        if type_ is not None and not isinstance(type_, FuncType):
            raise self._fail(node, f"{definition!r} is called but is {type_!r}")
        count = len(definition.params) if isinstance(definition, Function) else None
        if isinstance(type_, FuncType):
            count = len(type_.arg_types)
        if count is not None and count != len(node.args):
            raise self._fail(node, f"expected {count} arguments, found {len(node.args)}")

    def _check_bodies(self, node: Call) -> None:
        for body in carried(node):
            if body not in self._free:
                self._free[body] = free_vars(body)
            if self._free[body]:
                message = f"a body takes {self._free[body][0]!r} from around it"
                raise self._fail(node, message)

    def _check_attributes(self, node: Call, definition: OpDef) -> None:
        missing = [name for name in definition.attributes if name not in node.attrs]
        if missing:
            raise self._fail(node, f"attribute {missing[0]} is missing")
        try:
            bound = definition.bind(node.attrs)
        except TypeInferenceError as error:
            raise self._fail(node, str(error)) from None
        for name in bound:
            if not _same(bound[name], node.attrs[name]):
                raise self._fail(
                    node, f"attribute {name}: expected {bound[name]!r}, found {node.attrs[name]!r}"
                )
        if list(bound) != list(node.attrs) or not isinstance(node.attrs, Attrs):
            raise self._fail(node, "attributes are not in the order of their declaration")

    def _check_type(self, node: Expr) -> None:
        if node.type is None:
            raise self._fail(node, "the node has no type though the module is checked")
        try:
            found = _infer_type(node)
        except RelayError as error:
            raise self._fail(node, str(error)) from None
        if isinstance(node, If):
            branches = (node.true_branch.type, node.false_branch.type)
            if any(each is None or not accepts(node.type, each) for each in branches):
                raise self._fail(node, f"the type {node.type!r} is not that of the branches")
            if node.cond.type != TensorType((), "bool"):
                raise self._fail(node, f"a condition must be a scalar bool: {node.cond.type!r}")
        elif found != node.type:
            raise self._fail(node, f"noted as {node.type!r} but is {found!r}")


def _operands(node: Expr) -> Iterator[Expr]:
    """Yield the nodes whose values a node takes, what it calls included."""
    if isinstance(node, Call):
        yield from node.args
        if not isinstance(node.op, Op):
            yield node.op
    elif isinstance(node, Tuple):
        yield from node.fields
    elif isinstance(node, TupleGetItem):
        yield node.tuple_value
    elif isinstance(node, If):
        yield from (node.cond, node.true_branch, node.false_branch)
    elif isinstance(node, Function):
        yield node.body
    elif isinstance(node, Let):
        yield from (node.value, node.body)
    elif isinstance(node, Match):
        yield node.data
        yield from (clause.rhs for clause in node.clauses)
    elif isinstance(node, (RefCreate, RefRead, RefWrite)):
        yield from children(node)


def _infer_type(node: Expr) -> Type | None:
    """Return the type that follows from the types of the node's children."""
    if isinstance(node, Call):
        return infer_call(node)
    if isinstance(node, Constant):
        return TensorType(node.data.shape, node.data.dtype)
    if isinstance(node, Tuple):
        return TupleType(field.checked_type for field in node.fields)
    if isinstance(node, TupleGetItem):
        type_ = node.tuple_value.type
        return type_.fields[node.index] if isinstance(type_, TupleType) else None
    if isinstance(node, Let):
        return node.body.type
    if isinstance(node, Function):
        declared = node.ret_type if is_complete(node.ret_type) else None
        result = declared if declared is not None else node.body.checked_type
        if not accepts(result, node.body.checked_type):
            raise VerifyError(f"declared to return {result!r} but returns {node.body.type!r}")
        return FuncType([param.checked_type for param in node.params], result, node.type_params)
    if isinstance(node, Match):
        return infer_match(node)
    if isinstance(node, (RefCreate, RefRead, RefWrite)):
        return infer_reference(node)
    return node.type


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and (a == b or repr(a) == repr(b))
