"""Values of Python's that stand for something only the walk knows."""

from __future__ import annotations

from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.relay.ir import Expr, SequenceType, TensorType, call, join_types
from serde.torch.import_context import ImportContext

__all__ = ["UNINITIALIZED", "DynamicEntries", "as_sequence", "element_type", "is_dynamic"]


class _Uninitialized:
    """What a branch gives that is left before the value is made; nothing ever reads it."""

    def __repr__(self) -> str:
        return "Uninitialized"


UNINITIALIZED: Final = _Uninitialized()


@dataclass(frozen=True, eq=False, slots=True)
class DynamicEntries:
    """Entries of a list of which only the model, when it runs, knows how many there are.

    Attributes:
        entries: A sequence of tensors, or a tensor whose rows they are.
        number: Whether they are numbers of Python's.
    """

    entries: Expr
    number: bool = False

    @property
    def is_stacked(self) -> bool:
        """Whether the entries are the rows of a tensor."""
        return isinstance(self.entries.type, TensorType)

    @property
    def element(self) -> TensorType:
        """The type of an entry."""
        type_ = self.entries.type
        if isinstance(type_, SequenceType):
            return type_.element
        if isinstance(type_, TensorType):
            return TensorType(type_.shape[1:], type_.dtype)
        raise Unsupported(f"expected a list of tensors, found {type_!r}")

    def as_rows(self) -> Expr:
        """Return the entries as rows of one tensor."""
        if self.is_stacked:
            return self.entries
        return call("serde.sequence_concat", self.entries, axis=0, new_axis=True)

    def as_sequence(self) -> DynamicEntries:
        """Return the entries as a sequence."""
        if not self.is_stacked:
            return self
        return replace(
            self, entries=call("serde.sequence_split", self.entries, None, axis=0, keepdims=False)
        )


def is_dynamic(items: AnyValue) -> bool:
    """Whether the length of a list is only known when the model runs."""
    return isinstance(items, list) and any(isinstance(each, DynamicEntries) for each in items)


def element_type(ctx: ImportContext, items: list[AnyValue]) -> TensorType | None:
    """Return the type of the entries of a list; None where there are none.

    Raises:
        Unsupported: They have no common type.
    """
    found: TensorType | None = None
    for each in items:
        if isinstance(each, Expr) and ctx.is_quantized(each):
            raise Unsupported("a list of unknown length of quantised tensors")
        type_ = each.element if isinstance(each, DynamicEntries) else ctx.type(ctx.number(each))
        both = type_ if found is None else join_types(found, type_)
        if not isinstance(both, TensorType):
            raise Unsupported(f"a list of tensors of {found!r} and {type_!r}")
        found = both
    return found


def as_sequence(ctx: ImportContext, items: list[AnyValue], element: TensorType) -> DynamicEntries:
    """Return the entries of a list as one sequence.

    Raises:
        Unsupported: They are no tensors or numbers.
    """
    number = any(
        each.number if isinstance(each, DynamicEntries) else _is_number(ctx, each) for each in items
    )
    found: Expr | None = None
    plain: list[Expr] = []
    for place, each in enumerate(items):
        if not isinstance(each, DynamicEntries):
            operand = ctx.cast(ctx.number(each), element.dtype)
            if found is None:
                plain.append(operand)
            else:
                found = call("serde.sequence_insert", found, operand, None)
        elif place == 0:
            found = each.as_sequence().entries
        elif found is None:
            rows = relay.concatenate([relay.stack(plain, axis=0), each.as_rows()], axis=0)
            found = DynamicEntries(rows).as_sequence().entries
        else:
            raise Unsupported("a list made of several others whose lengths are not known")
    if found is None:
        found = (
            call("serde.sequence_construct", plain)
            if plain
            else call("serde.sequence_empty", shape=element.shape, dtype=element.dtype)
        )
    return DynamicEntries(found, number)


def _is_number(ctx: ImportContext, value: AnyValue) -> bool:
    return not isinstance(value, Expr) or ctx.is_number(value)
