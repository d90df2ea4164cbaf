"""How coremltools makes Core ML models of PyTorch nets, and what PyTorch itself gives."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from support.coreml_models import tools
from torch import Tensor, nn

__all__ = ["Built", "Inputs", "Recipe", "made"]

Inputs = Callable[[], tuple[Tensor, ...]]
"""Makes inputs."""


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes:
        make: Makes the net.
        inputs: Makes the inputs that PyTorch and the model are compared on.
        front: What PyTorch gives to coremltools.
        target: Deployment target; without one a NeuralNetwork is made.
        precision: What the program computes in.
        example: Makes the inputs that the net is traced with, where they are others.
        types: Makes coremltools' types of the inputs by their names; else fixed shapes.
        dynamic: For ``export``, the dimensions that may differ.
        options: More arguments of ``ct.convert``.
        compress: Makes the model a compressed one.
        prepare: What the model does to an input before the net sees it.
        states: Names of the buffers that the model keeps.
        beside: Another model, which becomes the default function of a package of both.
    """

    make: Callable[[], nn.Module]
    inputs: Inputs
    front: Literal["trace", "script", "export"] = "trace"
    target: str | None = "iOS15"
    precision: Literal["float16", "float32"] = "float32"
    example: Inputs | None = None
    types: Callable[[Any], Sequence[Any]] | None = None
    dynamic: Any = None
    options: Callable[[Any], Mapping[str, Any]] = field(default=lambda _ct: {})
    compress: Callable[[Any, Any], Any] | None = None
    prepare: Callable[[Tensor], Tensor] | None = None
    states: tuple[str, ...] = ()
    beside: str | None = None


@dataclass(frozen=True)
class Built:
    """A model, and what it is to give.

    Attributes:
        model: coremltools' ``MLModel``.
        inputs: Arrays by name; states are among them, as they are before.
        expected: What PyTorch gives: the outputs in order, then the states as they are after.
        tolerance: Greatest difference, as a part of the standard deviation of an output.
        function: The function of the model that is meant; None for the only one.
    """

    model: Any
    inputs: dict[str, np.ndarray]
    expected: list[np.ndarray]
    tolerance: float
    function: str | None = None


FOLDER = tempfile.TemporaryDirectory()
"""Where packages lie while they are in use."""

TOLERANCE = {"float32": 1e-4, "float16": 1e-2}
"""Greatest differences by precision.

Nets that PyTorch itself computes less exactly in float16 are made in float32 only: the small ResNet
and UNet are 1.2e-2 and 1.3e-2 away there.
"""

