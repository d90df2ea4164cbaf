"""What becomes of operators that a format's own converters do not know.

A user's function converts them, or they stay what they are as ``serde.foreign``; both only where
the user says so. The report tells of every one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from serde.core.report import Issue, Report
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, Foreign, Span, SymDim, TensorType, TupleGetItem
from serde.walk.holes import Hole, Holes, name_sources
from serde.walk.import_context import ImportContext
from serde.walk.user_converters import UserConverter

if TYPE_CHECKING:
    from serde.bridge.options import ImportOptions

__all__ = ["KEEP_HINT", "ImportFallback", "Types", "with_lengths"]

Types = Sequence[TensorType | None]
"""Types of results, None for one that is not known."""

KEEP_HINT: Final = "converters= or --converters says what it is, keep_unknown keeps it as it is"
"""What to do about an operator that is not known."""


class ImportFallback:
    """What a conversion into Relay does with operators that the format's reader does not know.

    Args:
        format_name: Name of the format.
        converters: Functions of the user's.
        keep: Whether operators without a converter are kept.
        result_types: Types of what nodes give, by the name of the node, of its first result or of
            its operator.
    """

    def __init__(
        self,
        format_name: str = "",
        converters: Sequence[UserConverter] = (),
        *,
        keep: bool = False,
        result_types: Mapping[str, Sequence[TensorType]] | None = None,
    ) -> None:
        self.format_name = format_name
        self.keep = keep
        self._converters = {
            each.name: each for each in converters if each.is_for("read", format_name)
        }
        self._types = dict(result_types or {})
        self._used: set[str] = set()
        self._typed: set[str] = set()

    @classmethod
    def of(cls, format_name: str, options: ImportOptions) -> ImportFallback:
        """Return what the options of reading a format ask for."""
        return cls(
            format_name,
            options.converters,
            keep=options.keep_unknown,
            result_types=options.result_types,
        )

    @property
    def any(self) -> bool:
        """Whether there is anything to ask."""
        return self.keep or bool(self._converters)

    def has(self, *names: str) -> bool:
        """Whether the user has a function for an operator of one of these names."""
        return bool(self._converters) and any(name in self._converters for name in names)

    def converter(self, *names: str) -> UserConverter | None:
        """Return the user's function for an operator, by the first of its names that has one."""
        for name in names if self._converters else ():
            if name in self._converters:
                self._used.add(name)
                return self._converters[name]
        return None

    def tells(self, *names: str) -> bool:
        """Whether the user says the types of a node of one of these names."""
        return any(name in self._types for name in names)

    def types(self, names: Iterable[str], declared: Types) -> tuple[TensorType, ...] | None:
        """Return the types of what a node gives: as the user says, else as the file declares.

        Args:
            names: What the user may call the node.
            declared: What the file declares.
        """
        for name in names:
            if name in self._types:
                self._typed.add(name)
                return tuple(self._types[name])
        known = tuple(each for each in declared if each is not None)
        return known if known and len(known) == len(declared) else None

    def note_unused(self, report: Report) -> None:
        """Tell which functions and types nothing of the model asked for."""
        unused = sorted(set(self._converters) - self._used)
        if unused:
            report.notes.append(f"no node is an operator of converters: {', '.join(unused)}")
        untyped = sorted(set(self._types) - self._typed)
        if untyped:
            report.notes.append(f"no node is called so in result_types: {', '.join(untyped)}")

    def build(
        self,
        ctx: ImportContext,
        node: Foreign,
        inputs: Sequence[Expr | None],
        report: Report,
        names: Sequence[str] = (),
    ) -> Sequence[Expr]:
        """Return the results of an operator that is kept, holes where they have no type.

        Args:
            ctx: Of the node.
            node: What is kept, with the types of results that are declared.
            inputs: What it reads.
            report: Gets the node, or what is missing.
            names: What else the user may call the node, such as its first result.
        """
        holes = Holes(max(ctx.outputs, 1))
        if any(isinstance(each, Hole) for each in inputs):
            return holes
        given = [each for each in inputs if each is not None]
        absent = tuple(index for index, each in enumerate(inputs) if each is None)
        untyped = [each for each in given if each.type is None]
        try:
            if untyped:
                raise TypeInferenceError("an input has no type")
            found = replace(node, absent=absent).build(given, Span(ctx.node))
        except RelayError as error:
            report.add(node.full_name, ctx.node, str(error))
            return holes
        report.fallbacks.append(
            Issue(node.full_name, ctx.node, f"kept as {self.format_name} has it")
        )
        results: list[Expr] = [found]
        if len(node.results) > 1:
            results = [TupleGetItem(found, index) for index in range(len(node.results))]
        name_sources(results, given, Span(ctx.node))
        return results

    def keep_node(
        self,
        ctx: ImportContext,
        node: Foreign,
        inputs: Sequence[Expr | None],
        report: Report,
        names: Sequence[str] = (),
    ) -> Sequence[Expr]:
        """Return the results of an operator that is kept, with the types that somebody tells.

        See :meth:`build`; a node whose types nobody tells is a gap.
        """
        asked = (ctx.node, *names, *node.names)
        types = self.types(asked, node.results or (None,))
        if types is None or len(types) < ctx.outputs:
            example = f"result_types={{{ctx.node!r}: 'float32[1,10]'}}"
            found = "the types of its results are not known"
            if types is not None:
                found = f"{ctx.outputs} results are used, and types of {len(types)} are told"
            report.add(node.full_name, ctx.node, found, f"{example} or --result-types")
            return Holes(max(ctx.outputs, 1))
        return self.build(ctx, replace(node, results=types), inputs, report, names)


def with_lengths(
    types: Sequence[TensorType | None], lengths: Mapping[str, Dim]
) -> list[TensorType | None]:
    """Return declared types with what is known of their symbols, the others anonymous.

    Args:
        types: The types.
        lengths: What symbols stand for that inputs show.
    """

    def settle(dim: Dim) -> Dim:
        if not isinstance(dim, SymDim):
            return dim
        return lengths.get(dim.name, Any()) if dim.name is not None else Any()

    return [
        None if each is None else TensorType(tuple(map(settle, each.shape)), each.dtype)
        for each in types
    ]
