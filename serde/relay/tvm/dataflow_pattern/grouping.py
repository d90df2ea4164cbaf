"""Which nodes of an expression one match of a pattern covers, so that matches do not overlap."""

from __future__ import annotations

from collections.abc import Iterator

from serde.core.records import dataclass
from serde.relay.ir import Call, Constant, Expr, Function, If, Let, Op, Tuple, TupleGetItem, Var
from serde.relay.tvm.dataflow_pattern.graph import (
    ExprGraph,
    inputs_of,
    rebuild_with,
    topological_order,
)
from serde.relay.tvm.dataflow_pattern.matching import Matcher, operator_name
from serde.relay.tvm.dataflow_pattern.patterns import (
    AltPattern,
    AndPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    ShapePattern,
    TuplePattern,
    TypePattern,
)

__all__ = ["Group", "find_groups"]

_CONDITIONS = (AttrPattern, DataTypePattern, ShapePattern, TypePattern)


@dataclass(frozen=True)
class Group:
    """The nodes that one match covers.

    Attributes:
        root: The node that matches.
        matches: The expressions that each pattern stands for.
        function: The nodes as a function of their inputs.
        name: What they are, in order.
        args: The inputs.
    """

    root: Expr
    matches: dict[DFPattern, list[Expr]]
    function: Function
    name: str
    args: tuple[Expr, ...]


def find_groups(pattern: DFPattern, expr: Expr) -> dict[Expr, Group]:
    """Return the matches of a pattern by their roots.

    Those nearer the result are found first; a match is left out where it shares nodes with one
    found before, or where a node inside it is used from outside in a way that does not come
    back to its root. Functions that were made from a pattern are not looked into.
    """
    return _Grouper(pattern, ExprGraph(expr)).find()


class _Grouper:
    def __init__(self, pattern: DFPattern, graph: ExprGraph) -> None:
        self._pattern = pattern
        self._patterns = _pattern_order(pattern)
        self._observers = _observers(self._patterns)
        self._graph = graph
        self._matcher = Matcher(graph)
        self._taken: set[Expr] = set()
        self._count = 0

    def find(self) -> dict[Expr, Group]:
        groups: dict[Expr, Group] = {}
        closed: set[Expr] = set()
        names = _root_operators(self._pattern, [])
        for node in reversed(self._graph.order):
            if node in self._taken:
                continue
            partitioned = isinstance(node, Function) and "PartitionedFromPattern" in node.attrs
            if partitioned and node not in closed:
                closed.update(topological_order(node))
            if node in closed or not _may_match(node, names):
                continue
            if self._matcher.match(self._pattern, node):
                group = self._cover(node)
                if group is not None:
                    groups[node] = group
        return groups

    def _cover(self, root: Expr) -> Group | None:
        matches = {key: list(found) for key, found in self._matcher.matches.items()}
        inputs = self._find_inputs(matches)
        self._count += 1
        if root in inputs:
            # A leaf alone: its function is the identity and covers nothing.
            body: Expr | None = inputs[root]
            copies: dict[Expr, Expr] = {}
        else:
            body, copies = None, self._extract(root, inputs)
            if root not in copies:
                return None
        inside = [node for node in copies if not isinstance(node, (Op, Function, Constant))]
        for node in inside:
            if node is not root and self._escapes(node, copies, root):
                return None
        self._taken.update(copies)
        function = Function(list(inputs.values()), copies[root] if body is None else body)
        return Group(root, matches, function, _name(copies), tuple(inputs))

    def _escapes(self, node: Expr, covered: dict[Expr, Expr], root: Expr) -> bool:
        """Whether a use of a node outside a group does not come back to its root."""
        return any(
            user not in covered and not self._graph.dominates(root, user)
            for user in self._graph.outputs[node]
        )

    def _find_inputs(self, matches: dict[DFPattern, list[Expr]]) -> dict[Expr, Var]:
        """Return a variable for each input of a match, in the order of the pattern."""
        inner = self._find_inner(matches)
        inputs: dict[Expr, Var] = {}
        for pattern in self._patterns:
            for found in matches.get(pattern, ()):
                for node in self._leaves(pattern, found):
                    skip = node in inner or isinstance(node, (Op, Function)) or node in inputs
                    if not skip and not _embeds(pattern, node):
                        inputs[node] = Var(f"FunctionVar_{self._count}_{len(inputs)}")
                        inputs[node].type = node.type
        return inputs

    def _leaves(self, pattern: DFPattern, found: Expr) -> tuple[Expr, ...]:
        """Return the expressions of a match that nothing below its pattern tells more of."""
        if isinstance(pattern, TuplePattern) and pattern.fields is None:
            return found.fields if isinstance(found, Tuple) else ()
        if isinstance(pattern, CallPattern) and pattern.args is None:
            return found.args if isinstance(found, Call) else ()
        if pattern.inputs or pattern in self._observers or isinstance(pattern, TuplePattern):
            return ()
        return (found,)

    def _find_inner(self, matches: dict[DFPattern, list[Expr]]) -> set[Expr]:
        """Return the nodes on paths of dominators and in functions, which are no inputs."""
        inner: set[Expr] = set()
        for pattern in self._patterns:
            if isinstance(pattern, DominatorPattern):
                inner.update(matches.get(pattern.parent, ()))
                inner.update(matches.get(pattern.path, ()))
            elif isinstance(pattern, FunctionPattern):
                for function in matches.get(pattern, ()):
                    if isinstance(function, Function):
                        inner.update(topological_order(function.body))
        return inner

    def _extract(self, root: Expr, inputs: dict[Expr, Var]) -> dict[Expr, Expr]:
        """Return what the nodes of a match become as the body of a function, inputs first.

        Nothing is returned for the root where a node belongs to another group.
        """
        copies: dict[Expr, Expr] = {}
        stack: list[tuple[Expr, Iterator[Expr]]] = [(root, iter(_parts(root)))]
        while stack:
            node, pending = stack[-1]
            if node in self._taken and not isinstance(node, (Op, Function, Constant)):
                return {}
            for child in pending:
                if child not in inputs and child not in copies:
                    stack.append((child, iter(_parts(child))))
                    break
            else:
                stack.pop()
                if node not in copies:
                    below = {p: inputs[p] if p in inputs else copies[p] for p in _parts(node)}
                    copies[node] = rebuild_with(node, below)
        return copies


