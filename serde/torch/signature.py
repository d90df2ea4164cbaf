"""What an exported program gives, as names of a model's outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any as AnyValue, Final

from serde.core import dataclass, parse_json, replace
from serde.torch.model import Argument, Ref

__all__ = ["Given", "Results", "name_leaves", "name_results"]

_DEEPEST: Final = 50
"""Deeper trees of outputs have no names."""

_CHANGED: Final = {
    "buffer_mutation": "new",
    "parameter_mutation": "new",
    "user_input_mutation": "new",
    "gradient_to_parameter": "grad",
    "gradient_to_user_input": "grad",
}
"""Kinds of results that are new values of something, with how their names end."""


@dataclass(frozen=True, slots=True)
class Given:
    """One result of an exported program.

    Attributes:
        kind: What it is: ``"user_output"``, ``"buffer_mutation"`` and so on.
        value: The value.
        target: The buffer, parameter or input of which it is the new value or the gradient.
        name: Keys that lead to it in what the program returns, if there are any.
    """

    kind: str
    value: Argument
    target: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """Outputs of a model.

    Attributes:
        names: Their names.
        values: What they are.
        notes: What users should know of them.
    """

    names: list[str]
    values: list[Argument]
    notes: list[str]


def name_results(given: Iterable[Given], inputs: Collection[str]) -> Results:
    """Return results as outputs: first those of users, then new values of buffers and inputs.

    What users get is called by its keys, ``last_hidden_state``, or else as the value in the graph.
    A buffer ``cache`` that the program changes has its new value as the output ``cache_new``.
    None among the results is no output; neither are tokens, which only order side effects.

    Args:
        given: The results in the program's own order.
        inputs: Names of inputs, which no output gets.
    """
    results = Results([], [], [])
    taken = set(inputs)
    found = list(given)
    for place, each in enumerate(each for each in found if each.kind not in _CHANGED):
        if each.kind == "token" or each.value is None:
            continue
        if isinstance(each.value, str):
            results.notes.append(f"output {place} is the text {each.value[:100]!r}, left out")
            continue
        own = each.value.name if isinstance(each.value, Ref) else f"output_{place}"
        name = each.name or own
        results.names.append(_take(name, taken))
        results.values.append(each.value)
    for each in found:
        if each.kind in _CHANGED:
            name = _take(f"{each.target}_{_CHANGED[each.kind]}", taken)
            results.names.append(name)
            results.values.append(each.value)
            results.notes.append(f"{each.target} is changed: its new value is the output {name}")
    return results


def name_leaves(given: Sequence[Given], spec: str) -> list[Given]:
    """Return what a program gives, what users get with the keys that lead to it.

    Args:
        given: What it gives.
        spec: The tree that users get as ``torch.utils._pytree.treespec_dumps`` writes it; one with
            another number of leaves gives no names.
    """
    users = [each for each in given if each.kind not in _CHANGED and each.kind != "token"]
    try:
        names = list(_leaves(parse_json(spec)[1], (), False, 0))
    except (LookupError, TypeError, ValueError):
        names = []
    if len(names) != len(users):
        return list(given)
    by_place = dict(zip(map(id, users), names, strict=True))
    return [replace(each, name=by_place.get(id(each), "")) for each in given]


def _leaves(spec: AnyValue, keys: tuple[str, ...], named: bool, depth: int) -> Iterator[str]:
    """Yield names of the leaves of a tree."""
    if depth > _DEEPEST:
        raise ValueError("too deep a tree")
    if spec["type"] is None:
        yield "_".join(keys) if named else ""
        return
    children = spec["children_spec"]
    context = parse_json(spec["context"])
    has_keys = isinstance(context, list) and len(context) == len(children)
    for place, child in enumerate(children):
        inner = (*keys, str(context[place] if has_keys else place))
        yield from _leaves(child, inner, named or has_keys, depth + 1)


def _take(wanted: str, taken: set[str]) -> str:
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name
