"""Dense layers and matrix products, those of sparse storage too."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.shape.create import axis_indices
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, TensorType, call, normalize_axes, same_length
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.op.linalg.product import MatMul


@dataclass(frozen=True, kw_only=True)
class Transposes:
    """Whether the operands of a product are transposed."""

    transpose_a: bool = False
    transpose_b: bool = False


@OPS.imports("FullyConnected")
def import_fully_connected(
    ctx: Import, data: Expr, weight: Expr, bias: Expr | None = None,
    *, num_hidden: int, no_bias: bool = False, flatten: bool = True,
) -> Expr:  # fmt: skip
    rank = ctx.type(data).rank
    if flatten and rank == 1:
        data = relay.expand_dims(data, 1)
    elif flatten and rank > 2:
        data = relay.nn.batch_flatten(data)
    result = relay.nn.dense(data, weight, units=num_hidden)
    if bias is None or no_bias:
        return result
    return relay.nn.bias_add(result, bias, axis=-1)


@OPS.imports("batch_dot", ignored=("forward_stype",))
def import_batch_dot(ctx: Import, lhs: Expr, rhs: Expr, *, transposes: Transposes) -> Expr:
    left, right = ctx.type(lhs), ctx.type(rhs)
    if left.rank != right.rank or left.rank < 3:
        raise Unsupported(f"expected two tensors of one rank of 3 or more, found {left}, {right}")
    if left.rank == 3:
        return relay.nn.batch_matmul(
            lhs, rhs, transpose_a=transposes.transpose_a, transpose_b=transposes.transpose_b
        )
    order = (*range(left.rank - 2), left.rank - 1, left.rank - 2)
    matrices = [
        relay.transpose(x, order) if transposed else x
        for x, transposed in ((lhs, transposes.transpose_a), (rhs, transposes.transpose_b))
    ]
    return relay.serde.matmul(*matrices)


@OPS.imports("dot", ignored=("forward_stype",))
def import_dot(ctx: Import, lhs: Expr, rhs: Expr, *, transposes: Transposes) -> Expr:
    """Contracts the last axis of the left with the first of the right.

    Transposed, it is the first axis of the left or the last of the right; no other axis moves.
    """
    left, right = ctx.type(lhs).rank, ctx.type(rhs).rank
    if (left, right) == (1, 1):
        return relay.sum(relay.multiply(lhs, rhs), axis=(0,), keepdims=True)
    if right == 2 and (left == 2 or (left > 2 and not transposes.transpose_a)):
        return relay.nn.matmul(
            lhs, rhs, transpose_a=transposes.transpose_a, transpose_b=transposes.transpose_b
        )
    first = 0 if transposes.transpose_a else left - 1
    second = right - 1 if transposes.transpose_b else 0
    return _contract(lhs, rhs, [first], [second])


@OPS.imports("_npi_einsum")
def import_einsum(
    ctx: Import, *data: Expr, subscripts: str, num_args: int = 0, optimize: int = 0
) -> Expr:
    """Spaces mean nothing. ONNX Runtime has sums of floats, int32 and int64."""
    equation = subscripts.replace(" ", "")
    dtype = ctx.type(ctx.first(data)).dtype
    if dtype not in ("bool", "int8", "uint8"):
        return relay.einsum(data, equation)
    wide = relay.einsum([relay.cast(each, "int32") for each in data], equation)
    return relay.cast(wide, dtype)


@OPS.imports("_npi_matmul")
def import_matmul(ctx: Import, a: Expr, b: Expr) -> Expr:
    """A vector on the left is a row, on the right a column."""
    left, right = ctx.type(a).rank, ctx.type(b).rank
    if right == 2 and left > 1:
        return relay.nn.matmul(a, b)
    if left == right == 3:
        return relay.nn.batch_matmul(a, b, transpose_b=False)
    return call("serde.matmul", a, b)


@OPS.imports("_np_dot")
def import_np_dot(ctx: Import, a: Expr, b: Expr) -> Expr:
    """Contracts the last axis of the left with the last but one of the right."""
    left, right = ctx.type(a).rank, ctx.type(b).rank
    if not left or not right:
        return relay.multiply(a, b)
    if right <= 2:
        return import_matmul(ctx, a, b)
    return _contract(a, b, [left - 1], [right - 2])


def _contract(a: Expr, b: Expr, left: Sequence[int], right: Sequence[int]) -> Expr:
    """Return the sum of products over pairs of axes; the others stay in their order."""
    if len(left) != len(right):
        raise Unsupported(f"{len(left)} axes against {len(right)}")
    ranks = [each.checked_type.rank for each in (a, b)]  # type: ignore[union-attr]
    left, right = normalize_axes(left, ranks[0]), normalize_axes(right, ranks[1])
    if sum(ranks) > len(ascii_letters):
        raise Unsupported(f"a product of tensors of rank {ranks[0]} and {ranks[1]}")
    letters = iter(ascii_letters)
    first = [next(letters) for _ in range(ranks[0])]
    pairs = {axis % ranks[1]: first[other] for axis, other in zip(right, left, strict=True)}
    second = [pairs.get(axis) or next(letters) for axis in range(ranks[1])]
    shared = set(pairs.values())
    kept = [letter for letter in (*first, *second) if letter not in shared]
    return relay.einsum([a, b], f"{''.join(first)},{''.join(second)}->{''.join(kept)}")


@OPS.imports("_npi_tensordot")
def import_tensordot(
    ctx: Import, a: Expr, b: Expr, *, a_axes_summed: tuple[int, ...], b_axes_summed: tuple[int, ...]
) -> Expr:
    return _contract(a, b, a_axes_summed, b_axes_summed)


@OPS.imports("_npi_tensordot_int_axes")
def import_tensordot_int_axes(ctx: Import, a: Expr, b: Expr, *, axes: int) -> Expr:
    """The last axes of the left meet the first of the right."""
    left, right = ctx.type(a).rank, ctx.type(b).rank
    if not 0 <= axes <= min(left, right):
        raise Unsupported(f"axes={axes} of tensors of rank {left} and {right}")
    if axes == 1 and left > 1 and right == 2:
        return relay.nn.matmul(a, b)
    return _contract(a, b, range(left - axes, left), range(axes))


@OPS.imports("_npi_polyval")
def import_polyval(ctx: Import, p: Expr, x: Expr) -> Expr:
    """Horner's rule, one coefficient after the other."""
    dtype = ctx.type(x).dtype
    wide = "int32" if dtype in ("int8", "uint8") else dtype
    given, factors = (relay.cast(each, wide) if wide != dtype else each for each in (x, p))
    if ctx.ranked(p, 1).shape[0] == 0:
        return relay.zeros_like(x)
    value, factor = Var("value", ctx.type(given)), Var("factor", TensorType((), wide))
    place = Var("place", ctx.type(given))
    following = relay.add(relay.multiply(value, place), factor)
    body = Function([value, factor, place], Tuple([following]))
    scan = call("serde.scan", [relay.zeros_like(given)], [factors], [given], body=body)
    found = TupleGetItem(scan, 0)
    return relay.cast(found, dtype) if wide != dtype else found


