"""Runs operators that Relay does not know by the frameworks that they come from.

The kernel of ``serde.foreign`` asks for it, so the interpreter and whatever runs parts of a model
by it can run such operators; a framework is loaded when one of its operators is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any as AnyValue

from serde.bridge.formats import get_bridge
from serde.core.weights import Array
from serde.errors import OptionError, RelayError
from serde.relay.ir.foreign import REGION_FRAMEWORK, Foreign

__all__ = ["REGIONS", "has_kernel", "register_kernel", "run_foreign"]

REGIONS: ContextVar[Mapping[str, tuple[int, Callable[..., AnyValue]]]] = ContextVar("REGIONS")
"""Regions that the part of a host that runs may call: how many inputs each has, what runs it."""

_KERNELS: dict[tuple[str, str], Callable[..., AnyValue]] = {}


def register_kernel(name: str, function: Callable[..., AnyValue], *, format: str = "") -> None:
    """Let a function run an operator in place of the framework that it comes from.

    Formats without a framework here, as Core ML and NNEF, need it to run such operators at all.

    Args:
        name: The operator, as ``custom_ops`` names it: ``"my_op"``, ``"com.acme::MyOp"``.
        function: Gets an array for each input, None for one that is left out, and the attributes
            by keyword; returns an array, or a tuple of several.
        format: The format that it comes from, where it is for one alone.

    Raises:
        OptionError: That is no function.

    Example:
        >>> serde.register_kernel("com.acme::Twice", lambda x: x + x)
    """
    if not callable(function):
        raise OptionError(f"register_kernel: {name}: expected a function, found {function!r}")
    _KERNELS[format, name] = function


def _kernel(node: Foreign) -> Callable[..., AnyValue] | None:
    keys = [(form, name) for form in (node.framework, "") for name in node.names]
    return next((_KERNELS[key] for key in keys if key in _KERNELS), None)


def has_kernel(node: Foreign) -> bool:
    """Whether a function was registered that runs an operator."""
    return _kernel(node) is not None


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
    if node.framework == REGION_FRAMEWORK:
        known = REGIONS.get({})
        if node.name not in known:
            raise RelayError(f"region {node.name} runs by the executor of its module alone")
        return list(known[node.name][1](inputs))
    kernel = _kernel(node)
    if kernel is not None:
        try:
            found = kernel(*node.arrange(inputs), **node.plain_attributes)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise RelayError(f"{node.full_name}: its kernel fails: {what}") from error
        return list(found) if isinstance(found, (list, tuple)) else [found]
    try:
        bridge = get_bridge(node.framework)
    except OptionError as error:
        raise RelayError(f"{node.full_name}: {error}") from error
    return list(bridge.run_foreign(node, node.arrange(inputs)))
