"""From a Relay model to a Core ML model: an ML Program or, for older systems, a NeuralNetwork."""

from __future__ import annotations

from typing import TYPE_CHECKING

from serde.core import Report, pause_garbage_collection
from serde.coreml.model import CoremlModel
from serde.coreml.versions import TARGETS
from serde.errors import OptionError
from serde.relay.ir.model import RelayModel

if TYPE_CHECKING:
    from serde.coreml.options import CoremlExportOptions

__all__ = ["from_relay"]

OLDEST = 13
"""Version of iOS of the oldest target, of whose layers tensors have the axes that they declare."""


@pause_garbage_collection()
def from_relay(model: RelayModel, options: CoremlExportOptions, report: Report) -> CoremlModel:
    """Return `model` as an ML Program, or as a NeuralNetwork for systems that know no programs.

    Raises:
        OptionError: No models are written for the target.
        UnsupportedModelError: Some of the model cannot be said there.
    """
    target = TARGETS.get(options.minimum_deployment_target)
    if target is None or target.number < OLDEST:
        known = ", ".join(name for name, each in TARGETS.items() if each.number >= OLDEST)
        raise OptionError(
            f"minimum_deployment_target {options.minimum_deployment_target!r}: expected {known}"
        )
    if options.float32_ops and not (target.opset and options.computes_float16):
        raise OptionError("float32_ops: all of the model is computed in float32")
    # Only the dialect that is written is loaded.
    if target.opset is None:
        from serde.coreml.neuralnetwork.exporter import network_from_relay

        return network_from_relay(model, target, options, report)
    from serde.coreml.mlprogram.exporter import program_from_relay

    return program_from_relay(model, target, options, report)
