"""Passes judged by texts: what a program is, what it must become, and that it computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np

import serde.relay as relay
from serde.relay.ir.compare import assert_structural_equal, structural_equal
from serde.relay.ir.expr import Function
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType
from serde.relay.ir.verify import verify
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, Pass

__all__ = ["check", "check_bodies", "parse", "tensor"]

HEADER = '#[version = "0.0.5"]\n'

TOLERANCE = {"float16": 1e-2, "float32": 2e-5, "float64": 1e-12, "bfloat16": 5e-2}
"""Rewrites may round in another place; all else must be the same to the bit."""


def tensor(*shape: int, dtype: str = "float32") -> str:
    """Return the text of a tensor type."""
    if not shape:
        return dtype
    dims = f"({shape[0]},)" if len(shape) == 1 else str(tuple(shape))
    return f"Tensor[{dims}, {dtype}]"


def parse(text: str) -> IRModule:
    """Return a typed module."""
    return InferType()(relay.fromtext(HEADER + text))


def check_bodies(each: Pass, params: str, before: str, after: str, **options: Any) -> None:
    """Check what a pass makes of a module with one function; see :func:`check`."""
    texts = [f"def @main({params}) {{\n{body}\n}}\n" for body in (before, after)]
    check(each, *texts, **options)


def check(each: Pass, before: str, after: str, *, numbers: bool = True) -> None:
    """Check that a pass makes one module of another, says so, and that both compute the same.

    Args:
        each: The pass.
        before: Text of the module.
        after: Text of what it must become.
        numbers: Whether both are run.
    """
    mod, wanted = parse(before), parse(after)
    found, changed = each.run(mod)
    verify(found)
    assert_structural_equal(found, wanted)
    assert changed == (not structural_equal(mod, wanted))
    if numbers:
        inputs = _inputs(mod["main"])
        _agree(run(found["main"], inputs, mod=found), run(mod["main"], inputs, mod=mod))


def _inputs(function: Function) -> list[np.ndarray]:
    rng = np.random.default_rng(len(function.params))
    found = []
    for param in function.params:
        type_ = param.checked_type
        assert isinstance(type_, TensorType)
        shape = tuple(dim if isinstance(dim, int) else 3 for dim in type_.shape)
        if type_.dtype == "bool":
            found.append(rng.integers(0, 2, shape).astype(bool))
        elif "int" in type_.dtype:
            found.append(rng.integers(0, 100, shape).astype(type_.dtype))
        else:
            found.append(np.asarray(rng.uniform(0.5, 2, shape)).astype(type_.dtype))
    return found


def _agree(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            _agree(ours, theirs)
        return
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    tolerance = TOLERANCE.get(wanted.dtype.name)
    if tolerance is None:
        np.testing.assert_array_equal(found, wanted)
    else:
        left, right = found.astype("float64"), wanted.astype("float64")
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
