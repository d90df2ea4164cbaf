"""Whole nets of MXNet as ML Programs, run by the tests' executor, and back again.

``benchmarks/coreml_zoo.py`` prints the figures as a table.
"""

from __future__ import annotations

import importlib.util
import types
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from support.accuracy import CEILING, FACES, ZOO, Net, distance, zoo_net
from support.coreml_models import tools
from support.coreml_zoo import judge, net_of
from support.mil_executor import load
from support.oracle import run_mxnet
from support.runtime import run_onnx
from support.tiers import first_of
from support.zoo import NAMES, package_of

import serde
from serde.compat import import_mxnet

SMALL_SIDES = {"mobilenetv2_0.25": 64, "resnet18_v2": 64, "squeezenet1.1": 224}
"""Fast nets of MXNet's own zoo, on images as small as they take."""

SMALL = (
    "bert_small",
    "cifar_resnet20_v1",
    "mobilenetv3_small",
    "shufflenet_v2",
    "ssd_300_mobilenet0.25_custom",
    "standard_lstm_lm_200",
    "transformer_small",
    "arcface",
)
"""Fast nets of different families."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def check(mx: types.ModuleType, name: str) -> None:
    if name in NAMES and importlib.util.find_spec(package_of(name)) is None:
        pytest.skip(f"{package_of(name)} is not installed")
    row = judge(name, net_of(mx, name))
    print(f"\n{row}")
    assert row.faults == []
    assert row.refused == []


@pytest.mark.wide
@pytest.mark.parametrize("name", first_of(SMALL, ["transformer_small"]))
def test_small_net(mx: types.ModuleType, name: str) -> None:
    check(mx, name)


@pytest.mark.wide
@pytest.mark.parametrize("name", SMALL_SIDES)
def test_small_zoo_net(mx: types.ModuleType, name: str) -> None:
    row = judge(name, zoo_net(mx, name, SMALL_SIDES[name]))
    assert row.faults == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(f"zoo:{name}" for name in ZOO), *(n for n in (*FACES, *NAMES) if n not in SMALL)]
)
def test_net(mx: types.ModuleType, name: str) -> None:
    check(mx, name)


@pytest.mark.wide
@pytest.mark.parametrize("name", first_of(SMALL_SIDES, ["mobilenetv2_0.25"]))
def test_float16_is_as_exact_as_that_of_coremltools(
    mx: types.ModuleType, name: str, tmp_path: Path
) -> None:
    """What its own pass makes of our program in float32 is as far from MXNet."""
    ct = tools()
    net = zoo_net(mx, name, SMALL_SIDES[name])
    image = net.inputs(7)
    expected = run_mxnet(net.symbol, {**net.args, **net.aux}, image)
    paths, errors = net.save(mx, tmp_path / "net"), []
    for precision in ("float32", "float16"):
        target = tmp_path / f"{precision}.mlpackage"
        serde.export_model(
            *paths, path=target, input_shapes={"data": net.shape}, compute_precision=precision
        )
    with ExitStack() as stack:
        ours = load(tmp_path / "float16.mlpackage", stack)
        theirs = load(narrowed(ct, tmp_path / "float32.mlpackage"), stack)
        for program in (ours, theirs):
            found = [each.astype(np.float32) for each in program.run(image)]
            errors.append(max(distance(found, expected)))
    assert errors[0] <= 1.1 * errors[1]


def narrowed(ct: types.ModuleType, path: Path) -> object:
    """A program as coremltools itself brings it to float16."""
    from coremltools.converters.mil.frontend.milproto.load import load as load_program

    spec = ct.utils.load_spec(str(path))
    weights = path / "Data" / "com.apple.CoreML" / "weights"
    program = load_program(spec, spec.specificationVersion, str(weights))
    return ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT16,
        skip_model_load=True,
    )


def round_trip(mx: types.ModuleType, net: Net, source: str, directory: Path) -> None:
    """From a format to Core ML and back, against MXNet."""
    image = net.inputs(7)
    expected = run_mxnet(net.symbol, {**net.args, **net.aux}, image)
    given = net.save(mx, directory / "net")
    shapes = {"input_shapes": {"data": net.shape}}
    package = directory / "net.mlpackage"
    if source == "mxnet":
        serde.export_model(*given, path=package, compute_precision="float32", **shapes)
        symbol, params = serde.import_model(package)
        assert symbol.list_outputs() == net.symbol.list_outputs()
        found = run_mxnet(symbol, params, image)
    else:
        serde.export_model(*given, path=directory / "net.onnx", **shapes)
        serde.convert(directory / "net.onnx", package, compute_precision="float32")
        serde.convert(package, directory / "back.onnx")
        names, found = run_onnx(directory / "back.onnx", image)
        assert names == net.symbol.list_outputs()
    assert max(distance(found, expected)) <= CEILING


@pytest.mark.wide
@pytest.mark.parametrize("source", ["mxnet", "onnx"])
@pytest.mark.parametrize("name", first_of(SMALL_SIDES, ["mobilenetv2_0.25"]))
def test_small_round_trip(mx: types.ModuleType, name: str, source: str, tmp_path: Path) -> None:
    round_trip(mx, zoo_net(mx, name, SMALL_SIDES[name]), source, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["mxnet", "onnx"])
@pytest.mark.parametrize("name", ZOO)
def test_round_trip(mx: types.ModuleType, name: str, source: str, tmp_path: Path) -> None:
    round_trip(mx, zoo_net(mx, name, ZOO[name]), source, tmp_path)
