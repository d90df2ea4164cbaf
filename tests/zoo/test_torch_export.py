"""Nets as PyTorch exports them, by either of its exporters, with a batch of any size.

Each is imported and run by the interpreter, and written again and run by ONNX Runtime, and
gives what PyTorch gives.
"""

from __future__ import annotations

import functools
import io
import warnings
from typing import Any

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from support.onnx_suite import feeds, interpret  # noqa: E402
from support.runtime import newest_runtime_opset, open_session  # noqa: E402
from support.torch_nets import NETS  # noqa: E402

import serde  # noqa: E402
import serde.relay as relay  # noqa: E402

OPSETS = {"script": (11, 14, 17, 20), "dynamo": (18, 20, 23)}
ATTENDS = ("bert", "gpt")
"""Nets with an attention, which the older exporter writes from version 14 on."""
CASES = [
    (name, exporter, opset)
    for name in NETS
    for exporter, opsets in OPSETS.items()
    for opset in opsets
    if opset >= 14 or name not in ATTENDS
]
SIZES = [(1, 16), (3, 16), (2, 8)]


@functools.cache
def exported(name: str, exporter: str, opset: int) -> onnx.ModelProto:
    """The net as ONNX, traced with a batch of 2."""
    if exporter == "dynamo":
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    net = NETS[name]
    settings: dict[str, Any] = {"dynamic_axes": net.axes, "dynamo": False}
    if exporter == "dynamo":
        shapes = {
            key: dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for key, axes in net.axes.items()
        }
        settings = {"dynamic_shapes": tuple(shapes.values()), "dynamo": True, "verbose": False}
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net.built(),
            net.inputs(2, 16),
            file,
            input_names=list(net.axes),
            opset_version=opset,
            **settings,
        )
    return onnx.load_from_string(file.getvalue())


def expected(name: str, inputs: tuple[Any, ...]) -> list[np.ndarray]:
    """What PyTorch gives."""
    with torch.no_grad():
        found = NETS[name].built()(*inputs)
    return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]


def agree(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Compare outputs in order."""
    assert len(found) == len(wanted)
    for value, right in zip(found, wanted, strict=True):
        assert value.dtype == right.dtype
        np.testing.assert_allclose(value, right, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "exporter", "opset"), CASES)
def test_a_net_of_pytorch(name: str, exporter: str, opset: int) -> None:
    proto = exported(name, exporter, opset)
    model = serde.to_relay(proto)
    relay.verify(model.mod)
    target = min(max(opset, 11), newest_runtime_opset())
    again = serde.from_relay(model, format="onnx", opset=target)
    session = open_session(again.SerializeToString())
    for batch, length in SIZES if name in ATTENDS else SIZES[:2]:
        torch.manual_seed(batch)
        inputs = NETS[name].inputs(batch, length)
        wanted = expected(name, inputs)
        given = feeds(proto, [each.numpy() for each in inputs])
        agree(interpret(model, given), wanted)
        agree(session.run(None, given), wanted)


@pytest.mark.parametrize("name", ["resnet", "bert", "lstm"])
def test_the_batch_keeps_a_name(name: str) -> None:
    model = serde.to_relay(exported(name, "script", 17))
    first = model.main.params[0].type
    assert isinstance(first, relay.TensorType)
    assert str(first.shape[0]) == "batch"
