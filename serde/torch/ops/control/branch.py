"""Conditionals of ``torch.export``, which have graphs as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Expr, If, Tuple, TupleGetItem, infer_if
from serde.torch.aliases import Storage
from serde.torch.model import Graph
from serde.torch.ops.table import OPS, Import
from serde.walk.holes import Hole


@OPS.imports("higher_order::cond")
def import_cond(
    ctx: Import, arg0: Expr, *, arg1: Graph, arg2: Graph, arg3: Sequence[AnyValue] = ()
) -> list[Expr]:
    """A condition that is known leaves its branch only; one of one element counts as a scalar."""
    condition = as_condition(ctx, arg0)
    known = ctx.known(condition)
    if known is not None:
        return run_inline(ctx, arg1 if known.item() else arg2, arg3, "true" if known else "false")
    yes, no = (_Branch.of(ctx, g, arg3, name) for g, name in ((arg1, "true"), (arg2, "false")))
    written = list(dict.fromkeys([*yes.written, *no.written]))
    if len(yes.results) != len(no.results):
        raise Unsupported(f"branches of {len(yes.results)} and {len(no.results)} results")
    pairs = list(zip(yes.results, no.results, strict=True))
    for one, other in pairs:
        if (one is None) != (other is None):
            raise Unsupported("only one of two branches gives a tensor, the other None")
    numbers = [all(not isinstance(x, Expr) or ctx.is_number(x) for x in pair) for pair in pairs]
    fields = [[ctx.number(x) for x in each.results if x is not None] for each in (yes, no)]
    for each, branch in zip(fields, (yes, no), strict=True):
        each += [branch.written.get(s) or ctx.current(s) for s in written]
    if not fields[0]:
        return [Hole() for _ in pairs]
    then, other = map(Tuple, fields)
    node = If(condition, then, other)
    node.type = infer_if(node)
    parts = [ctx.fold(TupleGetItem(node, place)) for place in range(len(fields[0]))]
    for storage, part in zip(written, parts[len(parts) - len(written) :], strict=True):
        ctx.write_back(storage, part)
    found = iter(parts)
    return [
        Hole() if one is None else ctx.number(ctx.as_number(next(found))) if number else next(found)
        for (one, _), number in zip(pairs, numbers, strict=True)
    ]


def as_condition(ctx: Import, x: Expr) -> Expr:
    if ctx.type(x).rank:
        x = relay.reshape(x, newshape=())
    return ctx.fold(x) if ctx.dtype(x) == "bool" else ctx.cast(x, "bool")


@dataclass
class _Branch:
    """What a branch gives, and what it makes of tensors around it that it writes."""

    results: list[AnyValue]
    written: dict[Storage, Expr]

    @staticmethod
    def of(ctx: Import, graph: Graph, args: Sequence[AnyValue], label: str) -> _Branch:
        scope = ctx.enter(label)
        found = ctx.run(graph, scope, args)
        return _Branch(found, scope.written())


def run_inline(ctx: Import, graph: Graph, args: Sequence[AnyValue], label: str) -> list[Expr]:
    """Return the results of a graph that always runs, once."""
    found = _Branch.of(ctx, graph, args, label)
    for storage, value in found.written.items():
        ctx.write_back(storage, value)
    return [Hole() if each is None else ctx.number(each) for each in found.results]
