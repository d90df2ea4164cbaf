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

import sys
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from functools import cached_property, partial
from inspect import isgenerator
from typing import Any as AnyValue, NoReturn, TypeVar

from serde.core.report import Issue, Report
from serde.errors import (
    ConverterBug,
    FormatError,
    LimitError,
    RelayError,
    TypeInferenceError,
    Unsupported,
)
from serde.relay.ir import Call, Expr, OpDef, Span, TupleType, TupleWrapper, all_ops
from serde.relay.ir.lazy import LazyPackage
from serde.relay.ir.schema import gather, innermost
from serde.relay.lowering.layout import usual_layout
from serde.relay.lowering.rules import NO_SIMPLER, rule
from serde.relay.transform.decompose import decompose
from serde.walk import booleans
from serde.walk.booleans import counts_bits
from serde.walk.context import TypedContext
from serde.walk.converter import Converter, Decode, Deferred, Entry
from serde.walk.holes import Hole, Holes, Incomplete, name_sources
from serde.walk.import_context import ImportContext
from serde.walk.pairs import Emit, Pair, Reader
from serde.walk.registration import check_change, check_expansion, check_exporter
from serde.walk.takes import NotTaken, Takes
from serde.walk.user_converters import UserConverter

__all__ = ["ConverterTable", "source_name"]

ValueT = TypeVar("ValueT")
F = TypeVar("F", bound=Callable[..., AnyValue])
Schema = Callable[[str, int, Call], Unsupported | None]
ReadT = TypeVar("ReadT", bound=Callable[..., AnyValue] | Deferred)

_NOWHERE = LazyPackage("")
_EXPECTED = (Unsupported, TypeInferenceError, ConverterBug, FormatError, LimitError, OSError)
"""What a converter may raise; OSError where it reads a weight."""


def _emit(
    ctx: AnyValue, op: str, operands: Mapping[str, AnyValue], attributes: Mapping[str, AnyValue]
) -> AnyValue:
    """Write the node of a pair; a tuple of operands is so many inputs."""
    inputs = [x for each in operands.values() for x in (each if type(each) is tuple else [each])]
    if isinstance(ctx.result, TupleType):
        return ctx.emit_tuple(op, *inputs, outputs=len(ctx.result.fields), **attributes)
    return ctx.emit(op, *inputs, **attributes)


