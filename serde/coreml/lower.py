"""From a Relay model to an ML Program: lowering, emission, and the model around it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from typing import Any as AnyValue

from serde._version import __version__
from serde.coreml.builder import ProgramBuilder, Value, set_text, set_type, stored_dtype
from serde.coreml.interface import ARRAY_DTYPES
from serde.coreml.model import CoremlModel, walk_blocks
from serde.coreml.ops import TABLE
from serde.coreml.ops.table import constants_hold
from serde.coreml.protos import message_class
from serde.coreml.versions import TARGETS, Target
from serde.coreml.walk import export_program
from serde.errors import OptionError
from serde.relay import transform
from serde.relay.collection import without_collection
from serde.relay.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.model import RelayModel
from serde.relay.module import IRModule
from serde.relay.registry import OpDef, call
from serde.relay.types import TensorType, TupleType, Type
from serde.relay.visit import post_order, rewrite
from serde.report import Issue, Report

if TYPE_CHECKING:
    from serde.coreml.bridge import CoremlExportOptions

__all__ = ["from_relay"]

SOURCE = "com.github.serde.source"
NAMES = "com.github.serde.names"
"""Keys of the user's metadata: what was converted, and the names that had to be changed."""

AS_FLOATS = "quantised-as-floats"
"""Name of the step that computes quantised operators on floats."""

_WIDE = frozenset(
    f"qnn.{name}"
    for name in (
        "add", "avg_pool2d", "batch_matmul", "concatenate", "conv2d", "conv2d_transpose", "dense",
        "leaky_relu", "mul", "requantize", "softmax", "subtract",
    )
)  # fmt: skip
"""Quantised operators that rescale integers by products of 64 bits."""

_CONSENT = {"float64": "float64-as-float32", "int64": "int64-as-int32"}
"""Names of the steps that hold a dtype in a narrower one."""

_ARITHMETIC = frozenset([
    "abs", "add", "cumprod", "cumsum", "divide", "floor_divide", "floor_mod", "left_shift", "mod",
    "multiply", "negative", "power", "prod", "right_shift", "subtract", "sum",
])  # fmt: skip
"""Operators whose results may be larger, or finer, than their operands."""

_BOUNDED = frozenset(["divide", "floor_divide", "floor_mod", "mod", "right_shift"])
"""Those of them that make no integers larger than they take."""

_CODES = {dtype: code for code, dtype in ARRAY_DTYPES.items()}
_UNBOUNDED = -1


@without_collection()
def from_relay(model: RelayModel, options: CoremlExportOptions, report: Report) -> CoremlModel:
    """Return `model` as an ML Program.

    Raises:
        OptionError: ML Programs are not written for the target.
        UnsupportedModelError: Some of the model cannot be said there.
    """
    target = TARGETS.get(options.minimum_deployment_target)
    if target is None or target.opset is None:
        known = ", ".join(name for name, each in TARGETS.items() if each.opset)
        raise OptionError(
            f"minimum_deployment_target {options.minimum_deployment_target!r}: expected {known}"
        )
    model = _as_floats(model, options.allow, report)
    if options.compute_precision == "float16":
        model = _narrowed(model, target, report)
    model = _lowered(model, target, report)
    model = _with_numbers(model, target)
    _ask(model, options.allow, report)
    builder = ProgramBuilder(target.number)
    names = [builder.reserve(name) for name in model.meta.outputs]
    inputs, outputs = export_program(model, TABLE, builder, report)
    report.raise_if_refused()
    _prune(builder.block, {builder.name_of(value) for value in outputs})
    named = _named(outputs, names, builder)
    report.facts |= {"minimum_deployment_target": target.name, "opset": target.opset}
    spec = _spec(model, target, builder, inputs, named)
    return CoremlModel(spec, layout=builder.layout)


def _as_floats(model: RelayModel, allow: frozenset[str], report: Report) -> RelayModel:
    """Return the model with quantised operators as floats between linear operators.

    That is where one needs integers of 64 bits, which MIL has not; others are spelled out.
    """
    nodes = post_order(model.main.body)
    if not any(
        isinstance(n, Call) and isinstance(n.op, OpDef) and n.op.name in _WIDE for n in nodes
    ):
        return model
    mod, changed = transform.QuantizedAsFloat().run(model.mod)
    if not changed:
        return model
    what = "quantised operators are computed on floats and round halves to even"
    issue = Issue("qnn", "main", what, f"allow {AS_FLOATS!r}")
    (report.allowed if AS_FLOATS in allow else report.issues).append(issue)
    report.raise_if_refused()
    return model.evolve(mod=mod)


