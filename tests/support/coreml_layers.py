"""NeuralNetworks that coremltools' builder makes, and what they give in Relay's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from support.coreml_models import tools

import serde
from serde.relay.ir.model import RelayModel
from serde.relay.run.interpreter import run

Build = Callable[[Any], object]


def network_of(
    build: Build,
    inputs: Mapping[str, np.ndarray],
    outputs: Sequence[str] = ("y",),
    *,
    exact: bool = False,
    mode: str | None = None,
) -> Any:
    """A message of a network.

    Args:
        build: Adds layers to a builder.
        inputs: An array for each input; its shape is declared.
        outputs: Names of the outputs, which declare no shape.
        exact: Whether tensors have as many axes as declared, and not always five.
        mode: ``classifier`` or ``regressor``.
    """
    ct = tools()
    arrays = ct.models.datatypes.Array
    builder = ct.models.neural_network.NeuralNetworkBuilder(
        [(name, arrays(*value.shape)) for name, value in inputs.items()],
        [(name, None) for name in outputs],
        mode=mode,
        disable_rank5_shape_mapping=exact,
    )
    build(builder)
    return builder.spec


def evaluate(model: RelayModel, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What a model gives in Relay's interpreter."""
    given = {each.name_hint: inputs[each.name_hint] for each in model.inputs()}
    given |= {name: weight.array() for name, weight in model.params.items()}
    result = run(model.main, [given[each.name_hint] for each in model.main.params], mod=model.mod)
    return list(result) if isinstance(result, tuple) else [result]


def check_layers(
    build: Build,
    inputs: Mapping[str, np.ndarray],
    expected: np.ndarray | Sequence[np.ndarray],
    *,
    exact: bool = False,
    tolerance: float = 2e-5,
    shapes: Mapping[str, Sequence[Any]] | None = None,
) -> RelayModel:
    """Compare what layers become in Relay with what they are to give.

    Args:
        build: Adds layers, which give ``y``, or ``y0``, ``y1`` and so on.
        inputs: The inputs.
        expected: The result, or several.
        exact: Whether tensors have as many axes as declared, and not always five.
        tolerance: Relative and absolute.
        shapes: Shapes of inputs that are to be read as something else.
    """
    wanted = [expected] if isinstance(expected, np.ndarray) else list(expected)
    names = ["y"] if isinstance(expected, np.ndarray) else [f"y{i}" for i in range(len(wanted))]
    spec = network_of(build, inputs, names, exact=exact)
    model = serde.to_relay(spec, input_shapes=dict(shapes or {}))
    assert model.meta.outputs == tuple(names)
    found = evaluate(model, inputs)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    return model
