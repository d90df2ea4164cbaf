"""Bounds on what a file may claim, and on what a conversion may take.

Every reader takes its bounds from here. A claim that can be checked against the size of the file
is checked so; figures bound the rest. What multiplies work (functions expanded, loops unrolled,
constants evaluated) draws from the :class:`Budget` of the conversion, whose :class:`Limits` a
user may raise by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any as AnyValue, Final

from serde.core.records import dataclass, fields, replace
from serde.core.texts import shown
from serde.errors import LimitError, OptionError

__all__ = [
    "CHUNK_BYTES", "MAX_ARCHIVE_MEMBERS", "MAX_ARCHIVE_RATIO", "MAX_ATTRIBUTE_CHARS",
    "MAX_GRAPH_TEXT_BYTES", "MAX_MANIFEST_BYTES", "MAX_NAME_BYTES", "MAX_NESTING", "MAX_NODES",
    "MAX_ONNX_TEXT_BYTES", "MAX_OPERATOR_CHARS", "MAX_PROTOBUF_BYTES", "MAX_RANK",
    "MAX_SCRIPT_BYTES", "MAX_SPLIT_MANIFEST_BYTES", "MAX_SYMBOL_CONTAINERS",
    "MAX_SYMBOL_JSON_BYTES", "MAX_TENSORS", "MAX_TORCH_ARCHIVE_MEMBERS", "MAX_TORCH_CONTAINERS",
    "MAX_TORCH_JSON_BYTES", "MAX_WEIGHT_GROWTH", "Budget", "Limits", "budget", "current_limits",
    "spending",
]  # fmt: skip

CHUNK_BYTES: Final = 16 * 2**20
"""Largest piece in which bytes of weights are read, computed or written."""

MAX_RANK: Final = 32
"""Most axes that a tensor may have (MXNet and NumPy allow no more)."""

MAX_TENSORS: Final = 10_000_000
"""Most tensors in one file."""

MAX_NAME_BYTES: Final = 1_000_000
"""Longest name of a tensor or a node."""

MAX_NODES: Final = 10_000_000
"""Most nodes in one graph."""

MAX_GRAPH_TEXT_BYTES: Final = 1 * 2**30
"""Longest text of a graph (symbol JSON, Relay text)."""

MAX_SCRIPT_BYTES: Final = 2**26
"""Longest module in TVMScript, which TVM takes a quarter of an hour to parse."""

MAX_ONNX_TEXT_BYTES: Final = 2**28
"""Longest ONNX model in one of its text forms."""

MAX_SYMBOL_JSON_BYTES: Final = 32 * 2**20
"""Longest symbol JSON: room for some 200,000 nodes as MXNet writes them."""

MAX_SYMBOL_CONTAINERS: Final = 2_000_000
"""Most lists and objects in a symbol's JSON, of which a node has some six."""

MAX_OPERATOR_CHARS: Final = 1000
"""Longest name of an operator."""

MAX_MANIFEST_BYTES: Final = 2**20
"""Longest manifest of a package."""

MAX_NESTING: Final = 200
"""Deepest nesting of lists, objects and subgraphs in a file's text."""

MAX_ATTRIBUTE_CHARS: Final = 1_000_000
"""Longest textual value of one attribute."""

MAX_WEIGHT_GROWTH: Final = 8
"""How many times the size of all weights one that is computed from them may have."""

MAX_ARCHIVE_MEMBERS: Final = 30_000
"""Most members of an archive; the deepest nets of today have some 2,000 weights."""

MAX_TORCH_ARCHIVE_MEMBERS: Final = 100_000
"""Most members of an archive of PyTorch, which has one for each weight."""

MAX_TORCH_JSON_BYTES: Final = 256 * 2**20
"""Longest text of a program of PyTorch: room for some 200,000 nodes with their stack traces."""

MAX_TORCH_CONTAINERS: Final = 20_000_000
"""Most lists and objects in the text of a program of PyTorch, of which a node has some forty."""

MAX_ARCHIVE_RATIO: Final = 1000
"""Most bytes that one byte of a compressed archive may unpack to."""

MAX_PROTOBUF_BYTES: Final = 2**31 - 1
"""Largest message that protobuf reads."""

MAX_SPLIT_MANIFEST_BYTES: Final = 64 * 2**20
"""Longest manifest of a split model: room for some 100,000 regions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one conversion may take beyond what its source holds.

    Attributes:
        nodes: Nodes that are made of others: functions expanded, loops unrolled, operators
            decomposed. Each node of the source adds 450, ten times what any net took.
        elements: Elements that are computed, for products of matrices their multiplications. Each
            byte of the source adds 32.
        constants: Bytes of arrays that are made and not read. Each byte of the source adds 2.
        terms: Terms of the sum that one symbolic dimension is; one with more becomes anonymous.
        turns: Iterations of one loop that is unrolled.
        depth: Levels of subgraphs, and of calls of a model's own functions.
        values: Bytes of one weight whose values decide what is made, and not only its type; larger
            ones stay where they are.
    """

    nodes: int = 10_000
    elements: int = 2**27
    constants: int = 2**25
    terms: int = 64
    turns: int = 4096
    depth: int = 32
    values: int = 2**26

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise OptionError(f"limits: {item.name}: expected a number, found {shown(value)}")

    @classmethod
    def read(cls, given: Limits | Mapping[str, int] | Iterable[str]) -> Limits:
        """Return the default limits with those that are given instead.

        Args:
            given: Numbers by name, or texts such as ``"nodes=10M"``; the letters k, M, G and T
                stand for thousands, Ki, Mi, Gi and Ti for powers of 1024.

        Raises:
            OptionError: There is no such limit, or that is no number.
        """
        if isinstance(given, Limits):
            return given
        if isinstance(given, str):
            given = (given,)
        if not isinstance(given, Iterable):
            raise OptionError(f"limits: expected numbers by name, found {shown(given)}")
        pairs = given.items() if isinstance(given, Mapping) else map(_parse, given)
        wanted = dict(pairs)
        names = [item.name for item in fields(cls)]
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise OptionError(f"limits: there is no {unknown[0]!r}; known: {', '.join(names)}")
        return replace(cls(), **wanted)


