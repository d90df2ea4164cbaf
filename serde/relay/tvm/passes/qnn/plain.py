"""What stands for quantised operators in plain Relay: what they decompose to, constants folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serde.relay.ir import Call, Expr, OpDef, Type, called_name
from serde.relay.ir.expr import Attrs
from serde.relay.ir.visit import children, rewrite
from serde.relay.transform.decompose import Decompose
from serde.relay.transform.evaluate_constants import EvaluateConstants

__all__ = ["plain_form"]

Form = Callable[[Attrs, list[Expr], list[Type | None]], Expr]


def _is_plain(node: Call) -> bool:
    return not called_name(node).startswith(("qnn.", "serde."))


_DECOMPOSE: Final = Decompose(_is_plain, usual_layouts=False)
_FOLD: Final = EvaluateConstants()


def plain_form(definition: OpDef) -> Form:
    """Return what makes a call of an operator plain, of its attributes, operands and types."""

    def form(attrs: Attrs, inputs: list[Expr], types: list[Type | None]) -> Expr:
        node = Call(definition, inputs, attrs)
        node.type = types[-1]
        ends = {each: each for given in inputs for each in (given, *children(given))}
        made = _DECOMPOSE.lower(node)
        folded = rewrite(made, lambda _old, new: _FOLD.fold(new), ends)
        return folded if isinstance(folded, Call) else made

    return form
