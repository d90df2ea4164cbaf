"""`dataclass` as the standard library has it, without text that is compiled for each class.

That one compiles up to eight functions for a class, which takes 0.3 ms, and a conversion needs more
than a hundred classes. Here ``__init__`` is compiled when a class is first instantiated or asked
for it, and the other methods share what is compiled once. Fields are those of the standard
library: `dataclasses.fields`, `replace`, `asdict` and what type checkers know hold for both.
"""

from __future__ import annotations

import dataclasses
from abc import update_abstractmethods
from collections.abc import Callable, Set
from dataclasses import MISSING, Field, FrozenInstanceError, asdict, field, fields, replace
from functools import cache, partial
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any as AnyValue, Final

__all__ = ["asdict", "dataclass", "field", "fields", "replace"]

_HIDDEN: Final = ("__dict__", "__weakref__")
_ORDER: Final = ("__lt__", "__le__", "__gt__", "__ge__")


def _make(
    given: AnyValue = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    order: bool = False,
    frozen: bool = False,
    kw_only: bool = False,
    slots: bool = False,
) -> AnyValue:
    """Make a class a dataclass; the parameters are those of `dataclasses.dataclass`."""
    if given is None:
        return partial(
            _make, init=init, repr=repr, eq=eq, order=order, frozen=frozen, kw_only=kw_only,
            slots=slots,
        )  # fmt: skip
    given.__dataclass_fields__ = _fields(given, frozen=frozen, kw_only=kw_only)
    given.__dataclass_params__ = vars(_Frozen if frozen else _Mutable)["__dataclass_params__"]
    fields = dataclasses.fields(given)
    cls = _with_slots(given, {f.name for f in fields}) if slots else given
    methods: dict[str, AnyValue] = {
        "__match_args__": tuple(f.name for f in fields if f.init and not f.kw_only)
    }
    if init:
        methods["__init__"] = _Initialiser(cls, fields, frozen=frozen)
    if repr:
        methods["__repr__"] = _repr(tuple(f.name for f in fields if f.repr))
    compared = tuple(f.name for f in fields if f.compare)
    if eq:
        methods["__eq__"] = _comparison(compared, tuple.__eq__)
    if order:
        methods |= {name: _comparison(compared, getattr(tuple, name)) for name in _ORDER}
    if frozen:
        methods |= _refusals(cls, frozenset(f.name for f in fields))
    if frozen and slots:
        methods |= _pickling(tuple(f.name for f in fields))
    if eq and not _has_own_hash(given):
        hashed = tuple(f.name for f in fields if (f.compare if f.hash is None else f.hash))
        cls.__hash__ = _hash(hashed) if frozen else None
    for name, method in methods.items():
        if name not in vars(given):
            setattr(cls, name, method)
    return update_abstractmethods(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _make


@dataclasses.dataclass(frozen=True)
class _Frozen:
    """A class from which others take what says that they are frozen."""


@dataclasses.dataclass
class _Mutable:
    """Likewise, not frozen."""


class _Factory:
    """What stands for a value that is made anew for each instance, as signatures show it."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY: Final = _Factory()


def _has_own_hash(cls: type) -> bool:
    own = vars(cls)
    # One that says how it is compared alone has None for that.
    return "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)


def _fields(cls: type, *, frozen: bool, kw_only: bool) -> dict[str, Field[AnyValue]]:
    """Return the fields of a class after those of its bases.

    The standard library finds them in a class that has the same annotations and nothing else.
    """
    found: dict[str, Field[AnyValue]] = {}
    for base in cls.__mro__[-1:0:-1]:
        if (inherited := vars(base).get("__dataclass_fields__")) is not None:
            found |= inherited
            if base.__dataclass_params__.frozen != frozen:  # type: ignore[attr-defined]
                raise TypeError(f"{cls.__name__} and {base.__name__} are not both frozen")
    own = get_annotations(cls)
    alike = {name: vars(cls)[name] for name in own if name in vars(cls)}
    body = {**alike, "__annotations__": own, "__module__": cls.__module__, "__doc__": "-"}
    shadow: AnyValue = type(cls.__name__, (), body)
    how = {"init": False, "repr": False, "eq": False, "match_args": False, "kw_only": kw_only}
    dataclasses.dataclass(**how)(shadow)
    for name, value in alike.items():
        if isinstance(value, Field):
            if value.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
    return found | shadow.__dataclass_fields__


def _with_slots(cls: AnyValue, fields: Set[str]) -> AnyValue:
    """Return a class like another, with slots for the fields that its bases have none for."""
    own = [name for name in get_annotations(cls) if name in fields]
    inherited = {
        name
        for base in cls.__mro__[1:]
        for name, value in vars(base).items()
        if isinstance(value, MemberDescriptorType)
    }
    body = {name: value for name, value in vars(cls).items() if name not in (*_HIDDEN, *own)}
    body["__slots__"] = tuple(name for name in own if name not in inherited)
    body["__qualname__"] = cls.__qualname__
    return type(cls)(cls.__name__, cls.__bases__, body)


class _Initialiser:
    """The ``__init__`` of a class, compiled when it is first asked for."""

    def __init__(self, cls: type, fields: tuple[Field[AnyValue], ...], *, frozen: bool) -> None:
        self._cls = cls
        self._fields = fields
        self._assigned = "_set(self, {0!r}, {1})" if frozen else "self.{0} = {1}"

    def __get__(self, instance: object, owner: type) -> AnyValue:
        made = self._compile()
        made.__annotations__ = {f.name: f.type for f in self._fields if f.init} | {"return": None}
        made.__qualname__ = f"{self._cls.__qualname__}.__init__"
        made.__module__ = self._cls.__module__
        self._cls.__init__ = made  # type: ignore[misc]
        return made.__get__(instance, owner)

    def _compile(self) -> AnyValue:
        known: dict[str, AnyValue] = {"_set": object.__setattr__, "_factory": _FACTORY}
        positional, keywords, lines = ["self"], ["*"], []
        for f in self._fields:
            makes = f.default_factory is not MISSING
            default, given = f"_default_{f.name}", f.name
            known[default] = f.default_factory if makes else f.default
            if f.init:
                value = f"{default}() if {f.name} is _factory else {f.name}" if makes else f.name
                if known[default] is not MISSING:
                    given += "=_factory" if makes else f"={default}"
                (keywords if f.kw_only else positional).append(given)
            else:
                value = f"{default}()" if makes else default
            if f.init or known[default] is not MISSING:
                lines.append(self._assigned.format(f.name, value))
        if hasattr(self._cls, "__post_init__"):
            lines.append("self.__post_init__()")
        parameters = ", ".join([*positional, *(keywords if len(keywords) > 1 else ())])
        text = f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"])
        exec(text, known)  # nosec B102 - it holds names of fields alone, as attributes have them
        return known["__init__"]


def _values(names: tuple[str, ...]) -> Callable[[object], tuple[AnyValue, ...]]:
    """Return what gives the values of attributes, as a tuple however many there are."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _repr(names: tuple[str, ...]) -> AnyValue:
    guarded = cache(lambda: recursive_repr()(describe))

    def describe(self: AnyValue) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({fields})"

    return lambda self: guarded()(self)


def _comparison(
    names: tuple[str, ...], compare: Callable[[AnyValue, AnyValue], AnyValue]
) -> AnyValue:
    values = _values(names)

    def method(self: AnyValue, other: object) -> AnyValue:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compare(values(self), values(other))

    return method


def _hash(names: tuple[str, ...]) -> AnyValue:
    values = _values(names)

    def method(self: AnyValue) -> int:
        return hash(values(self))

    return method


def _refusals(cls: AnyValue, names: frozenset[str]) -> dict[str, AnyValue]:
    """Return the methods that keep an instance as it was made."""

    def refuse_value(self: AnyValue, name: str, value: AnyValue) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_removal(self: AnyValue, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse_value, "__delattr__": refuse_removal}


def _pickling(names: tuple[str, ...]) -> dict[str, AnyValue]:
    """Return the methods by which slots are copied that cannot be assigned to."""

    def state(self: AnyValue) -> list[AnyValue]:
        return [getattr(self, name) for name in names]

    def restore(self: AnyValue, values: list[AnyValue]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": state, "__setstate__": restore}