Product = Callable[[Expr, Expr], Expr]


def in_floats(ctx: Export, left: Value, right: Value, depth: Dim, product: Product) -> Value | None:
    """Return a product of what MXNet multiplies in another dtype, None where it has the dtype.

    MXNet multiplies matrices of float32 and float64 on the CPU. float16 goes through float32.
    Sums of products of 8 bits fit the mantissa of float64 as long as there are 2**37 of them at
    most; those of wider integers do not, and are refused here.
    """
    dtypes = {ctx.type(left).dtype, ctx.type(right).dtype}
    result = ctx.result_type().dtype
    if dtypes <= {"float32", "float64"} and dtypes == {result}:
        return None
    if not dtypes <= {"int8", "uint8", "bool"}:
        floats = dtypes | {result} <= {"float16", "float32", "float64"}
        if not floats:
            raise Unsupported(f"a product of {', '.join(sorted(dtypes))}")
        wide = "float64" if "float64" in dtypes | {result} else "float32"
        return ctx.spell(
            lambda a, b: relay.cast(product(relay.cast(a, wide), relay.cast(b, wide)), result),
            left,
            right,
        )
    if not isinstance(depth, int) or depth > 2**37:
        raise Unsupported(f"sums of {depth} products of integers")

    def build(a: Expr, b: Expr) -> Expr:
        total = product(relay.cast(a, "float64"), relay.cast(b, "float64"))
        return relay.cast(relay.cast(total, "int64"), result)

    return ctx.spell(build, left, right)


