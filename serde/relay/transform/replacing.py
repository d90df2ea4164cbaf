"""One subgraph in the place of another, both given as functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

from serde.core.texts import near_names
from serde.errors import OptionError, RelayError
from serde.relay.ir import Call, Expr, Function, OpDef, RelayModel, Var, all_nodes, post_order
from serde.relay.ir.registry import set_type
from serde.relay.ir.visit import rewrite
from serde.relay.text.parser import parse_expr
from serde.relay.transform.compose import Compose, Match, Pattern

__all__ = ["replace_pattern"]

_TOLD_BY_WEIGHTS: Final = ("channels", "kernel_size", "units")
"""Attributes that a pattern may leave out, as an operand has them, too."""


def replace_pattern(
    model: RelayModel, pattern: Function | str, replacement: Function | str
) -> RelayModel:
    """Return the model with one function's body wherever it has another's.

    A call matches one of the same operator with the same attributes, those that are left out at
    their defaults; operands of commutative operators in either order; a parameter anything, twice
    the same; a constant an equal one. What a match computes inside must be used nowhere else.

    Args:
        model: The model, with inferred types.
        pattern: Such as ``fn (%x) { nn.relu(%x) }``, as Relay's text or as a function.
        replacement: Likewise, of parameters that the pattern has.

    Raises:
        OptionError: A text is no such function, nothing matches, or the type of what is put in
            the place of a match is another.
    """
    found, wanted = (
        _function(name, each) for name, each in (("pattern", pattern), ("replacement", replacement))
    )
    template = found.body
    if not isinstance(template, Call) or not isinstance(template.op, OpDef):
        raise OptionError("replace: expected a pattern that ends in an operator's call")
    known = {each.name_hint for each in post_order(template) if isinstance(each, Var)}
    for param in wanted.params:
        if param.name_hint not in known:
            listed = ", ".join(f"%{each}" for each in sorted(known))
            raise OptionError(f"replace: %{param.name_hint} is none of the pattern's {listed}")
    matched: list[Call] = []

    def build(match: Match) -> Expr | None:
        if not _same_attributes(match.nodes):
            return None
        matched.append(match.root)
        return _build(wanted, match)

    mod = Compose((Pattern("replace", template, build),))(model.mod)
    if not matched:
        _refuse_unmatched(model, template)
    return model.evolve(mod=mod)


def _function(name: str, given: Function | str) -> Function:
    try:
        found = parse_expr(given, name=name) if isinstance(given, str) else given
    except RelayError as error:
        raise OptionError(f"replace: {error}") from None
    if not isinstance(found, Function):
        raise OptionError(f"replace: {name}: expected a function such as fn (%x) {{ exp(%x) }}")
    return found


def _same_attributes(nodes: Mapping[Expr, Expr]) -> bool:
    return all(
        value == node.attrs[name] or (value is None and name in _TOLD_BY_WEIGHTS)
        for template, node in nodes.items()
        if isinstance(template, Call) and isinstance(node, Call)
        for name, value in template.attrs.items()
    )


def _build(wanted: Function, match: Match) -> Expr:
    """Return what stands in the place of a match, under the name of its last node."""

    def infer(_node: Expr, new: Expr) -> Expr:
        return set_type(new) if isinstance(new, Call) and new.type is None else new

    memo: dict[Expr, Expr] = {param: match.bound[param.name_hint] for param in wanted.params}
    where = match.root.span.source_name if match.root.span is not None else ""
    try:
        result = rewrite(wanted.body, infer, memo)
    except RelayError as error:
        raise OptionError(f"replace: {where}: {error}") from None
    if result.type != match.root.type:
        told = f"expected {match.root.type!r}, found {result.type!r}"
        raise OptionError(f"replace: {where}: {told}")
    if isinstance(result, Call) and result.span is None:
        result.span = match.root.span
    return result


def _refuse_unmatched(model: RelayModel, template: Call) -> NoReturn:
    """Name the first part of a pattern that the model has nowhere."""
    nodes = [
        node
        for function in model.mod.functions.values()
        for node in all_nodes(function)
        if isinstance(node, Call) and isinstance(node.op, OpDef)
    ]
    names = {node.op.name for node in nodes if isinstance(node.op, OpDef)}
    for part in post_order(template):
        if not isinstance(part, Call) or not isinstance(part.op, OpDef):
            continue
        own = Pattern("part", part, lambda _match: None)
        calls = [node for node in nodes if node.op is part.op]
        if any((m := own.match(each)) and _same_attributes(m.nodes) for each in calls):
            continue
        near = near_names(part.op.name, names)
        told = f"none of {len(calls)} calls of it has these operands and attributes"
        raise OptionError(
            f"replace: the pattern matches nothing: {part.op.name}: "
            + (told if calls else f"the model has no such call.{near}")
        )
    raise OptionError(
        "replace: the pattern matches nothing: where it fits, values inside are used elsewhere"
    )
