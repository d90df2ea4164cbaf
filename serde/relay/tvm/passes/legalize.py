"""Replacement of calls by what functions and attributes of their operators make of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, ClassVar

from serde.core.records import dataclass
from serde.errors import RelayError
from serde.relay.ir import Call, Expr, Function, OpDef, astuple, infer_function, rewrite_function
from serde.relay.transform.base import TvmFunctionPass
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["Legalize", "RewriteByAttribute"]


class RewriteByAttribute(TvmFunctionPass):
    """Replace calls, children first, by what an attribute of their operator makes of them.

    The attribute is a function of the call's attributes, its operands, and the types of the
    operands and of the result; it returns a call, or None where the call stays. What it makes is
    not looked at again.
    """

    required: ClassVar[Sequence[str]] = ("InferType",)

    @property
    @abstractmethod
    def key(self) -> str:
        """Key of the attribute."""

    def transform(self, function: Function) -> Function:
        """Rewrite one function."""
        if function.body.type is None:
            function = infer_function(function)
        return rewrite_function(function, self._replace)

    def _replace(self, old: Expr, new: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        if not isinstance(new.op, OpDef):
            return new
        make: Callable[..., AnyValue] | None = new.op.get_attr(self.key)
        if make is None:
            return new
        types = [*(arg.type for arg in old.args), old.type]
        found = make(new.attrs, list(new.args), types)
        if found is None:
            return new
        made = astuple(found)
        if not isinstance(made, Call):
            raise RelayError(f"{self.key} of {new.op.name}: expected a call, found {made!r}")
        return made


@dataclass(frozen=True)
class Legalize(RewriteByAttribute, TypedPass):
    """Replace calls, operands first, by what an attribute of their operator makes of them.

    The attribute is a function of the call's attributes, its operands, and the types of the
    operands and of the result; it returns a call, or None where the call stays. What it makes is
    not looked at again. :class:`~serde.relay.transform.Decompose` spells out operators that a
    target lacks.

    Args:
        legalize_map_attr_name: Key of the attribute.
    """

    name: ClassVar[str] = "Legalize"
    opt_level: ClassVar[int] = 1
    required: ClassVar[Sequence[str]] = ("InferType",)

    legalize_map_attr_name: str = "FTVMLegalize"

    @property
    def key(self) -> str:
        """Key of the attribute."""
        return self.legalize_map_attr_name
