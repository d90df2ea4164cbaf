"""Places drawn by weights, with or without repetition, and orders drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.mxnet.ops.random.distributions import Sample, gumbel
from serde.mxnet.ops.random.samplers import DType, Size, lengths, sample_like
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Dim, Expr, call

INT32 = np.dtype(np.int32)


def _unit(shape: Sequence[int]) -> Expr:
    """Return numbers from 0 up to but not including 1, fine enough to be told apart."""
    return Sample("float64", tuple(shape)).draw("serde.random_uniform")


def _reach(weights: Expr) -> Expr:
    """Return below which numbers each place but the last is drawn, all others fall to that."""
    sums = relay.cumsum(relay.cast(weights, "float64"), axis=-1)
    return relay.strided_slice(sums, [0], [-1], [1], axes=[-1])


def _draw_indices(weights: Expr, shape: Sequence[int]) -> Expr:
    """Return indices of a vector of weights that sum to one, as int64 of a shape."""
    unit = relay.expand_dims(_unit(shape), axis=-1)
    passed = relay.greater_equal(unit, _reach(weights))
    return relay.sum(relay.cast(passed, "int64"), axis=-1)


def _rows(lead: Sequence[Dim], drawn: Expr, shape: Sequence[int]) -> Expr:
    """Return numbers with the leading axes that were rows, and `shape` behind."""
    if len(lead) == len(shape) == 1:
        return drawn
    if any(not isinstance(dim, int) for dim in lead[1:]):
        raise Unsupported(f"needs fixed lengths of axes, found {list(lead)}")
    first = lead[0] if lead and isinstance(lead[0], int) else -1
    return relay.reshape(drawn, newshape=((first, *lead[1:]) if lead else ()) + tuple(shape))


@OPS.imports("_sample_multinomial")
def import_sample_multinomial(
    ctx: Import, data: Expr, *, shape: Size = (), get_prob: bool = False, dtype: DType = INT32
) -> list[Expr]:
    """Of one distribution that is not told how often, one place is drawn, in a vector."""
    type_ = ctx.type(data)
    *lead, classes = type_.shape
    wanted = lengths(shape or ())
    behind = wanted if lead or wanted else (1,)
    count = math.prod(wanted)
    if not count:
        result = (*ctx.static_shape(data)[:-1], *wanted)
        kinds = [dtype_name(dtype), type_.dtype][: 2 if get_prob else 1]
        return [relay.zeros(result, kind) for kind in kinds]
    if not isinstance(classes, int):
        raise Unsupported("needs a fixed number of places")
    rows = data if len(lead) == 1 else relay.reshape(data, newshape=(-1, classes))
    odds = relay.log(rows)
    drawn = call("serde.multinomial", relay.cast(odds, "float32"), sample_size=count)
    indices = relay.cast(_rows(lead, drawn, behind), dtype_name(dtype))
    if not get_prob:
        return [indices]
    return [indices, _rows(lead, relay.gather(odds, 1, drawn), behind)]


@OPS.imports("_npi_multinomial")
def import_multinomial(
    ctx: Import, *inputs: Expr, n: int, pvals: tuple[float, ...] | None = None, size: Size = None
) -> Expr:
    """How often each place comes up in `n` trials; the last has what the others leave of one."""
    if len(inputs) != (pvals is None):
        raise Unsupported(f"{len(inputs)} tensors beside pvals={pvals}")
    weights = inputs[0] if inputs else relay.Constant(np.array(pvals))
    ctx.ranked(weights, 1)
    (indices,) = ctx.static_shape(weights)
    drawn = _draw_indices(weights, (*lengths(size or ()), n))
    marks = relay.equal(
        relay.expand_dims(drawn, axis=-1), relay.Constant(allocation.arange(indices))
    )
    return relay.sum(relay.cast(marks, "int64"), axis=-2)


@OPS.imports("_npi_choice", ignored=("ctx",))
def import_choice(
    ctx: Import,
    *inputs: Expr,
    a: int | None,
    size: Size,
    replace: bool = True,
    weighted: bool = False,
) -> Expr:
    """Places, also where `a` is a tensor: MXNet's own functions look up what is at them."""
    if len(inputs) != (a is None) + weighted:
        raise Unsupported(f"{len(inputs)} tensors for a={a}, weighted={weighted}")
    if a is None:
        ctx.ranked(inputs[0], 1)
        (a,) = ctx.static_shape(inputs[0])
    wanted = lengths(size or ())
    count = math.prod(wanted)
    if replace:
        if weighted:
            return _draw_indices(inputs[-1], wanted)
        scaled = relay.multiply(_unit(wanted), relay.const(float(a), "float64"))
        return relay.cast(relay.floor(scaled), "int64")
    if count > a:
        raise Unsupported(f"{count} of {a} places without repetition")
    found = _heaviest(inputs[-1], a, count) if weighted else _reservoir(a, count)
    return relay.reshape(found, newshape=wanted)


