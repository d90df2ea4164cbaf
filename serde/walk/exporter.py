"""The walk over a Relay model into the graph of a format.

A format gives the few hooks of :class:`ExportWalk`, an :class:`~serde.walk.export_context.
ExportContext` and a table of converters; the walk does all else. Nothing here recurses over the
depth of a model: what has inner graphs (a conditional, a loop, a call) is a generator that yields
the inner walks it needs, and :func:`_run` keeps those in a list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import GeneratorType
from typing import Any as AnyValue, Final, Generic, TypeAlias, TypeVar

from serde.core import Issue, Report, Weight, budget, counting, dataclass, field
from serde.errors import ConverterBug, TypeInferenceError, Unsupported
from serde.relay.ir import OpDef, RelayModel, SequenceType, TensorType, TupleType, Type, carried
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.foreign import PIVOT_FRAMEWORK, Foreign
from serde.relay.ir.leaves import holds_values, leaf_names, leaves, value_types
from serde.relay.ir.traits import Foreign as ForeignTrait
from serde.relay.ir.visit import free_vars, post_order
from serde.walk import booleans
from serde.walk.booleans import counts_bits
from serde.walk.export_context import (
    Body,
    ExportContext,
    ExportedValue,
    SymbolTable,
    Values,
    Writing,
    known_leaves,
    regroup,
)
from serde.walk.export_fallback import ExportFallback
from serde.walk.holes import Incomplete, require_countable, why_not_called, why_without_value
from serde.walk.lowering import fused_biases
from serde.walk.placement import Placement, Scope, callee, place
from serde.walk.table import ConverterTable, source_name

__all__ = ["ExportWalk", "Known", "name_outputs", "source_name"]

ValueT = TypeVar("ValueT", bound=ExportedValue)
Known: TypeAlias = dict[Expr, Values[ValueT] | None]
Walk: TypeAlias = Generator[AnyValue, AnyValue, Values[ValueT] | None]
"""A part of the walk: it yields further parts, and is sent what they give."""

_RECURSION: Final = "calls itself, which a graph cannot say"
_RECURSION_HINT: Final = "write the repetition as serde.loop or serde.scan"


def _run(part: Generator[AnyValue, AnyValue, AnyValue]) -> AnyValue:
    """Walk a part and all that it yields; what one raises goes on in the one that yielded it."""
    stack, answer = [part], None
    error: Exception | None = None
    while stack:
        try:
            inner = stack[-1].send(answer) if error is None else stack[-1].throw(error)
            error = None
        except StopIteration as done:
            stack.pop()
            answer, error = done.value, None
        except (Unsupported, TypeInferenceError) as raised:
            stack.pop()
            if not stack:
                raise
            error = raised
        else:
            stack.append(inner)
            answer = None
    return answer


@dataclass(slots=True, eq=False)
class _Placed:
    """A function's body whose nodes are placed.

    Attributes:
        placement: Where they lie.
        biases: The additions of a bias that their only producer's form in the target includes.
        skipped: Those producers.
    """

    placement: Placement
    biases: Mapping[Expr, tuple[Call, Expr]]
    skipped: Collection[Expr] = field(init=False)

    def __post_init__(self) -> None:
        self.skipped = {call for call, _bias in self.biases.values()}


class ExportWalk(ABC, Generic[ValueT]):
    """Writes ``main`` of a model into the graph of a format; gaps go into a report.

    Args:
        model: What is exported.
        table: The converters.
        context: What the converters may reach.
        report: Filled with gaps.
        fallback: What is done with operators that nobody knows.

    Attributes:
        dense_rank: Rank of a dense layer's result with which the target adds a bias; None: any.
        most_levels: How many graphs may lie inside each other; None: any number.
        takes_tuples: Whether an input may be a tuple, whose fields become inputs ``x_0``, ``x_1``.
    """

    dense_rank: int | None = None
    most_levels: int | None = None
    takes_tuples: bool = False

    def __init__(
        self,
        model: RelayModel,
        table: ConverterTable,
        context: ExportContext[ValueT],
        report: Report,
        fallback: ExportFallback | None = None,
    ) -> None:
        self.fallback = ExportFallback(table.format_name) if fallback is None else fallback
        self._model = model
        self._table = table
        self._context = context
        self._report = report
        self._values: Known[ValueT] = {}
        self._globals = {each.name_hint: body for each, body in model.mod.functions.items()}
        self._active: set[Function] = set()
        self._captures: dict[Function, list[Var]] = {}

    # What a format gives.

    @abstractmethod
    def parameter(
        self, name: str, type_: TensorType | SequenceType, weight: Weight | None
    ) -> ValueT:
        """Declare an input of the model or, with its `weight`, a parameter.

        Raises:
            Unsupported: The target has no values of that type.
        """

    @abstractmethod
    def conditional(
        self, node: If, name: str, condition: ValueT, branches: Sequence[AnyValue]
    ) -> Sequence[ValueT]:
        """Write a conditional and return its results, one for each leaf of its type.

        Args:
            node: The conditional.
            name: What it is to be called.
            condition: A scalar of bool.
            branches: What :meth:`end_branch` returned for both.
        """

    def end_branch(self, node: If, scope: Scope, results: list[ValueT]) -> AnyValue:
        """Return a branch whose nodes are written; called inside :meth:`branch`.

        Args:
            node: The conditional.
            scope: Where the nodes are.
            results: What the branch gives, one for each leaf of its type.
        """
        return results

    @contextmanager
    def branch(self, scope: Scope, values: Known[ValueT]) -> Iterator[Known[ValueT]]:
        """Write into a branch meanwhile; yield the values that are seen inside.

        Args:
            scope: The branch.
            values: What is seen around it.

        Raises:
            Unsupported: Too many lie inside each other.
        """
        if self.most_levels is not None:
            scope.require_level(self.most_levels)
        with self._context.inside(scope):
            yield values

    def branch_name(self, node: If) -> str:
        """Return what a conditional is called in paths of nodes, and when it is written."""
        return source_name(node) or _label(node)

    def note(self, values: Sequence[ValueT]) -> None:
        """Note what stands for an expression in the present graph."""

    def local_call(
        self, node: Call, function: Function, name: str, given: Sequence[Values[ValueT]]
    ) -> Generator[AnyValue, AnyValue, Sequence[ValueT] | None] | None:
        """Write the call of a function that stays one, or return None to have it inlined.

        The generator yields :meth:`function` where the function itself must be written first, and
        returns the results, one for each leaf, or None where it has a gap.

        Args:
            node: The call.
            function: What is called.
            name: Its global name, if it has one.
            given: Values of its parameters, then of the variables it takes from around it.
        """
        return None

    def foreign(self, node: Foreign, operands: Sequence[ValueT | None]) -> AnyValue:
        """Write an operator that Relay does not know.

        The format's own is written as it was read, that of another framework as a custom one.

        Args:
            node: What it is.
            operands: Its operands, None where one is left out.

        Returns:
            What converters return.

        Raises:
            Unsupported: The format has no custom operators, or none like this.
        """
        raise Unsupported("the format has no operators of users' own")

    # What a format calls.

    def declare(self) -> list[ValueT]:
        """Declare the parameters of ``main`` and return those that are no weights.

        Names are kept; a tuple ``x`` becomes ``x_0``, ``x_1`` and so on, and an input without a
        name is called ``value``.
        """
        inputs: list[ValueT] = []
        params = self._model.main.params
        taken = {each.name_hint for each in params if not isinstance(each.type, TupleType)}
        for param in params:
            try:
                found = self._declare_parameter(param, taken)
            except Unsupported as error:
                self._report.add("parameter", param.name_hint, error.reason, error.hint)
                self._values[param] = None
                continue
            self._values[param] = found
            if param.name_hint not in self._model.params:
                inputs += leaves(found)
        self._context.symbols.add(self._context.scope, inputs)
        return inputs

    def write(self) -> list[ValueT]:
        """Write the body of ``main`` and return its results; none where there are gaps.

        Raises:
            ConverterBug: There are no results, and no gaps.
        """
        part = self.function(
            self._model.main, self._context.scope, self._values, self._context.symbols
        )
        result: Values[ValueT] | None = _run(part)
        if self._report.issues:
            return []
        if result is None:
            raise ConverterBug("main has no result, and no gap tells why")
        return leaves(result)

    def function(
        self, function: Function, scope: Scope, values: Known[ValueT], symbols: SymbolTable[ValueT]
    ) -> Walk[ValueT]:
        """Walk the body of a function.

        Args:
            function: The function.
            scope: Where its nodes are written.
            values: What its parameters, and the variables it takes from around it, are there.
            symbols: Where symbols of shapes can be read in it.
        """
        context = self._context
        placement = place(function.body, scope, self._branches, self._captures_of)
        biases = fused_biases(placement.uses, dense_rank=self.dense_rank)
        before = context.symbols, context.used_once
        context.symbols, context.used_once = symbols, frozenset()
        if function is self._model.main:
            once = (each for each in function.params if placement.uses.get(each) == 1)
            context.used_once = frozenset(each.name_hint for each in once)
        self._active.add(function)
        with context.inside(scope):
            result = yield from self._scope(
                _Placed(placement, biases), scope, function.body, values
            )
        self._active.discard(function)
        context.symbols, context.used_once = before
        return result

    # The walk itself.

    def _declare_parameter(self, param: Var, taken: Collection[str]) -> Values[ValueT]:
        """Declare a parameter of the model: each tensor of a tuple by itself."""
        type_, weights = param.type, self._model.params
        own = param.name_hint
        shown = own if own in weights else own or "value"
        if not holds_values(type_) or not (isinstance(type_, TensorType) or self.takes_tuples):
            raise Unsupported(f"a {type_!r} is no tensor")
        made = []
        for name, each in zip(
            leaf_names(shown, param.checked_type), value_types(type_), strict=True
        ):
            while (isinstance(type_, TupleType) or shown != own) and name in taken:
                name = f"{name}_"
            made.append(self.parameter(name, each, weights.get(name)))
        return regroup(made, param.checked_type)

    def _branches(self, node: If, scope: Scope) -> tuple[Scope, Scope]:
        name = self.branch_name(node)
        return scope.inner(f"{name}/then"), scope.inner(f"{name}/else")

    def _captures_of(self, function: Function) -> list[Var]:
        """Return the variables that a function takes from around it."""
        if function not in self._captures:
            self._captures[function] = free_vars(function)
        return self._captures[function]

    def _scope(
        self, placed: _Placed, scope: Scope, root: Expr, values: Known[ValueT]
    ) -> Walk[ValueT]:
        """Write what lies in a scope and return the values of `root`."""
        skipped, lets = placed.skipped, placed.placement.lets
        count = counting("nodes")
        for node in placed.placement.orders.get(scope, ()):
            if node in values or node in skipped or (isinstance(node, Var) and node not in lets):
                continue
            try:
                found: AnyValue = self._export(placed, scope, values, node)
                values[node] = (yield found) if isinstance(found, GeneratorType) else found
            except (Unsupported, TypeInferenceError) as error:
                values[node] = None
                self._refuse(scope, placed.biases.get(node, (node,))[0], error)
            if isinstance(node, Call):
                count(1)
        return values[root]

    def _refuse(self, scope: Scope, node: Expr, error: Unsupported | TypeInferenceError) -> None:
        """Record a gap, unless it is one that is recorded already."""
        if not isinstance(error, Incomplete):
            hint = error.hint if isinstance(error, Unsupported) else None
            where = scope.path() + (source_name(node) or _label(node))
            self._report.add(_operator_name(node), where, str(error), hint)

    def _export(
        self, placed: _Placed, scope: Scope, values: Known[ValueT], node: Expr
    ) -> Values[ValueT] | Walk[ValueT] | None:
        """Return what one expression becomes, or the walk that tells; None for a gap below it."""
        if isinstance(node, Call):
            if isinstance(node.op, OpDef):
                return self._operator(placed, scope, values, node)
            return self._call(placed, values, node)
        if isinstance(node, Tuple):
            fields = tuple(each for item in node.fields if (each := values[item]) is not None)
            return fields if len(fields) == len(node.fields) else None
        if isinstance(node, TupleGetItem):
            source = values[node.tuple_value]
            return source[node.index] if isinstance(source, tuple) else None
        if isinstance(node, Constant):
            return self._context.const(node.data)
        if isinstance(node, If):
            return self._conditional(placed, values, node)
        if isinstance(node, Let):
            return values[node.body]
        if isinstance(node, Var):
            return self._with_types(values.get(placed.placement.lets[node]), node.type)
        raise Unsupported(why_without_value(node))

    def _operator(
        self, placed: _Placed, scope: Scope, values: Known[ValueT], node: Call
    ) -> Values[ValueT] | Walk[ValueT] | None:
        """Run the converter of an operator, a bias that follows being its last operand."""
        call, *bias = placed.biases.get(node, (node,))
        operands = [values[argument] for argument in (*call.args, *bias)]
        if node.type is None:
            raise ConverterBug(f"{source_name(node)}: {node!r} is not typed")
        require_countable(node.type)
        self._context.enter(source_name(node) or _label(call), node.type)
        if isinstance(call.op, OpDef) and call.op.has(ForeignTrait):
            return self._write_foreign(call, operands)
        if any(operand is None for operand in operands):
            self._table.bind_export(call, self._context.version)
            return self._gaps(scope, call)
        if counts_bits(call):
            raise Unsupported(booleans.REASON, hint=booleans.HINT)
        result = self._table.run_export(self._context, call, operands, self._context.version)
        if isinstance(result, GeneratorType):
            return self._run_with_bodies(result, node.type)
        return self._note_types(result, node.type)

    def _write_foreign(
        self, call: Call, operands: Sequence[Values[ValueT] | None]
    ) -> Values[ValueT] | Walk[ValueT] | None:
        """Write an operator that Relay does not know."""
        context, type_ = self._context, call.checked_type
        node = Foreign.of(call)
        own = self.fallback.converter(node)
        if own is None:
            self.fallback.require_consent(node, self._report, context.source)
        (given,) = operands
        if not isinstance(given, tuple):
            return None
        body = call.attrs["body"] if own is None and node.domain else None
        local = None if body is None else self.local_call(call, body, "", given)
        if local is not None:
            return self._local(local, call)
        if own is None:
            return self._note_types(self.foreign(node, node.arrange(given)), type_)
        result = self.fallback.run(own, context, call, given, context.source)
        if node.framework != PIVOT_FRAMEWORK:
            issue = Issue(node.full_name, context.source, f"written by {own.where}")
            self._report.fallbacks.append(issue)
        if isinstance(result, GeneratorType):
            return self._run_with_bodies(result, type_)
        return self._note_types(result, type_)

    def _gaps(self, scope: Scope, call: Call) -> Walk[ValueT] | None:
        """Return the walk that records the gaps in the bodies of an operator that is not run."""
        bodies = carried(call)
        return self._walk_unreached(scope, self._context.source, bodies) if bodies else None

    def _walk_unreached(self, scope: Scope, name: str, bodies: Sequence[Function]) -> Walk[ValueT]:
        """Write bodies whose parameters nobody gives, for the gaps in them."""
        for body in bodies:
            unknown: Known[ValueT] = dict.fromkeys(body.params)
            symbols = self._context.inner_symbols()
            yield self.function(body, scope.inner(f"{name}/body"), unknown, symbols)
        return None

    def _run_with_bodies(self, converter: Writing[AnyValue], type_: Type) -> Walk[ValueT]:
        """Go on with a converter that has bodies written."""
        answer = None
        while True:
            try:
                body = converter.send(answer)
            except StopIteration as done:
                return self._note_types(done.value, type_)
            answer = yield self._body(body)
            if answer is None:
                converter.close()
                return None

    def _body(self, body: Body) -> Walk[ValueT]:
        """Return the walk of a body, which is a scope of its own."""
        free = self._captures_of(body.function)
        if free:
            raise Unsupported(f"a body takes {free[0].name_hint} from around it")
        values: Known[ValueT] = dict(zip(body.function.params, body.args, strict=True))
        symbols = self._context.inner_symbols()
        scope = self._context.scope
        symbols.add(scope, (leaf for each in body.args for leaf in leaves(each)))
        return self.function(body.function, scope, values, symbols)

    def _conditional(self, placed: _Placed, values: Known[ValueT], node: If) -> Walk[ValueT]:
        """Write both branches and what chooses between them."""
        if node.type is None:
            raise ConverterBug(f"{node!r} is not typed")
        scopes = placed.placement.branches[node]
        name = scopes[0].step.removesuffix("/then")
        condition = values[node.cond]
        self._context.enter(name, node.type)
        branches = []
        for scope, root in zip(scopes, (node.true_branch, node.false_branch), strict=True):
            with self.branch(scope, values) as seen:
                found = yield self._scope(placed, scope, root, seen)
                if found is not None:
                    branches.append(self.end_branch(node, scope, leaves(found)))
        if condition is None or isinstance(condition, tuple) or len(branches) < len(scopes):
            return None
        self._context.enter(name, node.type)
        flat = self.conditional(node, name, condition, branches)
        return self._note_types(regroup(flat, node.type), node.type)

    def _call(self, placed: _Placed, values: Known[ValueT], node: Call) -> Walk[ValueT] | None:
        """Return the walk of a function that is called."""
        target = callee(node)
        if isinstance(target, Var) and target in values and values[target] is None:
            return None  # a parameter of main that is a function, which is refused already
        lets = placed.placement.lets
        own = isinstance(target, Var) and isinstance(lets.get(target), Function)
        function = target if isinstance(target, Function) else None
        lost = False
        if isinstance(target, GlobalVar):
            function = self._globals.get(target.name_hint)
            lost = function is None  # Steps that renew main keep no function that is recursive.
        if own or lost or function in self._active:
            raise Unsupported(_RECURSION, hint=_RECURSION_HINT)
        if function is None:
            raise Unsupported(why_not_called(node))
        captures = self._captures_of(function)
        given = [values[each] for each in (*node.args, *captures)]
        bound: Known[ValueT] = dict(zip((*function.params, *captures), given, strict=True))
        known = [each for each in given if each is not None]
        if len(known) == len(given):
            name = target.name_hint if isinstance(target, GlobalVar) else ""
            local = self.local_call(node, function, name, known)
            if local is not None:
                return self._local(local, node)
        return self._inline(node, function, bound)

    def _local(
        self, call: Generator[AnyValue, AnyValue, Sequence[ValueT] | None], node: Call
    ) -> Walk[ValueT]:
        flat = yield from call
        type_ = node.checked_type
        return None if flat is None else self._note_types(regroup(flat, type_), type_)

    def _inline(self, node: Call, function: Function, given: Known[ValueT]) -> Walk[ValueT]:
        """Write the nodes of a function where its call is."""
        size = len(post_order(function.body))
        budget().draw("nodes", size, f"{_label(node)}: functions in place of their calls")
        context = self._context
        values = dict(given)
        values.update((each, self._with_types(given[each], each.type)) for each in function.params)
        closure = isinstance(node.op, Function)
        symbols = context.symbols_inside(context.symbols if closure else None)
        symbols.add(context.scope, known_leaves(values))
        result = yield from self.function(function, context.scope, values, symbols)
        return self._with_types(result, node.type)

    def _with_types(
        self, values: Values[ValueT] | None, type_: Type | None
    ) -> Values[ValueT] | None:
        if values is None or type_ is None:
            return values
        return self._context.with_types(values, type_)

    def _note_types(self, result: AnyValue, type_: Type) -> Values[ValueT]:
        """Return results with their Relay types, which the format may note too."""
        typed = self._context.with_types(result, type_)
        self.note(leaves(typed))
        return typed


def name_outputs(
    results: Sequence[ValueT],
    names: Sequence[str],
    name_of: Callable[[ValueT], str],
    made: Collection[str],
    copy: Callable[[ValueT, str], str],
) -> dict[str, str]:
    """Return how to rename the values of a graph so that its results have their names.

    A result of a node is renamed; an input, a constant, or what is a result twice is copied.

    Args:
        results: What the graph gives.
        names: What its results are to be called.
        name_of: Gives the name of a value.
        made: Names of what nodes give.
        copy: Writes a node that gives a value again, and returns the name of that.
    """
    renamed: dict[str, str] = {}
    for value, name in zip(results, names, strict=True):
        own = name_of(value)
        if own not in made or own in renamed:
            own = copy(value, name)
        renamed[own] = name
    return renamed


def _operator_name(node: Expr) -> str:
    if isinstance(node, Call):
        return node.op.name if isinstance(node.op, OpDef) else "call of a function"
    return type(node).__name__


def _label(node: Expr) -> str:
    """Return the name of a node that has none."""
    if not isinstance(node, Call):
        return type(node).__name__.lower()
    if isinstance(node.op, OpDef):
        return node.op.name.rsplit(".", 1)[-1]
    return node.op.name_hint if isinstance(node.op, (GlobalVar, Var)) else "call"