def _wide_integers(ctx: Export, left: Value, right: Value) -> bool:
    return bool({ctx.type(left).dtype, ctx.type(right).dtype} & {"int32", "int64"})


def _sum_products(ctx: Export, left: Value, right: Value, subscripts: str) -> Value:
    """Return a product of wide integers, which wrap around as they do in Relay."""
    type_ = ctx.result_type()
    terms = [ctx.cast(x, type_.dtype) for x in (left, right)]
    return ctx.emit("_npi_einsum", *terms, num_args=2, subscripts=subscripts, optimize=0)


@OPS.exports("nn.dense", ignored=("units", "out_dtype"))
def export_dense(ctx: Export, data: Value, weight: Value, bias: Value | None = None) -> Value:
    """A flattening that came out of the same layer goes back into it."""
    if bias is not None and ctx.type(data).dtype != ctx.result_type().dtype:
        raise Unsupported(f"a bias of {ctx.result_type().dtype}")
    if _wide_integers(ctx, data, weight):
        result = _sum_products(ctx, data, weight, "...k,nk->...n")
    else:
        depth = ctx.type(weight).shape[1]
        converted = in_floats(ctx, data, weight, depth, lambda a, b: relay.nn.dense(a, b, None))
        if converted is None:
            flat = ctx.type(data).rank == 2
            return ctx.emit(
                "FullyConnected", ctx.absorb(data, "Flatten") if flat else data, weight, bias,
                num_hidden=ctx.static_shape(weight)[0], no_bias=bias is None, flatten=flat,
            )  # fmt: skip
        result = converted
    if bias is None:
        return result
    return ctx.spell(relay.add, ctx.typed(result, ctx.result_type()), bias)


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Export, data: Value, bias: Value, *, axis: int) -> Value:
    """One that no layer takes as its own is an addition."""
    type_ = ctx.type(data)
    shape: list[Dim] = [1] * type_.rank
    shape[axis] = ctx.type(bias).shape[0]
    return ctx.spell(lambda x, b: relay.add(x, relay.reshape(b, shape)), data, bias)


@OPS.exports("nn.matmul")
def export_matmul(ctx: Export, tensor_a: Value, tensor_b: Value, *, matmul: MatMul) -> Value:
    """MXNet's dot moves no axis but the last of the left: it is transposed beforehand."""
    rank = ctx.type(tensor_a).rank
    flags: dict[str, AnyValue] = {
        "transpose_a": matmul.transpose_a, "transpose_b": matmul.transpose_b
    }  # fmt: skip
    if _wide_integers(ctx, tensor_a, tensor_b):
        letters = "...km" if matmul.transpose_a else "...mk"
        right = "nk" if matmul.transpose_b else "kn"
        return _sum_products(ctx, tensor_a, tensor_b, f"{letters},{right}->...mn")
    depth = ctx.type(tensor_b).shape[1 if matmul.transpose_b else 0]
    result = in_floats(
        ctx, tensor_a, tensor_b, depth, lambda a, b: relay.nn.matmul(a, b, None, **flags)
    )
    if result is not None:
        return result
    if rank == 2:
        return ctx.emit("dot", tensor_a, tensor_b, **flags)
    if matmul.transpose_a:
        order = list(range(rank))
        order[-1], order[-2] = order[-2], order[-1]
        tensor_a = ctx.emit("transpose", tensor_a, axes=order)
    return ctx.emit("dot", tensor_a, tensor_b, transpose_b=matmul.transpose_b)


