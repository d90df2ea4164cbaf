"""The walk over Relay into an ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from onnx import helper

from serde.errors import ConverterBug, TypeInferenceError, Unsupported
from serde.onnx.builder import (
    SEQUENCE_IDENTITY,
    SEQUENCE_SUBGRAPHS,
    GraphBuilder,
    Scope,
    Value,
    Values,
    leaves,
    regroup,
    require_sequences,
    walk_nodes,
)
from serde.onnx.export_context import ExportContext, Subgraph, SymbolTable
from serde.onnx.frames import Frame
from serde.onnx.functions import FunctionCall, LocalFunctions
from serde.onnx.placement import callee, place
from serde.onnx.schemas import require_dtype
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
from serde.relay.ir.leaves import holds_values, leaf_names, output_names, value_types
from serde.relay.ir.model import RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import SequenceType, TensorType, TupleType, Type
from serde.relay.ir.visit import free_vars
from serde.report import Report
from serde.walk.table import ConverterTable

__all__ = ["export_function"]

Finish = Callable[[Values | None], None]

MAX_LEVEL: Final = 31
"""Subgraphs inside each other that protobuf, which reads 100 messages deep, leaves room for."""

_CAPTURES: Final = {"serde.loop": 3, "serde.scan": 2}
"""Which operand of an operator with a body holds what the body captures."""

RECURSION: Final = "calls itself, which an ONNX graph cannot say"
RECURSION_HINT: Final = "write the repetition as serde.loop or serde.scan"


def export_function(
    model: RelayModel,
    table: ConverterTable,
    builder: GraphBuilder,
    report: Report,
    *,
    local_functions: bool = False,
) -> tuple[list[Value], list[Value]]:
    """Emit ``main`` and return its inputs, weights included, and its outputs.

    Names of inputs and weights are kept; a tuple ``x`` becomes ``x_0``, ``x_1``
    and so on. A name of `model`'s outputs that none of these has is reserved
    for the output. Gaps go into `report`.

    Args:
        model: What is exported.
        table: The converters.
        builder: Collects the nodes.
        report: Filled with gaps.
        local_functions: Whether global, composite and fused functions stay functions.
    """
    main = model.main
    for param in main.params:
        if not holds_values(param.type):
            report.add("parameter", param.name_hint, f"a {param.type!r} is no tensor")
        try:
            for dtype in _dtypes(param.type):
                require_dtype(dtype, builder.version)
        except Unsupported as error:
            report.add("parameter", param.name_hint, error.reason, error.hint)
    if report.issues:
        return [], []
    taken = {p.name_hint for p in main.params if not _is_tuple(p)}
    values: dict[Expr, Values | None] = {p: _parameter(p, taken, builder) for p in main.params}
    inputs = _all_leaves(values)
    for value in inputs:
        if value.name in model.params:
            builder.weights[value.name] = model.params[value.name]
    names = [
        _output_name(name, builder) for name in output_names(model.meta.outputs, main.body.type)
    ]
    walk = _Walk(model.mod, table, builder, report, local_functions=local_functions)
    outputs: list[Values | None] = []
    walk.run(walk.main(main, values, inputs, outputs.append))
    result = outputs[0]
    if result is None or report.issues:
        return inputs, []
    try:
        return inputs, _named_outputs(leaves(result), names, builder)
    except Unsupported as error:
        report.add("output", ", ".join(names), str(error), error.hint)
        return inputs, []


def _dtypes(type_: Type | None) -> list[str]:
    types = value_types(type_) if holds_values(type_) else []
    return [(t.element if isinstance(t, SequenceType) else t).dtype for t in types]


def _is_tuple(param: Var) -> bool:
    return isinstance(param.type, TupleType)


def _parameter(param: Var, taken: set[str], builder: GraphBuilder) -> Values:
    """Return the inputs that stand for a parameter of ``main``."""
    if param.type is None:
        raise ConverterBug(f"parameter {param.name_hint} has no type")
    types = value_types(param.type)
    names = leaf_names(param.name_hint, param.type)
    made = []
    for name, type_ in zip(names, types, strict=True):
        while _is_tuple(param) and name in taken:
            name = f"{name}_"
        made.append(Value(builder.reserve(name), type_))
    return regroup(made, param.type)


def _output_name(name: str, builder: GraphBuilder) -> str:
    free = name if builder.is_free(name) else f"{name}_output"
    return builder.reserve(free)


def _named_outputs(
    outputs: Sequence[Value], names: Sequence[str], builder: GraphBuilder
) -> list[Value]:
    """Give the outputs their names: a node's result by renaming it, anything else by Identity."""
    produced = {name for node in builder.main.nodes for name in node.output}
    renamed: dict[str, str] = {}
    result = []
    for value, name in zip(outputs, names, strict=True):
        if value.name in produced and value.name not in renamed:
            renamed[value.name] = name
        else:
            held = () if value.type is None else (value.type,)
            require_sequences("Identity", held, builder.version, SEQUENCE_IDENTITY)
            source = replace(value, name=renamed.get(value.name, value.name))
            node = helper.make_node("Identity", [source.name], [name], name=builder.reserve(name))
            builder.main.nodes.append(node)
        result.append(replace(value, name=name))
    for node in walk_nodes(builder.main.nodes):
        for names_of in (node.input, node.output):
            for index, each in enumerate(names_of):
                if each in renamed:
                    names_of[index] = renamed[each]
    return result


