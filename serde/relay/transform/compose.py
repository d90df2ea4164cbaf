"""Raising of chains of calls that mean something whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any as AnyValue
from typing import ClassVar

import numpy as np

from serde.errors import RelayError
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef, Sample, TensorSpec, all_ops, has_trait, infer_call
from serde.relay.ir.traits import Commutative
from serde.relay.ir.types import TensorType, accepts
from serde.relay.ir.visit import children, post_order, rewrite, use_counts
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.cse import exact_key
from serde.relay.transform.legalize import Legalize

__all__ = [
    "Compose", "Match", "Pattern", "extension_patterns", "replace_nodes", "same_calls",
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
        patterns: What to look for; the decompositions of all extension operators are
            :func:`extension_patterns`.
    """

    name: ClassVar[str] = "Compose"

    patterns: tuple[Pattern, ...]

    def transform(self, function: Function) -> Function:
        """Find matches from the result downwards, then replace them."""
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
            for pattern in by_root.get(node.op.name, ()):
                found = _replacement(pattern, node, uses, taken)
                if found is not None:
                    replacements[node] = found[0]
                    taken.update(found[1])
                    break
        return replace_nodes(function, replacements) if replacements else function


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
            value.reshape(-1), node.data.reshape(-1)
        )
    if isinstance(template, Call):
        return isinstance(node, Call) and template.op is node.op
    if isinstance(template, TupleGetItem):
        return isinstance(node, TupleGetItem) and template.index == node.index
    return type(template) is type(node)


def extension_patterns() -> tuple[Pattern, ...]:
    """Return a pattern for each extension operator whose decomposition is a graph of calls.

    The samples of an operator say which forms it has. Scalar attributes are read from the
    constants and attributes that they become; a match counts only if decomposing what it
    would be raised to gives the very nodes that were found.
    """
    patterns: list[Pattern] = []
    for definition in all_ops().values():
        if definition.decompose is None:
            continue
        for each in definition.samples:
            pattern = _extension_pattern(definition, each)
            if pattern is not None:
                patterns.append(pattern)
    return tuple(patterns)


_PLAIN = Legalize(frozenset())


def _plain(node: Call) -> Expr:
    """Return the full decomposition of a call."""
    params = [argument for argument in node.args if isinstance(argument, Var)]
    return _PLAIN.transform(Function(params, node)).body


def _extension_pattern(definition: OpDef, each: Sample) -> Pattern | None:
    operands = _variables(definition, each)
    if operands is None:
        return None
    attrs = dict(definition.bind(each.attrs))
    markers = {
        name: 0.3710937 + 0.0117187 * index
        for index, (name, value) in enumerate(attrs.items())
        if isinstance(value, float)
    }
    for values in ({**attrs, **markers}, attrs):
        node = Call(definition, operands, definition.bind(values))
        try:
            node.type = infer_call(node)
            template = _plain(node)
        except RelayError:
            continue
        if values == attrs:
            markers = {}
        break
    else:
        return None
    graph = post_order(template)
    allowed = (Call, Constant, Var, Tuple, TupleGetItem)
    if not isinstance(template, Call) or not all(isinstance(n, allowed) for n in graph):
        return None
    if not {operand for operand in operands if isinstance(operand, Var)} <= set(graph):
        return None
    slots, captures = _slots(graph, markers)

    def build(match: Match) -> Expr | None:
        return _raised(definition, operands, attrs, slots, match)

    return Pattern(definition.name, template, build, captures)


def _variables(definition: OpDef, each: Sample) -> list[Expr] | None:
    """Return variables for the operands of a sample; None where one is a tuple."""
    given = (*each.operands, *[None] * (len(definition.operands) - len(each.operands)))
    result: list[Expr] = []
    for operand, value in zip(definition.operands, given, strict=True):
        if value is None:
            result.append(Tuple(()))
        elif isinstance(value, (TensorSpec, np.ndarray)):
            result.append(Var(operand.name, TensorType(value.shape, value.dtype)))
        else:
            return None
    return result


_Slot = tuple[str, Expr, str | None, int]
"""An attribute, the node of the template it shows in, the attribute it became there, its sign."""


def _slots(
    graph: Sequence[Expr], markers: Mapping[str, float]
) -> tuple[list[_Slot], frozenset[Expr]]:
    slots: list[_Slot] = []
    captures: set[Expr] = set()
    signed = [(name, sign * value, sign) for name, value in markers.items() for sign in (1, -1)]
    for node in graph:
        for name, marker, sign in signed:
            if isinstance(node, Constant) and node.data.size == 1 and node.data.dtype.kind == "f":
                if float(node.data.reshape(())) == float(np.array(marker, node.data.dtype)):
                    slots.append((name, node, None, sign))
                    captures.add(node)
            elif isinstance(node, Call):
                slots += [(name, node, key, sign) for key, v in node.attrs.items() if v == marker]
    return slots, frozenset(captures)


def _raised(
    definition: OpDef,
    operands: Sequence[Expr],
    attrs: Mapping[str, AnyValue],
    slots: Sequence[_Slot],
    match: Match,
) -> Expr | None:
    values = dict(attrs)
    for name, template, key, sign in slots:
        node = match.nodes[template]
        if key is None and isinstance(node, Constant):
            values[name] = _exact(definition.attributes[name].default, node, sign)
        elif key is not None and isinstance(node, Call):
            values[name] = sign * node.attrs[key]
    args = [match.nodes.get(operand, operand) for operand in operands]
    try:
        result = Call(definition, args, definition.bind(values), match.root.span)
        result.type = infer_call(result)
        again = _plain_over(result)
    except RelayError:
        return None
    return result if same_calls(again, match.root) else None


def _exact(default: AnyValue, node: Constant, sign: int) -> float:
    """Return the attribute that a constant was rounded from.

    That is the default if it rounds to the constant, else the shortest decimal that does:
    0.2, not 0.200000003.
    """
    value = node.data.reshape(())
    if isinstance(default, float) and np.array(sign * default, value.dtype) == value:
        return default
    return sign * float(str(value))


def _plain_over(node: Call) -> Expr:
    """Return the full decomposition of a call over operands that stay as they are."""
    fresh: dict[Expr, Expr] = {}
    for argument in node.args:
        if not isinstance(argument, Tuple):
            fresh[argument] = Var("operand", argument.type)
    call = Call(node.op, [fresh.get(arg, arg) for arg in node.args], Attrs(node.attrs), node.span)
    call.type = node.type
    back = {variable: argument for argument, variable in fresh.items()}
    return rewrite(_plain(call), lambda _node, new: new, back)


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