@OPS.exports("nn.batch_matmul", ignored=("out_dtype",))
def export_batch_matmul(
    ctx: Export, tensor_a: Value, tensor_b: Value, *, transpose_a: bool, transpose_b: bool
) -> Value:
    """A batch of one serves all of the other's in ``_npi_matmul``, which transposes nothing."""
    flags: dict[str, AnyValue] = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    left, right = ctx.type(tensor_a), ctx.type(tensor_b)
    if _wide_integers(ctx, tensor_a, tensor_b):
        first, second = ("km" if transpose_a else "mk"), ("nk" if transpose_b else "kn")
        return _sum_products(ctx, tensor_a, tensor_b, f"...{first},...{second}->...mn")
    depth = right.shape[2 if transpose_b else 1]
    result = in_floats(
        ctx, tensor_a, tensor_b, depth, lambda a, b: relay.nn.batch_matmul(a, b, **flags)
    )
    if result is not None:
        return result
    if same_length(left.shape[0], right.shape[0]):
        return ctx.emit("batch_dot", tensor_a, tensor_b, **flags)
    matrices = [
        ctx.emit("transpose", x, axes=(0, 2, 1)) if transposed else x
        for x, transposed in ((tensor_a, transpose_a), (tensor_b, transpose_b))
    ]
    return ctx.emit("_npi_matmul", *matrices)


@OPS.exports("einsum")
def export_einsum(ctx: Export, data: tuple[Value, ...], *, equation: str) -> Value:
    """MXNet adds float16 up in float16."""
    if ctx.result_type().dtype == "float16":

        def build(*terms: Expr) -> Expr:
            wide = [relay.cast(term, "float32") for term in terms]
            return relay.cast(relay.einsum(wide, equation), "float16")

        return ctx.spell(build, *data)
    flags = _as_dot(equation) if ctx.result_type().dtype in ("float32", "float64") else None
    if flags is not None:
        return ctx.emit("dot", *data, transpose_a=flags[0], transpose_b=flags[1])
    return ctx.emit(
        "_npi_einsum", *data, num_args=len(data), subscripts=equation.replace(" ", ""), optimize=0
    )


def _as_dot(equation: str) -> tuple[bool, bool] | None:
    """Return the transpositions of the ``dot`` that an equation is; None if it is none."""
    found = _DOT.fullmatch(equation.replace(" ", ""))
    if found is None:
        return None
    left, right, result = found.groups()
    shared = set(left) & set(right)
    if len(shared) != 1 or any(len(set(term)) < len(term) for term in (left, right)):
        return None
    letter = shared.pop()
    ends = (letter in (left[0], left[-1]), letter in (right[0], right[-1]))
    if not all(ends) or result != (left + right).replace(letter, "") or not result:
        return None
    return left[-1] != letter, right[0] != letter


_DOT = re.compile(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]*)")


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
def import_cast_storage(ctx: Import, data: Expr) -> Expr:
    return data


@OPS.imports("_sparse_retain")
def import_sparse_retain(ctx: Import, data: Expr, indices: Expr) -> Expr:
    """The rows that are named stay, the others are zero."""
    rows = relay.expand_dims(axis_indices(ctx, data, 0), 1)
    named = relay.equal(rows, relay.cast(indices, "int32"))
    kept = relay.any(named, axis=(1,))
    rank = ctx.type(data).rank
    if rank > 1:
        kept = relay.expand_dims(kept, 1, rank - 1)
    return relay.where(kept, data, scalar_like(ctx, data, 0))
