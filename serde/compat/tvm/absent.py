"""What TVM 0.18 has and Relay does not reach: it can be imported, and says why when it is used."""

from __future__ import annotations

from types import ModuleType
from typing import Any as AnyValue, Final, NoReturn

from serde.errors import RelayError

__all__ = ["Absent", "NotReachedError", "find_absent"]

_COMPILED: Final = (
    "compiling, tuning and running on devices take TVM itself; serde.compile(model) gives a model "
    "to TVM's Relax, and relay.create_executor runs a module in Python"
)
_ABSENT: Final = (
    "arith auto_scheduler autotvm build contrib driver get_global_func lower meta_schedule micro "
    "register_func register_object rpc script topi"
)
"""Modules and functions of TVM."""


class NotReachedError(RelayError, AttributeError):
    """A name of TVM's that has no counterpart in serde was used."""


class Absent(ModuleType):
    """A module, class or function that is not there; importing it alone does no harm."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotReachedError(f"{self.__name__}.{name} is not in serde: {_COMPILED}")

    def __call__(self, *_args: AnyValue, **_options: AnyValue) -> NoReturn:
        """Say that it is not there.

        Raises:
            NotReachedError: Always.
        """
        raise NotReachedError(f"{self.__name__} is not in serde: {_COMPILED}")


def find_absent(path: str) -> Absent | None:
    """Return what stands for a name below ``tvm`` that Relay does not reach, None for others."""
    return Absent(f"tvm.{path}") if path.partition(".")[0] in _ABSENT.split() else None
