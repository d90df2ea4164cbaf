"""Between the native model and the pivot: names that travel, constants that are weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core import ArrayWeight, Report, Weight
from serde.core.lossy import SIX_DIGIT_FLOATS
from serde.errors import ConverterBug, RelayError, raise_if_refused
from serde.relay.ir import IRModule, OpDef, called_name, has_kind, post_order, rewrite
from serde.relay.ir.compare import equal_in_six_digits, first_difference
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Var, tensor_type
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.ir.visit import rewrite_function
from serde.relay.text.composite import ATTRS_KEY, as_function
from serde.relay.text.containers import container_head
from serde.relay.text.parser import fromtext
from serde.relay.text.printer import spell_attribute
from serde.relay.transform.decompose import Decompose
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.input_types import with_input_types
from serde.relay.transform.weight_folding import fold_weights
from serde.relayfile.model import RelayProgram

__all__ = ["from_relay", "lift_constants", "to_relay"]

"""Name of the step that rounds floats as TVM's printer does."""

_TEXT_VERSION: Final = "0.0.5"
_INPUTS, _OUTPUTS, _SOURCE = "serde.inputs", "serde.outputs", "serde.source"
_DESCRIPTION, _LABELS, _EXTRA = "serde.description", "serde.labels", "serde.extra"
_STATES = "serde.states"
_CARRIED: Final = (_INPUTS, _OUTPUTS, _SOURCE, _DESCRIPTION, _LABELS, _EXTRA, _STATES)


def to_relay(
    program: RelayProgram,
    *,
    shapes: Mapping[str, Sequence[AnyValue]],
    dtypes: Mapping[str, str],
    lift_above: int | None,
) -> RelayModel:
    """Return a native model as Relay.

    Args:
        program: The native model.
        shapes: Shapes of inputs that are to be more exact than the module says.
        dtypes: dtypes of inputs, which must be those of the module.
        lift_above: Constants of more bytes become weights; None for no constant.

    Raises:
        OptionError: A shape or dtype contradicts the module.
    """
    mod, carried = _split_attributes(program.mod)
    params = dict(program.params)
    if shapes or dtypes:
        mod = with_input_types(mod, set(params), shapes, dtypes)
    if lift_above is not None:
        mod = lift_constants(mod, params, lift_above)
    return RelayModel(mod, params, _meta(mod, params, {**carried, **_facts(program.meta)}))


def _split_attributes(mod: IRModule) -> tuple[IRModule, Mapping[str, AnyValue]]:
    carried = {name: mod.attrs[name] for name in _CARRIED if name in mod.attrs}
    if not carried:
        return mod, carried
    rest = {name: value for name, value in mod.attrs.items() if name not in carried}
    return IRModule(mod.functions, mod.type_definitions, rest, checked=mod.checked), carried


def _meta(
    mod: IRModule, params: Mapping[str, Weight], carried: Mapping[str, AnyValue]
) -> ModelMeta:
    """Return what the file says of the model, and what its functions say otherwise."""
    main = mod["main"]
    inputs = tuple(p.name_hint for p in main.params if p.name_hint not in params)
    named = _texts(carried.get(_INPUTS))
    fields = main.body.type.fields if isinstance(main.body.type, TupleType) else (None,)
    outputs = _texts(carried.get(_OUTPUTS))
    if len(outputs) != len(fields):
        outputs = (
            tuple(f"output{i}" for i in range(len(fields))) if len(fields) > 1 else ("output",)
        )
    source = _texts(carried.get(_SOURCE))
    description = carried.get(_DESCRIPTION, "")
    return ModelMeta(
        inputs=named if sorted(named) == sorted(inputs) else inputs,
        outputs=outputs,
        source_format=source[0] if len(source) == 2 else "relay",
        source_version=source[1] if len(source) == 2 else _TEXT_VERSION,
        description=description if isinstance(description, str) else "",
        labels=_texts(carried.get(_LABELS)),
        extra=_pairs(carried.get(_EXTRA)),
        states=_pairs(carried.get(_STATES)),
    )


def _pairs(value: AnyValue) -> dict[str, str]:
    texts = [_texts(pair) for pair in value] if isinstance(value, tuple) else []
    return {pair[0]: pair[1] for pair in texts if len(pair) == 2}


def _texts(value: AnyValue) -> tuple[str, ...]:
    whole = isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    return value if whole else ()


def lift_constants(mod: IRModule, params: dict[str, Weight], limit: int) -> IRModule:
    """Return `mod` with large constants of ``main`` as parameters, whose values go to `params`.

    Scalars stay, and so do constants that a type depends on or that stand in
    a function inside ``main``, which has to be whole by itself.
    """
    main = mod["main"]
    nodes = post_order(main)
    inner = [node for node in nodes if isinstance(node, Function) and node is not main]
    kept: set[Expr] = {node for node in post_order(*inner) if isinstance(node, Constant)}
    kept |= {argument for node in nodes for argument in _shape_operands(node)}
    found = [
        node
        for node in nodes
        if isinstance(node, Constant) and node.data.ndim and node.data.nbytes > limit
    ]
    taken = {param.name_hint for param in main.params}
    lifted: dict[Expr, Expr] = {}
    for node in found:
        if node in kept:
            continue
        name = _fresh(f"constant{len(lifted)}", taken)
        taken.add(name)
        lifted[node] = Var(name, TensorType(node.data.shape, node.data.dtype), node.span)
        params[name] = ArrayWeight(node.data)
    if not lifted:
        return mod
    variables = [each for each in lifted.values() if isinstance(each, Var)]
    body = rewrite(main.body, lambda _node, new: new, lifted)
    new = main.evolve(params=[*main.params, *variables], body=body)
    functions = {v: new if v.name_hint == "main" else f for v, f in mod.functions.items()}
    return InferType()(mod.with_functions(functions, checked=False))


