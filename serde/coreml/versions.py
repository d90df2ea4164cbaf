"""Versions of Core ML: deployment targets, specification versions and operator sets.

Source: coremltools 9.0, ``_SPECIFICATION_VERSION_*`` and the registry of MIL's operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["BY_OPSET", "NEWEST_SPECIFICATION", "TARGETS", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment target.

    Attributes:
        name: Its name, of iOS; the other systems of the year go by it too.
        specification: Version of the specification that it brought.
        opset: Operator set of its ML Programs; None before there were any.
    """

    name: str
    specification: int
    opset: str | None


TARGETS = MappingProxyType(
    {
        target.name: target
        for target in (
            Target("iOS11", 1, None),
            Target("iOS12", 3, None),
            Target("iOS13", 4, None),
            Target("iOS14", 5, None),
            Target("iOS15", 6, "CoreML5"),
            Target("iOS16", 7, "CoreML6"),
            Target("iOS17", 8, "CoreML7"),
            Target("iOS18", 9, "CoreML8"),
            Target("iOS26", 10, "CoreML9"),
        )
    }
)
"""Deployment targets by name, oldest first."""

BY_OPSET = MappingProxyType({each.opset: each for each in TARGETS.values() if each.opset})
"""Deployment targets by the operator set of their ML Programs."""

NEWEST_SPECIFICATION = max(target.specification for target in TARGETS.values())
"""Newest version of the specification that is read."""
