"""Fragments of a graph's own: functions that it keeps, and blocks that it repeats.

The assignments are cut where one tensor alone is passed on. Runs of these segments that are equal
but for the tensors that they are given are one block; that which saves most lines becomes a
fragment, again and again, also inside the fragments that were made.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any as AnyValue, Final, TypeAlias

from serde.core.records import dataclass, field, replace
from serde.nnef.fragments import FRAGMENTS
from serde.nnef.model import (
    Argument,
    Block,
    Definition,
    NnefModel,
    Operation,
    Ref,
    rename_operation,
)
from serde.nnef.names import Identifiers
from serde.nnef.text.printer import literal
from serde.walk.repeats import is_periodic, repeated_runs

__all__ = ["fold"]

_DECLARED: Final = frozenset(("external", "variable", "constant"))
_LEAST_OPERATIONS: Final = 3
_MOST_OPERATIONS: Final = 200
_LEAST_SAVED: Final = 5
_MOST_INPUTS: Final = 4
"""Tensors that a block is given, its variables aside."""

_MOST_RESULTS: Final = 4
_MOST_WEIGHTS: Final = 32
_UNIT: Final = 5
"""Assignments of a block that stands for itself, at the ends of no other."""

_NUMBER: Final = re.compile(r"_\d+$")
_REACHES: Final = (40, 12, 0)
"""A tensor that is read more than so many assignments later does not hinder a cut.

