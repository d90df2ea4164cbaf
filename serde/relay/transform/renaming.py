"""Other names for the inputs and outputs of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from serde.errors import OptionError
from serde.relay.ir import Expr, RelayModel, Var
from serde.relay.ir.bodies import substitute
from serde.relay.transform.infer_type import InferType

__all__ = ["rename"]


def rename(
    model: RelayModel, inputs: Mapping[str, str] = {}, outputs: Mapping[str, str] = {}
) -> RelayModel:
    """Return the model with other names for some of its inputs and outputs.

    What is known about an input or output goes with it.

    Args:
        model: The model.
        inputs: New names of inputs by their names.
        outputs: New names of outputs by their names.

    Raises:
        OptionError: A name is unknown, stands for several outputs, is empty or taken.
    """
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
    )
    if not inputs:
        return replace(model, meta=meta)
    main, memo = model.main, dict[Var, Expr]()
    for param in main.params:
        if param.name_hint in inputs and param.name_hint not in model.params:
            memo[param] = Var(inputs[param.name_hint], param.type, param.span)
    params = [new if isinstance(new := memo.get(p, p), Var) else p for p in main.params]
    body = substitute(main.body, memo)
    new_main = main.evolve(params=params, body=body)
    functions = {v: new_main if f is main else f for v, f in model.mod.functions.items()}
    return model.evolve(mod=InferType()(model.mod.with_functions(functions)), meta=meta)


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
    for key, text in extra.items():
        name, dot, fact = key.rpartition(".")
        if key == "predicted_probabilities":
            text = outputs.get(text, text)
        elif fact == "state" and dot:
            # The output that a state becomes, or the state itself where it stays what it is.
            text = inputs.get(text, text) if text == name else outputs.get(text, text)
        found[f"{ends[name]}.{fact}" if dot and name in ends else key] = text
    return found
