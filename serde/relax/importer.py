"""The walk over a module of Relax into Relay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Any as AnyValue
from typing import Final

from serde.errors import (
    FormatError,
    OptionError,
    TypeInferenceError,
    Unsupported,
    raise_if_refused,
)
from serde.limits import MAX_EXPANDED_NODES, MAX_NESTING
from serde.relax.framework import load
from serde.relax.import_context import ImportContext
from serde.relax.lengths import Lengths, Scalar, Shape
from serde.relax.loading import to_weight
from serde.relax.model import RelaxModel
from serde.relax.ops import TABLE
from serde.relax.options import RelaxImportOptions
from serde.relax.reflection import (
    argument_names,
    attributes_of,
    dtype_of,
    handle_of,
    name_of,
    plain_value,
    tensor_of,
)
from serde.relay.ir.dims import Any, Dim, DimLike, as_dim
from serde.relay.ir.expr import (
    Expr,
    If,
    Span,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
)
from serde.relay.ir.garbage_collection import pause_garbage_collection
from serde.relay.ir.infer import infer_if
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.types import TensorType, TupleType
from serde.report import Report
from serde.walk import importer
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback
from serde.walk.holes import Hole, Incomplete
from serde.walk.importer import Graph, Node
from serde.walk.inputs import check_rank
from serde.walk.scope import Scope

__all__ = ["to_relay"]

Values = Scope[int, AnyValue]

_BEFORE: Final = "give the module as it is before legalisation (relax.transform.LegalizeOps)"


@pause_garbage_collection()
def to_relay(model: RelaxModel, options: RelaxImportOptions, report: Report) -> RelayModel:
    """Return the module as Relay.

    Functions are read where they are called, those that call themselves as let-bound functions.

    Raises:
        OptionError: An option names no input.
        UnsupportedModelError: Some of the module cannot be converted.
    """
    walk = _Walk(model, options, report)
    scope = Values()
    main = model.module["main"]
    graph = walk.read(main, scope)
    params = main.params[: len(model.inputs)]
    entries = [_Input(name, each) for name, each in zip(model.inputs, params, strict=True)]
    walk.declare_lengths(entries, options)
    inputs = walk.inputs(
        entries, scope, options.input_shapes, options.input_dtypes, weights=list(model.weights)
    )
    results = walk.run(graph, scope)
    outputs = walk.leaves(results)
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    meta = ModelMeta(
        inputs=tuple(each.name_hint for each in inputs),
        outputs=model.outputs,
        source_format="relax",
        source_version=load().version,
    )
    return walk.assembly.model(inputs, outputs, meta, walk.named)


class _Input:
    """An input as the function declares it."""

    def __init__(self, name: str, variable: AnyValue) -> None:
        self.name = name
        self.variable = variable


@dataclass(frozen=True)
class _Closure:
    """A function that is bound to a variable.

    Attributes:
        function: The function.
        scope: Where it is.
        names: What lengths it sees.
    """

    function: AnyValue
    scope: Values
    names: Mapping[int, str]


class _Walk(importer.ImportWalk[AnyValue, AnyValue, Values]):
    """State of one conversion.

    Attributes:
        lengths: What lengths are in the function that is read.
        named: Values by the names that the module has for them.
    """

    def __init__(self, model: RelaxModel, options: RelaxImportOptions, report: Report) -> None:
        fallback = ImportFallback.of("relax", options)
        super().__init__(report, Assembly([*model.inputs, *model.outputs]), fallback)
        self._framework = load()
        self._model = model
        self._custom = options.custom_convert_map
        self.lengths = Lengths(self._framework, self.assembly.fold)
        self.named: dict[str, Expr] = {}
        self._constants: dict[int, Expr] = {}
        self._recursive: dict[str, Var] = {}
        self._depth = 0

    # Inputs.

    def declare_lengths(self, entries: Sequence[_Input], options: RelaxImportOptions) -> None:
        """Note the variables in shapes of inputs: as the caller gives them, else as symbols."""
        types = {each.name: self._framework.type_of(each.variable) for each in entries}
        shapes = dict(options.input_shapes)
        if "" in shapes and len(entries) == 1:
            shapes[entries[0].name] = shapes.pop("")
        tensors = {
            name: type_.shape.values
            for name, type_ in types.items()
            if isinstance(type_, self._framework.TensorType) and type_.shape is not None
        }
        for name, given in shapes.items():
            for length, dim in zip(tensors.get(name, ()), given, strict=False):
                if self.lengths.is_variable(length) and not self.lengths.knows(length):
                    self.lengths.define(length, as_dim(dim), _not_shown)
        for lengths in tensors.values():
            for length in lengths:
                self.lengths.declare(length)

    def declare(
        self, entry: _Input, shape: Sequence[DimLike] | None, dtype: str | None, scope: Values
    ) -> Var | None:
        """Return the variable for an input, and define its name."""
        type_ = self._framework.type_of(entry.variable)
        if not isinstance(type_, self._framework.TensorType):
            raise Unsupported(
                f"Relay has tensors only, found {type_!s:.100}",
                hint="bind it: relax.transform.BindParams or BindSymbolicVars",
            )
        declared = self._declared_shape(type_)
        if shape is not None and declared is not None:
            check_rank(entry.name, shape, declared)
        shape = declared if shape is None else shape
        found = dtype or (str(type_.dtype) if type_.dtype else None)
        if found is None:
            raise Unsupported(
                "nothing tells its dtype", hint=f"input_dtypes={{{entry.name!r}: ...}}"
            )
        if shape is None:
            return None
        variable = Var(entry.name, TensorType(shape, found), Span(entry.name))
        if type_.shape is not None:
            for axis, length in enumerate(type_.shape.values):
                if self.lengths.is_variable(length):
                    self.lengths.show(length, variable, axis)
        scope.define(handle_of(entry.variable), variable)
        return variable

    def _declared_shape(self, type_: AnyValue) -> list[Dim] | None:
        """Return a shape as Relay's types have it, None where even the rank is not known."""
        if type_.shape is not None:
            values = type_.shape.values
            return [self.lengths.known(self.lengths.read(each)) for each in values]
        return None if type_.ndim < 0 else [Any()] * type_.ndim

    # Functions.

    def read(self, graph: AnyValue, scope: Values) -> Graph[AnyValue]:
        """Return ``main`` as the walk sees it, and define its weights."""
        weights = graph.params[len(self._model.inputs) :]
        for variable, (own, weight) in zip(weights, self._model.weights.items(), strict=True):
            name = self._model.names.get(own, own)
            scope.define(handle_of(variable), self.assembly.tensor(weight, name))
        return Graph([], self._nodes(graph.body), [graph.body])

    def _nodes(self, body: AnyValue) -> Iterator[Node[AnyValue]]:
        """Yield the bindings of a sequence."""
        relax = self._framework.relax
        if not isinstance(body, relax.SeqExpr):
            return
        for block in body.blocks:
            for binding in block.bindings:
                variable = binding.var
                yield Node(
                    self._operator(binding), name_of(variable), [handle_of(variable)], binding
                )

    def _operator(self, binding: AnyValue) -> str:
        value = binding.value
        if isinstance(binding, self._framework.relax.MatchCast):
            return "match_cast"
        if isinstance(value, self._framework.relax.Call):
            return self._called(value)
        return type(value).__name__

    def _called(self, call: AnyValue) -> str:
        op = call.op
        if isinstance(op, self._framework.tvm.ir.Op):
            return str(op.name)
        return name_of(op) if hasattr(op, "name_hint") or hasattr(op, "name") else "call"

    def output(self, name: AnyValue, scope: Values) -> AnyValue:
        """Return the result of a sequence."""
        relax = self._framework.relax
        return self.value(name.body if isinstance(name, relax.SeqExpr) else name, scope, "result")

    def leaves(self, values: Sequence[AnyValue]) -> list[Expr]:
        """Return values as tensors, those of tuples one after the other."""
        found: list[Expr] = []
        pending = list(values)[::-1]
        while pending:
            each = pending.pop()
            if isinstance(each, list):
                pending += each[::-1]
            else:
                found.append(self.as_tensor(each))
        return found

    def as_tensor(self, value: AnyValue) -> Expr:
        """Return a value as a tensor.

        Raises:
            Unsupported: It is none.
        """
        if isinstance(value, Expr):
            return value
        if isinstance(value, Shape):
            return self.lengths.vector(value.dims)
        if isinstance(value, Scalar):
            return ImportContext("", 1, self.lengths, self, None).tensor(value)
        raise Unsupported(f"expected a tensor, found {type(value).__name__}")

    # Bindings.

    def convert(self, node: Node[AnyValue], scope: Values, label: str) -> Sequence[AnyValue]:
        """Return the value of a binding."""
        self.report.nodes += 1
        if self.report.nodes > MAX_EXPANDED_NODES:
            raise FormatError(f"more than {MAX_EXPANDED_NODES} nodes once functions are expanded")
        binding = node.source
        try:
            found = self.value(binding.value, scope, label)
            if isinstance(binding, self._framework.relax.MatchCast):
                found = self._cast(found, self._framework.cast_type(binding))
            self._check(found, self._framework.type_of(binding.var))
        except Incomplete:
            found = Hole()
        except (Unsupported, TypeInferenceError) as error:
            reason = error.reason if isinstance(error, Unsupported) else str(error)
            hint = error.hint if isinstance(error, Unsupported) else None
            self.report.add(node.op, label, reason, hint)
            found = Hole()
        if isinstance(found, Expr) and not isinstance(found, Hole):
            self.named.setdefault(label, found)
        return [found]

    def _check(self, value: AnyValue, type_: AnyValue) -> None:
        """Compare a result with what TVM says of it.

        Raises:
            Unsupported: It is of another type.
        """
        framework = self._framework
        if isinstance(value, list) and isinstance(type_, framework.TupleType):
            for each, inner in zip(value, type_.fields, strict=True):
                self._check(each, inner)
            return
        if not isinstance(type_, framework.TensorType) or isinstance(value, Hole):
            return
        found = value.type if isinstance(value, Expr) else None
        wrong = Unsupported(f"TVM says {type_!s}, but operands and attributes give {found!r}")
        if not isinstance(found, TensorType) or (type_.dtype and str(type_.dtype) != found.dtype):
            raise wrong
        if type_.ndim >= 0 and found.rank != type_.ndim:
            raise wrong
        if type_.shape is None:
            return
        for length, dim in zip(type_.shape.values, found.shape, strict=True):
            known = plain_value(framework, length)
            if isinstance(dim, int) and isinstance(known, int) and known != dim:
                raise wrong

    def _cast(self, value: AnyValue, type_: AnyValue) -> AnyValue:
        """Return a value of which a type is told, and note the lengths that this shows.

        Raises:
            Unsupported: It never is of that type.
        """
        framework = self._framework
        if isinstance(value, list) and isinstance(type_, framework.TupleType):
            return [self._cast(v, t) for v, t in zip(value, type_.fields, strict=True)]
        if isinstance(type_, framework.TensorType):
            found = value.type if isinstance(value, Expr) else None
            if not isinstance(found, TensorType):
                raise Unsupported(f"expected a tensor, found {type(value).__name__}")
            if type_.dtype and found.dtype != str(type_.dtype):
                raise Unsupported(f"a tensor of {found.dtype} that has to be {type_.dtype}")
            if type_.shape is not None:
                self.lengths.match(type_.shape.values, value)
        if isinstance(type_, framework.ShapeType) and isinstance(value, Shape):
            lengths = type_.values
            if lengths is not None and len(lengths) != len(value.dims):
                raise Unsupported(f"a shape of {len(value.dims)} axes that has to be {type_!s}")
            for length, dim in zip(lengths or (), value.dims, strict=False):
                self.lengths.match_length(
                    length, self.lengths.known(dim), partial(self.lengths.tensor, dim)
                )
        return value

    # Expressions.

    def value(self, expr: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return what an expression is: a tensor, a shape, a number, a list of these.

        Raises:
            Unsupported: It cannot be said in Relay.
        """
        if self._depth > MAX_NESTING:
            raise FormatError(f"{label}: expressions nested more than {MAX_NESTING} deep")
        self._depth += 1
        try:
            return self._value(expr, scope, label)
        finally:
            self._depth -= 1

    def _value(self, expr: AnyValue, scope: Values, label: str) -> AnyValue:
        framework = self._framework
        relax = framework.relax
        if isinstance(expr, framework.variables):
            return self._variable(expr, scope)
        if isinstance(expr, framework.Constant):
            return self._constant(expr, label)
        if isinstance(expr, relax.Call):
            return self._call(expr, scope, label)
        if isinstance(expr, relax.Tuple):
            return [self.value(each, scope, label) for each in expr.fields]
        if isinstance(expr, relax.TupleGetItem):
            return self._field(self.value(expr.tuple_value, scope, label), int(expr.index))
        if isinstance(expr, relax.ShapeExpr):
            return Shape(tuple(self.lengths.read(each) for each in expr.values))
        if isinstance(expr, relax.If):
            return self._conditional(expr, scope, label)
        if isinstance(expr, relax.SeqExpr):
            return self._sequence(expr, scope, label)
        if isinstance(expr, relax.Function):
            return _Closure(expr, scope, dict(self.lengths.names))
        if isinstance(expr, framework.texts):
            return str(expr.value)
        return self._number(expr)

    def _variable(self, variable: AnyValue, scope: Values) -> AnyValue:
        if scope.knows(handle_of(variable)):
            return scope.find(handle_of(variable))
        if isinstance(variable, self._framework.relax.GlobalVar):
            return variable
        return self._number(variable)

    def _number(self, expr: AnyValue) -> Scalar:
        """Return a number of TIR.

        Raises:
            Unsupported: It is made by something else than arithmetic.
        """
        if isinstance(expr, self._framework.PrimValue):
            expr = expr.value
        plain = plain_value(self._framework, expr)
        if isinstance(plain, (bool, int, float)):
            return Scalar(plain, dtype_of(expr))
        return Scalar(self.lengths.read(expr), dtype_of(expr))

    def _constant(self, constant: AnyValue, label: str) -> Expr | str:
        """Return a constant: a tensor, or the text or dtype that it holds."""
        held = plain_value(self._framework, tensor_of(constant))
        if isinstance(held, (str, NoneType)):
            return str(held)
        handle = handle_of(constant)
        if handle not in self._constants:
            weight = to_weight(held)
            self._constants[handle] = self.assembly.tensor(weight, f"{label}.constant")
        return self._constants[handle]

    def _field(self, value: AnyValue, index: int) -> AnyValue:
        if isinstance(value, Hole):
            return Hole()
        if not isinstance(value, list) or not 0 <= index < len(value):
            raise Unsupported(f"field {index} of what is no such tuple")
        return value[index]

    def _sequence(self, body: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return the result of bindings inside an expression."""
        return self.run(
            Graph([], self._nodes(body), [body]), scope.inner(label, prefix=scope.prefix)
        )[0]

    def _conditional(self, expr: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return the results of a conditional."""
        condition = self.as_tensor(self.value(expr.cond, scope, label))
        names = dict(self.lengths.names)
        branches = []
        for word, each in (("then", expr.true_branch), ("else", expr.false_branch)):
            before = len(self.report.issues)
            inner = scope.inner(f"{label}/{word}")
            value = self.run(Graph([], self._nodes(each), [each]), inner)[0]
            self.lengths.names = dict(names)
            if len(self.report.issues) > before:
                raise Incomplete
            branches.append(value)
        if isinstance(condition, Hole):
            return Hole()
        whole = [_tuple(self.leaves([each])) for each in branches]
        made = If(condition, whole[0], whole[1], Span(label))
        made.type = infer_if(made)
        return _regroup(branches[0], iter(_fields(made)))

    # Calls.

    def _call(self, call: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return what a call gives."""
        framework = self._framework
        if isinstance(call.op, framework.tvm.ir.Op):
            return self._call_op(call, str(call.op.name), scope, label)
        args = [self.value(each, scope, label) for each in call.args]
        if isinstance(call.op, framework.relax.GlobalVar):
            name = name_of(call.op)
            function = self._functions.get(name)
            if function is None:
                raise Unsupported(f"a call of {name}, which is no function of Relax", hint=_BEFORE)
            return self._call_function(name, function, args, scope, label)
        callee = self.value(call.op, scope, label) if call.op is not None else None
        if isinstance(callee, Hole):
            return callee
        if not isinstance(callee, _Closure):
            raise Unsupported(f"a call of {type(call.op).__name__}, which only TVM can run")
        return self._expand(callee.function, args, callee.scope, callee.names, label)

    @property
    def _functions(self) -> Mapping[str, AnyValue]:
        return {
            name_of(variable): each
            for variable, each in self._model.module.functions.items()
            if isinstance(each, self._framework.relax.Function)
        }

    def _call_function(
        self, name: str, function: AnyValue, args: Sequence[AnyValue], scope: Values, label: str
    ) -> AnyValue:
        return self._expand(
            function, args, Values(source=scope.source, depth=scope.depth), {}, label
        )

    def _expand(
        self,
        function: AnyValue,
        args: Sequence[AnyValue],
        scope: Values,
        names: Mapping[int, str],
        label: str,
    ) -> AnyValue:
        """Return the result of a function, read for these arguments."""
        if any(map(_has_hole, args)):
            return Hole()
        inner = scope.inner(label)
        before = self.lengths.names
        self.lengths.names = dict(names)
        try:
            for param, value in zip(function.params, args, strict=True):
                inner.define(handle_of(param), value)
                self._cast(value, self._framework.type_of(param))
            known = len(self.report.issues)
            found = self.run(Graph([], self._nodes(function.body), [function.body]), inner)[0]
            if len(self.report.issues) > known:
                raise Incomplete
            return found
        finally:
            self.lengths.names = before

    def _call_op(self, call: AnyValue, op: str, scope: Values, label: str) -> AnyValue:
        """Return what the converter of an operator makes of a call."""
        framework = self._framework
        args = [self.value(each, scope, label) for each in call.args]
        if op in _PLAIN:
            return Hole() if any(map(_has_hole, args)) else _PLAIN[op](self, *args)
        type_ = framework.type_of(call)
        several = isinstance(type_, framework.TupleType)
        outputs = len(type_.fields) if several else 1
        context = ImportContext(label, outputs, self.lengths, self, scope)
        operands, attributes = self._bind(op, args, attributes_of(framework, call))
        if op in self._custom:
            found: Sequence[AnyValue] = self._call_custom(op, operands, attributes, outputs)
        else:
            found = self.call(TABLE, context, op, operands, attributes)
        if len(found) != outputs:
            raise Unsupported(f"{len(found)} results for {outputs}")
        return list(found) if several else found[0]

    def _bind(
        self, op: str, args: Sequence[AnyValue], attributes: dict[str, AnyValue]
    ) -> tuple[list[Expr], dict[str, AnyValue]]:
        """Return tensors, and what else a call is given by name."""
        converter = TABLE.importer(op, 1)
        named = () if converter is None else converter.attributes
        names = argument_names(op)
        operands: list[Expr] = []
        for place, value in enumerate(args):
            name = names[place] if place < len(names) else ""
            if name in named:
                attributes[name] = tuple(value) if isinstance(value, list) else value
            elif isinstance(value, list) and any(map(_has_hole, value)):
                operands.append(Hole())
            elif isinstance(value, list) and all(isinstance(each, Expr) for each in value):
                operands.append(Tuple(value))
            elif isinstance(value, (Expr, Scalar)):
                operands.append(self.as_tensor(value))
            elif value is not None:
                attributes[name or f"argument{place}"] = value
        return operands, attributes

    def _call_custom(
        self, op: str, operands: Sequence[Expr], attributes: dict[str, AnyValue], count: int
    ) -> Sequence[Expr]:
        """Return what a user's own converter makes of a call.

        Raises:
            OptionError: It gives what is no expression, or not as many as there are results.
        """
        if any(isinstance(each, Hole) for each in operands):
            return [Hole() for _ in range(count)]
        found = self._custom[op](list(operands), attributes)
        several = isinstance(found, (list, tuple, TupleWrapper))
        results = list(found) if several else [found]
        if len(results) != count or not all(isinstance(each, Expr) for each in results):
            raise OptionError(
                f"custom_convert_map: {op}: expected {count} expressions, found {found!r:.100}"
            )
        return [self.assembly.fold(each) for each in results]

    # Operators of shapes.

    def shape_of(self, value: AnyValue) -> Shape:
        """Return the shape of a tensor."""
        type_ = value.type
        if not isinstance(type_, TensorType):
            raise Unsupported(f"the shape of {type_!r}")
        return Shape(
            tuple(self.lengths.axis(value, axis, dim) for axis, dim in enumerate(type_.shape))
        )

    def tensor_to_shape(self, value: AnyValue) -> Shape:
        """Return the lengths that a vector holds."""
        return Shape(self.lengths.elements(value, self.assembly.dims(value)))


_PLAIN: Final[Mapping[str, AnyValue]] = {
    "relax.shape_of": _Walk.shape_of,
    "relax.tensor_to_shape": _Walk.tensor_to_shape,
    "relax.null_value": lambda _walk: None,
}
"""Operators of what are no tensors."""


def _has_hole(value: AnyValue) -> bool:
    if isinstance(value, list):
        return any(map(_has_hole, value))
    return isinstance(value, Hole)


def _tuple(fields: Sequence[Expr]) -> Expr:
    """Return one tensor, or a tuple of several."""
    return fields[0] if len(fields) == 1 else Tuple(fields)


def _fields(value: Expr) -> list[Expr]:
    if not isinstance(value.type, TupleType):
        return [value]
    return [TupleGetItem(value, index) for index in range(len(value.type.fields))]


def _regroup(like: AnyValue, leaves: Iterator[Expr]) -> AnyValue:
    """Return leaves in lists like those of a value."""
    if isinstance(like, list):
        return [_regroup(each, leaves) for each in like]
    return next(leaves)


def _not_shown() -> Expr:
    raise Unsupported("no input shows a length")