class _Walk:
    """Walks one body after the other, those that a node needs before the node."""

    def __init__(
        self,
        mod: IRModule,
        table: ConverterTable,
        builder: GraphBuilder,
        report: Report,
        *,
        local_functions: bool,
    ) -> None:
        self._globals = {variable.name_hint: each for variable, each in mod.functions.items()}
        self._table = table
        self._builder = builder
        self._report = report
        self._context = ExportContext(builder)
        self._functions = LocalFunctions(builder) if local_functions else None
        self._active: set[Function] = set()
        self._taken: dict[Function, list[Var]] = {}

    def main(
        self,
        main: Function,
        values: dict[Expr, Values | None],
        inputs: Sequence[Value],
        finish: Finish,
    ) -> Frame:
        """Return the frame to begin with."""
        symbols = SymbolTable(self._builder.main, of_model=True)
        symbols.add(inputs)
        frame = self._frame(main, self._builder.main, values, symbols, finish)
        uses = frame.placement.uses
        once = (param for param in main.params if uses.get(param) == 1)
        frame.used_once = frozenset(param.name_hint for param in once)
        return frame

    def run(self, frame: Frame) -> None:
        """Walk a body and what it calls."""
        stack = [frame]
        while stack:
            frame = stack[-1]
            inner = self._advance(frame)
            if inner is not None:
                stack.append(inner)
                continue
            stack.pop()
            if frame.function is not None:
                self._active.discard(frame.function)
            self._builder.scope = frame.base
            frame.finish(frame.values[frame.root])

    def _frame(
        self,
        function: Function,
        base: Scope,
        values: dict[Expr, Values | None],
        symbols: SymbolTable,
        finish: Finish,
    ) -> Frame:
        self._active.add(function)
        placement = place(function.body, base, self._name_of, self._taken_by)
        return Frame(function.body, base, placement, values, symbols, finish, function)

    def _taken_by(self, function: Function) -> list[Var]:
        """Return the variables that a function takes from around it."""
        if function not in self._taken:
            self._taken[function] = free_vars(function)
        return self._taken[function]

    def _name_of(self, node: Expr) -> str:
        """Take a name for a node with subgraphs; the node that is emitted gets it."""
        return self._builder.hold(_source(node) or _label(node))

    def _advance(self, frame: Frame) -> Frame | None:
        """Export nodes until all are done (None) or one needs another body (its frame)."""
        self._context.turn(frame.symbols, frame.used_once, frame.bodies)
        while (node := frame.next_node()) is not None:
            self._builder.scope = frame.placement.scopes[node]
            inner = self._needed(frame, node)
            if inner is not None:
                return inner
            if node not in frame.values:
                frame.values[node] = self._export(frame, node)
            frame.bodies.clear()
        return None

    def _needed(self, frame: Frame, node: Expr) -> Frame | None:
        """Return the frame of a body that must be walked before `node` is exported."""
        if not isinstance(node, Call):
            return None
        if isinstance(node.op, OpDef):
            bodies = (value for value in node.attrs.values() if isinstance(value, Function))
            body = next((each for each in bodies if each not in frame.bodies), None)
            return None if body is None else self._loop(frame, node, body)
        function = self._called(node)
        if function is None or function in self._active:
            return None
        call = self._local_call(frame, node, function)
        if call is None:
            return self._inlined(frame, node, function)
        return None if call.is_known() else self._local(call)

    def _called(self, node: Call) -> Function | None:
        called = callee(node)
        if isinstance(called, GlobalVar):
            return self._globals.get(called.name_hint)
        return called if isinstance(called, Function) else None

    def _loop(self, frame: Frame, node: Call, body: Function) -> Frame:
        """Return the frame of a loop's body; its last parameters are what it captures."""
        scope = Scope(self._builder.scope, f"{self._name_of(node)}/body")
        captured = node.args[_CAPTURES[_operator_name(node)]]
        given = frame.values[captured]
        split = len(body.params) - len(value_types(captured.type))
        inputs = [
            Value(self._builder.reserve(param.name_hint), value_types(param.type)[0])
            for param in body.params[:split]
        ]
        values: dict[Expr, Values | None] = dict(zip(body.params, inputs, strict=False))
        taken = given if isinstance(given, tuple) else [None] * (len(body.params) - split)
        for param, value in zip(body.params[split:], taken, strict=True):
            values[param] = _retyped(value, param.type)
        symbols = SymbolTable(scope, frame.symbols)
        symbols.add(_all_leaves(values))

        def finish(result: Values | None) -> None:
            frame.bodies[body] = None
            if result is not None:
                flat, types = tuple(leaves(result)), tuple(value_types(body.body.type))
                frame.bodies[body] = Subgraph(scope, tuple(inputs), flat, types)

        return self._frame(body, scope, values, symbols, finish)

    def _inlined(self, frame: Frame, node: Call, function: Function) -> Frame:
        """Return the frame of a function whose nodes go where its call is."""
        given = zip(function.params, node.args, strict=True)
        values: dict[Expr, Values | None] = {
            param: _retyped(frame.values[argument], param.type) for param, argument in given
        }
        values.update((each, frame.values[each]) for each in self._taken_by(function))
        around = frame.symbols if callee(node) is function else None
        symbols = SymbolTable(self._builder.scope, around)
        symbols.add(_all_leaves(values))

        def finish(result: Values | None) -> None:
            frame.values[node] = _retyped(result, node.type)

        return self._frame(function, self._builder.scope, values, symbols, finish)

    def _local_call(self, frame: Frame, node: Call, function: Function) -> FunctionCall | None:
        """Return how `node` calls a local function, or None where it is not to be one."""
        if self._functions is None:
            return None
        called = callee(node)
        name = called.name_hint if isinstance(called, GlobalVar) else ""
        bound = [*node.args, *self._taken_by(function)]
        given = [frame.values[each] for each in bound]
        return self._functions.call(function, name, given)

    def _local(self, call: FunctionCall) -> Frame:
        """Return the frame of a local function."""
        scope, values = call.enter()
        symbols = SymbolTable(scope)
        symbols.add(_all_leaves(values))
        return self._frame(
            call.function, scope, values, symbols, lambda result: call.leave(scope, result)
        )

    def _export(self, frame: Frame, node: Expr) -> Values | None:
        """Return what one expression becomes, or None where it could not be exported."""
        values = frame.values
        if isinstance(node, Tuple):
            fields = tuple(each for item in node.fields if (each := values[item]) is not None)
            return fields if len(fields) == len(node.fields) else None
        if isinstance(node, TupleGetItem):
            source = values[node.tuple_value]
            return source[node.index] if isinstance(source, tuple) else None
        if isinstance(node, Let):
            return values[node.body]
        if isinstance(node, Var) and node in frame.placement.lets:
            return _retyped(values.get(frame.placement.lets[node]), node.type)
        try:
            if isinstance(node, Constant):
                return self._builder.constant(node.data)
            if isinstance(node, If):
                return self._choice(frame, node)
            if isinstance(node, Call) and isinstance(node.op, OpDef):
                return self._operator(frame, node)
            if isinstance(node, Call):
                return self._function(frame, node)
            raise Unsupported("a function as a value has no counterpart")
        except (Unsupported, TypeInferenceError) as error:
            hint = error.hint if isinstance(error, Unsupported) else None
            where = self._builder.scope.path() + (_source(node) or _label(node))
            self._report.add(_operator_name(node), where, str(error), hint)
            return None

    def _choice(self, frame: Frame, node: If) -> Values | None:
        """Emit a conditional, whose branches are collected by now."""
        scopes = frame.placement.branches[node]
        given = [frame.values[each] for each in (node.cond, node.true_branch, node.false_branch)]
        types = [value_types(each.type) for each in (node, node.true_branch, node.false_branch)]
        condition, *branches = given
        if not isinstance(condition, Value) or any(branch is None for branch in branches):
            return None
        if scopes[0].level > MAX_LEVEL:
            raise Unsupported(f"more than {MAX_LEVEL} subgraphs lie inside each other")
        if node.type is None:
            raise ConverterBug(f"{node!r} is not typed")
        if not types[0]:
            return regroup((), node.type)
        require_sequences("If", types[0], self._context.version, SEQUENCE_SUBGRAPHS)
        graphs = [
            self._builder.graph(scope, (), leaves(branch), list(map(frame.symbols.public, each)))
            for scope, branch, each in zip(scopes, branches, types[1:], strict=True)
            if branch is not None
        ]
        attrs = dict(zip(("then_branch", "else_branch"), graphs, strict=True))
        name = scopes[0].step.rsplit("/", 1)[0]
        flat = self._builder.add("If", [condition], len(types[0]), attrs, name)
        return self._noted(frame, regroup(flat, node.type), node.type)

    def _function(self, frame: Frame, node: Call) -> Values | None:
        """Emit the call of a local function; other calls are gaps."""
        function = self._called(node)
        own = isinstance(node.op, Var) and isinstance(frame.placement.lets.get(node.op), Function)
        if own or function in self._active:
            raise Unsupported(RECURSION, hint=RECURSION_HINT)
        if function is None:
            raise Unsupported("what is called is only known when the model runs")
        call = self._local_call(frame, node, function)
        if call is None or node.type is None:
            raise ConverterBug(f"{node!r}: the function called was not walked")
        flat = call.emit(_source(node))
        return None if flat is None else self._noted(frame, regroup(flat, node.type), node.type)

    def _operator(self, frame: Frame, node: Call) -> Values | None:
        """Run the converter of an operator."""
        call, extra = (node, ()) if node not in frame.biases else _with_bias(frame.biases[node])
        operands = [frame.values[argument] for argument in (*call.args, *extra)]
        if not isinstance(call.op, OpDef) or node.type is None:
            raise ConverterBug(f"{_source(node)}: {node!r} is not typed")
        version = self._context.version
        if any(operand is None for operand in operands) or None in frame.bodies.values():
            self._table.bind_export(call, version)
            return None
        if frame.bodies and self._builder.scope.level >= MAX_LEVEL:
            raise Unsupported(f"more than {MAX_LEVEL} subgraphs lie inside each other")
        held = next((each.scope.step for each in frame.bodies.values() if each is not None), "")
        name = held.rsplit("/", 1)[0] or _source(node) or _label(node)
        self._context.enter(name, node.type)
        result = self._table.run_export(self._context, call, operands, version)
        return self._noted(frame, _as_values(result), node.type)

    def _noted(self, frame: Frame, result: Values, type_: Type) -> Values:
        """Return results with their Relay types, which the scope notes too."""
        typed = _retyped(result, type_)
        if typed is None:
            raise ConverterBug(f"expected values of {type_!r}")
        for value in leaves(typed):
            if value.type is not None:
                public = frame.symbols.public(value.type)
                self._builder.scope.types.setdefault(value.name, public)
        return typed


