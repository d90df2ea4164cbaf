"""Random graphs on their way through formats, and what is smallest of those that fail.

What a format gives when it is read again goes on to other formats, which are judged in turn by
:mod:`support.differential`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from support.differential import Fault, Finding, Refused, Trail, judge_model, named_feeds, sayable
from support.differential_judges import JUDGES, available, summarize
from support.random_graphs import Mistyped
from support.typed_graphs import Choice, TypedGraph, generate, operators_of

from serde.relay.ir.model import RelayModel

__all__ = ["follow", "judge_seed", "onward", "reproduce"]

Onward = Callable[[str], Sequence[str]]
"""Gives, for a format, those that what was read of it is written in."""


def onward(seed: int, names: Sequence[str], *, every: bool = False) -> Onward:
    """Return where a graph goes on to: each pair has its turn as seeds go on, or all at once."""

    def targets(name: str) -> list[str]:
        others = [each for each in names if each != name]
        place = names.index(name)
        return others if every or not others else [others[(seed + place) % len(others)]]

    return targets


def follow(
    graph: TypedGraph, names: Sequence[str], onwards: Onward, *, archives: bool = True
) -> Trail:
    """Take a graph through formats, and each thing that is read of them through others.

    Args:
        graph: The graph.
        names: The formats.
        onwards: Where to go on from each.
        archives: Whether ``torch.export``, which takes seconds, makes what is read again.
    """
    trail = Trail()
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            back = archives or name != "torch"
            _follow_one(graph, name, onwards(name), Path(directory), trail, back=back)
    return trail


def judge_seed(
    seed: int, names: Sequence[str], onwards: Onward, *, archives: bool = True
) -> dict[str, Any]:
    """Return what became of the graph of a seed, as JSON has it; see :func:`follow`."""
    trail, operators = Trail(), frozenset[str]()
    try:
        graph = generate(seed)
    except Mistyped as error:
        trail.findings.append(Finding(seed, "relay", "type", summarize(error), ()))
    else:
        operators = operators.union(*(operators_of(item.expr) for item in graph.items))
        trail = follow(graph, names, onwards, archives=archives)
    return {
        "seed": seed,
        "findings": [asdict(each) for each in trail.findings],
        "agreed": sorted(trail.agreed),
        "refused": trail.refused,
        "operators": sorted(operators),
    }


def reproduce(seed: int, path: str) -> str:
    """Return the smallest part of the graph of a seed that is wrong on a path, with its inputs.

    Args:
        seed: The seed.
        path: The formats; the first is what all of them are tried as, if none is given.
    """
    graph = generate(seed)
    names = path.split(">") if path else []
    found = []
    for name in names[:1] or available():
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            choice = sayable(JUDGES[name], graph, folder, Trail())
            problem = None if choice is None else _problem(choice, name, names[1:], folder)
            if choice is None or problem is None:
                found.append(f"{name}: nothing is wrong")
                continue
            part = _smaller(graph, choice, lambda c: _problem(c, name, names[1:], folder))  # noqa: B023
            values = {key: value.tolist() for key, value in part.feeds.items()}
            weights = {key: each.array().tolist() for key, each in part.model.params.items()}
            said = _problem(part, name, names[1:], folder)
            found.append(f"{name}: {said}\n{_text(part.model)}\n{values}\n{weights}")
    return "\n\n".join(found)


def _text(model: RelayModel) -> str:
    """Return a model as text, less what holds the values of its constants."""
    return model.mod.astext().partition("#[metadata]")[0].rstrip()


def _problem(choice: Choice, name: str, targets: Sequence[str], folder: Path) -> str | None:
    """Return what is wrong with a model on the way through formats."""
    try:
        again = judge_model(JUDGES[name], choice, folder)
        for target in targets if again is not None else ():
            assert again is not None
            read = Choice(choice.outputs, again, named_feeds(again, choice))
            judge_model(JUDGES[target], read, folder, back=False)
    except Fault as fault:
        return str(fault)
    except Refused:
        return None
    return None


def _smaller(graph: TypedGraph, choice: Choice, problem: Callable[[Choice], str | None]) -> Choice:
    """Return the model of the first node alone that has a problem, cut off from what feeds it.

    Operands become inputs as long as the problem stays.
    """
    for item in graph.items:
        part = graph.maker.choice([item])
        if problem(part) is None:
            continue
        cut = graph.maker.cut(item)
        return cut if cut is not None and problem(cut) is not None else part
    return choice


def _follow_one(
    graph: TypedGraph, name: str, targets: Sequence[str], folder: Path, trail: Trail, *, back: bool
) -> None:
    judge = JUDGES[name]
    choice = sayable(judge, graph, folder, trail)
    if choice is None:
        return
    try:
        again = judge_model(judge, choice, folder, back=back)
    except Refused as error:
        trail.refused.setdefault(name, []).append(str(error))
        return
    except Fault as fault:
        _note(trail, graph.seed, name, fault, choice)
        return
    trail.agreed[name] = 1
    if again is None:
        return
    read = Choice(choice.outputs, again, named_feeds(again, choice))
    for target in targets:
        path = f"{name}>{target}"
        if JUDGES[target].inexact & operators_of(choice.model.main.body):
            continue
        try:
            judge_model(JUDGES[target], read, folder, back=False)
        except Refused as error:
            trail.refused.setdefault(path, []).append(str(error))
        except Fault as fault:
            _note(trail, graph.seed, path, fault, choice)
        else:
            trail.agreed[path] = 1


def _note(trail: Trail, seed: int, path: str, fault: Fault, choice: Choice) -> None:
    names = tuple(sorted(operators_of(choice.model.main.body)))
    trail.findings.append(Finding(seed, path, fault.kind, fault.said, names))
