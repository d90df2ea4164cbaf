"""Regions of one target that are joined: modules written out, and random graphs by brute force."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import numpy as np
import pytest
from support.exported import interpreted
from support.random_control import ProgramMaker
from support.regions import check, check_same_results, program, supported

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr, Tuple
from serde.relay.ir.registry import OpDef, get
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import children, post_order
from serde.relay.transform import AnnotateTarget, MergeCompilerRegions, PartitionGraph
from serde.relay.tvm.passes.acyclic_groups import AcyclicGroups
from serde.relay.tvm.passes.annotated_regions import AnnotatedRegionSet

CASES: dict[str, tuple[str, str]] = {
    "two in a row": (
        "def @main(%x: T) { %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[a](%1)); e[a](%2) }",
        "def @main(%x: T) { %0 = exp(b[a](%x)); %1 = log(%0); e[a](%1) }",
    ),
    "two of other targets": (
        "def @main(%x: T) { %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[c](%1)); e[c](%2) }",
        "def @main(%x: T) { %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[c](%1)); e[c](%2) }",
    ),
    "the default target likewise": (
        """def @main(%x: T) {
             %0 = exp(b[default](%x)); %1 = e[default](%0); %2 = log(b[default](%1));
             e[default](%2) }""",
        "def @main(%x: T) { %0 = exp(b[default](%x)); %1 = log(%0); e[default](%1) }",
    ),
    "both uses of a value": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0); %3 = add(b[a](%1), b[a](%2));
             e[a](%3) }""",
        "def @main(%x: T) { %0 = exp(b[a](%x)); %1 = add(%0, %0); e[a](%1) }",
    ),
    "two that feed one": (
        """def @main(%x: T, %y: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[a](%y)); %3 = e[a](%2);
             %4 = add(b[a](%1), b[a](%3)); e[a](%4) }""",
        """def @main(%x: T, %y: T) {
             %0 = exp(b[a](%x)); %2 = log(b[a](%y)); %4 = add(%0, %2); e[a](%4) }""",
    ),
    "one that feeds two": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0);
             %3 = log(b[a](%1)); %4 = tanh(b[a](%2)); (e[a](%3), e[a](%4)) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %3 = log(%0); %4 = tanh(%0); (e[a](%3), e[a](%4)) }""",
    ),
    "over another target": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[c](%1)); %3 = e[c](%2); %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%3)); e[a](%5) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(b[c](%1)); %3 = e[c](%2); %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%3)); e[a](%5) }""",
    ),
    "over a node of no target": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(%1); %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%2)); e[a](%5) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = log(%1); %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%2)); e[a](%5) }""",
    ),
    "over a conditional": (
        """def @main(%c: bool, %x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = if (%c) { %1 } else { %x }; %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%2)); e[a](%5) }""",
        """def @main(%c: bool, %x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = if (%c) { %1 } else { %x }; %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%2)); e[a](%5) }""",
    ),
    "over a let": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); let %v: T = e[a](%0); %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%v)); e[a](%5) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); let %v: T = e[a](%0); %4 = e[a](%0);
             %5 = add(b[a](%4), b[a](%v)); e[a](%5) }""",
    ),
    "not into the body of a let": (
        """def @main(%c: bool, %x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %4 = e[a](%0);
             %9 = if (%c) { let %v: T = tanh(%x); %3 = add(b[a](%v), b[a](%1)); e[a](%3) }
                  else { %x };
             (%9, %4) }""",
        """def @main(%c: bool, %x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %4 = e[a](%0);
             %9 = if (%c) { let %v: T = tanh(%x); %3 = add(b[a](%v), b[a](%1)); e[a](%3) }
                  else { %x };
             (%9, %4) }""",
    ),
    "not into a function": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0);
             let %f = fn (%p: T) -> T { %3 = add(b[a](%p), b[a](%1)); e[a](%3) }; %f(%2) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0);
             let %f = fn (%p: T) -> T { %3 = add(b[a](%p), b[a](%1)); e[a](%3) }; %f(%2) }""",
    ),
    "what only a function needs is in it": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0);
             let %f = fn (%p: T) -> T { %3 = add(b[a](%p), b[a](%1)); e[a](%3) }; %f(%x) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x));
             let %f = fn (%p: T) -> T { %3 = add(b[a](%p), %0); e[a](%3) }; %f(%x) }""",
    ),
    "inside a function": (
        """def @main(%x: T) {
             let %f = fn (%p: T) -> T {
               %0 = exp(b[a](%p)); %1 = e[a](%0); %2 = log(b[a](%1)); e[a](%2) }; %f(%x) }""",
        """def @main(%x: T) {
             let %f = fn (%p: T) -> T { %0 = exp(b[a](%p)); %1 = log(%0); e[a](%1) }; %f(%x) }""",
    ),
    "a diamond whose side is left out": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0);
             %3 = log(b[a](%1)); %4 = e[a](%3); %5 = tanh(b[c](%2)); %6 = e[c](%5);
             %7 = add(b[a](%4), b[a](%6)); e[a](%7) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %2 = e[a](%0); %3 = log(%0); %4 = e[a](%3);
             %5 = tanh(b[c](%2)); %6 = e[c](%5); %7 = add(b[a](%4), b[a](%6)); e[a](%7) }""",
    ),
    "two regions that would wait for each other": (
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = tanh(b[c](%x)); %3 = e[c](%2); %4 = e[c](%2);
             %5 = log(b[c](%1)); %6 = e[c](%5); %7 = add(b[c](%6), b[c](%4)); %8 = e[c](%7);
             %9 = e[a](%0); %10 = add(b[a](%9), b[a](%3)); (e[a](%10), %8) }""",
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = tanh(b[c](%x)); %3 = e[c](%2); %4 = e[c](%2);
             %5 = log(b[c](%1)); %7 = add(%5, b[c](%4)); %8 = e[c](%7);
             %10 = add(%0, b[a](%3)); (e[a](%10), %8) }""",
    ),
    "no annotations": ("def @main(%x: T) { exp(%x) }", "def @main(%x: T) { exp(%x) }"),
}


@pytest.mark.parametrize("case", CASES)
def test_regions_are_joined(case: str) -> None:
    before, after = CASES[case]
    check(MergeCompilerRegions()(program(before)), after)


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", CASES)
def test_joining_changes_no_result(case: str) -> None:
    mod = program(CASES[case][0])
    joined = MergeCompilerRegions()(mod)
    check_same_results(mod, joined)
    check_same_results(mod, PartitionGraph()(joined))


OPERATORS = ("exp", "tanh", "negative", "add", "subtract", "maximum")


def _random_module(rng: random.Random, count: int) -> relay.IRModule:
    """Return a graph whose nodes take values made shortly before, and some made long ago."""
    values: list[Expr] = [relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))]
    params = [each for each in values if isinstance(each, relay.Var)]
    for _ in range(count):
        op = get(rng.choice(OPERATORS))
        recent = values[-4:] if rng.random() < 0.7 else values
        values.append(_call(op, [rng.choice(recent) for _ in op.operands]))
    used = {child for node in post_order(*values) for child in children(node)}
    ends = [value for value in values[2:] if value not in used] or values[-1:]
    return relay.IRModule.from_expr(relay.Function(params, Tuple(ends)))


def _call(op: OpDef, args: list[Expr]) -> Expr:
    node = Call(op, args)
    node.type = args[0].type
    return node


def _regions_by_brute_force(mod: relay.IRModule, chosen: Iterable[str]) -> list[int]:
    """Return the numbers of operators of the regions of a target, joined one edge at a time.

    Nodes are joined in order with what feeds them; before each step everything that depends on
    anything is computed anew.
    """
    nodes = [node for node in post_order(mod["main"].body) if isinstance(node, Call)]
    place = {node: index for index, node in enumerate(nodes)}
    group = list(range(len(nodes)))
    supported_nodes = [isinstance(n.op, OpDef) and n.op.name in chosen for n in nodes]
    edges = [[place[arg] for arg in node.args if arg in place] for node in nodes]

    def needs() -> dict[int, set[int]]:
        direct = {g: set() for g in group}
        for user, used in enumerate(edges):
            direct[group[user]] |= {group[each] for each in used} - {group[user]}
        result = {g: set(direct[g]) for g in direct}
        for _ in direct:
            for g in direct:
                for other in list(result[g]):
                    result[g] |= result[other]
        return result

    for user in range(len(nodes)):
        feeding = {group[each] for each in edges[user]} - {group[user]}
        for other in sorted(feeding):
            if supported_nodes[other] != supported_nodes[user] or other not in group:
                continue
            found = needs()
            direct = {group[e] for u, used in enumerate(edges) if group[u] == group[user]
                      for e in used} - {group[user]}  # fmt: skip
            if any(other in found[each] for each in direct - {other}):
                continue
            old = group[user]
            group = [other if g == old else g for g in group]
    sizes: dict[int, int] = {}
    for index, g in enumerate(group):
        if supported_nodes[index]:
            sizes[g] = sizes.get(g, 0) + 1
    return sorted(sizes.values())


def _partition(mod: relay.IRModule, chosen: list[str]) -> relay.IRModule:
    with supported(a=chosen):
        return PartitionGraph()(MergeCompilerRegions()(AnnotateTarget("a", False)(mod)))


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_are_joined_as_by_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    mod = relay.transform.InferType()(_random_module(rng, rng.randint(3, 12)))
    chosen = rng.sample(OPERATORS, rng.randint(1, 5))
    found = _partition(mod, chosen)
    sizes = [
        sum(isinstance(node, Call) for node in post_order(function))
        for function in found.functions.values()
        if "Compiler" in function.attrs
    ]
    assert sorted(sizes) == _regions_by_brute_force(mod, chosen), f"seed {seed}: {chosen}"
    check_same_results(mod, found)


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(60, 80))
def test_larger_random_graphs_keep_their_results(seed: int) -> None:
    rng = random.Random(seed)
    mod = relay.transform.InferType()(_random_module(rng, 120))
    chosen = rng.sample(OPERATORS, 3)
    found = _partition(mod, chosen)
    check_same_results(mod, found)
    outside = [n for n in post_order(found["main"]) if isinstance(n, Call)]
    names = {n.op.name for n in outside if isinstance(n.op, OpDef)}
    assert names.isdisjoint(chosen), f"seed {seed}"


@pytest.mark.thin(2)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("targets", [("a", "b"), ("b", "a")])
def test_random_graphs_for_two_targets(seed: int, targets: tuple[str, str]) -> None:
    rng = random.Random(seed)
    mod = relay.transform.InferType()(_random_module(rng, 40))
    with supported(a=rng.sample(OPERATORS, 3), b=rng.sample(OPERATORS, 3)):
        found = PartitionGraph()(MergeCompilerRegions()(AnnotateTarget(targets)(mod)))
    check_same_results(mod, found)


@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize("seed", [5, 12, 104, 174, 196, 201])
def test_random_programs_with_control_flow(seed: int, everything: bool) -> None:
    maker, rng = ProgramMaker(seed), random.Random(seed)
    mod, arrays = relay.transform.InferType()(maker.module()), maker.inputs()
    names = sorted(
        {
            node.op.name
            for function in mod.functions.values()
            for node in post_order(function)
            if isinstance(node, Call) and isinstance(node.op, OpDef)
        }
    )
    a, b = (rng.sample(names, rng.randint(1, len(names))) for _ in range(2))
    with supported(a=a, b=b):
        annotated = AnnotateTarget(["a", "b"], everything)(mod)
        found = PartitionGraph()(MergeCompilerRegions()(annotated))
    verify(found)
    for one, other in zip(interpreted(found, arrays), interpreted(mod, arrays), strict=True):
        np.testing.assert_array_equal(one, other)


def test_regions_of_a_diamond() -> None:
    mod = program(
        """def @main(%x: T) {
             %0 = exp(b[a](%x)); %1 = e[a](%0); %2 = e[a](%0); %3 = log(b[a](%1)); %4 = e[a](%3);
             %5 = tanh(b[default](%2)); %6 = e[default](%5); %7 = add(b[a](%4), b[a](%6)); e[a](%7)
           }"""
    )
    begin, end = get("annotation.compiler_begin"), get("annotation.compiler_end")
    regions = AnnotatedRegionSet(mod["main"], begin, end)
    assert len(regions) == 4
    assert [region.target for region in regions] == ["a", "a", "a", "default"]
    first = next(iter(regions))
    assert [len(region.nodes) for region in regions] == [4, 3, 4, 3]
    assert [len(region.args) for region in regions] == [1, 1, 2, 1]
    assert [len(region.rets) for region in regions] == [2, 1, 1, 1]
    assert all(regions.get_region(node) is first for node in first.nodes)
    assert regions.get_region(mod["main"].params[0]) is None
    assert regions.get_region(first.args[0]) is first
    assert [region.id for region in regions] == [0, 1, 2, 3]
    assert "a" in repr(first)


@pytest.mark.parametrize("seed", range(30))
def test_groups_never_come_to_depend_on_themselves(seed: int) -> None:
    """Join random pairs of a random graph, and compare each answer with reachability."""
    rng = random.Random(seed)
    count = 14
    groups = AcyclicGroups()
    for _ in range(count):
        groups.add()
    edges = [
        (low, high) for low, high in itertools.combinations(range(count), 2) if rng.random() < 0.2
    ]
    for low, high in edges:
        groups.connect(low, high)
    groups.settle()
    group = list(range(count))
    for low, high in rng.sample(edges, len(edges)):
        if group[low] == group[high]:
            continue
        apart = not _reaches(edges, group, group[low], group[high])
        groups.merge([low], high)
        assert (groups.find(low) == groups.find(high)) == apart
        if apart:
            old, new = group[high], group[low]
            group = [new if each == old else each for each in group]
    same = {(i, j) for i in range(count) for j in range(count) if group[i] == group[j]}
    found = {(i, j) for i in range(count) for j in range(count) if groups.find(i) == groups.find(j)}
    assert found == same


def _reaches(edges: list[tuple[int, int]], group: list[int], low: int, high: int) -> bool:
    """Whether one group feeds another over a third."""
    users: dict[int, set[int]] = {}
    for below, above in edges:
        if group[below] != group[above]:
            users.setdefault(group[below], set()).add(group[above])
    pending = [each for each in users.get(low, ()) if each != high]
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        if each == high:
            return True
        if each not in seen:
            seen.add(each)
            pending.extend(users.get(each, ()))
    return False
