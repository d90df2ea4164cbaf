"""Iterative walks over expressions; nothing here recurses over the depth of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_

from serde.relay.ir.adt import Clause, Match, replace_pattern_vars
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
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.registry import OpDef, infer_call

__all__ = [
    "Binding", "add_reached", "binding_order", "bound_vars", "check_constant", "children",
    "free_vars", "has_kind", "kinds", "post_order", "rebuild", "rewrite", "rewrite_function",
    "use_counts",
]  # fmt: skip


def children(node: Expr) -> tuple[Expr, ...]:
    """Return the expressions directly below `node`; see :attr:`Expr.below`."""
    try:
        return node.below
    except AttributeError:
        raise _no_expression(node) from None


def _no_expression(found: object) -> TypeError:
    return TypeError(f"expected an expression, found {found!r}")


def post_order(*roots: Expr) -> list[Expr]:
    """Return every node below and including `roots` once, children first.

    A function keeps what is below it, which never changes.
    """
    if len(roots) != 1 or not isinstance(roots[0], Function):
        return _walk(roots)
    function = roots[0]
    if function.order is None:
        function.order = tuple(_walk(function.below))
    return [*function.order, function]


def kinds(function: Function) -> frozenset[Op | type[Expr]]:
    """Return the operators that `function` calls, and the classes of all else that is below it.

    That of a global function is among them which is only called.
    """
    if function.kinds is None:
        used = (node.op if isinstance(node, Call) else node for node in post_order(function)[:-1])
        function.kinds = frozenset(each if isinstance(each, Op) else type(each) for each in used)
    return function.kinds


def has_kind(function: Function, *wanted: str | type) -> bool:
    """Whether `function` calls an operator of a name or trait, or has a node of a class."""
    names = set(wanted)
    return any(
        each in names
        or (isinstance(each, OpDef) and (each.name in names or not names.isdisjoint(each.traits)))
        for each in kinds(function)
    )


def _walk(roots: Sequence[Expr]) -> list[Expr]:
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[Expr | None] = [astuple(root) for root in reversed(roots)]
    opened: list[Expr] = []
    while stack:
        node = stack.pop()
        if node is None:
            order.append(opened.pop())
        elif node not in seen:
            seen.add(node)
            try:
                below = node.below
            except AttributeError:
                raise _no_expression(node) from None
            if below:
                opened.append(node)
                stack.append(None)
                stack.extend(reversed(below))
            else:
                order.append(node)
    return order


class Binding:
    """The moment at which the variables of a let or a match have their values."""

    __slots__ = ("node",)

    def __init__(self, node: Let | Match) -> None:
        self.node = node


def binding_order(root: Expr) -> list[Expr | Binding]:
    """Return every node below and including `root` once, children first, and what is bound.

    The value of a let or a match comes before the moment that binds it, and that before its
    variables and what its body needs, though the value may be a variable or a node that was met
    before. Only in functions that name themselves does a variable come first.
    """
    order: list[Expr | Binding] = []
    seen: set[Expr] = {root}
    stack: list[tuple[Expr, Iterator[Expr | Binding]]] = [(root, _steps(root))]
    while stack:
        node, pending = stack[-1]
        step = next((s for s in pending if isinstance(s, Binding) or s not in seen), None)
        if step is None:
            order.append(node)
            stack.pop()
        elif isinstance(step, Binding):
            order.append(step)
        else:
            seen.add(step)
            stack.append((step, _steps(step)))
    return order


def _steps(node: Expr) -> Iterator[Expr | Binding]:
    if isinstance(node, Let):
        return iter((node.value, Binding(node), node.var, node.body))
    if isinstance(node, Match):
        return iter((node.data, Binding(node), *node.below[1:]))
    return iter(children(node))


def add_reached(seen: set[Expr], roots: Iterable[Expr], values: Mapping[Expr, Expr]) -> None:
    """Add to `seen` the nodes below `roots`, and below the `values` of those among them."""
    pending = list(roots)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(children(node))
            if node in values:
                pending.append(values[node])


def bound_vars(nodes: Iterable[Expr]) -> set[Var]:
    """Return the variables that functions, lets and matches among `nodes` bind."""
    bound: set[Var] = set()
    for node in nodes:
        if isinstance(node, Function):
            bound.update(node.params)
        elif isinstance(node, Let):
            bound.add(node.var)
        elif isinstance(node, Match):
            for clause in node.clauses:
                bound.update(clause.variables)
    return bound


def free_vars(*roots: Expr) -> list[Var]:
    """Return the variables below `roots` that nothing there binds, in order of appearance."""
    nodes = _walk(roots)  # Of functions inside others, each would keep what all share.
    bound = bound_vars(nodes)
    return [node for node in nodes if isinstance(node, Var) and node not in bound]


def check_constant(expr: Expr) -> bool:
    """Whether an expression is a constant, or a tuple of nothing but such."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Tuple):
            pending.extend(node.fields)
        elif not isinstance(node, Constant):
            return False
    return True


