"""Other names for what a model has, and other texts for what is told of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from serde.core.parsing import parse_json
from serde.core.texts import near_names
from serde.errors import OptionError
from serde.relay.ir import Expr, Function, RelayModel, Span, Var, all_nodes, map_bodies
from serde.relay.ir.bodies import substitute
from serde.relay.ir.model import METADATA, TRAINING_HEADS, TRAINING_NODES
from serde.relay.ir.visit import rewrite_function
from serde.relay.transform.infer_type import InferType

__all__ = ["node_names", "rename", "rename_all", "set_metadata"]


def set_metadata(
    model: RelayModel, metadata: Mapping[str, str] = {}, description: str | None = None
) -> RelayModel:
    """Return the model with other texts of its owner's; an empty one takes an entry away.

    Args:
        model: The model.
        metadata: Texts by name; what else the model has stays.
        description: What the model is, for people; as it was if left out.

    Raises:
        OptionError: There is no entry of a name that has no text.
    """
    known = model.meta.metadata
    for name, text in metadata.items():
        if not name or (not text and name not in known):
            listed = ", ".join(known) or "none"
            raise OptionError(f"metadata: {name!r} is none of {listed}.{near_names(name, known)}")
    extra = {**model.meta.extra, **{METADATA + name: text for name, text in metadata.items()}}
    gone = {METADATA + name for name, text in metadata.items() if not text}
    kept = {name: text for name, text in extra.items() if name not in gone}
    told = model.meta.description if description is None else description
    return replace(model, meta=replace(model.meta, extra=kept, description=told))


def rename_all(model: RelayModel, names: Mapping[str, str]) -> RelayModel:
    """Return the model with other names for inputs, outputs, weights and nodes.

    A node and its output may have one name; then both get the new one.

    Args:
        model: The model.
        names: New names by the names that something has.

    Raises:
        OptionError: A name is unknown, stands for several outputs, is empty or taken.
    """
    ends = (model.meta.inputs, model.meta.outputs, model.params, node_names(model.main))
    known = list(map(set, ends))
    for name in names.keys() - set().union(*known):
        told = "no input, output, weight or node has this name"
        raise OptionError(f"rename: {name!r}: {told}.{near_names(name, set().union(*known))}")
    found = [{old: new for old, new in names.items() if old in each} for each in known]
    return rename(model, *found)


def rename(
    model: RelayModel,
    inputs: Mapping[str, str] = {},
    outputs: Mapping[str, str] = {},
    weights: Mapping[str, str] = {},
    nodes: Mapping[str, str] = {},
) -> RelayModel:
    """Return the model with other names for some of what it has.

    What is known about an input, an output or a node goes with it.

    Args:
        model: The model.
        inputs: New names of inputs by their names.
        outputs: New names of outputs by their names.
        weights: New names of weights by their names.
        nodes: New names of the source's nodes by their names.

    Raises:
        OptionError: A name is unknown, stands for several outputs, is empty or taken.
    """
    if weights or nodes:
        model = _rename_nodes(_rename_weights(model, weights), nodes)
    if not inputs and not outputs:
        return model
    taken = set(model.params)
    found_inputs = _apply_names("rename_inputs", model.meta.inputs, inputs, taken)
    found_outputs = _apply_names("rename_outputs", model.meta.outputs, outputs, taken)
    _refuse_joined(model, found_inputs, found_outputs)
    meta = replace(
        model.meta,
        inputs=found_inputs,
        outputs=found_outputs,
        extra=_facts(model.meta.extra, inputs, outputs),
        states={outputs.get(x, x): inputs.get(y, y) for x, y in model.meta.states.items()},
    )
    if not inputs:
        return replace(model, meta=meta)
    main, memo = model.main, dict[Var, Expr]()
    for param in main.params:
        if param.name_hint in inputs and param.name_hint not in model.params:
            memo[param] = Var(inputs[param.name_hint], param.type, param.span)
    params = [new if isinstance(new := memo.get(p, p), Var) else p for p in main.params]
    body = substitute(main.body, memo)
    return _with_main(model, main.evolve(params=params, body=body)).evolve(meta=meta)


def _rename_weights(model: RelayModel, names: Mapping[str, str]) -> RelayModel:
    found = _apply_names("rename_weights", [*model.params], names, {*model.meta.inputs})
    if not names:
        return model
    memo: dict[Expr, Expr] = {
        param: Var(names[param.name_hint], param.type, param.span)
        for param in model.main.params
        if param.name_hint in names and param.name_hint in model.params
    }
    params = dict(zip(found, model.params.values(), strict=True))
    main = rewrite_function(model.main, lambda _node, new: new, memo)
    return _with_main(model, main).evolve(params=params)


def _rename_nodes(model: RelayModel, names: Mapping[str, str]) -> RelayModel:
    known = list(dict.fromkeys(node_names(model.main)))
    _apply_names("rename_nodes", known, names, set())
    if not names:
        return model

    def name(_node: Expr, new: Expr) -> Expr:
        if new.span is None or new.span.source_name not in names:
            return new
        named = copy.copy(new)
        named.span = Span(names[new.span.source_name])
        return named

    def name_below(function: Function) -> Function:
        return rewrite_function(function, name)

    main = name_below(map_bodies(model.main, name_below))
    extra = _renamed_keys(model.meta.extra, TRAINING_NODES, names)
    return _with_main(model, main).evolve(meta=replace(model.meta, extra=extra))


def node_names(main: Function) -> Iterable[str]:
    spans = (node.span for node in all_nodes(main.body) if not isinstance(node, Var))
    return (span.source_name for span in spans if span is not None and span.source_name)


def _renamed_keys(extra: Mapping[str, str], fact: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return facts of which one is JSON by name; what a file says otherwise stays as it is."""
    try:
        told = parse_json(extra.get(fact, ""))
    except ValueError:
        return {**extra}
    if not isinstance(told, dict):
        return {**extra}
    return {**extra, fact: json.dumps({names.get(key, key): each for key, each in told.items()})}


def _with_main(model: RelayModel, main: Function) -> RelayModel:
    functions = {v: main if f is model.main else f for v, f in model.mod.functions.items()}
    return model.evolve(mod=InferType()(model.mod.with_functions(functions)))


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
