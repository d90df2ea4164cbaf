"""Relax through the suite that every bridge gets."""

from __future__ import annotations

import pytest

from serde.bridge.formats import get_bridge
from serde.testing import BridgeSuite

pytest.importorskip("tvm")

pytestmark = pytest.mark.slow


class TestRelax(BridgeSuite):
    bridge = get_bridge("relax")
    # Samples that become functions of TIR are not read again: those of argmax, take and split.
    operators = (
        *("add", "clip", "nn.softmax", "mean", "transpose", "where", "nn.dense"),
        *("nn.conv2d", "nn.max_pool2d", "nn.batch_norm", "concatenate"),
    )
