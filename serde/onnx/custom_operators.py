"""Operators of domains besides ONNX's own, in what a toolchain takes: their names and forms."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any as AnyValue, ClassVar, Final

from serde.core import dataclass
from serde.errors import OptionError

if TYPE_CHECKING:
    from serde.relay.ir.foreign import Foreign

__all__ = [
    "PLAIN", "Composite", "CustomForm", "custom_form", "custom_name", "is_custom", "meant_custom",
    "require_custom",
]  # fmt: skip

PLAIN: Final = "ai.onnx"
"""What ONNX's own domain, whose name is empty, is called."""

_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*::[A-Za-z_]\w*", re.ASCII)
_NAMED_INPUTS: Final = 16
"""How many inputs a list can name, by their numbers."""


@dataclass(frozen=True, slots=True)
class Composite:
    """What becomes one operator of a toolchain's own.

    Attributes:
        name: The operator, with its domain.
        pattern: What it stands for: Relay's text or a function of it, or a pattern of
            :mod:`serde.relay.dataflow_pattern`.
        told: Of text: names of attributes that may have any value, and become the operator's. Of
            patterns: a function that gets the last call of a match and returns whether it is
            taken, or the attributes of the operator.
    """

    name: str
    pattern: AnyValue
    told: AnyValue = None


@dataclass(frozen=True, slots=True)
class _Formal:
    """An input or output: its number, which is its name, and the variable of its type."""

    name: str
    type_str: str = "T"
    type_param_str: str = "T"


@dataclass(frozen=True, slots=True)
class CustomForm:
    """What is known of an operator without a schema: in the words that a schema has."""

    name: str
    since_version: int
    inputs: tuple[_Formal, ...]
    outputs: tuple[_Formal, ...]
    attributes: ClassVar[Mapping[str, AnyValue]] = {}
    type_constraints: ClassVar[Collection[_Formal]] = (_Formal(""),)


def custom_form(
    name: str, version: int = 1, inputs: int = _NAMED_INPUTS, outputs: int = _NAMED_INPUTS
) -> CustomForm:
    """Return the form of an operator with so many inputs and outputs."""
    formals = [_Formal(str(index)) for index in range(max(inputs, outputs))]
    return CustomForm(name, version, tuple(formals[:inputs]), tuple(formals[:outputs]))


def is_custom(name: AnyValue) -> bool:
    """Whether a name is that of an operator of a domain besides ONNX's own."""
    known = isinstance(name, str) and _NAME.fullmatch(name) is not None
    return known and not name.startswith(f"{PLAIN}::")


def require_custom(name: AnyValue, where: str) -> None:
    """Refuse what is no such name.

    Raises:
        OptionError: It is none.
    """
    if not is_custom(name):
        expected = "an operator of a domain of its own such as com.acme::Scale"
        raise OptionError(f"{where}expected {expected}, found {name!r}"[:300])


def meant_custom(name: str) -> str:
    """Return the operator that a mistaken name may have meant; empty where it is like none."""
    parts = re.split(r":+|\.(?=\w+$)", name)
    meant = f"{parts[0]}::{parts[-1]}"
    return meant if len(parts) == 2 and is_custom(meant) else ""


def custom_name(node: Foreign) -> str:
    """Return what an operator that Relay does not know is called, once it is written."""
    return f"{node.domain or node.framework}::{node.name}"
