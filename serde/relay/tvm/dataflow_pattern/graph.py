"""An expression as a graph: who uses what, and through which nodes everything goes.

Here, as in TVM, what a call calls is a node like its arguments, operators included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from serde.relay.ir import Call, Expr, GlobalVar, Let, Op, children, rebuild, set_type

__all__ = ["AncestorTree", "ExprGraph", "inputs_of", "rebuild_with", "topological_order"]


def inputs_of(node: Expr) -> tuple[Expr, ...]:
    """Return the nodes directly below `node`, in TVM's order: what a call calls comes first."""
    if isinstance(node, Call):
        return (node.op, *node.args)
    if isinstance(node, Let):
        return (node.value, node.var, node.body)
    return children(node)


def rebuild_with(node: Expr, replacements: Mapping[Expr, Expr]) -> Expr:
    """Return `node` with each of its inputs as `replacements` has it; itself if all are as before.

    Types are kept or inferred again as :func:`serde.relay.ir.visit.rebuild` does.
    """
    if isinstance(node, Call):
        op = replacements[node.op]
        if op is not node.op and isinstance(node.op, (Op, GlobalVar)):
            return set_type(
                Call(op, [replacements[arg] for arg in node.args], node.attrs, span=node.span)
            )
    return rebuild(node, [replacements[child] for child in children(node)])


def topological_order(root: Expr) -> list[Expr]:
    """Return every node below and including `root` once, inputs first."""
    order: list[Expr] = []
    seen: set[Expr] = {root}
    stack: list[tuple[Expr, Iterator[Expr]]] = [(root, iter(inputs_of(root)))]
    while stack:
        node, pending = stack[-1]
        for child in pending:
            if child not in seen:
                seen.add(child)
                stack.append((child, iter(inputs_of(child))))
                break
        else:
            order.append(node)
            stack.pop()
    return order


class ExprGraph:
    """The nodes of an expression; what is asked for is computed then.

    Args:
        root: The expression.
    """

    def __init__(self, root: Expr) -> None:
        self.root = root

    @cached_property
    def order(self) -> list[Expr]:
        """Every node once, inputs first."""
        return topological_order(self.root)

    @cached_property
    def outputs(self) -> dict[Expr, list[Expr]]:
        """The nodes that use each node."""
        found: dict[Expr, list[Expr]] = {node: [] for node in self.order}
        for node in self.order:
            for child in inputs_of(node):
                found[child].append(node)
        return found

    @cached_property
    def _tree(self) -> _DominatorTree:
        place = {node: index for index, node in enumerate(self.order)}
        return _DominatorTree([[place[user] for user in self.outputs[node]] for node in self.order])

    @cached_property
    def _places(self) -> dict[Expr, int]:
        return {node: index for index, node in enumerate(self.order)}

    def dominates(self, node: Expr, other: Expr) -> bool:
        """Whether every way from `other` to the root goes through `node`, another than it."""
        place, below = self._places.get(node), self._places.get(other)
        if place is None or below is None or place == below:
            return False
        return self._tree.is_above(place, below)

    def dominated(self, node: Expr) -> Iterator[Expr]:
        """Yield the nodes that `node` dominates, those near it first."""
        return (self.order[place] for place in self._tree.below(self._places[node]))


class AncestorTree:
    """A tree whose root is its last place; common ancestors are found in logarithmic time.

    A place knows its parent and an ancestor further up.

    Args:
        size: The number of places.
    """

    def __init__(self, size: int) -> None:
        self._parent = [size - 1] * size
        self._jump = [size - 1] * size
        self._depth = [0] * size

    def hang(self, place: int, above: int) -> None:
        """Put a place right below another one, which is in the tree."""
        depth, jump = self._depth, self._jump
        further = jump[above]
        regular = depth[above] - depth[further] == depth[further] - depth[jump[further]]
        self._parent[place] = above
        self._jump[place] = jump[further] if regular else above
        depth[place] = depth[above] + 1

    def _ancestor(self, place: int, depth: int) -> int:
        while self._depth[place] > depth:
            further = self._jump[place]
            place = further if self._depth[further] >= depth else self._parent[place]
        return place

    def meet(self, one: int, other: int) -> int:
        """Return the nearest place that is both or above both."""
        depth = min(self._depth[one], self._depth[other])
        one, other = self._ancestor(one, depth), self._ancestor(other, depth)
        while one != other:
            further, others = self._jump[one], self._jump[other]
            if further != others:
                one, other = further, others
            else:
                one, other = self._parent[one], self._parent[other]
        return one

    def is_above(self, place: int, other: int) -> bool:
        """Whether `place` is a proper ancestor of `other`."""
        depth = self._depth[place]
        return depth < self._depth[other] and self._ancestor(other, depth) == place

    @cached_property
    def _children(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self._parent]
        for index in range(len(self._parent) - 2, -1, -1):
            found[self._parent[index]].append(index)
        return found

    def below(self, place: int) -> Iterator[int]:
        """Yield the proper descendants of a place."""
        stack = [place]
        while stack:
            found = self._children[stack.pop()]
            yield from found
            stack.extend(found)


class _DominatorTree(AncestorTree):
    """For each place, the nearest one that all ways from it to the last place go through.

    Args:
        outputs: For each place the later ones that use it; the last has none.
    """

    def __init__(self, outputs: Sequence[Sequence[int]]) -> None:
        super().__init__(len(outputs))
        for index in range(len(outputs) - 2, -1, -1):
            users = outputs[index]
            above = users[0]
            for user in users:
                if user != above:
                    above = self.meet(above, user)
            self.hang(index, above)
