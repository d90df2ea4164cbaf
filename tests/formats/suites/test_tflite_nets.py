"""MXNet's nets as TFLite, run by LiteRT: equal to MXNet, with one transpose at the input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.accuracy import zoo_net
from support.tflite_models import run_litert

import serde
from serde.compat import import_mxnet
from serde.tflite.reader import read_file

NETS = [
    "mobilenet0.25",
    *(
        pytest.param(name, marks=pytest.mark.wide)
        for name in ("resnet18_v1", "squeezenet1.0", "mobilenetv2_0.25", "densenet121")
    ),
]


@pytest.mark.wide
@pytest.mark.parametrize("name", NETS)
def test_net_is_right_with_one_transpose(name: str, tmp_path: Path) -> None:
    mx = import_mxnet()
    net = zoo_net(mx, name, 224)
    x = np.random.default_rng(2).uniform(size=net.shape).astype(np.float32)
    inputs = {**net.args, "data": mx.nd.array(x)}
    expected = net.symbol.bind(mx.cpu(), inputs, aux_states=dict(net.aux)).forward()[0].asnumpy()
    assert expected.std() > 1e-3
    target, again = tmp_path / "net.tflite", tmp_path / "again.tflite"
    for path in (target, again):
        params, shapes = (net.args, net.aux), {"data": net.shape}
        serde.convert(net.symbol, path, params=params, input_shapes=shapes)
    assert target.read_bytes() == again.read_bytes()
    (found,) = run_litert(target.read_bytes(), [x], optimised=True)
    np.testing.assert_allclose(found, expected, atol=1e-4 * expected.std())
    counts = Counter(each.name for each in read_file(str(target)).subgraphs[0].operators)
    assert counts["TRANSPOSE"] <= 1
