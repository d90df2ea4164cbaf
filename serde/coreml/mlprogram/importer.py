"""The walk over an ML Program into Relay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from typing import Any as AnyValue

import serde.relay as relay
from serde.coreml.interface.interface import declared_dims, input_names, model_meta, read_shapes
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.lists import ListFacts
from serde.coreml.mlprogram.ops import TABLE
from serde.coreml.mlprogram.states import FACT, later_names
from serde.coreml.mlprogram.values import Plain, element_of, read_value
from serde.coreml.model import CoremlModel
from serde.coreml.versions import BY_OPSET
from serde.errors import FormatError, OptionError, Unsupported
from serde.io.packed import PackedWeight
from serde.limits import MAX_SUBGRAPH_DEPTH
from serde.relay.ir.collection import without_collection
from serde.relay.ir.expr import Constant, Expr, Function, Span, Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.report import Report
from serde.walk.assembly import Assembly, closed_over
from serde.walk.table import Hole, Incomplete
from serde.weights import ArrayWeight, dtype_name

if TYPE_CHECKING:
    from serde.coreml.options import CoremlImportOptions

__all__ = ["program_to_relay"]

Value = Expr | Plain


@without_collection()
def program_to_relay(
    model: CoremlModel, options: CoremlImportOptions, report: Report
) -> RelayModel:
    """Return a function of an ML Program as Relay.

    Its states become inputs and outputs.

    Raises:
        FormatError: The program is not sound.
        OptionError: An option names no function or no input.
        UnsupportedModelError: Some operations cannot be converted.
    """
    name, function = _function(model, options.function)
    version, block = _block(function, model.source)
    walk = _Walk(model, report, version)
    scope = _Scope()
    inputs = walk.declare(function, options, scope)
    outputs = walk.run(block, scope)
    states = [walk.states[state] for state in walk.written]
    report.raise_if_refused()
    given = [each.name_hint for each in inputs]
    later = later_names(walk.written, [*given, *walk.outputs])
    names = [*walk.outputs, *later]
    meta = model_meta(model, given, names, function=name, labels=walk.labels)
    becomes = dict(zip(walk.written, later, strict=True))
    kept = {f"{state}{FACT}": becomes.get(state, state) for state in walk.states}
    meta = replace(meta, extra={**meta.extra, **kept})
    values = {key: value for key, value in scope.values.items() if isinstance(value, Expr)}
    return walk.assembly.model(inputs, [*outputs, *states], meta, values)


def _function(model: CoremlModel, wanted: str | None) -> tuple[str, AnyValue]:
    """Return the function asked for, else the one that the model runs by default."""
    functions = model.spec.mlProgram.functions
    known = sorted(functions)
    name = wanted or model.spec.description.defaultFunctionName
    if not name and len(known) == 1:
        name = known[0]
    name = name or "main"
    if name in functions:
        return name, functions[name]
    if wanted is not None:
        raise OptionError(f"no function is called {wanted!r}; functions: {', '.join(known)}")
    raise FormatError(
        f"expected a function {name!r}, found {', '.join(known) or 'none'}", path=model.source
    )


def _block(function: AnyValue, source: str | None) -> tuple[int, AnyValue]:
    """Return version and block of a function, of the operator set that it names."""
    target = BY_OPSET.get(function.opset)
    if target is None:
        newest = list(BY_OPSET)[-1]
        raise FormatError(
            f"operator set {function.opset!r}: expected one up to {newest}, the newest", path=source
        )
    if function.opset not in function.block_specializations:
        raise FormatError(f"no block for its operator set {function.opset}", path=source)
    return target.number, function.block_specializations[function.opset]


@dataclass
class _Scope:
    """The values of one block by name; a block inside sees those around it."""

    values: dict[str, Value] = field(default_factory=dict)
    parent: _Scope | None = None
    prefix: str = ""
    depth: int = 0
    captures: dict[Expr, Var] | None = None

    def find(self, name: str) -> Value | None:
        """Return a value, taken from around a block that becomes a function as a parameter."""
        if name in self.values:
            return self.values[name]
        found = self.parent.find(name) if self.parent is not None else None
        if self.captures is None or not isinstance(found, Expr) or isinstance(found, Constant):
            return found
        if isinstance(found, Hole):
            return found
        if found not in self.captures:
            self.captures[found] = Var(f"captured{len(self.captures)}", found.type)
        return self.captures[found]


class _Walk:
    """State of one conversion.

    Attributes:
        assembly: What has been made of the program.
        lists: What is known of its lists.
        states: The present value of each state.
        written: Names of the states that are written, in order.
        outputs: Names of the outputs, in order.
        labels: Class labels of a classifier.
    """

    def __init__(self, model: CoremlModel, report: Report, version: int) -> None:
        self.model = model
        self._report = report
        self._version = version
        self.assembly = Assembly()
        self.lists = ListFacts()
        self.states: dict[str, Expr] = {}
        self.written: list[str] = []
        self.outputs: list[str] = []
        self.labels: tuple[str | int, ...] = ()
        report.nodes = 0

    def declare(self, function: AnyValue, options: CoremlImportOptions, scope: _Scope) -> list[Var]:
        """Make a variable of every input and every state."""
        names = input_names(function.inputs, self.model.source)
        shapes, dtypes = read_shapes(names, options)
        found = []
        for each in function.inputs:
            kind = each.type.WhichOneof("type")
            type_ = each.type.stateType.wrappedType if kind == "stateType" else each.type
            try:
                if type_.WhichOneof("type") != "tensorType":
                    raise Unsupported(f"expected a tensor, found {kind}")
                dtype = dtypes.get(each.name) or element_of(type_.tensorType.dataType).dtype
            except Unsupported as error:
                self._report.add("input", each.name, error.reason, error.hint)
                continue
            declared = declared_dims(type_.tensorType, each.name)
            shape = shapes.get(each.name, declared)
            if len(shape) != len(declared):
                raise OptionError(
                    f"input_shapes: {each.name}: expected {len(declared)} axes, found {len(shape)}"
                )
            variable = Var(each.name, TensorType(shape, dtype), Span(each.name))
            if kind == "stateType":
                self.states[each.name] = variable
                scope.values[each.name] = Plain(each.name)
            else:
                scope.values[each.name] = variable
            self.assembly.take(each.name)
            found.append(variable)
        self._report.raise_if_refused()
        return found

    def run(self, block: AnyValue, scope: _Scope) -> list[Expr]:
        """Convert the operations of a block and return its outputs; of the whole, name them."""
        for op in block.operations:
            self._report.nodes += op.type != "const"
            self._operation(op, scope)
        results = []
        for name in block.outputs:
            value = scope.find(name)
            if value is None:
                raise self._fault(scope, f"output {name!r} is given by no operation")
            if isinstance(value, Plain):
                continue
            results.append(value)
            if scope.parent is None:
                self.outputs.append(name)
        return results

    def _operation(self, op: AnyValue, scope: _Scope) -> None:
        names = [each.name for each in op.outputs]
        label = f"{scope.prefix}{names[0] if names else op.type}"
        values = self._results(op, scope, label, len(names))
        for name, value in zip(names, values, strict=False):
            if name in scope.values:
                raise self._fault(scope, f"{name}: the name is given twice")
            scope.values[name] = value

    def _results(self, op: AnyValue, scope: _Scope, label: str, outputs: int) -> Sequence[Value]:
        if op.type == "const":
            return [self._constant(op.attributes["val"], op, label)]
        converter = TABLE.importer(op.type, self._version)
        inputs: dict[str, list[Value]] = {}
        for name, argument in op.inputs.items():
            inputs[name] = [self._argument(each, op, scope, label) for each in argument.arguments]
        for name, value in op.attributes.items():
            if name != "name":
                inputs[name] = [self._constant(value, op, f"{label}_{name}")]
        around = _Around(self, op, scope)
        known = converter.attributes if converter is not None else {}
        operands = converter.operands if converter is not None else ()
        ctx = ImportContext(self._version, label, outputs, around)
        attributes, arguments, rest = {}, dict[str, list[Expr]](), []
        for name, found in inputs.items():
            if name in known or (converter is not None and name in converter.ignored):
                attributes[name] = self._attribute(found, ctx, op, name)
            elif name in operands or converter is None:
                arguments[name] = [each for each in found if isinstance(each, Expr)]
            else:
                rest.append(name)
        for name in rest:
            self._report.add(op.type, label, f"unknown input {name}")
        if rest:
            return [Hole() for _ in range(outputs)]
        given = self._ordered(operands, arguments, converter is None or converter.accepted is None)
        results = TABLE.run_import(ctx, op.type, given, attributes, self._report)
        found = [each if isinstance(each, Hole) else self.assembly.fold(each) for each in results]
        # What a classifier names is text; the scores that it names it by are its result.
        return [Plain(self.labels), *found] if op.type == "classify" else found

    def _ordered(
        self, operands: Sequence[str], found: Mapping[str, list[Expr]], variadic: bool
    ) -> list[Expr | None]:
        """Return the tensors in the order of the converter's parameters."""
        given: list[Expr | None] = []
        for index, name in enumerate(operands):
            if variadic and index == len(operands) - 1:
                given.extend(found.get(name, []))
            else:
                given.append(found[name][0] if found.get(name) else None)
        while given and given[-1] is None:
            given.pop()
        return given

    def _argument(self, binding: AnyValue, op: AnyValue, scope: _Scope, label: str) -> Value:
        if binding.WhichOneof("binding") == "value":
            return self._constant(binding.value, op, label)
        value = scope.find(binding.name)
        if value is None:
            raise self._fault(scope, f"{label} ({op.type}): no value is called {binding.name!r}")
        return value

    def _attribute(
        self, found: Sequence[Value], ctx: ImportContext, op: AnyValue, name: str
    ) -> AnyValue:
        """Return the value of a constant input: a number, text, or a tuple of them."""
        values = []
        for each in found:
            if isinstance(each, Plain):
                values.append(each.value)
                continue
            if isinstance(each, Hole):
                continue
            try:
                data = ctx.constant(each)
            except Unsupported as error:
                self._report.add(op.type, ctx.node, f"{name}: {error.reason}")
                continue
            values.append(data.item() if not data.shape else tuple(data.reshape(-1).tolist()))
        return values[0] if len(values) == 1 else tuple(values)

    def _constant(self, value: AnyValue, op: AnyValue, label: str) -> Value:
        """Return a constant of the program: small ones as they are, large ones as a weight."""
        try:
            if value.WhichOneof("value") == "blobFileValue":
                blob = value.blobFileValue
                return self.assembly.tensor(self.model.blobs[blob.fileName, blob.offset], label)
            data = read_value(value, self.model.source)
        except Unsupported as error:
            self._report.add(op.type, label, error.reason, error.hint)
            return Hole()
        if isinstance(data, Plain):
            return data
        if is_float(dtype_name(data.dtype)) and data.size > 1:
            return self.assembly.tensor(ArrayWeight(data), label)
        return Constant(data, Span(label))

    def unpacked(self, x: Expr, shape: tuple[int, ...], bits: int, name: str) -> Expr:
        """Return what stands for the elements that a weight of bytes holds, `bits` each."""
        weight = self.assembly.weight(x)
        if weight is None and isinstance(x, Constant):
            weight = ArrayWeight(x.data)
        if weight is None:
            raise Unsupported("packed elements that are computed at run time")
        if weight.size != -(-math.prod(shape) * bits // 8):
            raise Unsupported(f"{weight.size} bytes do not hold {bits} bits each of {list(shape)}")
        if bits == 8:
            return relay.reshape(x, shape)
        return self.assembly.tensor(PackedWeight(weight, shape, "uint8", bits), name)

    def _fault(self, scope: _Scope, message: str) -> FormatError:
        return FormatError(f"{scope.prefix}{message}", path=self.model.source)

    def inner(self, op: AnyValue, index: int, scope: _Scope, label: str) -> tuple[AnyValue, _Scope]:
        """Return a block of an operation, and a new scope for it."""
        if index >= len(op.blocks):
            raise self._fault(scope, f"{label}: expected {index + 1} blocks")
        if scope.depth >= MAX_SUBGRAPH_DEPTH:
            raise self._fault(scope, f"{label}: more than {MAX_SUBGRAPH_DEPTH} blocks deep")
        return op.blocks[index], _Scope(parent=scope, prefix=f"{label}/", depth=scope.depth + 1)

    def run_block(self, block: AnyValue, inner: _Scope, args: Sequence[Expr]) -> list[Expr]:
        """Return what a block gives for the values of its inputs."""
        if len(args) != len(block.inputs):
            raise self._fault(inner, f"expected {len(args)} inputs, found {len(block.inputs)}")
        before = len(self._report.issues)
        inner.values |= {each.name: arg for each, arg in zip(block.inputs, args, strict=True)}
        results = self.run(block, inner)
        if len(self._report.issues) > before or any(isinstance(each, Hole) for each in results):
            raise Incomplete
        return results


class _Around:
    """What the converter of one operation may reach of the walk."""

    def __init__(self, walk: _Walk, op: AnyValue, scope: _Scope) -> None:
        self._walk = walk
        self._op = op
        self._scope = scope
        self.assembly = walk.assembly
        self.lists = walk.lists

    def unpacked(self, x: Expr, shape: tuple[int, ...], bits: int, label: str) -> Expr:
        return self._walk.unpacked(x, shape, bits, label)

    def note_labels(self, labels: Sequence[str | int]) -> None:
        self._walk.labels = tuple(labels)

    def read_state(self, name: str) -> Expr:
        return self._walk.states[self._state(name)]

    def write_state(self, name: str, value: Expr) -> None:
        self._walk.states[self._state(name)] = value
        if name not in self._walk.written:
            self._walk.written.append(name)

    def _state(self, name: str) -> str:
        if name not in self._walk.states:
            raise Unsupported(f"no state is called {name!r}")
        if self._scope.parent is not None:
            raise Unsupported("a state is used in a block inside the program")
        return name

    def block(self, index: int, args: Sequence[Expr], label: str) -> list[Expr]:
        block, inner = self._walk.inner(self._op, index, self._scope, label)
        return self._walk.run_block(block, inner, args)

    def closure(self, index: int, params: Sequence[Var], label: str) -> tuple[Function, list[Expr]]:
        block, inner = self._walk.inner(self._op, index, self._scope, label)
        captures = inner.captures = dict[Expr, Var]()
        return closed_over(params, captures, self._walk.run_block(block, inner, params))
