"""Type inference as a pass; what it does is in :mod:`serde.relay.ir.infer`."""

from __future__ import annotations

from typing import ClassVar

from serde.errors import TypeInferenceError
from serde.relay.ir import Call, IRModule, infer_module
from serde.relay.ir.bodies import all_nodes
from serde.relay.transform.base import Pass

__all__ = ["InferType"]


class InferType(Pass):
    """Find the type of every expression, and note it there.

    Types are unified: untyped variables and results take theirs from arguments, from what is
    declared, from branches, and from the operators that they feed (a weight of ``nn.conv2d``
    whose ``channels`` and ``kernel_size`` are given).

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """

    name: ClassVar[str] = "InferType"

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Infer all functions."""
        try:
            return infer_module(mod)
        except TypeInferenceError as error:
            error.args = (f"{error}{_place(mod, error.node)}", *error.args[1:])
            raise


def _place(mod: IRModule, node: object) -> str:
    """Return which call of which function a node is, where it is one of many, and its source."""
    for variable, function in mod.functions.items():
        calls = [each for each in all_nodes(function) if isinstance(each, Call)]
        for number, call in enumerate(calls if len(calls) > 1 else (), start=1):
            if call is node:
                source = f", from {call.span}" if call.span else ""
                return f" (call {number} of {len(calls)} in @{variable.name_hint}{source})"
    return ""
