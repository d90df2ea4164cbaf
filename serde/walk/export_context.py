"""What converters from Relay may reach, whatever the target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import GeneratorType
from typing import Any as AnyValue, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from serde.core import Array, dataclass, replace
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Any, Dim, FloorDiv, OpDef, SymDim, post_order, symbol
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var, astuple
from serde.relay.ir.leaves import leaf_types, leaves
from serde.relay.ir.types import SequenceType, TensorType, TupleType, Type
from serde.relay.transform.decompose import Decompose
from serde.relay.transform.evaluate_constants import EvaluateConstants
from serde.walk.context import TypedContext
from serde.walk.placement import Scope
from serde.walk.table import ConverterTable

__all__ = [
    "Body", "ExportContext", "ExportedValue", "NodeContext", "SymbolTable", "Values", "Writing",
    "known_leaves", "regroup",
]  # fmt: skip


class ExportedValue(Protocol):
    """A tensor or a sequence of the target's graph."""

    @property
    def type(self) -> AnyValue:
        """Return its Relay type, None where it is a converter's own."""

    @property
    def data(self) -> Array | None:
        """Return its value where it is a constant."""


ValueT = TypeVar("ValueT", bound=ExportedValue)
ResultT = TypeVar("ResultT")

Values: TypeAlias = ValueT | tuple["Values[ValueT]", ...]
"""What an expression becomes: a value, or for a tuple those of its fields."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a converter yields to have a body written, such as that of a loop.

    It is written where the context is then, and the converter is sent the values of its result.
    A converter whose body has a gap goes no further.

    Attributes:
        function: The body.
        args: Values of its parameters.
    """

    function: Function
    args: Sequence[AnyValue]


Writing: TypeAlias = Generator[Body, AnyValue, ResultT]
"""A converter that has bodies written, or a part of one."""


def known_leaves(values: Mapping[Expr, Values[ValueT] | None]) -> list[ValueT]:
    """Return all that expressions have become, without those that have gaps."""
    return [leaf for each in values.values() if each is not None for leaf in leaves(each)]


def regroup(flat: Iterable[ValueT], type_: Type) -> Values[ValueT]:
    """Return values in order as the tuple of tuples that `type_` is."""
    done: list[Values[ValueT]] = []
    source = iter(flat)
    pending: list[Type | int] = [type_]
    while pending:
        item = pending.pop()
        if isinstance(item, int):
            start = len(done) - item
            done[start:] = [tuple(done[start:])]
        elif isinstance(item, TupleType):
            pending.append(len(item.fields))
            pending.extend(reversed(item.fields))
        else:
            done.append(next(source))
    return done[0]


class SymbolTable(Generic[ValueT]):
    """Where the lengths that symbols stand for can be read.

    Args:
        parent: The table of what is around.
        of_model: Whether the symbols are those of the model's inputs; those of a function may
            have the same names and other lengths.
    """

    def __init__(
        self, parent: SymbolTable[ValueT] | None = None, *, of_model: bool = False
    ) -> None:
        self.of_model = of_model
        self._parent = parent
        self._axes: dict[str, list[tuple[Scope, ValueT, int]]] = {}
        self._multiples: dict[str, list[tuple[Scope, ValueT, int, int]]] = {}

    def add(self, scope: Scope, values: Iterable[ValueT]) -> None:
        """Note the symbols in the shapes of `values`, which can be read in and below `scope`."""
        for value in values:
            shape = value.type.shape if isinstance(value.type, TensorType) else ()
            for axis, dim in enumerate(shape):
                if isinstance(dim, SymDim) and dim.name is not None:
                    known = self._axes.setdefault(dim.name, [])
                    if _visible(known, scope) is None:
                        known.append((scope, value, axis))
                elif isinstance(dim, SymDim):
                    name, factor = _as_multiple(dim)
                    if name:
                        self._multiples.setdefault(name, []).append((scope, value, axis, factor))

    def find(self, name: str, scope: Scope) -> tuple[Scope, ValueT, int]:
        """Return the scope, the value and the axis at which a symbol is read from `scope`.

        Raises:
            Unsupported: There is none.
        """
        table: SymbolTable[ValueT] | None = self
        while table is not None:
            found = _visible(table._axes.get(name, ()), scope)
            if found is not None:
                return found
            table = table._parent
        raise Unsupported(f"no input shows the dimension {name}")

    def find_multiple(self, name: str, scope: Scope) -> tuple[ValueT, int, int] | None:
        """Return a value, an axis of it and how many times a symbol that is long.

        None where the symbol itself is the length of an axis, or no axis tells it.
        """
        table: SymbolTable[ValueT] | None = self
        while table is not None:
            if _visible(table._axes.get(name, ()), scope) is not None:
                return None
            found = _visible(table._multiples.get(name, ()), scope)
            if found is not None:
                return found[1:]
            table = table._parent
        return None


