"""The walk over PyTorch programs: what their nodes are given, and what converts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any as AnyValue

import numpy as np

from serde.core.lossy import OTHER_LENGTHS
from serde.core.report import Report
from serde.errors import LimitError, TypeInferenceError, Unsupported
from serde.relay.ir import Constant, DimLike, Expr, Span, TensorType, Var, symbol
from serde.torch.aliases import Values
from serde.torch.changes import Changes
from serde.torch.dimensions import other_lengths
from serde.torch.foreign import bind_arguments, foreign_node, infer_types
from serde.torch.host import (
    DYNAMIC_LIST_EVALUATORS,
    EVALUATORS,
    MOVES,
    find_evaluator,
    is_dynamic,
    unroll_nodes,
)
from serde.torch.import_context import ImportContext, Scalar, Unread
from serde.torch.model import Argument, Graph, Input, Node, Ref, TorchModel
from serde.torch.ops.table import OPS
from serde.torch.quantization import COPIES, INTEGERS, UNCHANGED, Quantization
from serde.torch.sequences import PackedSequences
from serde.torch.source.overloads import resolve
from serde.walk import Hole, Incomplete, importer
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback, with_lengths
from serde.walk.inputs import check_rank
from serde.walk.user_converters import UserConverter, check_custom_results

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["ImportWalk", "base_name", "known_name"]

_TAKE_HOLES = frozenset([
    "aten::__is__", "aten::__isnot__", "prim::DictConstruct", "prim::ListConstruct",
    "prim::TupleConstruct", "prim::results",
])  # fmt: skip
"""Operators that make lists of what may be missing, or ask whether it is None."""

_STORES = frozenset(["aten::_set_item.t", "aten::_set_item.str", "aten::append.t"])
"""Operators that put what may be missing into a list or a dict."""

_OF_COMPLEX = frozenset([
    "aten::fft_fft", "aten::fft_ifft", "aten::imag", "aten::real", "aten::view_as_real",
])  # fmt: skip
"""Operators that take complex tensors."""

_HINT = "say what it becomes with converters= or custom_convert_map, or keep it: keep_unknown"


class ImportWalk(importer.ImportWalk[Graph, Node, Values]):
    """State of one conversion.

    Attributes:
        numbers: Scalars that stand for numbers of Python's.
        quantized: What the integers of quantised tensors stand for.
        complex: Tensors of parts along one more axis, which stand for complex ones.
        packed: What stands beside sequences that are packed without padding.
        ranges: Least and greatest value of symbols of dimensions.
        default_dtype: The dtype of numbers with a fraction.
        changes: What the program changes in place.
    """

    def __init__(self, model: TorchModel, options: TorchImportOptions, report: Report) -> None:
        fallback = ImportFallback.of("torch", options)
        super().__init__(report, Assembly(each.name for each in model.inputs), fallback)
        self.numbers: set[Expr] = set()
        self.quantized: dict[Expr, Quantization] = {}
        self.complex: set[Expr] = set()
        self.packed: dict[Expr, PackedSequences] = {}
        self.ranges = model.ranges
        self.changes = Changes()
        self._first_lines: dict[tuple[str, str], str] = {}
        self.default_dtype = options.default_dtype
        self._model = model
        self._custom: dict[str, AnyValue] = dict(options.custom_convert_map)
        self._custom.update(
            (each.name.removesuffix(".default"), each)
            for each in options.converters
            if each.is_for("read", "torch")
        )
        self._allow = options.allow

    def declare(
        self, entry: Input, shape: Sequence[DimLike] | None, dtype: str | None, scope: Values
    ) -> Var | None:
        """Return the variable for an input; a number is a scalar of its dtype."""
        if shape is None:
            shape = entry.shape
        elif entry.shape is not None:
            check_rank(entry.name, shape, entry.shape)
            for fault in other_lengths(entry.name, shape, entry.shape, self.ranges):
                OTHER_LENGTHS.record(
                    self.report, self._allow, op="input", node=entry.name, reason=fault
                )
        if shape is None:
            return None
        type_ = TensorType(shape, dtype or entry.dtype or self.default_dtype)
        variable = Var(entry.name, type_, Span(entry.name))
        if entry.number:
            self.numbers.add(variable)
        scope.define(entry.value, variable)
        return variable

    def read(self, graph: Graph, scope: Values) -> importer.Graph[Node]:
        """Return a graph as the walk sees it, its weights being defined."""
        for value, name in graph.weights.items():
            weight = self._model.weights[name]
            scope.define(value, self.assembly.tensor(weight, name))
        return importer.Graph(graph.inputs, self._nodes(graph, scope), graph.outputs)

    def _nodes(self, graph: Graph, scope: Values) -> Iterator[importer.Node[Node]]:
        for node in unroll_nodes(graph, scope, self):
            if self._model.kind != "source":
                yield importer.Node(node.op, node.name, node.outputs, node)
                continue
            for each in resolve(node, scope, self):
                yield importer.Node(node.op, node.name, each.outputs, each)

    def output(self, name: Argument, scope: Values) -> AnyValue:
        """Return an output of a graph: a value, or several in a list."""
        return self.value(name, scope)

    def value(self, argument: Argument, scope: Values) -> AnyValue:
        """Return an argument with the values that it names."""
        if isinstance(argument, Ref):
            if not scope.knows(argument.name):
                raise scope.fault("no node or input gives this value", argument.name)
            return scope.find(argument.name)
        if isinstance(argument, (list, tuple)):
            return [self.value(each, scope) for each in argument]
        return argument

    def results(self, names: Sequence[str], values: Sequence[AnyValue]) -> list[tuple[str, Expr]]:
        """Return what a program gives as tensors, lists, tuples and dicts taken apart.

        What is inside one is named by it and its place in it, or its key. None is no output.
        """
        flat: list[tuple[str, Expr]] = []
        pending = list(zip(names, values, strict=True))[::-1]
        while pending:
            name, each = pending.pop()
            if isinstance(each, (list, tuple)) and not is_dynamic(each):
                pending += [(f"{name}.{i}", x) for i, x in enumerate(each)][::-1]
            elif isinstance(each, dict):
                pending += [(f"{name}.{key}", x) for key, x in each.items()][::-1]
            elif isinstance(each, Hole) and not self.report.issues:
                plain = "depends on a result that is left out"
                self.report.add("output", name, each.reason if isinstance(each, Unread) else plain)
            elif self._is_complex(each):
                self.report.add("output", name, "is complex")
            elif isinstance(each, (bool, int, float, complex, Expr)):
                flat.append((name, self.as_operand(each)))
            elif each is not None:
                self.report.add("output", name, "is no tensor, number, or list of these")
        return flat

    def hold(self, value: AnyValue, name: str, scope: Values) -> AnyValue:
        """Return values of which those that are tensors are held by their memory, if any are."""
        return value

    def as_operand(self, value: Scalar) -> Expr:
        """Return a number of Python's as a scalar that counts as one."""
        if isinstance(value, Expr):
            return value
        if not isinstance(value, (bool, int, float, complex)):
            raise Unsupported(f"expected a tensor or a number, found {value!r}")
        kind = {bool: "bool", int: "int64", float: "float64"}.get(type(value), "complex128")
        if kind == "int64" and not -(2**63) <= value.real < 2**63:
            raise Unsupported(f"{value} is beyond 64 bits")
        found = Constant(np.array(value, kind))
        self.numbers.add(found)
        return found

    def convert(self, node: importer.Node[Node], scope: Values, label: str) -> Sequence[AnyValue]:
        """Return the values that a node gives."""
        source = node.source
        context = ImportContext(source, label, len(source.outputs), self, scope)
        try:
            found = self.compute(context, scope)
        except Incomplete:
            found = [Hole() for _ in source.outputs]
        except Unsupported as error:
            self._refuse(context, node.op, error.reason, error.hint)
            found = [Hole() for _ in source.outputs]
        except LimitError as error:
            error.node = error.node or f"{label} ({node.op})"
            raise
        return found

    def compute(self, context: ImportContext, scope: Values) -> list[AnyValue]:
        """Return the values that a node gives.

        Raises:
            Unsupported: It cannot be said in Relay.
        """
        arguments = {name: self.value(each, scope) for name, each in context.source.arguments}
        return self.apply(context, context.source.op, arguments)

    def apply(
        self, context: ImportContext, op: str, arguments: Mapping[str, AnyValue]
    ) -> list[AnyValue]:
        """Return what an operator gives for arguments.

        Raises:
            Unsupported: It cannot be said in Relay.
        """
        if (
            self.complex
            and base_name(op) not in _OF_COMPLEX
            and any(map(self._is_complex, arguments.values()))
        ):
            raise Unsupported("no importer for complex tensors")
        custom = self._custom.get(op) or self._custom.get(base_name(op))
        if custom is not None:
            call = self._call_user if isinstance(custom, UserConverter) else self._call_custom
            found = call(custom, context, arguments)
            return [found] if context.source.gives_list else found
        runs = any(map(is_dynamic, arguments.values())) and op not in MOVES
        evaluate = DYNAMIC_LIST_EVALUATORS.get(base_name(op)) if runs else find_evaluator(op)
        if runs and evaluate is None:
            raise Unsupported("a list whose length is only known when the model runs")
        if evaluate is not None:
            return self._evaluate(evaluate, context, list(arguments.values()))
        found = self._call_table(context, known_name(op), arguments)
        missing = bool(found) and all(isinstance(each, Hole) for each in found)
        return [found] if context.source.gives_list and not missing else found

    # Graphs inside nodes.

    def outputs(
        self,
        graph: Graph,
        scope: Values,
        args: Sequence[AnyValue],
        origins: Sequence[AnyValue] | None,
    ) -> list[AnyValue]:
        """Return the outputs of a graph for arguments.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
            Unsupported: One is complex.
        """
        before = len(self.report.issues)
        found = self.evaluate_for(graph, scope, args, origins)
        if len(self.report.issues) > before or any(map(_has_hole, found)):
            raise Incomplete
        if any(map(self._is_complex, found)):
            raise Unsupported("a complex tensor that leaves a block")
        return found

    def evaluate_for(
        self,
        graph: Graph,
        scope: Values,
        args: Sequence[AnyValue],
        origins: Sequence[AnyValue] | None,
    ) -> list[AnyValue]:
        """Return the outputs of a graph for arguments that stand for others."""
        return list(self.evaluate(graph, scope, args))

    def subgraph(self, graph: Graph, scope: Values, args: Sequence[Expr]) -> list[Expr]:
        """Return the outputs of a graph that writes to nothing around it.

        Raises:
            Incomplete: Some of its nodes cannot be converted.
            Unsupported: It writes to a tensor around it, or gives a complex one.
        """
        found = super().subgraph(graph, scope, args)
        if any(map(self._is_complex, found)):
            raise Unsupported("a complex tensor that leaves a block")
        if scope.written():
            raise Unsupported("a graph inside it writes to a tensor around it")
        return found

    def _refuse(self, context: ImportContext, op: str, reason: str, hint: str | None) -> None:
        """Record a gap, with the line of the first node that has it."""
        where = self._first_lines.setdefault((op, reason), context.where)
        self.report.add(op, context.node, f"{reason}, {where}" if where else reason, hint)

    def written(self, scope: Values) -> dict[str, Expr]:
        """Return what the program made of weights that it writes, as further outputs by name."""
        return {}

    def _evaluate(
        self,
        evaluate: Callable[..., AnyValue],
        context: ImportContext,
        arguments: Sequence[AnyValue],
    ) -> list[AnyValue]:
        """Return what Python computes beside tensors, each of several results by itself."""
        op = context.source.op
        if op in MOVES:
            asked = arguments[:1] if op in _STORES else arguments
            missing = op not in _TAKE_HOLES and any(isinstance(each, Hole) for each in asked)
        else:
            missing = any(map(_has_hole, arguments))
        if missing:
            return [Hole() for _ in range(context.outputs)]
        try:
            found = evaluate(context, *arguments)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Unsupported(f"cannot be evaluated: {type(error).__name__}: {error}") from error
        except TypeInferenceError as error:
            raise Unsupported(str(error)) from error
        if context.outputs < 2:
            return [found]
        if not isinstance(found, (list, tuple)) or len(found) != context.outputs:
            raise Unsupported(f"gives {found!r:.100} for {context.outputs} results")
        return list(found)

    def _call_custom(
        self,
        custom: Callable[..., AnyValue],
        context: ImportContext,
        arguments: Mapping[str, AnyValue],
    ) -> list[Expr]:
        """Return what a user's own converter makes of a node."""
        dtypes = [
            each.type.dtype if isinstance(each, Expr) and isinstance(each.type, TensorType) else ""
            for each in arguments.values()
        ]
        try:
            found = custom(list(arguments.values()), dtypes)
        except TypeInferenceError as error:
            raise Unsupported(str(error)) from error
        count = None if context.source.gives_list else context.outputs
        results = check_custom_results(context.source.op, found, count)
        return [self.assembly.fold(each) for each in results]

    def _call_user(
        self, own: UserConverter, context: ImportContext, arguments: Mapping[str, AnyValue]
    ) -> list[Expr]:
        """Return what a user's function with the signature of converters makes of a node."""
        if any(map(_has_hole, arguments.values())):
            return [Hole() for _ in range(context.outputs)]
        converter = own.converter
        given, named = bind_arguments(
            converter.operands, converter.attributes, arguments, variadic=converter.accepted is None
        )
        operands = [self._operand(each) for each in given]
        found = self.call(OPS, context, context.source.op, operands, named, names=(own.name,))
        return list(found)

    def _keep(
        self, context: ImportContext, op: str, arguments: Mapping[str, AnyValue]
    ) -> list[Expr]:
        """Return the results of an operator that is kept as it is."""
        if any(map(_has_hole, arguments.values())):
            return [Hole() for _ in range(context.outputs)]
        types = with_lengths(context.source.types, {dim: symbol(dim) for dim in self.ranges})
        node, inputs = foreign_node(op, arguments, types)
        if not node.results:
            known = [each.type for each in inputs if isinstance(each.type, TensorType)]
            if len(known) == len(inputs):
                node = replace(node, results=infer_types(node, known))
        return list(self.keep(context, lambda: node, inputs, context.source.outputs))

    def _call_table(
        self, context: ImportContext, op: str, arguments: Mapping[str, AnyValue]
    ) -> list[Expr]:
        """Return what the converter of an operator makes of a node."""
        given = self._first_quantized(arguments.values())
        if given is None or op.startswith("quantized::"):
            return self._call_converter(context, op, arguments)
        own = _quantized_name(op)
        if own is not None:
            return self._call_converter(context, own, arguments)
        if base_name(op) not in UNCHANGED:
            raise Unsupported("no importer for quantised tensors")
        if given.axis is not None and base_name(op) not in COPIES:
            raise Unsupported("no importer for tensors that are quantised channel by channel")
        found = self._call_converter(context, op, arguments)
        for each in found:
            if isinstance(each.type, TensorType) and each.type.dtype in INTEGERS:
                self.quantized[each] = given
        return found

    def _is_complex(self, value: AnyValue) -> bool:
        """Whether a value, or one in a list, stands for a complex tensor."""
        if not self.complex:
            return False
        several = value if isinstance(value, (list, tuple)) else (value,)
        return any(isinstance(each, Expr) and each in self.complex for each in several)

    def _first_quantized(self, values: Iterable[AnyValue]) -> Quantization | None:
        """Return what the first quantised tensor among values stands for."""
        if not self.quantized:
            return None
        for value in values:
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, Expr) and each in self.quantized:
                    return self.quantized[each]
        return None

    def _call_converter(
        self, context: ImportContext, op: str, arguments: Mapping[str, AnyValue]
    ) -> list[Expr]:
        converter = OPS.importer(op, 1)
        if converter is None and self.fallback.keep and not context.source.blocks:
            return self._keep(context, context.source.op, arguments)
        if converter is None:
            self._refuse(context, op, "no importer", _HINT)
            return [Hole() for _ in range(context.outputs)]
        operands: list[Expr | None] = []
        attributes = dict(arguments)
        for place, name in enumerate(converter.operands):
            rest = converter.accepted is None and place == len(converter.operands) - 1
            given = attributes.pop(name, [] if rest else None)
            if rest and not isinstance(given, (list, tuple)):
                raise Unsupported(f"{name}: expected a list of tensors, found {given!r}")
            operands += map(self._operand, given) if rest else [self._operand(given)]
        while len(operands) > converter.required and operands[-1] is None:
            operands.pop()
        if len(converter.operands) == 1 and converter.accepted is None and not operands:
            raise Unsupported(f"{converter.operands[0]}: a list without tensors")
        if any(_has_hole(each) for each in attributes.values()):
            return [Hole() for _ in range(context.outputs)]
        return list(self.call(OPS, context, op, operands, attributes))

    def _operand(self, value: AnyValue) -> Expr | None:
        return None if value is None else self.as_operand(value)


def base_name(op: str) -> str:
    """Return an operator without its overload."""
    return op.partition(".")[0]


def known_name(op: str) -> str:
    """Return the name under which an operator is read: of the overload, else of all."""
    names = op, base_name(op)
    return next((n for n in names if n in EVALUATORS or OPS.importer(n, 1) is not None), op)


def _quantized_name(op: str) -> str | None:
    """Return the name under which there is a converter for quantised tensors."""
    names = (f"quantized_tensor::{each.partition('::')[2]}" for each in (op, base_name(op)))
    return next((each for each in names if OPS.importer(each, 1) is not None), None)


def _has_hole(value: AnyValue) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_hole, value))
    return isinstance(value, Hole)
