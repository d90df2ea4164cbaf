"""NeuralNetworks that serde wrote, judged by an executor of layers and by our own importer."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from support.coreml_models import tools
from support.nn_layers import evaluate_network

import serde
from serde.core.report import Report
from serde.coreml.exporter import from_relay
from serde.coreml.model import CoremlModel
from serde.coreml.options import CoremlExportOptions
from serde.coreml.writer import save
from serde.relay.ir.model import RelayModel
from serde.relay.run.interpreter import run

CONSENT = frozenset({"integers-as-float32", "float64-as-float32"})


def network(model: RelayModel, target: str, **options: Any) -> CoremlModel:
    """A model as a NeuralNetwork."""
    given = CoremlExportOptions(minimum_deployment_target=target, **{"allow": CONSENT, **options})
    return from_relay(model, given, Report())


def message_of(path: Path) -> Any:
    """The whole message in a file, by Apple's classes."""
    return tools().proto.Model_pb2.Model.FromString(path.read_bytes())


def layer_kinds(model: CoremlModel) -> set[str]:
    """The kinds of layer of a network, those of networks within layers included."""
    found: set[str] = set()
    pending = [model.network]
    while pending:
        for each in pending.pop().layers:
            kind = each.WhichOneof("layer")
            found.add(kind)
            if kind == "branch":
                pending += [each.branch.ifBranch, each.branch.elseBranch]
            if kind == "loop":
                pending += [each.loop.conditionNetwork, each.loop.bodyNetwork]
    return found


def check_network(
    model: CoremlModel,
    inputs: Mapping[str, np.ndarray],
    expected: Sequence[np.ndarray],
    *,
    tolerance: float = 2e-5,
    drawn: bool = False,
) -> Any:
    """Compare what the layers of a saved network give with what they are to give.

    Args:
        model: The network.
        inputs: The inputs.
        expected: The outputs.
        tolerance: Relative and absolute.
        drawn: Whether the values are random.

    Returns:
        Apple's message of the network.
    """
    with tempfile.TemporaryDirectory() as directory:
        path = save(model, Path(directory) / "net.mlmodel")
        message = message_of(path)
        found = evaluate_network(message, inputs)
        names = [each.name for each in message.description.output]
        results = [[found[name] for name in names], evaluate_back(path, inputs)]
    for outputs in results:
        for actual, wanted in zip(outputs, map(np.atleast_1d, expected), strict=True):
            assert actual.shape == wanted.shape
            assert actual.dtype.kind == ("f" if wanted.dtype.kind == "f" else "i")
            if not drawn:
                np.testing.assert_allclose(
                    actual.astype(np.float64), wanted.astype(np.float64), tolerance, tolerance
                )
    return message


def evaluate_back(path: Path, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What a file gives that is read again."""
    back = serde.to_relay(path)
    given = {
        each.name_hint: inputs[each.name_hint].astype(each.type.dtype) for each in back.inputs()
    }
    given |= {name: weight.array() for name, weight in back.params.items()}
    result = run(back.main, [given[each.name_hint] for each in back.main.params], mod=back.mod)
    return list(result) if isinstance(result, tuple) else [result]