def _as_multiple(dim: SymDim) -> tuple[str, int]:
    """Return a symbol and how many times it a dimension is; "" for one that is something else."""
    ((monomial, factor), *rest) = dim.terms
    if rest or factor < 1 or len(monomial) != 1:
        return "", 0
    ((atom, power),) = monomial
    return (atom, factor) if isinstance(atom, str) and power == 1 else ("", 0)


SeenT = TypeVar("SeenT", bound=tuple[AnyValue, ...])


def _visible(known: Iterable[SeenT], scope: Scope) -> SeenT | None:
    """Return the first entry whose scope is around `scope`, or that scope itself."""
    return next((each for each in known if each[0].common(scope) is each[0]), None)


class NodeContext(TypedContext[ValueT]):
    """What a converter may ask of the one node that it converts.

    Attributes:
        result: Relay type of what the converter must return.
    """

    def __init__(self) -> None:
        self.result: Type = TensorType(())
        self._source = ""

    @property
    def source(self) -> str:
        """Name of the node that is converted."""
        return self._source

    def enter(self, source: str, result: Type) -> None:
        """Turn to the node called `source`, whose Relay type is `result`.

        Raises:
            Unsupported: The target computes no values of that type.
        """
        self._source = source
        self.result = result

    def type(self, x: ValueT) -> TensorType:
        """Return the Relay type of a tensor.

        Raises:
            ConverterBug: The value is a converter's own and has none, or it is a sequence.
        """
        if not isinstance(x.type, TensorType):
            found = "no Relay type" if x.type is None else f"the Relay type {x.type!r}"
            raise ConverterBug(f"{self._source}: a value of its own has {found}")
        return x.type

    @abstractmethod
    def const(self, value: AnyValue, dtype: AnyValue = None) -> ValueT:
        """Return a constant of the target's graph."""

    def constant(self, x: ValueT) -> Array:
        """Return the value of a constant.

        Raises:
            Unsupported: It is computed when the model runs, or a large weight.
        """
        if x.data is None:
            raise Unsupported("needs a constant, found a value computed at run time")
        return x.data

    def result_type(self) -> TensorType:
        """Return the type of the one tensor that the converter must return."""
        if not isinstance(self.result, TensorType):
            raise ConverterBug(f"{self._source}: the result is {self.result!r}")
        return self.result

    def result_types(self) -> Sequence[TensorType]:
        """Return the types of all tensors that the converter must return.

        Raises:
            Unsupported: There are sequences among them.
        """
        return leaf_types(self.result)


