"""Names and bytes of weights through a chain of conversions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
from serde.compat import import_mxnet
from serde.relay.ir.model import RelayModel

TIME, BATCH, WORDS, WIDTH = 5, 2, 300, 64
STEPS = ("1.relay", "2-symbol.json", "3.onnx", "4.relay", "5-symbol.json", "6.onnx")


def _language_model() -> Any:
    """An LSTM whose embedding is its output layer, too, as in AWD-LSTM."""
    mx = import_mxnet()
    from mxnet.gluon import nn, rnn

    class Model(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__(prefix="lm_")
            with self.name_scope():
                self.embedding = nn.Embedding(WORDS, WIDTH)
                self.lstm = rnn.LSTM(WIDTH, input_size=WIDTH)
                self.out = nn.Dense(
                    WORDS, flatten=False, in_units=WIDTH, params=self.embedding.params
                )

        def hybrid_forward(self, _f: Any, x: Any) -> Any:
            return self.out(self.lstm(self.embedding(x)))

    return Model()


def _classifier() -> Any:
    mx = import_mxnet()
    from mxnet.gluon import nn

    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, in_channels=3), nn.BatchNorm(in_channels=8), nn.Activation("relu"))
        net.add(nn.Conv2D(16, 3, in_channels=8, groups=2, use_bias=False), nn.GlobalAvgPool2D())
        net.add(nn.Dense(200, in_units=16), nn.Dense(10, in_units=200, flatten=False))
    assert mx is not None
    return net


NETS = {
    "language": (_language_model, {"data": (TIME, BATCH)}),
    "classifier": (_classifier, {"data": (BATCH, 3, 9, 9)}),
}


def _exported(name: str, folder: Path) -> tuple[Path, Any, Any]:
    """Write a net as MXNet does; return its path, its input and its result."""
    mx = import_mxnet()
    build, shapes = NETS[name]
    mx.random.seed(3)
    net = build()
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    rng = np.random.default_rng(4)
    shape = shapes["data"]
    data = rng.integers(0, WORDS, shape) if name == "language" else rng.normal(size=shape)
    result = net(mx.nd.array(data)).asnumpy()
    net.export(str(folder / "m"))
    return folder / "m-symbol.json", data.astype("float32"), result


@pytest.mark.wide
@pytest.mark.parametrize("name", sorted(NETS))
def test_names_and_bytes_stay_through_a_chain(name: str, tmp_path: Path) -> None:
    source, data, expected = _exported(name, tmp_path)
    first = serde.to_relay(source, input_shapes=NETS[name][1])
    given = set(first.params)
    options: dict[str, Any] = {"input_shapes": NETS[name][1]}
    for step in STEPS:
        serde.convert(source, tmp_path / step, **options)
        source, options = tmp_path / step, {}
    for step in STEPS:
        found = serde.to_relay(tmp_path / step)
        assert _bytes(found) <= _bytes(first)
        others = [each for each in found.params if each not in given and "const" not in each]
        assert all(each.count("_folded") == 1 for each in others), others
        assert name == "language" or not others
    ours = _run_onnx(tmp_path / STEPS[-1], data)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_a_tied_weight_is_stored_once_in_every_file(tmp_path: Path) -> None:
    source, _, _ = _exported("language", tmp_path)
    table = WORDS * WIDTH * 4
    for step in STEPS[:3]:
        serde.convert(source, tmp_path / step, input_shapes=NETS["language"][1])
        found = serde.to_relay(tmp_path / step)
        assert [n for n, w in found.params.items() if w.nbytes == table] == ["lm_embedding0_weight"]


def _bytes(model: RelayModel) -> int:
    """Return the size of the weights but for constants, such as the zeros of a first state."""
    return sum(each.nbytes for name, each in model.params.items() if "const" not in name)


def _run_onnx(path: Path, data: Any) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    return session.run(None, {session.get_inputs()[0].name: data})[0]