def _narrowed(model: RelayModel, target: Target, report: Report) -> RelayModel:
    """Return the model computing in float16, its ends as they were; what overflows is told."""
    for what in transform.float16_overflows(model, keep=transform.KEEP_FLOAT32, keep_io=True):
        issue = Issue("cast", what, "has values beyond the range of float16, which become infinite")
        report.allowed.append(issue)
    narrow = transform.ToFloat16(transform.KEEP_FLOAT32, True, frozenset(model.params))
    return transform.fold_weights(model.evolve(mod=narrow(model.mod)), report=report)


def _with_numbers(model: RelayModel, target: Target) -> RelayModel:
    """Return the model with ends that a Core ML model can declare.

    Truth values and narrow integers become int32 there and, before iOS16, float16 becomes
    float32.
    """
    held = dict.fromkeys(("bool", "int8", "int16", "uint8", "uint16"), "int32")
    held |= {"float16": "float32"} if target.number < 16 else {}
    main = model.main
    memo: dict[Expr, Expr] = {}
    params = list(main.params)
    for index, param in enumerate(params):
        type_ = param.type
        if param.name_hint in model.params or not isinstance(type_, TensorType):
            continue
        if type_.dtype in held:
            outer = Var(param.name_hint, TensorType(type_.shape, held[type_.dtype]), param.span)
            memo[param] = call("cast", outer, dtype=type_.dtype)
            params[index] = outer
    body = rewrite(main.body, lambda _node, new: new, memo) if memo else main.body
    if isinstance(body.type, TupleType) and not isinstance(body, Tuple):
        body = Tuple([TupleGetItem(body, index) for index in range(len(body.type.fields))])
    fields = list(body.fields) if isinstance(body, Tuple) else [body]
    ends = [
        call("cast", each, dtype=held[each.type.dtype])
        if isinstance(each.type, TensorType) and each.type.dtype in held
        else each
        for each in fields
    ]
    if ends == fields and not memo:
        return model
    result = Tuple(ends) if isinstance(body, Tuple) else ends[0]
    return model.evolve(mod=IRModule({"main": Function(params, result)}))


def _ask(model: RelayModel, allow: frozenset[str], report: Report) -> None:
    """Record where integers of 64 bits are held in 32, and float64 in float32.

    Positions and lengths, which the operators of a program make and take, always fit.
    """
    main = model.main
    places: list[tuple[str, str, Type | None]] = [
        ("input", param.name_hint, param.type)
        for param in main.params
        if param.name_hint not in model.params
    ]
    places += [
        (node.op.name, node.span.source_name if node.span else "", node.type)
        for node in post_order(main.body)
        if isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name in _ARITHMETIC
    ]
    places.append(("output", ", ".join(model.meta.outputs), main.body.type))
    for op, name, type_ in places:
        fields = type_.fields if isinstance(type_, TupleType) else (type_,)
        dtypes = {each.dtype for each in fields if isinstance(each, TensorType)}
        if op in _BOUNDED:
            dtypes.discard("int64")
        for dtype, consent in _CONSENT.items():
            if dtype in dtypes:
                issue = Issue(op, name or op, f"{dtype} has no counterpart", f"allow {consent!r}")
                (report.allowed if consent in allow else report.issues).append(issue)
    report.raise_if_refused()


def _lowered(model: RelayModel, target: Target, report: Report) -> RelayModel:
    """Return the model in operators that ML Programs of the target have."""

    def supported(node: Call) -> bool:
        return TABLE.can_export(node, target.number) and constants_hold(node, model.params)

    passes = transform.Sequential(
        [
            transform.Inline(opaque=True),
            transform.ToGraphNormalForm(),
            transform.RaiseRecursion(),
            transform.DynamicToStatic(),
            transform.channels_first(),
            transform.Legalize(supported, TABLE.expansion),
            transform.SimplifyExpr(),
            transform.FoldConstant(),
        ]
    )
    return transform.fold_weights(model.evolve(mod=passes(model.mod)), report=report)


