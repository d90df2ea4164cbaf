"""Blocks that repeat, as classes of their own.

The statements of a class are cut where one value alone is passed on. Runs of these segments that
are equal but for names and numbers are one block; that which saves most lines becomes a class,
again and again, also inside the classes that were made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from serde.core.records import dataclass
from serde.torch import program as tree
from serde.torch.names import OF_MODULES, Names, attribute
from serde.torch.program import Expression, Statement
from serde.torch.written.classes import BlockMember, ClassDef, LayerMember, Member, NumberMember
from serde.torch.written.naming import reads
from serde.torch.written.runs import Hole, Run, Usage, inside, read_run
from serde.torch.written.scopes import Scopes
from serde.torch.written.titles import common_prefix, member_names, parameter_name, title_of
from serde.walk.repeats import is_periodic, repeated_runs

__all__ = ["cuts", "fold"]

_LEAST_STATEMENTS: Final = 3
_LEAST_SAVED: Final = 6
_MOST_PARAMETERS: Final = 8
_MOST_STATEMENTS: Final = 150
_MOST_INPUTS: Final = 4
_UNIT: Final = 5
"""Statements of a block that is no part of another at its ends."""

_OVERHEAD: Final = 9
"""Lines of a class beside its members and statements."""


def cuts(main: ClassDef, reach: int) -> tuple[int, ...]:
    """Return the numbers of statements between the cuts of a class; see :func:`fold`."""
    return tuple(map(len, _segments(main, reach)))


def fold(main: ClassDef, reach: int) -> list[ClassDef]:
    """Return the classes that a class becomes, each behind those that it uses; `main` is changed.

    Args:
        main: The class.
        reach: Values that are read more than so many statements later do not hinder a cut, since
            blocks are given them or return them.
    """
    classes = [main]
    while True:
        texts = [_Text.of(each, reach) for each in classes]
        best = _best(texts)
        if best is None:
            break
        made = _make_class(best, [each.name for each in classes])
        if made is None:
            break
        classes.append(made)
    ordered = _in_order(main, classes)
    names = Names()
    for each in ordered:
        each.name = names.reserve(each.name.rstrip("0123456789"))
    return ordered


@dataclass(slots=True)
class _Text:
    """A class in segments.

    Attributes:
        made: The class.
        usage: What it uses.
        segments: Its statements, in segments.
        tokens: What these are, equal numbers for equal ones; negative where one is no block.
        scopes: What the names of its members say about which belong together.
        lines: How many lines are before each segment, with those of what it makes.
    """

    made: ClassDef
    usage: Usage
    segments: list[list[Statement]]
    tokens: list[Hashable]
    scopes: Scopes
    lines: list[int]

    @classmethod
    def of(cls, made: ClassDef, reach: int) -> _Text:
        """Cut a class into segments."""
        usage = Usage.of(made)
        segments = list(_segments(made, reach))
        tokens: list[Hashable] = []
        for place, each in enumerate(segments):
            signature = read_run(made, usage, each).signature
            tokens.append((place, id(made)) if signature is None else signature)
        lines = [0, *accumulate(sum(map(_lines, each)) for each in segments)]
        return cls(made, usage, segments, tokens, Scopes(list(made.members)), lines)

    def run(self, start: int, stop: int) -> list[Statement]:
        """Return the statements of some segments."""
        return [each for segment in self.segments[start:stop] for each in segment]


def _segments(made: ClassDef, reach: int) -> Iterator[list[Statement]]:
    """Yield statements, cut where they pass on one value at most."""
    last: dict[str, int] = {}
    for place, each in enumerate(made.body):
        last.update(dict.fromkeys(reads([each]), place))
    for result in made.results:
        last.update(dict.fromkeys(tree.locals_of(result), len(made.body)))
    open_: dict[str, int] = {}
    segment: list[Statement] = []
    for place, each in enumerate(made.body):
        segment.append(each)
        assigns = (x for x in tree.statements_of([each]) if isinstance(x, tree.Assign))
        for target in (name for assign in assigns for name in assign.targets):
            end = last.get(target, place)
            if place < end <= place + reach:
                open_[target] = end
        open_ = {name: end for name, end in open_.items() if end > place}
        if len(open_) <= 1:
            yield segment
            segment = []
    if segment:
        yield segment


def _lines(each: Statement) -> int:
    """Return how many lines a statement and the members that it uses take at most."""
    kinds = (tree.Submodule, tree.Chain, tree.Stored)
    return 1 + sum(isinstance(inner, kinds) for inner in inside(tree.expressions_of(each)))


_Place: TypeAlias = tuple[_Text, int, int]
"""A class, the first segment of a run in it, and the segment behind the last."""


@dataclass(slots=True)
class _Candidate:
    """A block that repeats.

    Attributes:
        places: Class, first segment, and the segment behind the last, of each occurrence.
        runs: The occurrences.
        results: How many values it gives.
        saved: How many lines it saves.
        first: Where it occurs first.
    """

    places: list[_Place]
    runs: list[Run]
    saved: int
    first: int


def _best(texts: Sequence[_Text]) -> _Candidate | None:
    """Return the block that saves most lines; of several, that which occurs first."""
    groups = [
        [(texts[which], start, start + length) for which, start in places]
        for length, places in repeated_runs([text.tokens for text in texts])
    ]
    best: _Candidate | None = None
    for places in sorted(groups, key=_bound, reverse=True):
        if _bound(places) < (_LEAST_SAVED if best is None else best.saved):
            break
        for each in _judge(places):
            if best is None or (each.saved, -each.first) > (best.saved, -best.first):
                best = each
    return best


def _bound(places: Sequence[_Place]) -> int:
    """Return how many lines segments save at most."""
    text, start, stop = places[0]
    lines = text.lines[stop] - text.lines[start]
    return len(places) * (lines - 2) - lines - _OVERHEAD


def _judge(places: Sequence[_Place]) -> Iterator[_Candidate]:
    """Yield the block that segments are, if they are one and worth it."""
    text, start, stop = places[0]
    size = len(text.run(start, stop))
    # A run that is a shorter one again and again is no block; that is.
    if not _LEAST_STATEMENTS <= size <= _MOST_STATEMENTS or is_periodic(text.tokens[start:stop]):
        return
    same: dict[Hashable, list[tuple[_Place, Run]]] = defaultdict(list)
    for place in places:
        text, start, stop = place
        run = read_run(text.made, text.usage, text.run(start, stop))
        ends = run.body[:1] + run.body[-1:]
        if any(_calls_unit(text.made, each) for each in ends):
            continue
        if run.signature is not None and text.scopes.allow(run.members):
            same[run.signature, len(run.outer), _escapes(text, run)].append((place, run))
    for each in same.values():
        runs = [run for _, run in each]
        lines = size + len(runs[0].members)
        parameters = len(_columns(runs))
        saved = len(runs) * (lines - 2) - lines - _OVERHEAD - 2 * parameters
        if not isinstance(runs[0].body[0].value, (tree.Submodule, tree.Chain)):
            saved -= 1  # An activation goes better behind a layer than before the next.
        if len(runs) < 2 or not runs[0].members or saved < _LEAST_SAVED:
            continue
        if parameters <= _MOST_PARAMETERS and len(runs[0].outer) <= _MOST_INPUTS:
            yield _Candidate([place for place, _ in each], runs, saved, each[0][0][1])


def _calls_unit(made: ClassDef, each: tree.Assign) -> bool:
    """Whether a statement calls a large block, which goes into a list rather than another."""
    member = made.members[each.value.name] if isinstance(each.value, tree.Submodule) else None
    return isinstance(member, BlockMember) and len(member.made_of.body) >= _UNIT


def _escapes(text: _Text, run: Run) -> tuple[int, ...]:
    """Return which of a run's own variables are read outside of it."""
    used = Usage(owners=text.usage.owners)
    used.add_all(run.body)
    return tuple(
        place
        for place, name in enumerate(run.own)
        if text.usage.variables[name] > used.variables[name]
    )


