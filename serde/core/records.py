"""``dataclass`` as the standard library's, made in a fifth of the time.

That one compiles up to six methods for each class, which took a third of a short conversion. Here
the constructor alone is compiled; the other methods are closures over the names of the fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Final
from typing import Any as AnyValue

__all__ = ["MISSING", "asdict", "dataclass", "field", "fields", "is_dataclass", "replace"]

Method = Callable[..., AnyValue]
_PARAMS: Final = "__dataclass_params__"
_DEFAULTS: Final = {"init": True, "eq": True, "frozen": False}


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


def _dataclass(cls: type[AnyValue] | None = None, /, **options: bool) -> AnyValue:
    """Return a class with the methods of its fields; options are the standard library's."""
    if cls is None:
        return lambda cls: _dataclass(cls, **options)
    if "order" in options:
        return dataclasses.dataclass(**options)(cls)
    init, eq, frozen = (options.get(*each) for each in _DEFAULTS.items())
    own = {name for name, value in vars(cls).items() if value is not None}
    # Of frozen classes the standard library takes subclasses only if these are frozen, too.
    inherits = any(vars(b)[_PARAMS].frozen for b in cls.__mro__[1:] if _PARAMS in vars(b))
    ours = {"init": False, "repr": False, "eq": False, "frozen": frozen and inherits}
    cls.__doc__ = cls.__doc__ or cls.__name__  # Of which it would make a signature.
    made: type[AnyValue] = dataclasses.dataclass(**{**options, **ours})(cls)
    getattr(made, _PARAMS).frozen = frozen
    methods: dict[str, Method | None] = {
        "__repr__": _show,
        **({"__init__": _constructor(made)} if init else {}),
        **(_comparison(made) if eq else {}),
        **(_refusals(made) if frozen and not inherits else {}),
    }
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _constructor(made: type[AnyValue]) -> Method:
    """Return ``__init__``; what has a factory is missing until it is given."""
    frozen = getattr(made, _PARAMS).frozen
    known: dict[str, AnyValue] = {"_set": object.__setattr__, "_FACTORY": _Factory()}
    lines, positional, keywords = list[str](), ["self"], list[str]()
    for each in fields(made):
        name, optional = each.name, each.default is not MISSING
        value = name if each.init else f"_default_{name}"
        known[f"_default_{name}"] = each.default
        if each.default_factory is not MISSING:
            known |= {f"_default_{name}": known["_FACTORY"], f"_new_{name}": each.default_factory}
            value, optional = f"_new_{name}() if {value} is _FACTORY else {value}", True
        if each.init or optional:
            lines.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
        if each.init:
            parameter = f"{name}=_default_{name}" if optional else name
            (keywords if each.kw_only else positional).append(parameter)
    lines.append(" self.__post_init__()" if hasattr(made, "__post_init__") else " pass")
    parameters = [*positional, *(["*", *keywords] if keywords else [])]
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *lines]), known)
    found: Method = known["__init__"]
    found.__annotations__ = {e.name: e.type for e in fields(made) if e.init} | {"return": None}
    found.__qualname__ = f"{made.__qualname__}.__init__"
    return found


@recursive_repr()
def _show(self: AnyValue) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _comparison(made: type[AnyValue]) -> dict[str, Method | None]:
    """Return how objects compare, and frozen ones hash."""
    names = [each.name for each in fields(made) if each.compare]
    taken = [e.name for e in fields(made) if (e.compare if e.hash is None else e.hash)]
    compared, hashed = (attrgetter("__class__", *each) for each in (names, taken))

    def equals(self: AnyValue, other: AnyValue) -> bool:
        is_one = other.__class__ is self.__class__
        return compared(self) == compared(other) if is_one else NotImplemented

    frozen = getattr(made, _PARAMS).frozen
    return {"__eq__": equals, "__hash__": (lambda self: hash(hashed(self))) if frozen else None}


def _refusals(made: type[AnyValue]) -> dict[str, Method]:
    """Return what refuses to set and to delete the fields of an object, and fills an unpickled."""
    names = frozenset(each.name for each in fields(made))

    def refuse(self: AnyValue, name: str, *value: AnyValue) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
        (object.__setattr__ if value else object.__delattr__)(self, name, *value)

    def fill(self: AnyValue, state: AnyValue) -> None:
        for each in state if isinstance(state, tuple) else (state,):
            for name, value in (each or {}).items():
                object.__setattr__(self, name, value)

    return {"__setattr__": refuse, "__delattr__": refuse, "__setstate__": fill}


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass
