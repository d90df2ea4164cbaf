"""What a run of statements is, apart from names and numbers.

Two runs with the same signature are the same block with other weights and numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final

from serde.core.records import dataclass, field, replace
from serde.torch import program as tree
from serde.torch.program import Expression, Statement
from serde.torch.written.classes import (
    BlockMember,
    ClassDef,
    HeldMember,
    LayerMember,
    Member,
    NumberMember,
)

__all__ = ["Hole", "Run", "Usage", "inside", "read_run"]

_NOTHING: Final = tree.Literal(None)


def inside(expressions: Iterable[Expression]) -> Iterator[Expression]:
    """Yield expressions and all that they are made of."""
    pending = list(expressions)
    while pending:
        each = pending.pop()
        yield each
        pending.extend(tree.parts(each))


@dataclass(slots=True)
class Usage:
    """How often the statements of a class use its variables and members.

    Attributes:
        variables: Counts by variable.
        members: Counts by name.
        owners: For each key of a weight the member that has it.
    """

    variables: Counter[str] = field(default_factory=Counter)
    members: Counter[str] = field(default_factory=Counter)
    owners: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, made: ClassDef) -> Usage:
        """Count what a class uses."""
        found = cls()
        for name, member in made.members.items():
            found.owners.update((key, name) for key, _ in member.paths())
        found.add_all(list(tree.statements_of(made.body)))
        found.add(made.results)
        return found

    def add_all(self, body: Sequence[Statement]) -> None:
        """Count what statements use."""
        for each in body:
            self.add(tree.expressions_of(each))

    def add(self, expressions: Iterable[Expression]) -> None:
        """Count what expressions use."""
        for each in inside(expressions):
            if isinstance(each, tree.Local):
                self.variables[each.name] += 1
            elif isinstance(each, (tree.Submodule, tree.Chain)):
                self.members[each.name] += 1
            elif isinstance(each, tree.Stored):
                self.members[self.owners[each.name]] += 1


@dataclass(frozen=True, slots=True)
class Hole:
    """A number that may differ from block to block.

    Attributes:
        value: What is there; in a constructor of the class around, what that is given.
        label: What it may be called.
        member: The member whose constructor has it; empty in ``forward``.
    """

    value: Expression
    label: str
    member: str = ""


@dataclass(slots=True)
class Run:
    """Statements behind each other.

    Attributes:
        signature: Equal for runs that are the same but for names and numbers; None where a run
            cannot be a block.
        holes: Their numbers.
        outer: Variables from outside, in the order in which they are read.
        own: Variables that they assign, in order.
        members: Members that they use, in order, with numbers that may have been changed.
        keys: Keys of weights of these members, in order.
        body: The statements, likewise.
    """

    signature: Hashable = None
    holes: list[Hole] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    body: list[tree.Assign] = field(default_factory=list)


def read_run(
    made: ClassDef,
    usage: Usage,
    body: Sequence[Statement],
    change: Callable[[Hole], Expression] = lambda hole: hole.value,
) -> Run:
    """Return what a run of statements of a class is.

    Args:
        made: The class.
        usage: What it uses.
        body: The statements.
        change: What stands for a number in the members and the body that are returned.
    """
    reader = _Reader(made, usage, change)
    signature = tuple(map(reader.statement, body))
    used = Usage(owners=usage.owners)
    used.add_all(body)
    run = reader.run
    if reader.fits and all(usage.members[name] == used.members[name] for name in run.members):
        run.signature = signature
    return run


class _Reader:
    def __init__(self, made: ClassDef, usage: Usage, change: Callable[[Hole], Expression]) -> None:
        self._made = made
        self._usage = usage
        self._change = change
        self._variables: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self.run = Run()
        self.fits = True

    def statement(self, each: Statement) -> Hashable:
        if not isinstance(each, tree.Assign) or not each.targets:
            self.fits = False
            return None
        signature, value = self._expression(each.value, "size")
        targets = tuple(self._variable(target, self.run.own) for target in each.targets)
        self.run.body.append(replace(each, value=value))
        return targets, each.split, signature

    def _expression(
        self, each: Expression, label: str, member: str = ""
    ) -> tuple[Hashable, Expression]:
        """Return the signature of an expression, and the expression with changed numbers."""
        if is_number(each):
            hole = Hole(self._known(each), label, member)
            self.run.holes.append(hole)
            return "#", self._change(hole)
        if isinstance(each, tree.Local):
            return ("variable", self._variable(each.name, self.run.outer)), each
        if isinstance(each, tree.Stored):
            owner = self._usage.owners[each.name]
            keys = [key for key, _ in self._made.members[owner].paths()]
            return ("stored", self._member(owner), keys.index(each.name)), each
        labels = [label] * len(tree.parts(each))
        if isinstance(each, (tree.Apply, tree.Method)) and each.keywords:
            labels[-len(each.keywords) :] = [name for name, _ in each.keywords]
        head: Hashable = type(each).__name__
        if isinstance(each, (tree.Submodule, tree.Chain)):
            head = (head, self._member(each.name))
        inner = [
            self._expression(*pair, member) for pair in zip(tree.parts(each), labels, strict=True)
        ]
        if not isinstance(each, (tree.Submodule, tree.Chain)):
            head = tree.with_parts(each, [_NOTHING] * len(inner)) if inner else repr(each)
        made = tree.with_parts(each, [new for _, new in inner]) if inner else each
        return (head, *(signature for signature, _ in inner)), made

    def _known(self, each: Expression) -> Expression:
        """Return a number as the constructor around has it."""
        kept = self._made.members[each.name] if isinstance(each, tree.Attribute) else None
        return kept.value if isinstance(kept, NumberMember) else each

    def _variable(self, name: str, new: list[str]) -> int:
        """Return the number of a variable; one that has none yet is new."""
        if name not in self._variables:
            self._variables[name] = len(self._variables)
            new.append(name)
        return self._variables[name]

    def _member(self, name: str) -> Hashable:
        """Return the signature of a member: where it was used before, or what it is."""
        if name in self._places:
            return self._places[name]
        self._places[name] = len(self._places)
        member = self._made.members[name]
        self.run.members[name] = member
        self.run.keys += [key for key, _ in member.paths()]
        if isinstance(member, LayerMember):
            read = [(x, *self._expression(value, x, name)) for x, value in member.arguments]
            arguments = tuple((x, new) for x, _, new in read)
            self.run.members[name] = replace(member, arguments=arguments)
            given = tuple((x, signature) for x, signature, _ in read)
            return member.kind, given, tuple(member.weights), member.fixed
        if isinstance(member, HeldMember):
            read_shape = [self._expression(each, "size", name) for each in member.shape]
            self.run.members[name] = replace(member, shape=tuple(new for _, new in read_shape))
            return "held", member.dtype, member.trained, tuple(each for each, _ in read_shape)
        if isinstance(member, BlockMember):
            signature, self.run.members[name] = self._block(member, name)
            return signature
        self.fits = False
        return None

    def _block(self, member: BlockMember, name: str) -> tuple[Hashable, BlockMember]:
        pairs = zip(member.made_of.parameters, member.arguments, strict=True)
        read = [self._expression(value, label, name) for label, value in pairs]
        new = replace(member, arguments=tuple(each for _, each in read))
        return (id(member.made_of), *(signature for signature, _ in read)), new


def is_number(each: Expression) -> bool:
    """Whether an expression is an integer, or several, that a block may be given."""
    if isinstance(each, tree.Literal):
        return type(each.value) is int
    if isinstance(each, (tree.Attribute, tree.Parameter)):
        return True
    return (
        isinstance(each, tree.Items)
        and not each.is_list
        and bool(each.items)
        and all(isinstance(x, tree.Literal) and type(x.value) is int for x in each.items)
    )
