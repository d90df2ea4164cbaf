"""Dataclasses of `serde.core.records` behave as those of the standard library."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from serde.core import records


def classes(dataclass: Callable[..., Any]) -> dict[str, type[Any]]:
    """The same classes, made by one or by the other."""

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        names: list[str] = dataclasses.field(default_factory=list, compare=False)
        y: int = dataclasses.field(default=3, kw_only=True, repr=False)

    @dataclass(frozen=True)
    class Base:
        a: int
        z: int = dataclasses.field(init=False, default=7)

        @cached_property
        def next(self) -> int:
            return self.a + 1

    @dataclass(frozen=True)
    class Derived(Base):
        b: tuple[int, ...] = (1,)

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", (*self.b, 0))

    @dataclass
    class Plain:
        a: int
        b: str = "b"

    @dataclass(eq=False, slots=True)
    class Identity:
        a: int

    @dataclass(frozen=True)
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    return {each.__name__: each for each in (Point, Base, Derived, Plain, Identity, Own)}


OURS, STANDARD = classes(records.dataclass), classes(dataclasses.dataclass)
NAMES = list(OURS)


def short(made: Any) -> str:
    return repr(made).replace(f"{classes.__name__}.<locals>.", "")


@pytest.mark.parametrize("name", NAMES)
def test_they_look_and_compare_the_same(name: str) -> None:
    ours, standard = OURS[name], STANDARD[name]
    assert str(inspect.signature(ours)) == str(inspect.signature(standard))
    assert ours.__match_args__ == standard.__match_args__
    one, other = ours(1), standard(1)
    assert name == "Identity" or short(one) == short(other)
    assert (one == ours(1), one == ours(2)) == (other == standard(1), other == standard(2))
    assert one != other or name == "Own"
    assert (ours.__hash__ is None) == (standard.__hash__ is None)
    if ours.__hash__ is not None:
        assert (hash(one) == hash(ours(1))) == (hash(other) == hash(standard(1)))
    assert dataclasses.asdict(one) == dataclasses.asdict(other)
    assert dataclasses.astuple(copy.deepcopy(one)) == dataclasses.astuple(one)


@pytest.mark.parametrize("name", NAMES)
def test_frozen_ones_refuse_changes(name: str) -> None:
    found = []
    for kind in (OURS[name], STANDARD[name]):
        made = kind(1)
        field = dataclasses.fields(kind)[0].name
        try:
            setattr(made, field, 2)
        except dataclasses.FrozenInstanceError as error:
            found.append(str(error))
            with pytest.raises(dataclasses.FrozenInstanceError):
                delattr(made, field)
        else:
            found.append("")
    assert found[0] == found[1]


@records.dataclass(frozen=True, slots=True)
class Sent:
    x: int
    y: tuple[int, ...] = ()


def test_frozen_ones_with_slots_are_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Sent(1, (2,)))) == Sent(1, (2,))
    assert dataclasses.replace(Sent(1, (2,)), x=5) == Sent(5, (2,))


@pytest.mark.parametrize(
    ("base", "derived"),
    [(OURS, dataclasses.dataclass), (STANDARD, records.dataclass), (OURS, records.dataclass)],
)
def test_one_may_derive_from_the_other(base: dict[str, type], derived: Any) -> None:
    more = derived(frozen=True)(
        type("More", (base["Base"],), {"__annotations__": {"c": int}, "c": 4})
    )
    made = more(1, 2)
    assert (made.a, made.c, made.z, made.next) == (1, 2, 7, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.c = 3
    with pytest.raises(TypeError, match="non-frozen"):
        derived()(type("Less", (base["Base"],), {}))
