"""One Relay model in a format: written, run by what the format belongs to, and read again.

Each format has a judge (:mod:`support.differential_judges`). :mod:`support.differential_paths`
takes what a format gives when it is read again on to other formats.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from support.differential_judges import Judge, NoJudge, evaluate, fitting, is_open, summarize
from support.random_graphs import Item
from support.typed_graphs import Choice, TypedGraph, operators_of

from serde.errors import ConverterBug, SerdeError, TypeInferenceError, UnsupportedModelError
from serde.relay.ir.model import RelayModel

__all__ = ["Fault", "Finding", "Refused", "Trail", "judge_model", "named_feeds", "sayable"]

Array = np.ndarray


NOT_READ = ("a function of TIR", "data-dependent expression")
"""What is written, but not read again: TVM's own functions; lengths that values tell PyTorch."""


class Refused(Exception):
    """The format cannot say something of a model."""


class Fault(Exception):
    """Something is wrong with a conversion.

    Attributes:
        kind: ``wrong`` (other results), ``bug`` (an exception of no class of serde's, or
            `ConverterBug`), ``error`` (an error of serde's that is no refusal), ``engine`` (what
            runs the format does not run it).
        said: What was found.
    """

    def __init__(self, kind: str, said: str) -> None:
        super().__init__(f"{kind}: {said}")
        self.kind = kind
        self.said = said


@dataclass(frozen=True)
class Finding:
    """What is wrong with a conversion of a graph.

    Attributes:
        seed: What the graph was made from.
        path: The formats that it went through, such as ``onnx>torch``.
        kind: See :class:`Fault`.
        said: What was found.
        operators: The operators of the model.
    """

    seed: int
    path: str
    kind: str
    said: str
    operators: tuple[str, ...]


def compare(found: Sequence[Any], outputs: Sequence[Item]) -> None:
    """Raise where results are not those of a graph, to the precision of float32.

    Many a kernel of ONNX Runtime's, and all of Core ML's, compute float64 as float32.

    Args:
        found: The results.
        outputs: What they should be.

    Raises:
        Fault: They are not.
    """
    if len(found) != len(outputs):
        raise Fault("wrong", f"{len(found)} results, expected {len(outputs)}")
    for index, (result, output) in enumerate(zip(found, outputs, strict=True)):
        wanted = output.runs[0] if output.is_float else output.value
        actual = np.asarray(result)
        if actual.shape == (1,) and wanted.shape == ():
            actual = actual.reshape(())
        if actual.shape != wanted.shape:
            raise Fault("wrong", f"result {index}: shape {actual.shape}, expected {wanted.shape}")
        apart = np.abs(actual.astype(np.float64) - wanted.astype(np.float64))
        bound = _tolerance(output)
        if not np.all(apart <= bound):
            most = float(np.max(np.where(apart <= bound, 0, apart)))
            raise Fault("wrong", f"result {index}: off by {most:.3g} of {output.value.dtype}")


def _tolerance(output: Item) -> Array | float:
    if not output.is_float:
        return 0.0
    scale = float(np.abs(output.runs[0]).max(initial=1.0))
    return output.tolerance + 2e-5 * scale


@dataclass
class Trail:
    """What became of one graph.

    Attributes:
        findings: What is wrong.
        agreed: How often results agreed, by path.
        refused: Reasons of refusals, by path.
    """

    findings: list[Finding] = field(default_factory=list)
    agreed: dict[str, int] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)


def judge_model(
    judge: Judge, choice: Choice, folder: Path, *, back: bool = True
) -> RelayModel | None:
    """Write a model, run it, compare; return what it is read as.

    Args:
        judge: The format.
        choice: The model, its inputs, and what it must give.
        folder: Where to write.
        back: Whether to read it again.

    Raises:
        Refused: It cannot be said.
        Fault: It is wrong.
    """
    feeds = [choice.feeds[name] for name in choice.model.meta.inputs]
    path = _attempt(lambda: judge.write(choice.model, folder))
    given = [
        fitting(value, variable)
        for value, variable in zip(feeds, choice.model.inputs(), strict=True)
    ]
    try:
        compare(_engine(lambda: judge.run(path, choice.model, given)), choice.outputs)
    except NoJudge:
        if not back:
            return None
    if not back:
        return None
    try:
        again = _attempt(lambda: judge.read(path, choice.model))
    except Refused as refused:
        if is_open(choice.model) or any(each in str(refused) for each in NOT_READ):
            return None
        raise Fault("error", f"read back: {refused}") from refused
    except Fault as fault:
        may_fail = is_open(choice.model) and "PyTorch does not take it" in fault.said
        if may_fail or any(each in fault.said for each in NOT_READ):
            return None
        raise Fault(fault.kind, f"read back: {fault.said}") from fault
    named = named_feeds(again, choice)
    try:
        compare(_attempt(lambda: evaluate(again, named)), choice.outputs)
    except Fault as fault:
        raise Fault(fault.kind, f"read back: {fault.said}") from fault
    return again


def named_feeds(model: RelayModel, choice: Choice) -> dict[str, Array]:
    """Return the inputs of a graph by the names that they have in what was read of it."""
    names = model.meta.inputs
    if set(names) <= choice.feeds.keys():
        return {name: choice.feeds[name] for name in names}
    return dict(zip(names, choice.feeds.values(), strict=True))


def _attempt(step: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return step()
    except (UnsupportedModelError, TypeInferenceError) as error:
        raise Refused(summarize(error)) from error
    except ConverterBug as error:
        raise Fault("bug", summarize(error)) from error
    except SerdeError as error:
        raise Fault("error", summarize(error)) from error
    except (Fault, KeyboardInterrupt):
        raise
    except Exception as error:
        raise Fault("bug", summarize(error)) from error


def _engine(step: Callable[[], list[Array]]) -> list[Array]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return step()
    except NoJudge:
        raise
    except Exception as error:
        raise Fault("engine", summarize(error)) from error


def sayable(judge: Judge, graph: TypedGraph, folder: Path, trail: Trail) -> Choice | None:
    """Return the model of those nodes of a graph that a format can say, where there are any."""
    whole = graph.without(judge.inexact)
    if whole is not None:
        try:
            _attempt(lambda: judge.write(whole.model, folder))
            return whole
        except Refused:
            pass
        except Fault:
            return whole
    found: set[str] = set(judge.inexact)
    for item in graph.items:
        names = operators_of(item.expr)
        if names & found:
            continue
        single = graph.maker.choice([item])
        try:
            _attempt(lambda: judge.write(single.model, folder))  # noqa: B023
        except Refused as error:
            trail.refused.setdefault(judge.name, []).append(str(error))
            found |= graph.own_operators(item)
        except Fault:
            continue
    return graph.without(frozenset(found))
