"""Regions of a program: what lies between the annotations that begin and end them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property

from serde.errors import RelayError
from serde.relay.ir import is_absent
from serde.relay.ir.expr import Call, Expr, Function, If, Let, Op, Tuple, TupleGetItem
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.tvm.dataflow_pattern.graph import AncestorTree, inputs_of, topological_order

__all__ = [
    "BEGIN", "DEFAULT_TARGET", "END", "AnnotatedRegion", "AnnotatedRegionSet", "compiler_of",
    "is_begin", "is_end",
]  # fmt: skip

BEGIN = "annotation.compiler_begin"
END = "annotation.compiler_end"
DEFAULT_TARGET = "default"
"""The target of what no external compiler runs."""


def _calls(node: Expr, name: str) -> bool:
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == name


def is_begin(node: Expr) -> bool:
    """Whether a node marks the beginning of a region."""
    return _calls(node, BEGIN)


def is_end(node: Expr) -> bool:
    """Whether a node marks the end of a region."""
    return _calls(node, END)


def compiler_of(node: Expr) -> str:
    """Return the target that an annotation names."""
    return str(node.attrs["compiler"]) if isinstance(node, Call) else DEFAULT_TARGET


class AnnotatedRegion:
    """One region.

    Attributes:
        id: Its number; numbers follow the order of beginnings, and may have gaps.
        target: The target that its annotations name.
        name: The name of the function that it is part of.
        args: The annotations that begin it.
        rets: The annotations that end it, outputs in order.
        nodes: All of its nodes, annotations included.
    """

    def __init__(self, number: int, target: str, name: str) -> None:
        self.id = number
        self.target = target
        self.name = name
        self.nodes: list[Expr] = []
        self._ins: deque[Call] = deque()
        self._outs: deque[Call] = deque()
        self._joined: AnnotatedRegion | None = None

    @property
    def args(self) -> list[Call]:
        """The annotations that begin the region."""
        return list(self._ins)

    @property
    def rets(self) -> list[Call]:
        """The annotations that end the region."""
        return list(self._outs)

    def __repr__(self) -> str:
        return f"AnnotatedRegion({self.id}, {self.target!r}, {len(self.nodes)} nodes)"


class AnnotatedRegionSet:
    """The regions of an expression.

    Arguments of one node that are inside regions are in the same one, as the node is.

    Args:
        expr: The expression.
        region_begin_op: The operator that begins a region.
        region_end_op: The operator that ends one.
        func_name: The name of the function.

    Attributes:
        order: Every node once, inputs first.
        regions: The regions by number.

    Raises:
        RelayError: An end has no beginning or another target, or a node has arguments both inside
            and outside of a region.
    """

    def __init__(
        self,
        expr: Expr,
        region_begin_op: Op | None = None,
        region_end_op: Op | None = None,
        func_name: str = DEFAULT_TARGET,
    ) -> None:
        self._begin = BEGIN if region_begin_op is None else region_begin_op.name
        self._end = END if region_end_op is None else region_end_op.name
        self._name = func_name
        self._count = 0
        self._member: dict[Expr, AnnotatedRegion] = {}
        self.order = topological_order(expr)
        for node in self.order:
            self._enter(node)
        self.regions = self._finish()

    def __len__(self) -> int:
        return len(self.regions)

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter(self.regions)

    def get_region(self, expr: Expr) -> AnnotatedRegion | None:
        """Return the region that a node is in, or None."""
        region = self._member.get(expr)
        return None if region is None else _find_top(region)

    @cached_property
    def scopes(self) -> dict[Expr, int]:
        """Numbers of the innermost inner functions and bodies of lets around all uses of nodes.

        A node that is in none has no entry.
        """
        inner = [node for node in self.order[:-1] if isinstance(node, (Function, Let))]
        if not inner:
            return {}
        tree = AncestorTree(len(inner) + 1)
        outermost = opened = len(inner)
        found: dict[Expr, int] = {}
        for node in reversed(self.order):
            own = within = found.get(node, outermost)
            if isinstance(node, (Function, Let)) and node is not self.order[-1]:
                opened -= 1
                within = opened
                tree.hang(within, own)
            for child in inputs_of(node):
                scope = own if isinstance(node, Let) and child is node.value else within
                found[child] = tree.meet(found[child], scope) if child in found else scope
        return {node: scope for node, scope in found.items() if scope != outermost}

    def _enter(self, node: Expr) -> None:
        if _calls(node, self._begin) and isinstance(node, Call):
            region = AnnotatedRegion(self._count, compiler_of(node), self._name)
            self._count += 1
            region._ins.append(node)
            self._member[node] = region
        elif _calls(node, self._end) and isinstance(node, Call):
            self._close(node)
        elif isinstance(node, (Call, Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)):
            self._join(node, node.args if isinstance(node, Call) else inputs_of(node))
        elif isinstance(node, If):
            self._join_whole(node, (node.cond, node.true_branch, node.false_branch))
        elif isinstance(node, Let):
            self._join_whole(node, (node.value, node.body))

    def _close(self, end: Call) -> None:
        region = self.get_region(end.args[0])
        target = compiler_of(end)
        if region is None:
            raise RelayError(f"an end of a region of {target} has no beginning: {end.args[0]!r}")
        if region.target != target:
            message = f"a region of {region.target} ends as one of {target}"
            raise RelayError(f"{message}: {end.args[0]!r}")
        self._member[end] = region
        region._outs.append(end)

    def _join(self, node: Expr, args: tuple[Expr, ...]) -> None:
        """Make one region of those that the arguments are in, and enter a node there."""
        open_args = [arg for arg in args if not _calls(arg, self._end) and not is_absent(arg)]
        found = [self.get_region(arg) for arg in open_args]
        regions = [region for region in found if region is not None]
        if not regions:
            return
        if len(regions) < len(found):
            inside, outside = (
                next(a for a, r in zip(open_args, found, strict=True) if (r is None) == without)
                for without in (False, True)
            )
            message = f"one argument is inside a region of {regions[0].target}, another is not"
            raise RelayError(f"{node!r}: {message}: {inside!r}, {outside!r}")
        self._member[node] = _merge_all(regions)

    def _join_whole(self, node: Expr, args: tuple[Expr, ...]) -> None:
        """Enter a node of control flow where all that it consists of is inside regions."""
        if any(_calls(arg, self._end) or self.get_region(arg) is None for arg in args):
            return
        self._join(node, args)

    def _finish(self) -> list[AnnotatedRegion]:
        """Return the regions, without the annotations that joining has put inside of them."""
        inner: set[Expr] = set()
        outer: set[Expr] = set()
        for node in self.order:
            region = self.get_region(node)
            if region is not None:
                region.nodes.append(node)
            for child in inputs_of(node):
                within = region is not None and self.get_region(child) is region
                if _calls(node, self._begin) and within:
                    inner.update((node, child))
                elif _calls(child, self._end):
                    outer.add(child)
        inner -= outer
        found = dict.fromkeys(_find_top(region) for region in self._member.values())
        regions = sorted(found, key=lambda region: region.id)
        for region in regions:
            if inner:
                region._ins = deque(each for each in region._ins if each not in inner)
                region._outs = deque(each for each in region._outs if each not in inner)
        return regions


def _find_top(region: AnnotatedRegion) -> AnnotatedRegion:
    """Return the region that a region has become part of, itself if none."""
    top = region
    while top._joined is not None:
        top = top._joined
    while region._joined is not None:
        region._joined, region = top, region._joined
    return top


def _merge_all(regions: list[AnnotatedRegion]) -> AnnotatedRegion:
    """Make one region of several; it is called as the first of them is."""
    kept = regions[0]
    for other in regions[1:]:
        if other is not kept and _find_top(other) is not kept:
            if other.target != kept.target:
                raise RelayError(f"regions of {kept.target} and {other.target} meet in one node")
            kept._ins = _concatenate(kept._ins, other._ins)
            kept._outs = _concatenate(kept._outs, other._outs)
            other._joined = kept
    return kept


def _concatenate(first: deque[Call], second: deque[Call]) -> deque[Call]:
    """Return both in order; the shorter one is moved."""
    if len(second) <= len(first):
        first.extend(second)
        return first
    second.extendleft(reversed(first))
    return second
