"""Dataclasses whose methods are made late, beside those of the standard library."""

from __future__ import annotations

import abc
import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from serde.core.records import dataclass

BOTH = [dataclasses.dataclass, dataclass]
OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "kw_only": True},
    {"eq": False, "slots": True},
    {"frozen": True, "order": True},
    {"repr": False, "init": False},
]
T = TypeVar("T")


def plain(decorate: Callable[..., Any], **options: Any) -> Any:
    @decorate(**options)
    class Plain:
        """With every kind of field."""

        count: ClassVar[int] = 7
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: float = field(default=2.0, repr=False, compare=False, kw_only=True)
        e: tuple[int, ...] = field(default=(), init=False)
        f: dict[str, int] = field(default_factory=dict, init=False, hash=False)

    return Plain


def derived(decorate: Callable[..., Any], **options: Any) -> Any:
    @decorate(**options)
    class Base(Generic[T]):
        """With what the next has, too."""

        a: int
        b: str = "base"

        def __post_init__(self) -> None:
            assert self.a is not None

        @property
        def double(self) -> int:
            return 2 * self.a

    @decorate(**options)
    class Derived(Base[int]):
        """With one field anew, one more, and methods of its own."""

        b: str = "derived"
        c: int = 3

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return self is other

    return Derived


def empty(decorate: Callable[..., Any], **options: Any) -> Any:
    @decorate(**options)
    class Empty:
        """Without fields."""

    return Empty


def single(decorate: Callable[..., Any], **options: Any) -> Any:
    @decorate(**options)
    class Single:
        """One value, which may be equal to nothing."""

        a: Any = float("nan")

        def __hash__(self) -> int:
            return 5

    return Single


MAKERS = [plain, derived, empty, single]


def outcome(do: Callable[[], Any]) -> Any:
    """What something gives, or the error that it raises."""
    try:
        return do()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


def refused(do: Callable[[], object]) -> bool:
    """Whether something is refused, by whatever error: with slots the standard one differs."""
    return isinstance(outcome(do), tuple)


def facts(cls: Any) -> dict[str, Any]:
    """What can be told of a class and of what is made of it, without identities."""

    def made() -> Any:
        return cls(*([1] if "a" in names else []))

    names = [f.name for f in dataclasses.fields(cls)]
    if "a" in names and cls.__dataclass_fields__["a"].kw_only:
        plain_cls, cls = cls, lambda a=1, **given: plain_cls(a=a, **given)
        of = plain_cls
    else:
        of = cls
    one, two = outcome(made), outcome(made)
    return {
        "fields": [(f.name, f.type, f.init, f.kw_only) for f in dataclasses.fields(of)],
        "signature": str(outcome(lambda: inspect.signature(of))).replace("_default_", ""),
        "match": of.__match_args__,
        "repr": outcome(lambda: repr(one)).split(" object at")[0],
        "equal": (one == two, one == one, one != 1),
        "hash": outcome(lambda: hash(one) == hash(two)),
        "less": outcome(lambda: one < two),
        "assign": refused(lambda: setattr(one, "a", 4)),
        "new": refused(lambda: setattr(two, "z", 4)),
        "delete": refused(lambda: delattr(copy.copy(two), "a")),
        "slots": getattr(of, "__slots__", None),
        "dictionary": hasattr(one, "__dict__"),
        "too many": outcome(lambda: cls(*range(9)))[0],
        "copied": outcome(lambda: repr(copy.deepcopy(one))).split(" object at")[0],
        "replaced": outcome(lambda: dataclasses.replace(one, b="new").b),
        "as dict": outcome(lambda: dataclasses.asdict(one)),
        "default": str(getattr(of, "b", None)),
    }


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_class_is_as_that_of_the_standard_library(
    maker: Callable[..., Any], options: dict[str, Any]
) -> None:
    theirs, ours = (outcome(lambda each=each: maker(each, **options)) for each in BOTH)
    if isinstance(theirs, tuple):
        assert ours[0] is theirs[0]
        return
    expected, found = facts(theirs), facts(ours)
    if sys.version_info < (3, 11):  # It made slots there that a base has already.
        del expected["slots"], expected["default"]
    assert {name: found[name] for name in expected} == expected


@dataclass(frozen=True, slots=True)
class Kept:
    """One that can be found by its name."""

    a: int
    b: str = "b"


def test_what_has_slots_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, "x"))) == Kept(1, "x")


def test_both_can_be_the_base_of_the_other() -> None:
    @dataclasses.dataclass(frozen=True)
    class Theirs(Kept):
        c: int = 3

    @dataclass(frozen=True)
    class Ours(Theirs):
        d: int = 4

    assert repr(Ours(1)).endswith("Ours(a=1, b='b', c=3, d=4)")
    assert (Theirs(1), Ours(1).d) == (Theirs(1, "b", 3), 4)
    for one, decorate in ((Ours, dataclass), (Kept, dataclasses.dataclass)):
        with pytest.raises(TypeError, match="frozen"):
            decorate(type("Loose", (one,), {"__annotations__": {}}))


def test_abstract_methods_are_counted_anew() -> None:
    class Abstract(abc.ABC):
        @abc.abstractmethod
        def __eq__(self, other: object) -> bool: ...

    @dataclass
    class Concrete(Abstract):
        a: int = 1

    assert Concrete() == Concrete(1)


def test_methods_of_a_base_can_be_called() -> None:
    @dataclass(frozen=True)
    class Base:
        a: int

    class Derived(Base):
        def __init__(self, a: int) -> None:
            super().__init__(a + 1)
            object.__setattr__(self, "extra", 2)

    assert (Derived(1).a, Derived(1).extra) == (2, 2)  # type: ignore[attr-defined]