def _parts(node: Expr) -> tuple[Expr, ...]:
    """Return the inputs of a node in the order in which TVM rebuilds them."""
    return (node.var, node.value, node.body) if isinstance(node, Let) else inputs_of(node)


def _name(covered: dict[Expr, Expr]) -> str:
    """Return TVM's name of what a group covers, inputs first; lets in a row count once."""
    bodies = {node.body for node in covered if isinstance(node, Let)}
    parts = []
    for node in covered:
        if isinstance(node, Call):
            parts.append(f"{node.op.name}_" if isinstance(node.op, Op) else "Call_")
        elif isinstance(node, Tuple):
            parts.append("Tuple_")
        elif isinstance(node, TupleGetItem):
            parts.append(f"TupleGetItem{node.index}_")
        elif isinstance(node, Function):
            parts.append("Function")
        elif isinstance(node, If):
            parts.append("If_")
        elif isinstance(node, Let) and node not in bodies:
            parts.append("Let_")
    return "".join(parts)


def _embeds(pattern: DFPattern, node: Expr) -> bool:
    """Whether a constant stays in the function, since the pattern asked for one."""
    if not isinstance(node, Constant):
        return False
    if isinstance(pattern, ExprPattern):
        return isinstance(pattern.expr, Constant)
    return isinstance(pattern, ConstantPattern)


def _pattern_order(root: DFPattern) -> list[DFPattern]:
    """Return every pattern below and including `root` once, those below first."""
    order: list[DFPattern] = []
    seen: set[DFPattern] = {root}
    stack: list[tuple[DFPattern, Iterator[DFPattern]]] = [(root, iter(root.inputs))]
    while stack:
        pattern, pending = stack[-1]
        for child in pending:
            if child not in seen:
                seen.add(child)
                stack.append((child, iter(child.inputs)))
                break
        else:
            order.append(pattern)
            stack.pop()
    return order


def _observers(patterns: list[DFPattern]) -> set[DFPattern]:
    """Return leaves that a conjunction ties to a pattern that says what stands below it."""
    found: set[DFPattern] = set()
    for pattern in patterns:
        if isinstance(pattern, AndPattern):
            leaves: set[DFPattern] = set()
            structured = False
            pending: list[DFPattern] = [pattern]
            while pending:
                part = pending.pop()
                if isinstance(part, (AndPattern, *_CONDITIONS)):
                    pending.extend(part.inputs)
                elif part.inputs or isinstance(part, TuplePattern):
                    structured = True
                else:
                    leaves.add(part)
            if structured:
                found |= leaves
    return found


def _root_operators(pattern: DFPattern, above: list[DFPattern]) -> frozenset[str] | None:
    """Return the operators whose calls alone can match, or None where others may."""
    if len(above) > 8 or pattern in above:
        return None
    name = operator_name(pattern)
    if name in ("multiply", "divide"):
        return frozenset(("multiply", "divide"))
    if name is not None:
        return frozenset((name,))
    inner = [*above, pattern]
    if isinstance(pattern, AltPattern):
        left, right = (_root_operators(part, inner) for part in pattern.inputs)
        return None if left is None or right is None else left | right
    if isinstance(pattern, _CONDITIONS):
        return _root_operators(pattern.pattern, inner)
    if isinstance(pattern, DominatorPattern):
        return _root_operators(pattern.child, inner)
    return None


def _may_match(node: Expr, names: frozenset[str] | None) -> bool:
    if names is None:
        return True
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in names
