"""Calls of Relax's operators as modules, run by TVM and read by serde.

``python tests/support/relax_imports.py [name or prefix* ...]`` prints what differs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from typing import Any

import numpy as np
import tvm
from tvm import relax

import serde
import serde.relay as relay
from serde.relax.framework import load
from serde.relax.live import from_results, to_argument

__all__ = ["CallCase", "build", "check", "flatten", "read_and_run", "run_in_tvm"]

TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}
"""Relative to the largest magnitude of a result."""

CallCase = tuple[str, Callable[..., Any], Sequence[np.ndarray]]
"""A name, what builds the call from variables, and their values."""


def build(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> tvm.IRModule:
    """Return a module whose ``main`` gives what `function` makes of variables like `arrays`."""
    builder = relax.BlockBuilder()
    variables = [
        relax.Var(f"x{place}", relax.TensorType(list(each.shape), each.dtype.name))
        for place, each in enumerate(arrays)
    ]
    with builder.function("main", variables):
        with builder.dataflow():
            found = builder.emit_output(builder.emit(function(*variables)))
        builder.emit_func_output(found)
    return builder.get()


def flatten(value: Any) -> list[np.ndarray]:
    """Return what a function gives as arrays, those of tuples one after the other."""
    if hasattr(value, "numpy"):
        return [value.numpy()]
    if isinstance(value, np.ndarray):
        return [value]
    return [each for inner in value for each in flatten(inner)]


def run_in_tvm(
    module: tvm.IRModule, arrays: Sequence[np.ndarray], function: str = "main"
) -> list[np.ndarray]:
    """Return what TVM's virtual machine gives for a function; numbers are arrays of rank 0."""
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    main, framework = module[function], load()
    types = [framework.type_of(each) for each in main.params]
    given = [to_argument(framework, *each) for each in zip(arrays, types, strict=True)]
    return from_results(framework, machine[function](*given), main)


def read_and_run(
    module: tvm.IRModule, arrays: Sequence[np.ndarray], params: Any = None, **options: Any
) -> list[np.ndarray]:
    """Return what the interpreter gives for the module as Relay."""
    model = serde.to_relay(module, params, **options)
    given = iter(arrays)
    weights = {name: weight.array() for name, weight in model.params.items()}
    values = [
        weights[each.name_hint] if each.name_hint in weights else next(given)
        for each in model.main.params
    ]
    found = relay.create_executor("debug", mod=model.mod).evaluate()(*values)
    return flatten(found)


def check(case: CallCase) -> None:
    """Fail unless serde reads a call as TVM computes it."""
    _, function, arrays = case
    module = build(function, arrays)
    compare(read_and_run(module, arrays), run_in_tvm(module, arrays))


def compare(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Fail unless results are equal, floats up to rounding."""
    assert len(found) == len(expected)
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.shape == wanted.shape
        assert actual.dtype == wanted.dtype
        allowed = TOLERANCE.get(wanted.dtype.name)
        if allowed is None:
            np.testing.assert_array_equal(actual, wanted)
            continue
        finite = np.abs(wanted[np.isfinite(wanted)].astype(np.float64))
        scale = float(finite.max()) if finite.size else 1.0
        np.testing.assert_allclose(
            actual.astype(np.float64), wanted.astype(np.float64), rtol=allowed, atol=allowed * scale
        )


def main() -> None:
    """Print which calls are read wrongly."""
    from support.relax_calls import CALLS

    for case in CALLS:
        if sys.argv[1:] and not any(fnmatch(case[0], each) for each in sys.argv[1:]):
            continue
        try:
            check(case)
        except Exception as error:
            print(case[0], type(error).__name__, " ".join(str(error).split())[:300])


if __name__ == "__main__":
    main()