def _with_bias(found: tuple[Call, Expr]) -> tuple[Call, tuple[Expr, ...]]:
    return found[0], (found[1],)


def _all_leaves(values: Mapping[Expr, Values | None]) -> list[Value]:
    return [leaf for each in values.values() if each is not None for leaf in leaves(each)]


def _as_values(result: Value | Sequence[Value]) -> Values:
    return result if isinstance(result, Value) else tuple(result)


def _retyped(values: Values | None, type_: Type | None) -> Values | None:
    """Return values with the types that an expression has for them."""
    if values is None or type_ is None:
        return values
    if isinstance(values, Value) and isinstance(type_, (TensorType, SequenceType)):
        return Value(values.name, type_, values.data)
    flat, types = leaves(values), value_types(type_)
    if len(flat) > len(types) or isinstance(values, Value) == isinstance(type_, TupleType):
        raise ConverterBug(f"{len(flat)} results for {type_!r}")
    typed = [replace(value, type=each) for value, each in zip(flat, types, strict=False)]
    return regroup(typed, type_) if len(flat) == len(types) else tuple(typed)


def _source(node: Expr) -> str:
    return node.span.source_name if node.span is not None else ""


def _operator_name(node: Expr) -> str:
    if isinstance(node, Call):
        return node.op.name if isinstance(node.op, OpDef) else "call of a function"
    return type(node).__name__


def _label(node: Expr) -> str:
    """Return the name of a node that has none."""
    if isinstance(node, Call):
        return node.op.name.rsplit(".", 1)[-1] if isinstance(node.op, OpDef) else _called_name(node)
    return type(node).__name__.lower()


def _called_name(node: Call) -> str:
    return node.op.name_hint if isinstance(node.op, (GlobalVar, Var)) else "call"
