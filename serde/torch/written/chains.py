"""Blocks behind each other, as ``nn.Sequential`` or as a list that a loop goes through."""

from __future__ import annotations

from collections.abc import Sequence

from serde.torch import program as tree
from serde.torch.program import Statement
from serde.torch.written.classes import BlockMember, ClassDef, ListMember
from serde.torch.written.runs import Usage
from serde.torch.written.titles import common_prefix

__all__ = ["chain_blocks"]


def chain_blocks(made: ClassDef) -> None:
    """Put blocks of which each is given what that before gives into lists, in place."""
    usage = Usage.of(made)
    body: list[Statement] = []
    group: list[tree.Assign] = []
    for each in made.body:
        if group and not _follows(made, usage, group[-1], each):
            body.append(_write_group(made, group))
            group = []
        if _is_link(made, usage, each):
            assert isinstance(each, tree.Assign)
            group.append(each)
        else:
            body.append(each)
    if group:
        body.append(_write_group(made, group))
    made.body = body


def _call(each: Statement) -> tree.Submodule | None:
    value = each.value if isinstance(each, tree.Assign) else None
    return value if isinstance(value, tree.Submodule) else None


def _is_link(made: ClassDef, usage: Usage, each: Statement) -> bool:
    """Whether a statement calls a block that only it calls, and that gives one value."""
    call = _call(each)
    if call is None or not isinstance(each, tree.Assign) or len(each.targets) != 1:
        return False
    member = made.members[call.name]
    return isinstance(member, BlockMember) and usage.members[call.name] == 1


def _follows(made: ClassDef, usage: Usage, before: tree.Assign, each: Statement) -> bool:
    """Whether a statement gives what `before` gives, which nothing else reads, to its block."""
    call, last = _call(each), _call(before)
    if call is None or last is None or not _is_link(made, usage, each):
        return False
    if call.arguments[:1] != (tree.Local(before.targets[0]),):
        return False
    if usage.variables[before.targets[0]] != 1 or call.arguments[1:] != last.arguments[1:]:
        return False
    one, other = made.members[last.name], made.members[call.name]
    if not isinstance(one, BlockMember) or not isinstance(other, BlockMember):
        return False
    same_stage = _stage(last.name) == _stage(call.name)
    if call.arguments[1:]:
        return one.made_of is other.made_of and same_stage
    return same_stage


def _stage(name: str) -> str:
    """Return the part of a block's name that it shares with others of its stage."""
    return name.split("_")[0]


def _write_group(made: ClassDef, group: Sequence[tree.Assign]) -> tree.Assign:
    """Return the statement that calls all blocks of a group, and put them into a list."""
    if len(group) == 1:
        return group[0]
    calls = [call for each in group if (call := _call(each)) is not None]
    blocks = [made.members[each.name] for each in calls]
    items = [each for each in blocks if isinstance(each, BlockMember)]
    extra = calls[0].arguments[1:]
    kind = "nn.ModuleList" if extra else "nn.Sequential"
    names = [each.name for each in calls]
    wanted = common_prefix(names) or _stage(names[0]) or "blocks"
    name = made.join(names, wanted, ListMember(kind, items))
    value = (tree.Chain if extra else tree.Submodule)(name, calls[0].arguments)
    last = group[-1]
    return tree.Assign(last.targets, value, last.types, last.source)
