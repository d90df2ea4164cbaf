"""Names of variables: few, used again where the value before is not read any more."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final

from serde.torch import program as tree
from serde.torch.names import Names
from serde.torch.program import Expression, Statement

__all__ = ["UNUSED", "name_variables", "reads"]

UNUSED: Final = "_"
"""The variable that takes a result that nothing reads."""

_POOL: Final = ("x", "y", "z", "u", "v", "w")


def name_variables(
    body: Sequence[Statement],
    results: Sequence[Expression],
    inputs: Mapping[str, str],
    scope: Names,
    *,
    closures: bool = False,
) -> dict[str, str]:
    """Return the names of all variables of a function.

    A result takes the name of its first operand that nothing reads behind it, so that a chain of
    layers is a chain of assignments to ``x``. Variables with a hint, ``i#3``, keep that name.

    Args:
        body: The statements.
        results: What the function returns.
        inputs: Names of its parameters, which are never assigned.
        scope: What is taken around the variables; those with a hint are added.
        closures: Whether branches and loops are functions, which see what is around them but
            cannot assign it.
    """
    namer = _Namer(inputs, scope, closures)
    namer.walk(body, {name for each in results for name in tree.locals_of(each)})
    return namer.names


def reads(body: Sequence[Statement]) -> Iterator[str]:
    """Yield the variables that statements read, those inside them included."""
    for each in tree.statements_of(body):
        for expression in tree.expressions_of(each):
            yield from tree.locals_of(expression)


class _Namer:
    def __init__(self, inputs: Mapping[str, str], scope: Names, closures: bool) -> None:
        self._scope = scope
        self._closures = closures
        self.names = {UNUSED: UNUSED, **inputs}
        self._pinned = set(inputs.values())
        self._reserved: set[str] = set()

    def walk(self, body: Sequence[Statement], live: Collection[str]) -> None:
        """Name what statements assign.

        Args:
            body: The statements.
            live: What is read behind them.
        """
        after = _live_after(body, live)
        for each, behind in zip(body, after, strict=True):
            if isinstance(each, tree.Assign):
                self._assign(each, behind)
            elif isinstance(each, tree.If):
                self._join(each, behind)
            else:
                self._loop(each, behind)

    def _assign(self, each: tree.Assign, live: Collection[str]) -> None:
        free = [
            self.names[name]
            for name in dict.fromkeys(tree.locals_of(each.value))
            if name in self.names and name not in live
        ]
        free = [name for name in free if name not in self._pinned and name not in self._reserved]
        busy = {self.names[name] for name in live if name in self.names}
        if isinstance(each.value, tree.Chain):
            # The loop assigns it while the other arguments are read still.
            rest = [name for x in each.value.arguments[1:] for name in tree.locals_of(x)]
            busy |= {self.names[name] for name in rest}
        for target in each.targets:
            if target in self.names:
                continue
            hint = _hint(target)
            if hint:
                self.names[target] = self._pin(hint)
                continue
            again = next((name for name in free if name not in busy), None)
            self.names[target] = again if again is not None else self._fresh(busy)
            busy.add(self.names[target])

    def _join(self, each: tree.If, live: Collection[str]) -> None:
        """Name what both branches assign first, which nothing else in them may be called."""
        both = _assigned(each.then) & _assigned(each.other)
        joint = [name for name in sorted(both, key=_order) if name not in self.names]
        inner = {*live, *reads(each.then), *reads(each.other)}
        added: set[str] = set()
        for target in joint:
            busy = {self.names[name] for name in inner if name in self.names}
            self.names[target] = self._fresh(busy | added)
            added.add(self.names[target])
        self._reserved |= added
        for branch in (each.then, each.other):
            with self._around(branch, ()):
                self.walk(branch, {*live, *both})
        self._reserved -= added

    def _loop(self, each: tree.Loop, live: Collection[str]) -> None:
        """What a loop reads is read in its next turn, too."""
        if each.counter:
            self.names[each.counter] = self._pin(_hint(each.counter) or "i")
        with self._around(each.body, each.carried):
            self.walk(each.body, {*live, *reads([each])})

    @contextmanager
    def _around(self, body: Sequence[Statement], own: Collection[str]) -> Iterator[None]:
        """Keep the names of what a closure reads from around it, but for its parameters."""
        before = set(self._reserved)
        if self._closures:
            outer = (name for name in reads(body) if name in self.names and name not in own)
            self._reserved |= {self.names[name] for name in outer}
        yield
        self._reserved = before

    def _pin(self, hint: str) -> str:
        """Return a name that no other variable has, those of the pool neither."""
        name = self._scope.reserve(hint)
        self._pinned.add(name)
        return name

    def _fresh(self, busy: Collection[str]) -> str:
        taken = {*busy, *self._reserved}
        pool = (f"{letter}{suffix or ''}" for suffix in count() for letter in _POOL)
        return next(name for name in pool if name not in taken and name not in self._scope)


def _hint(variable: str) -> str:
    return variable.partition("#")[0] if "#" in variable else ""


def _order(variable: str) -> tuple[int, str]:
    found = re.search(r"\d+$", variable)
    return int(found.group()) if found else -1, variable


def _assigned(body: Sequence[Statement]) -> set[str]:
    found: set[str] = set()
    for each in body:
        if isinstance(each, tree.Assign):
            found.update(each.targets)
        elif isinstance(each, tree.If):
            found |= _assigned(each.then) & _assigned(each.other)
    return found


def _live_after(body: Sequence[Statement], live: Collection[str]) -> list[set[str]]:
    """Return for each statement what is read behind it."""
    found: list[set[str]] = []
    now = set(live)
    for each in reversed(body):
        found.append(set(now))
        if isinstance(each, tree.Assign):
            now -= set(each.targets)
        now.update(reads([each]))
    return found[::-1]
