"""Tables of converters: versioned lookup, signature binding, recording of issues.

A converter is a short function whose signature is its schema: after the
context, positional parameters are tensors and keyword-only parameters are
attributes with their types and defaults. A keyword-only parameter annotated with
a dataclass of keyword-only fields stands for the attributes that these are, so that
converters share them (``*, window: ConvAttributes``). The table reads the signature once;
the walkers of the formats use :meth:`ConverterTable.run_import` and
:meth:`ConverterTable.run_export`, which do the lookup, the binding and the
recording, so that a converter only ever sees what it declares.
"""

from __future__ import annotations

import inspect
import typing
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any as AnyValue
from typing import TypeVar

from serde.errors import ConverterBug, FormatError, RelayError, TypeInferenceError, Unsupported
from serde.relay.ir.expr import Call, Expr, Span, TupleWrapper
from serde.relay.ir.registry import OpDef
from serde.relay.ir.schema import REQUIRED, attribute_converter
from serde.relay.ir.visit import children
from serde.relay.transform.legalize import decompose
from serde.report import Report
from serde.walk.context import TypedContext
from serde.walk.holes import Hole, Incomplete
from serde.walk.import_context import ImportContext

__all__ = [
    "Converter",
    "ConverterTable",
    "name_sources",
]

ValueT = TypeVar("ValueT")
F = TypeVar("F", bound=Callable[..., AnyValue])
Decode = Callable[[AnyValue, AnyValue], AnyValue]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An attribute that a converter takes."""

    name: str
    hint: AnyValue
    convert: Callable[[AnyValue], AnyValue]
    default: AnyValue
    annotation: str


@dataclass(frozen=True, slots=True)
class Converter:
    """One entry of a table.

    Attributes:
        function: The converter itself.
        since: Version from which on it holds.
        operands: Names of the tensors; the last one stands for all that follow where `accepted`
            is None.
        required: Least number of tensors.
        accepted: Greatest number of tensors, or None without limit.
        omissible: For each tensor whether it may be left out before others; the last entry
            holds for all that follow.
        attributes: Attributes by name.
        shared: Parameters that take several attributes at once, with their dataclasses.
        ignored: Attributes that do not bear on the result.
        uses: How many leading inputs bear on the result; None means all.
        when: For an exporter, whether it can say a call; None means any.
    """

    function: Callable[..., AnyValue]
    since: int
    operands: tuple[str, ...]
    required: int
    accepted: int | None
    omissible: tuple[bool, ...]
    attributes: Mapping[str, Parameter]
    shared: Mapping[str, type]
    ignored: frozenset[str]
    uses: int | None
    when: Callable[[Call], bool] | None = None

    def bind(
        self, attrs: Mapping[str, AnyValue], decode: Decode
    ) -> tuple[dict[str, AnyValue], list[str]]:
        """Return the attributes by keyword, and what is wrong with them."""
        bound: dict[str, AnyValue] = {}
        faults = []
        for name, raw in attrs.items():
            parameter = self.attributes.get(name)
            if parameter is None:
                if name not in self.ignored:
                    faults.append(f"unknown attribute {_short(name, str)}={_short(raw)}")
                continue
            try:
                bound[name] = parameter.convert(decode(raw, parameter.hint))
            except (TypeError, ValueError, OverflowError, RelayError):
                faults.append(
                    f"attribute {name}: expected {parameter.annotation}, found {_short(raw)}"
                )
        for name, parameter in self.attributes.items():
            if parameter.default is REQUIRED and name not in attrs:
                faults.append(f"attribute {name} is missing")
        return bound, faults

    def run(
        self, ctx: AnyValue, operands: Sequence[AnyValue], attrs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call the function, shared attributes as one object of their dataclass."""
        keywords = dict(attrs)
        for name, kind in self.shared.items():
            own = [field.name for field in fields(kind) if field.name in keywords]
            keywords[name] = kind(**{each: keywords.pop(each) for each in own})
        return self.function(ctx, *operands, **keywords)