class ExportContext(NodeContext[ValueT]):
    """What every converter from Relay may reach.

    Args:
        table: The converters, for expressions that are spelled out.
        version: Version of the target that is written.
        scope: The main graph.

    Attributes:
        version: Likewise.
        scope: Where nodes are written.
        symbols: Where symbols of shapes can be read.
        used_once: Names of weights that one node of ``main`` alone uses; empty elsewhere.
    """

    def __init__(self, table: ConverterTable, version: int, scope: Scope) -> None:
        super().__init__()
        self.version = version
        self.scope = scope
        self.symbols: SymbolTable[ValueT] = SymbolTable(of_model=True)
        self.used_once: frozenset[str] = frozenset()
        self._table = table
        self._lengths: dict[Hashable, list[tuple[Scope, ValueT]]] = {}

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Write into another scope meanwhile."""
        before, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = before

    def body(self, function: Function, args: Sequence[Values[ValueT]]) -> Writing[AnyValue]:
        """Have a body, such as that of a loop, written here, and return its results.

        A converter goes no further where the body has a gap; the report tells what.
        """
        source, result = self._source, self.result
        found = yield Body(function, args)
        self._source, self.result = source, result
        return found

    def typed(self, x: ValueT, type_: TensorType | SequenceType) -> ValueT:
        """Return a value, which is a dataclass, with its Relay type.

        Raises:
            Unsupported: The target has no such values; here, no sequences.
        """
        if not isinstance(type_, TensorType):
            raise Unsupported(f"{self._table.format_name} has tensors only, found {type_!r}")
        return cast("ValueT", replace(cast("AnyValue", x), type=type_))

    def with_types(self, result: AnyValue, type_: Type) -> Values[ValueT]:
        """Return a converter's results with the types that an expression has for them.

        Args:
            result: A value, or several of which a converter may leave out the last.
            type_: The type of the expression.
        """
        if not isinstance(result, Sequence):
            if isinstance(type_, (TensorType, SequenceType)):
                return self.typed(cast("ValueT", result), type_)
            raise ConverterBug(f"{self._source}: expected {type_!r}, found one value")
        fields = type_.fields if isinstance(type_, TupleType) else ()
        if len(fields) < len(result):
            raise ConverterBug(f"{self._source}: {len(result)} results for {type_!r}")
        return tuple(self.with_types(*each) for each in zip(result, fields, strict=False))

    def inner_symbols(self) -> SymbolTable[ValueT]:
        """Return where symbols can be read in a body that is written here."""
        return self.symbols_inside(self.symbols)

    def symbols_inside(self, parent: SymbolTable[ValueT] | None) -> SymbolTable[ValueT]:
        """Return a new table of symbols, in which those of `parent` are seen."""
        return SymbolTable(parent)

    def spell(self, build: Callable[..., Expr], *operands: ValueT) -> ValueT:
        """Write the Relay expression that `build` makes of the operands.

        Raises:
            Unsupported: The target lacks an operator of it.
        """
        result = self.spell_tuple(build, *operands)
        if isinstance(result, tuple):
            raise ConverterBug(f"{self._source}: expected one tensor, found {len(result)}")
        return result

    def spell_tuple(
        self, build: Callable[..., Expr], *operands: ValueT
    ) -> ValueT | tuple[ValueT, ...]:
        """Write an expression of one tensor or several; see :meth:`spell`."""
        leaves_of = [
            Var(f"x{index}", self.type(x)) if x.data is None else Constant(x.data)
            for index, x in enumerate(operands)
        ]
        free = [each for each in leaves_of if isinstance(each, Var)]
        function = EvaluateConstants().transform(Function(free, astuple(build(*leaves_of))))
        used, pairs = set(post_order(function.body)), zip(leaves_of, operands, strict=True)
        given: dict[Expr, ValueT] = {leaf: x for leaf, x in pairs if leaf in used}
        root = function.body
        if isinstance(root, Constant):
            return self.const(root.data)
        known = given[root] if root in given else self.computed_weight(root, given)
        if known is not None:
            return known
        legal = Decompose(self.can_write, self._table.expansion).transform(function)
        source, result = self._source, self.result
        written = self._write_decomposition(legal.body, dict(given))
        self._source, self.result = source, result
        return written if not isinstance(written, tuple) else tuple(leaves(written))

    def can_write(self, node: Call) -> bool:
        """Whether the target has an operator for a call."""
        return self._table.can_export(node, self.version)

    def computed_weight(self, root: Expr, values: Mapping[Expr, ValueT]) -> ValueT | None:
        """Return the weight that an expression is, or None to have it written.

        Args:
            root: The expression.
            values: What its leaves are.
        """
        return None

    def _write_decomposition(
        self, root: Expr, values: dict[Expr, Values[ValueT]]
    ) -> Values[ValueT]:
        """Write `root`, whose leaves have `values`, under the name of the present node."""
        source = self._source
        for node in post_order(root):
            if node in values or isinstance(node, OpDef):
                continue
            if isinstance(node, Constant):
                values[node] = self.const(node.data)
            elif isinstance(node, Tuple):
                values[node] = tuple(values[field] for field in node.fields)
            elif isinstance(node, TupleGetItem):
                values[node] = cast("tuple[ValueT, ...]", values[node.tuple_value])[node.index]
            elif isinstance(node, Call) and isinstance(node.op, OpDef) and node.type is not None:
                self.enter(source, node.type)
                values[node] = self._spelled_call(node, node.op, [values[x] for x in node.args])
            else:
                raise ConverterBug(f"{source}: {node!r} is no call of an operator")
        return values[root]

    def _spelled_call(
        self, node: Call, op: OpDef, operands: Sequence[Values[ValueT]]
    ) -> Values[ValueT]:
        try:
            result = self._table.run_export(self, node, operands, self.version)
        except Unsupported as error:
            raise Unsupported(f"{op.name}: {error.reason}", hint=error.hint) from None
        if isinstance(result, GeneratorType):
            raise ConverterBug(f"{self._source}: {op.name} has a body and cannot be spelled out")
        return self.with_types(result, node.checked_type)

    def shape(self, dims: Sequence[Dim]) -> ValueT:
        """Return a vector of integers that holds `dims`, computed at run time where symbolic.

        Raises:
            Unsupported: A dimension is anonymous, or nothing shows its symbol.
        """
        fixed = [dim for dim in dims if isinstance(dim, int)]
        if len(fixed) == len(dims):
            return self.lengths(fixed)
        parts = [self.length(dim) for dim in dims]
        return parts[0] if len(parts) == 1 else self.join_lengths(parts)

    def length(self, dim: Dim) -> ValueT:
        """Return a vector of one integer that holds `dim`.

        Raises:
            Unsupported: It is anonymous, or nothing shows its symbol.
        """
        if isinstance(dim, int):
            return self.lengths([dim])
        if isinstance(dim, Any):
            raise Unsupported("needs a length that is not known before the model runs")
        if dim.name is not None:
            multiple = self.symbols.find_multiple(dim.name, self.scope)
            if multiple is None:
                return self.symbol_length(dim.name)
            return self.once(dim.name, lambda: self._part(*multiple))
        symbolic = dim
        return self.once(str(dim), lambda: self._sum(symbolic))

    def _part(self, value: ValueT, axis: int, factor: int) -> ValueT:
        """Return the length of an axis divided by a factor of it."""
        length = self.axis_length(value, axis)
        return self.combine_lengths("floor_div", length, self.lengths([factor]))

    def once(self, key: Hashable, make: Callable[[], ValueT]) -> ValueT:
        """Return what `make` writes, or has written for the same key where it is seen from here."""
        scope = self.scope
        known = self._lengths.setdefault((self.symbols, key), [])
        found = _visible(known, scope)
        if found is None:
            found = (scope, make())
            known.append(found)
        return found[1]

    def symbol_length(self, name: str) -> ValueT:
        """Return a vector of one integer that holds the length that a symbol stands for."""

        def read() -> ValueT:
            _, value, axis = self.symbols.find(name, self.scope)
            return self.axis_length(value, axis)

        return self.once(name, read)

    def _sum(self, dim: SymDim) -> ValueT:
        total: ValueT | None = None
        for monomial, coefficient in dim.terms:
            term: ValueT | None = None
            if coefficient != 1 or not monomial:
                term = self.lengths([coefficient])
            for atom, power in monomial:
                factor = self._atom(atom)
                for _ in range(power):
                    term = factor if term is None else self.combine_lengths("mul", term, factor)
            if term is not None:
                total = term if total is None else self.combine_lengths("add", total, term)
        if total is None:
            raise ConverterBug(f"{self._source}: the dimension {dim} has no terms")
        return total

    def _atom(self, atom: str | FloorDiv) -> ValueT:
        if isinstance(atom, str):
            return self.length(symbol(atom))
        parts = self.length(atom.numerator), self.length(atom.denominator)
        return self.combine_lengths("floor_div", *parts)

    def lengths(self, values: Sequence[int]) -> ValueT:
        """Return a constant vector of lengths, in the dtype that the target has for them."""
        raise self._no_lengths()

    def axis_length(self, x: ValueT, axis: int) -> ValueT:
        """Write what reads the length of an axis: a vector of one integer."""
        raise self._no_lengths()

    def join_lengths(self, parts: Sequence[ValueT]) -> ValueT:
        """Write the concatenation of vectors of one integer."""
        raise self._no_lengths()

    def combine_lengths(
        self, operator: Literal["mul", "add", "floor_div"], one: ValueT, other: ValueT
    ) -> ValueT:
        """Write the product, the sum or the quotient of two lengths, which are not negative."""
        raise self._no_lengths()

    def _no_lengths(self) -> Unsupported:
        return Unsupported("needs a shape that is computed when the model runs")
