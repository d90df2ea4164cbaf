"""The walk over functions of Relax: what their expressions are in Relay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import Any as AnyValue, ClassVar, Final

from serde.core import MAX_NESTING, Report, budget, dataclass
from serde.errors import FormatError, TypeInferenceError, Unsupported
from serde.relax.framework import load
from serde.relax.import_context import ImportContext, plain_dims
from serde.relax.lengths import Lengths, Scalar, Shape
from serde.relax.loading import to_weight
from serde.relax.model import RelaxModel
from serde.relax.ops import TABLE
from serde.relax.ops.packed import FUNCTIONS as PACKED
from serde.relax.options import RelaxImportOptions
from serde.relax.reflection import (
    argument_names,
    attributes_of,
    dtype_of,
    handle_of,
    leaves_of,
    name_of,
    plain_value,
    tensor_of,
)
from serde.relax.tir.calls import compute_number
from serde.relay.ir import Constant, DimLike, Expr, If, Span, Tuple, TupleGetItem, infer_if
from serde.relay.ir.dims import SymDim
from serde.relay.ir.types import TensorType, TupleType
from serde.walk import Hole, Incomplete, Scope, importer
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback
from serde.walk.importer import Graph, Node
from serde.walk.user_converters import check_custom_results

__all__ = [
    "PLAIN", "Closure", "ImportWalk", "Values", "has_hole", "join_fields",
    "split_fields", "tensor_type",
]  # fmt: skip

Values = Scope[int, AnyValue]

TO_SHAPE: Final = "vm.builtin.tensor_to_shape"
"""The packed function that importers call where they mean the operator."""


@dataclass(frozen=True)
class Closure:
    """A function that is bound to a variable.

    Attributes:
        function: The function.
        scope: Where it is.
        names: What lengths it sees.
    """

    function: AnyValue
    scope: Values
    names: Mapping[int, str]


class ImportWalk(importer.ImportWalk[AnyValue, AnyValue, Values]):
    """State of one conversion.

    Attributes:
        framework: TVM.
        lengths: What lengths are in the function that is read.
        named: Values by the names that the module has for them.
    """

    def __init__(self, model: RelaxModel, options: RelaxImportOptions, report: Report) -> None:
        fallback = ImportFallback.of("relax", options)
        super().__init__(report, Assembly([*model.inputs, *model.outputs]), fallback)
        self.framework = load()
        self.model = model
        self._custom = options.custom_convert_map
        self.lengths = Lengths(self.framework, self.assembly.fold)
        self.named: dict[str, Expr] = {}
        self._constants: dict[int, Expr] = {}
        self._depth = 0

    # Bindings.

    def nodes(self, body: AnyValue) -> Iterator[Node[AnyValue]]:
        """Yield the bindings of a sequence."""
        relax = self.framework.relax
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
        if isinstance(binding, self.framework.relax.MatchCast):
            return "match_cast"
        if isinstance(value, self.framework.relax.Call):
            return name_of(value.op)
        return type(value).__name__

    def output(self, name: AnyValue, scope: Values) -> AnyValue:
        """Return the result of a sequence."""
        relax = self.framework.relax
        return self.value(name.body if isinstance(name, relax.SeqExpr) else name, scope, "result")

    def leaves(self, values: Sequence[AnyValue]) -> list[Expr]:
        """Return values as tensors, those of tuples one after the other."""
        found: list[Expr] = []
        pending = list(values)[::-1]
        while pending:
            each = pending.pop()
            if isinstance(each, list):
                budget().draw("nodes", len(each), "the fields of a tuple")
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

    def convert(self, node: Node[AnyValue], scope: Values, label: str) -> Sequence[AnyValue]:
        """Return the value of a binding."""
        self.report.nodes += 1
        binding = node.source
        try:
            found = self.value(binding.value, scope, label)
            if isinstance(binding, self.framework.relax.MatchCast):
                found = self.cast(found, self.framework.type_of(binding))
            self._check(found, self.framework.type_of(binding.var))
            found = self.note(binding.var, found)
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
        """Compare a result with what TVM says of it."""
        framework = self.framework
        if isinstance(value, list) and isinstance(type_, framework.TupleType):
            self._draw_fields(value, type_)
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
        for length, dim in zip(framework.lengths(type_) or (), found.shape, strict=False):
            known = plain_value(framework, length)
            if isinstance(dim, int) and isinstance(known, int) and known != dim:
                raise wrong

    def _draw_fields(self, value: Sequence[AnyValue], type_: AnyValue) -> None:
        """Draw for the fields of a tuple, which may be the same ones many times over."""
        if len(value) != len(type_.fields):
            raise Unsupported(f"a tuple of {len(value)} fields that has to be {type_!s:.100}")
        budget().draw("nodes", len(value), "the fields of a tuple")

    def cast(self, value: AnyValue, type_: AnyValue) -> AnyValue:
        """Return a value of which a type is told, and note the lengths that this shows.

        Raises:
            Unsupported: It never is of that type.
        """
        framework = self.framework
        if isinstance(value, list) and isinstance(type_, framework.TupleType):
            self._draw_fields(value, type_)
            return [self.cast(v, t) for v, t in zip(value, type_.fields, strict=True)]
        if isinstance(type_, framework.TensorType):
            found = value.type if isinstance(value, Expr) else None
            if not isinstance(found, TensorType):
                raise Unsupported(f"expected a tensor, found {type(value).__name__}")
            if type_.dtype and found.dtype != str(type_.dtype):
                raise Unsupported(f"a tensor of {found.dtype} that has to be {type_.dtype}")
            lengths = framework.lengths(type_)
            if lengths is not None:
                self.lengths.match(lengths, value)
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
        too_deep = FormatError(f"{label}: expressions nested more than {MAX_NESTING} deep")
        if self._depth > MAX_NESTING:
            raise too_deep
        self._depth += 1
        try:
            return self._value(expr, scope, label)
        except RecursionError:
            raise too_deep from None
        finally:
            self._depth -= 1

    def _value(self, expr: AnyValue, scope: Values, label: str) -> AnyValue:
        framework = self.framework
        relax = framework.relax
        if isinstance(expr, framework.variables):
            return self._variable(expr, scope, label)
        if isinstance(expr, framework.Constant):
            return self._constant(expr, label)
        if isinstance(expr, relax.Call):
            return self._call(expr, scope, label)
        if isinstance(expr, relax.Tuple):
            return [self.value(each, scope, label) for each in expr.fields]
        if isinstance(expr, relax.TupleGetItem):
            return self._field(self.value(expr.tuple_value, scope, label), int(expr.index))
        if isinstance(expr, relax.ShapeExpr):
            return Shape(plain_dims([self._number(each, scope, label) for each in expr.values]))
        if isinstance(expr, relax.If):
            return self._conditional(expr, scope, label)
        if isinstance(expr, relax.SeqExpr):
            graph = Graph([], self.nodes(expr), [expr])  # Bindings inside an expression.
            return self.run(graph, scope.inner(label, prefix=scope.prefix))[0]
        if isinstance(expr, relax.Function):
            return Closure(expr, scope, dict(self.lengths.names))
        if isinstance(expr, relax.ExternFunc):
            return str(expr.global_symbol)
        if isinstance(expr, framework.texts):
            return str(expr.value)
        return self._number(expr, scope, label)

    def _variable(self, variable: AnyValue, scope: Values, label: str) -> AnyValue:
        if scope.knows(handle_of(variable)):
            return scope.find(handle_of(variable))
        if isinstance(variable, self.framework.relax.GlobalVar):
            return variable
        return self._number(variable, scope, label)

    def _number(self, expr: AnyValue, scope: Values, label: str) -> Scalar:
        """Return a number of TIR, a length where it is one, else what computes it."""
        framework = self.framework
        expr = expr.value if isinstance(expr, framework.PrimValue) else expr
        plain = plain_value(framework, expr)
        if isinstance(plain, (bool, int, float)):
            return Scalar(plain, dtype_of(expr))
        try:
            return Scalar(self.lengths.read(expr, signed=True), dtype_of(expr))
        except Unsupported:
            if isinstance(expr, framework.tir.Var) or not framework.is_number(expr):
                raise
        used = map(handle_of, framework.tir.analysis.undefined_vars(expr))
        given = {each: scope.find(each) for each in used if scope.knows(each)}
        context = ImportContext(label, 1, self.lengths, self, scope)
        return self._scalar(self.assembly.fold(compute_number(framework, context, expr, given)))

    def _scalar(self, value: AnyValue) -> AnyValue:
        """Return a scalar tensor as a number; any other value is itself."""
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType):
            return value  # A hole has no type.
        dtype = value.type.dtype
        if isinstance(value, Constant):
            return Scalar(value.data.item(), dtype)
        integer = dtype.startswith(("int", "uint"))
        return Scalar(self.lengths.computed(value) if integer else value, dtype)

    def note(self, variable: AnyValue, value: AnyValue) -> AnyValue:
        """Return the value of a variable, a number if it is one, which lengths may be made of."""
        if not isinstance(self.framework.type_of(variable), self.framework.PrimType):
            return value
        found, own = self._scalar(value), self.framework.number_of(variable)
        dim = found.value if isinstance(found, Scalar) and found.dtype != "bool" else None
        if own is None or not isinstance(dim, (int, SymDim)):
            return found
        self.lengths.same(own, dim)
        return Scalar(self.lengths.read(own), found.dtype)

    def _constant(self, constant: AnyValue, label: str) -> Expr | str:
        """Return a constant: a tensor, or the text or dtype that it holds."""
        held = plain_value(self.framework, tensor_of(constant))
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

    def _conditional(self, expr: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return the results of a conditional."""
        condition = self.as_tensor(self.value(expr.cond, scope, label))
        names = dict(self.lengths.names)
        branches = []
        for word, each in (("then", expr.true_branch), ("else", expr.false_branch)):
            before = len(self.report.issues)
            inner = scope.inner(f"{label}/{word}")
            value = self.run(Graph([], self.nodes(each), [each]), inner)[0]
            self.lengths.names = dict(names)
            if len(self.report.issues) > before:
                raise Incomplete
            branches.append(value)
        if isinstance(condition, Hole) or any(map(has_hole, branches)):
            return Hole()
        whole = [join_fields(self.leaves([each])) for each in branches]
        made = If(condition, whole[0], whole[1], Span(label))
        made.type = infer_if(made)
        return _regroup(branches[0], iter(split_fields(made)))

    # Calls.

    def _call(self, call: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return what a call gives."""
        framework = self.framework
        if isinstance(call.op, framework.tvm.ir.Op):
            if str(call.op.name).startswith(("prim.", "tir.", "tirx.")):
                return self._number(call, scope, label)
            return self._call_op(call, str(call.op.name), scope, label)
        packed = isinstance(call.op, framework.relax.ExternFunc)
        if packed and (op := self._meant(name_of(call.op))):
            return self._call_op(call, op, scope, label)
        args = [] if packed else [self.value(each, scope, label) for each in call.args]
        if any(map(has_hole, args)):
            return Hole()
        return self.call_function(call.op, args, scope, label)

    @abstractmethod
    def call_function(
        self, callee: AnyValue, args: Sequence[AnyValue], scope: Values, label: str
    ) -> AnyValue:
        """Return what a function gives.

        Raises:
            Unsupported: Relay cannot say it.
        """

    def _call_op(
        self, call: AnyValue, op: str, scope: Values, label: str, before: int = 0
    ) -> AnyValue:
        """Return what the converter of an operator makes of a call, less the arguments before."""
        framework, users = self.framework, op in self._custom or self.fallback.has(op)
        if op in self.calls and not users:
            given = self.calls[op](self, call, scope, label)
            if given is not None:
                return given
        refusal = TABLE.refusal(op, 1)
        if refusal and not (op in PLAIN or users):
            kinds = (framework.relax.ExternFunc, framework.relax.GlobalVar)
            functions = [name_of(each) for each in call.args if isinstance(each, kinds)]
            self.report.add(op, label, ": ".join([refusal[0], *functions]), refusal[1])
            return Hole()
        args = [self.value(each, scope, label) for each in list(call.args)[before:]]
        if op in PLAIN and not users:
            return Hole() if any(map(has_hole, args)) else PLAIN[op](self, *args)
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

    # Operators that call functions.

    def _call_pure(self, call: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return what a packed function gives that stands for an operator, None for another."""
        op = self._meant(name_of(call.args[0])) if call.args else None
        return op and self._call_op(call, op, scope, label, before=1)

    def _meant(self, name: str) -> str | None:
        """Return the operator that a packed function stands for, None for none."""
        op = "relax.tensor_to_shape" if name == TO_SHAPE else name.replace(".run.", ".", 1)
        return op if name == TO_SHAPE or self.framework.packed_name(op) == name else None

    def _call_packed(self, call: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return what a function gives that importers call by its name, None for another."""
        name = name_of(call.args[0]) if len(call.args) == 2 else ""
        if name not in PACKED:
            return None
        args = self.value(call.args[1], scope, label)
        if has_hole(args):
            return Hole()
        type_, *more = self.result_types(call)
        kinds, convert = PACKED[name]
        lengths = self.framework.lengths(type_)
        fits = (
            isinstance(args, list) and len(args) == len(kinds) and all(map(isinstance, args, kinds))
        )
        if more or lengths is None or not fits:
            raise Unsupported(f"a call of {name} with other arguments or results than it has")
        known = [self.lengths.known(self.lengths.read(each)) for each in lengths]
        context = ImportContext(label, 1, self.lengths, self, scope)
        return self.assembly.fold(convert(context, tensor_type(known, str(type_.dtype)), *args))

    calls: ClassVar[Mapping[str, AnyValue]] = {
        "relax.call_dps_packed": _call_packed,
        "relax.call_pure_packed": _call_pure,
    }
    """Operators that call functions: what a call gives, None of a function that is not known."""

    def result_types(self, call: AnyValue) -> list[AnyValue]:
        """Return the types of tensors that a call says that it gives."""
        framework = self.framework
        given = list(framework.type_args(call) or ())
        types = leaves_of(framework, given[0]) if len(given) == 1 else []
        if not types or not all(isinstance(x, framework.TensorType) and x.dtype for x in types):
            raise Unsupported(
                "a call that does not tell of what type the tensors are that it gives"
            )
        return types

    def _bind(
        self, op: str, args: Sequence[AnyValue], attributes: dict[str, AnyValue]
    ) -> tuple[list[Expr], dict[str, AnyValue]]:
        """Return tensors, and what else a call is given by name."""
        converter = TABLE.importer(op, 1)
        named = () if converter is None else converter.attributes
        names = argument_names(op)
        operands: list[Expr] = []
        for index, value in enumerate(args):
            name = names[index] if index < len(names) else ""
            if name in named:
                attributes[name] = tuple(value) if isinstance(value, list) else value
            elif isinstance(value, list) and any(map(has_hole, value)):
                operands.append(Hole())
            elif isinstance(value, list) and all(isinstance(each, Expr) for each in value):
                operands.append(Tuple(value))
            elif isinstance(value, (Expr, Scalar)):
                operands.append(self.as_tensor(value))
            elif value is not None:
                attributes[name or f"argument{index}"] = value
        return operands, attributes

    def _call_custom(
        self, op: str, operands: Sequence[Expr], attributes: dict[str, AnyValue], count: int
    ) -> Sequence[Expr]:
        """Return what a user's own converter makes of a call."""
        if any(isinstance(each, Hole) for each in operands):
            return [Hole() for _ in range(count)]
        found = self._custom[op](list(operands), attributes)
        return [self.assembly.fold(each) for each in check_custom_results(op, found, count)]

    # Operators of shapes.

    def shape_of(self, *args: AnyValue) -> Shape:
        """Return the shape of a tensor."""
        value, type_ = _only_tensor(args)
        return Shape(
            tuple(self.lengths.axis(value, axis, dim) for axis, dim in enumerate(type_.shape))
        )

    def tensor_to_shape(self, *args: AnyValue) -> Shape:
        """Return the lengths that a vector holds."""
        value, type_ = _only_tensor(args)
        if type_.rank != 1 or not type_.dtype.startswith(("int", "uint")):
            raise Unsupported(f"expected a vector of integers, found {type_!r}")
        return Shape(self.lengths.elements(value, self.assembly.dims(value)))

    def leave_out(self, *_args: AnyValue) -> list[AnyValue]:
        """Return nothing, which is what an assertion gives."""
        note = "what only asserts or prints when TVM runs it is left out"
        if note not in self.report.notes:
            self.report.notes.append(note)
        return []


PLAIN: Final[Mapping[str, AnyValue]] = {
    "relax.shape_of": ImportWalk.shape_of,
    "relax.tensor_to_shape": ImportWalk.tensor_to_shape,
    "relax.null_value": lambda _walk, *_args: None,
    "relax.assert_op": ImportWalk.leave_out,
    "relax.print": ImportWalk.leave_out,
}
"""Operators of what are no tensors."""


def _only_tensor(args: Sequence[AnyValue]) -> tuple[Expr, TensorType]:
    """Return what an operator of shapes is given, and its type."""
    if len(args) != 1 or not isinstance(args[0], Expr):
        found = ", ".join(type(each).__name__ for each in args)
        raise Unsupported(f"expected a tensor, found {found or 'nothing'}")
    if not isinstance(args[0].type, TensorType):
        raise Unsupported(f"expected a tensor, found {args[0].type!r}")
    return args[0], args[0].type


def tensor_type(shape: Sequence[DimLike], dtype: str) -> TensorType:
    """Return a type of Relay.

    Raises:
        Unsupported: Relay has no such elements.
    """
    try:
        return TensorType(shape, dtype)
    except TypeError as error:
        raise Unsupported(f"Relay has no tensors of {dtype}") from error


def has_hole(value: AnyValue) -> bool:
    if isinstance(value, list):
        return any(map(has_hole, value))
    return isinstance(value, Hole)


def join_fields(fields: Sequence[Expr]) -> Expr:
    """Return one tensor, or a tuple of several."""
    return fields[0] if len(fields) == 1 else Tuple(fields)


def split_fields(value: Expr) -> list[Expr]:
    if not isinstance(value.type, TupleType):
        return [value]
    return [TupleGetItem(value, index) for index in range(len(value.type.fields))]


def _regroup(like: AnyValue, leaves: Iterator[Expr]) -> AnyValue:
    """Return leaves in lists like those of a value."""
    if isinstance(like, list):
        return [_regroup(each, leaves) for each in like]
    return next(leaves)
