"""Raising of chains of calls that mean something whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any as AnyValue, ClassVar

import numpy as np

from serde.core.records import dataclass, field
from serde.relay.ir import OpDef, accepts, children, has_trait, post_order, rewrite, use_counts
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.traits import Commutative
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.merge_equal_nodes import exact_key

__all__ = [
    "Compose", "Match", "Pattern", "replace_nodes", "same_calls",
]  # fmt: skip


@dataclass(frozen=True)
class Match:
    """A place where a template fits.

    Attributes:
        root: The call that yields the result.
        bound: What the template's variables stand for, by name.
        nodes: What each call and constant of the template stands for.
    """

    root: Call
    bound: Mapping[str, Expr]
    nodes: Mapping[Expr, Expr]


@dataclass(frozen=True)
class Pattern:
    """A chain to look for, and what to put in its place.

    Attributes:
        name: Name for people.
        template: Calls match calls of the same operator, operands of commutative operators in
            either order; a variable matches anything, twice the same; a constant an equal one.
        build: Gets the match and returns the replacement, which may refer to the nodes of the
            match, or None where the attributes or types do not suit.
        captures: Constants of the template that match any scalar constant.
    """

    name: str
    template: Call
    build: Callable[[Match], Expr | None]
    captures: frozenset[Expr] = field(default_factory=frozenset)

    @cached_property
    def called(self) -> frozenset[Expr]:
        """What the operands of the template call: less than that no match has."""
        return frozenset(_called(self.template))

    def match(self, root: Call) -> Match | None:
        """Return how the template fits at `root`, or None."""
        for nodes in _match([(self.template, root)], {}, self.captures):
            bound = {key.name_hint: node for key, node in nodes.items() if isinstance(key, Var)}
            return Match(root, bound, nodes)
        return None


@dataclass(frozen=True)
class Compose(FunctionPass):
    """Replace what matches a pattern, where nothing inside is used from outside.

    Larger patterns go before smaller ones, and matches nearer the result before those below.

    Args:
        patterns: What to look for, such as the decompositions of extension operators that
            :func:`extension_patterns` has.
    """

    name: ClassVar[str] = "Compose"

    patterns: tuple[Pattern, ...]

    def transform(self, function: Function) -> Function:
        """Find matches from the result downwards, then replace them."""
        if not self.patterns:
            return function
        by_root: dict[str, list[Pattern]] = {}
        for pattern in sorted(self.patterns, key=lambda p: -len(post_order(p.template))):
            if isinstance(pattern.template.op, OpDef):
                by_root.setdefault(pattern.template.op.name, []).append(pattern)
        uses = use_counts(function)
        taken: set[Expr] = set()
        replacements: dict[Expr, Expr] = {}
        for node in reversed(post_order(function)):
            if node in taken or not isinstance(node, Call) or not isinstance(node.op, OpDef):
                continue
            given = _called(node)
            for pattern in by_root.get(node.op.name, ()):
                if not pattern.called <= given:
                    continue
                found = _replacement(pattern, node, uses, taken)
                if found is not None:
                    replacements[node] = found[0]
                    taken.update(found[1])
                    break
        return replace_nodes(function, replacements) if replacements else function


def _called(node: Call) -> set[Expr]:
    return {argument.op for argument in node.args if isinstance(argument, Call)}


def _replacement(
    pattern: Pattern, node: Call, uses: Mapping[Expr, int], taken: set[Expr]
) -> tuple[Expr, set[Expr]] | None:
    match = pattern.match(node)
    if match is None:
        return None
    inner = {n for key, n in match.nodes.items() if not isinstance(key, (Var, Constant))}
    counts: dict[Expr, int] = {}
    for each in inner:
        for child in children(each):
            counts[child] = counts.get(child, 0) + 1
    single = all(uses[each] == counts.get(each, 0) for each in inner if each is not node)
    if not single or inner & taken:
        return None
    result = pattern.build(match)
    if result is None or result.type is None or node.type is None:
        return None
    return (result, inner) if accepts(node.type, result.type) else None


def replace_nodes(function: Function, replacements: Mapping[Expr, Expr]) -> Function:
    """Return `function` with nodes replaced.

    Replacements refer to nodes as they were, and are rebuilt in turn.
    """
    done: dict[Expr, Expr] = {}
    stack: list[Expr] = [function]
    while stack:
        node = stack[-1]
        target = replacements.get(node)
        below = (target,) if target is not None else children(node)
        waiting = [child for child in below if child not in done]
        if node not in done and waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if node in done:
            continue
        if target is not None:
            done[node] = done[target]
        else:
            memo = {child: done[child] for child in below}
            done[node] = rewrite(node, lambda _node, new: new, memo)
    result = done[function]
    return result if isinstance(result, Function) else function


_Pair = tuple[Expr, Expr]


def _match(
    pairs: list[_Pair], nodes: dict[Expr, Expr], captures: frozenset[Expr]
) -> Iterator[dict[Expr, Expr]]:
    """Yield every way to fit templates to nodes; recursion is as deep as the template is large."""
    if not pairs:
        yield nodes
        return
    (template, node), rest = pairs[0], pairs[1:]
    if template in nodes:
        if nodes[template] is node:
            yield from _match(rest, nodes, captures)
        return
    if not _fits(template, node, captures):
        return
    known = {**nodes, template: node}
    below, found = children(template), children(node)
    if isinstance(template, (Var, Constant)):
        below, found = (), ()
    if len(below) != len(found):
        return
    orders = [found]
    if has_trait(template, Commutative) and found[0] is not found[1]:
        orders.append(tuple(reversed(found)))
    for order in orders:
        yield from _match([*zip(below, order, strict=True), *rest], known, captures)


def _fits(template: Expr, node: Expr, captures: frozenset[Expr]) -> bool:
    if isinstance(template, Var):
        return True
    if isinstance(template, Constant):
        if not isinstance(node, Constant):
            return False
        if template in captures:
            return node.data.size == 1
        value = template.data.astype(node.data.dtype)
        return value.size == node.data.size and np.array_equal(
            value.reshape(-1), node.data.reshape(-1), equal_nan=value.dtype.kind == "f"
        )
    if isinstance(template, Call):
        return isinstance(node, Call) and template.op is node.op
    if isinstance(template, TupleGetItem):
        return isinstance(node, TupleGetItem) and template.index == node.index
    return type(template) is type(node)


def same_calls(left: Expr, right: Expr) -> bool:
    """Whether two small graphs over the same operands are equal, commuted operands included."""
    if left is right:
        return True
    if isinstance(left, Constant) and isinstance(right, Constant):
        return left.type == right.type and left.data.tobytes() == right.data.tobytes()
    if isinstance(left, Call) and isinstance(right, Call):
        if left.op is not right.op or _attr_keys(left) != _attr_keys(right):
            return False
        if all(map(same_calls, left.args, right.args)):
            return True
        return has_trait(left, Commutative) and all(
            map(same_calls, left.args, reversed(right.args))
        )
    if isinstance(left, TupleGetItem) and isinstance(right, TupleGetItem):
        return left.index == right.index and same_calls(left.tuple_value, right.tuple_value)
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        same_length = len(left.fields) == len(right.fields)
        return same_length and all(map(same_calls, left.fields, right.fields))
    return False


def _attr_keys(node: Call) -> list[AnyValue]:
    return [exact_key(value) for value in node.attrs.values()]
