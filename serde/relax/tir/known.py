"""Functions of TIR that are programs: compared with what TVM makes of its operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any as AnyValue, Final

from serde.relax.framework import Framework

__all__ = ["as_operator"]

_WAYS: Final = ("update", "add", "mul", "mean", "max", "min")
_FLAGS: Final = (False, True)

_OPERATORS: Final[Mapping[str, Callable[..., list[Callable[..., AnyValue]]]]] = {
    "scatter_elements": lambda op, rank: [
        partial(op.scatter_elements, axis=axis, reduction=way)
        for axis, way in product(range(rank), _WAYS)
    ],
    "scatter_nd": lambda op, _: [partial(op.scatter_nd, reduction=way) for way in _WAYS],
    "index_put": lambda op, _: [
        lambda x, *rest, adds=adds: op.index_put(x, rest[:-1], rest[-1], adds) for adds in _FLAGS
    ],
    "searchsorted": lambda op, _: [
        lambda bounds, x, flags=flags: op.bucketize(x, bounds, *flags)
        for flags in product(_FLAGS, repeat=2)
    ],
}
"""Ways to call operators on tensors, of which the first has a rank, by what TVM calls them."""


def as_operator(
    framework: Framework, function: AnyValue, name: str, types: Sequence[AnyValue]
) -> AnyValue:
    """Return a function of Relax that calls one operator, of which TVM makes the same statements.

    None if no operator is known that becomes the function, called with tensors of some types.
    """
    relax = framework.relax
    ways = _OPERATORS.get(re.sub(r"\d+$", "", name))
    if ways is None or not all(isinstance(each, framework.TensorType) for each in types):
        return None
    for build in ways(relax.op, types[0].ndim):
        variables = [relax.Var(f"x{place}", type_) for place, type_ in enumerate(types)]
        builder = relax.BlockBuilder()
        try:
            with builder.function("main", variables):
                builder.emit_func_output(builder.emit(build(*variables)))
            made = relax.transform.LegalizeOps()(builder.get())
        except Exception as error:
            if not framework.has_raised(error):
                raise
            continue  # These tensors are none for it.
        if any(framework.are_same(each, function) for each in made.functions.values()):
            return builder.get()["main"]
    return None
