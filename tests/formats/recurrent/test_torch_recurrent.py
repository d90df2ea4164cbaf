"""Recurrent layers of PyTorch over packed sequences, whose lengths are given when they run."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import serde
from serde.engine.interpreter import RelayEngine

torch = pytest.importorskip("torch")
nn = torch.nn
rnn = torch.nn.utils.rnn

pytestmark = pytest.mark.filterwarnings("ignore")


class _OverPacked(nn.Module):
    """A layer between packing and padding."""

    def __init__(self, layer: Any, ordered: bool) -> None:
        super().__init__()
        self.layer, self.ordered = layer, ordered

    def forward(self, x: Any, lengths: Any) -> Any:
        first = self.layer.batch_first
        packed = rnn.pack_padded_sequence(x, lengths, first, self.ordered)
        outputs, states = self.layer(packed)
        padded, found = rnn.pad_packed_sequence(outputs, first, padding_value=-1.0)
        rest = states if isinstance(states, tuple) else (states,)
        return (padded, found, *rest)


LAYERS = {
    "lstm": lambda: nn.LSTM(4, 5, 2, bidirectional=True),
    "lstm with a projection": lambda: nn.LSTM(4, 5, proj_size=3, batch_first=True),
    "gru": lambda: nn.GRU(4, 5, batch_first=True, bidirectional=True),
    "rnn": lambda: nn.RNN(4, 5, nonlinearity="relu", bias=False),
}


@pytest.mark.parametrize("lengths", [(6, 4, 2), (2, 5, 3)])
@pytest.mark.parametrize("name", LAYERS)
def test_packed_sequences(name: str, lengths: tuple[int, ...]) -> None:
    """The model is traced with other lengths than it is run with."""
    torch.manual_seed(1)
    ordered = list(lengths) == sorted(lengths, reverse=True)
    module = _OverPacked(LAYERS[name](), ordered).eval()
    shape = (3, 6, 4) if module.layer.batch_first else (6, 3, 4)
    x, other = torch.randn(shape), torch.tensor([6, 6, 6])
    given = torch.tensor(lengths)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(module, (x, other), check_trace=False)
        expected = module(x, given)
    engine = RelayEngine(serde.to_relay(traced))
    names = list(engine.inputs)
    found = engine.run({names[0]: x.numpy(), names[1]: given.numpy()})
    for one, wanted in zip(found, expected, strict=True):
        assert one.shape == tuple(wanted.shape)
        np.testing.assert_allclose(one, wanted.numpy(), rtol=1e-5, atol=1e-6)