The greater ones give blocks at whose ends little is passed on; a smaller one is taken where the
text becomes shorter by a tenth of what it was.
"""

_OVERHEAD: Final = 4
"""Lines of a fragment beside its assignments."""

_MOST_DEPTH: Final = 6
"""Fragments inside each other."""

_ROLES: Final = {"add": "bias", "mul": "scale"}
"""What a variable is of which the parameter tells nothing."""

_SHOWN: Final = 3
"""Most operations whose names are the name of a block."""


def fold(model: NnefModel) -> NnefModel:
    """Return a graph in fragments of its own, which mean the same assignments."""
    declared = list(takewhile(lambda each: each.op in _DECLARED, model.operations))
    start = len(declared)
    best: NnefModel | None = None
    for reach in _REACHES:
        folding = _Folding(model, declared, reach)
        main = _Body(list(model.operations[start:]), frozenset(model.outputs))
        folding.keep_functions(main, model.blocks, start)
        folding.fold_repeats(main)
        folded = replace(
            model,
            operations=[*declared, *main.operations],
            definitions=(*model.definitions, *folding.definitions()),
            blocks=(),
        )
        if best is None or _lines(best) - _lines(folded) > len(model.operations) / 10:
            best = folded
    return model if best is None else best


def _lines(model: NnefModel) -> int:
    """Return how many lines a text has, in essence."""
    bodies = [each.operations for each in model.definitions]
    return len(model.operations) + sum(len(each) + _OVERHEAD for each in bodies)


@dataclass(slots=True, eq=False)
class _Body:
    """Assignments in order, of the graph or of a fragment.

    Attributes:
        operations: The assignments.
        results: What is used outside of them.
        inputs: Parameters with their elements, for a fragment.
        name: Of a fragment.
    """

    operations: list[Operation]
    results: Collection[str]
    inputs: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    _last: dict[str, int] | None = None

    def last_reads(self) -> dict[str, int]:
        """Return which assignment reads a tensor last; a number behind all for the results."""
        if self._last is None:
            self._last = {}
            for index, each in enumerate(self.operations):
                self._last.update(dict.fromkeys(_reads(each), index))
            self._last.update(dict.fromkeys(self.results, len(self.operations)))
        return self._last

    def replace(self, start: int, stop: int, call: Operation) -> None:
        """Put one assignment in place of several."""
        self.operations[start:stop] = [call]
        self._last = None


_Place: TypeAlias = tuple[_Body, int, int]
"""A body, the first assignment of a run in it, and the one behind the last."""


@dataclass(slots=True)
class _Run:
    """A run of assignments, whatever its tensors are called.

    Attributes:
        signature: What it does.
        outer: The tensors that it is given, each once.
        results: Those of its own that are used outside.
    """

    signature: Hashable
    outer: list[str]
    results: list[str]


class _Folding:
    """State of folding one graph."""

    def __init__(self, model: NnefModel, declared: Sequence[Operation], reach: int) -> None:
        self._reach = reach
        self._inside: dict[str, int] = {}
        self._around: dict[str, int] = {}
        self._kinds: dict[str, str] = {}
        self._made: dict[Hashable, _Body] = {}
        self._fragments: dict[str, _Body] = {}
        self._declared = {each.name: each for each in model.definitions}
        self._quantized = model.quantization.keys()
        self._weights = {name for each in declared for name in each.results()} - {*model.inputs}
        self._note_kinds(model.operations)
        self._titles = Identifiers([*self._declared, model.name])
        for name in self._kinds:
            self._titles.claim(name, exact=True)

    def definitions(self) -> Iterator[Definition]:
        """Yield the fragments, each behind those that it uses."""
        done: dict[str, None] = {}

        def visit(name: str) -> Iterator[Definition]:
            body = self._fragments[name]
            for each in body.operations:
                if each.op in self._fragments and each.op not in done:
                    yield from visit(each.op)
            if name not in done:
                done[name] = None
                yield self._definition(body)

        for name in list(self._fragments):
            if name not in done:
                yield from visit(name)

    def _definition(self, body: _Body) -> Definition:
        """Return a fragment under the names that it has in the text."""
        made = [name for each in body.operations for name in each.results()]
        names = {name: name.rpartition(".")[2] for name in (*body.inputs, *made)}
        return Definition(
            body.name,
            {names[each]: kind for each, kind in body.inputs.items()},
            {names[each]: self._kinds[each] for each in body.results},
            tuple(rename_operation(each, names) for each in body.operations),
        )

    # Elements of tensors.

    def _note_kinds(self, operations: Sequence[Operation]) -> None:
        for each in operations:
            if each.op in self._fragments:
                body = self._fragments[each.op]
                found = [self._kinds[name] for name in body.results]
                self._kinds.update(zip(each.results(), found, strict=True))
                continue
            if each.op in self._declared:
                kinds = self._declared[each.op].results.values()
                plain = [kind.partition("<")[2].rstrip(">") for kind in kinds]
                self._kinds.update(zip(each.results(), plain, strict=True))
                continue
            signature = FRAGMENTS[each.op]
            for declared, result in zip(signature.outputs, each.outputs, strict=False):
                kind = declared.element
                if kind == "?":
                    kind = each.dtype or self._kind_of_inputs(each)
                names = (result,) if isinstance(result, str) else result
                self._kinds.update(dict.fromkeys(names, kind))

    def _kind_of_inputs(self, operation: Operation) -> str:
        generic = {x.name for x in FRAGMENTS[operation.op].inputs if x.element == "?"}
        for name, given in operation.inputs.items():
            first = given[0] if isinstance(given, tuple) and given else given
            if name in generic and isinstance(first, Ref):
                return self._kinds[first.name]
        for name, given in operation.inputs.items():
            if name in generic:
                return "logical" if isinstance(given, bool) else _literal_kind(given)
        return "scalar"

    # Runs.

    def _read(self, body: _Body, start: int, stop: int) -> _Run | None:
        """Return what a run is; None where it cannot be a fragment."""
        own: dict[str, int] = {}
        outer: dict[str, int] = {}

        def argument(given: AnyValue) -> Hashable:
            if isinstance(given, Ref):
                if given.name in own:
                    return ("own", own[given.name])
                place = outer.setdefault(given.name, len(outer))
                return ("outer", place, self._kinds[given.name], given.name in self._weights)
            return tuple(map(argument, given)) if isinstance(given, tuple) else literal(given)

        tokens: list[Hashable] = []
        for each in body.operations[start:stop]:
            if each.op == "update" or any(name in self._quantized for name in each.results()):
                return None
            inputs = tuple((name, argument(given)) for name, given in each.inputs.items())
            attributes = tuple((name, literal(x)) for name, x in each.attributes.items())
            shape = tuple(1 if isinstance(x, str) else (len(x),) for x in each.outputs)
            tokens.append((each.op, each.dtype, inputs, attributes, shape))
            for name in each.results():
                own[name] = len(own)
        last = body.last_reads()
        results = [name for name in own if last.get(name, start) >= stop]
        signature = (tuple(tokens), tuple(own[name] for name in results))
        return _Run(signature, list(outer), results)

    # Functions that are kept.

    def keep_functions(self, main: _Body, blocks: Sequence[Block], shift: int) -> None:
        """Make fragments of the functions of the source, innermost first."""
        # Replacing a block moves what lies behind it, so the last one is replaced first.
        pending = sorted(blocks, key=lambda each: (each.stop - each.start, -each.start))
        spans = [[each.start - shift, each.stop - shift] for each in pending]
        for index, each in enumerate(pending):
            start, stop = spans[index]
            run = self._read(main, start, stop) if stop - start > 0 else None
            if run is None or not run.results:
                continue
            made = self._made.get(run.signature)
            if made is None:
                made = self._make(main, start, stop, run, each.name)
                self._made[run.signature] = made
            self._replace(main, start, stop, run, made)
            removed = stop - start - 1
            for span in spans[index + 1 :]:
                span[0] -= removed if span[0] >= stop else 0
                span[1] -= removed if span[1] >= stop else 0

    # Blocks that repeat.

    def fold_repeats(self, main: _Body) -> None:
        """Make fragments of what repeats until nothing is worth it."""
        while True:
            self._measure(main)
            found = self._best([main, *self._fragments.values()])
            if found is None:
                return
            (body, start, stop), run = found[0]
            made = self._make(body, start, stop, run, "")
            for (body, start, stop), run in sorted(found, key=lambda x: x[0][1], reverse=True):
                self._replace(body, start, stop, run, made)

    def _best(self, bodies: Sequence[_Body]) -> list[tuple[_Place, _Run]] | None:
        """Return the runs whose fragment saves most lines; of several, those that begin first."""
        cut = [list(_segments(each, self._weights, self._reach)) for each in bodies]
        rows: list[list[Hashable]] = []
        for which, (body, segments) in enumerate(zip(bodies, cut, strict=True)):
            runs = [self._read(body, *segment) for segment in segments]
            rows.append([
                (which, place) if run is None else run.signature for place, run in enumerate(runs)
            ])  # fmt: skip
        best: list[tuple[_Place, _Run]] | None = None
        most, chosen = _LEAST_SAVED - 1, 0
        # Those that may save most come first: to judge one takes long, and then few are left.
        for bound, place, length, starts in sorted(_candidates(rows, cut)):
            if -bound < most or (-bound == most and place >= chosen):
                break
            which, first = starts[0]
            if is_periodic(rows[which][first : first + length], partly=True):
                continue
            spans = [
                (bodies[w], cut[w][start][0], cut[w][start + length - 1][1]) for w, start in starts
            ]
            size = spans[0][2] - spans[0][1]
            for each in self._judge(spans):
                saved = len(each) * (size - 1) - size - _OVERHEAD
                (body, start, _), _run = each[0]
                if self._weights.isdisjoint(_reads(body.operations[start])):
                    saved -= 1  # An activation goes better behind a layer than before the next.
                if saved > most or (saved == most and best is not None and place < chosen):
                    best, most, chosen = each, saved, place
        return best

    def _judge(self, places: Sequence[_Place]) -> Iterator[list[tuple[_Place, _Run]]]:
        """Yield those of some runs that are one fragment, if they are worth it."""
        same: dict[Hashable, list[tuple[_Place, _Run]]] = defaultdict(list)
        for place in places:
            run = self._read(*place)
            body, start, stop = place
            if stop - start == len(body.operations) or self._begins_or_ends_whole(*place):
                continue
            if run is not None and self._depth(*place) <= _MOST_DEPTH:
                same[run.signature].append((place, run))
        for each in same.values():
            run = each[0][1]
            inputs = sum(name not in self._weights for name in run.outer)
            if len(run.outer) - inputs > _MOST_WEIGHTS:
                continue
            if len(each) > 1 and inputs <= _MOST_INPUTS and 0 < len(run.results) <= _MOST_RESULTS:
                yield each

    def _measure(self, main: _Body) -> None:
        """Note how many fragments lie inside each other in each, and around it."""
        self._inside, self._around = dict.fromkeys(self._fragments, 1), {"": 0}
        before = None
        now = self._total_depth()
        while now != before:
            for body in (main, *self._fragments.values()):
                for op in {each.op for each in body.operations} & self._fragments.keys():
                    around = self._around.get(body.name, 0) + 1
                    self._around[op] = max(self._around.get(op, 0), around)
                    if body is not main:
                        inside = self._inside[op] + 1
                        self._inside[body.name] = max(self._inside[body.name], inside)
            before, now = now, self._total_depth()

    def _total_depth(self) -> int:
        return sum(self._inside.values()) + sum(self._around.values())

    def _depth(self, body: _Body, start: int, stop: int) -> int:
        """Return how many fragments lie inside each other where a run is one."""
        inner = (self._inside.get(each.op, 0) for each in body.operations[start:stop])
        return self._around.get(body.name, 0) + 1 + max(inner, default=0)

    def _begins_or_ends_whole(self, body: _Body, start: int, stop: int) -> bool:
        """Whether a run begins or ends with a block that stands for itself."""
        ends = (body.operations[start].op, body.operations[stop - 1].op)
        blocks = (self._fragments[op] for op in ends if op in self._fragments)
        return any(len(each.operations) >= _UNIT for each in blocks)

    # Fragments.

    def _make(self, body: _Body, start: int, stop: int, run: _Run, name: str) -> _Body:
        """Return a fragment that does what a run does, under names of its own."""
        operations = body.operations[start:stop]
        names = Identifiers([*self._fragments, *self._declared])
        data = [each for each in run.outer if each not in self._weights]
        renamed = {each: names.claim("x") for each in data}
        for parameter, each in _parameters(operations):
            if each in run.outer and each not in renamed:
                renamed[each] = names.claim(parameter)
        results = {each: names.claim("y") for each in run.results}
        for operation in operations:
            for result in operation.results():
                renamed[result] = results.get(result) or names.claim(operation.op)
        title = self._title(name, operations, run)
        made = _Body(
            [rename_operation(each, renamed) for each in operations],
            tuple(renamed[each] for each in run.results),
            {renamed[each]: self._kinds[each] for each in _ordered(run.outer, data)},
            title,
        )
        self._weights.update(f"{title}.{renamed[each]}" for each in run.outer if each not in data)
        self._enter(made)
        return made

    def _enter(self, made: _Body) -> None:
        """Note a fragment, with names that no other body has."""
        prefix = f"{made.name}."
        change = {name: prefix + name for name in made.inputs}
        change |= {name: prefix + name for each in made.operations for name in each.results()}
        made.operations = [rename_operation(each, change) for each in made.operations]
        made.results = tuple(change[each] for each in made.results)
        self._kinds.update({change[name]: kind for name, kind in made.inputs.items()})
        made.inputs = {change[name]: kind for name, kind in made.inputs.items()}
        self._note_kinds(made.operations)
        self._fragments[made.name] = made

    def _replace(self, body: _Body, start: int, stop: int, run: _Run, made: _Body) -> None:
        """Invoke a fragment in place of a run."""
        data = [each for each in run.outer if each not in self._weights]
        given = zip(made.inputs, map(Ref, _ordered(run.outer, data)), strict=True)
        inputs: dict[str, Argument] = dict(given)
        call = Operation(made.name, inputs, {}, tuple(run.results))
        body.replace(start, stop, call)

    def _title(self, name: str, operations: Sequence[Operation], run: _Run) -> str:
        """Return a readable name that no fragment, no tensor and not the graph has."""
        ops = [each.op for each in operations]
        if not name and len(ops) <= _SHOWN:
            name = "_".join(ops)
        elif not name and "softmax" in ops and ops.count("matmul") > 1:
            name = "attention_block"
        elif not name:
            data = {each for each in run.outer if each not in self._weights}
            adds = [each for each in operations if each.op == "add"]
            residual = any(data.intersection(_reads(each)) for each in adds)
            name = "residual_block" if residual else "block"
        return self._titles.claim_fragment(name)


def _ordered(outer: Sequence[str], data: Sequence[str]) -> list[str]:
    """Return what a run is given: tensors of the graph, then variables."""
    return [*data, *(each for each in outer if each not in data)]


def _candidates(
    rows: Sequence[Sequence[Hashable]], cut: Sequence[Sequence[tuple[int, int]]]
) -> Iterator[tuple[int, int, int, list[tuple[int, int]]]]:
    """Yield runs that repeat: what each saves at most, negated, a number, length and places."""
    for number, (length, places) in enumerate(repeated_runs(rows, _MOST_OPERATIONS)):
        which, first = places[0]
        size = cut[which][first + length - 1][1] - cut[which][first][0]
        bound = len(places) * (size - 1) - size - _OVERHEAD
        if bound >= _LEAST_SAVED and _LEAST_OPERATIONS <= size <= _MOST_OPERATIONS:
            yield -bound, number, length, places


def _literal_kind(given: Argument) -> str:
    return "integer" if isinstance(given, int) else "scalar"


def _reads(operation: Operation) -> list[str]:
    return [each.name for each in operation.operands() if isinstance(each, Ref)]


def _parameters(operations: Sequence[Operation]) -> Iterator[tuple[str, str]]:
    """Yield the name of the parameter for which each tensor is given."""
    for operation in operations:
        for name, given in operation.inputs.items():
            known = FRAGMENTS.get(operation.op)
            single = name if known is not None else _NUMBER.sub("", name.rpartition(".")[2])
            if single in ("x", "y", "input", "A", "B"):
                single = _ROLES.get(operation.op, "weight")
            for each in given if isinstance(given, tuple) else (given,):
                if isinstance(each, Ref):
                    yield single, each.name


def _segments(body: _Body, weights: Collection[str], reach: int) -> Iterator[tuple[int, int]]:
    """Yield runs of assignments, cut where they pass on one tensor at most."""
    last = body.last_reads()
    made = {name for each in body.operations for name in each.results()}
    given = last.keys() - made - set(weights)
    open_ = {name: last[name] for name in given if last[name] <= reach}
    start = 0
    for index, each in enumerate(body.operations):
        for name in each.results():
            end = last.get(name, index)
            if index < end <= index + reach:
                open_[name] = end
        open_ = {name: end for name, end in open_.items() if end > index}
        if len(open_) <= 1:
            yield start, index + 1
            start = index + 1
    if start < len(body.operations):
        yield start, len(body.operations)
