"""What a target takes of an operator, as data: what each operand and attribute may be.

``Takes(data=(FLOATS, ranks(3, 4)), axis=at(1), method=one_of("linear", "cubic"), softcap=None)``
holds for calls that may be written, and words the refusal of any other. A plain value stands for
itself; for an operand, None stands for one that is left out.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import dataclass, dtype_name, shown
from serde.errors import RelayError, Unsupported
from serde.relay.ir import Call, Constant, Expr, OpDef, TensorType, TupleType, is_absent, is_float

__all__ = [
    "ANY", "AXES", "CONSTANT", "FLOATS", "HELD", "ONE", "RESULT", "SIGNED", "SINGLE", "Fact",
    "NotTaken", "Takes", "all_are", "at", "between", "dtypes", "enumerate_words", "like",
    "of_dtypes", "ranks", "tensors",
]  # fmt: skip

RESULT: Final = "result"
"""What stands for the result of a call beside its operands."""


def enumerate_words(words: Iterable[AnyValue], last: str = "and") -> str:
    """Return words with commas between them, and a word before the last one."""
    *first, end = map(str, words)
    return f"{', '.join(first)} {last} {end}" if first else end


def tensors(x: Expr) -> list[TensorType]:
    """Return the types of the tensors that an operand is; none of one that is left out."""
    fields = x.type.fields if isinstance(x.type, TupleType) else (x.type,)
    return [each for each in fields if isinstance(each, TensorType)]


def _found(x: AnyValue) -> str:
    if isinstance(x, Expr):
        return repr(x.type)
    return dtype_name(x) if isinstance(x, np.dtype) else shown(x)


@dataclass(frozen=True, slots=True)
class Fact:
    """What an operand or attribute may be.

    Attributes:
        text: How a message says it; empty where it may be anything.
        holds: Whether one is that, in a call.
        found: What a message shows of one that is not.
    """

    text: str
    holds: Callable[[AnyValue, Call], bool]
    found: Callable[[AnyValue], str] = _found


def _dtypes_of(x: AnyValue) -> list[str]:
    """Return the dtypes of an operand, or the one that an attribute names."""
    if isinstance(x, Expr):
        return list(dict.fromkeys(each.dtype for each in tensors(x)))
    return [] if x is None else [dtype_name(x)]


def of_dtypes(text: str, takes: Callable[[str], bool]) -> Fact:
    return Fact(
        text, lambda x, _: all(map(takes, _dtypes_of(x))), lambda x: enumerate_words(_dtypes_of(x))
    )


ANY: Final = Fact("", lambda _x, _node: True)
FLOATS: Final = of_dtypes("floats", is_float)
SIGNED: Final = of_dtypes("signed numbers", lambda dtype: not dtype.startswith("uint"))
CONSTANT: Final = Fact("a constant", lambda x, _: isinstance(x, Constant))


def _range_text(low: float, high: float) -> str:
    if high == math.inf:
        return f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"


def _is_held(x: float, node: Call) -> bool:
    double = any(each.dtype == "float64" for each in tensors(node.args[0]))
    return not double or float(np.float32(x)) == x


HELD: Final = Fact("a number that float32 holds, of float64", _is_held)


def dtypes(*names: str) -> Fact:
    """Return that a tensor is of one of these dtypes; of several tensors, each.

    Raises:
        TypeError: There is no such dtype.
    """
    known = frozenset(map(dtype_name, names))
    return of_dtypes(enumerate_words(names), known.__contains__)


SINGLE: Final = dtypes("float16", "bfloat16", "float32")
"""Floats of which float32 holds all."""


def ranks(low: int, high: float | None = None) -> Fact:
    """Return that a tensor has so many axes, or from one number of them to another."""
    most = low if high is None else high
    return Fact(
        f"rank {_range_text(low, most)}",
        lambda x, _: all(low <= each.rank <= most for each in tensors(x)),
        lambda x: f"rank {enumerate_words(each.rank for each in tensors(x))}",
    )


AXES: Final = ranks(1, math.inf)
ONE: Final = Fact("one element", lambda x, _: all(each.size == 1 for each in tensors(x)))


def like(operand: str) -> Fact:
    """Return that an operand, or the dtype that an attribute names, has the dtype of another."""

    def holds(x: AnyValue, node: Call) -> bool:
        return set(_dtypes_of(x)) <= set(_dtypes_of(_operand(node, operand)))

    return Fact(f"the dtype of {operand}", holds, lambda x: enumerate_words(_dtypes_of(x)))


def at(axis: int) -> Fact:
    """Return that an axis is that one, of the first operand's."""

    def holds(x: AnyValue, node: Call) -> bool:
        (type_, *_) = tensors(node.args[0])
        return bool(type_.rank) and x % type_.rank == axis % type_.rank

    return Fact(str(axis), holds)


