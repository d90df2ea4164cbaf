"""One function's body in the place of another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serde.errors import OptionError
from serde.relay.ir import Call, Expr, Function, IRModule, RelayModel, Var, post_order, set_type
from serde.relay.ir.registry import called_name
from serde.relay.ir.visit import rewrite
from serde.relay.text.parser import parse_expr
from serde.relay.transform.compose import Compose, Match, Pattern

__all__ = ["replace_pattern"]

_TOLD_BY_WEIGHTS: Final = ("channels", "kernel_size", "units")
"""Attributes that a pattern may leave out, as an operand tells them."""


def replace_pattern(
    model: RelayModel, pattern: Function | str, replacement: Function | str
) -> RelayModel:
    """Return the model with one function's body wherever it has another's.

    A call matches one of the same operator and attributes, those left out at their defaults;
    operands of commutative operators in either order; a parameter anything, twice the same; a
    constant an equal one. What lies inside of a match must be used nowhere else.

    Args:
        model: The model, with inferred types.
        pattern: Relay's text, such as ``fn (%x) { nn.relu(%x) }``, or a function.
        replacement: Likewise, of parameters that the pattern has.

    Raises:
        OptionError: They are no such functions, nothing matches, or a type would be another.
        ParseError: A text does not parse.
    """
    given = (pattern, replacement)
    source, wanted = (parse_expr(each) if isinstance(each, str) else each for each in given)
    if not isinstance(source, Function) or not isinstance(wanted, Function):
        raise OptionError("replace: expected functions such as fn (%x) { nn.relu(%x) }")
    known = {each.name_hint for each in post_order(source.body) if isinstance(each, Var)}
    unknown = {each.name_hint for each in wanted.params} - known
    if unknown or not isinstance(source.body, Call):
        what = f"has %{', %'.join(unknown)}" if unknown else "ends in a call"
        raise OptionError(f"replace: expected a pattern that {what}")
    mod = _replaced(model.mod, source.body, lambda match: _build(wanted, match))
    if mod is not None:
        return model.evolve(mod=mod)
    parts = [each for each in post_order(source.body) if isinstance(each, Call)]
    lacking = next(
        each for each in parts if _replaced(model.mod, each, lambda _match: None) is None
    )
    told = "with these operands, used nowhere else, and attributes"
    raise OptionError(f"replace: nothing is {called_name(lacking)} {told}")


def _replaced(
    mod: IRModule, template: Call, build: Callable[[Match], Expr | None]
) -> IRModule | None:
    """Return a module with other expressions for matches; None where there are none."""
    found: list[Match] = []

    def check(match: Match) -> Expr | None:
        same = all(
            value == node.attrs[name] or (value is None and name in _TOLD_BY_WEIGHTS)
            for key, node in match.nodes.items()
            if isinstance(key, Call) and isinstance(node, Call)
            for name, value in key.attrs.items()
        )
        found.extend([match] * same)
        return build(match) if same else None

    mod = Compose((Pattern("replace", template, check),))(mod)
    return mod if found else None


def _build(wanted: Function, match: Match) -> Expr:
    """Return what stands in the place of a match, under the name of its last node."""

    def infer(_node: Expr, new: Expr) -> Expr:
        return set_type(new) if isinstance(new, Call) and new.type is None else new

    memo: dict[Expr, Expr] = {param: match.bound[param.name_hint] for param in wanted.params}
    result = rewrite(wanted.body, infer, memo)
    if result.type != match.root.type:
        raise OptionError(f"replace: expected {match.root.type!r}, found {result.type!r}")
    if isinstance(result, Call) and result.span is None:
        result.span = match.root.span
    return result
