"""What TVM 0.18 has and Relay does not reach: it can be imported, and says why when it is used."""

from __future__ import annotations

import operator
from types import ModuleType
from typing import Any as AnyValue, Final, NoReturn

from serde.errors import RelayError
from serde.relay.homes import COMPILED
from serde.relay.ir import Any, SymDim, symbol

__all__ = ["NotReachedError", "find_absent"]

_ABSENT: Final = (
    "arith auto_scheduler autotvm build contrib driver get_global_func lower meta_schedule micro "
    "register_func register_object relay rpc script topi"
)


class NotReachedError(RelayError, AttributeError):
    """A name of TVM's that has no counterpart in serde was used."""


class _Absent(ModuleType):
    """A module, class or function that is not there; importing it alone does no harm."""

    __path__: list[str] = []  # noqa: RUF012 - as packages have it.

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotReachedError(f"{self.__name__}.{name} is not in serde: {COMPILED}")

    def __call__(self, *_args: AnyValue, **_options: AnyValue) -> NoReturn:
        """Raise NotReachedError."""
        raise NotReachedError(f"{self.__name__} is not in serde: {COMPILED}")


class _Symbols(type):
    """Of a class whose instances are symbols."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, SymDim)


class _Var(metaclass=_Symbols):
    """The length of a name; equal names are equal lengths."""

    def __new__(cls, name: str = "tindex", *_facts: AnyValue) -> SymDim:  # type: ignore[misc]
        """Return the symbol."""
        return symbol(name)


class _Lengths(_Absent):
    """A module of TVM's arithmetic, of which there is what shapes are written with."""

    var = size_var = Var = SizeVar = _Var
    Any = Any
    indexdiv = floordiv = operator.floordiv
    IntImm = staticmethod(lambda dtype, value: int(value))
    const = staticmethod(lambda value, dtype="int32": int(value))


def find_absent(path: str) -> ModuleType | None:
    """Return what stands for a name below ``tvm`` that Relay does not reach, None for others."""
    kinds = {"te": _Lengths, "tir": _Lengths, **dict.fromkeys(_ABSENT.split(), _Absent)}
    kind = kinds.get(path.partition(".")[0])
    return None if kind is None else kind(f"tvm.{path}")
