"""The product of stacks of matrices of any number of axes, as NumPy has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Expr, Fusion, FusionPattern, TensorType, broadcast, join_dim, tensor_type
from serde.relay.ir.dims import Dim, product, same_shape
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.work import PRODUCT
from serde.relay.op.linalg.product import exact_operand, product_dtype, to_product_dtype


def _stacked_type(a: TensorType, b: TensorType) -> TensorType:
    if not a.rank or not b.rank:
        raise TypeInferenceError(f"cannot multiply {a!r} by {b!r}")
    dtype = product_dtype(a, b, None)
    try:
        join_dim(a.shape[-1], b.shape[-2] if b.rank > 1 else b.shape[0])
        batch = broadcast(a.shape[:-2], b.shape[:-2])
    except TypeInferenceError:
        raise TypeInferenceError(f"cannot multiply {a!r} by {b!r}") from None
    columns = b.shape[-1:] if b.rank > 1 else ()
    return TensorType((*batch, *a.shape[-2:-1], *columns), dtype)


def _decompose_stacked(a: Expr, b: Expr) -> Expr:
    """All axes before the matrices are joined; where lengths are not known, by a sum of products.

    A vector is a matrix meanwhile.
    """
    left, right = tensor_type(a), tensor_type(b)
    if right.rank == 1:
        column = call("expand_dims", b, axis=1)
        return call("squeeze", _decompose_stacked(a, column), axis=(left.rank - 1,))
    if left.rank == 1:
        found = _decompose_stacked(call("expand_dims", a, axis=0), b)
        return call("squeeze", found, axis=(right.rank - 2,))
    if right.rank == 2:
        return call("nn.matmul", a, b, units=None)
    if left.rank == right.rank == 3:
        return call("nn.batch_matmul", a, b)
    own, other = left.shape[:-2], right.shape[:-2]
    if same_shape(own, other):
        found = call("nn.batch_matmul", _join_batch_axes(a), _join_batch_axes(b))
        return call("reshape_like", found, a, lhs_end=1, rhs_end=len(own))
    if left.concrete_shape is None or right.concrete_shape is None:
        return call("einsum", (a, b), equation="...ij,...jk->...ik")
    batch = broadcast(own, other)
    found = call("nn.batch_matmul", _one_batch(a, batch), _one_batch(b, batch))
    return call("reshape", found, newshape=(*batch, left.shape[-2], right.shape[-1]))


def _join_batch_axes(data: Expr) -> Expr:
    """Return `data` with the axes before its matrices joined, two at a time."""
    for _ in range(tensor_type(data).rank - 3):
        data = call("reshape", data, newshape=(-3, -2))
    return data


def _one_batch(data: Expr, batch: Sequence[Dim]) -> Expr:
    """Return `data` with the axes before its matrices broadcast to `batch` and joined."""
    shape = tensor_type(data).shape
    own, matrix = shape[:-2], shape[-2:]
    if all(dim == 1 for dim in own):
        return call("reshape", data, newshape=(1, *matrix))
    if tuple(own) != tuple(batch):
        data = call("broadcast_to", data, shape=(*batch, *matrix))
    return call("reshape", data, newshape=(product(batch), *matrix))


@relay_op(
    "serde.matmul",
    traits=(PRODUCT, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
    infer=_stacked_type,
    decompose=_decompose_stacked,
    samples=[
        sample((2, 3, 4, 5), (2, 3, 5, 6)),
        sample((2, 1, 4, 5), (3, 5, 6)),
        sample((3, 2, 4, 5), (5, 6)),
        sample((5,), (2, 5, 6)),
        sample((2, 2, 4, 5), (5,)),
        sample((4,), (4,)),
        sample(tensor((2, 3, 4), "int32"), tensor((4, 2), "int32")),
    ],
)
def matmul_of_stacks(a: Array, b: Array) -> Array:
    """Products of the matrices that the last two axes are; the axes before them broadcast.

    A vector on the left is a row, on the right a column, and has no axis in the result.
    """
    depth = a.shape[-1]
    total = np.matmul(exact_operand(a, depth), exact_operand(b, depth))
    return to_product_dtype(np.asarray(total), a, None)
