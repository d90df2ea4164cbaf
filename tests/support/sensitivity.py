"""Properties of kernels that a change of their operands shows: near ties, of bits, of scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support.properties import ERRORS, evaluate, generator, op_of
from support.samples import Array, BuiltSample, as_arrays

from serde.relay.ir.bodies import all_nodes, carried
from serde.relay.ir.expr import Call
from serde.relay.ir.registry import has_trait
from serde.relay.ir.traits import Rescales
from serde.relay.run.arithmetic import Application, Exact
from serde.relay.run.interpreter import apply_kernel
from serde.relay.transform.decompose import Decompose


def decides(built: BuiltSample) -> bool | None:
    """At ties and at whole numbers, a tiny change of floats makes a large one."""
    if carried(built.call):
        return False
    random = generator(built)

    def changed(value: Any, change: Callable[[Array], Array]) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(changed(each, change) for each in value)
        floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return change(value) if floats else value

    halves = [changed(each, lambda x: np.rint(x * 2.0) / 2) for each in built.operands]
    drawn = [
        changed(each, lambda x: random.integers(-2, 3, x.shape) / 2.0) for each in built.operands
    ]
    for ties in (halves, drawn):
        for _ in range(8):
            moved = [
                changed(each, lambda x: x + random.choice([-1e-7, 1e-7], x.shape)) for each in ties
            ]
            try:
                pairs = zip(evaluate(built, ties), evaluate(built, moved), strict=True)
                if any(_jumped(before, after) for before, after in pairs):
                    return True
            except ERRORS:
                break
    return False


def decides_on_floats(built: BuiltSample) -> bool | None:
    """The same where only floats come of it: integers and truths made of floats jump anyway."""
    kinds = {each.dtype.kind for each in built.run() if isinstance(each, np.ndarray)}
    return decides(built) if kinds == {"f"} else None


def _jumped(before: Any, after: Any) -> bool:
    if not isinstance(before, np.ndarray):
        return False
    if before.shape != after.shape:
        return True
    if before.dtype.kind not in "iuf":
        return False
    a, b = before.astype(np.float64), after.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    return bool(np.any(np.abs(a - b) > 1e-2 * np.maximum(1, np.abs(a))))


def depends_on_bits(built: BuiltSample) -> bool | None:
    """In float64 the result is another one, by more than rounding."""
    definition, attrs = op_of(built), built.call.attrs
    if carried(built.call):
        return False
    plain = [() if value is None else value for value in built.operands]
    wide = Exact()
    stated = definition.traits
    try:
        definition.traits = {}
        with np.errstate(all="ignore"):
            run = Application(built.call, definition, plain, attrs, apply_kernel)
            found = wide.apply(run)
    except ERRORS:
        return True
    finally:
        definition.traits = stated
    found, wanted = as_arrays(found), built.run()
    return not all(_close(a, b) for a, b in zip(found, wanted, strict=True))


def _close(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_close, found, wanted))
    if found.shape != wanted.shape:
        return False
    a, b = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if not wanted.size:
        return True
    if wanted.dtype.kind not in "fV":
        return bool(np.mean(np.abs(a - b) > 1) < 0.1)
    rtol = 2e-2 if wanted.dtype.itemsize < 4 else 1e-3
    return bool(np.mean(~np.isclose(a, b, rtol, rtol, equal_nan=True)) < 0.1)


def grows(built: BuiltSample) -> bool | None:
    """Of integers at the ends of int32 come some that int32 does not hold."""
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    given = list(built.operands)
    if carried(built.call) or not all(isinstance(each, np.ndarray) for each in given):
        return False
    if not given or any(each.dtype not in (np.int32, np.int64) for each in given):
        return None
    if not all(isinstance(each, np.ndarray) and each.dtype.kind == "i" for each in built.run()):
        return None
    ends = np.array([low, high, 3, 2], np.int64)
    drawn = generator(built)
    for place, value in enumerate(given):
        picks = drawn.choice(ends if place == 0 else np.array([1, 2, 3]), value.shape)
        given[place] = picks.astype(np.int64)
    try:
        found = evaluate(built, given)[0]
    except ERRORS:
        return None
    if not isinstance(found, np.ndarray) or found.dtype != np.int64:
        return None
    return bool(np.any((found > high) | (found < low)))


def rescales(built: BuiltSample) -> bool | None:
    """A quantised operator makes integers of integers in another scale, itself or spelled out."""
    definition = op_of(built)
    if not definition.name.startswith("qnn."):
        return False
    if definition.decompose is not None:
        parts = Decompose(lambda node: node.op is not definition).transform(built.function)
        calls = [node for node in all_nodes(parts) if isinstance(node, Call)]
        quantised = [node for node in calls if node.op.name.startswith("qnn.")]
        if quantised:
            return any(has_trait(node, Rescales) for node in quantised)
        if not any(node.op.name == "multiply" or node.op.name.startswith("nn.") for node in calls):
            return False  # a look-up
    kinds = {built.operands[0].dtype.kind, built.run()[0].dtype.kind}
    return "f" not in kinds


def has_codes(built: BuiltSample) -> bool | None:
    """Integers go in or come out, beside a scale or a zero point."""
    names = [each.name for each in op_of(built).operands]
    if not any(each.endswith(("scale", "scales", "zero_point")) for each in names):
        return False
    arrays = [each for each in built.operands if isinstance(each, np.ndarray)]
    return any(each.dtype.kind in "iu" for each in (*arrays[:1], *built.run()))


def unpacks(built: BuiltSample) -> bool | None:
    """The result takes more bytes than what it is made of."""
    given = [each for each in built.operands if isinstance(each, np.ndarray)]
    return built.run()[0].nbytes > given[0].nbytes
