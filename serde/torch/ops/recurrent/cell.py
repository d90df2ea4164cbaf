"""Single steps of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext
from serde.torch.ops.recurrent.layer import MODES, Mode, Stack, run_stack
from serde.torch.ops.table import OPS


def _step(
    ctx: ImportContext,
    mode: Mode,
    x: Expr,
    states: Sequence[Expr],
    weights: tuple[Expr, Expr],
    biases: tuple[Expr | None, Expr | None],
) -> tuple[Expr, ...]:
    """Return the states after one step, which is a layer over one time."""
    given = tuple(each for each in biases if each is not None)
    stack = Stack(
        params=(*weights, *given),
        has_biases=bool(given),
        num_layers=1,
        dropout=0.0,
        train=False,
        bidirectional=False,
    )
    batched = ctx.type(x).rank == 2
    rows = [each if batched else relay.expand_dims(each, axis=0) for each in (x, *states)]
    first, *begin = (relay.expand_dims(each, axis=0) for each in rows)
    _, *final = run_stack(ctx, mode, stack, first, begin)
    return tuple(relay.squeeze(each, axis=[0] if batched else [0, 1]) for each in final)


@OPS.imports("aten::lstm_cell")
def import_lstm_cell(
    ctx: ImportContext,
    input: Expr,
    w_ih: Expr,
    w_hh: Expr,
    b_ih: Expr | None = None,
    b_hh: Expr | None = None,
    *,
    hx: tuple[Expr, ...],
) -> tuple[Expr, ...]:
    return _step(ctx, MODES["lstm"], input, hx, (w_ih, w_hh), (b_ih, b_hh))


def _make_cell(mode: Mode) -> Callable[..., Expr]:
    def import_cell(
        ctx: ImportContext,
        input: Expr,
        hx: Expr,
        w_ih: Expr,
        w_hh: Expr,
        b_ih: Expr | None = None,
        b_hh: Expr | None = None,
    ) -> Expr:
        return _step(ctx, mode, input, [hx], (w_ih, w_hh), (b_ih, b_hh))[0]

    return import_cell


for _name in ("gru", "rnn_tanh", "rnn_relu"):
    OPS.imports(f"aten::{_name}_cell")(_make_cell(MODES[_name]))
