"""References: places that hold a value and can be written, for programs with state."""

from __future__ import annotations

from serde.relay.ir.expr import Expr, Span, astuple
from serde.relay.ir.types import RefType, TupleType

__all__ = ["RefCreate", "RefRead", "RefWrite"]


class RefCreate(Expr):
    """A new reference that holds `value`."""

    __slots__ = ("value",)

    def __init__(self, value: Expr, span: Span | None = None) -> None:
        self.value = value = astuple(value)
        self.below = (value,)
        self.type = None if value.type is None else RefType(value.type)
        self.span = span

    def __repr__(self) -> str:
        return "RefCreate"


class RefRead(Expr):
    """What the reference `ref` holds when this is evaluated."""

    __slots__ = ("ref",)

    def __init__(self, ref: Expr, span: Span | None = None) -> None:
        self.ref = ref
        self.below = (ref,)
        self.type = ref.type.value if isinstance(ref.type, RefType) else None
        self.span = span

    def __repr__(self) -> str:
        return "RefRead"


class RefWrite(Expr):
    """Lets the reference `ref` hold `value` from now on; yields the empty tuple."""

    __slots__ = ("ref", "value")

    def __init__(self, ref: Expr, value: Expr, span: Span | None = None) -> None:
        self.ref = ref
        self.value = value = astuple(value)
        self.below = (ref, value)
        self.type = None if ref.type is None or value.type is None else TupleType(())
        self.span = span

    def __repr__(self) -> str:
        return "RefWrite"
