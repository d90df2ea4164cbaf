"""Products of matrices, and Fourier transforms."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.table import OPS


@OPS.imports(
    "FULLY_CONNECTED", ignored=("asymmetric_quantize_inputs", "quantized_bias_type", "quant_spec")
)
def import_fully_connected(
    ctx: ImportContext,
    x: Expr,
    weights: Expr,
    bias: Expr | None = None,
    *,
    weights_format: int = 0,
    keep_num_dims: bool = False,
    fused_activation_function: int = 0,
) -> Expr:
    """Weights are [outputs, inputs]; the input is made a matrix of so many columns."""
    if weights_format != 0:
        raise Unsupported("weights whose bytes are shuffled")
    units, columns = ctx.type(weights).shape[-2:]
    leading = ctx.type(x).shape[:-1]
    flat = x
    if not keep_num_dims and (len(leading) != 1 or ctx.dim_at(x, -1) != columns):
        flat = relay.reshape(x, (-1, columns))
    found = relay.nn.dense(flat, weights, units=units)
    if bias is not None:
        found = relay.nn.bias_add(found, bias, axis=-1)
    return ctx.activated(found, fused_activation_function)


@OPS.imports("BATCH_MATMUL", ignored=("asymmetric_quantize_inputs",))
def import_batch_matmul(
    ctx: ImportContext, x: Expr, y: Expr, *, adj_x: bool = False, adj_y: bool = False
) -> Expr:
    return relay.serde.matmul(_swapped(ctx, x, adj_x), _swapped(ctx, y, adj_y))


def _swapped(ctx: ImportContext, x: Expr, adjoint: bool) -> Expr:
    rank = ctx.rank(x)
    return relay.transpose(x, (*range(rank - 2), rank - 1, rank - 2)) if adjoint else x
