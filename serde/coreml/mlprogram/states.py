"""States: inputs of a model whose later values are outputs, kept by Core ML between two runs.

A model that is read has them as inputs and outputs, with a fact ``<input>.state`` that names the
output, or the input itself where the model only reads the state. From iOS18 on they are written as
states again, as are the caches of decoders that have a fixed length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core.report import Report
from serde.coreml.interface.interface import ARRAY_DTYPES, description_of, tensors_of
from serde.coreml.mlprogram.builder import ProgramBuilder
from serde.coreml.model import operations
from serde.coreml.value import Value, set_type
from serde.coreml.versions import Target
from serde.errors import OptionError
from serde.relay.ir import Dim, IRModule, RelayModel, TensorType, TupleType, UniqueNames, call
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var, tensor_type
from serde.relay.ir.shapes import is_float
from serde.walk.interface import Inner, rewrite_interface

if TYPE_CHECKING:
    from serde.coreml.options import CoremlExportOptions

__all__ = [
    "FACT", "declare_states", "later_names", "plan_states", "state_names", "with_states_last",
    "write_states",
]  # fmt: skip

FACT = ".state"
"""What the name of the fact ends in that tells which output a state becomes."""

SINCE = 18
"""Version of iOS that brought states."""

_STORED = "float16"
_HALF = next(code for code, dtype in ARRAY_DTYPES.items() if dtype == _STORED)


def plan_states(
    model: RelayModel, options: CoremlExportOptions, target: Target, report: Report
) -> dict[str, str]:
    """Return the outputs that states become, by input; those of the source if none are asked for.

    Raises:
        OptionError: What was asked for does not fit the model or the target.
    """
    inputs = {each.name_hint: each.type for each in model.inputs()}
    outputs = dict(zip(model.meta.outputs, _types(model), strict=False))
    asked = options.states
    if (asked or options.cache == "states") and target.number < SINCE:
        raise OptionError(f"states: {target.name} has none, iOS{SINCE} has")
    known = {
        name: model.meta.extra[f"{name}{FACT}"]
        for name in inputs
        if f"{name}{FACT}" in model.meta.extra
    } | _caches(model, {**outputs, **inputs}, options, report)
    kept = {name: to for name, to in known.items() if to == name or to in outputs}
    caches = {*model.meta.states.values()}
    wide = [x for x in kept if getattr(inputs[x], "dtype", "") != "float16" and x not in caches]
    if not asked and wide:
        report.notes.append(
            "states are inputs and outputs, as those of Core ML are float16: " + ", ".join(wide)
        )
        kept = {name: to for name, to in kept.items() if name not in wide}
    if not asked and kept and target.number < SINCE:
        report.notes.append(
            f"states are inputs and outputs, as {target.name} has none: {', '.join(kept)}; "
            f"minimum_deployment_target=iOS{SINCE} keeps them"
        )
        return {}
    found = dict(asked) or kept
    for name, to in found.items():
        if name not in inputs or (to != name and to not in outputs):
            listed = ", ".join([*inputs, *outputs])
            raise OptionError(f"states: {name}={to}: no such input or output; there are {listed}")
        later = inputs[name] if to == name else outputs[to]
        _check_type(name, inputs[name], later, any_float=name in caches and not asked)
        if name in options.images or (to != name and to in options.output_images):
            raise OptionError(f"states: {name} is no image; the states of Core ML are tensors")
    written = [to for name, to in found.items() if to != name]
    if len(set(written)) < len(written):
        raise OptionError("states: two states become one output")
    return found


def _types(model: RelayModel) -> Sequence[AnyValue]:
    type_ = model.main.body.type
    return type_.fields if isinstance(type_, TupleType) else (type_,)


def _caches(
    model: RelayModel, types: Mapping[str, AnyValue], options: CoremlExportOptions, report: Report
) -> dict[str, str]:
    """Return the outputs that caches of a decoder become, by input, where they are to be states."""
    found = {name: to for to, name in model.meta.states.items() if {name, to} <= {*types}}
    growing = [name for name, to in found.items() if types[name] != types[to]]
    told = (
        f"caches grow as inputs and outputs: {', '.join(growing)}; cache_length (--cache-length) "
        f"gives them a fixed length, and states from iOS{SINCE} on"
    )
    if growing and options.cache == "states":
        raise OptionError(told)
    report.notes += [told] if growing else []
    narrow = options.cache == "states" or options.computes_float16
    return {} if growing or options.cache == "inputs" or not narrow else found


def _check_type(name: str, before: AnyValue, after: AnyValue, *, any_float: bool) -> None:
    whole = isinstance(before, TensorType) and before.concrete_shape is not None
    if not whole or before != after:
        raise OptionError(
            f"states: {name} is {before!r} and becomes {after!r}: expected one fixed shape"
        )
    if before.dtype != "float16" and not (any_float and is_float(before.dtype)):
        raise OptionError(f"states: {name} is {before.dtype}; the states of Core ML are float16")


def later_names(states: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return what the outputs with the later values of states are called.

    Args:
        states: The names of states that change.
        taken: The names of all inputs, states and outputs.
    """
    names = UniqueNames(taken)
    return [names.reserve(f"{state}_out") for state in states]


