"""Nets of PyTorch that TVM's importer made modules of Relax: read, and led to ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tvm")

import torch
from support.relax_imports import read_and_run
from support.relax_torch_nets import NETS, Function
from tvm.relax.frontend.torch import from_exported_program

import serde

pytestmark = pytest.mark.filterwarnings("ignore")

_WIDE = {"resnet", "language_model", "lookups"}

_MARKED = [
    pytest.param(name, marks=pytest.mark.wide if name in _WIDE else pytest.mark.slow)
    for name in NETS
]


def _run_in_onnx_runtime(module: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    runtime = pytest.importorskip("onnxruntime")
    proto = serde.export_model(module, format="onnx")
    session = runtime.InferenceSession(proto.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    found: list[np.ndarray] = session.run(None, dict(zip(names, arrays, strict=True)))
    return found


def _compare(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.shape == wanted.shape
        assert actual.dtype == wanted.dtype
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=2e-5)


def _leaves(value: Any) -> list[np.ndarray]:
    return [each.detach().numpy() for each in torch.utils._pytree.tree_leaves(value)]


@pytest.mark.parametrize("keep", [False, True], ids=["constants", "params"])
@pytest.mark.parametrize("name", _MARKED)
def test_a_net_gives_what_pytorch_gives(name: str, keep: bool) -> None:
    torch.manual_seed(1)
    net, given = NETS[name]()
    net.eval()
    expected, arrays = _leaves(net(*given)), [each.numpy() for each in given]
    module = from_exported_program(torch.export.export(net, given), keep_params_as_input=keep)
    _compare(read_and_run(module, arrays), expected)
    if not keep:
        _compare(_run_in_onnx_runtime(module, arrays), expected)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("language_model", marks=pytest.mark.wide),
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (
                "resnet",
                "perceptron",
                "embedding",
                "encoder",
                "vision_transformer",
                "lstm",
            )
        ),
    ],
)
def test_a_net_of_any_batch_stays_one(name: str) -> None:
    torch.manual_seed(1)
    net, given = NETS[name]()
    net.eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = tuple({0: batch} for _ in given)
    shapes = (shapes,) if isinstance(net, Function) else shapes
    program = torch.export.export(net, given, dynamic_shapes=shapes)
    module = from_exported_program(program, keep_params_as_input=True)
    larger = tuple(torch.cat([each, each, each[:1]]) for each in given)
    expected, arrays = _leaves(net(*larger)), [each.numpy() for each in larger]
    _compare(read_and_run(module, arrays), expected)
    _compare(_run_in_onnx_runtime(module, arrays), expected)
