"""Rows of layers that the source only numbers, as ``nn.Sequential``.

Layers with names of their own keep them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import takewhile
from typing import Final, TypeAlias

from serde.core.records import dataclass, field
from serde.torch import program as tree
from serde.torch.names import APPLIED, is_free
from serde.torch.program import Expression, Statement
from serde.torch.written.classes import (
    BlockMember,
    ClassDef,
    FunctionMember,
    LayerMember,
    ListMember,
    Member,
)
from serde.torch.written.runs import Usage, inside

__all__ = ["chain_layers"]

_LEAST_ITEMS: Final = 3
_LEAST_LAYERS: Final = 2

_MODULES: Final = {
    "torch.sigmoid": "nn.Sigmoid",
    "torch.tanh": "nn.Tanh",
    **{f"F.max_pool{n}d": f"nn.MaxPool{n}d" for n in (1, 2, 3)},
    **{f"F.{function}": f"nn.{kind}" for kind, function in APPLIED.items() if kind != "Upsample"},
}
"""Modules by the functions that they are, and that take their arguments behind the input."""

_CLOSING: Final = ("nn.Adaptive", "nn.Dropout", "nn.Flatten")
"""How the names of modules begin that stand between rows, and not at the end of one."""

_SEVERAL_RESULTS: Final = ("nn.GRU", "nn.LSTM", "nn.MultiheadAttention", "nn.RNN")

_Item: TypeAlias = LayerMember | BlockMember | FunctionMember


@dataclass(slots=True)
class _Link:
    """A statement that gives what modules, each behind the other, make of one variable.

    Attributes:
        statement: The statement.
        read: The variable.
        items: The modules, from the first to the last.
        names: Members that some of them are.
        scopes: What the source numbers these in.
    """

    statement: tree.Assign
    read: str = ""
    items: list[_Item] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)


def chain_layers(made: ClassDef) -> None:
    """Put layers of which each is given what that before gives into ``nn.Sequential``, in place."""
    usage = Usage.of(made)
    titles = {x.titles for x in made.members.values() if isinstance(x, LayerMember)}
    body: list[Statement] = []
    row: list[_Link] = []
    scope = ""
    for each in made.body:
        link = _read_link(made, usage, titles, each)
        if row and (link is None or not _follows(usage, row[-1], scope, link)):
            body += _write_row(made, row, scope)
            row = []
        if link is not None and (row or link.scopes):
            scope = min([scope] * bool(row) + link.scopes, key=len)
            row.append(link)
        else:
            body.append(each)
    made.body = body + _write_row(made, row, scope)


def _read_link(
    made: ClassDef, usage: Usage, titles: Container[tuple[str, ...]], each: Statement
) -> _Link | None:
    """Return a statement as a link; None where it is none, or a layer has a name of its own."""
    if not isinstance(each, tree.Assign) or len(each.targets) != 1:
        return None
    link, value = _Link(each), each.value
    while not isinstance(value, tree.Local):
        item: _Item | None = _function(value)
        if isinstance(value, tree.Submodule) and usage.members[value.name] == 1:
            item = _module(made.members[value.name], value)
            link.names.insert(0, value.name)
        if item is None:
            return None
        link.items.insert(0, item)
        if not isinstance(item, FunctionMember):
            scope = _scope(item.titles)
            if scope is not None and (scope,) not in titles:
                link.scopes.insert(0, scope)
            elif not _is_closing(item):
                return None
        value = tree.parts(value)[0]
    link.read = value.name
    return link


def _module(member: Member, call: tree.Submodule) -> _Item | None:
    """Return a layer or a block that is given one value and gives one."""
    several = isinstance(member, LayerMember) and member.kind in _SEVERAL_RESULTS
    several |= isinstance(member, BlockMember) and len(member.made_of.results) != 1
    if several or len(call.arguments) != 1 or not isinstance(member, (LayerMember, BlockMember)):
        return None
    return member


def _function(each: Expression) -> FunctionMember | None:
    """Return the module that a function, or ``flatten`` of a tensor, is."""
    if isinstance(each, tree.Method) and each.name == "flatten" and each.arguments:
        ends = () if each.arguments == (tree.Literal(1),) else each.arguments
        made = tree.Apply("nn.Flatten", ends, each.keywords)
    elif isinstance(each, tree.Apply) and each.function in _MODULES:
        made = tree.Apply(_MODULES[each.function], each.arguments[1:], each.keywords)
    else:
        return None
    parts = inside(tree.parts(made))
    plain = all(isinstance(part, (tree.Literal, tree.Items)) for part in parts)
    return FunctionMember(made) if plain else None


def _scope(titles: Sequence[str]) -> str | None:
    """Return what the source numbers layers in, such as ``features`` of ``features_3_conv``.

    None where they have a name of their own.
    """
    rows = [[token for token in each.split("_") if token] for each in titles]
    columns = zip(*rows, strict=False)
    common = [each[0] for each in takewhile(lambda each: len(set(each)) == 1, columns)]
    behind = ["".join(each[len(common) : len(common) + 1]) for each in rows]
    numbered = all(map(str.isdigit, behind)) or (common and common[-1].isdigit())
    if not titles or not numbered:
        return None
    while common and common[-1].isdigit():
        common.pop()
    return "_".join(common)


def _follows(usage: Usage, before: _Link, around: str, link: _Link) -> bool:
    """Whether a link alone reads what that before gives, and the source has both in one scope."""
    last = before.statement.targets[0]
    return (link.read == last and usage.variables[last] == 1) and all(
        f"{inner}_".startswith(f"{outer}_" if outer else "")
        for inner, outer in (sorted((around, each), key=len, reverse=True) for each in link.scopes)
    )


def _is_closing(item: _Item) -> bool:
    """Whether a module does not stand at the end of a row."""
    kind = item.kind if isinstance(item, LayerMember) else ""
    kind = item.made.function if isinstance(item, FunctionMember) else kind
    return kind.startswith(_CLOSING)


def _write_row(made: ClassDef, row: Sequence[_Link], scope: str) -> list[Statement]:
    """Return the statements of a row, as one where it is long enough, and put it into a member."""
    links = list(row)
    while links and all(map(_is_closing, links[-1].items)):
        links.pop()
    items = [item for each in links for item in each.items]
    layers = sum(not isinstance(item, FunctionMember) for item in items)
    is_plain = any(not isinstance(item, BlockMember) for item in items)
    if len(items) < _LEAST_ITEMS or layers < _LEAST_LAYERS or not is_plain:
        return [each.statement for each in row]
    names = [name for each in links for name in each.names]
    wanted = scope
    if not names[0].startswith(scope):  # A block, which has parts of the names.
        wanted = "" if len(links) == len(made.body) else scope.split("_")[-1]
    wanted = wanted if is_free(wanted) else "layers"
    name = made.join(names, wanted, ListMember("nn.Sequential", items))
    last = links[-1].statement
    value = tree.Submodule(name, (tree.Local(links[0].read),))
    joined = tree.Assign(last.targets, value, last.types, last.source)
    return [joined, *(each.statement for each in row[len(links) :])]
