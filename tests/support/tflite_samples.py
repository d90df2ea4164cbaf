"""Every sample of every Relay operator as TFLite: written and run by LiteRT, or refused.

``python tests/support/tflite_samples.py`` prints what becomes of each.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from support.coreml_samples import model_of
from support.samples import BuiltSample, build
from support.tflite_models import run_litert

import serde
from serde.errors import SerdeError, UnsupportedModelError
from serde.relay.ir.registry import Sample, all_ops

__all__ = ["each_sample", "judge", "run", "written"]


KEPT = {"int4": "int8", "bfloat16": "float32", "float16": "float32"}
"""What NumPy has, or LiteRT computes, in place of a type."""


def each_sample() -> Iterator[tuple[str, str, int, Sample]]:
    """Yield a name for each sample, with its operator, number and operands."""
    for name, definition in all_ops().items():
        for index, given in enumerate(definition.samples):
            yield f"{name}-{index}", name, index, given


def written(name: str, given: Sample, folder: Path) -> tuple[BuiltSample, Path]:
    """Write a sample.

    Raises:
        UnsupportedModelError: It is refused.
    """
    built = build(all_ops()[name], given)
    target = folder / "net.tflite"
    serde.convert(model_of(built), target, write_quantized="exact")
    return built, target


def judge(built: BuiltSample, path: Path) -> None:
    """Compare what LiteRT makes of a sample with the operator's kernel.

    Raises:
        AssertionError: It differs.
        RuntimeError: LiteRT refuses it.
    """
    feeds = [each.astype(KEPT.get(each.dtype.name, each.dtype)) for each in built.arrays]
    try:
        results = run_litert(path.read_bytes(), feeds)
    except (RuntimeError, ValueError):
        results = run_litert(path.read_bytes(), feeds, optimised=True)
    expected = built.run()
    near = 4e-3 if any(each.dtype == np.float16 for each in (*built.arrays, *expected)) else 2e-5
    for found, wanted in zip(results, expected, strict=True):
        kept = KEPT.get(wanted.dtype.name, wanted.dtype.name)
        assert (found.shape, found.dtype.name) == (wanted.shape, kept)
        if wanted.dtype == np.float16:  # Nothing saturates in float32.
            found = np.clip(found, *np.array([-1, 1]) * np.finfo(np.float16).max)
        wanted = wanted.astype(found.dtype)
        np.testing.assert_allclose(found, wanted, rtol=near, atol=near)


def run(name: str, given: Sample) -> str:
    """Return how a sample is not right; "" where it is."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            built, path = written(name, given, Path(folder))
        except UnsupportedModelError as error:
            return f"refused: {' '.join(str(error).split())[:150]}"
        except SerdeError as error:
            return f"ERROR: {' '.join(str(error).split())[:150]}"
        try:
            judge(built, path)
        except AssertionError as error:
            return f"WRONG: {' '.join(str(error).split())[:150]}"
        except (RuntimeError, ValueError) as error:
            return f"litert: {' '.join(str(error).split())[:150]}"
    return ""


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for key, operator, _index, sample in each_sample():
        found = run(operator, sample)
        counts[found.partition(":")[0] or "right"] += 1
        if found:
            print(key, found, flush=True)
    print(counts)
