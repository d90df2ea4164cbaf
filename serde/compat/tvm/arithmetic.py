"""Lengths of tensors, which TVM writes as arithmetic of ``tvm.tir``: integers and symbols here."""

from __future__ import annotations

from typing import Any as AnyValue, Final

from serde.compat.tvm.absent import Absent
from serde.relay.ir import Any, SymDim, symbol

__all__ = ["te", "tir"]


def var(name: str = "tindex", dtype: str = "int32", span: AnyValue = None) -> SymDim:
    """Return the length of that name; equal names are equal lengths."""
    return symbol(name)


def IntImm(dtype: str, value: int, span: AnyValue = None) -> int:  # noqa: N802 - TVM's name.
    """Return a length that is known."""
    return int(value)


def const(value: int, dtype: str = "int32", span: AnyValue = None) -> int:
    """Return a length that is known."""
    return IntImm(dtype, value)


class _Lengths(Absent):
    """A module of which lengths alone are there."""

    var = size_var = Var = SizeVar = staticmethod(var)
    IntImm = staticmethod(IntImm)
    const = staticmethod(const)
    Any = Any


te: Final = _Lengths("tvm.te")
tir: Final = _Lengths("tvm.tir")
