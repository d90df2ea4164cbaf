"""Whole nets of MXNet through Relay and back: the same numbers, and the same operators."""

from __future__ import annotations

import json
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.accuracy import CEILING, FACES, FLOOR, ZOO, Net, distance, face_net, zoo_net
from support.oracle import PlainMxnet, run_mxnet
from support.tiers import first_of

import serde
from serde.compat import import_mxnet

SMALL = {"mobilenetv2_0.25": 64, "resnet18_v2": 64, "squeezenet1.1": 224}
"""Fast nets, on images as small as they take."""

LARGE_FACES = ("arcface34", "mobilefacenet_full")

SYNONYMS = {
    "_Plus": "add",
    "_plus": "add",
    "elemwise_add": "add",
    "broadcast_add": "add",
    "ElementWiseSum": "add",
    "add_n": "add",
    "Crop": "slice",
    "SoftmaxActivation": "softmax",
}
"""Operators of MXNet that mean the same here."""

DROPPED = {"null", "Dropout", "_copy", "identity"}
"""What is no operator, or none at inference."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def operators(symbol: Any) -> Counter[str]:
    """How often a symbol has each operator, by one name for those that mean the same."""
    names = (node["op"] for node in json.loads(symbol.tojson())["nodes"])
    return Counter(SYNONYMS.get(name, name) for name in names if name not in DROPPED)


def run_back(
    net: Net, paths: tuple[Path, Path], **options: Any
) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """The symbol that comes back, its outputs, and those of the net itself."""
    symbol, params = serde.import_model(*paths, input_shapes={"data": net.shape}, **options)
    image = net.inputs(7)
    expected = run_mxnet(net.symbol, {**net.args, **net.aux}, image)
    return symbol, run_mxnet(symbol, params, image), expected


def check(mx: Any, oracle: PlainMxnet, net: Net, directory: Path) -> None:
    """Results may be apart as MXNet's two settings are: it fuses and orders as it likes."""
    paths = net.save(mx, directory / "net")
    symbol, found, expected = run_back(net, paths, keep_batch_norm=True)
    plain = oracle.run(directory / "net", net.inputs(7), directory)
    bound = min(max(FLOOR, 3 * max(distance(expected, plain))), CEILING)
    assert symbol.list_outputs() == net.symbol.list_outputs()
    assert max(distance(found, expected)) <= bound
    assert operators(symbol) == operators(net.symbol)
    folded, found, _ = run_back(net, paths)
    assert max(distance(found, expected)) <= bound
    assert operators(folded).total() <= operators(symbol).total()


@pytest.mark.wide
@pytest.mark.parametrize("name", first_of(SMALL, ["mobilenetv2_0.25"]))
def test_small_zoo_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, zoo_net(mx, name, SMALL[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_zoo_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, zoo_net(mx, name, ZOO[name]), tmp_path)


@pytest.mark.wide
@pytest.mark.parametrize("name", [name for name in FACES if name not in LARGE_FACES])
def test_face_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, face_net(mx, name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_FACES)
def test_large_face_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, face_net(mx, name), tmp_path)
