"""Removal of what does not contribute to the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from serde.core.records import dataclass
from serde.relay.ir import Constructor, IRModule, OpDef, RefWrite, all_nodes, children, rewrite
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.types import RefType, TensorType, walk_type
from serde.relay.transform.base import FunctionPass, Pass
from serde.relay.transform.dead_state import without_dead_states

__all__ = ["RemoveDeadCode", "RemoveUnusedFunctions", "unused_params"]


class RemoveDeadCode(FunctionPass):
    """Remove lets whose variable is unused, unused tuple fields and unreachable functions.

    Of loops, states, stacks and captures that nothing depends on go.

    Parameters are kept, of ``main`` and of all others.
    """

    name: ClassVar[str] = "RemoveDeadCode"
    changes: ClassVar[Sequence[str | type]] = (Let, Tuple, "serde.loop", "serde.scan")

    def transform(self, function: Function) -> Function:
        """Remove dead bindings and the tuples that only one field is taken from."""
        live = _live(function)

        def replace(node: Expr, new: Expr) -> Expr:
            if isinstance(node, Let) and isinstance(new, Let) and node.var not in live:
                return new.body
            if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
                return new.tuple_value.fields[new.index]
            return new

        result = rewrite(function, replace)
        return without_dead_states(result if isinstance(result, Function) else function)

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Clean every function, then drop those that ``main`` does not reach."""
        mod, changed = super().run(mod)
        if "main" not in mod:
            return mod, changed
        kept = _reachable(mod, ("main",))
        if len(kept) == len(mod.functions):
            return mod, changed
        return mod.with_functions({v: f for v, f in mod.functions.items() if v in kept}), True


def _live(root: Expr) -> set[Expr]:
    """Return what the result of `root` depends on; a let's value only through its variable."""
    values: dict[Var, list[Expr]] = {}
    live: set[Expr] = set()
    pending = [root]
    writers = _Writers()
    while pending or (pending := writers.among(values)):
        node = pending.pop()
        if node in live:
            continue
        live.add(node)
        if isinstance(node, Var):
            pending.extend(values.pop(node, ()))
        elif isinstance(node, Let):
            writers.functions[node.var] = node.value
            pending.append(node.body)
            if node.var in live:
                pending.append(node.value)
            else:
                values.setdefault(node.var, []).append(node.value)
        elif isinstance(node, TupleGetItem) and isinstance(node.tuple_value, Tuple):
            pending.append(node.tuple_value.fields[node.index])
        elif isinstance(node, Function):
            pending.append(node.body)
        else:
            pending.extend(children(node))
    return live


class _Writers:
    """Finds values that write references, which is why they must be computed.

    Attributes:
        functions: What lets bind, by their variables.
    """

    def __init__(self) -> None:
        self.functions: dict[Var, Expr] = {}
        self._seen: set[Expr] = set()

    def among(self, values: Mapping[Var, Sequence[Expr]]) -> list[Expr]:
        """Return the variables of values that may write and were not looked at before."""
        return [variable for variable, found in values.items() if any(map(self._writes, found))]

    def _writes(self, value: Expr) -> bool:
        pending = [value]
        here: set[Expr] = set()
        while pending:
            node = pending.pop()
            if node in self._seen or node in here:
                continue
            if isinstance(node, RefWrite) or self._hands_over(node):
                return True
            here.add(node)
            if isinstance(node, Var) and not isinstance(node.type, TensorType):
                pending.append(self.functions.get(node, node))
            pending.extend(children(node))
        self._seen |= here
        return False

    def _hands_over(self, node: Expr) -> bool:
        """Whether a node calls a function with a reference, or one of which nothing is known."""
        if not isinstance(node, Call) or isinstance(node.op, (OpDef, Constructor)):
            return False
        unknown = isinstance(node.op, Var) and node.op not in self.functions
        given = (each for argument in node.args for each in walk_type(argument.type))
        return unknown or any(isinstance(each, RefType) for each in given)


@dataclass(frozen=True)
class RemoveUnusedFunctions(Pass):
    """Drop the functions of a module that none of the entries reaches.

    Args:
        entry_functions: Names of the functions that are called from outside; each is kept.

    Raises:
        RelayError: The module has no function of that name.
    """

    name: ClassVar[str] = "RemoveUnusedFunctions"
    opt_level: ClassVar[int] = 1

    entry_functions: tuple[str, ...]

    def __init__(self, entry_functions: Iterable[str] | None = None) -> None:
        given = ("main",) if entry_functions is None else tuple(entry_functions)
        object.__setattr__(self, "entry_functions", given)

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Follow the calls from the entries."""
        kept = _reachable(mod, self.entry_functions)
        if len(kept) == len(mod.functions):
            return mod, False
        return mod.with_functions({v: f for v, f in mod.functions.items() if v in kept}), True


def _reachable(mod: IRModule, entries: Iterable[str]) -> set[GlobalVar]:
    names = {variable.name_hint: variable for variable in mod.functions}
    seen: set[GlobalVar] = set()
    pending = [mod.get_global_var(entry) for entry in entries]
    while pending:
        variable = pending.pop()
        if variable in seen:
            continue
        seen.add(variable)
        for node in all_nodes(mod.functions[variable]):
            used = node.op if isinstance(node, Call) else node
            if isinstance(used, GlobalVar) and used.name_hint in names:
                pending.append(names[used.name_hint])
    return seen


def unused_params(function: Function) -> list[Var]:
    """Return the parameters that the result of `function` does not depend on."""
    live = _live(function)
    return [param for param in function.params if param not in live]
