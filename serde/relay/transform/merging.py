"""Two models in one, of which the second reads what the first gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serde.errors import OptionError, Unsupported
from serde.relay.ir import RelayModel, UniqueNames, tensor_type
from serde.relay.transform.cutting import find_values
from serde.relay.transform.inline_calls import InlineCalls, ToGraphNormalForm
from serde.relay.transform.input_types import with_input_types
from serde.relay.transform.preprocessing import named_results, with_ends
from serde.relay.transform.remove_dead_code import RemoveUnusedFunctions
from serde.relay.transform.renaming import all_names, rename

__all__ = ["merge_models"]


def merge_models(
    model: RelayModel, other: RelayModel, inputs: Mapping[str, str] | None = None
) -> RelayModel:
    """Return one model of two: what the first gives is given to inputs of the second.

    Outputs that the second reads are none of the result; other inputs and outputs stay, those of
    the first in front. Names of the second that the first has, too, get ``second_`` in front.
    Dimensions of one name are one; what is told of the whole is what the first tells.

    Args:
        model: The first, with inferred types.
        other: The second, likewise.
        inputs: By inputs of the second, the outputs, values or nodes of the first that they are;
            those of equal names if left out.

    Raises:
        OptionError: A name is unknown, nothing is read, or a type does not fit.
        Unsupported: The second has functions that call themselves, or data types of its own.
    """
    outputs, known = model.meta.outputs, other.meta.inputs
    names = {name: name for name in known if name in outputs} if inputs is None else inputs
    if not names or not {*names} <= {*known}:
        listed = f"outputs {', '.join(outputs)}; inputs of the second {', '.join(known)}"
        raise OptionError(f"merge: no {', '.join({*names} - {*known}) or 'equal names'} ({listed})")
    model, values = find_values(model, "merge", [*names.values()])
    fed = dict(zip(names, values, strict=True))
    types = {name: tensor_type(value) for name, value in fed.items()}
    mod = RemoveUnusedFunctions()(ToGraphNormalForm()(InlineCalls()(other.mod)))
    if len(mod.functions) > 1 or mod.type_definitions:
        raise Unsupported("the second model has functions that call themselves, or data types")
    shapes = {name: type_.shape for name, type_ in types.items()}
    dtypes = {name: type_.dtype for name, type_ in types.items()}
    other = other.evolve(mod=with_input_types(mod, {*other.params}, shapes, dtypes))
    kept = [(name, value) for name, value in named_results(model) if name not in names.values()]
    gone = {*names.values()} - {each.name_hint for each in model.main.params}
    taken, own = (set[str]().union(*all_names(each)) for each in (model, other))
    free = UniqueNames(taken | own)
    same = sorted((own & taken) - gone - fed.keys())
    other = rename(other, names={name: free.reserve(f"second_{name}", "_") for name in same})
    memo = {each: fed[each.name_hint] for each in other.inputs() if each.name_hint in fed}
    meta = replace(
        model.meta,
        labels=other.meta.labels or model.meta.labels,
        extra={**other.meta.extra, **model.meta.extra},
        states={**other.meta.states, **model.meta.states},
    )
    params = [*model.main.params, *(each for each in other.main.params if each not in memo)]
    model = model.evolve(meta=meta, params={**model.params, **other.params})
    return with_ends(model, params, [*kept, *named_results(other)], memo)
