"""Samples of Relay operators as modules of Relax: built, compiled, run, compared with the kernels.

``python tests/support/relax_samples.py [operator or prefix* ...] [--symbolic]`` prints which are
right, refused with what reason, or wrong. Each is run in a process that another takes the place
of when it crashes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

import numpy as np
from support.nnef_written import DRAWN, model_of
from support.relax_apart import answer, count, judge_apart, verdict_of
from support.samples import BuiltSample, build

from serde.core.report import Report
from serde.relax.engine import RelaxEngine
from serde.relax.exporter import from_relay
from serde.relax.options import RelaxExportOptions
from serde.relay.ir.dims import Dim, symbol
from serde.relay.ir.leaves import leaf_names
from serde.relay.ir.registry import Sample, all_ops

__all__ = ["TOLERANCE", "compare", "each_sample", "judge", "run_apart", "select"]

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-9}
"""Relative to the largest magnitude of a result."""


def each_sample() -> Iterator[tuple[str, str, Sample]]:
    """Yield a name for each sample, with its operator and operands."""
    for name, definition in all_ops().items():
        for index, given in enumerate(definition.samples):
            yield f"{name}-{index}", name, given


def judge(name: str, given: Sample, *, symbolic: bool = False) -> None:
    """Build, compile and run a sample, and compare its results with those of the kernel.

    Raises:
        AssertionError: They differ.
        UnsupportedModelError: It is refused.
    """
    built = build(all_ops()[name], given, _symbol_of if symbolic else None)
    native = from_relay(model_of(built), RelaxExportOptions(), Report())
    engine = RelaxEngine(native.module, native.inputs, native.outputs, [])
    results = engine.run(_values(built))
    compare(results, built, drawn=name in DRAWN)


def _symbol_of(_number: int, _axis: int, length: int) -> Dim:
    """Return the same symbol for the same length; axes of length 1 broadcast and stay."""
    return symbol(f"d{length}") if length > 1 else length


def _values(built: BuiltSample) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for variable, value in zip(built.variables, built.arrays, strict=True):
        names = leaf_names(variable.name_hint, variable.checked_type)
        arrays = value if isinstance(value, (list, tuple)) else [value]
        found.update(zip(names, arrays, strict=True))
    return found


def compare(found: Sequence[np.ndarray], built: BuiltSample, *, drawn: bool = False) -> None:
    """Fail unless results are those of the kernel, of the same shapes and dtypes.

    Args:
        found: The results.
        built: The sample.
        drawn: Whether the values are random, and only their types are told.
    """
    expected = built.run()
    assert len(found) == len(expected)
    for actual, wanted in zip(found, map(np.asarray, expected), strict=True):
        assert actual.shape == wanted.shape, f"shape {actual.shape}, expected {wanted.shape}"
        assert actual.dtype == wanted.dtype, f"dtype {actual.dtype}, expected {wanted.dtype}"
        if drawn:
            continue
        allowed = TOLERANCE.get(wanted.dtype.name)
        if allowed is None:
            np.testing.assert_array_equal(actual, wanted)
            continue
        wide = wanted.astype(np.float64)
        finite = np.abs(wide[np.isfinite(wide)])
        scale = float(finite.max()) if finite.size else 1.0
        np.testing.assert_allclose(
            actual.astype(np.float64), wide, rtol=allowed, atol=allowed * max(scale, 1e-30)
        )


def run_apart(names: Sequence[str], *, symbolic: bool = False) -> Iterator[tuple[str, str, str]]:
    """Yield each sample with its verdict and reason; see :func:`judge_apart`."""
    yield from judge_apart(__file__, names, ["--symbolic"] if symbolic else [])


def select(patterns: Sequence[str]) -> list[str]:
    """Return the names of the samples of operators, or of prefixes with ``*``; all if none."""
    return [
        key
        for key, op, _ in each_sample()
        if not patterns or any(fnmatch(op, each) or key == each for each in patterns)
    ]


def main() -> None:
    """Print the verdicts."""
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    symbolic = "--symbolic" in sys.argv
    if "--here" in sys.argv:
        samples = {key: (op, given) for key, op, given in each_sample()}
        answer(arguments, lambda key: verdict_of(lambda: judge(*samples[key], symbolic=symbolic)))
        return
    found = []
    for key, verdict, said in run_apart(select(arguments), symbolic=symbolic):
        found.append(verdict)
        if verdict != "right":
            print(f"{verdict} {key}: {said}", flush=True)
    print(count(found))


if __name__ == "__main__":
    main()
