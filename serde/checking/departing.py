"""Where what runs a model departs from the model's exact result, by a few inner values at a time.

The framework computes, besides the outputs, a dozen values that lie between the inputs and an
output that is wrong; the exact ones come from Relay in float64, and what rounding explains from
Relay in the model's own dtypes. What departs earliest has others behind it that are looked at
next, until all that it is computed from agrees: some steps of a dozen values each, whatever the
size of the model. Asking for a value keeps a framework from fusing what computes it. Where an
output is right as soon as some value is asked for, it is its optimisations that err.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any as AnyValue, Final

import numpy as np

from serde.bridge.contract import AnyBridge
from serde.checking.bisection import Bisection, InnerValue, Inside, measured_limit
from serde.checking.distance import deviation, distance, ratio
from serde.core import Array, dataclass, field, numpy_dtype, replace
from serde.engine.base import run_engine
from serde.errors import CheckError
from serde.relay.ir import Expr, RelayModel, children, post_order, tensor_type
from serde.relay.run.arithmetic import Arithmetic, Exact

__all__ = ["Departure", "find_departure"]

_AT_ONCE: Final = 12
"""Values that are asked for in one run."""


@dataclass(frozen=True, slots=True)
class Departure(Bisection):
    """Where an engine departs from a model's exact result.

    Attributes:
        engine: What runs the model, with its version.
        runs: How often it ran.
        mended_by: A value that makes wrong outputs right if it is asked for.
        given: What the first value at fault is computed from, by name, as computed exactly.
    """

    engine: str = ""
    runs: int = 0
    mended_by: str = ""
    given: Mapping[str, Array] = field(default_factory=dict, repr=False)

    @property
    def agrees(self) -> bool:
        """Whether all outputs do."""
        return self.first is None and not self.mended_by

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        found, count = self.first, f"{self.runs} run{'' if self.runs == 1 else 's'}"
        outputs = f"{self.engine}, in {count}"
        if self.mended_by:
            return (
                f"{outputs}: wrong outputs are right if {self.mended_by} is asked for, too: "
                "its optimisations are at fault there"
            )
        if found is not None:
            op = f" ({found.op})" if found.op else ""
            how = f"by {found.distance:.1e} of its deviation, {found.limit:.1e} would be rounding"
            how = found.remark or how
            return f"{outputs}: first departs from the exact result at {found.name}{op}: {how}"
        return f"{outputs}: agrees with the exact result"


def find_departure(
    bridge: AnyBridge,
    native: AnyValue,
    model: RelayModel,
    inputs: Mapping[str, Array],
    engine: str | None = None,
) -> Departure:
    """Return where the framework of a format departs from the exact result of a model.

    Args:
        bridge: The format.
        native: The model, as the bridge has loaded it.
        model: The same as Relay.
        inputs: Values for its inputs.
        engine: Name of the runtime, where it is not the format's own framework.

    Raises:
        CheckError: The framework refuses the model, or the format has no way to ask for inner
            values.
    """
    search = _Search(bridge, native, model, inputs, engine)
    alone = search.ask(())
    wrong = [each for each in search.outputs if not alone[each].agrees]
    if not wrong:
        return search.found(None)
    if bridge.with_outputs(native, ()) is None:
        raise CheckError(f"{bridge.title}: inner values cannot be asked for")
    current, cleared = wrong[0], set[Expr]()
    while True:
        below = search.below(current)
        picked = _spread([each for each in search.named if each in below and each not in cleared])
        if not picked:
            return search.found(current)
        figures = search.ask(picked)
        if figures[wrong[0]].agrees:
            return search.found(None, search.mending(picked, wrong[0]))
        for each in picked:
            if figures[each].agrees:
                cleared |= {each, *search.below(each)}
        differing = [each for each in picked if not figures[each].agrees and each not in cleared]
        current = differing[0] if differing else current


class _Search:
    """A model whose values are asked of what runs it."""

    def __init__(
        self,
        bridge: AnyBridge,
        native: AnyValue,
        model: RelayModel,
        inputs: Mapping[str, Array],
        engine: str | None,
    ) -> None:
        self._bridge, self._native, self._inputs, self._asked = bridge, native, inputs, engine
        self._inside = Inside(model)
        self.outputs = [value for _, value in self._inside.outputs]
        self._output_names = {value: name for name, value in reversed(self._inside.outputs)}
        self._order = {x: i for i, x in enumerate(post_order(self._inside.model.main.body))}
        names = self._inside.values
        known = {*bridge.inner_names(native)}
        known.difference_update(self._output_names.values())
        inner = {x: name for name, x in names.items() if name in known}
        self.named = {x: name for x, name in inner.items() if x not in self._output_names}
        self._labels = {x: name for name, x in reversed(names.items())}
        self._seen: dict[Expr, InnerValue] = {}
        self._expected: dict[Expr, tuple[Array, Array]] = {}  # Exact, and in the model's dtypes.
        self._engine, self._runs = "", 0

    def below(self, value: Expr) -> set[Expr]:
        """Return what a value is computed from."""
        return {each for each in post_order(value) if each is not value}

    def ask(self, values: Sequence[Expr]) -> dict[Expr, InnerValue]:
        """Return how values compare that the engine gives besides the outputs, and these."""
        names = [self.named[each] for each in values]
        model = self._inside.model
        native = self._bridge.with_outputs(self._native, names) if names else self._native
        meta = replace(model.meta, outputs=(*model.meta.outputs, *names))
        opened = (
            self._bridge.engine_of(self._asked, native)
            if self._asked
            else self._bridge.engine(native, model.evolve(meta=meta))
        )
        with closing(opened) as engine:
            found, self._engine = run_engine(engine, self._inputs), engine.name
        self._runs += 1
        asked = [*self.outputs, *values]
        if len(found) != len(asked):
            raise CheckError(f"{self._engine}: expected {len(asked)} values, found {len(found)}")
        new = [each for each in asked if each not in self._expected]
        if new:
            exact = self._inside.run(new, self._inputs, Exact())
            own = self._inside.run(new, self._inputs, Arithmetic())
            self._expected.update(zip(new, zip(exact, own, strict=True), strict=True))
        rows = zip(asked, found, strict=True)
        figures = {each: self._figures(each, array, *self._expected[each]) for each, array in rows}
        self._seen = figures | self._seen if not values else self._seen | figures
        return figures

    def _figures(self, value: Expr, found: Array, exact: Array, own: Array) -> InnerValue:
        name = self.named.get(value) or self._output_names.get(value, "")
        finite, far, remark = np.isfinite(exact), math.inf, ""
        limit = measured_limit(self._inside.noise, np.where(np.isfinite(own), own, exact), exact)
        if found.shape != exact.shape:
            remark = f"its shape is {found.shape}"
        elif not np.isfinite(found[finite]).all():
            remark = f"of {exact.size} numbers {(~np.isfinite(found[finite])).sum()} are not finite"
        else:
            far = ratio(distance(found, exact).mean, deviation(exact))
        return InnerValue(
            name, self._labels.get(value, name), self._inside.operator(value), exact.shape, far,
            far <= limit, limit=limit, remark=remark,
        )  # fmt: skip

    def mending(self, values: Sequence[Expr], output: Expr) -> str:
        """Return one of some values that makes an output right if it is asked for."""
        while len(values) > 1:
            half = values[: len(values) // 2]
            values = half if self.ask(half)[output].agrees else values[len(values) // 2 :]
        return self.named[values[0]]

    def found(self, suspect: Expr | None, mended_by: str = "") -> Departure:
        """Return what was seen, in order, with the value at fault."""
        rows = sorted(self._seen, key=lambda each: self._order.get(each, len(self._order)))
        values = tuple(replace(self._seen[each], suspect=each is suspect) for each in rows)
        given = {} if suspect is None else self._operands(suspect)
        return Departure(values, self._engine, self._runs, mended_by, given)

    def _operands(self, value: Expr) -> dict[str, Array]:
        """Return the named values that one is computed from, weights left out."""
        inputs = {each.name_hint: each for each in self._inside.model.inputs()}
        known: dict[Expr, str] = {**self.named, **{x: name for name, x in inputs.items()}}
        waiting, met, found = [*children(value)], set[Expr](), dict[Expr, str]()
        while waiting:
            node = waiting.pop()
            if node in known:
                found[node] = known[node]
            elif node not in met:
                met.add(node)
                waiting += children(node)
        exact = self._inside.run([*found], self._inputs, Exact())
        dtypes = [tensor_type(each).dtype for each in found]
        return {
            name: np.asarray(array, numpy_dtype(dtype))
            for name, array, dtype in zip(found.values(), exact, dtypes, strict=True)
        }


def _spread(values: Sequence[Expr]) -> list[Expr]:
    """Return a dozen values at equal distances, the last of all among them."""
    step = max(1, -(-len(values) // _AT_ONCE))
    return list(reversed(values[::-1][::step]))