class ConverterTable:
    """The converters of one format.

    Args:
        format_name: Name of the format, for messages.
        changes: For each operator of the format the versions at which it changed, ascending; what
            it does not say is refused. None says nothing: any operator, changed at version 1.
        decode: Turns an attribute as the file has it into a Python value, given the annotation.
        home: The package whose modules register converters here, each loaded when one of them is
            asked for; None where all are registered by hand.
        targets: Versions of the target from which on an exporter may hold, where they are not
            those of `changes`.
        written: Names of what exporters write where it is not Relay operators.
        operands: What the format calls the operands of pairs, by place, if not as Relay does.
        emit: Writes the node of a pair, if not as ``ctx.emit(op, *operands, **attributes)`` does.
        usual_layouts: Whether exporters write operators in their usual layouts alone.
        schema: Tells why an operator of the format, at a version, takes the dtypes of no such call.
    """

    def __init__(
        self,
        format_name: str,
        *,
        changes: Mapping[str, Sequence[int]] | None = None,
        decode: Decode = lambda raw, _hint: raw,
        home: str | None = None,
        targets: Collection[int] | None = None,
        written: Collection[str] | None = None,
        operands: Sequence[str] = (),
        emit: Emit = _emit,
        usual_layouts: bool = False,
        schema: Schema | None = None,
    ) -> None:
        self.format_name = format_name
        self._operands = operands
        self._emit = emit
        self._usual_layouts = usual_layouts
        self._schema = schema
        self._changes = changes
        self._decode = decode
        self._home = None if home is None else LazyPackage(home)
        self._targets = targets
        self._written = written
        self._imports: dict[tuple[str, int], Entry] = {}
        self._exports: dict[str, dict[int, Entry]] = {}
        self._expansions: dict[str, Callable[..., AnyValue]] = {}
        self._refusals: dict[str, tuple[str, str | None]] = {}

    def imports(
        self,
        *names: str,
        since: int | tuple[int, ...] = 1,
        ignored: Iterable[str] = (),
        uses: int | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> Callable[[ReadT], ReadT]:
        """Register an importer of operators.

        Args:
            names: Operators, in the format's own spelling.
            since: Every version of the operator that this converter covers.
            ignored: Attributes that do not bear on the result.
            uses: How many leading inputs bear on the result, where not all do.
            renamed: What the function calls tensors and attributes that are called otherwise here.

        Raises:
            RelayError: The format has no such operator, or it did not change at that version, or
                it has an importer already.
        """
        versions = (since,) if isinstance(since, int) else since

        def register(function: ReadT) -> ReadT:
            for name in names:
                self._load_if_foreign("imports", name, function)
                for version in versions:
                    if self._changes is not None:
                        check_change(self.format_name, self._changes, name, version)
                    if (name, version) in self._imports:
                        raise RelayError(f"{self.format_name}: {name}-{version} is imported twice")
                    entry = Entry(function, version, ignored, uses, renamed=renamed)
                    self._imports[name, version] = entry
            return function

        return register

    def refuses(self, *names: str, reason: str, hint: str | None = None) -> None:
        """Register why there is no importer of operators, for the report.

        Args:
            names: The operators.
            reason: Why none of their nodes can be converted.
            hint: What to do about it.

        Raises:
            RelayError: The format has no such operator, or one is refused already.
        """
        for name in names:
            if self._changes is not None:
                check_change(self.format_name, self._changes, name, None)
            if name in self._refusals:
                raise RelayError(f"{self.format_name}: {name} is refused twice")
        self._refusals.update(dict.fromkeys(names, (reason, hint)))

    def exports(
        self,
        *operators: str | OpDef,
        since: int = 1,
        takes: Takes | None = None,
        when: Callable[[Call], bool] | None = None,
        op: str | None = None,
        ignored: tuple[str, ...] = (),
    ) -> Callable[[F], F]:
        """Register an exporter of Relay operators, which are lowered where it cannot say a call.

        Args:
            operators: Their names, or the declaration of one that is in no registry.
            since: Version of the target from which on it holds.
            takes: What operands and attributes may be; an attribute that neither this nor the
                exporter names must hold its default.
            when: Whether it can say a call, as far as `takes` cannot tell.
            op: The operator that is written, if its schema tells the dtypes of operands by place.
            ignored: Attributes that the types tell, or `when`.

        Raises:
            RelayError: Relay has no such operator, or not these operands or attributes; the format
                did not change at that version; there is an exporter already.
        """
        if since != 1 and since not in self._known_targets:
            raise RelayError(f"{self.format_name}: no operator changed at version {since}")

        def register(function: F) -> F:
            for operator in operators:
                name = operator if isinstance(operator, str) else operator.name
                self._load_if_foreign("exports", name, function)
                if self._written is None:
                    facts = self.format_name, operator, function, ignored, takes
                    check = partial(check_exporter, *facts)
                    (self._home or _NOWHERE).check(innermost(function).__module__, check)
                elif name not in self._written:
                    raise RelayError(f"{self.format_name}: no operator is called {name}")
                entries = self._exports.setdefault(name, {})
                if since in entries:
                    raise RelayError(f"{self.format_name}: {name} is exported twice from {since}")
                schema = partial(self._schema, op) if op and self._schema else None
                legal = takes or Takes(), when, schema
                entries[since] = Entry(function, since, ignored, legal=legal)
            return function

        return register

    def pairs(self, *pairs: Pair) -> None:
        """Register operators that are Relay's by another name, where this is called.

        Raises:
            RelayError: It cannot be so, or there is a converter already.
        """
        module = sys._getframe(1).f_globals["__name__"]
        for each in pairs:
            (self._home or _NOWHERE).check(module, partial(each.check, self.format_name))
            if each.reads:
                reader = Reader(each, module, self._operands)
                given = self.imports(
                    *each.names, since=each.since, ignored=each.ignored, uses=each.uses
                )
                given(reader)
            if each.writes:
                writer = each.writer(module, self._operands, self._emit)
                self.exports(
                    *each.operators,
                    since=each.target,
                    takes=each.takes,
                    when=each.when,
                    op=each.names[0],
                )(writer)

    def expands(self, *names: str) -> Callable[[F], F]:
        """Register what Relay operators are made of where the format cannot say a call.

        The function takes operands and attributes as the operator's kernel does, and returns
        an expression of the same type; it raises :class:`Unsupported` where it cannot.

        Args:
            names: The operators.

        Raises:
            RelayError: Relay has no such operator, or not these operands and attributes, or it is
                expanded already.
        """

        def register(function: F) -> F:
            for name in names:
                self._load_if_foreign("expands", name, function)
                attributes = check_expansion(self.format_name, name, function)
                if name in self._expansions:
                    raise RelayError(f"{self.format_name}: {name} is expanded twice")
                self._expansions[name] = gather(function, attributes)
            return function

        return register

    def refuses_calls(self, *names: str, reason: str, hint: str | None = None) -> None:
        """Register why the format cannot say any call of Relay operators, nor what they are of.

        Args:
            names: The operators.
            reason: Why.
            hint: What to do about it.
        """

        @self.expands(*names)
        def refuse(*_operands: AnyValue, **_attributes: AnyValue) -> NoReturn:
            raise Unsupported(reason, hint=hint)

    def expansion(self, name: str) -> Callable[..., AnyValue] | None:
        """Return what a Relay operator is made of where the format cannot say a call.

        None leaves it to the operator's declaration.
        """
        return self.own_expansion(name) or rule(name)

    def own_expansion(self, name: str) -> Callable[..., AnyValue] | None:
        """Return what the format itself makes a Relay operator of."""
        self._load("expands", name)
        return self._expansions.get(name)

    def importer(self, name: str, version: int) -> Converter | None:
        """Return the importer for an operator as it stands at a version of the operator set."""
        changes = (1,) if self._changes is None else self._changes.get(name, (1,))
        index = bisect_right(changes, version)
        if not index or (name, changes[index - 1]) not in self._imports:
            self._load("imports", name)
        entry = self._imports.get((name, changes[index - 1])) if index else None
        return None if entry is None else entry.converter

    def exporter(self, name: str, version: int) -> Converter | None:
        """Return the exporter for a Relay operator at a target version."""
        entry = self._entry(name, version)
        return None if entry is None else entry.converter

    def _entry(self, name: str, version: int) -> Entry | None:
        self._load("exports", name)
        known = [since for since in self._exports.get(name, ()) if since <= version]
        return self._exports[name][max(known)] if known else None

    @cached_property
    def _known_targets(self) -> Collection[int]:
        """All versions at which something changed; any where nothing is said of changes."""
        if self._targets is not None:
            return self._targets
        if self._changes is None:
            return range(sys.maxsize)
        return frozenset().union(*self._changes.values())

    @cached_property
    def _modules(self) -> dict[str, dict[str, list[str]]]:
        """The modules that register something for an operator, by what it is and by operator."""
        found: dict[str, dict[str, list[str]]] = {"imports": {}, "exports": {}, "expands": {}}
        for module, tables in ({} if self._home is None else self._home.index).items():
            for kind, names in tables.get(self.format_name, {}).items():
                for name in names.split():
                    found[kind].setdefault(name, []).append(module)
        return found

    def _load(self, kind: str, name: str) -> None:
        """Load the modules that register something for an operator."""
        if self._home is not None and (modules := self._modules[kind].get(name)):
            for module in modules:
                self._home.load(module)
            modules.clear()

    def _load_if_foreign(self, kind: str, name: str, function: AnyValue) -> None:
        """Load them where another package registers something, so that a clash shows."""
        if self._home is not None and not self._home.has(innermost(function).__module__):
            self._load(kind, name)

    def load_all(self) -> None:
        """Load all modules that register something, for what lists converters."""
        if self._home is not None:
            self._home.load_all()

    def can_export(self, node: Call, version: int) -> bool:
        """Whether a call can be written as it is at a target version."""
        if not isinstance(node.op, OpDef):
            return False
        entry = self._entry(node.op.name, version)
        if entry is None or (self._usual_layouts and usual_layout(node) is not None):
            return False
        return entry.fault(node, version, worded=False) is None

    def _fault(self, node: Call, version: int) -> Unsupported | None:
        """Return why a call cannot be written as it is at a target version; None if it can."""
        if not isinstance(node.op, OpDef):
            return Unsupported("a call of a function has no counterpart")
        if (entry := self._entry(node.op.name, version)) is not None:
            return entry.fault(node, version)
        due = min(self._exports.get(node.op.name, ()), default=None)
        return Unsupported(f"needs version {due}, target is {version}" if due else "no exporter")

    def imported(self) -> list[tuple[str, int]]:
        """Return all (operator, version) that are imported, sorted."""
        self.load_all()
        return sorted(self._imports)

    def refused(self) -> list[str]:
        """Return all operators of which it is told why they are not imported, sorted."""
        self.load_all()
        return sorted(self._refusals)

    def refusal(self, op: str, version: int) -> tuple[str, str | None] | None:
        """Return why an operator is not imported, and what to do; None for one that is."""
        if self.importer(op, version) is not None:
            return None
        known = [str(version) for name, version in self._imports if name == op]
        has = f" (have {', '.join(known)})" if known else ""
        what = f"no importer for {op}-{version}{has}" if known else "no importer"
        return self._refusals.get(op, (what, None))

    def exported(self) -> dict[str, int]:
        """Return all Relay operators that are exported, with the lowest target version."""
        self.load_all()
        return {name: min(entries) for name, entries in sorted(self._exports.items())}

    def taken(self, name: str) -> str:
        """Return what the newest version takes of a Relay operator as it is, behind a semicolon."""
        entry = self._entry(name, sys.maxsize)
        text = "" if entry is None else str(entry.declared)
        return text and f"; directly with {text}"

    def written(self) -> list[str]:
        """Return all Relay operators that are exported, or made of others, sorted."""
        made = {
            name
            for name, definition in all_ops().items()
            if (self.expansion(name) or definition.decompose) is not None
        }
        return sorted(made | self.exported().keys())

    def run_import(
        self,
        ctx: ImportContext,
        op: str,
        inputs: Sequence[Expr | None],
        attrs: Mapping[str, AnyValue],
        report: Report,
        own: UserConverter | None = None,
    ) -> Sequence[Expr]:
        """Convert one node; what is wrong with it goes into `report`.

        Args:
            ctx: What the converter may reach.
            op: The operator.
            inputs: What the node reads.
            attrs: Its attributes as the file has them.
            report: Gets what is wrong.
            own: The user's function that converts it, if there is one.

        Returns:
            One expression an output; holes where the node could not be converted.

        Raises:
            ConverterBug: The converter failed in a way that it must not.
            FormatError: A part of the node, such as a subgraph, is not sound.
            OptionError: The user's function fails, or gives something else than expressions.
        """
        holes = Holes(ctx.outputs)
        converter = self.importer(op, ctx.version) if own is None else own.converter
        if converter is None:
            report.add(op, ctx.node, *(self.refusal(op, ctx.version) or ()))
            return holes
        used = inputs if converter.uses is None else inputs[: converter.uses]
        bound, faults = converter.bind(attrs, self._decode)
        faults += converter.arity_faults(used)
        for fault in faults:
            report.add(op, ctx.node, fault if own is None else f"{own.where}: {fault}")
        if faults or any(isinstance(x, Hole) for x in used):
            return holes
        result = self._call(converter, ctx, op, used, bound, report, own)
        if result is None:
            return holes
        if any(map(counts_bits, result)):
            report.add(op, ctx.node, booleans.REASON, booleans.HINT)
            return holes
        if own is not None:
            own.check_results(ctx.node, op, result, ctx.outputs)
            report.fallbacks.append(Issue(op, ctx.node, f"read by {own.where}"))
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
        own: UserConverter | None,
    ) -> list[Expr] | None:
        """Run a converter and return its results; None where it found a gap, which is recorded."""
        whose = "" if own is None else f"{own.where}: "
        try:
            result = converter.run(ctx, inputs, bound)
        except Incomplete:
            return None
        except Unsupported as error:
            report.add(op, ctx.node, f"{whose}{error.reason}", error.hint)
            return None
        except TypeInferenceError as error:
            report.add(op, ctx.node, f"{whose}{error}")
            ctx.contradicted = True
            return None
        except LimitError as error:
            error.node = error.node or f"{ctx.node} ({op})"
            raise
        except (ConverterBug, FormatError, OSError):
            raise
        except Exception as error:
            if own is not None:
                raise own.failed(ctx.node, op, error) from error
            raise ConverterBug(
                f"{self.format_name}: {ctx.node} ({op}-{ctx.version}): "
                f"{type(error).__name__}: {error}"
            ) from error
        return list(result) if isinstance(result, (TupleWrapper, tuple, list)) else [result]

    def bind_export(self, node: Call, version: int) -> tuple[Converter, dict[str, AnyValue]]:
        """Find the exporter of a call and its keyword arguments.

        Raises:
            Unsupported: There is none, or it does not take this call, nor can that be lowered.
        """
        if not self.can_export(node, version):
            self._refuse(node, version)
        converter = self.exporter(node.op.name, version) if isinstance(node.op, OpDef) else None
        if converter is None:
            raise ConverterBug(f"{self.format_name}: {node!r} has no exporter")
        return converter, {n: x for n, x in node.attrs.items() if n in converter.attributes}

    def _refuse(self, node: Call, version: int) -> None:
        """Raise why a call cannot be written, or why it could not be lowered if that says more."""
        fault = self._fault(node, version)
        if isinstance(node.op, OpDef):
            body = usual_layout(node) or self.expansion(node.op.name) or node.op.decompose
            try:
                if body is not None:
                    decompose(node, body)
            except (TypeInferenceError, Unsupported) as error:
                if isinstance(fault, NotTaken) and str(error) != NO_SIMPLER:
                    hint = getattr(error, "hint", None)
                    raise Unsupported(f"{fault.reason}; {error}", hint=hint) from None
                if fault is None or str(error) != NO_SIMPLER:
                    raise
        if fault is not None:
            raise fault

    def run_export(
        self, ctx: TypedContext[ValueT], node: Call, operands: Sequence[AnyValue], version: int
    ) -> AnyValue:
        """Write one call; an operand that it leaves out is an empty tuple.

        Returns:
            What the converter does: a generator where it has bodies written.

        Raises:
            ConverterBug: The converter failed in a way that it must not.
            Unsupported: The target cannot say the call.
        """
        converter, attrs = self.bind_export(node, version)
        if not isinstance(node.op, OpDef):
            raise ConverterBug(f"{self.format_name}: {node!r} is no call of an operator")
        try:
            result = converter.run(ctx, _present(node.op, operands), attrs)
        except _EXPECTED as error:
            raise _at(node, error) from None
        except Exception as error:
            raise self._bug(node, version, error) from error
        return self._run_guarded(result, node, version) if isgenerator(result) else result

    def _run_guarded(
        self, converter: Generator[AnyValue, AnyValue, AnyValue], node: Call, version: int
    ) -> Generator[AnyValue, AnyValue, AnyValue]:
        """Go on with a converter that has bodies written, which may fail on the way, too."""
        try:
            return (yield from converter)
        except _EXPECTED as error:
            raise _at(node, error) from None
        except Exception as error:
            raise self._bug(node, version, error) from error

    def _bug(self, node: Call, version: int, error: Exception) -> ConverterBug:
        op = node.op.name if isinstance(node.op, OpDef) else ""
        return ConverterBug(
            f"{self.format_name}: {source_name(node)} ({op}, target {version}): "
            f"{type(error).__name__}: {error}"
        )


def source_name(node: Expr) -> str:
    """Return the name that an expression has in the model it comes from, empty if none."""
    return node.span.source_name if node.span is not None else ""


def _at(node: Call, error: Exception) -> Exception:
    """Return an error, that of a limit with the node it was reached at."""
    if isinstance(error, LimitError):
        error.node = error.node or source_name(node)
    return error


def _present(definition: OpDef, operands: Sequence[AnyValue]) -> list[AnyValue]:
    """Return the operands, those that a call leaves out as None.

    A bias that was taken in follows those that the operator declares.
    """
    if tuple not in map(type, operands):
        return list(operands)
    optional = [operand.optional for operand in definition.operands]
    optional += [False] * (len(operands) - len(optional))
    pairs = zip(operands, optional, strict=True)
    return [None if may and operand == () else operand for operand, may in pairs]
