"""Functions of TIR that are no blocks over axes: compared with what TVM makes of its operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any as AnyValue, Final

from serde.relax.framework import Framework

__all__ = ["as_operator"]

Build = Callable[..., AnyValue]


def _scatter_elements(op: AnyValue, types: Sequence[AnyValue]) -> Iterator[Build]:
    ways = ("update", "add", "mul", "mean", "max", "min")
    for axis, way in product(range(types[0].ndim), ways):
        yield lambda x, i, u, axis=axis, way=way: op.scatter_elements(x, i, u, axis, way)


def _scatter_nd(op: AnyValue, types: Sequence[AnyValue]) -> Iterator[Build]:
    for way in ("update", "add", "mul", "max", "min"):
        yield lambda x, i, u, way=way: op.scatter_nd(x, i, u, way)


def _index_put(op: AnyValue, types: Sequence[AnyValue]) -> Iterator[Build]:
    for adds in (False, True):
        yield lambda x, *rest, adds=adds: op.index_put(x, rest[:-1], rest[-1], adds)


def _searchsorted(op: AnyValue, types: Sequence[AnyValue]) -> Iterator[Build]:
    for narrow, right in product((False, True), repeat=2):
        yield lambda b, x, narrow=narrow, right=right: op.bucketize(x, b, narrow, right)


_OPERATORS: Final[Mapping[str, Callable[..., Iterator[Build]]]] = {
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "index_put": _index_put,
    "searchsorted": _searchsorted,
}
"""Ways to call operators, by what TVM calls their functions."""


def as_operator(
    framework: Framework, function: AnyValue, name: str, types: Sequence[AnyValue]
) -> AnyValue:
    """Return a function of Relax that calls one operator, of which TVM makes the same statements.

    Args:
        framework: TVM.
        function: The function of TIR.
        name: Its name.
        types: The types of the tensors that it is called with.

    Returns:
        The function; None if no operator is known that becomes this one.
    """
    relax = framework.relax
    ways = _OPERATORS.get(re.sub(r"\d+$", "", name))
    if ways is None or not all(isinstance(each, framework.TensorType) for each in types):
        return None
    wanted = _unnamed(function)
    for build in ways(relax.op, types):
        variables = [relax.Var(f"x{place}", type_) for place, type_ in enumerate(types)]
        builder = relax.BlockBuilder()
        try:
            with builder.function("main", variables):
                builder.emit_func_output(builder.emit(build(*variables)))
            module = builder.get()
            lowered = relax.transform.LegalizeOps()(module)
        except Exception as error:
            if not framework.has_raised(error):
                raise
            continue  # These tensors are none for it.
        made = [each for each in lowered.functions.values() if type(each) is type(function)]
        if any(framework.are_same(_unnamed(each), wanted) for each in made):
            return module["main"]
    return None


def _unnamed(function: AnyValue) -> AnyValue:
    """Return a function without the attributes that passes give it."""
    for name in ("global_symbol", "op_pattern"):
        function = function.without_attr(name)
    return function
