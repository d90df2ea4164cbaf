"""TVM's parser, on texts that were checked."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any as AnyValue, Final, TypeVar

import numpy as np

from serde.core.weights import Array, dtype_name, numpy_dtype
from serde.relax.framework import Framework, load
from serde.relax.live import share
from serde.relax.reflection import dtype_of
from serde.relax.text.metadata import Metadata

__all__ = ["parse_script"]

_MODULES: Final = {"I": "ir", "R": "relax", "T": "tirx"}
"""What the names of modules in a text stand for, in ``tvm.script.parser``."""


_NOT_FINITE: Final = frozenset(("-inf", "inf", "nan"))
"""Numbers that TVM prints as texts."""

_RENAMED: Final = {
    **{"out_sinfo": "out_ty", "sinfo_args": "ty_args"},
    **{"out_ty": "out_sinfo", "ty_args": "sinfo_args"},
}
"""What arguments of 0.25 are called from 0.26, and the other way round."""

_NO_TYPE: Final = "void"
"""The element type of a result in 0.25, where it is that of the operands."""

_CHOICES: Final = frozenset(("Select", "if_then_else"))
"""Which of two numbers, in ``T``."""

_RANGES: Final = frozenset(("opaque", "reduce", "scan", "spatial"))
"""What takes the range of an axis, in ``T.axis``."""


def parse_script(text: str, names: Iterable[str], metadata: Metadata) -> AnyValue:
    """Return the ``tvm.IRModule`` that a text spells.

    Args:
        text: A text that :func:`serde.relax.text.syntax.check_script` passed.
        names: The names of TVM that it uses, all of them known.
        metadata: What its metadata holds.

    Raises:
        Exception: TVM refuses it.
    """
    framework = load()
    # TVM's parser looks up names that it does not know among Python's builtins.
    known: dict[str, AnyValue] = {name: _Unbound(name) for name in dir(builtins)}
    known["__builtins__"] = {}
    known["TypeVar"] = TypeVar
    known["metadata"] = _objects(framework, metadata)
    known |= _namespaces(framework, names)
    parser = framework.tvm.script
    return parser.from_source(text, extra_vars=known)


class _Unbound:
    """What stands for a variable that a text uses and does not bind."""

    def __init__(self, name: str) -> None:
        self.name = name


def _objects(framework: Framework, metadata: Metadata) -> dict[str, dict[int, AnyValue]]:
    found: dict[str, dict[int, AnyValue]] = {}
    for (key, number), value in metadata.items():
        made = value if isinstance(value, str) else _constant(framework, value)
        found.setdefault(key, {})[number] = made
    return found


def _constant(framework: Framework, data: Array) -> AnyValue:
    return framework.relax.const(share(framework, data), dtype_name(data.dtype))


def _namespaces(framework: Framework, names: Iterable[str]) -> dict[str, SimpleNamespace]:
    """Return the modules that a text sees, which hold the names that it uses and nothing else."""
    package = framework.tvm.script.parser
    found = {root: SimpleNamespace() for root in _MODULES}
    always = ("I.ir_module", "R.function", "T.prim_func")
    for name in sorted({*names, *always}):
        root, *parts = name.split(".")
        value: AnyValue = getattr(package, _MODULES[root])
        place = found[root]
        for part in parts[:-1]:
            value = getattr(value, part)
            if not hasattr(place, part):
                setattr(place, part, SimpleNamespace())
            place = getattr(place, part)
        setattr(place, parts[-1], getattr(value, parts[-1]))
    _mend_builders(framework, found["R"])
    for name in _CHOICES & vars(found["T"]).keys():
        setattr(found["T"], name, _choice_of(framework, getattr(found["T"], name)))
    axes = getattr(found["T"], "axis", SimpleNamespace())
    for name in _RANGES & vars(axes).keys():
        setattr(axes, name, _axis_of(framework, getattr(axes, name)))
    return found


def _mend_builders(framework: Framework, builders: SimpleNamespace) -> None:
    """Have the builders of ``R`` take what TVM prints as their arguments and they do not take."""
    for name, value in vars(builders).items():
        if name == "const":
            setattr(builders, name, partial(_make_const, framework=framework))
        elif name == "match_cast":
            setattr(builders, name, _match_cast_of(framework, value))
        elif isinstance(value, SimpleNamespace):
            _mend_builders(framework, value)
        elif not isinstance(value, type) and not hasattr(value, "dispatch_token"):
            setattr(builders, name, _mended(value))


def _make_const(value: AnyValue, dtype: str | None = None, *, framework: Framework) -> AnyValue:
    """Return ``R.const``, which does not take NaN and infinities."""
    if isinstance(value, str):
        return _constant(framework, np.asarray(float(value), numpy_dtype(str(dtype))))
    return framework.relax.const(value, dtype)


def _match_cast_of(framework: Framework, match_cast: AnyValue) -> AnyValue:
    """Return ``R.match_cast``, which does not take a tuple."""

    def cast(value: AnyValue, type_: AnyValue) -> AnyValue:
        made = framework.relax.Tuple(value) if isinstance(value, tuple) else value
        return match_cast(made, type_)

    return cast


def _mended(builder: AnyValue) -> AnyValue:
    """Return the builder of an operator, which takes what any release prints."""
    accepted = inspect.signature(builder).parameters

    def build(*operands: AnyValue, **attributes: AnyValue) -> AnyValue:
        given = [_number(each) for each in operands]
        named = {
            name if name in accepted else _RENAMED.get(name, name): _number(each)
            for name, each in attributes.items()
            if each != _NO_TYPE
        }
        return builder(*given, **named)

    return build


def _number(value: AnyValue) -> AnyValue:
    return float(value) if isinstance(value, str) and value in _NOT_FINITE else value


def _choice_of(framework: Framework, choose: AnyValue) -> AnyValue:
    """Return a function such as ``T.Select``, which takes numbers of any width.

    TVM prints a length that is a number without its type.
    """

    def select(condition: AnyValue, one: AnyValue, other: AnyValue, *rest: AnyValue) -> AnyValue:
        if isinstance(one, int) != isinstance(other, int):
            dtype = dtype_of(other if isinstance(one, int) else one)
            one, other = (
                framework.tir.const(each, dtype) if isinstance(each, int) else each
                for each in (one, other)
            )
        return choose(condition, one, other, *rest)

    return select


def _axis_of(framework: Framework, axis: AnyValue) -> AnyValue:
    """Return a function such as ``T.axis.spatial``, which keeps the extents of ranges simple.

    TVM prints the two ends of a range, and takes their difference as it stands for the extent.
    """

    def spatial(domain: AnyValue, *operands: AnyValue, **named: AnyValue) -> AnyValue:
        if isinstance(domain, tuple):
            first, last = domain
            extent = framework.simplify(last - first)
            domain = framework.tvm.ir.Range.from_min_extent(first, extent)
        return axis(domain, *operands, **named)

    return spatial