def use_counts(*roots: Expr) -> dict[Expr, int]:
    """Return how often each node below `roots` stands as a child; a root counts once more."""
    counts: dict[Expr, int] = {}
    for node in post_order(*roots):
        counts.setdefault(node, 0)
        for child in children(node):
            counts[child] = counts.get(child, 0) + 1
    for root in roots:
        counts[root] += 1
    return counts


def rebuild(node: Expr, parts: Sequence[Expr]) -> Expr:
    """Return `node` with other children, in the order of :func:`children`.

    The node itself is returned where nothing changes. Types are kept where
    the children's types are the same and inferred again otherwise, and where
    the value of a constant operand may tell more.
    """
    old = children(node)
    same = True
    changed = False
    for before, after in zip(old, parts, strict=True):
        if before is not after:
            changed = True
            same = same and before.type == after.type
    if not changed:
        return node
    new = _replace_children(node, parts)
    if (same and not _reads_values(new)) or (isinstance(new, (If, Match)) and new.type is None):
        new.type = node.type
    elif isinstance(new, Call):
        new.type = infer_call(new)
    return new


def _reads_values(node: Expr) -> bool:
    """Whether the type of a call depends on the values of its constant operands."""
    return isinstance(node, Call) and bool(getattr(node.op, "by_value", ()))


def _replace_children(node: Expr, parts: Sequence[Expr]) -> Expr:
    if isinstance(node, Call):
        if isinstance(node.op, (Op, GlobalVar)):
            return Call(node.op, parts, node.attrs, node.given_type_args, node.span)
        return Call(parts[-1], parts[:-1], node.attrs, node.given_type_args, node.span)
    if isinstance(node, TupleGetItem):
        return TupleGetItem(parts[0], node.index, node.span)
    if isinstance(node, Tuple):
        return Tuple(parts, node.span)
    if isinstance(node, Function):
        params = _as_vars(parts[:-1])
        return node.evolve(params=params, body=parts[-1])
    if isinstance(node, Let):
        return Let(_as_vars(parts[:1])[0], parts[1], parts[2], node.span)
    if isinstance(node, If):
        return If(parts[0], parts[1], parts[2], node.span)
    if isinstance(node, Match):
        return _replace_clauses(node, parts)
    if isinstance(node, RefWrite):
        return RefWrite(parts[0], parts[1], node.span)
    if isinstance(node, RefCreate):
        return RefCreate(parts[0], node.span)
    if isinstance(node, RefRead):
        return RefRead(parts[0], node.span)
    raise TypeError(f"{node!r} has no children to replace")


def _replace_clauses(node: Match, parts: Sequence[Expr]) -> Match:
    clauses = []
    taken = 1
    for clause in node.clauses:
        old = clause.variables
        new = _as_vars(parts[taken : taken + len(old)])
        lhs = replace_pattern_vars(clause.lhs, dict(zip(old, new, strict=True)))
        clauses.append(Clause(lhs, parts[taken + len(old)]))
        taken += len(old) + 1
    return Match(parts[0], clauses, node.complete, node.span)


def _as_vars(parts: Sequence[Expr]) -> list[Var]:
    variables = [part for part in parts if isinstance(part, Var)]
    if len(variables) != len(parts):
        raise TypeError("a parameter or let-bound variable may only be replaced by a variable")
    return variables


def rewrite(
    root: Expr, replace: Callable[[Expr, Expr], Expr], memo: dict[Expr, Expr] | None = None
) -> Expr:
    """Rebuild `root` bottom-up, each shared node once.

    Args:
        root: The expression.
        replace: Called with each node as it was and as it is with its children
            replaced; returns what stands for it.
        memo: What nodes have become; entries given beforehand are kept as they are,
            and several calls with one memo keep sharing.

    Returns:
        What stands for `root`; `root` itself if nothing changed.
    """
    root = astuple(root)
    if memo is None:
        return _rewrite_in_order(root, replace)
    done = memo
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        try:
            below = node.below
        except AttributeError:
            raise _no_expression(node) from None
        waiting = [child for child in below if child not in done]
        if waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        parts = [done[child] for child in below]
        same = all(map(is_, parts, below))
        done[node] = replace(node, node if same else rebuild(node, parts))
    return done[root]


def _rewrite_in_order(root: Expr, replace: Callable[[Expr, Expr], Expr]) -> Expr:
    changed: dict[Expr, Expr] = {}
    for node in post_order(root):
        new = node
        if changed and not changed.keys().isdisjoint(node.below):
            new = rebuild(node, [changed.get(child, child) for child in node.below])
        found = replace(node, new)
        if found is not node:
            changed[node] = found
    return changed.get(root, root)


def rewrite_function(
    function: Function, replace: Callable[[Expr, Expr], Expr], memo: dict[Expr, Expr] | None = None
) -> Function:
    """Return a function rebuilt by :func:`rewrite`, or as it was where it became no function."""
    result = rewrite(function, replace, memo)
    return result if isinstance(result, Function) else function
