"""Names of tensors that stay the same when a file is read and written again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from serde.nnef.model import NnefModel, Operation, rename_operation
from serde.nnef.names import Identifiers, Labels

__all__ = ["rename_tensors"]

_DECLARED: Final = ("external", "variable", "constant")


def rename_tensors(
    model: NnefModel, nodes: Collection[str], constants: Collection[str]
) -> NnefModel:
    """Return a graph whose tensors are called after the nodes that they come from.

    The last assignment of a node has its name, those before it have numbers behind that, and a
    constant is called after the first that reads it. In a file that is read each assignment is a
    node, and what makes one of several has the name of the last.

    Args:
        model: The graph.
        nodes: Names that nodes of the source have, beside those made of operators' names.
        constants: Labels of variables that are constants of the source.
    """
    identifiers, labels = Identifiers(), Labels()
    renamed = {
        name: identifiers.claim(name, exact=True)
        for name in dict.fromkeys((*model.inputs, *model.outputs))
    }
    relabelled: dict[str, str] = {}
    held: dict[str, str] = {}
    for name, each in model.variables().items():
        label = each.attributes["label"]
        if label in constants:
            held[name] = label
        else:
            relabelled[label] = labels.claim(label)
            renamed[name] = identifiers.claim(label)
    steps = [each for each in model.operations if each.op not in _DECLARED]
    sources = {place: model.sources.get(each.results()[0], "") for place, each in enumerate(steps)}
    last = {source if source in nodes else place: place for place, source in sources.items()}
    named = frozenset(last.values())
    order = sorted(sources, key=lambda place: place not in named)
    for place in order:
        for name in steps[place].results():
            if name not in renamed:
                renamed[name] = identifiers.claim(sources[place] or name)
    for step in steps:
        for ref in step.refs():
            if ref.name not in renamed:
                name = f"{renamed[step.results()[0]]}_constant"
                renamed[ref.name] = identifiers.claim(name)
                if ref.name in held:
                    relabelled[held[ref.name]] = labels.claim(name)
    names = {**model.names, **{name: relabelled[label] for name, label in held.items()}}
    return replace(
        model,
        operations=[_rename(each, renamed, relabelled) for each in model.operations],
        weights={relabelled[label]: each for label, each in model.weights.items()},
        quantization={renamed[name]: each for name, each in model.quantization.items()},
        stored_quantized=frozenset(relabelled[label] for label in model.stored_quantized),
        names={renamed[name]: each for name, each in names.items() if name in renamed},
        sources={renamed[name]: each for name, each in model.sources.items()},
    )


def _rename(
    operation: Operation, renamed: Mapping[str, str], relabelled: Mapping[str, str]
) -> Operation:
    found = rename_operation(operation, renamed)
    if found.op != "variable":
        return found
    label = relabelled[found.attributes["label"]]
    return replace(found, attributes={**found.attributes, "label": label})
