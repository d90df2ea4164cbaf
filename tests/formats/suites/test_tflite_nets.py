"""MXNet's nets as TFLite, run by LiteRT: equal to MXNet, with one transpose at the input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")
from support.tflite_models import run_litert

import serde
from serde.compat import import_mxnet
from serde.tflite.reader import read_file

mx = import_mxnet()

NETS = [
    "mobilenet0.25",
    *(
        pytest.param(name, marks=pytest.mark.wide)
        for name in ("resnet18_v1", "squeezenet1.0", "mobilenetv2_0.25", "densenet121")
    ),
]


def _keep_last_statistics(block: Any) -> None:
    """Have norms keep the statistics of the last batch, so that outputs have spread."""
    if isinstance(block, mx.gluon.nn.BatchNorm):
        block._kwargs["momentum"] = 0.0


@pytest.mark.parametrize("name", NETS)
def test_net_is_right_with_one_transpose(name: str, tmp_path: Path) -> None:
    mx.random.seed(1)
    net = mx.gluon.model_zoo.vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier())
    size = 96 if name.startswith("mobilenet") else 224
    net.apply(_keep_last_statistics)
    with mx.autograd.train_mode():
        net(mx.nd.random.uniform(shape=(4, 3, size, size)))
    net.hybridize()
    x = mx.nd.random.uniform(shape=(1, 3, size, size))
    expected = net(x).asnumpy()
    assert expected.std() > 1e-6
    net.export(str(tmp_path / "net"))
    target, again = tmp_path / "net.tflite", tmp_path / "again.tflite"
    for path in (target, again):
        serde.convert(tmp_path / "net-symbol.json", path, input_shapes={"data": x.shape})
    assert target.read_bytes() == again.read_bytes()
    (found,) = run_litert(target.read_bytes(), [x.asnumpy()], optimised=True)
    np.testing.assert_allclose(found, expected, atol=2e-5 * expected.std())
    counts = Counter(each.name for each in read_file(str(target)).subgraphs[0].operators)
    assert counts["TRANSPOSE"] <= 1