def between(low: float, high: float) -> Fact:
    """Return that a number, or all of several, are between two others, those included."""

    def holds(x: AnyValue, _node: Call) -> bool:
        return all(low <= entry <= high for entry in (x if isinstance(x, tuple) else (x,)))

    return Fact(_range_text(low, high), holds)


def all_are(value: AnyValue) -> Fact:
    """Return that all entries of an attribute have one value."""
    return Fact(f"all {value!r}", lambda x, _: all(entry == value for entry in x))


def _as_fact(given: AnyValue) -> Fact:
    if isinstance(given, Fact):
        return given
    many = typing.get_origin(given) is typing.Literal
    values = typing.get_args(given) if many else (given,)

    def holds(x: AnyValue, _node: Call) -> bool:
        if isinstance(x, Expr):
            return is_absent(x)
        return x in values

    return Fact(enumerate_words(map(_found, values), "or"), holds)


@cache
def _places(operator: OpDef) -> dict[str, int]:
    return {each.name: index for index, each in enumerate(operator.operands)}


def _operand(node: Call, name: str) -> Expr:
    if not isinstance(node.op, OpDef):
        raise RelayError(f"{node!r} calls no operator")
    return node if name == RESULT else node.args[_places(node.op)[name]]


class NotTaken(Unsupported):
    """A call whose types or attributes are none of those that may be written."""


class Takes:
    """What may be written of an operator: facts by operand, attribute and :data:`RESULT`."""

    def __init__(self, **facts: AnyValue) -> None:
        self._facts: dict[str, tuple[Fact, ...]] = {
            name: tuple(map(_as_fact, given)) if _is_row(given) else (_as_fact(given),)
            for name, given in facts.items()
        }

    @property
    def names(self) -> Collection[str]:
        """Names of operands and attributes."""
        return self._facts.keys()

    def over(self, others: Mapping[str, AnyValue]) -> Takes:
        """Return these facts, and others of what these say nothing of."""
        found = Takes(**{name: x for name, x in others.items() if name not in self._facts})
        found._facts = {**self._facts, **found._facts}
        return found

    def holds(self, node: Call) -> bool:
        """Whether all facts hold in a call."""
        for name, facts in self._facts.items():
            x = node.attrs[name] if name in node.attrs else _operand(node, name)
            for fact in facts:
                if not fact.holds(x, node):
                    return False
        return True

    def fault(self, node: Call) -> str:
        """Return what is taken instead of what a call has; empty where all facts hold."""
        name, fact, x = next(self._broken(node), ("", ANY, None))
        return name and f"{name}: takes {fact.text}; found {fact.found(x)}"

    def _broken(self, node: Call) -> Iterator[tuple[str, Fact, AnyValue]]:
        for name, facts in self._facts.items():
            x = node.attrs[name] if name in node.attrs else _operand(node, name)
            yield from ((name, fact, x) for fact in facts if not fact.holds(x, node))

    def __str__(self) -> str:
        texts = {n: ", ".join(filter(None, (f.text for f in x))) for n, x in self._facts.items()}
        return "; ".join(f"{name}: {text}" for name, text in texts.items() if text)


def _is_row(given: AnyValue) -> bool:
    """Whether facts are given, rather than a value that is a row of numbers."""
    return isinstance(given, tuple) and any(isinstance(each, Fact) for each in given)
