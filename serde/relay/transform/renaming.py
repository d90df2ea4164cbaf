"""Other names for what a model has, and other texts of its owner's."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from serde.core.parsing import parse_json
from serde.core.texts import near_names
from serde.errors import OptionError
from serde.relay.ir import Expr, Function, RelayModel, Span, Var, all_nodes, map_bodies
from serde.relay.ir.bodies import substitute
from serde.relay.ir.model import METADATA, TRAINING_HEADS, TRAINING_NODES
from serde.relay.ir.visit import rewrite_function
from serde.relay.transform.infer_type import InferType

__all__ = ["all_names", "rename", "set_metadata"]


def rename(
    model: RelayModel,
    inputs: Mapping[str, str] = {},
    outputs: Mapping[str, str] = {},
    names: Mapping[str, str] = {},
) -> RelayModel:
    """Return the model with other names for some of what it has.

    What is known about an input or output goes with it.

    Args:
        model: The model.
        inputs: New names of inputs by their names.
        outputs: New names of outputs by their names.
        names: New names of inputs, outputs, weights and nodes; of all that has the old one.

    Raises:
        OptionError: A name is unknown, stands for several outputs, is empty or taken.
    """
    kinds = all_names(model) if names else [set[str]()] * 4
    known = set().union(*kinds)
    for name in names.keys() - known:
        told = f"no input, output, weight or node is called {name!r}"
        raise OptionError(f"rename: {told}.{near_names(name, known)}")
    found = [{old: new for old, new in names.items() if old in kind} for kind in kinds]
    inputs, outputs, weights, nodes = {**found[0], **inputs}, {**found[1], **outputs}, *found[2:]
    if not inputs and not outputs and not weights and not nodes:
        return model
    found_weights = _apply_names("rename", [*model.params], weights, set())
    taken = set(found_weights)
    found_inputs = _apply_names("rename_inputs", model.meta.inputs, inputs, taken)
    found_outputs = _apply_names("rename_outputs", model.meta.outputs, outputs, taken)
    _apply_names("rename", sorted(kinds[3]), nodes, set())
    joined = sorted(taken & {*found_inputs} | (taken - {*model.params}) & {*found_outputs})
    if joined:
        raise OptionError(f"rename: {joined[0]!r} is the name of another already")
    _refuse_joined(model, found_inputs, found_outputs)
    extra = _facts(_renamed_keys(model.meta.extra, TRAINING_NODES, nodes), inputs, outputs)
    meta = replace(
        model.meta,
        inputs=found_inputs,
        outputs=found_outputs,
        extra=extra,
        states={outputs.get(x, x): inputs.get(y, y) for x, y in model.meta.states.items()},
    )
    if not inputs and not weights and not nodes:
        return replace(model, meta=meta)
    main, memo = _rename_nodes(model.main, nodes), dict[Var, Expr]()
    for param in main.params:
        named = weights if param.name_hint in model.params else inputs
        if param.name_hint in named:
            memo[param] = Var(named[param.name_hint], param.type, param.span)
    params = [new if isinstance(new := memo.get(p, p), Var) else p for p in main.params]
    body = substitute(main.body, memo)
    new_main = main.evolve(params=params, body=body)
    mod = InferType()(model.mod.with_main(new_main))
    stored = dict(zip(found_weights, model.params.values(), strict=True))
    return model.evolve(mod=mod, params=stored, meta=meta)


def all_names(model: RelayModel) -> Sequence[set[str]]:
    """Return the names of inputs, of outputs, of weights and of nodes of the source."""
    spans = {node.span for node in all_nodes(model.main.body) if not isinstance(node, Var)}
    nodes = {str(span.source_name) for span in spans if span is not None and span.source_name}
    return [{*model.meta.inputs}, {*model.meta.outputs}, {*model.params}, nodes]


def _rename_nodes(main: Function, names: Mapping[str, str]) -> Function:
    def name(_node: Expr, new: Expr) -> Expr:
        if isinstance(new, Var) or new.span is None or new.span.source_name not in names:
            return new
        named = copy.copy(new)
        named.span = Span(names[new.span.source_name])
        return named

    return rewrite_function(map_bodies(main, lambda body: rewrite_function(body, name)), name)


def set_metadata(
    model: RelayModel, entries: Mapping[str, str] = {}, description: str | None = None
) -> RelayModel:
    """Return the model with other metadata, an empty text for none, and another description.

    Raises:
        OptionError: An entry that is to go is not there.
    """
    known = model.meta.metadata
    for name in [name for name, text in entries.items() if not text and name not in known]:
        listed = ", ".join(known) or "none"
        raise OptionError(f"metadata: {name!r} is none of: {listed}.{near_names(name, known)}")
    extra = {**model.meta.extra, **{METADATA + name: text for name, text in entries.items()}}
    extra = {name: text for name, text in extra.items() if text or not name.startswith(METADATA)}
    told = model.meta.description if description is None else description
    return replace(model, meta=replace(model.meta, extra=extra, description=told))


def _renamed_keys(extra: Mapping[str, str], fact: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return facts of which one is JSON by name; what a file says otherwise stays as it is."""
    try:
        told = parse_json(extra.get(fact, ""))
        known = {names.get(key, key): value for key, value in told.items()}
    except (AttributeError, ValueError):
        return {**extra}
    return {**extra, fact: json.dumps(known)}


def _apply_names(
    option: str, names: Sequence[str], wanted: Mapping[str, str], weights: set[str]
) -> tuple[str, ...]:
    for old, new in wanted.items():
        if names.count(old) != 1:
            known = ", ".join(names) or "none"
            fault = "stands for several" if old in names else "is none"
            raise OptionError(f"{option}: {old!r} {fault} of {known}")
        if not new:
            raise OptionError(f"{option}: {old!r} needs a name")
    found = tuple(wanted.get(name, name) for name in names)
    for name in found:
        if name in wanted.values() and (found.count(name) > 1 or name in weights):
            what = "a weight" if name in weights else "another"
            raise OptionError(f"{option}: {name!r} is the name of {what} already")
    return found


def _refuse_joined(model: RelayModel, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse an input and an output that come to share a name, as they had not before."""
    before = set(model.meta.inputs) & set(model.meta.outputs)
    joined = sorted((set(inputs) & set(outputs)) - before)
    if joined:
        raise OptionError(f"an input and an output would both be called {joined[0]!r}")


def _facts(
    extra: Mapping[str, str], inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> dict[str, str]:
    """Return what is known, under the new names; ``name.fact`` is a fact about an end."""
    ends = {**inputs, **outputs}
    found = {}
    for key, text in _renamed_keys(extra, TRAINING_HEADS, outputs).items():
        name, dot, fact = key.rpartition(".")
        if key == "predicted_probabilities":
            text = outputs.get(text, text)
        elif fact == "state" and dot:
            # The output that a state becomes, or the state itself where it stays what it is.
            text = inputs.get(text, text) if text == name else outputs.get(text, text)
        found[f"{ends[name]}.{fact}" if dot and name in ends else key] = text
    return found
