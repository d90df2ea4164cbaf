"""Lengths of tensors, which TVM writes as arithmetic of ``tvm.tir``: integers and symbols here."""

from __future__ import annotations

from typing import Any as AnyValue, Final

from serde.compat.tvm.absent import Absent
from serde.relay.ir import Any, SymDim, symbol

__all__ = ["te", "tir"]


class _Symbols(type):
    """Of a class whose instances are symbols."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, SymDim)


class Var(metaclass=_Symbols):
    """The length of a name; equal names are equal lengths."""

    def __new__(cls, name: str = "tindex", dtype: str = "int32", span: AnyValue = None) -> SymDim:  # type: ignore[misc]
        """Return the symbol."""
        return symbol(name)


class _Lengths(Absent):
    """A module of which lengths alone are there."""

    var = size_var = Var = SizeVar = Var
    Any = Any

    @staticmethod
    def IntImm(dtype: str, value: int) -> int:  # noqa: N802 - TVM's name.
        """Return a length that is known."""
        return int(value)

    @staticmethod
    def const(value: int, dtype: str = "int32") -> int:
        """Return a length that is known."""
        return int(value)


te: Final = _Lengths("tvm.te")
tir: Final = _Lengths("tvm.tir")