def _heaviest(weights: Expr, indices: int, count: int) -> Expr:
    """Return indices in the order in which draws without repetition bring them up.

    That is the order of their weights' logarithms, to each of which a number of Gumbel's
    distribution is added.
    """
    odds = relay.log(relay.cast(weights, "float64"))
    keys = relay.add(odds, gumbel(Sample("float64", (indices,)), 0.0, 1.0))
    return relay.topk(keys, k=count, axis=-1, ret_type="indices", dtype="int64")


def _reservoir(indices: int, count: int) -> Expr:
    """Return the last index that took each position of the result, which is its own first."""
    own = allocation.arange(count)
    later = allocation.arange(count, indices)
    if not later.size or not count:
        return relay.Constant(own)
    scaled = relay.multiply(_unit(later.shape), relay.Constant(later + 1.0))
    taken = relay.equal(relay.cast(relay.floor(scaled), "int64"), relay.Constant(own[:, None]))
    last = relay.max(
        relay.where(taken, relay.Constant(later), relay.Constant(np.int64(-1))), axis=-1
    )
    return relay.maximum(last, relay.Constant(own))


@OPS.imports("_shuffle")
def import_shuffle(ctx: Import, data: Expr) -> Expr:
    """Whole slices of the first axis are exchanged."""
    like = data
    for _ in range(ctx.type(data).rank - 1):
        like = relay.take(like, relay.const(0, "int64"), axis=-1)
    keys = sample_like(ctx, like, "float64").draw("serde.random_uniform")
    return relay.take(data, relay.argsort(keys, axis=0, dtype="int64"), axis=0)


@OPS.imports("_sample_unique_zipfian")
def import_sample_unique_zipfian(
    ctx: Import, *, range_max: int, shape: tuple[int, ...] | None = None
) -> list[Expr]:
    """Numbers that are near to uniform on a scale of logarithms, those that come up again left out.

    How many draws that took follows from what is drawn: before each new number the draws that
    bring an old one are geometrically distributed.
    """
    if shape is None or len(shape) != 2 or not 0 < shape[1] <= range_max:
        raise Unsupported(f"shape {shape}: expected rows of 1 to {range_max} numbers")
    indices = allocation.arange(float(range_max))
    spread = np.log(np.minimum(indices + 1.5, range_max) / np.maximum(indices + 0.5, 1.0))
    odds = spread / spread.sum()
    rows, count = shape
    keys = gumbel(Sample("float64", (rows, range_max)), 0.0, 1.0)
    keys = relay.add(keys, relay.Constant(np.log(odds)))
    found = relay.topk(keys, k=count, axis=-1, ret_type="indices", dtype="int64")
    if ctx.outputs == 1:
        return [found]
    seen = relay.cumsum(relay.take(relay.Constant(odds), found, axis=0), axis=-1)
    seen = relay.strided_slice(seen, [0], [count - 1], [1], axes=[-1])
    unit = Sample("float64", (rows, count - 1)).unit()
    again = relay.floor(relay.divide(relay.log(unit), relay.log(seen)))
    tries = relay.sum(relay.cast(again, "int64"), axis=-1)
    return [found, relay.add(tries, relay.const(count, "int64"))]