def _prune(block: AnyValue, wanted: set[str]) -> None:
    """Drop the operations of a block that nothing reads, such as results besides the one used."""
    live, kept = set(wanted), []
    for op in reversed(block.operations):
        if not any(output.name in live for output in op.outputs):
            continue
        kept.append(op)
        for inner in op.blocks:
            _prune(inner, set(inner.outputs))
        for reader in (op, *(each for inner in op.blocks for each in _all_operations(inner))):
            arguments = (each for given in reader.inputs.values() for each in given.arguments)
            live.update(each.name for each in arguments if each.WhichOneof("binding") == "name")
        live.update(name for inner in op.blocks for name in inner.outputs)
    if len(kept) < len(block.operations):
        kept = [copy.deepcopy(op) for op in reversed(kept)]
        del block.operations[:]
        block.operations.extend(kept)


def _all_operations(block: AnyValue) -> list[AnyValue]:
    return [op for inner in walk_blocks(block) for op in inner.operations]


def _named(outputs: Sequence[Value], names: Sequence[str], builder: ProgramBuilder) -> list[Value]:
    """Give the outputs their names: an operation's result by renaming it, else by an identity."""
    produced = {each.name for op in builder.block.operations for each in op.outputs}
    produced -= {each.name for op in _constants(builder.block) for each in op.outputs}
    renamed: dict[str, str] = {}
    found = []
    for value, name in zip(outputs, names, strict=True):
        if value.name in produced and value.name not in renamed and not value.is_constant:
            renamed[value.name] = name
        else:
            made = builder.add("identity", {"x": value}, [value.type], name)[0]
            renamed[made.name] = name
        found.append(replace(value, name=name))
    for block in walk_blocks(builder.block):
        _rename(block, renamed)
    return found


def _constants(block: AnyValue) -> list[AnyValue]:
    return [op for op in block.operations if op.type == "const"]


def _rename(block: AnyValue, renamed: Mapping[str, str]) -> None:
    for op in block.operations:
        for argument in op.inputs.values():
            for binding in argument.arguments:
                if binding.name in renamed:
                    binding.name = renamed[binding.name]
        for output in op.outputs:
            if output.name in renamed:
                output.name = renamed[output.name]
                set_text(op.attributes["name"], output.name)
    for index, name in enumerate(block.outputs):
        block.outputs[index] = renamed.get(name, name)


def _spec(
    model: RelayModel,
    target: Target,
    builder: ProgramBuilder,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> AnyValue:
    spec = message_class("Model.Model")()
    spec.specificationVersion = target.specification
    for value in inputs:
        _declare(spec.description.input.add(name=value.name), value, target.number)
    for value in outputs:
        _declare(spec.description.output.add(name=value.name), value, target.number, flexible=False)
    metadata = spec.description.metadata
    metadata.shortDescription = model.meta.description
    metadata.userDefined[SOURCE] = f"serde {__version__}, {model.meta.source_format}"
    if builder.names:
        changed = (f"{new}={old}" for new, old in sorted(builder.names.items()))
        metadata.userDefined[NAMES] = ";".join(changed)
    spec.mlProgram.version = 1
    function = spec.mlProgram.functions["main"]
    function.opset = target.opset
    for value in inputs:
        set_type(function.inputs.add(name=value.name).type, value.type, target.number)
    builder.block.outputs.extend(value.name for value in outputs)
    function.block_specializations[target.opset].CopyFrom(builder.block)
    return spec


def _declare(feature: AnyValue, value: Value, version: int, *, flexible: bool = True) -> None:
    """Declare an input or output: its dtype and, of an input, which lengths are flexible."""
    array = feature.type.multiArrayType
    array.dataType = _CODES[stored_dtype(value.type.dtype, version)]
    dims = value.type.shape
    if all(isinstance(dim, int) for dim in dims):
        array.shape.extend(dims)
        return
    if not flexible:
        return
    array.shape.extend(dim if isinstance(dim, int) else 1 for dim in dims)
    for dim in dims:
        bounds = array.shapeRange.sizeRanges.add()
        bounds.lowerBound = dim if isinstance(dim, int) else 1
        bounds.upperBound = dim if isinstance(dim, int) else _UNBOUNDED
