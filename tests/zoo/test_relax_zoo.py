"""Whole nets of MXNet as modules of Relax, compiled by TVM and compared with MXNet.

``benchmarks/relax_zoo.py`` prints the figures as a table.
"""

from __future__ import annotations

import types
from dataclasses import replace
from importlib.util import find_spec

import pytest
from support.accuracy import FACES, Net, face_net, zoo_net
from support.pairs import recurrent_net
from support.relax_zoo import NAMES, build, judge
from support.zoo import package_of

from serde.compat import import_mxnet

pytest.importorskip("tvm")

SMALL = ("mobilenetv2_0.25", "resnet18_v2")
"""Fast nets of MXNet's own zoo, on images of 32 times 32."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def small(mx: types.ModuleType, name: str) -> Net:
    if name == "recurrent":
        net = recurrent_net(mx)
        # Wider weights, so that its outputs tell right from wrong.
        return replace(net, args={key: each * 6 for key, each in net.args.items()})
    return zoo_net(mx, name, 32) if name in SMALL else face_net(mx, name)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["recurrent", *SMALL, "arcface"])
def test_small_net(mx: types.ModuleType, name: str) -> None:
    row = judge(name, small(mx, name))
    assert row.faults == []
    assert row.refused == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_net(mx: types.ModuleType, name: str) -> None:
    if ":" not in name and name not in FACES and find_spec(package_of(name)) is None:
        pytest.skip(f"{package_of(name)} is not installed")
    row = judge(name, build(mx, name))
    print(f"\n{row}")
    assert row.faults == []
    assert row.refused == []
