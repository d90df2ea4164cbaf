"""Operators of domains besides ONNX's own, in what a toolchain takes: their names and forms."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core import dataclass

if TYPE_CHECKING:
    import onnx

__all__ = ["PLAIN", "Composite", "custom_form", "is_custom", "operator_name"]

PLAIN: Final = "ai.onnx"
"""What ONNX's own domain, whose name is empty, is called."""

_NAME: Final = re.compile(rf"(?!{re.escape(PLAIN)}::)[A-Za-z_][\w.-]*::[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Composite:
    """What becomes one operator of a toolchain's own.

    The pattern is Relay's text of a function, or one of :mod:`serde.relay.dataflow_pattern`. With
    text, `told` are names of attributes that may have any value, and become the operator's; else a
    function that gets the last call of a match and returns these, or whether it is taken.
    """

    name: str
    pattern: AnyValue
    told: AnyValue = None


def custom_form(name: str, version: int = 1, inputs: int = 16, outputs: int = 16) -> AnyValue:
    """Return the form of an operator that has no schema; inputs are called by their numbers."""
    names = [SimpleNamespace(name=str(i), type_str="T") for i in range(max(inputs, outputs))]
    return SimpleNamespace(
        name=name, since_version=version, inputs=names[:inputs], outputs=names[:outputs],
        attributes={}, type_constraints=[SimpleNamespace(type_param_str="T")],
    )  # fmt: skip


def is_custom(name: AnyValue) -> bool:
    """Whether a name is that of an operator of a domain besides ONNX's own."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def operator_name(node: onnx.NodeProto) -> str:
    """Return what a list calls the operator of a node."""
    return node.op_type if node.domain in ("", PLAIN) else f"{node.domain}::{node.op_type}"
