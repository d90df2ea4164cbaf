"""Whole nets of MXNet, converted from their files, in ONNX Runtime against MXNet.

``pytest -s`` shows the figures; ``benchmarks/accuracy.py`` prints them as a table.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.accuracy import FACES, ZOO, Net, face_net, measure, zoo_net
from support.oracle import PlainMxnet
from support.runtime import newest_runtime_opset

from serde.compat import import_mxnet

OPSETS = (11, 13, 17, newest_runtime_opset())

SMALL = {
    "mobilenet0.25": 64,
    "mobilenetv2_0.25": 64,
    "resnet18_v1": 64,
    "resnet18_v2": 64,
    "squeezenet1.1": 224,
}
"""Fast nets, on images as small as they take."""

LARGE_FACES = ("arcface34", "mobilefacenet_full")


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


@pytest.fixture(scope="module")
def plain_mxnet() -> Iterator[PlainMxnet]:
    oracle = PlainMxnet()
    yield oracle
    oracle.close()


def check(mx: Any, oracle: PlainMxnet, name: str, net: Net, directory: Path) -> None:
    figures = list(measure(mx, oracle, net, OPSETS, directory))
    for each in figures:
        print(f"\n{name}: {each}")
    assert [each.opset for each in figures if each.error > each.bound] == []
    assert figures[0].change > 0.1
    assert max(each.nodes for each in figures) <= figures[0].layers


@pytest.mark.parametrize("name", SMALL)
def test_small_zoo_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, zoo_net(mx, name, SMALL[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_zoo_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, zoo_net(mx, name, ZOO[name]), tmp_path)


@pytest.mark.parametrize("name", [name for name in FACES if name not in LARGE_FACES])
def test_face_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, face_net(mx, name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_FACES)
def test_large_face_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, face_net(mx, name), tmp_path)


def test_no_zoo_net_is_forgotten(mx: Any) -> None:
    with pytest.raises(ValueError, match="Available options") as caught:
        mx.gluon.model_zoo.vision.get_model("none of them")
    assert {name for name in str(caught.value).split() if name in ZOO} == set(ZOO)
    assert len(str(caught.value).partition("options are")[2].split()) == len(ZOO)
