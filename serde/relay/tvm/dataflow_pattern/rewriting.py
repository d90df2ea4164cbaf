"""Rewriting of what matches a pattern, and moving it into functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any as AnyValue, Final

from serde.core.garbage_collection import pause_garbage_collection
from serde.errors import RelayError
from serde.relay.ir import IRModule, free_vars, infer_module, set_type
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Op, TupleWrapper, astuple
from serde.relay.tvm.dataflow_pattern.graph import rebuild_with, topological_order
from serde.relay.tvm.dataflow_pattern.grouping import Group, find_groups
from serde.relay.tvm.dataflow_pattern.patterns import DFPattern, FunctionPattern

__all__ = ["DFPatternCallback", "NodeMap", "partition", "rewrite"]

NodeMap = Mapping[DFPattern, list[Expr]]
"""The expressions that each pattern of a match stands for."""

_MAX_ROUNDS: Final = 100


class DFPatternCallback:
    """What to put in place of what matches a pattern; derive from it and set ``pattern``.

    Args:
        require_type: Whether types are inferred before each round.
        rewrite_once: Whether to stop after the first round that changes something.
    """

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.pattern: DFPattern | None = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: Expr | TupleWrapper) -> Expr:
        """Return `expr` with all matches replaced; see :func:`rewrite`."""
        return rewrite(self, expr)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr | TupleWrapper:
        """Return what stands for a match.

        Args:
            pre: The match as it was.
            post: The match with what lies below it rewritten.
            node_map: The expressions that each pattern stands for, rewritten.
        """
        raise NotImplementedError(f"{type(self).__name__} says nothing of what to put in place")


@pause_garbage_collection()
def rewrite(
    callbacks: DFPatternCallback | Iterable[DFPatternCallback],
    expr: Expr | TupleWrapper,
    mod: IRModule | None = None,
) -> Expr:
    """Replace what matches, one callback after another, until nothing changes any more.

    Args:
        callbacks: The callbacks, in order.
        expr: The expression.
        mod: The module that has the functions which `expr` calls by name.

    Raises:
        RelayError: After a hundred rounds it still changes.
    """
    given = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    if any(callback.pattern is None for callback in given):
        raise RelayError("a callback has no pattern")
    waiting = given
    post = astuple(expr)
    for _ in range(_MAX_ROUNDS):
        before = post
        for callback in list(waiting):
            last = post
            post = _rewrite_round(callback, post, mod)
            if callback.rewrite_once and not _same(last, post):
                waiting = [each for each in waiting if each is not callback]
        if _same(before, post):
            return post
    raise RelayError(f"still changes after {_MAX_ROUNDS} rounds; do callbacks undo each other?")


def _same(before: Expr, after: Expr) -> bool:
    return before is after or structural_equal(before, after, map_free_vars=True)


def _rewrite_round(callback: DFPatternCallback, expr: Expr, mod: IRModule | None) -> Expr:
    if callback.require_type:
        expr = _infer_types(expr, mod)
    assert callback.pattern is not None
    groups = find_groups(callback.pattern, expr)

    def replace(group: Group, post: Expr, done: Mapping[Expr, Expr]) -> Expr:
        node_map = {
            pattern: [post if node is group.root else done.get(node, node) for node in found]
            for pattern, found in group.matches.items()
        }
        return astuple(callback.callback(group.root, post, node_map))

    return _replace_groups(expr, groups, replace) if groups else expr


def _infer_types(expr: Expr, mod: IRModule | None) -> Expr:
    """Return an expression with its types, and with those of the functions it calls by name."""
    functions = dict(mod.functions) if mod is not None else {}
    names = {variable.name_hint for variable in functions}
    name = next(f"_tmp{index}" for index in range(len(names) + 1) if f"_tmp{index}" not in names)
    main = expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
    inferred = infer_module(IRModule({**functions, GlobalVar(name): main}))[0][name]
    return inferred if isinstance(expr, Function) else inferred.body


_Replace = Callable[[Group, Expr, Mapping[Expr, Expr]], Expr]


def _replace_groups(expr: Expr, groups: Mapping[Expr, Group], replace: _Replace) -> Expr:
    done: dict[Expr, Expr] = {}
    for node in topological_order(expr):
        post = rebuild_with(node, done)
        group = groups.get(node)
        done[node] = post if group is None else replace(group, post, done)
    return done[expr]


def _accept(_expr: Expr) -> bool:
    return True


@pause_garbage_collection()
def partition(
    pattern: DFPattern,
    expr: Expr | TupleWrapper,
    attrs: Mapping[str, AnyValue] | None = None,
    check: Callable[[Expr], bool] = _accept,
) -> Expr:
    """Move each match of a pattern into a function of its inputs, and call it there.

    A function has the attribute ``PartitionedFromPattern``, which names its operators in order.
    Constants that the pattern asks for stay in it, others are inputs.

    Args:
        pattern: The pattern; that of a function, which no one would call, moves nothing, and
            neither does one of a single operator, constant or input.
        expr: The expression.
        attrs: Attributes to add to the functions.
        check: Gets each match and says whether it is moved.
    """
    root = astuple(expr)
    if isinstance(pattern, FunctionPattern):
        warnings.warn("a function that is not called cannot be partitioned", stacklevel=3)
        return root

    def replace(group: Group, post: Expr, done: Mapping[Expr, Expr]) -> Expr:
        alone = isinstance(group.root, (Constant, Op)) or group.root in group.args
        if alone or not check(group.root):
            return post
        marks = {"PartitionedFromPattern": group.name, **(attrs or {})}
        return set_type(Call(group.function.with_attr(marks), [done[arg] for arg in group.args]))

    groups = find_groups(pattern, root)
    return _replace_groups(root, groups, replace) if groups else root
