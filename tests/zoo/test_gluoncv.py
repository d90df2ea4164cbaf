"""Nets of gluoncv and gluonnlp in ONNX Runtime against MXNet.

``pytest -s`` shows the figures; ``benchmarks/zoo.py`` prints them as a table, at more
operator sets and with the share of detections that are found again.
"""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path

import pytest
from support.accuracy import LEAST_CHANGE, measure
from support.oracle import PlainMxnet, run_mxnet
from support.runtime import run_onnx
from support.tiers import first_of
from support.zoo import (
    LEAST_CHANGE_OF_BOXES,
    LEAST_FOUND,
    MORE_NODES,
    NAMES,
    around_selections,
    found_again,
    newest_opset,
    package_of,
    selections,
    text_fault,
    zoo_net,
)

import serde
from serde.compat import import_mxnet

SMALL = (
    "cifar_resnet20_v1",
    "cifar_resnet20_v2",
    "mobilenet0.25",
    "mobilenetv2_0.25",
    "mobilenetv3_small",
    "shufflenet_v1",
    "shufflenet_v2",
    "resnest14",
    "se_resnet18_v1",
    "resnet50_v1d_0.11",
    "googlenet",
    "squeezenet1.1",
    "hrnet_w18_small_v1_s",
    "ssd_300_mobilenet0.25_custom",
    "yolo3_mobilenet0.25_custom",
    "center_net_mobilenetv3_small_duc_voc",
    "resnet18_v1b_0.89",
    "fastscnn_citys",
    "mobile_pose_mobilenetv3_small",
    "monodepth2_resnet18_posenet_kitti_mono_640x192",
    "i3d_inceptionv1_kinetics400",
    "siamrpn_alexnet_v2_otb15",
    "bert_small",
    "transformer_small",
    "standard_lstm_lm_200",
)
"""Fast nets of different families."""

FIRST = ("bert_small",)
"""Those of the first tier: of two inputs."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def check(mx: types.ModuleType, oracle: PlainMxnet, name: str, directory: Path) -> None:
    if importlib.util.find_spec(package_of(name)) is None:
        pytest.skip(f"{package_of(name)} is not installed")
    net = zoo_net(name)
    selects = bool(selections(net.symbol))
    compared = around_selections(mx, net) if selects else net
    (figures,) = measure(mx, oracle, compared, [newest_opset(net.symbol)], directory)
    print(f"\n{name}: {figures}")
    assert figures.error <= figures.bound
    assert figures.change > (LEAST_CHANGE_OF_BOXES if selects else LEAST_CHANGE)
    assert figures.nodes <= figures.layers or name in MORE_NODES
    image = net.inputs(7)
    paths = net.save(mx, directory / "whole")
    assert not text_fault(paths, image)
    if selects:
        shapes = {name: values.shape for name, values in image.items()}
        target = serde.export_model(*paths, path=directory / "whole.onnx", input_shapes=shapes)
        expected = run_mxnet(net.reference, {**net.args, **net.aux}, image)
        assert found_again(expected, run_onnx(target, image)[1]) >= LEAST_FOUND


@pytest.mark.sparse(4)
@pytest.mark.wide
@pytest.mark.parametrize("name", first_of(SMALL, FIRST))
def test_small_net(
    mx: types.ModuleType, plain_mxnet: PlainMxnet, name: str, tmp_path: Path
) -> None:
    check(mx, plain_mxnet, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SMALL])
def test_net(mx: types.ModuleType, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, tmp_path)