def _columns(runs: Sequence[Run]) -> dict[tuple[Expression, ...], list[int]]:
    """Return the numbers that differ from block to block, with the places of each."""
    found: dict[tuple[Expression, ...], list[int]] = {}
    for place, values in enumerate(
        zip(*([h.value for h in run.holes] for run in runs), strict=True)
    ):
        if len(set(values)) > 1 or isinstance(values[0], tree.Parameter):
            found.setdefault(values, []).append(place)
    return found


def _make_class(best: _Candidate, taken: Sequence[str]) -> ClassDef | None:
    """Return the class that a block is, and call it where the block was."""
    first, run = best.places[0], best.runs[0]
    columns = _columns(best.runs)
    names = member_names(list(run.members))
    titles: dict[str, tuple[Expression, ...]] = {}
    numbers: dict[int, str] = {}
    for values, places in columns.items():
        name = attribute(parameter_name(run, places), [*titles, *names.values()])
        titles[name] = values
        numbers |= dict.fromkeys(places, name)
    parameters = sorted(titles, key=_order_of_parameters)
    made = ClassDef(Names(taken).reserve(title_of(run)), parameters)
    numbering = iter(range(len(run.holes)))

    def change(hole: Hole) -> Expression:
        name = numbers.get(next(numbering))
        if name is None:
            return hole.value
        if hole.member:
            return tree.Parameter(name)
        made.members.setdefault(name, NumberMember(tree.Parameter(name)))
        return tree.Attribute(name)

    text, start, stop = first
    changed = read_run(text.made, text.usage, text.run(start, stop), change)
    escapes = _escapes(text, run)
    made.inputs = tuple(run.outer)
    made.results = [tree.Local(run.own[place]) for place in escapes]
    made.members |= {names[name]: member for name, member in changed.members.items()}
    made.body = [_common_types(best, place, each) for place, each in enumerate(changed.body)]
    _rename_members(made.body, names)
    blocks: dict[ClassDef, list[tuple[Run, str, BlockMember]]] = defaultdict(list)
    for (text, start, stop), each, name in reversed(_name_places(best)):
        arguments = tuple(titles[title][best.runs.index(each)] for title in parameters)
        weights = dict(zip(run.keys, each.keys, strict=True))
        _replace(text, start, stop, each, escapes, name)
        inner = [x for x in each.members.values() if isinstance(x, (LayerMember, BlockMember))]
        block = BlockMember(made, arguments, weights, sum((x.titles for x in inner), ()))
        blocks[text.made].append((each, name, block))
    for around, replaced in blocks.items():
        _replace_members(around, replaced)
    return made


