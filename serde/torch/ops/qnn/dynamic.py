"""Layers whose data are quantised when they run, by their least and greatest element.

All that enters a layer is quantised at once, the state before every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, TupleGetItem, Var, call
from serde.relay.op.control.body import close
from serde.torch.ops.conv.windows import SPATIAL
from serde.torch.ops.qnn.layers import LINEAR, Input, scale_products, sum_products
from serde.torch.ops.qnn.parameters import ACTIVATIONS, round_levels
from serde.torch.ops.table import OPS, Import
from serde.torch.quantization import PackedCell, PackedParams

_LEAST_SCALE = 6.1e-5
"""Below this the range is widened, so that the inverse of a scale stays exact enough."""


def choose_parameters(ctx: Import, x: Expr, most: int) -> tuple[Expr, Expr]:
    """Return scale, in float32, and zero point, in int32, of the range 0 to `most`.

    Source: ``ChooseQuantizationParams`` of PyTorch's ``QuantUtils.h``.
    """
    zero = ctx.scalar(0.0, "float64")
    low = relay.minimum(relay.cast(relay.min(x), "float64"), zero)
    high = relay.maximum(relay.cast(relay.max(x), "float64"), zero)
    steps = ctx.scalar(most, "float64")
    scale: Expr = relay.divide(relay.subtract(high, low), steps)
    none = relay.equal(relay.cast(scale, "float32"), ctx.scalar(0.0, "float32"))
    scale = relay.where(none, ctx.scalar(0.1, "float64"), scale)
    least = ctx.scalar(_LEAST_SCALE, "float32")
    narrow = relay.cast(scale, "float32")
    small = relay.less(narrow, least)
    ratio = relay.cast(relay.divide(least, narrow), "float64")
    reach = ctx.scalar(float(np.float32(_LEAST_SCALE) * np.float32(most)), "float64")
    wide_low = _widen(low, high, ratio, relay.negative(reach), zero)
    wide_high = _widen(high, low, ratio, reach, zero)
    low, high = relay.where(small, wide_low, low), relay.where(small, wide_high, high)
    scale = relay.where(small, relay.cast(least, "float64"), scale)
    below, above = relay.divide(low, scale), relay.divide(high, scale)
    from_low = relay.negative(below)
    from_high = relay.subtract(steps, above)
    nearer = relay.less(relay.abs(below), relay.add(steps, relay.abs(above)))
    point = relay.where(nearer, from_low, from_high)
    point = call("serde.round_even", relay.clip(point, 0.0, float(most)))
    return relay.cast(scale, "float32"), relay.cast(point, "int32")


def _widen(bound: Expr, other: Expr, ratio: Expr, reach: Expr, zero: Expr) -> Expr:
    """Return a bound of a range that is too narrow, brought to the least scale."""
    whole = relay.where(relay.equal(other, zero), reach, relay.multiply(bound, ratio))
    return relay.where(relay.equal(bound, zero), zero, whole)


def quantize_dynamically(ctx: Import, x: Expr, reduce_range: bool) -> Input:
    """Return data as bytes, with their scale and zero point."""
    scale, point = choose_parameters(ctx, x, 127 if reduce_range else 255)
    inverse = relay.divide(ctx.scalar(1.0, "float32"), scale)
    product = relay.multiply(relay.cast(x, "float64"), relay.cast(inverse, "float64"))
    level = relay.cast(relay.add(product, relay.cast(point, "float64")), "float32")
    return Input(round_levels(level, "uint8"), scale, point)


def run_dynamic(ctx: Import, x: Expr, packed: PackedParams, reduce_range: bool) -> Expr:
    """Return what a layer gives for floats, in floats."""
    if packed.scale is None:
        filters = relay.cast(packed.weight, "float32")
        found = relay.nn.dense(x, filters, units=None)
        return found if packed.bias is None else relay.nn.bias_add(found, packed.bias, axis=-1)
    given = quantize_dynamically(ctx, x, reduce_range)
    return scale_products(ctx, sum_products(ctx, given, packed), packed, given)


def _import_layer_dynamic(
    ctx: Import,
    qx: Expr,
    *,
    packed_weight: PackedParams,
    reduce_range: bool = False,
    activate: Callable[[Expr], Expr] | None,
) -> Expr:
    found = run_dynamic(ctx, qx, packed_weight, reduce_range)
    return activate(found) if activate else found


for _suffix, _activate in ACTIVATIONS.items():
    _names = (f"quantized::linear{_suffix}_dynamic", f"quantized::linear{_suffix}_dynamic_fp16")
    OPS.imports(*_names, renamed=LINEAR)(partial(_import_layer_dynamic, activate=_activate))
for _ndim in SPATIAL:
    _names = (f"quantized::conv{_ndim}d_dynamic", f"quantized::conv_transpose{_ndim}d_dynamic")
    OPS.imports(*_names)(partial(_import_layer_dynamic, activate=None))


Step = Callable[[Expr, Expr, Sequence[Expr]], list[Expr]]
"""Makes the next states of what enters, of the product with the state, and of the states."""


@dataclass(frozen=True, kw_only=True)
class QuantizedStack:
    """Attributes of a stack of layers."""

    params: tuple[PackedCell, ...]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool

    def cells(self) -> list[tuple[PackedCell, ...]]:
        """Return the cells of each layer."""
        if self.dropout and self.train and self.num_layers > 1:
            raise Unsupported("dropout of a module in training", hint="call its eval() before")
        count = 2 if self.bidirectional else 1
        if len(self.params) != count * self.num_layers:
            raise Unsupported(f"{len(self.params)} cells for {self.num_layers} layers")
        return [self.params[count * i : count * (i + 1)] for i in range(self.num_layers)]


def _split(x: Expr, count: int) -> list[Expr]:
    return list(relay.split(x, count, axis=1))


def _step_lstm(entering: Expr, product: Expr, states: Sequence[Expr]) -> list[Expr]:
    take, keep, new, give = _split(relay.add(product, entering), 4)
    kept = relay.multiply(relay.sigmoid(keep), states[1])
    cell = relay.add(kept, relay.multiply(relay.sigmoid(take), relay.tanh(new)))
    return [relay.multiply(relay.sigmoid(give), relay.tanh(cell)), cell]


def _step_gru(entering: Expr, product: Expr, states: Sequence[Expr]) -> list[Expr]:
    entered, recurrent = _split(entering, 3), _split(product, 3)
    reset, update = (
        relay.sigmoid(relay.add(a, b)) for a, b in zip(recurrent[:2], entered[:2], strict=True)
    )
    new = relay.tanh(relay.add(entered[2], relay.multiply(reset, recurrent[2])))
    kept = relay.multiply(relay.subtract(states[0], new), update)
    return [relay.add(kept, new)]


def _run_direction(
    ctx: Import, step: Step, cell: PackedCell, x: Expr, states: Sequence[Expr], backwards: bool
) -> list[Expr]:
    """Return outputs and last states of one direction of one layer, time first."""
    ih, hh = cell.layers
    entering = run_dynamic(ctx, x, ih, cell.reduce_range)
    type_ = ctx.type(entering)
    row = Var("row", TensorType(type_.shape[1:], type_.dtype))
    carried = [Var(f"state{place}", each.type) for place, each in enumerate(states)]
    product = run_dynamic(ctx, carried[0], hh, cell.reduce_range)
    later = step(row, product, carried)
    body, captures = close([*carried, row], [*later, later[0]])
    direction = (True,) if backwards else ()
    walked = call(
        "serde.scan", tuple(states), (entering,), captures, body=body, reverse=direction,
        out_reverse=direction,
    )  # fmt: skip
    finals: list[Expr] = [TupleGetItem(walked, place) for place in range(len(states))]
    return [TupleGetItem(walked, len(states)), *finals]


def _run_stack(
    ctx: Import, step: Step, stack: QuantizedStack, x: Expr, states: Sequence[Expr]
) -> tuple[Expr, ...]:
    if stack.batch_first:
        x = relay.transpose(x, (1, 0, 2))
    finals: list[list[Expr]] = []
    for cells in stack.cells():
        outputs = []
        for direction, cell in enumerate(cells):
            place = relay.const(len(finals), "int64")
            own = [relay.take(each, place, axis=0, mode="fast") for each in states]
            every, *final = _run_direction(ctx, step, cell, x, own, direction == 1)
            outputs.append(every)
            finals.append(final)
        x = outputs[0] if len(outputs) == 1 else relay.concatenate(outputs, axis=2)
    if stack.batch_first:
        x = relay.transpose(x, (1, 0, 2))
    return (x, *(relay.stack(each, axis=0) for each in zip(*finals, strict=True)))


@OPS.imports("aten::quantized_lstm.input", ignored=("dtype", "use_dynamic"))
def import_quantized_lstm(
    ctx: Import, input: Expr, *, hx: tuple[Expr, ...], stack: QuantizedStack
) -> tuple[Expr, ...]:
    return _run_stack(ctx, _step_lstm, stack, input, hx)


@OPS.imports("aten::quantized_gru.input")
def import_quantized_gru(
    ctx: Import, input: Expr, hx: Expr, *, stack: QuantizedStack
) -> tuple[Expr, ...]:
    return _run_stack(ctx, _step_gru, stack, input, [hx])
