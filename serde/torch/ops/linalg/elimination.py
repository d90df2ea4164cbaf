"""Determinants, inverses, systems of equations, and triangular factors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, TupleWrapper, broadcast, call
from serde.torch.ops.linalg.product import power_of
from serde.torch.ops.shape.matrix import identity_like
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.torch.ops.written import cast, widen
from serde.walk.pairs import reads


def swap_last(ctx: Import, x: Expr) -> Expr:
    """Return matrices transposed."""
    rank = ctx.type(x).rank
    return relay.transpose(x, axes=[*range(rank - 2), rank - 1, rank - 2])


def no_info(ctx: Import, x: Expr) -> Expr:
    """Return what PyTorch says of matrices of which nothing is wrong: zeros of int32."""
    rank = ctx.type(x).rank
    nothing = relay.zeros_like(relay.cast(x, "int32"))
    return ctx.fold(relay.sum(nothing, axis=[rank - 2, rank - 1]))


@OPS.imports("aten::slogdet")
@OPS.imports("aten::linalg_slogdet", renamed={"A": "self"})
def import_slogdet(ctx: Import, self: Expr) -> list[Expr]:
    return list(TupleWrapper(call("serde.slogdet", self), 2))


@OPS.imports("aten::logdet")
def import_logdet(ctx: Import, self: Expr) -> Expr:
    """What has no positive determinant has no logarithm of it."""
    sign, size = import_slogdet(ctx, self)
    dtype = ctx.dtype(self)
    below = relay.less(sign, ctx.scalar(0, dtype))
    return relay.where(below, ctx.scalar(float("nan"), dtype), size)


@OPS.imports("aten::linalg_inv_ex", ignored=("check_errors",))
def import_linalg_inv_ex(ctx: Import, A: Expr) -> tuple[Expr, Expr]:  # noqa: N803
    """Running it fails where there is no inverse, so the second result is always 0."""
    return call("serde.inverse", A), no_info(ctx, A)


def align_batch(ctx: Import, *matrices: Expr) -> list[Expr]:
    """Return stacks of matrices whose leading axes are alike."""
    batch = broadcast(*(ctx.type(x).shape[:-2] for x in matrices))
    found = []
    for x in matrices:
        shape = (*batch, *ctx.type(x).shape[-2:])
        found.append(x if ctx.type(x).shape == shape else relay.broadcast_to(x, shape))
    return found


@OPS.imports("aten::linalg_solve", renamed={"A": "a", "B": "b"})
def _solve(ctx: Import, a: Expr, b: Expr, *, left: bool = True) -> Expr:
    """A right side with an axis less than the matrices is a vector for each."""
    shape, sides = ctx.type(a).shape, ctx.type(b).shape
    vector = len(sides) == 1 or (len(sides) == len(shape) - 1 and sides == shape[:-1])
    if vector:
        b = relay.expand_dims(b, axis=-1)
    if not left:
        a, b = swap_last(ctx, a), swap_last(ctx, b)
    found = call("serde.solve", *align_batch(ctx, a, b))
    if vector:
        return relay.squeeze(found, axis=[-1])
    return found if left else swap_last(ctx, found)


@OPS.imports("aten::linalg_solve_ex", ignored=("check_errors",))
def import_linalg_solve_ex(
    ctx: Import,
    A: Expr,  # noqa: N803
    B: Expr,  # noqa: N803
    *,
    left: bool = True,
) -> tuple[Expr, Expr]:
    """Running it fails where there is no solution, so the second result is always 0."""
    return _solve(ctx, A, B, left=left), no_info(ctx, A)


@OPS.imports("aten::matrix_power", "aten::linalg_matrix_power")
def import_matrix_power(ctx: Import, self: Expr, *, n: int) -> Expr:
    if n == 0:
        return identity_like(ctx, self)
    return power_of(ctx, call("serde.inverse", self) if n < 0 else self, abs(n))


@OPS.imports("aten::linalg_tensorinv")
def import_tensorinv(ctx: Import, self: Expr, *, ind: int = 2) -> Expr:
    shape = ctx.type(self).concrete_shape
    if shape is None:
        raise Unsupported("the inverse of a tensor whose shape is not fixed")
    head, tail = shape[:ind], shape[ind:]
    rows = 1
    for length in head:
        rows *= length
    found = call("serde.inverse", relay.reshape(self, newshape=(rows, rows)))
    return relay.reshape(found, newshape=(*tail, *head))


@OPS.imports("aten::linalg_tensorsolve")
def import_tensorsolve(
    ctx: Import, self: Expr, other: Expr, *, dims: tuple[int, ...] | None = None
) -> Expr:
    """The axes that belong to the right side come first, or are moved to the end."""
    rank = ctx.type(self).rank
    if dims is not None:
        moved = [ctx.axis(self, axis) for axis in dims]
        kept = [axis for axis in range(rank) if axis not in moved]
        self = relay.transpose(self, axes=[*kept, *moved])
    shape = ctx.type(self).concrete_shape
    if shape is None:
        raise Unsupported("a system of a tensor whose shape is not fixed")
    result = shape[ctx.type(other).rank :]
    columns = math.prod(result)
    matrix = relay.reshape(self, newshape=(-1, columns))
    found = call("serde.solve", matrix, relay.reshape(other, newshape=(-1, 1)))
    return relay.reshape(found, newshape=result)


@OPS.imports("aten::_linalg_solve_ex", ignored=("check_errors",))
def import_plain_solve_ex(
    ctx: Import,
    A: Expr,  # noqa: N803
    B: Expr,  # noqa: N803
    *,
    left: bool = True,
) -> tuple[Expr, Expr, Expr, Expr]:
    """The factors are for training alone, and without elements here."""
    nothing = relay.zeros((0,), ctx.dtype(A))
    places = relay.zeros((0,), "int32")
    return _solve(ctx, A, B, left=left), nothing, places, no_info(ctx, A)


OPS.pairs(
    reads("aten::det", "serde.det"),
    reads("aten::linalg_det", "serde.det", operands="A"),
    reads("aten::inverse", "serde.inverse"),
    reads("aten::linalg_inv", "serde.inverse", operands="A"),
)


def export_function(ctx: Export, data: Value, *, target: str) -> Value:
    x, work = widen(ctx, data)
    return cast(ctx, ctx.call(target, x), ctx.type(data).dtype, work)


for _name, _target in {
    "serde.cholesky": "torch.linalg.cholesky",
    "serde.det": "torch.linalg.det",
    "serde.inverse": "torch.linalg.inv",
}.items():
    OPS.exports(_name)(partial(export_function, target=_target))


def make_parts_exporter(target: str, outputs: int, **options: object) -> Callable[..., object]:
    def export_parts(ctx: Export, data: Value) -> tuple[Value, ...]:
        x, work = widen(ctx, data)
        name = target if "." in target else ctx.helper(target)
        found = ctx.call_tuple(name, x, outputs=outputs, **options)
        return tuple(cast(ctx, each, ctx.type(data).dtype, work) for each in found)

    return export_parts


OPS.exports("serde.slogdet")(make_parts_exporter("torch.linalg.slogdet", 2))


@OPS.exports("serde.solve")
def export_solve(ctx: Export, a: Value, b: Value) -> Value:
    (x, work), (y, _) = widen(ctx, a), widen(ctx, b)
    return cast(ctx, ctx.call("torch.linalg.solve", x, y), ctx.type(b).dtype, work)


@OPS.imports("aten::cholesky", "aten::linalg_cholesky")
def import_cholesky(ctx: Import, self: Expr, *, upper: bool = False) -> Expr:
    """Either triangle is that of a symmetric matrix, of which PyTorch reads the one asked for."""
    if not upper:
        return call("serde.cholesky", self)
    return swap_last(ctx, call("serde.cholesky", swap_last(ctx, self)))


@OPS.imports("aten::linalg_cholesky_ex", ignored=("check_errors",))
def import_cholesky_ex(ctx: Import, self: Expr, *, upper: bool = False) -> tuple[Expr, Expr]:
    """The second result is 0, as of matrices that have such a factor."""
    return import_cholesky(ctx, self, upper=upper), no_info(ctx, self)


def _triangular(ctx: Import, a: Expr, b: Expr, upper: bool, transpose: bool, unit: bool) -> Expr:
    """Return the solution of systems of a triangle, whose diagonal may count as ones."""
    if unit:
        identity = identity_like(ctx, a)
        on_diagonal = relay.not_equal(identity, ctx.scalar(0, ctx.dtype(a)))
        a = relay.where(on_diagonal, identity, a)
    one, two = align_batch(ctx, a, b)
    return call("serde.triangular_solve", one, two, lower=not upper, transpose=transpose)


@OPS.imports("aten::linalg_solve_triangular")
def import_solve_triangular(
    ctx: Import,
    self: Expr,
    B: Expr,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Expr:
    if left:
        return _triangular(ctx, self, B, upper, False, unitriangular)
    found = _triangular(ctx, self, swap_last(ctx, B), upper, True, unitriangular)
    return swap_last(ctx, found)


@OPS.imports("aten::triangular_solve")
def import_triangular_solve(
    ctx: Import,
    self: Expr,
    A: Expr,  # noqa: N803
    *,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Expr, Expr]:
    found = _triangular(ctx, A, self, upper, transpose, unitriangular)
    return found, align_batch(ctx, A, self)[0]


@OPS.imports("aten::cholesky_solve")
def import_cholesky_solve(ctx: Import, self: Expr, input2: Expr, *, upper: bool = False) -> Expr:
    """The factor is that of the matrix of the system, which is solved in two steps."""
    half = _triangular(ctx, input2, self, upper, upper, False)
    return _triangular(ctx, input2, half, upper, not upper, False)


@OPS.imports("aten::cholesky_inverse")
def import_cholesky_inverse(ctx: Import, self: Expr, *, upper: bool = False) -> Expr:
    return import_cholesky_solve(ctx, identity_like(ctx, self), self, upper=upper)


@OPS.exports("serde.triangular_solve")
def export_triangular_solve(
    ctx: Export, a: Value, b: Value, *, lower: bool, transpose: bool
) -> Value:
    (x, work), (y, _) = widen(ctx, a), widen(ctx, b)
    if transpose:
        x = ctx.method(x, "transpose", -2, -1)
    upper = lower == transpose
    found = ctx.call("torch.linalg.solve_triangular", x, y, upper=upper)
    return cast(ctx, found, ctx.type(b).dtype, work)
