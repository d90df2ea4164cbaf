"""What nodes ask of modules that stand above them.

``a + b`` makes a call and ``mod.astext()`` prints, but the registry of operators and the printer
are built upon the nodes. So they are entered here when the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any as AnyValue
from typing import Final

__all__ = ["HOOKS", "Hooks"]


def _missing(*_args: AnyValue, **_kwargs: AnyValue) -> AnyValue:
    raise RuntimeError("import serde.relay first")


@dataclass(slots=True)
class Hooks:
    """Functions that methods of nodes call.

    Attributes:
        call: Builds a call of an operator of a name; see :func:`serde.relay.ir.registry.call`.
        printer: Returns the module :mod:`serde.relay.text.printer`.
    """

    call: Callable[..., AnyValue] = _missing
    printer: Callable[[], AnyValue] = _missing


HOOKS: Final = Hooks()
