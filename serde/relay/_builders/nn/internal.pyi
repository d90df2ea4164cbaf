"""Builders below ``relay.nn.internal``; generated from the declarations."""

from serde.relay.ir.expr import Expr

def sparse_dense_padded(
    data: Expr,
    weight_data: Expr,
    weight_indices: Expr,
    weight_indptr: Expr,
    sparse_lhs: bool = False,
) -> Expr:
    """``nn.sparse_dense`` with a matrix whose rows a graphics processor has filled up with zeros."""
