"""Dicts of TorchScript, whose keys are known while the program is walked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.host.lists import changed, new_list
from serde.torch.host.registry import evaluates
from serde.torch.import_context import ImportContext

Items = dict[AnyValue, AnyValue]

_KEYS = ("str", "int", "bool", "float", "complex", "Tensor")
"""What keys may be, as overloads are named by it."""


def _named(name: str, prefix: str = "") -> list[str]:
    return [f"{name}.{prefix}{key}" for key in _KEYS]


def _require(items: Items, key: AnyValue) -> None:
    if isinstance(key, Expr):
        raise Unsupported("a dict by a key that is only known when the model runs")
    if key not in items:
        raise Unsupported(f"there is no {key!r} in a dict of {', '.join(map(repr, items))}")


@evaluates(*_named("aten::__getitem__", "Dict_"), moves=True)
def get_of_dict(ctx: ImportContext, items: Items, key: AnyValue) -> AnyValue:
    _require(items, key)
    return items[key]


@evaluates(*_named("aten::get"), *_named("aten::get", "default_"), moves=True)
def get_or(ctx: ImportContext, items: Items, key: AnyValue, default: AnyValue = None) -> AnyValue:
    if isinstance(key, Expr):
        _require(items, key)
    return items.get(key, default)


@evaluates(*_named("aten::__contains__"), moves=True)
def has_key(ctx: ImportContext, items: Items, key: AnyValue) -> bool:
    if isinstance(key, Expr):
        _require(items, key)
    return key in items


@evaluates(*_named("aten::len", "Dict_"), moves=True)
def length_of_dict(ctx: ImportContext, items: Items) -> int:
    return len(items)


def _register_view(name: str) -> None:
    """Let what a dict has, all keys or all values or both, be a list of its own."""
    evaluates(*_named(f"aten::{name}"), moves=True)(
        lambda ctx, items: new_list(ctx, list(getattr(items, name)()))
    )


for _name in ("keys", "values", "items"):
    _register_view(_name)


@evaluates(*_named("aten::copy", "Dict_"), *_named("aten::dict", "Dict_"), moves=True)
@evaluates("aten::dict", *_named("aten::dict"), moves=True)
def new_dict(ctx: ImportContext, items: Items | Sequence[AnyValue] = ()) -> Items:
    """A dict like another, or of pairs."""
    found = dict(items)
    ctx.changes.create(found)
    return found


@evaluates(*_named("aten::_set_item"), moves=True)
def set_in_dict(ctx: ImportContext, items: Items, key: AnyValue, value: AnyValue) -> None:
    if isinstance(key, Expr):
        _require(items, key)
    changed(ctx, items)[key] = value


@evaluates(*_named("aten::setdefault"), moves=True)
def set_default(ctx: ImportContext, items: Items, key: AnyValue, value: AnyValue) -> AnyValue:
    if not has_key(ctx, items, key):
        set_in_dict(ctx, items, key, value)
    return items[key]


@evaluates(*_named("aten::pop", "Dict_"), *_named("aten::pop", "Dict_default_"), moves=True)
def pop_key(ctx: ImportContext, items: Items, key: AnyValue, *default: AnyValue) -> AnyValue:
    if not default:
        _require(items, key)
    return changed(ctx, items).pop(key, *default)


@evaluates(*_named("aten::Delete", "Dict_"), moves=True)
def delete_key(ctx: ImportContext, items: Items, key: AnyValue) -> None:
    _require(items, key)
    del changed(ctx, items)[key]


@evaluates(*_named("aten::update"), moves=True)
def update(ctx: ImportContext, items: Items, more: Items) -> None:
    changed(ctx, items).update(more)


@evaluates(*_named("aten::clear"), moves=True)
def clear_dict(ctx: ImportContext, items: Items) -> None:
    changed(ctx, items).clear()