def _shape_operands(node: Expr) -> list[Expr]:
    """Return the operands of a call that its type depends on."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return []
    pairs = zip(node.op.operands, node.args, strict=True)
    return [argument for operand, argument in pairs if operand.name in node.op.by_value]


def _fresh(name: str, taken: set[str]) -> str:
    fresh = name
    while fresh in taken:
        fresh = f"{fresh}_"
    return fresh


def from_relay(
    model: RelayModel, *, strict: bool, allow: frozenset[str], report: Report
) -> RelayProgram:
    """Return a model as it is written: its module with its text, and its parameters.

    Args:
        model: The model.
        strict: Whether the text is legal for TVM 0.18.
        allow: Names of lossy steps that may be taken.
        report: Filled with gaps.

    Raises:
        UnsupportedModelError: Text or parameter file cannot hold something.
    """
    model = _without_nibbles(model)
    mod = model.mod if model.mod.checked else InferType()(model.mod)
    mod = IRModule(
        mod.functions,
        mod.type_definitions,
        {**mod.attrs, **_module_attributes(model)},
        checked=True,
    )
    names = [param.name_hint for param in model.main.params if param.name_hint in model.params]
    for name in names:
        try:
            container_head((), model.params[name].dtype)
        except RelayError as error:
            report.add("parameter", name, str(error))
    try:
        text = mod.astext(strict=strict)
    except RelayError as error:
        report.add("text", "main", str(error))
        text = ""
    raise_if_refused(report)
    if strict:
        _check_exact(mod, text, allow, report)
    return RelayProgram(mod, {name: model.params[name] for name in names}, text)


def _without_nibbles(model: RelayModel) -> RelayModel:
    """Return a model without levels of 4 bits, which no file of TVM's can hold."""
    narrow = ("int4", "uint4")
    if not any(weight.dtype in narrow for weight in model.params.values()):
        return model

    def holds(node: Call) -> bool:
        levels = called_name(node) == "serde.dequantize_linear" and tensor_type(node.args[0])
        return not levels or levels.dtype not in narrow

    return fold_weights(model.evolve(mod=Decompose(supported=holds)(model.mod)))


def _module_attributes(model: RelayModel) -> dict[str, AnyValue]:
    """Return the attributes of the module that carry what its functions do not say."""
    facts = _facts(model.meta)
    if model.meta.inputs == tuple(param.name_hint for param in model.inputs()):
        facts.pop(_INPUTS, None)
    return facts


def _facts(meta: ModelMeta) -> dict[str, AnyValue]:
    """Return what is known about a model as attributes of a module."""
    source = (meta.source_format, meta.source_version)
    facts: dict[str, AnyValue] = {
        _INPUTS: meta.inputs,
        _OUTPUTS: meta.outputs,
        _SOURCE: source if any(source) and source != ("relay", _TEXT_VERSION) else (),
        _DESCRIPTION: meta.description,
        _LABELS: meta.labels,
        _EXTRA: tuple(meta.extra.items()),
        _STATES: tuple(meta.states.items()),
    }
    return {name: value for name, value in facts.items() if value}


def _as_told(mod: IRModule) -> dict[GlobalVar, Function]:
    """Return functions whose loops are recursions where text cannot hold their bodies' arrays."""

    def spell(_old: Expr, node: Expr) -> Expr:
        if not isinstance(node, Call):
            return node
        bodies = (each for each in node.attrs.values() if isinstance(each, Function))
        if not any(has_kind(each, Constant) for each in bodies):
            return node
        function, arguments = as_function(node, spell_attribute)
        return node if ATTRS_KEY in function.attrs else Call(function, arguments, span=node.span)

    return {name: rewrite_function(each, spell) for name, each in mod.functions.items()}


def _check_exact(mod: IRModule, text: str, allow: frozenset[str], report: Report) -> None:
    """Refuse text whose floats, written with six digits, read back as others."""
    back = fromtext(text)
    found = first_difference(mod, back)
    if found is None:
        return
    told = InferType()(IRModule(_as_told(mod), mod.type_definitions, mod.attrs))
    if first_difference(told, back) is None:
        return
    pairs = [(function, back[variable.name_hint]) for variable, function in told.functions.items()]
    if not all(equal_in_six_digits(ours, theirs) for ours, theirs in pairs):
        raise ConverterBug(f"the text reads back as another module: {found}")
    why = f"six digits change {found}"
    SIX_DIGIT_FLOATS.record(report, allow, op="float", node="main", reason=why)
    raise_if_refused(report)
