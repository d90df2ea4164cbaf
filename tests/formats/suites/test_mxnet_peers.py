"""Operators of MXNet 1.9.1, and those that its peers convert: imported, or listed with a reason."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest
from support.mxnet_gaps import FORWARD_GAPS, PEER_GAPS

from serde.bridge.formats import get_bridge
from serde.compat import import_mxnet
from serde.mxnet.aliases import ALIASES, canonical_name
from serde.mxnet.operators import FORWARD, OPTIMIZERS
from serde.mxnet.ops import TABLE

PEERS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "compat" / "mxnet_peers.json").read_text("utf-8")
)
"""Converters by name: the names of the operators that they take."""

NAMES = sorted({name for names in PEERS.values() for name in names})
IMPORTED = {op for op, _version in TABLE.imported()}


def registered() -> set[str]:
    """Every name that the installed MXNet has registered."""
    base = import_mxnet().base
    count, names = ctypes.c_uint(), ctypes.POINTER(ctypes.c_char_p)()
    base.check_call(base._LIB.MXListAllOpNames(ctypes.byref(count), ctypes.byref(names)))
    return {names[place].decode() for place in range(count.value)}


def test_operators_are_those_of_mxnet() -> None:
    found = registered()
    gradients = {name for name in found if "backward" in name or name == "_grad_add"}
    assert found - set(ALIASES) - gradients == FORWARD | OPTIMIZERS
    assert not FORWARD & OPTIMIZERS


@pytest.mark.wide
@pytest.mark.parametrize("op", sorted(FORWARD))
def test_a_forward_operator_is_imported_or_listed(op: str) -> None:
    assert (op in IMPORTED) != (op in FORWARD_GAPS)


def test_gaps_are_operators() -> None:
    assert set(FORWARD_GAPS) <= FORWARD


@pytest.mark.wide
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_of_a_peer_is_imported_or_listed(name: str) -> None:
    op = canonical_name(name)
    assert (op in IMPORTED) != (op in FORWARD_GAPS or name in PEER_GAPS)


def test_gaps_are_names_of_peers() -> None:
    assert set(PEER_GAPS) <= set(NAMES)


def test_coverage_counts_the_operators() -> None:
    done = len(FORWARD) - len(FORWARD_GAPS)
    expected = f"{done} of {len(FORWARD)} forward operators of MXNet 1.9.1"
    assert get_bridge("mxnet").coverage_summary() == expected


def test_coverage_tells_what_is_read_and_what_is_written() -> None:
    rows = get_bridge("mxnet").coverage()
    assert ("Convolution", "read, also as _npx_convolution") in rows
    assert ("nn.conv2d", "written") in rows
    read = {op for op, remark in rows if remark.startswith("read")}
    assert read == IMPORTED
