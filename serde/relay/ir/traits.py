"""What operators have in common: facts that declarations state and passes ask for.

A declaration lists its traits, ``relay_op(..., traits=(Elementwise, Commutative))``; what takes
arguments is an instance, ``Layout("data_layout")``. A pass asks a node with
:func:`serde.relay.ir.registry.has_trait` or :func:`~serde.relay.ir.registry.trait_of`, and keeps
no list of names. Each trait is defined by a property of the kernel, which the tests check on all
samples; an operator without :class:`Random` is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from serde.core.records import dataclass

if TYPE_CHECKING:
    from serde.core.weights import Array
    from serde.relay.ir.expr import Call, Expr

__all__ = [
    "Arithmetic", "BitLevel", "CaseRule", "Cases", "Commutative", "Decompresses",
    "Discontinuous", "Elementwise", "Float32", "Foreign", "Fractions", "Fusion",
    "FusionPattern", "InRange", "Layout", "Linear", "Moves", "Ordering", "Quantized", "Random",
    "Range", "RangeRule", "Reduction", "Regions", "Rescales", "Reshape", "RoundsLengths",
    "SameAxes", "SameType", "Selects", "Trait", "Truth", "TypeOnly", "UsuallyInRange", "Values",
    "Work",
]  # fmt: skip


class Trait:
    """A fact about an operator."""


class Elementwise(Trait):
    """Each element depends on the elements at its place; operands broadcast as in NumPy.

    Axes may be put in another order, and the result may be computed in pieces along any of them.
    """


class SameType(Trait):
    """The result has the type of the one operand, so that either tells the other."""


class Commutative(Trait):
    """The two operands may be exchanged."""


class Random(Trait):
    """Each evaluation draws anew: neither merged with an equal call nor evaluated beforehand.

    Operators that take a ``key`` are functions of it and hence pure.
    """


class Foreign(Trait):
    """A framework computes it, and Relay does not know what it is.

    It is neither merged with an equal call nor evaluated beforehand, nothing is made of it but
    what it is, and no region that goes to a target holds it.
    """


class BitLevel(Trait):
    """The result depends on the bits that hold a number: in a wider dtype it is another one."""


class Reshape(Trait):
    """The elements of operand 0 in their order, in another shape."""


@dataclass(frozen=True)
class Moves(Trait):
    """Each element is one of operand 0, chosen by its place alone.

    Attributes:
        all: Whether each element of the operand occurs.
    """

    all: bool = False


@dataclass(frozen=True, init=False)
class Values(Trait):
    """Each element, of the first of several results, is one of some operands, rounded, or filler.

    :class:`Moves` says the same of operand 0, and more.
    """

    operands: tuple[int, ...]

    def __init__(self, *operands: int) -> None:
        object.__setattr__(self, "operands", operands)


@dataclass(frozen=True, init=False)
class TypeOnly(Trait):
    """Of these operands only the type matters, never the values."""

    operands: tuple[int, ...]

    def __init__(self, *operands: int) -> None:
        object.__setattr__(self, "operands", operands)


@dataclass(frozen=True)
class Work(Trait):
    """More is computed than the elements of operands and results.

    Attributes:
        count: Gives the number of multiplications, comparisons or the like of a call.
    """

    count: Callable[[Call], int]


class Selects(Trait):
    """Values tell how long results are: no more entries than operand 0 has elements."""


class Truth(Trait):
    """Every element is true or false, or 1 or 0 in a dtype of numbers."""


class Reduction(Trait):
    """Axes of operand 0 are reduced as the attributes axis, keepdims and exclude say."""


@dataclass(frozen=True)
class SameAxes(Trait):
    """The first operands, broadcast, and the result have the same axes.

    Elements keep their place, but that attributes name axes along which more is done. Other
    operands are scalars, or vectors along such an axis. Of several results, only the first has
    these axes where attributes name some, and all have them where none does.

    Attributes:
        axes: Attributes that hold a number of an axis, or several.
        per_axis: Attributes with an entry for each axis.
        operands: How many operands have the axes.
        batch: Whether axis 0 means something of its own.
    """

    axes: tuple[str, ...] = ()
    per_axis: tuple[str, ...] = ()
    operands: int = 1
    batch: bool = False


@dataclass(frozen=True)
class Layout(Trait):
    """An attribute such as ``"NCHW"`` names the axes of the data.

    Attributes:
        attribute: Its name; where there is ``kernel_layout``, it names those of the weight.
        operands: How many operands have these axes; a weight comes behind them.
    """

    attribute: str = "layout"
    operands: int = 1


class Linear(Trait):
    """A layer linear in its data and its weight, operand 1, with filters that make channels.

    Formats have it with a bias; a factor for each channel can go into the weight.
    """


class FusionPattern(IntEnum):
    """Kinds of operators, simple ones first, with the numbers that TVM gives them.

    Attributes:
        ELEMWISE: An element depends on the element at the same place.
        BROADCAST: The same, with operands repeated along axes.
        INJECTIVE: An element is one element of an operand, from another place.
        COMM_REDUCE: Axes are reduced in any order.
        OUT_ELEMWISE_FUSABLE: Something heavy, after which an elementwise operator may follow at
            once, such as a convolution.
        TUPLE: Several values as one.
        OPAQUE: Nothing may be said; it stays alone.
    """

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


@dataclass(frozen=True)
class Fusion(Trait):
    """The pattern by which TVM fuses an operator, where other traits do not tell it.

    Those tell: elementwise of one operand or of several; moved elements and other shapes are
    injective; reductions; layers. What nothing is said of is opaque.
    """

    pattern: FusionPattern


@dataclass(frozen=True)
class Float32(Trait):
    """Needs the range or the precision of float32.

    Sums over many elements and squares leave the range or precision of float16; coordinates and
    indices need more than its eleven bits.

    Attributes:
        group: ``"range"`` where nothing inside a target's own operator makes good for it; else a
            name for what the careful may leave in float32: norms, reductions, resizing.
        default: Whether a model that becomes float16 leaves it in float32 unless asked otherwise.
    """

    group: str = "range"
    default: bool = True


class Ordering(Trait):
    """Decides by order: where two candidates are nearly equal, by rounding."""


class Discontinuous(Trait):
    """A function of floats that jumps where its input passes a number."""


@dataclass(frozen=True)
class Arithmetic(Trait):
    """Results may be larger, or finer, than operands.

    Attributes:
        bounded: Whether integers become no larger than they are.
    """

    bounded: bool = False


CaseRule = Callable[
    [Mapping[str, object], Sequence["Array | None"], "Array | tuple[Array, ...]"],
    Iterable[tuple[str, bool]],
]
"""Gets attributes, operands and result of a call; yields its parts, and whether each is reached."""


@dataclass(frozen=True)
class Cases(Trait):
    """Has parts that inputs may never reach, so that another operator would give the same.

    What every usual input reaches, such as both sides of ``nn.relu``, needs no word.

    Attributes:
        noun: What it is called: a clip, a threshold.
        rule: Tells which parts were reached.
    """

    noun: str
    rule: CaseRule


@dataclass(frozen=True)
class RoundsLengths(Trait):
    """Lengths are multiplied by factors and rounded down, which float32 may do otherwise.

    Attributes:
        factors: Attribute that holds the factors, or None.
        axes: Attribute that holds their axes; all of them where it is empty.
    """

    factors: str
    axes: str


class Quantized(Trait):
    """Takes or gives codes: integers that stand for numbers by scales and zero points."""


class Rescales(Trait):
    """Multiplies quantised integers by a factor between two scales, in products of 64 bits."""


class Decompresses(Trait):
    """Makes a weight of what is compressed, and stays in the graph for a runtime to see."""


@dataclass(frozen=True)
class Regions(Trait):
    """Operand 1 holds regions of images.

    Attributes:
        numbered: Whether a region begins with the number of its image.
    """

    numbered: bool = True


@dataclass(frozen=True, init=False)
class Fractions(Trait):
    """These operands are thresholds between 0 and 1."""

    operands: tuple[int, ...]

    def __init__(self, *operands: int) -> None:
        object.__setattr__(self, "operands", operands)


Range = tuple[int, int]
"""The least and the greatest value."""

RangeRule = Callable[["Call", Mapping[str, int]], Iterable[tuple["Expr", Range]]]
"""Gets a call and the lengths of symbols; yields operands with the range that they must be in."""


@dataclass(frozen=True)
class InRange(Trait):
    """Operands must lie in a range: an index beyond its table is an error.

    Attributes:
        rule: The operands and the ranges.
        exact: Whether all beyond is an error; else the range is what says something.
    """

    rule: RangeRule
    exact: bool = True


@dataclass(frozen=True)
class UsuallyInRange(Trait):
    """Operands lie in a range in use, such as a mask of zeros and ones, without having to."""

    rule: RangeRule
