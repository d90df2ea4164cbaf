"""Which values of lets may be left out or moved: those whose evaluation has no effect."""

from __future__ import annotations

from collections.abc import Mapping

from serde.core.records import dataclass
from serde.relay.ir import Call, Expr, Function, GlobalVar, If, Let, Op, Tuple, TupleGetItem, Var
from serde.relay.ir.adt import Clause, Constructor, Match
from serde.relay.ir.module import IRModule, callees_first, find_callees
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import FuncType
from serde.relay.ir.visit import Binding, binding_order
from serde.relay.transform.purity import is_random

__all__ = ["is_stateful", "pure_lets"]

_STATEFUL = ("nn.dropout", "device_copy")
_STATEFUL_SPACES = ("memory.", "vm.")


def is_stateful(node: Call) -> bool:
    """Whether a call of an operator does something besides giving its result."""
    if not isinstance(node.op, Op):
        return False
    name = node.op.name
    return name in _STATEFUL or name.startswith(_STATEFUL_SPACES) or is_random(node)


@dataclass(frozen=True)
class _Purity:
    """What is known of a value.

    Attributes:
        here: Whether evaluating it has no effect.
        called: Whether calling it has none, if it is a function.
    """

    here: bool = True
    called: bool = True


_PURE = _Purity()


def pure_lets(mod: IRModule) -> dict[Var, bool]:
    """Return, for each variable that a let binds, whether its value has no effect.

    References that are read or written are effects, and operators with a state. A function has
    those of its body when it is called; one that comes as an argument, or out of a tuple, a
    reference or algebraic data, may have any.
    """
    found: dict[Var, bool] = {}
    known: dict[str, _Purity] = {}
    for variable in callees_first(find_callees(mod)):
        function = mod.functions[variable]
        if function.attrs.get("Extern"):
            known[variable.name_hint] = _Purity(called=False)
        elif not function.attrs.get("Primitive"):
            walk = _Walk(function, known)
            known[variable.name_hint] = walk.values[function]
            found.update(walk.lets)
    return found


class _Walk:
    """The values below one function, children first.

    Attributes:
        values: What is known of each node.
        lets: Whether the value of each let has no effect.
    """

    def __init__(self, function: Function, functions: Mapping[str, _Purity]) -> None:
        self._functions = functions
        self.values: dict[Expr, _Purity] = {}
        self.lets: dict[Var, bool] = {}
        order = binding_order(function)
        self._bound = {node.var for node in order if isinstance(node, Let)}
        for step in order:
            if isinstance(step, Binding):
                if isinstance(step.node, Let):
                    self._bind(step.node)
            elif step not in self.values:
                self.values[step] = self._judge(step)

    def _bind(self, let: Let) -> None:
        self.values[let.var] = self.values[let.value]
        self.lets[let.var] = self.values[let.value].here

    def _of(self, node: Expr) -> _Purity:
        return self.values.get(node, _PURE)

    def _judge(self, node: Expr) -> _Purity:
        if isinstance(node, Var):
            # A function that names itself is taken to be pure while it is looked at.
            return _PURE if node in self._bound else _Purity(called=_is_first_order(node))
        if isinstance(node, GlobalVar):
            return self._functions.get(node.name_hint, _PURE)
        if isinstance(node, Function):
            body = self._of(node.body)
            return _Purity(called=body.here and body.called)
        if isinstance(node, Call):
            return self._judge_call(node)
        if isinstance(node, Let):
            body = self._of(node.body)
            return _Purity(self._of(node.value).here and body.here, body.called)
        if isinstance(node, (If, Match)):
            return self._judge_choice(node)
        if isinstance(node, Tuple):
            return _Purity(all(self._of(field).here for field in node.fields))
        if isinstance(node, TupleGetItem):
            return _Purity(self._of(node.tuple_value).here, _is_first_order(node))
        if isinstance(node, RefCreate):
            return _Purity(self._of(node.value).here)
        if isinstance(node, (RefRead, RefWrite)):
            return _Purity(False, isinstance(node, RefWrite) or _is_first_order(node))
        return _PURE

    def _judge_call(self, node: Call) -> _Purity:
        if isinstance(node.op, Op):
            callee = _Purity(called=not is_stateful(node))
        elif isinstance(node.op, GlobalVar):
            callee = self._functions.get(node.op.name_hint, _PURE)
        else:
            callee = _PURE if isinstance(node.op, Constructor) else self._of(node.op)
        here = all(self._of(argument).here for argument in node.args)
        # What a polymorphic function gives may be a function that it was given.
        called = callee.called and not _is_polymorphic(node.op)
        return _Purity(here and callee.here and callee.called, _is_first_order(node) or called)

    def _judge_choice(self, node: If | Match) -> _Purity:
        if isinstance(node, If):
            asked, choices = node.cond, [node.true_branch, node.false_branch]
        else:
            clauses: tuple[Clause, ...] = tuple(node.clauses)
            asked, choices = node.data, [clause.rhs for clause in clauses]
        results = [self._of(each) for each in choices]
        return _Purity(
            self._of(asked).here and all(each.here for each in results),
            all(each.called for each in results),
        )


def _is_first_order(node: Expr) -> bool:
    return not isinstance(node.type, FuncType)


def _is_polymorphic(callee: Expr) -> bool:
    return isinstance(callee.type, FuncType) and bool(callee.type.type_params)
