"""Types of variables that no walk forward finds, by constraints between the types of nodes.

Every node gets a term. Most constraints make terms one at once: what a let binds and what is
declared, parameters and arguments. Others wait for unknown types and run when they are told: the
relation of an operator, which may also type its operands as TVM's does, a call of a function, a
projection, an if. When all of them wait, calls and ifs are forced in the order of the program: the
result of a function that is being typed is that of its calls, and a branch is of its sibling's
type.

The types of variables and of functions are what is asked for. The types of nodes follow from them
by a walk forward, which is also what checks them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.adt import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
)
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem as Projection,
    Var,
)
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.registry import OpDef, infer_call, operand_type
from serde.relay.ir.traits import SameType
from serde.relay.ir.types import (
    FuncType,
    IncompleteType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    join_types,
)
from serde.relay.ir.unify import (
    FuncTerm,
    RefTerm,
    Term,
    TupleTerm,
    Unifier,
    Unknown,
    find,
    instantiate,
    settle,
    spell,
    split_function,
    type_params,
)
from serde.relay.ir.visit import Binding, binding_order

__all__ = ["Solver"]

_CONDITION: Final = TensorType((), "bool")


class Solver:
    """Finds the types of variables in functions that are typed together.

    Args:
        functions: The functions that global variables stand for; others have types of their own.
    """

    def __init__(self, functions: Mapping[GlobalVar, Function] | None = None) -> None:
        self._functions = functions or {}
        self._terms: dict[Expr, Term] = {}
        self._signatures: dict[Function, FuncTerm] = {}
        self._ready: deque[_Constraint] = deque()
        self._constraints: list[_Constraint] = []
        self._unifier = Unifier(self._ready.append)
        self._reverse_order = True
        self.instances: dict[Call, list[Term]] = {}
        """Calls of polymorphic functions, and what their type parameters stand for there."""

    def solve(self, roots: Iterable[Function]) -> dict[Expr, Type]:
        """Return the types of variables, of functions, and of calls of polymorphic ones.

        Raises:
            TypeInferenceError: Types do not fit, or one does not follow.
        """
        for root in roots:
            steps = binding_order(root)
            for step in steps:
                if isinstance(step, Let):
                    self._announce(step)
            for step in steps:
                self._visit(step)
        while True:
            self._drain()
            if not (self._force(last=False) or self._force(last=True)):
                break
        self._close_instances()
        self._refuse_open()
        return self._found()

    # Terms.

    def term(self, node: Expr) -> Term:
        """Return the term of a node that was visited, or of a leaf."""
        known = self._terms.get(node)
        if known is not None:
            return known
        found: Term
        if isinstance(node, GlobalVar) and node in self._functions:
            found = self.signature(self._functions[node])
        elif node.type is not None and isinstance(node, (Var, Constant, GlobalVar, Constructor)):
            found = node.type
        elif isinstance(node, Var) and node.type_annotation is not None:
            found = instantiate(node.type_annotation, {})
        else:
            found = Unknown()
        self._terms[node] = found
        return found

    def signature(self, function: Function) -> FuncTerm:
        """Return the term of a function, which holds before its body is looked at."""
        known = self._signatures.get(function)
        if known is None:
            declared = function.ret_type
            result = Unknown() if declared is None else instantiate(declared, {})
            known = FuncTerm([*map(self.term, function.params), result], function.type_params)
            self._signatures[function] = known
        return known

    def unify(self, expected: Term, found: Term, node: Expr, what: str = "") -> None:
        """Make two terms one.

        Raises:
            TypeInferenceError: They differ; the message has both.
        """
        try:
            same = self._unifier.unify(expected, found)
        except TypeInferenceError as error:
            raise _located(error, node) from None
        if not same:
            text = f"{node!r}: {what}expected {spell(expected)}, found {spell(found)}"
            raise _located(TypeInferenceError(text), node)

    def _announce(self, let: Let) -> None:
        """Give the variable of a let a term before its value, which may name it."""
        if let.var.type_annotation is not None:
            self._terms[let.var] = instantiate(let.var.type_annotation, {})
        elif isinstance(let.value, Function):
            self._terms[let.var] = self.signature(let.value)
        else:
            self._terms[let.var] = Unknown()

    def _visit(self, step: Expr | Binding) -> None:
        if isinstance(step, Binding):
            self._bind(step.node)
        elif isinstance(step, Function):
            signature = self.signature(step)
            if step not in self._terms:
                self._terms[step] = signature
                self.unify(signature.parts[-1], self.term(step.body), step, "result: ")
        elif step not in self._terms:
            self._terms[step] = self._term_of(step)

    def _bind(self, node: Let | Match) -> None:
        if isinstance(node, Let):
            self.unify(self.term(node.var), self.term(node.value), node)
            return
        for clause in node.clauses:
            pending: list[tuple[Pattern, Term]] = [(clause.lhs, self.term(node.data))]
            while pending:
                pattern, term = pending.pop()
                parts = self._split_pattern(pattern, term, node)
                pending.extend(zip(pattern.parts, parts, strict=True))

    def _split_pattern(self, pattern: Pattern, term: Term, node: Match) -> Sequence[Term]:
        """Make a term what a pattern asks for; return the terms of its parts."""
        if isinstance(pattern, PatternVar):
            self.unify(self.term(pattern.var), term, node, "pattern: ")
        elif isinstance(pattern, PatternTuple):
            whole = TupleTerm(Unknown() for _ in pattern.parts)
            self.unify(whole, term, node, "pattern: ")
            return whole.parts
        elif isinstance(pattern, PatternConstructor):
            signature = pattern_signature(pattern)
            fresh: dict[TypeVar, Term] = {each: Unknown() for each in signature.type_params}
            self.unify(instantiate(signature.ret_type, fresh), term, node, "pattern: ")
            return [instantiate(each, fresh) for each in signature.arg_types]
        return ()

    def _term_of(self, node: Expr) -> Term:
        if isinstance(node, Tuple):
            return TupleTerm(map(self.term, node.fields))
        if isinstance(node, Let):
            return self.term(node.body)
        if isinstance(node, Call):
            kind = _Relation if isinstance(node.op, OpDef) else _Application
            return self._add(kind(self, node))
        if isinstance(node, Projection):
            return self._add(_Field(self, node))
        if isinstance(node, If):
            self.unify(_CONDITION, self.term(node.cond), node, "condition: ")
            return self._add(_Choice(self, node, (node.true_branch, node.false_branch)))
        if isinstance(node, Match):
            return self._add(_Choice(self, node, [clause.rhs for clause in node.clauses]))
        if isinstance(node, (RefCreate, RefRead, RefWrite)):
            return self._reference(node)
        return self.term(node)

    def _reference(self, node: RefCreate | RefRead | RefWrite) -> Term:
        if isinstance(node, RefCreate):
            return RefTerm([self.term(node.value)])
        content = self.term(node.value) if isinstance(node, RefWrite) else Unknown()
        self.unify(RefTerm([content]), self.term(node.ref), node)
        return content if isinstance(node, RefRead) else TupleType(())

    def _add(self, constraint: _Constraint) -> Term:
        constraint.run()
        if not constraint.done:
            self._constraints.append(constraint)
        return constraint.result

    # Solving.

    def _drain(self) -> None:
        while self._ready:
            constraint = self._ready.popleft()
            if not constraint.done:
                constraint.run()

    def _force(self, *, last: bool) -> bool:
        """Force constraints in order; return whether one told something new.

        Every other time the order is the reverse: what is told may pass through many, either way.
        """
        self._constraints = [each for each in self._constraints if not each.done]
        self._reverse_order = not self._reverse_order
        told = False
        for constraint in self._constraints[:: -1 if self._reverse_order else 1]:
            if not constraint.done and constraint.force(last=last):
                told = True
                self._drain()
                if last:
                    break
        return told

    def _close_instances(self) -> None:
        """Leave open what type parameters stand for where nothing tells, as in an empty list."""
        for node, values in self.instances.items():
            if not isinstance(find(self._terms[node]), Unknown):
                for value in values:
                    while isinstance(open_ := settle(value), Unknown):
                        self._unifier.unify(open_, IncompleteType())
        self._drain()

    def _refuse_open(self) -> None:
        for constraint in self._constraints:
            if not constraint.done:
                raise _located(TypeInferenceError(constraint.complaint()), constraint.node)
        for node, term in self._terms.items():
            known = settle(term) if isinstance(node, (Var, GlobalVar)) else None
            if isinstance(known, (Unknown, IncompleteType)):
                raise _located(TypeInferenceError(f"{node!r} has no type: {spell(term)}"), node)
        for function, signature in self._signatures.items():
            if isinstance(settle(signature), Unknown):
                text = f"the result of {function!r} has no type: {spell(signature)}"
                raise _located(TypeInferenceError(text), function)

    def _found(self) -> dict[Expr, Type]:
        wanted = (Var, GlobalVar, Function)
        found: dict[Expr, Type] = {}
        for node, term in (*self._terms.items(), *self._signatures.items()):
            if isinstance(node, wanted) or node in self.instances:
                type_ = settle(term)
                if not isinstance(type_, Unknown):
                    found[node] = type_
        return found


def _located(error: TypeInferenceError, node: Expr) -> TypeInferenceError:
    if error.node is None:
        error.node = node
    return error


class _Constraint:
    """What holds between the terms of a node and of those below it.

    Attributes:
        node: The node.
        result: Its term.
        done: Whether everything is known and checked.
    """

    def __init__(self, solver: Solver, node: Expr) -> None:
        self.solver = solver
        self.node = node
        self.result: Term = Unknown()
        self.done = False

    def run(self) -> None:
        """Say what follows from what is known, and wait for the rest."""
        raise NotImplementedError

    def force(self, *, last: bool) -> bool:
        """Say what must hold though it is not known yet; return whether it was new.

        Args:
            last: Whether nothing else is left to say.
        """
        return False

    def complaint(self) -> str:
        """Return why the node has no type."""
        return f"{self.node!r} has no type"

    def _wait(self, *terms: Term) -> None:
        for term in terms:
            known = settle(term)
            if isinstance(known, Unknown):
                known.waiting.append(self)

    def _finish(self, type_: Term, what: str = "") -> None:
        self.done = True
        self.solver.unify(self.result, type_, self.node, what)


class _Relation(_Constraint):
    """The type relation of an operator; it may type operands, too."""

    node: Call

    def __init__(self, solver: Solver, node: Call) -> None:
        super().__init__(solver, node)
        self._operands = [solver.term(argument) for argument in node.args]
        definition = node.op
        if isinstance(definition, OpDef) and definition.has(SameType) and len(node.args) == 1:
            self.result = self._operands[0]

    def run(self) -> None:
        types = self._settled()
        definition = self.node.op
        if None in types and isinstance(definition, OpDef) and definition.complete is not None:
            self._complete(definition, types)
            types = self._settled()
        if None in types:
            self._wait(*self._operands)
            return
        result = _infer(self.node, types)
        if result is not None:
            self._finish(result, "result: ")

    def _settled(self) -> list[Type | None]:
        return [_type_or_none(term) for term in self._operands]

    def _complete(self, definition: OpDef, types: list[Type | None]) -> None:
        if definition.complete is None or len(types) != len(definition.operands):
            return
        for operand, argument, type_ in zip(
            definition.operands, self.node.args, types, strict=True
        ):
            if type_ is not None:
                argument.type = type_
                try:
                    operand_type(definition, operand, argument)
                except TypeInferenceError as error:
                    raise _located(error, self.node) from None
        try:
            completed = definition.complete(*types, **self.node.attrs)
        except RelayError as error:
            text = f"{definition.name}: {error}"
            raise _located(TypeInferenceError(text), self.node) from None
        for term, known, told in zip(self._operands, types, completed, strict=True):
            if known is None and told is not None:
                self.solver.unify(term, told, self.node)

    def complaint(self) -> str:
        operands = ", ".join(map(spell, self._operands))
        missing = next(
            argument
            for argument, term in zip(self.node.args, self._operands, strict=True)
            if isinstance(settle(term), Unknown)
        )
        return f"{self.node!r}: {missing!r} has no type (operands: {operands})"


class _Application(_Constraint):
    """A call of a function: parameters are arguments, and the result is the function's."""

    node: Call

    def __init__(self, solver: Solver, node: Call) -> None:
        super().__init__(solver, node)
        self._callee = solver.term(node.op)
        self._arguments = [solver.term(argument) for argument in node.args]
        self._matched = False
        self._forced = False

    def run(self) -> None:
        if not self._matched:
            self._match()
        if self.done:
            return
        callee = settle(self._callee)
        types = [_type_or_none(term) for term in self._arguments]
        if isinstance(callee, Unknown) or None in types:
            self._wait(self._callee, *self._arguments)
            return
        self.node.op.type = callee
        result = _infer(self.node, types)
        if result is not None:
            self._finish(result, "result: ")

    def _match(self) -> None:
        """Make parameters and arguments one, once it is known what is called."""
        callee = find(self._callee)
        if isinstance(callee, Unknown):
            return
        function = split_function(callee)
        if function is None:
            text = f"{self.node.op!r} is called but is {spell(callee)}"
            raise _located(TypeInferenceError(text), self.node)
        params = function[0]
        if len(params) != len(self._arguments):
            text = f"{self.node.op!r}: expected {len(params)} arguments, "
            text += f"found {len(self._arguments)}"
            raise _located(TypeInferenceError(text), self.node)
        generic = type_params(callee)
        if generic:
            found = self._instance(callee, generic)
            if found is None:
                return
            params, result = found
            self._finish(result, "result: ")
        self._matched = True
        for index, (param, argument) in enumerate(zip(params, self._arguments, strict=True)):
            self.solver.unify(param, argument, self.node, f"argument {index}: ")

    def _instance(
        self, callee: Term, generic: Sequence[TypeVar], *, force: bool = False
    ) -> tuple[tuple[Term, ...], Term] | None:
        """Return parameters and result of a polymorphic function as they are in this call.

        None while something in its own type is not known: it may hold type parameters.
        """
        if not force and isinstance(settle(callee), Unknown):
            return None
        values: dict[TypeVar, Term] = {param: Unknown() for param in generic}
        given = [instantiate(each, {}) for each in self.node.given_type_args or ()]
        values.update(zip(generic, given, strict=False))
        self.solver.instances[self.node] = list(values.values())
        function = split_function(callee)
        if function is None:
            return None
        params, result = function
        return tuple(instantiate(each, values) for each in params), instantiate(result, values)

    def force(self, *, last: bool) -> bool:
        if self._forced:
            return False
        function = split_function(self._callee)
        generic = type_params(self._callee)
        if function is not None and generic:
            return last and self._force_instance(generic)
        if function is not None:
            self._forced = True
            before = find(self.result), find(function[1])
            self.solver.unify(function[1], self.result, self.node, "result: ")
            return before[0] is not before[1]
        if not last:
            return False
        self.solver.unify(self._callee, FuncTerm([*self._arguments, self.result]), self.node)
        return True

    def _force_instance(self, generic: Sequence[TypeVar]) -> bool:
        """Take a polymorphic function for what is known of it, and the rest for the same in it."""
        found = self._instance(self._callee, generic, force=True)
        if found is None:
            return False
        self._forced = self._matched = True
        for param, argument in zip(found[0], self._arguments, strict=True):
            self.solver.unify(param, argument, self.node)
        self._finish(found[1], "result: ")
        return True

    def complaint(self) -> str:
        arguments = ", ".join(map(spell, self._arguments))
        return f"{self.node!r} has no type: {spell(self._callee)} is called with ({arguments})"


