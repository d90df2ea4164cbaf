"""Loops whose states begin as zeros for a batch that only MXNet's inference finds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError

mx = import_mxnet()
sym, rnn, contrib = mx.sym, mx.gluon.rnn, mx.gluon.contrib.rnn

# Products of up to 27 terms, added up in another order, three to six times over.
TOLERANCE = 1e-5

FORMS = {"batch": (3, "batch", 4), "time": ("time", 2, 4), "both": ("time", "batch", 4)}

CELLS: dict[str, Callable[[], Any]] = {
    "rnn": lambda: rnn.RNNCell(5, input_size=4),
    "lstm": lambda: rnn.LSTMCell(5, input_size=4),
    "gru": lambda: rnn.GRUCell(5, input_size=4),
    "projected": lambda: contrib.LSTMPCell(6, 3, input_size=4),
    "residual": lambda: rnn.ResidualCell(rnn.GRUCell(4, input_size=4)),
    "zoneout": lambda: rnn.ZoneoutCell(rnn.LSTMCell(5, input_size=4), 0.2, 0.2),
}


def group(outputs: Any, states: Any) -> Any:
    return sym.Group([outputs, *states])


def begin(cell: Any) -> Any:
    return cell.begin_state(func=sym.zeros, batch_size=0)


def drawn(symbol: Any, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Values of all variables: inputs of the shapes given, and weights, which note theirs."""
    rng, noted = np.random.default_rng(1), symbol.attr_dict()
    values = {}
    for name in symbol.list_arguments():
        shape = shapes.get(name) or ast.literal_eval(noted[name]["__shape__"])
        values[name] = (rng.normal(size=shape) * 0.5).astype(np.float32)
    return values


def unrolled(cell: Any, steps: str = "x") -> Any:
    return group(*sym.contrib.foreach(cell, sym.var(steps), begin(cell)))


@pytest.mark.parametrize("form", [None, *FORMS])
@pytest.mark.parametrize("cell", CELLS)
def test_cell_in_a_loop(cell: str, form: str | None) -> None:
    symbol = unrolled(CELLS[cell]())
    shapes = {"x": FORMS[form]} if form else None
    agree(symbol, drawn(symbol, x=(3, 2, 4)), tolerance=TOLERANCE, shapes=shapes)
