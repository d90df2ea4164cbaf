"""From a module of Relax to a Relay model."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.relax.model import RelaxModel
from serde.relax.options import RelaxImportOptions
from serde.relay.ir.model import RelayModel
from serde.report import Report

__all__ = ["to_relay"]


def to_relay(model: RelaxModel, options: RelaxImportOptions, report: Report) -> RelayModel:
    """Return the module as Relay."""
    raise Unsupported("not read")