_AMOUNT: Final = re.compile(r"([0-9]{1,18})(?:([kMGT])(i?))?")


def _parse(text: str) -> tuple[str, int]:
    name, _, amount = text.partition("=") if isinstance(text, str) else ("", "", "")
    match = _AMOUNT.fullmatch(amount)
    if match is None:
        raise OptionError(f"limits: expected NAME=NUMBER such as nodes=10M, found {shown(text)}")
    digits, letter, binary = match.groups()
    base = 1024 if binary else 1000
    return name, int(digits) * base ** (" kMGT".index(letter) if letter else 0)


_DEFAULT: Final = Limits()


class Budget:
    """What one conversion has left of its limits.

    Args:
        limits: What there is to begin with.

    Attributes:
        limits: The same.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = _DEFAULT if limits is None else limits
        self._allowed = {name: getattr(self.limits, name) for name in _SUMS}
        self._taken = dict.fromkeys(_SUMS, 0)

    def grow(self, *, nodes: int = 0, nbytes: int = 0) -> None:
        """Allow more, as the source holds so many nodes or bytes."""
        self._allowed["nodes"] += 450 * nodes
        self._allowed["elements"] += 32 * nbytes
        self._allowed["constants"] += 2 * nbytes

    def affords(self, limit: str, amount: int) -> bool:
        """Take `amount` of ``nodes``, ``elements`` or ``constants`` if so much is left."""
        taken = self._taken[limit] + amount
        if taken > self._allowed[limit]:
            return False
        self._taken[limit] = taken
        return True

    def may_hold(self, nbytes: int) -> bool:
        """Whether so many bytes of constants, and of what they are computed by, may be held."""
        return self._taken["constants"] + nbytes <= self._allowed["constants"]

    def give_back(self, limit: str, amount: int) -> None:
        """Return what was taken for something that is not done after all."""
        self._taken[limit] -= amount

    def draw(self, limit: str, amount: int, what: str) -> None:
        """Take `amount` of ``nodes``, ``elements`` or ``constants``.

        Args:
            limit: Which.
            amount: How much.
            what: What for, as the subject of a sentence.

        Raises:
            LimitError: So much is not left; nothing is taken.
        """
        if not self.affords(limit, amount):
            needed = self._taken[limit] + amount
            raise LimitError(limit, self._allowed[limit], needed, what)

    def foresee(self, limit: str, amount: int, what: str) -> None:
        """Raise as :meth:`draw` does, and take nothing: for what is drawn while it is done."""
        self.draw(limit, amount, what)
        self._taken[limit] -= amount

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Take back afterwards what is taken inside, for what is made there and not kept."""
        taken = dict(self._taken)
        try:
            yield
        finally:
            self._taken = taken

    def check(self, limit: str, amount: int, what: str) -> None:
        """Check that one thing takes no more than it may, of ``turns`` or ``depth`` for example.

        Raises:
            LimitError: It takes more.
        """
        allowed = getattr(self.limits, limit)
        if amount > allowed:
            raise LimitError(limit, allowed, amount, what)


_NODES_OUTSIDE: Final = 100_000
_SUMS: Final = ("nodes", "elements", "constants")
_CURRENT: Final[ContextVar[Budget | None]] = ContextVar("budget", default=None)


def budget() -> Budget:
    """Return the budget of the conversion that runs.

    Outside of one it is a new one that allows the nodes of a large model, as nobody tells how
    many its source has.
    """
    running = _CURRENT.get()
    if running is None:
        running = Budget()
        running.grow(nodes=_NODES_OUTSIDE)
    return running


def current_limits() -> Limits:
    """Return the limits of the conversion that runs, outside of one the default ones."""
    running = _CURRENT.get()
    return _DEFAULT if running is None else running.limits


@contextmanager
def spending(limits: AnyValue = None) -> Iterator[Budget]:
    """Open a budget for what runs inside.

    Args:
        limits: What :meth:`Limits.read` takes; if left out, the budget that is open goes on.

    Raises:
        OptionError: These are no limits.
    """
    running = _CURRENT.get()
    if limits is None and running is not None:
        yield running
        return
    opened = Budget(None if limits is None else Limits.read(limits))
    token = _CURRENT.set(opened)
    try:
        yield opened
    finally:
        _CURRENT.reset(token)
