"""Gluon's cells unrolled step by step; they begin with zeros for a batch that is not known yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import same
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.relay.run.interpreter import run

mx = import_mxnet()
rnn, contrib = mx.gluon.rnn, mx.gluon.contrib.rnn

CELLS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "rnn": (lambda: rnn.RNNCell(5, input_size=4), (4,)),
    "lstm": (lambda: rnn.LSTMCell(5, input_size=4), (4,)),
    "gru": (lambda: rnn.GRUCell(5, input_size=4), (4,)),
    "projected": (lambda: contrib.LSTMPCell(6, 3, input_size=4), (4,)),
    "residual": (lambda: rnn.ResidualCell(rnn.GRUCell(4, input_size=4)), (4,)),
    "zoneout": (lambda: rnn.ZoneoutCell(rnn.LSTMCell(5, input_size=4), 0.2, 0.2), (4,)),
    "variational": (
        lambda: contrib.VariationalDropoutCell(rnn.LSTMCell(5, input_size=4), 0.1, 0.1, 0.1),
        (4,),
    ),
    "bidirectional": (
        lambda: rnn.BidirectionalCell(rnn.LSTMCell(5, input_size=4), rnn.GRUCell(3, input_size=4)),
        (4,),
    ),
    "convolution 1d": (lambda: contrib.Conv1DLSTMCell((3, 8), 4, 3, 3, i2h_pad=1), (3, 8)),
    "convolution 2d": (lambda: contrib.Conv2DGRUCell((3, 6, 5), 4, 3, 3, i2h_pad=1), (3, 6, 5)),
    "convolution 3d": (
        lambda: contrib.Conv3DRNNCell((2, 4, 3, 5), 3, 3, 3, i2h_pad=1),
        (2, 4, 3, 5),
    ),
}


class Unrolled(mx.gluon.HybridBlock):
    """A cell over five times of (batch, time, ...)."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    def hybrid_forward(self, space: Any, x: Any, *lengths: Any) -> Any:
        options = {"valid_length": lengths[0]} if lengths else {}
        return self.cell.unroll(5, x, layout="NTC", merge_outputs=True, **options)[0]


class Looped(Unrolled):
    """A cell that ``foreach`` carries along (time, batch, ...)."""

    def hybrid_forward(self, space: Any, x: Any) -> Any:
        states = self.cell.begin_state(func=space.zeros, batch_size=0)
        return space.contrib.foreach(self.cell, x, states)[0]


def compared(net: Any, inputs: dict[str, np.ndarray], path: Path, shapes: dict[str, Any]) -> None:
    net.initialize(mx.init.Xavier())
    net.hybridize()
    expected = [net(*map(mx.nd.array, inputs.values())).asnumpy()]
    net.export(str(path / "net"))
    model = serde.to_relay(path / "net-symbol.json", input_shapes=shapes)
    proto = serde.from_relay(model, format="onnx")
    # Products of up to 27 terms, added up in another order five times.
    same(run_onnx(proto.SerializeToString(), inputs)[1], expected, 1e-5)
    weights = {name: weight.array() for name, weight in model.params.items()}
    fed = {**inputs, **weights}
    arguments = [fed[param.name_hint] for param in model.main.params]
    same([run(model.main, arguments, mod=model.mod)], expected, 1e-5)


@pytest.mark.wide
@pytest.mark.parametrize("batch", [2, "batch"])
@pytest.mark.parametrize("cell", CELLS)
def test_unrolled_cell(cell: str, batch: int | str, tmp_path: Path) -> None:
    build, shape = CELLS[cell]
    x = np.random.default_rng(1).normal(size=(2, 5, *shape)).astype(np.float32)
    compared(Unrolled(build()), {"data": x}, tmp_path, {"data": (batch, 5, *shape)})


@pytest.mark.wide
@pytest.mark.parametrize("batch", [2, "batch"])
@pytest.mark.parametrize("cell", ["lstm", "bidirectional"])
def test_unrolled_cell_of_some_length(cell: str, batch: int | str, tmp_path: Path) -> None:
    build, shape = CELLS[cell]
    x = np.random.default_rng(1).normal(size=(2, 5, *shape)).astype(np.float32)
    inputs = {"data0": x, "data1": np.array([3, 5], np.float32)}
    shapes = {"data0": (batch, 5, *shape), "data1": (batch,)}
    compared(Unrolled(build()), inputs, tmp_path, shapes)


@pytest.mark.wide
@pytest.mark.parametrize("batch", [2, "batch"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn", "convolution 2d"])
def test_cell_in_a_loop(cell: str, batch: int | str, tmp_path: Path) -> None:
    build, shape = CELLS[cell]
    x = np.random.default_rng(1).normal(size=(5, 2, *shape)).astype(np.float32)
    compared(Looped(build()), {"data": x}, tmp_path, {"data": (5, batch, *shape)})
