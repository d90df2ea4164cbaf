"""Operators of ``torch.export`` that run a graph once, under a setting or a name."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.torch.host.registry import evaluates
from serde.torch.import_context import ImportContext
from serde.torch.model import Graph


@evaluates("higher_order::wrap", "higher_order::tag_activation_checkpoint")
def wrap(ctx: ImportContext, graph: Graph, *operands: AnyValue) -> AnyValue:
    return _run(ctx, graph, operands)


@evaluates("higher_order::wrap_with_set_grad_enabled")
def set_gradients(
    ctx: ImportContext, _enabled: bool, graph: Graph, *operands: AnyValue
) -> AnyValue:
    return _run(ctx, graph, operands)


@evaluates("higher_order::wrap_with_autocast")
def set_autocast(
    ctx: ImportContext,
    _device: str,
    dtype: str | None,
    enabled: bool,
    _cache: bool | None,
    graph: Graph,
    *operands: AnyValue,
) -> AnyValue:
    """Which operators it makes compute in another dtype is PyTorch's to decide."""
    if enabled:
        raise Unsupported(
            f"autocast to {dtype}",
            hint="export the module without autocast, or run program.run_decompositions() first",
        )
    return _run(ctx, graph, operands)


@evaluates("higher_order::invoke_subgraph")
def invoke(ctx: ImportContext, graph: Graph, _name: AnyValue, *operands: AnyValue) -> AnyValue:
    return _run(ctx, graph, operands)


@evaluates("higher_order::hints_wrapper", "higher_order::run_const_graph")
def wrap_operands(
    ctx: ImportContext, graph: Graph, operands: list[AnyValue], *_settings: AnyValue
) -> AnyValue:
    return _run(ctx, graph, operands)


def _run(ctx: ImportContext, graph: Graph, operands: AnyValue) -> AnyValue:
    """Return the results of a graph that runs once; what it writes is written around it."""
    scope = ctx.enter("")
    found = ctx.run(graph, scope, list(operands))
    for storage, value in scope.written().items():
        ctx.write_back(storage, value)
    return found if ctx.source.gives_list or ctx.outputs > 1 else found[0]
