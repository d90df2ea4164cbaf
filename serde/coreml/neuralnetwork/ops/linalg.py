"""Products of matrices, and tables of vectors."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext as ProgramContext
from serde.coreml.neuralnetwork.layer_weights import LayerWeights
from serde.coreml.neuralnetwork.ops.table import DIRECT, LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType
from serde.walk.takes import CONSTANT, Takes


@LAYERS.imports("innerProduct", ignored=["int8_dynamic_quantize"])
def import_inner_product(
    ctx: Import,
    x: Expr,
    *,
    input_channels: int = 0,
    output_channels: int = 0,
    parameters: LayerWeights,
) -> Expr:
    """Channels are the last axis of up to three, or the last three axes of four or five.

    Core ML may round the data to integers first where that is asked for; here it is exact.
    """
    rank = ctx.type(x).rank
    if not 1 <= rank <= 5:
        raise Unsupported(f"a tensor of {rank} axes")
    kernel = ctx.weight(parameters.weights, (output_channels, input_channels))
    if rank == 1:
        x = relay.reshape(x, (1, -1))
    elif rank >= 4:
        x = relay.reshape(x, (*(0,) * (rank - 3), -1))
    result = relay.nn.dense(x, kernel, units=output_channels)
    result = parameters.add_bias(ctx, result, output_channels, axis=-1)
    if rank == 1:
        return relay.reshape(result, (-1,))
    return relay.expand_dims(result, axis=rank - 2, num_newaxis=2) if rank >= 4 else result


def _take_columns(
    ctx: Import, indices: Expr, parameters: LayerWeights, shape: tuple[int, int]
) -> Expr:
    """Return the columns of a matrix that indices name, along a new last axis."""
    table = relay.transpose(ctx.weight(parameters.weights, shape), axes=(1, 0))
    result = relay.take(table, ctx.integers(indices), axis=0)
    if not parameters.has_bias:
        return result
    return relay.add(result, ctx.weight(parameters.bias, (shape[0],)))


@LAYERS.imports("embedding")
def import_embedding(
    ctx: Import, x: Expr, *, input_dim: int = 0, output_channels: int = 0, parameters: LayerWeights
) -> Expr:
    rank = ctx.type(x).rank
    if rank not in (4, 5):
        raise Unsupported(f"a tensor of {rank} axes")
    indices = relay.squeeze(x, axis=[rank - 3, rank - 2, rank - 1])
    shape = (output_channels, input_dim)
    result = _take_columns(ctx, indices, parameters, shape)
    return relay.expand_dims(result, axis=rank - 2, num_newaxis=2)


@LAYERS.imports("embeddingND")
def import_embedding_nd(
    ctx: Import, x: Expr, *, vocab_size: int = 0, embedding_size: int = 0, parameters: LayerWeights
) -> Expr:
    rank = ctx.type(x).rank
    if rank < 2:
        raise Unsupported(f"a tensor of {rank} axes")
    indices = relay.squeeze(x, axis=[rank - 1])
    shape = (embedding_size, vocab_size)
    return _take_columns(ctx, indices, parameters, shape)


@LAYERS.imports("batchedMatmul", ignored=["int8_dynamic_quantize"])
def import_batched_matmul(
    ctx: Import, a: Expr, b: Expr | None = None,
    *, transpose_a: bool = False, transpose_b: bool = False, weight_matrix_first_dimension: int = 0,
    weight_matrix_second_dimension: int = 0, parameters: LayerWeights,
) -> Expr:  # fmt: skip
    """A vector becomes a matrix of one row on the left, of one column on the right, and stays so.

    The matrix of a layer with one input lies transposed in the file.
    """
    if b is None:
        rows, columns = weight_matrix_first_dimension, weight_matrix_second_dimension
        vector = ctx.type(a).rank == 1
        data = relay.expand_dims(a, axis=0) if vector else a
        result = relay.nn.dense(
            data, ctx.weight(parameters.weights, (columns, rows)), units=columns
        )
        result = parameters.add_bias(ctx, result, columns, axis=-1)
        return relay.squeeze(result, axis=[0]) if vector else result
    a = relay.expand_dims(a, axis=0) if ctx.type(a).rank == 1 else a
    b = relay.expand_dims(b, axis=1) if ctx.type(b).rank == 1 else b
    return relay.serde.matmul(
        _transpose_matrices(ctx, a) if transpose_a else a,
        _transpose_matrices(ctx, b) if transpose_b else b,
    )


def _transpose_matrices(ctx: Import, x: Expr) -> Expr:
    rank = ctx.type(x).rank
    return relay.transpose(x, axes=(*range(rank - 2), rank - 1, rank - 2))


@LAYERS.imports("dot")
def import_dot(ctx: Import, x: Expr, y: Expr, *, cosine_similarity: bool = False) -> Expr:
    rank = len(ctx.at_least(x, 3))
    axis = (rank - 3,)

    def product(left: Expr, right: Expr) -> Expr:
        return relay.sum(relay.multiply(left, right), axis=axis, keepdims=True)

    if not cosine_similarity:
        return product(x, y)
    lengths = relay.sqrt(relay.multiply(product(x, x), product(y, y)))
    return relay.divide(product(x, y), lengths)


def _band(ctx: Import, x: Expr, k: int, *, upper: bool) -> Expr:
    ctx.at_least(x, 2)
    return relay.trilu(x, k, upper=upper)


@LAYERS.imports("lowerTriangular")
def import_lower_triangular(ctx: Import, x: Expr, *, k: int = 0) -> Expr:
    return _band(ctx, x, k, upper=False)


@LAYERS.imports("upperTriangular")
def import_upper_triangular(ctx: Import, x: Expr, *, k: int = 0) -> Expr:
    return _band(ctx, x, k, upper=True)


@LAYERS.imports("matrixBandPart")
def import_matrix_band_part(
    ctx: Import, x: Expr, *, num_lower: int = 0, num_upper: int = 0
) -> Expr:
    if num_lower >= 0:
        x = _band(ctx, x, -num_lower, upper=True)
    return _band(ctx, x, num_upper, upper=False) if num_upper >= 0 else x


@LAYERS.exports("linear")
def export_linear(ctx: Export, x: Value, weight: Value, bias: Value | None = None) -> Value:
    units, entering = ctx.static_shape(weight, 2)
    return ctx.layer(
        "innerProduct",
        x,
        input_channels=entering,
        output_channels=units,
        weights=ctx.parameter(weight),
        has_bias=bias is not None,
        bias=None if bias is None else ctx.parameter(bias),
    )


@LAYERS.exports("matmul")
def export_matmul(
    ctx: Export, x: Value, y: Value, *, transpose_x: bool = False, transpose_y: bool = False
) -> Value:
    """The matrix of a layer lies transposed in it."""
    if transpose_y and y.is_known and y.type.rank == 2 and not x.is_known and not transpose_x:
        columns, rows = ctx.static_shape(y)
        return ctx.layer(
            "batchedMatmul",
            x,
            weight_matrix_first_dimension=rows,
            weight_matrix_second_dimension=columns,
            weights=ctx.parameter(y),
        )
    return ctx.layer("batchedMatmul", x, y, transpose_a=transpose_x, transpose_b=transpose_y)


@LAYERS.exports("einsum")
def export_einsum(ctx: Export, values: tuple[Value, ...], *, equation: str) -> Value:
    """Both of MIL's equations are products of stacks of matrices, whose height goes before them."""
    rank = ctx.result_type().rank
    order = [0, 2, 1, 3] if rank == 4 else [1, 0, 2]

    def permute_type(type_: TensorType) -> TensorType:
        return TensorType([type_.shape[axis] for axis in order], type_.dtype)

    sides = [
        ctx.layer("transpose", each, of=permute_type(each.type), axes=order) for each in values
    ]
    found = ctx.layer("batchedMatmul", *sides, of=permute_type(ctx.result_type()))
    return ctx.layer("transpose", found, axes=order)


@DIRECT.exports("trilu", takes=Takes(k=CONSTANT))
def export_trilu(ctx: ProgramContext, data: Value, k: Value, *, upper: bool) -> Value:
    return ctx.emit("trilu", x=data, k=int(ctx.constant(k)), upper=upper)


@LAYERS.exports("trilu")
def export_triangle(ctx: Export, x: Value, *, k: int, upper: bool) -> Value:
    """MIL's bands hold the main diagonal; a triangle begins at any."""
    return ctx.layer("upperTriangular" if upper else "lowerTriangular", x, k=k)