def with_states_last(model: RelayModel, states: Mapping[str, str]) -> RelayModel:
    """Return the model with states behind the other inputs, and what they become likewise.

    Those of a cache become float16 here.
    """
    if not states:
        return model
    model = _with_halves(model, states)
    main, meta = model.main, model.meta
    params = [each for each in main.params if each.name_hint not in states]
    by_name = {each.name_hint: each for each in main.params}
    params += [by_name[name] for name in states]
    body = main.body
    fields: list[Expr] = [body]
    if isinstance(body, Tuple):
        fields = list(body.fields)
    elif isinstance(body.type, TupleType):
        fields = [TupleGetItem(body, index) for index in range(len(body.type.fields))]
    last = [to for name, to in states.items() if to != name]
    names = [name for name in meta.outputs if name not in last] + last
    given = dict(zip(meta.outputs, fields, strict=True))
    ordered = [given[name] for name in names]
    result = ordered[0] if len(ordered) == 1 else Tuple(ordered)
    inputs = [name for name in meta.inputs if name not in states] + list(states)
    return model.evolve(
        mod=IRModule({"main": Function(params, result)}),
        meta=replace(meta, inputs=tuple(inputs), outputs=tuple(names)),
    )


def _with_halves(model: RelayModel, states: Mapping[str, str]) -> RelayModel:
    """Return the model with states of float16, and what they become likewise."""
    wide = {x for x in model.inputs() if x.name_hint in states and tensor_type(x).dtype != _STORED}
    later = {states[each.name_hint] for each in wide}

    def inner(param: Var, type_: TensorType) -> Inner | None:
        if param not in wide:
            return None
        outside = Var(param.name_hint, TensorType(type_.shape, _STORED), param.span)
        return outside, call("cast", outside, dtype=type_.dtype)

    def outer(index: int, x: Expr, _type: TensorType) -> Expr:
        return call("cast", x, dtype=_STORED) if model.meta.outputs[index] in later else x

    return rewrite_interface(model, inner, outer) if wide else model


def write_states(
    builder: ProgramBuilder,
    states: Mapping[str, str],
    given: Sequence[Value],
    later: Sequence[Value],
) -> None:
    """Append what gives states their later values.

    Args:
        builder: Where operations are added.
        states: The outputs that states become, by input.
        given: The states.
        later: The values of those that change, in their order.
    """
    changed = [value for value, (name, to) in zip(given, states.items(), strict=True) if to != name]
    for state, value in zip(changed, later, strict=True):
        builder.add("write_state", {"input": state, "data": value}, [], f"{state.name}_write")


def declare_states(
    function: AnyValue,
    description: AnyValue,
    states: Sequence[Value],
    target: Target,
    texts: Sequence[str],
) -> None:
    """Declare states in Apple's messages of a function and of a description.

    Args:
        function: The function.
        description: The description.
        states: The states.
        target: What the program is written for.
        texts: What each state is, for people.
    """
    for state, text in zip(states, texts, strict=True):
        type_ = function.inputs.add(name=state.name).type.stateType.wrappedType
        set_type(type_, state.type, target.number)
        feature = description.state.add(name=state.name, shortDescription=text)
        array = feature.type.stateType.arrayType
        lengths: Sequence[Dim] = state.type.shape
        array.shape.extend(int(each) for each in lengths if isinstance(each, int))
        array.dataType = _HALF


def state_names(spec: AnyValue) -> tuple[list[str], list[str]]:
    """Return what states are called among inputs and among outputs of a model that is read."""
    description = description_of(spec)
    names = [each.name for each in description.state]
    ends = [each.name for each in (*description.input, *tensors_of(description))]
    bindings = (
        binding.name
        for op in operations(spec)
        if op.type == "write_state"
        for binding in op.inputs["input"].arguments
    )
    written = [name for name in dict.fromkeys(bindings) if name in names]
    return names, later_names(written, [*names, *ends])
