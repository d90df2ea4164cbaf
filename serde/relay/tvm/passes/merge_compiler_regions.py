"""Joining of annotated regions of one target, as far as none comes to depend on itself."""

from __future__ import annotations

from typing import ClassVar

from serde.relay.ir import IRModule, infer_module, rewrite_function
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Op
from serde.relay.transform.base import Pass, is_marked
from serde.relay.tvm.dataflow_pattern.graph import inputs_of
from serde.relay.tvm.passes.acyclic_groups import AcyclicGroups
from serde.relay.tvm.passes.annotated_regions import (
    AnnotatedRegion,
    AnnotatedRegionSet,
    is_begin,
    is_end,
)

__all__ = ["MergeCompilerRegions"]


class MergeCompilerRegions(Pass):
    """Join regions that :class:`AnnotateTarget` made with those of the same target that feed them.

    Regions that would have to wait for each other, over nodes of other targets, of none or of
    control flow, stay apart; so do those in different functions or bodies of lets.
    """

    name: ClassVar[str] = "MergeCompilerRegions"

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Join the regions of every function that no external compiler runs."""
        functions = {}
        for variable, function in mod.functions.items():
            functions[variable] = function
            if not is_marked(function):
                functions[variable] = _merge(function)
        changed = any(functions[v] is not mod.functions[v] for v in functions)
        checked = mod.checked and not changed
        return infer_module(mod.with_functions(functions, checked=checked))[0], changed


def _merge(function: Function) -> Function:
    regions = AnnotatedRegionSet(function)
    if not regions.regions:
        return function
    merger = _Merger(regions)
    merger.run()

    def replace(node: Expr, new: Expr) -> Expr:
        if not is_begin(node) or not isinstance(node, Call) or not isinstance(new, Call):
            return new
        before, after = node.args[0], new.args[0]
        if is_end(before) and isinstance(after, Call) and merger.are_together(node, before):
            return after.args[0]
        return new

    return rewrite_function(function, replace)


class _Merger:
    """Groups of nodes: one for each region, and one for each node that is in none."""

    def __init__(self, regions: AnnotatedRegionSet) -> None:
        self._regions = regions
        self._groups = AcyclicGroups()
        self._number: dict[Expr, int] = {}
        self._of_region: dict[AnnotatedRegion, int] = {}
        self._done: set[AnnotatedRegion] = set()
        self._enter_nodes()

    def are_together(self, node: Expr, other: Expr) -> bool:
        """Whether two nodes are in one region."""
        return self._groups.find(self._number[node]) == self._groups.find(self._number[other])

    def run(self) -> None:
        """Join the regions, those that feed a region before it."""
        for node in self._regions.order:
            region = self._regions.get_region(node) if is_end(node) else None
            if region is not None and region not in self._done:
                self._visit(region)

    def _enter_nodes(self) -> None:
        for node in self._regions.order:
            if isinstance(node, (Constant, Op, GlobalVar)):
                continue
            region = self._regions.get_region(node)
            if region is None:
                self._number[node] = self._groups.add()
            else:
                if region not in self._of_region:
                    self._of_region[region] = self._groups.add()
                self._number[node] = self._of_region[region]
        owners = {n.var: n.value for n in self._regions.order if isinstance(n, Let)}
        place = {node: index for index, node in enumerate(self._regions.order)}
        for node in self._regions.order:
            for child in inputs_of(node):
                # A function that a let binds may name itself, and needs itself not.
                if child not in owners or place[node] > place[owners[child]]:
                    self._connect(child, node)
            if isinstance(node, Let):
                self._connect(node.value, node.var)
        self._groups.settle()

    def _connect(self, child: Expr, node: Expr) -> None:
        if child in self._number and node in self._number:
            self._groups.connect(self._number[child], self._number[node])

    def _visit(self, region: AnnotatedRegion) -> None:
        """Join a region with those that feed it, after these with what feeds them."""
        stack = [region]
        while stack:
            waiting = [
                parent for parent in self._find_feeding(stack[-1])
                if parent not in self._done and parent not in stack
            ]  # fmt: skip
            if waiting:
                stack.append(waiting[0])
                continue
            each = stack.pop()
            if each not in self._done:
                self._done.add(each)
                self._join(each)

    def _find_feeding(self, region: AnnotatedRegion) -> list[AnnotatedRegion]:
        found = (self._regions.get_region(begin.args[0]) for begin in region.args)
        return list(dict.fromkeys(each for each in found if each is not None))

    def _join(self, region: AnnotatedRegion) -> None:
        scope = self._regions.scopes.get(region.nodes[0])
        candidates = [
            self._of_region[parent]
            for parent in self._find_feeding(region)
            if parent is not region
            and parent.target == region.target
            and self._regions.scopes.get(parent.nodes[0]) == scope
        ]
        self._groups.merge(candidates, self._of_region[region])
