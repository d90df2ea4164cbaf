"""Branches that begin with layers on the same data."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property

from serde.relay.ir import Call, Expr, Function, FusionPattern, If, OpDef, TensorType, pattern_of
from serde.relay.ir.visit import children, post_order
from serde.relay.transform.merge_equal_nodes import exact_key

__all__ = ["Branch", "Branches"]


class Branch(list[Call]):
    """A layer and the elementwise and broadcasting operators after it, one upon another."""

    @cached_property
    def behind(self) -> list[int]:
        """How many axes of length 1 have been put behind the last of the layer, by depth."""
        found = [0]
        for node in self[1:]:
            found.append(found[-1])
            if isinstance(node.op, OpDef) and node.op.name == "expand_dims":
                rank = node.type.rank if isinstance(node.type, TensorType) else 0
                more, begin = node.attrs["num_newaxis"], node.attrs["axis"]
                begin += rank - more + 1 if begin < 0 else 0
                found[-1] += more if rank - begin - more <= found[-1] else 0
        return found


class Branches:
    """The branches of a function, where nothing decides whether they are evaluated.

    Args:
        function: The function.
        op: The operator of the layers.
    """

    def __init__(self, function: Function, op: str) -> None:
        self._op = op
        self._order = post_order(function)
        self._place = {node: index for index, node in enumerate(self._order)}
        always = _unconditional(function)
        self._users: dict[Expr, list[Call]] = {}
        self._layers: dict[Expr, list[Call]] = {}
        for node in self._order:
            if not isinstance(node, Call) or node not in always:
                continue
            if self._is_layer(node):
                self._layers.setdefault(node.args[0], []).append(node)
                self._users.setdefault(node.args[0], []).append(node)
                continue
            for argument in node.args:
                self._users.setdefault(argument, []).append(node)

    def _is_layer(self, node: Call) -> bool:
        return isinstance(node.op, OpDef) and node.op.name == self._op

    def groups(self, key_of: Callable[[Call], Hashable | None]) -> list[list[Branch]]:
        """Return the branches whose layers share data and key, and need none of each other."""
        groups: dict[Hashable, list[Branch]] = {}
        for data, layers in self._layers.items():
            for layer in layers:
                key = key_of(layer)
                if key is not None:
                    groups.setdefault((data, key), []).append(self._branch(layer))
        return [self._apart(group) for group in groups.values()]

    def _branch(self, layer: Call) -> Branch:
        branch = Branch([layer])
        while True:
            users = self._users.get(branch[-1], [])
            if len(users) != 1 or not isinstance(users[0].op, OpDef):
                return branch
            if pattern_of(users[0].op) > FusionPattern.BROADCAST:
                return branch
            branch.append(users[0])

    def _apart(self, group: list[Branch]) -> list[Branch]:
        """Return the branches whose weights need no layer of the group."""
        layers: set[Expr] = {branch[0] for branch in group}
        return [branch for branch in group if not self._needs(branch[0].args[1], layers)]

    def _needs(self, root: Expr, layers: set[Expr]) -> bool:
        """Whether a node depends on one of these; nodes before all of them do not."""
        first = min(self._place[layer] for layer in layers)
        pending, seen = [root], {root}
        while pending:
            node = pending.pop()
            if node in layers:
                return True
            below = [child for child in children(node) if self._place[child] >= first]
            pending.extend(child for child in below if child not in seen)
            seen.update(below)
        return False

    def same_step(self, group: list[Branch], depth: int) -> int | None:
        """Return which operand the branch is of an operator that all have here, or None."""
        users = [branch[depth] for branch in group]
        place = users[0].args.index(group[0][depth - 1])
        kinds = {_kind(user) for user in users}
        if len(kinds) != 1 or len(set(users)) != len(users):
            return None
        layers: set[Expr] = {branch[0] for branch in group}
        for user, branch in zip(users, group, strict=True):
            if user.args[place] is not branch[depth - 1]:
                return None
            others = [each for index, each in enumerate(user.args) if index != place]
            if any(self._needs(each, layers) for each in others):
                return None
        return place


def _kind(user: Call) -> Hashable:
    attrs = tuple((key, exact_key(value)) for key, value in user.attrs.items())
    return (user.op, len(user.args), attrs)


def _unconditional(function: Function) -> set[Expr]:
    """Return the nodes that are evaluated whenever the function is."""
    seen: set[Expr] = set()
    pending: list[Expr] = [function.body]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, If):
            pending.append(node.cond)
        elif not isinstance(node, Function):
            pending.extend(children(node))
    return seen
