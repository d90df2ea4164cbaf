"""Operators on sparse storage, of which a dense tensor holds the same values."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.shape.create import axis_indices
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr

OPS.refuses(
    "_contrib_getnnz",
    "_contrib_edge_id",
    reason="a dense tensor does not tell a stored zero from none",
)


OPS.refuses(
    "_contrib_dgl_adjacency",
    "_contrib_dgl_csr_neighbor_non_uniform_sample",
    "_contrib_dgl_csr_neighbor_uniform_sample",
    "_contrib_dgl_graph_compact",
    "_contrib_dgl_subgraph",
    reason="what it takes is a graph in csr storage, not a tensor",
    hint="sample the graph before the model, and make the features inputs",
)


@OPS.imports("cast_storage", ignored=("stype",))
def import_cast_storage(ctx: ImportContext, data: Expr) -> Expr:
    return data


@OPS.imports("_sparse_retain")
def import_sparse_retain(ctx: ImportContext, data: Expr, indices: Expr) -> Expr:
    """The rows that are named stay, the others are zero."""
    rows = relay.expand_dims(axis_indices(ctx, data, 0), 1)
    named = relay.equal(rows, relay.cast(indices, "int32"))
    kept = relay.any(named, axis=(1,))
    rank = ctx.type(data).rank
    if rank > 1:
        kept = relay.expand_dims(kept, 1, rank - 1)
    return relay.where(kept, data, scalar_like(ctx, data, 0))
