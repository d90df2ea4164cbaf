"""Quantised operators in plain Relay, or in part."""

from __future__ import annotations

from typing import ClassVar

from serde.relay.tvm.passes.legalize import RewriteByAttribute

__all__ = ["CanonicalizeOps", "Legalize"]


class CanonicalizeOps(RewriteByAttribute):
    """Write quantised operators in plain Relay, in integers alone where they are so.

    What stands for an operator is its attribute ``FTVMQnnCanonicalize``: what it decomposes to,
    or a function of yours. ``qnn.conv2d_transpose`` and the simulated operators have none, as in
    TVM: :class:`Legalize` writes the former. Results are equal to those of the operators.
    """

    name: ClassVar[str] = "CanonicalizeOps"
    opt_level: ClassVar[int] = 1

    @property
    def key(self) -> str:
        """Key of the attribute."""
        return "FTVMQnnCanonicalize"


class Legalize(RewriteByAttribute):
    """Write quantised operators in the form that suits every target.

    What stands for an operator is its attribute ``FTVMQnnLegalize``: see
    :mod:`serde.relay.tvm.passes.qnn.legalizations`. Results are equal to those of the operators.
    """

    name: ClassVar[str] = "Legalize"
    opt_level: ClassVar[int] = 1

    @property
    def key(self) -> str:
        """Key of the attribute."""
        return "FTVMQnnLegalize"
