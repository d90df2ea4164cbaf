"""Functions of PyTorch as programs: traced or exported, read into Relay, run by its interpreter."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from serde.core.report import Report
from serde.engine.interpreter import RelayEngine
from serde.relay.ir.model import RelayModel
from serde.torch.importer import to_relay
from serde.torch.live.exported import from_exported_program, read_graph, tensor_weight
from serde.torch.model import Input, TorchModel
from serde.torch.options import TorchImportOptions

__all__ = ["assert_equal_results", "export", "flatten", "run", "trace"]


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def flatten(found: Any) -> list[torch.Tensor]:
    """Return the tensors of a result."""
    if isinstance(found, torch.Tensor):
        return [found]
    return [each for item in found for each in flatten(item)]


def trace(function: Callable[..., Any], *tensors: torch.Tensor) -> RelayModel:
    """Return a function as its trace of ATen operators has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = make_fx(function, pre_dispatch=True)(*tensors)
    module.graph.eliminate_dead_code()
    weights, names = {}, {}
    for node in list(module.graph.nodes):
        value = getattr(module, node.target, None) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            with module.graph.inserting_before(node):
                stand_in = module.graph.placeholder(node.name)
            node.replace_all_uses_with(stand_in)
            module.graph.erase_node(node)
            weights[stand_in.name] = tensor_weight(value)
            names[stand_in.name] = stand_in.name
    graph = read_graph(module, weights=names)
    inputs = [
        Input(name, name, list(each.shape), str(each.dtype).removeprefix("torch."))
        for name, each in zip(graph.inputs, tensors, strict=True)
    ]
    outputs = [f"output{place}" for place in range(len(graph.outputs))]
    model = TorchModel(graph, inputs, outputs, weights, "module")
    return to_relay(model, TorchImportOptions(), Report())


def export(function: Callable[[Any], Any], x: torch.Tensor, dims: dict[int, Any]) -> RelayModel:
    """Return a function of one tensor, some axes of which have any length."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(_Function(function), (x,), dynamic_shapes=(dims,))
    return to_relay(from_exported_program(program), TorchImportOptions(), Report())


def run(model: RelayModel, *tensors: torch.Tensor) -> list[np.ndarray]:
    """Return the results of a program."""
    names = model.meta.inputs
    arrays = {name: tensor_weight(each).array() for name, each in zip(names, tensors, strict=True)}
    return list(RelayEngine(model).run(arrays))


def assert_equal_results(
    model: RelayModel, function: Callable[..., Any], *tensors: torch.Tensor, tolerance: float = 1e-5
) -> None:
    """Compare the results of a program with PyTorch's: whole numbers exactly."""
    expected = [tensor_weight(each).array() for each in flatten(function(*tensors))]
    found = run(model, *tensors)
    assert [each.shape for each in found] == [each.shape for each in expected]
    assert [each.dtype for each in found] == [each.dtype for each in expected]
    for one, other in zip(found, expected, strict=True):
        if other.dtype.kind in "iub":
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(
                one.astype(np.float64), other.astype(np.float64), rtol=tolerance, atol=tolerance
            )


def sequences(*shapes: Sequence[int]) -> list[torch.Tensor]:
    """Return a tensor of each shape, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(tuple(shape), generator=generator) for shape in shapes]