COMPRESSED = 3
"""Weights that a compressed model has at least."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch and coremltools say of each other's versions and of old ways."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _net(recipe: Recipe) -> nn.Module:
    """The net with weights of the usual size, and statistics that its inputs have."""
    torch.manual_seed(3)
    net = recipe.make().eval()
    with torch.no_grad():
        for name, value in net.named_parameters():
            if value.dim() < 2:
                low, high = (0.5, 1.5) if value.mean() == 1 else (-0.2, 0.2)
                value.uniform_(low, high)
            elif not value.any() or "embed" in name:
                value.normal_()
        norms = [
            each for each in net.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm)
        ]
        for norm in norms:
            norm.train()
            norm.reset_running_stats()
            norm.momentum = None
        if norms:
            torch.manual_seed(4)
            draws = [(recipe.example or recipe.inputs)() for _ in range(8)]
            (whole,) = (torch.cat(each) for each in zip(*draws, strict=True))
            net(whole if recipe.prepare is None else recipe.prepare(whole))
        return net.eval()


def _drawn(inputs: Inputs, recipe: Recipe) -> tuple[Tensor, ...]:
    torch.manual_seed(5)
    drawn = inputs()
    return tuple(map(recipe.prepare, drawn)) if recipe.prepare is not None else drawn


def _fronted(recipe: Recipe, net: nn.Module, example: tuple[Tensor, ...]) -> Any:
    if recipe.front == "script":
        return torch.jit.script(net)
    if recipe.front == "trace":
        return torch.jit.trace(net, example, check_trace=False)
    program = torch.export.export(net, example, dynamic_shapes=recipe.dynamic)
    return program.run_decompositions({})


def _names(count: int) -> list[str]:
    return [f"x{i}" for i in range(count)]


def _converted(recipe: Recipe, net: nn.Module) -> Any:
    ct = tools()
    example = _drawn(recipe.example or recipe.inputs, recipe)
    if recipe.types is not None:
        types = list(recipe.types(ct))
    else:
        whole = [not each.dtype.is_floating_point for each in example]
        types = [
            ct.TensorType(name, each.shape, dtype=np.int32 if integer else np.float32)
            for name, each, integer in zip(_names(len(example)), example, whole, strict=True)
        ]
    options: dict[str, Any] = {"convert_to": "neuralnetwork"}
    if recipe.target is not None:
        options = {
            "convert_to": "mlprogram",
            "minimum_deployment_target": getattr(ct.target, recipe.target),
            "compute_precision": getattr(ct.precision, recipe.precision.upper()),
        }
    if recipe.states:
        options["states"] = [
            ct.StateType(ct.TensorType(shape=getattr(net, name).shape, dtype=np.float16), name)
            for name in recipe.states
        ]
    options |= recipe.options(ct)
    return ct.convert(_fronted(recipe, net, example), inputs=types, skip_model_load=True, **options)


def _weights(model: Any) -> dict[str, np.ndarray]:
    """The weights of a program by the names that coremltools gives them."""
    found = tools().optimize.coreml.get_weights_metadata(model, weight_threshold=0)
    return {name: np.asarray(each.val) for name, each in found.items()}


def _with_weights_of(model: Any, plain: Any, net: nn.Module) -> nn.Module:
    """Give a net the weights of a compressed model, as coremltools decompresses them.

    Which is which shows in the model before, whose weights are the net's own.
    """
    before = _weights(plain)
    after = _weights(tools().optimize.coreml.decompress_weights(model))
    changed = 0
    with torch.no_grad():
        for value in net.parameters():
            own = value.numpy()
            same = [
                name
                for name, each in before.items()
                if each.shape == own.shape and np.allclose(each, own, rtol=1e-3, atol=1e-6)
            ]
            new = [each for name, each in after.items() if same and name.startswith(same[0])]
            if len(same) == len(new) == 1:
                value.copy_(torch.from_numpy(new[0].astype(np.float32)))
                changed += not np.array_equal(new[0], before[same[0]])
    if changed < COMPRESSED:
        raise AssertionError(f"only {changed} weights of the net are compressed")
    return net


def _together(model: Any, other: Any) -> Any:
    """Return a package of two models: the functions ``one`` and, by default, ``other``."""
    ct = tools()
    folder = Path(FOLDER.name)
    functions = ct.utils.MultiFunctionDescriptor()
    for name, each in (("one", model), ("other", other)):
        each.save(str(folder / f"{name}.mlpackage"))
        functions.add_function(str(folder / f"{name}.mlpackage"), "main", name)
    functions.default_function_name = "other"
    ct.utils.save_multifunction(functions, str(folder / "both.mlpackage"))
    both = ct.models.MLModel(str(folder / "both.mlpackage"), skip_model_load=True)
    return both


def made(recipe: Recipe, other: Any = None) -> Built:
    """Make a model.

    Args:
        recipe: How.
        other: The model that becomes the default function beside it, if there is to be one.
    """
    with _quiet():
        net = _net(recipe)
        states = {key: getattr(net, key) for key in recipe.states}
        for value in states.values():
            value.copy_(torch.randn(value.shape).half())
        before = {key: value.numpy().copy() for key, value in states.items()}
        model = _converted(recipe, net)
        if recipe.compress is not None:
            plain, model = model, recipe.compress(tools(), model)
            net = _with_weights_of(model, plain, net)
        if other is not None:
            model = _together(model, other)
        given = _drawn(recipe.inputs, replace(recipe, prepare=None))
        inputs = dict(zip(_names(len(given)), (each.numpy() for each in given), strict=True))
        for key, value in states.items():
            value.copy_(torch.from_numpy(before[key]))
        with torch.no_grad():
            found = net(*_drawn(recipe.inputs, recipe))
    outputs = [*(found if isinstance(found, tuple) else (found,)), *states.values()]
    # A NeuralNetwork has no tensors without axes.
    rank = 1 if recipe.target is None else 0
    return Built(
        model,
        inputs | before,
        [np.array(each.detach().numpy(), ndmin=rank) for each in outputs],
        TOLERANCE[recipe.precision],
        None if other is None else "one",
    )