def _order_of_parameters(name: str) -> int:
    """Widths go before all else, from the input to the output."""
    parts = name.split("_")
    if parts[-1].rstrip("0123456789") not in ("channels", "features"):
        return 3
    return {"mid": 1, "out": 2}.get(parts[0], 0)


def _common_types(best: _Candidate, place: int, each: tree.Assign) -> tree.Assign:
    """Return a statement whose types are those that it has in every block."""
    types = [run.body[place].types for run in best.runs]
    if any(other != types[0] for other in types):
        each.types = ()
    return each


def _rename_members(body: Sequence[Statement], names: dict[str, str]) -> None:
    def change(each: Expression) -> Expression:
        if isinstance(each, (tree.Submodule, tree.Chain)):
            return type(each)(names[each.name], each.arguments)
        return each

    for each in tree.statements_of(body):
        if isinstance(each, tree.Assign):
            each.value = tree.rebuild(each.value, change)


def _replace_members(made: ClassDef, blocks: Sequence[tuple[Run, str, BlockMember]]) -> None:
    """Put blocks where members were, all at once: one may be called as what another replaces."""
    gone = {name for run, _, _ in blocks for name in run.members}
    first = {next(iter(run.members)): (name, block) for run, name, block in blocks}
    members: dict[str, Member] = {}
    for each, member in made.members.items():
        if each in first:
            name, block = first[each]
            members[name] = block
        elif each not in gone:
            members[each] = member
    made.members = members


def _replace(
    text: _Text, start: int, stop: int, run: Run, escapes: Sequence[int], name: str
) -> None:
    """Call a block in place of a run of segments."""
    targets = tuple(run.own[place] for place in escapes)
    last = {
        name: type_
        for each in run.body
        for name, type_ in zip(each.targets, each.types, strict=False)
    }
    called = tree.Submodule(name, tuple(map(tree.Local, run.outer)))
    types = tuple(last.get(each) for each in targets)
    source = run.body[-1].source
    text.segments[start:stop] = [[tree.Assign(targets, called, types, source)]]
    text.made.body = [each for segment in text.segments for each in segment]


def _name_places(best: _Candidate) -> list[tuple[_Place, Run, str]]:
    """Return the occurrences of a block, in order, and what each is called where it is."""
    found: list[tuple[_Place, Run, str]] = []
    taken: dict[ClassDef, list[str]] = {}
    pairs = list(zip(best.places, best.runs, strict=True))
    bases = Counter((place[0].made, _block_name(list(run.members))) for place, run in pairs)
    for place, run in pairs:
        made = place[0].made
        gone = {name for _, other in pairs for name in other.members}
        names = taken.setdefault(made, [each for each in made.members if each not in gone])
        base = _block_name(list(run.members))
        if bases[made, base] > 1 and not base[-1].isdigit():
            name = Names({*OF_MODULES, *names, base}, first=1, joint="").reserve(base)
        else:
            name = attribute(base, names)
        names.append(name)
        found.append((place, run, name))
    return found


def _block_name(members: Sequence[str]) -> str:
    return common_prefix(members) or "block"


def _in_order(main: ClassDef, classes: Sequence[ClassDef]) -> list[ClassDef]:
    """Return classes behind those that they use."""
    order: dict[ClassDef, None] = {}

    def visit(each: ClassDef) -> None:
        for member in each.members.values():
            if isinstance(member, BlockMember) and member.made_of not in order:
                visit(member.made_of)
        order[each] = None

    visit(main)
    return list(order)
