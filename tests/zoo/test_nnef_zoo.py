"""Whole nets of MXNet as folders of NNEF: run by runtimes of Khronos, and back in MXNet.

``benchmarks/nnef_zoo.py`` prints the figures as a table.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.accuracy import CEILING, FLOOR, Net, face_net, refer, zoo_net
from support.coreml_zoo import net_of
from support.nnef_judges import Khronos
from support.nnef_zoo import GLUONCV, GLUONNLP, NAMES, back, interpreter_python, judge
from support.oracle import PlainMxnet
from support.tiers import first_of
from support.zoo import package_of

import serde
from serde.compat import import_mxnet

SMALL = {"mobilenetv2_0.25": 64, "resnet18_v2": 64, "squeezenet1.1": 224}
"""Fast nets of MXNet's own zoo, on images as small as they take."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


@pytest.fixture(scope="module")
def khronos() -> Iterator[Khronos]:
    judge = Khronos()
    yield judge
    judge.close()


def small(mx: types.ModuleType, name: str) -> Net:
    return zoo_net(mx, name, SMALL[name]) if name in SMALL else face_net(mx, name)


@pytest.mark.wide
@pytest.mark.parametrize("name", first_of([*SMALL, "arcface", "retinaface"], ["mobilenetv2_0.25"]))
def test_small_net(
    mx: types.ModuleType, khronos: Khronos, plain_mxnet: PlainMxnet, name: str, tmp_path: Path
) -> None:
    """Khronos' C++ runtime runs it, and MXNet what is read from it."""
    net = small(mx, name)
    paths, image = net.save(mx, tmp_path / "net"), net.inputs(7)
    judged = refer(plain_mxnet, mx, net, tmp_path)
    folder = tmp_path / "net_nnef"
    serde.convert(list(paths), folder, input_shapes={"data": net.shape})
    assert serde.import_model(folder)[0].list_outputs() == net.symbol.list_outputs()
    bound = min(max(FLOOR, 3 * judged.own), CEILING)
    assert judged.error(khronos.run(folder, list(image.values()), tmp_path)) <= bound
    assert judged.error(back(folder, image)) <= bound


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_net(mx: types.ModuleType, name: str) -> None:
    python = interpreter_python()
    if python is None:
        pytest.skip("NNEF-Tools is not installed")
    if name in (*GLUONCV, *GLUONNLP) and find_spec(package_of(name)) is None:
        pytest.skip(f"{package_of(name)} is not installed")
    row = judge(name, net_of(mx, name), python)
    print(f"\n{row}")
    assert row.faults == []
    assert row.refused == []
