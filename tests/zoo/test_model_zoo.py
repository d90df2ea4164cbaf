"""Whole nets of MXNet, converted from their files, in ONNX Runtime against MXNet.

``pytest -s`` shows the figures; ``benchmarks/accuracy.py`` prints them as a table.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.accuracy import CEILING, FACES, ZOO, Net, distance, face_net, measure, zoo_net
from support.oracle import PlainMxnet, run_mxnet
from support.runtime import newest_runtime_opset, run_onnx
from support.tiers import first_of

import serde
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


def check(mx: Any, oracle: PlainMxnet, name: str, net: Net, directory: Path) -> None:
    figures = list(measure(mx, oracle, net, OPSETS, directory))
    for each in figures:
        print(f"\n{name}: {each}")
    assert [each.opset for each in figures if each.error > each.bound] == []
    assert figures[0].change > 0.1
    assert max(each.nodes for each in figures) <= figures[0].layers


@pytest.mark.sparse(3)
@pytest.mark.wide
@pytest.mark.parametrize("name", first_of(SMALL, ["mobilenetv2_0.25"]))
def test_small_zoo_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, zoo_net(mx, name, SMALL[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_zoo_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, zoo_net(mx, name, ZOO[name]), tmp_path)


@pytest.mark.sparse(3)
@pytest.mark.wide
@pytest.mark.parametrize("name", [name for name in FACES if name not in LARGE_FACES])
def test_face_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, face_net(mx, name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_FACES)
def test_large_face_net(mx: Any, plain_mxnet: PlainMxnet, name: str, tmp_path: Path) -> None:
    check(mx, plain_mxnet, name, face_net(mx, name), tmp_path)


@pytest.fixture(scope="module")
def small_net(mx: Any) -> Net:
    return zoo_net(mx, "mobilenet0.25", 64)


def gluon_block(mx: Any, net: Net, directory: Path) -> Any:
    """The net as a block made of its two files."""
    symbol, params = net.save(mx, directory / "net")
    return mx.gluon.SymbolBlock.imports(str(symbol), ["data"], str(params), ctx=mx.cpu())


def module(mx: Any, net: Net, _directory: Path) -> Any:
    """The net as a Module that was bound for inference."""
    result = mx.mod.Module(net.symbol, label_names=None)
    result.bind([("data", net.shape)], for_training=False)
    result.set_params(net.args, net.aux)
    return result


@pytest.mark.wide
@pytest.mark.filterwarnings("ignore:Cannot decide type")  # MXNet's, of its own blocks' inputs
@pytest.mark.parametrize("kind", [gluon_block, module])
def test_live_object_of_any_batch(
    mx: Any, small_net: Net, kind: Callable[[Any, Net, Path], Any], tmp_path: Path
) -> None:
    shapes = {"data": ("N", *small_net.shape[1:])}
    model = serde.export_model(kind(mx, small_net, tmp_path), format="onnx", input_shapes=shapes)
    (declared,) = model.graph.input
    assert [d.dim_param or d.dim_value for d in declared.type.tensor_type.shape.dim] == [
        *shapes["data"]
    ]
    images = {"data": np.concatenate([small_net.inputs(seed)["data"] for seed in (1, 2, 3)])}
    names, found = run_onnx(model.SerializeToString(), images)
    assert names == small_net.symbol.list_outputs()
    expected = run_mxnet(small_net.symbol, {**small_net.args, **small_net.aux}, images)
    assert max(distance(found, expected)) < CEILING


@pytest.mark.wide
def test_a_hybrid_block_keeps_its_values(mx: Any) -> None:
    block = mx.gluon.model_zoo.vision.get_model("resnet18_v1", classes=10)
    block.initialize(mx.init.Xavier(rnd_type="gaussian", magnitude=2.5))
    images = np.random.default_rng(4).standard_normal((2, 3, 64, 64)).astype(np.float32)
    model = serde.export_model(block, format="onnx", input_shapes={"data": ("N", 3, 64, 64)})
    _, (found,) = run_onnx(model.SerializeToString(), {"data": images})
    (error,) = distance([found], [block(mx.nd.array(images)).asnumpy()])
    assert error < CEILING


def test_batch_norm_can_be_kept(mx: Any, small_net: Net) -> None:
    params = {**small_net.args, **small_net.aux}
    model = serde.export_model(
        small_net.symbol,
        params,
        format="onnx",
        input_shapes={"data": small_net.shape},
        keep_batch_norm=True,
    )
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("BatchNormalization") == small_net.symbol.tojson().count('"BatchNorm"')
    assert {each.name for each in model.graph.initializer} >= set(small_net.aux)
    image = small_net.inputs(5)
    _, found = run_onnx(model.SerializeToString(), image)
    assert max(distance(found, run_mxnet(small_net.symbol, params, image))) < CEILING


@pytest.mark.wide
def test_no_zoo_net_is_forgotten(mx: Any) -> None:
    with pytest.raises(ValueError, match="Available options") as caught:
        mx.gluon.model_zoo.vision.get_model("none of them")
    assert {name for name in str(caught.value).split() if name in ZOO} == set(ZOO)
    assert len(str(caught.value).partition("options are")[2].split()) == len(ZOO)