class _Field(_Constraint):
    """A field of a tuple."""

    node: Projection

    def run(self) -> None:
        whole = find(self.solver.term(self.node.tuple_value))
        if isinstance(whole, Unknown):
            self._wait(whole)
            return
        fields = whole.parts if isinstance(whole, TupleTerm) else ()
        if isinstance(whole, TupleType):
            fields = whole.fields
        if not 0 <= self.node.index < len(fields):
            text = f"{self.node!r}: no such field in {spell(whole)}"
            raise _located(TypeInferenceError(text), self.node)
        self._finish(fields[self.node.index])

    def complaint(self) -> str:
        return f"{self.node!r}: {self.node.tuple_value!r} has no type"


class _Choice(_Constraint):
    """An if or a match: of what all branches have in common."""

    def __init__(self, solver: Solver, node: If | Match, branches: Iterable[Expr]) -> None:
        super().__init__(solver, node)
        self._branches = [solver.term(branch) for branch in branches]

    def run(self) -> None:
        joined: Type | None = None
        for term in self._branches:
            known = settle(term)
            if isinstance(known, Unknown):
                self._wait(*self._branches)
                return
            whole = known if joined is None else join_types(joined, known)
            if whole is None:
                what = "an if" if isinstance(self.node, If) else "a match"
                text = f"the branches of {what} differ: {joined!r} and {known!r}"
                raise _located(TypeInferenceError(text), self.node)
            joined = whole
        if joined is not None:
            self._finish(joined, "result: ")

    def force(self, *, last: bool) -> bool:
        terms = [*self._branches, self.result]
        known = [settle(term) for term in terms]
        if not last and all(isinstance(type_, Unknown) for type_ in known):
            return False
        before = [find(term) for term in terms]
        if all(one is before[0] for one in before):
            return False
        what = "the branches differ: "
        for other in (*self._branches[1:], self.result):
            self.solver.unify(other, self._branches[0], self.node, what)
        return any(one is not find(term) for one, term in zip(before, terms, strict=True))

    def complaint(self) -> str:
        branches = " and ".join(map(spell, self._branches)) or "none"
        return f"{self.node!r} has no type: its branches are {branches}"


def pattern_signature(pattern: PatternConstructor) -> FuncType:
    """Return the type of the constructor that a pattern asks for.

    Raises:
        TypeInferenceError: It belongs to no definition, or has another number of fields.
    """
    constructor = pattern.constructor
    if not isinstance(constructor.type, FuncType):
        raise TypeInferenceError(f"{constructor!r} belongs to no definition of a type")
    if len(pattern.parts) != len(constructor.inputs):
        raise TypeInferenceError(
            f"{constructor!r}: expected {len(constructor.inputs)} patterns, "
            f"found {len(pattern.parts)}"
        )
    return constructor.type


def _type_or_none(term: Term) -> Type | None:
    known = settle(term)
    return None if isinstance(known, Unknown) else known


def _infer(node: Call, types: Iterable[Type | None]) -> Type | None:
    for argument, type_ in zip(node.args, types, strict=True):
        argument.type = type_
    try:
        return infer_call(node)
    except TypeInferenceError as error:
        raise _located(error, node) from None