def _short(value: AnyValue, spell: Callable[[AnyValue], str] = repr) -> str:
    """Return a value of a file as text, cut where it would fill a screen."""
    text = spell(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"


def _identity(raw: AnyValue, _hint: AnyValue) -> AnyValue:
    return raw


class ConverterTable:
    """The converters of one format.

    Args:
        format_name: Name of the format, for messages.
        changes: For each operator of the format the versions at which it changed, ascending;
            an operator that is not listed changed at version 1 only.
        decode: Turns an attribute as the file has it into a Python value, given the annotation.
    """

    def __init__(
        self,
        format_name: str,
        *,
        changes: Mapping[str, Sequence[int]] | None = None,
        decode: Decode = _identity,
    ) -> None:
        self.format_name = format_name
        self._changes = changes if changes is not None else {}
        self._decode = decode
        self._imports: dict[tuple[str, int], Converter] = {}
        self._exports: dict[str, dict[int, Converter]] = {}
        self._expansions: dict[str, Callable[..., AnyValue]] = {}
        self._refusals: dict[str, tuple[str, str | None]] = {}

    def imports(
        self,
        *names: str,
        since: int | tuple[int, ...] = 1,
        ignored: Iterable[str] = (),
        uses: int | None = None,
    ) -> Callable[[F], F]:
        """Register an importer of operators.

        Args:
            names: Operators, in the format's own spelling.
            since: Every version of the operator that this converter covers.
            ignored: Attributes that do not bear on the result.
            uses: How many leading inputs bear on the result, where not all do.
        """
        versions = (since,) if isinstance(since, int) else since

        def register(function: F) -> F:
            for name in names:
                for version in versions:
                    if (name, version) in self._imports:
                        raise RelayError(f"{self.format_name}: {name}-{version} is imported twice")
                    self._imports[name, version] = _read(function, version, ignored, uses)
            return function

        return register

    def refuses(self, *names: str, reason: str, hint: str | None = None) -> None:
        """Register why there is no importer of operators, for the report.

        Args:
            names: The operators.
            reason: Why none of their nodes can be converted.
            hint: What to do about it.
        """
        self._refusals.update(dict.fromkeys(names, (reason, hint)))

    def exports(
        self, *names: str, since: int = 1, when: Callable[[Call], bool] | None = None
    ) -> Callable[[F], F]:
        """Register an exporter of Relay operators.

        Args:
            names: The operators.
            since: Version of the target from which on it holds.
            when: Whether it can say a call; the operator is decomposed where it cannot.
        """

        def register(function: F) -> F:
            for name in names:
                entries = self._exports.setdefault(name, {})
                if since in entries:
                    raise RelayError(f"{self.format_name}: {name} is exported twice from {since}")
                entries[since] = replace(_read(function, since, (), None), when=when)
            return function

        return register

    def expands(self, *names: str) -> Callable[[F], F]:
        """Register what Relay operators are made of where the format cannot say a call.

        The function takes operands and attributes as the operator's kernel does, and returns
        an expression of the same type; it raises :class:`Unsupported` where it cannot.

        Args:
            names: The operators.
        """

        def register(function: F) -> F:
            for name in names:
                if name in self._expansions:
                    raise RelayError(f"{self.format_name}: {name} is expanded twice")
                self._expansions[name] = function
            return function

        return register

    def expansion(self, name: str) -> Callable[..., AnyValue] | None:
        """Return what the format makes a Relay operator of where it cannot say a call."""
        return self._expansions.get(name)

    def importer(self, name: str, version: int) -> Converter | None:
        """Return the importer for an operator as it stands at a version of the operator set."""
        changes = self._changes.get(name, (1,))
        index = bisect_right(changes, version)
        return self._imports.get((name, changes[index - 1])) if index else None

    def exporter(self, name: str, version: int) -> Converter | None:
        """Return the exporter for a Relay operator at a target version."""
        known = [since for since in self._exports.get(name, ()) if since <= version]
        return self._exports[name][max(known)] if known else None

    def can_export(self, node: Call, version: int) -> bool:
        """Whether a call can be written as it is at a target version."""
        if not isinstance(node.op, OpDef):
            return False
        converter = self.exporter(node.op.name, version)
        return converter is not None and (converter.when is None or converter.when(node))

    def imported(self) -> list[tuple[str, int]]:
        """Return all (operator, version) that are imported, sorted."""
        return sorted(self._imports)

    def exported(self) -> dict[str, int]:
        """Return all Relay operators that are exported, with the lowest target version."""
        return {name: min(entries) for name, entries in sorted(self._exports.items())}

    def run_import(
        self,
        ctx: ImportContext,
        op: str,
        inputs: Sequence[Expr | None],
        attrs: Mapping[str, AnyValue],
        report: Report,
    ) -> list[Expr]:
        """Convert one node; what is wrong with it goes into `report`.

        Returns:
            One expression an output; holes where the node could not be converted.

        Raises:
            ConverterBug: The converter failed in a way that it must not.
            FormatError: A part of the node, such as a subgraph, is not sound.
        """
        holes: list[Expr] = [Hole() for _ in range(ctx.outputs)]
        converter = self.importer(op, ctx.version)
        if converter is None:
            known = [str(version) for name, version in self._imports if name == op]
            has = f" (have {', '.join(known)})" if known else ""
            what = f"no importer for {op}-{ctx.version}{has}" if known else "no importer"
            reason, hint = self._refusals.get(op, (what, None))
            report.add(op, ctx.node, reason, hint)
            return holes
        used = inputs if converter.uses is None else inputs[: converter.uses]
        bound, faults = converter.bind(attrs, self._decode)
        faults += _arity_faults(converter, used)
        for fault in faults:
            report.add(op, ctx.node, fault)
        if faults or any(isinstance(x, Hole) for x in used):
            return holes
        result = self._call(converter, ctx, op, used, bound, report)
        if result is None:
            return holes
        name_sources(result, used, Span(ctx.node))
        return result

    def _call(
        self,
        converter: Converter,
        ctx: ImportContext,
        op: str,
        inputs: Sequence[Expr | None],
        bound: Mapping[str, AnyValue],
        report: Report,
    ) -> list[Expr] | None:
        try:
            result = converter.run(ctx, inputs, bound)
        except Incomplete:
            return None
        except Unsupported as error:
            report.add(op, ctx.node, error.reason, error.hint)
            return None
        except TypeInferenceError as error:
            report.add(op, ctx.node, str(error))
            return None
        except (ConverterBug, FormatError, OSError):
            raise
        except Exception as error:
            raise ConverterBug(
                f"{self.format_name}: {ctx.node} ({op}-{ctx.version}): "
                f"{type(error).__name__}: {error}"
            ) from error
        return _as_list(result)

    def bind_export(self, node: Call, version: int) -> tuple[Converter, dict[str, AnyValue]]:
        """Find the exporter of a call and its keyword arguments.

        A Relay attribute that the exporter does not take must hold its default.

        Raises:
            Unsupported: There is none, it cannot say this call, or an attribute has a value that
                it does not take.
        """
        if not isinstance(node.op, OpDef):
            raise Unsupported("a call of a function has no counterpart")
        body = self.expansion(node.op.name)
        if body is not None and not self.can_export(node, version):
            decompose(node, body)  # raises the reason for which it was not expanded
        converter = self.exporter(node.op.name, version)
        if converter is None:
            first = self.exported().get(node.op.name)
            raise Unsupported(
                "no exporter" if first is None else f"needs version {first}, target is {version}"
            )
        if converter.when is not None and not converter.when(node):
            raise Unsupported("has no counterpart for these types and attributes")
        bound = {}
        for name, value in node.attrs.items():
            if name in converter.attributes:
                bound[name] = value
            elif value != node.op.attributes[name].default:
                raise Unsupported(f"{name}={value!r} has no counterpart")
        return converter, bound

    def run_export(
        self, ctx: TypedContext[ValueT], node: Call, operands: Sequence[AnyValue], version: int
    ) -> AnyValue:
        """Write one call; an operand that it leaves out is an empty tuple.

        Raises:
            ConverterBug: The converter failed in a way that it must not.
            Unsupported: The target cannot say the call.
        """
        converter, attrs = self.bind_export(node, version)
        if not isinstance(node.op, OpDef):
            raise ConverterBug(f"{self.format_name}: {node!r} is no call of an operator")
        try:
            return converter.run(ctx, _present(node.op, operands), attrs)
        except (Unsupported, TypeInferenceError, ConverterBug, FormatError, OSError):
            raise
        except Exception as error:
            name = node.span.source_name if node.span is not None else ""
            raise ConverterBug(
                f"{self.format_name}: {name} ({node.op.name}, target {version}): "
                f"{type(error).__name__}: {error}"
            ) from error


def _present(definition: OpDef, operands: Sequence[AnyValue]) -> list[AnyValue]:
    """Return the operands, those that a call leaves out as None.

    A bias that was taken in follows those that the operator declares.
    """
    optional = [operand.optional for operand in definition.operands]
    optional += [False] * (len(operands) - len(optional))
    pairs = zip(operands, optional, strict=True)
    return [None if may and operand == () else operand for operand, may in pairs]


def _read(
    function: Callable[..., AnyValue], since: int, ignored: Iterable[str], uses: int | None
) -> Converter:
    """Read a converter's schema from its signature."""
    hints = typing.get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    attributes: dict[str, Parameter] = {}
    shared: dict[str, type] = {}
    for parameter in parameters:
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        hint = hints[parameter.name]
        if _is_shared(hint):
            shared[parameter.name] = hint
            attributes |= _fields(hint)
        else:
            text = str(function.__annotations__[parameter.name])
            attributes[parameter.name] = _parameter(parameter.name, hint, parameter.default, text)
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    tensors = [p for p in parameters if p in positional or p.kind is p.VAR_POSITIONAL]
    return Converter(
        function=function,
        since=since,
        operands=tuple(p.name for p in tensors),
        required=sum(p.default is REQUIRED for p in positional),
        accepted=None if variadic else len(positional),
        omissible=tuple(_takes_none(hints.get(p.name)) for p in tensors),
        attributes=attributes,
        shared=shared,
        ignored=frozenset(ignored),
        uses=uses,
    )


def _is_shared(hint: AnyValue) -> bool:
    """Whether an annotation is a dataclass whose fields, by keyword only, are attributes."""
    if not isinstance(hint, type) or not is_dataclass(hint):
        return False
    return all(field.kw_only for field in fields(hint))


def _parameter(name: str, hint: AnyValue, default: AnyValue, text: str) -> Parameter:
    return Parameter(name, hint, attribute_converter(hint) or _as_it_is, default, text)


def _fields(kind: type) -> dict[str, Parameter]:
    """Read the attributes that the fields of a dataclass declare."""
    hints = typing.get_type_hints(kind)
    return {
        field.name: _parameter(
            field.name,
            hints[field.name],
            REQUIRED if field.default is MISSING else field.default,
            str(field.type),
        )
        for field in fields(kind)
    }


def _as_it_is(value: AnyValue) -> AnyValue:
    return value


def _takes_none(hint: AnyValue) -> bool:
    return type(None) in typing.get_args(hint)


def _arity_faults(converter: Converter, inputs: Sequence[Expr | None]) -> list[str]:
    count = len(inputs)
    if count < converter.required:
        return [f"expected at least {converter.required} inputs, found {count}"]
    if converter.accepted is not None and count > converter.accepted:
        return [f"expected at most {converter.accepted} inputs, found {count}"]
    last = len(converter.omissible) - 1
    return [
        f"input {index} is left out"
        for index, x in enumerate(inputs)
        if x is None and not converter.omissible[min(index, last)]
    ]


def _as_list(result: AnyValue) -> list[Expr]:
    if isinstance(result, TupleWrapper):
        return list(result)
    if isinstance(result, (tuple, list)):
        return list(result)
    return [result]


def name_sources(results: Iterable[Expr], inputs: Iterable[Expr | None], span: Span) -> None:
    """Note `span` on every node between `inputs` and `results` that has none yet."""
    stop = {id(x) for x in inputs if x is not None}
    pending = [result for result in results if result is not None]
    while pending:
        node = pending.pop()
        if id(node) in stop or node.span is not None or isinstance(node, OpDef):
            continue
        node.span = span
        pending.extend(children(node))
