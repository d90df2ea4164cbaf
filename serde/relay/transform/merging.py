"""Two models in one, of which the second reads what the first gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from serde.core.texts import near_names
from serde.errors import OptionError, Unsupported
from serde.relay.ir import Expr, RelayModel, Tuple, UniqueNames, tensor_type
from serde.relay.ir.bodies import substitute
from serde.relay.transform.base import Sequential
from serde.relay.transform.cutting import find_values, results_of
from serde.relay.transform.inline_calls import InlineCalls
from serde.relay.transform.input_types import with_input_types
from serde.relay.transform.preprocessing import with_ends
from serde.relay.transform.remove_dead_code import RemoveUnusedFunctions
from serde.relay.transform.renaming import node_names, rename
from serde.relay.transform.result_flattening import flatten_results

__all__ = ["merge_models"]


def merge_models(
    model: RelayModel,
    other: RelayModel,
    inputs: Mapping[str, str] | None = None,
    *,
    prefix: str = "second_",
) -> RelayModel:
    """Return one model of two: what the first gives is given to inputs of the second.

    Outputs that the second reads are none of the result; other inputs and outputs stay, those of
    the first in front. Dimensions of one name are one, and what is told of the model as a whole
    is what the first says.

    Args:
        model: The first, with inferred types.
        other: The second, likewise.
        inputs: By inputs of the second, the outputs, values or nodes of the first that they are;
            inputs are outputs of their own names if left out.
        prefix: Put before names of the second that the first has, too.

    Raises:
        OptionError: A name is unknown, nothing is read, or a type does not fit.
        Unsupported: The second has functions that call themselves, or data types of its own.
    """
    model, other = flatten_results(model), flatten_results(other)
    if inputs is None:
        inputs = {name: name for name in other.meta.inputs if name in model.meta.outputs}
    for name in inputs.keys() - {*other.meta.inputs}:
        near = near_names(name, other.meta.inputs)
        raise OptionError(f"merge: no input {name!r} of {', '.join(other.meta.inputs)}.{near}")
    if not inputs:
        told = f"outputs {', '.join(model.meta.outputs)}, inputs {', '.join(other.meta.inputs)}"
        raise OptionError(f"merge: no output has the name of an input of the second ({told})")
    model, values = find_values(model, "merge", [*inputs.values()])
    fed = dict(zip(inputs, values, strict=True))
    kept = {
        name: value
        for name, value in zip(model.meta.outputs, results_of(model), strict=True)
        if name not in inputs.values()
    }
    taken = [*kept, *(each.name_hint for each in model.main.params)]
    other = _apart(_typed(other, fed), taken, {*node_names(model.main)}, prefix, {*inputs})
    memo = {each: fed[each.name_hint] for each in other.inputs() if each.name_hint in fed}
    # One body, so that what several outputs of the second are computed from stays shared.
    made = substitute(Tuple(results_of(other)), memo)
    fields = made.fields if isinstance(made, Tuple) else ()
    results = {**kept, **dict(zip(other.meta.outputs, fields, strict=True))}
    params = [*model.main.params, *(each for each in other.main.params if each not in memo)]
    meta = replace(
        model.meta,
        labels=other.meta.labels or model.meta.labels,
        extra={**other.meta.extra, **model.meta.extra},
        states={**other.meta.states, **model.meta.states},
    )
    whole = model.evolve(meta=meta, params={**model.params, **other.params})
    return with_ends(whole, params, [*results.values()], [*results])


def _typed(other: RelayModel, fed: Mapping[str, Expr]) -> RelayModel:
    """Return the second model for inputs of the types that it is given."""
    types = {name: tensor_type(value) for name, value in fed.items()}
    for each in other.inputs():
        given = types.get(each.name_hint)
        if given is not None and given.dtype != tensor_type(each).dtype:
            raise OptionError(f"merge: {each.name_hint!r} is {each.type!r}, and is given {given!r}")
    mod = Sequential([InlineCalls(), RemoveUnusedFunctions()])(other.mod)
    if len(mod.functions) > 1 or mod.type_definitions:
        raise Unsupported("the second model has functions that call themselves, or data types")
    shapes = {name: type_.shape for name, type_ in types.items()}
    return find_values(
        other.evolve(mod=with_input_types(mod, {*other.params}, shapes, {})), "merge", ()
    )[0]


def _apart(
    other: RelayModel, taken: Iterable[str], nodes: set[str], prefix: str, fed: set[str]
) -> RelayModel:
    """Return the second model under names that the first does not have."""
    known = {*taken}
    own = {each.name_hint for each in other.main.params} | {*other.meta.outputs}
    free, free_nodes = UniqueNames(known | own), UniqueNames(nodes | {*node_names(other.main)})
    ends = {name: free.reserve(prefix + name, "_") for name in sorted(known & own - fed)}
    inputs, outputs, weights = (
        {name: ends[name] for name in names if name in ends}
        for names in (other.meta.inputs, other.meta.outputs, other.params)
    )
    same = sorted(nodes & {*node_names(other.main)})
    renamed = {name: free_nodes.reserve(prefix + name, "_") for name in same}
    return rename(other, inputs, outputs, weights, renamed)
