"""Runs operators that Relay does not know by the frameworks that they come from.

The kernel of ``serde.foreign`` asks for it, so the interpreter and whatever runs parts of a model
by it can run such operators; a framework is loaded when one of its operators is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.bridge import get_bridge
from serde.errors import OptionError, RelayError
from serde.relay.ir.foreign import Foreign
from serde.weights import Array

__all__ = ["run_foreign"]


def run_foreign(attrs: Mapping[str, AnyValue], inputs: Sequence[Array]) -> list[Array]:
    """Return what an operator computes.

    Args:
        attrs: Attributes of a call of ``serde.foreign``.
        inputs: Its operands.

    Raises:
        MissingDependency: The framework is not installed.
        RelayError: There is no such framework here, it does not have the operator, or that fails.
    """
    node = Foreign.of_attributes(attrs)
    try:
        bridge = get_bridge(node.framework)
    except OptionError as error:
        raise RelayError(f"{node.full_name}: {error}") from error
    return list(bridge.run_foreign(node, node.arrange(inputs)))
