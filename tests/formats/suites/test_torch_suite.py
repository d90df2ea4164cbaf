"""The suite of every bridge, for PyTorch: modules go out as archives and come back."""

from __future__ import annotations

import pytest

from serde.testing import BridgeSuite
from serde.torch.bridge import BRIDGE

pytest.importorskip("torch")

# All samples of all operators are in test_torch_samples.py; here are some of each category.
SPREAD = (
    *("add", "clip", "nn.softmax", "mean", "argmax", "transpose", "take", "where", "nn.dense"),
    *("nn.conv2d", "nn.max_pool2d", "nn.layer_norm", "nn.batch_norm", "split", "concatenate"),
)


class TestTorch(BridgeSuite):
    bridge = BRIDGE
    operators = SPREAD
