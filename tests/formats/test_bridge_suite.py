"""Every format through the suite that bridges of other packages get too."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from support.toy_format import BRIDGE, OPS, TOY

from serde.bridge import get_bridge
from serde.relay.ir.model import RelayModel
from serde.testing import BridgeSuite

# All samples of all operators are in the tests of the formats; here are some of each category.
SPREAD = (
    *("add", "clip", "nn.softmax", "mean", "argmax", "transpose", "take", "where", "nn.dense"),
    *("nn.conv2d", "nn.max_pool2d", "nn.layer_norm", "nn.batch_norm", "split", "concatenate"),
)


class TestOnnx(BridgeSuite):
    bridge = get_bridge("onnx")
    operators = SPREAD


class TestMxnet(BridgeSuite):
    bridge = get_bridge("mxnet")
    operators = SPREAD

    def output_names(self, model: RelayModel) -> tuple[str, ...]:
        return tuple(f"{name}_output" for name in model.meta.outputs)


class TestRelay(BridgeSuite):
    bridge = get_bridge("relay")
    operators = SPREAD


class TestCoreml(BridgeSuite):
    bridge = get_bridge("coreml")
    operators = SPREAD
    export_options = MappingProxyType({"compute_precision": "float32"})
    refused = MappingProxyType(
        {
            "clip-1": "no int8 at iOS15",
            "nn.conv2d-0": "no int8 at iOS15",
            "nn.conv2d-6": "dilated, with a weight that is computed",
            "nn.dense-2": "no int8 at iOS15",
            "nn.max_pool2d-2": "no int8 at iOS15",
            "take-1": "int64",
            "where-1": "int64",
        }
    )


class TestToy(BridgeSuite):
    bridge = BRIDGE
    operators = tuple(OPS.exported())

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [TOY])
