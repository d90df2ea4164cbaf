"""Nets of gluoncv and gluonnlp through an ONNX file to Gluon blocks, judged by MXNet itself."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.accuracy import distance
from support.oracle import run_mxnet
from support.tiers import first_of
from support.zoo import LEAST_FOUND, NAMES, FedNet, found_again, package_of, selections, zoo_net

import serde
from serde.compat import import_mxnet

onnx = pytest.importorskip("onnx")

SMALL = (
    "cifar_resnet20_v1",
    "mobilenetv3_small",
    "shufflenet_v2",
    "ssd_300_mobilenet0.25_custom",
    "yolo3_mobilenet0.25_custom",
    "center_net_resnet18_v1b_voc",
    "siamrpn_alexnet_v2_otb15",
    "bert_small",
    "transformer_small",
    "elmo_small",
)
"""Fast ones: of several inputs, with integers as parameters, with suppressions."""

BOUND = 1e-4


def batch_norms(symbol: Any) -> int:
    return sum(node["op"] == "BatchNorm" for node in json.loads(symbol.tojson())["nodes"])


def come_back(net: FedNet, path: Path) -> tuple[Any, list[np.ndarray]]:
    """The symbol of the block, and what the block computes of the inputs in the file's order."""
    mx = import_mxnet()
    inputs = net.inputs(7)
    serde.export_model(
        net.symbol, (net.args, net.aux), format="onnx", path=path, keep_batch_norm=True,
        input_shapes={name: values.shape for name, values in inputs.items()},
        input_dtypes={name: values.dtype for name, values in inputs.items()},
    )  # fmt: skip
    names = [each.name for each in onnx.load(path, load_external_data=False).graph.input]
    block = serde.import_to_gluon(path)
    found = block(*[mx.nd.array(inputs[name], dtype=inputs[name].dtype) for name in names])
    found = found if isinstance(found, (list, tuple)) else [found]
    return block._cached_graph[1], [each.asnumpy() for each in found]


def check(name: str, path: Path) -> None:
    if importlib.util.find_spec(package_of(name)) is None:
        pytest.skip(f"{package_of(name)} is not installed")
    net = zoo_net(name)
    symbol, found = come_back(net, path)
    wanted = run_mxnet(net.reference, {**net.args, **net.aux}, net.inputs(7))
    assert batch_norms(symbol) == batch_norms(net.symbol)
    assert [each.shape for each in found] == [each.shape for each in wanted]
    if selections(net.symbol) and len(wanted) >= 3:
        assert found_again(wanted, found) >= LEAST_FOUND
    else:
        assert max(distance(found, wanted)) <= BOUND


@pytest.mark.wide
@pytest.mark.parametrize("name", first_of(SMALL, ["shufflenet_v2"]))
def test_small_net(name: str, tmp_path: Path) -> None:
    check(name, tmp_path / "net.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SMALL])
def test_net(name: str, tmp_path: Path) -> None:
    check(name, tmp_path / "net.onnx")
